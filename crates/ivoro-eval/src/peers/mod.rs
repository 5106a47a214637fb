//! Other methods that work on the same frozen features, to compare with.
//!
//! Each sees the last layer of the upright view and nothing else, learns phase by phase, and
//! answers through [`Learner`]: one distance a class, smaller is nearer. Distances are comparable
//! between the classes of one query, not between methods.
//!
//! [`Learner::bytes`] counts what a method must keep to go on learning (means, scatter, Gram
//! matrices), not what can be computed again from it (weights, inverses).

mod fecam;
mod intake;
mod joint;
mod logistic;
mod ncm;
mod ncm_cosine;
mod ranpac;
mod ridge;
mod rows;
mod settings;
mod slda;
mod student;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use settings::PeerSettings;
use student::{Method, Student};

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
    /// Logistic regression on all features of all phases: keeps them all, a reference.
    Joint,
}

impl Peer {
    /// All of them, from the simplest to the one that keeps everything.
    pub const ALL: [Self; 6] =
        [Self::Ncm, Self::NcmCosine, Self::Slda, Self::Fecam, Self::Ranpac, Self::Joint];

    /// The name under which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ncm => "ncm",
            Self::NcmCosine => "ncm-cosine",
            Self::Slda => "slda",
            Self::Fecam => "fecam",
            Self::Ranpac => "ranpac",
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
            Self::Joint => "logistic regression on all features of all phases; keeps them all",
        }
    }

    /// Whether no feature vector of a sample is kept once its phase is learned.
    pub fn is_exemplar_free(self) -> bool {
        self != Self::Joint
    }

    /// A learner that knows no class yet. Settings out of range are refused when it first learns.
    pub fn learner(self, settings: &PeerSettings) -> Box<dyn Learner> {
        let settings = *settings;
        match self {
            Self::Ncm => self.student(settings, ncm::Ncm::default()),
            Self::NcmCosine => self.student(settings, ncm_cosine::NcmCosine::default()),
            Self::Slda => self.student(settings, slda::Slda::new(settings)),
            Self::Fecam => self.student(settings, fecam::Fecam::new(settings)),
            Self::Ranpac => self.student(settings, ranpac::Ranpac::new(settings)),
            Self::Joint => self.student(settings, joint::Joint::new(settings)),
        }
    }

    fn student(self, settings: PeerSettings, method: impl Method + 'static) -> Box<dyn Learner> {
        Box::new(Student::new(self, settings, method))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Peer {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|peer| peer.name() == text).ok_or_else(|| Error::Setting {
            name: "peer",
            value: text.to_owned(),
            reason: "one of ncm, ncm-cosine, slda, fecam, ranpac, joint",
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
    fn only_the_joint_reference_keeps_features() {
        let keepers: Vec<_> =
            Peer::ALL.into_iter().filter(|peer| !peer.is_exemplar_free()).collect();
        assert_eq!(keepers, [Peer::Joint]);
    }
}
