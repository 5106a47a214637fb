//! Methods to compare with that train the network in every phase, on the same data, protocol and
//! network as everything else.
//!
//! All begin with one network, trained on the base classes, and share one loop
//! ([`IncrementalTrainer::run`]). The network gives points and takes their gradient; head and losses
//! are computed here, so that every engine trains every method. Methods that keep images of earlier
//! phases say so ([`Baseline::exemplars`]).

mod attention;
mod eeil;
mod epoch_loop;
mod ewc;
mod exemplars;
mod fine_tuning;
mod head;
mod icarl;
mod losses;
mod lwf;
mod lwf_mc;
mod lwm;
mod method;
mod muc;
mod pass;
mod phase_data;
mod pseudo_phases;
mod rmm;
mod trainer;
mod ucir;

#[cfg(test)]
mod test_recorder;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use trainer::{IncrementalTrainer, Progress, TrainedPhase};

use crate::error::{Error, Result};

/// A method to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// Cross-entropy on new classes alone.
    FineTuning,
    /// Prototype augmentation and self-supervision.
    Pass,
    /// Elastic weight consolidation.
    Ewc,
    /// Learning without forgetting.
    Lwf,
    /// The same with one logistic loss per class.
    LwfMc,
    /// Learning without memorizing.
    Lwm,
    /// More classifiers, less forgetting.
    Muc,
    /// iCaRL, answering by its outputs.
    IcarlCnn,
    /// iCaRL, answering by the nearest mean of kept images.
    IcarlNme,
    /// End-to-end incremental learning.
    Eeil,
    /// A unified classifier by cosine.
    Ucir,
    /// iCaRL with a memory that a learned policy splits, answering by its outputs.
    RmmIcarlCnn,
    /// The same, answering by the nearest mean of kept images.
    RmmIcarlNme,
    /// A unified classifier by cosine with such a memory.
    RmmUcir,
    /// All images of all classes at once: the upper bound.
    JointTraining,
}

impl Baseline {
    /// All of them, those that keep images last but the upper bound.
    pub const ALL: [Self; 15] = [
        Self::FineTuning,
        Self::Ewc,
        Self::Lwf,
        Self::LwfMc,
        Self::Lwm,
        Self::Muc,
        Self::Pass,
        Self::IcarlCnn,
        Self::IcarlNme,
        Self::Eeil,
        Self::Ucir,
        Self::RmmIcarlCnn,
        Self::RmmIcarlNme,
        Self::RmmUcir,
        Self::JointTraining,
    ];

    /// Images kept per class; none for most. A policy may keep more, in the room of the next phase's
    /// images ([`TrainedPhase::kept`]).
    pub fn exemplars(self) -> Option<usize> {
        match self {
            Self::IcarlCnn
            | Self::IcarlNme
            | Self::Eeil
            | Self::Ucir
            | Self::RmmIcarlCnn
            | Self::RmmIcarlNme
            | Self::RmmUcir => Some(exemplars::EACH),
            _ => None,
        }
    }

    /// Whether no image of an earlier phase is used.
    pub fn is_exemplar_free(self) -> bool {
        self.exemplars().is_none() && self != Self::JointTraining
    }

    /// Counts the changes of what the method computes that can move its results: those of an
    /// earlier revision are not taken over, and a report marks them.
    pub fn revision(self) -> u64 {
        match self {
            Self::Pass
            | Self::JointTraining
            | Self::Lwm
            | Self::RmmIcarlCnn
            | Self::RmmIcarlNme
            | Self::RmmUcir => 1,
            Self::FineTuning | Self::Lwf | Self::LwfMc | Self::IcarlCnn | Self::IcarlNme => 2,
            Self::Ucir => 3,
            Self::Ewc | Self::Muc | Self::Eeil => 4,
        }
    }

    /// Whether new classes are told from each other alone, so that a phase of one class teaches nothing.
    pub fn learns_among_new(self) -> bool {
        matches!(self, Self::Ewc | Self::Lwf | Self::Lwm | Self::Muc)
    }

    /// The method whose training this one shares: two ways to answer may rest on one training.
    #[must_use]
    pub fn training(self) -> Self {
        match self {
            Self::IcarlNme => Self::IcarlCnn,
            Self::RmmIcarlNme => Self::RmmIcarlCnn,
            other => other,
        }
    }

    /// The way to answer of the method that a policy serves.
    fn without_policy(self) -> Self {
        match self {
            Self::RmmIcarlCnn => Self::IcarlCnn,
            Self::RmmIcarlNme => Self::IcarlNme,
            Self::RmmUcir => Self::Ucir,
            other => other,
        }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FineTuning => "fine-tuning",
            Self::Pass => "PASS",
            Self::Ewc => "EWC",
            Self::Lwf => "LwF",
            Self::LwfMc => "LwF-MC",
            Self::Lwm => "LwM",
            Self::Muc => "MUC",
            Self::IcarlCnn => "iCaRL-CNN",
            Self::IcarlNme => "iCaRL-NME",
            Self::Eeil => "EEIL",
            Self::Ucir => "UCIR",
            Self::RmmIcarlCnn => "RMM-iCaRL-CNN",
            Self::RmmIcarlNme => "RMM-iCaRL-NME",
            Self::RmmUcir => "RMM-UCIR",
            Self::JointTraining => "joint-training",
        })
    }
}

impl FromStr for Baseline {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let named = |baseline: &&Self| baseline.to_string().eq_ignore_ascii_case(text);
        Self::ALL.iter().find(named).copied().ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            Error::UnknownBaseline { name: text.to_owned(), known: known.join(", ") }
        })
    }
}
