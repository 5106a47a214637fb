//! A comparison of methods on one data set: which methods a request names, the learner behind each,
//! and the record they leave. The program and the Python package write the same record from here.

use serde_json::json;

use crate::learner::Learner;
use crate::peers::{Look, Peer, PeerSettings};
use crate::protocol::{ClassOrder, Protocol};
use crate::record::{
    Kind, MethodRecord, PhaseOutcome, RunOptions, RunRecord, Summary, VERSION, named_values,
};
use crate::run::Stream;
use ivoro::Budget;
use ivoro::Points;
use ivoro::Result;
use ivoro::head::{EXTENDED, PAPER, Variant};
use ivoro::model::{Model, ModelOptions};
use ivoro::samples::Split;

/// A method that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    name: String,
    kind: MethodKind,
}

/// `grouped`: it came with paper or all, so it may be left out where the features can't do it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MethodKind {
    Variant {
        variant: Variant,
        grouped: bool,
    },
    /// The variant that suits the first classes best.
    Default,
    Peer {
        peer: Peer,
        look: Look,
        grouped: bool,
    },
}

impl Method {
    /// Whether it is a variant, whose settings are chosen; peers have theirs.
    pub fn is_variant(&self) -> bool {
        !matches!(self.kind, MethodKind::Peer { .. })
    }

    /// The methods of two lists of names, each once. A variant may be `default`, `paper`, `all` or
    /// `none`, a peer may be `all`. Letters behind a peer say what it sees: `ranpac-FL`, `all-F`.
    ///
    /// ```
    /// use ivoro_eval::comparison::Method;
    /// let methods = Method::named(["paper", "iVoro-NW"], ["fecam"])?;
    /// assert_eq!((methods.len(), methods[22].name()), (23, "fecam"));
    /// # Ok::<(), ivoro::Error>(())
    /// ```
    pub fn named<'a>(
        variants: impl IntoIterator<Item = &'a str>,
        peers: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Self>> {
        let mut methods: Vec<Self> = Vec::new();
        for name in variants {
            let names: Vec<&str> = match name {
                "paper" => PAPER.to_vec(),
                "all" => PAPER.iter().chain(&EXTENDED).copied().collect(),
                "none" | "" => Vec::new(),
                name => vec![name],
            };
            let grouped = names.len() > 1;
            for name in names {
                if name == "default" {
                    methods.push(Self { name: name.to_owned(), kind: MethodKind::Default });
                    continue;
                }
                let kind = MethodKind::Variant { variant: name.parse()?, grouped };
                methods.push(Self { name: name.to_owned(), kind });
            }
        }
        for name in peers {
            let all = name.strip_prefix("all");
            let look = all.and_then(|letters| match letters.strip_prefix('-') {
                None => letters.is_empty().then(Look::default),
                Some(letters) => Look::parse(letters),
            });
            let peers = match look {
                Some(look) => Peer::ALL.map(|peer| (peer, look)).to_vec(),
                None => vec![Peer::with_look(name)?],
            };
            methods.extend(peers.into_iter().map(|(peer, look)| Self {
                name: look.name(peer),
                kind: MethodKind::Peer { peer, look, grouped: all.is_some() },
            }));
        }
        let mut seen = std::collections::HashSet::new();
        methods.retain(|method| seen.insert(method.name.clone()));
        Ok(methods)
    }

    /// The name it was asked for under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the features have the views and layers it needs. A method that was asked for by its own
    /// name is an error where they do not.
    pub fn fits(&self, features: &Points) -> Result<bool> {
        let (checked, grouped) = match self.kind {
            MethodKind::Default => return Ok(true),
            MethodKind::Variant { variant, grouped } => (variant.check_features(features), grouped),
            MethodKind::Peer { peer, look, grouped } => (look.check(peer, features), grouped),
        };
        match checked {
            Err(_) if grouped => Ok(false),
            checked => checked.map(|()| true),
        }
    }

    /// A learner that knows no class yet.
    pub fn learner(&self, options: &ModelOptions, peers: &PeerSettings) -> Box<dyn Learner> {
        match self.kind {
            MethodKind::Variant { variant, .. } => Box::new(Model::new(variant, options.clone())),
            MethodKind::Default => Box::new(Model::choosing(options.clone(), Budget::default())),
            MethodKind::Peer { peer, look, .. } => peer.learner_of(look, peers),
        }
    }

    /// The record of a learner of this method that went through all phases.
    pub fn record(
        &self,
        learner: &dyn Learner,
        peers: &PeerSettings,
        phases: Vec<PhaseOutcome>,
    ) -> MethodRecord {
        let (kind, exemplar_free, settings, look) = match self.kind {
            MethodKind::Default => (Kind::Variant, true, learner.settings(), None),
            MethodKind::Variant { variant, .. } => {
                (Kind::Variant, true, learner.settings(), Some(Look::of(variant)))
            }
            MethodKind::Peer { peer, look, .. } => {
                (Kind::Peer, peer.is_exemplar_free(), json!(peers), Some(look))
            }
        };
        MethodRecord {
            name: self.name.clone(),
            kind,
            exemplar_free,
            views: look.map(Look::views),
            layers: look.map(Look::layers),
            settings,
            choices: learner.choices().to_vec(),
            summary: Summary::of(&phases),
            phases,
            ..MethodRecord::default()
        }
    }
}

/// Those of the methods that the features allow, and the names of the others.
pub fn suitable(methods: Vec<Method>, split: &Split) -> Result<(Vec<Method>, Vec<String>)> {
    let (mut fit, mut left_out) = (Vec::new(), Vec::new());
    for method in methods {
        if method.fits(&split.train)? {
            fit.push(method);
        } else {
            left_out.push(method.name);
        }
    }
    Ok((fit, left_out))
}

/// Where the samples of a comparison come from, as its record says it.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// Name of the features.
    pub features: String,
    /// Who decided which samples are for testing.
    pub split: String,
}

/// The record of a comparison in which no method has finished yet.
pub fn begin(
    stream: &Stream,
    order: &ClassOrder,
    provenance: &Provenance,
    options: &ModelOptions,
    peers: &PeerSettings,
) -> RunRecord {
    let test = stream.test();
    let layers = test.layers().iter().enumerate().map(|(at, name)| (name.clone(), test.dim(at)));
    let options = RunOptions {
        // these structs have named fields alone, which are always an object of JSON
        given: named_values(&options.given).ok(),
        settings: named_values(&options.settings).ok(),
        peers: named_values(peers).ok(),
        data: Some(stream.fingerprint().into()),
        layers: Some(layers.collect()),
        ..RunOptions::default()
    };
    outline(stream.protocol(), order, stream.classes().to_vec(), provenance, options)
}

/// The same of methods that are not given features; `classes` are in order of arrival.
pub fn outline(
    protocol: &Protocol,
    order: &ClassOrder,
    classes: Vec<String>,
    provenance: &Provenance,
    options: RunOptions,
) -> RunRecord {
    RunRecord {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        features: provenance.features.clone(),
        split: provenance.split.clone(),
        protocol: protocol.to_string(),
        phases: protocol.sizes().to_vec(),
        order: order.to_string(),
        classes,
        options,
        ..RunRecord::default()
    }
}
