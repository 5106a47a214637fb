//! A comparison of methods on one data set: which methods a request names, the learner behind each,
//! and the record they leave. The program and the Python package write the same record from here.

use serde_json::json;

use crate::learner::Learner;
use crate::peers::{Peer, PeerSettings};
use crate::protocol::{ClassOrder, Protocol};
use crate::record::{
    Kind, MethodRecord, PhaseOutcome, RunOptions, RunRecord, Summary, VERSION, named_values,
};
use crate::run::Stream;
use ivoro::Points;
use ivoro::Result;
use ivoro::Split;
use ivoro::head::{EXTENDED, PAPER, Variant};
use ivoro::model::{Model, ModelOptions};

/// A method that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    name: String,
    kind: MethodKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum MethodKind {
    /// `grouped`: it came with paper or all, so it may be left out where the features can't do it.
    Variant {
        variant: Variant,
        grouped: bool,
    },
    Peer(Peer),
}

impl Method {
    /// Whether it is a variant, whose settings are chosen; peers have theirs.
    pub fn is_variant(&self) -> bool {
        matches!(self.kind, MethodKind::Variant { .. })
    }

    /// The methods of two lists of names, each once. A variant may be `paper`, `all` or `none`, a
    /// peer may be `all`.
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
                let kind = MethodKind::Variant { variant: name.parse()?, grouped };
                methods.push(Self { name: name.to_owned(), kind });
            }
        }
        for name in peers {
            let peers = if name == "all" { Peer::ALL.to_vec() } else { vec![name.parse()?] };
            methods.extend(
                peers
                    .into_iter()
                    .map(|peer| Self { name: peer.to_string(), kind: MethodKind::Peer(peer) }),
            );
        }
        let mut seen = std::collections::HashSet::new();
        methods.retain(|method| seen.insert(method.name.clone()));
        Ok(methods)
    }

    /// The name it was asked for under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the features have the views and layers it needs. A variant that was asked for by
    /// its own name is an error where they do not.
    pub fn fits(&self, features: &Points) -> Result<bool> {
        match self.kind {
            MethodKind::Variant { variant, grouped } => match variant.check_features(features) {
                Err(_) if grouped => Ok(false),
                checked => checked.map(|()| true),
            },
            MethodKind::Peer(_) => Ok(true),
        }
    }

    /// A learner that knows no class yet.
    pub fn learner(&self, options: &ModelOptions, peers: &PeerSettings) -> Box<dyn Learner> {
        match self.kind {
            MethodKind::Variant { variant, .. } => Box::new(Model::new(variant, options.clone())),
            MethodKind::Peer(peer) => peer.learner(peers),
        }
    }

    /// The record of a learner of this method that went through all phases.
    pub fn record(
        &self,
        learner: &dyn Learner,
        peers: &PeerSettings,
        phases: Vec<PhaseOutcome>,
    ) -> MethodRecord {
        let (kind, exemplar_free, settings) = match self.kind {
            MethodKind::Variant { .. } => (Kind::Variant, true, learner.settings()),
            MethodKind::Peer(peer) => (Kind::Peer, peer.is_exemplar_free(), json!(peers)),
        };
        MethodRecord {
            name: self.name.clone(),
            kind,
            exemplar_free,
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
