//! Other methods that work on the same frozen features, to compare with.
//!
//! Each is given one vector per image, that of its [`Look`]; by default the last layer of the upright
//! view. It learns phase by phase, and answers through [`Learner`]: one distance a class, smaller is
//! nearer. Distances are comparable between the classes of one query, not between methods.
//!
//! [`Learner::bytes`] counts what a method must keep to go on learning (means, scatter, Gram
//! matrices), not what can be computed again from it (weights, inverses).

mod anacp;
mod checked;
mod clusters;
mod dsal;
mod fecam;
mod fenec;
mod intake;
mod joint;
mod klda;
mod logistic;
mod look;
mod loranpac;
mod ncm;
mod ncm_cosine;
mod random;
mod ranpac;
mod regression;
mod ridge;
mod rows;
mod settings;
mod slda;
mod spectrum;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use checked::{CheckedPeer, Method};
pub use look::Look;
pub use settings::PeerSettings;

use crate::learner::Learner;
use ivoro::{Error, Result};

/// A published method to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// Nearest class mean, squared Euclidean distance.
    Ncm,
    /// Nearest class mean by the angle between unit vectors.
    NcmCosine,
    /// Streaming linear discriminant analysis (Hayes and Kanan 2020).
    Slda,
    /// FeCAM: a covariance a class (Goswami et al. 2023).
    Fecam,
    /// RanPAC: ridge regression on randomly lifted features (`McDonnell` et al. 2023).
    Ranpac,
    /// Linear discriminant analysis on random Fourier features (Momeni et al. 2025).
    Klda,
    /// DS-AL: a second regression on what the first leaves over (Zhuang et al. 2024).
    Dsal,
    /// LoRanPAC: regression on a lift without its smallest directions (Peng et al. 2025).
    Loranpac,
    /// AnaCP: regressions to prototypes that were moved apart (Momeni et al. 2025).
    Anacp,
    /// FeNeC: FeCAM with several centres per class (Książek et al. 2025).
    Fenec,
    /// Logistic regression on all features of all phases: keeps them all, a reference.
    Joint,
}

impl Peer {
    /// All of them, from the simplest to the one that keeps everything.
    pub const ALL: [Self; 11] = [
        Self::Ncm,
        Self::NcmCosine,
        Self::Slda,
        Self::Fecam,
        Self::Fenec,
        Self::Ranpac,
        Self::Klda,
        Self::Dsal,
        Self::Loranpac,
        Self::Anacp,
        Self::Joint,
    ];

    /// The name under which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ncm => "ncm",
            Self::NcmCosine => "ncm-cosine",
            Self::Slda => "slda",
            Self::Fecam => "fecam",
            Self::Ranpac => "ranpac",
            Self::Klda => "klda",
            Self::Dsal => "dsal",
            Self::Loranpac => "loranpac",
            Self::Anacp => "anacp",
            Self::Fenec => "fenec",
            Self::Joint => "joint",
        }
    }

    /// What it is, in a line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Ncm => "nearest class mean, squared Euclidean distance",
            Self::NcmCosine => "nearest class mean of unit vectors, cosine distance",
            Self::Slda => "streaming linear discriminant analysis: class means, one covariance",
            Self::Fecam => "FeCAM: Mahalanobis distance with a covariance for every class",
            Self::Ranpac => "RanPAC: ridge regression on a random rectified lift",
            Self::Klda => "KLDA: discriminant analysis on random Fourier features",
            Self::Dsal => {
                "DS-AL: ridge regression on a lift, and a second one of what it leaves over"
            }
            Self::Loranpac => "LoRanPAC: regression on a lift, its smallest directions cut off",
            Self::Anacp => {
                "AnaCP: regressions to prototypes moved apart, then one on pseudo samples"
            }
            Self::Fenec => "FeNeC: FeCAM with several centres per class",
            Self::Joint => "logistic regression on all features of all phases; keeps them all",
        }
    }

    /// Whether no feature vector of a sample is kept once its phase is learned.
    pub fn is_exemplar_free(self) -> bool {
        self != Self::Joint
    }

    /// A learner that knows no class yet. Settings out of range are refused when it first learns.
    pub fn learner(self, settings: &PeerSettings) -> Box<dyn Learner> {
        self.learner_of(Look::default(), settings)
    }

    /// The same of more views or layers.
    pub fn learner_of(self, look: Look, settings: &PeerSettings) -> Box<dyn Learner> {
        let settings = *settings;
        let given = (self, look, settings);
        match self {
            Self::Ncm => checked(given, ncm::Ncm::default()),
            Self::NcmCosine => checked(given, ncm_cosine::NcmCosine::default()),
            Self::Slda => checked(given, slda::Slda::new(settings)),
            Self::Fecam => checked(given, fecam::Fecam::new(settings)),
            Self::Ranpac => checked(given, ranpac::Ranpac::new(settings)),
            Self::Klda => checked(given, klda::Klda::new(settings)),
            Self::Dsal => checked(given, dsal::Dsal::new(settings)),
            Self::Loranpac => checked(given, loranpac::Loranpac::new(settings)),
            Self::Anacp => checked(given, anacp::Anacp::new(settings)),
            Self::Fenec => checked(given, fenec::Fenec::new(settings)),
            Self::Joint => checked(given, joint::Joint::new(settings)),
        }
    }

    /// Reads a name with the letters of a look behind it, if there are any: `ranpac`, `ranpac-FL`.
    pub fn with_look(name: &str) -> Result<(Self, Look)> {
        let plain = |name: &str| Self::ALL.into_iter().find(|peer| peer.name() == name);
        let looking = || {
            let (name, letters) = name.rsplit_once('-')?;
            Some((plain(name)?, Look::parse(letters)?))
        };
        let found = plain(name).map(|peer| (peer, Look::default())).or_else(looking);
        found.ok_or_else(|| Error::Setting {
            name: "peer",
            value: name.to_owned(),
            reason: "one of ncm, ncm-cosine, slda, fecam, fenec, ranpac, klda, dsal, loranpac, anacp, joint; behind it, if wanted, - and the letters F, AI, L of what it sees",
        })
    }
}

fn checked(
    (peer, look, settings): (Peer, Look, PeerSettings),
    method: impl Method + 'static,
) -> Box<dyn Learner> {
    Box::new(CheckedPeer::new(peer, look, settings, method))
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Peer {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unlooked = |(peer, look)| (look == Look::default()).then_some(peer);
        unlooked(Self::with_look(text)?).ok_or_else(|| Error::Setting {
            name: "peer",
            value: text.to_owned(),
            reason: "a name without letters behind it",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back() {
        for peer in Peer::ALL {
            assert_eq!(peer.to_string().parse::<Peer>().unwrap(), peer);
            assert_eq!(serde_json::to_string(&peer).unwrap(), format!("\"{peer}\""));
            assert_eq!(peer.learner(&PeerSettings::default()).name(), peer.name());
        }
        assert!(matches!("lda".parse::<Peer>(), Err(Error::Setting { name: "peer", .. })));
    }

    #[test]
    fn letters_behind_a_name_say_what_is_seen() {
        for (text, peer, views, layers) in [
            ("ncm", Peer::Ncm, 1, 1),
            ("ncm-F", Peer::Ncm, 2, 1),
            ("ncm-cosine-AI", Peer::NcmCosine, 4, 1),
            ("ranpac-FAIL", Peer::Ranpac, 8, 2),
        ] {
            let (found, look) = Peer::with_look(text).unwrap();
            assert_eq!((found, look.views(), look.layers()), (peer, views, layers));
            assert_eq!(look.name(found), text);
        }
        for text in ["ncm-", "ncm-N", "ncm-AC", "ncm-LF", "ncm-cosine-", "-F", "fecam-FQ", "slda-3"]
        {
            assert!(Peer::with_look(text).is_err(), "{text}");
        }
        assert!("ncm-F".parse::<Peer>().is_err());
    }

    #[test]
    fn only_the_joint_reference_keeps_features() {
        let keepers: Vec<_> =
            Peer::ALL.into_iter().filter(|peer| !peer.is_exemplar_free()).collect();
        assert_eq!(keepers, [Peer::Joint]);
    }
}
