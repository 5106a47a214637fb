//! Whether probabilities are what they say.

use serde::Serialize;

use super::answers::Answer;
use crate::metrics::{calibration_error_by_mass, mass_bins};

/// Answers that are about equally sure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// How many.
    pub queries: usize,
    /// Mean probability of the class that was given.
    pub confidence: f64,
    /// Share that is right.
    pub accuracy: f64,
}

/// Probabilities against what turned out to be right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reliability {
    /// Expected calibration error over bins of as many answers each, from 0 to 1.
    pub error: f64,
    /// Mean probability of the class that was given.
    pub confidence: f64,
    /// Share that is right.
    pub accuracy: f64,
    /// The bins, the least sure first.
    pub bins: Vec<Bin>,
}

impl Reliability {
    /// Of answers about known classes; none without an answer, or where one has no probability.
    pub(super) fn of(known: &[&Answer], bins: usize) -> Option<Self> {
        let confidence: Option<Vec<f64>> = known.iter().map(|it| it.probability).collect();
        let right: Vec<bool> = known.iter().map(|it| it.is_right()).collect();
        Self::from_parts(&confidence?, &right, bins)
    }

    /// From the probability of each answer and whether it is right.
    pub fn from_parts(confidence: &[f64], right: &[bool], bins: usize) -> Option<Self> {
        if confidence.is_empty() {
            return None;
        }
        let bin = |rows: &[usize]| {
            let n = rows.len() as f64;
            let right = rows.iter().filter(|&&row| right[row]).count();
            Bin {
                queries: rows.len(),
                confidence: rows.iter().map(|&row| confidence[row]).sum::<f64>() / n,
                accuracy: right as f64 / n,
            }
        };
        let n = confidence.len() as f64;
        Some(Self {
            error: calibration_error_by_mass(confidence, right, bins),
            confidence: confidence.iter().sum::<f64>() / n,
            accuracy: right.iter().filter(|&&right| right).count() as f64 / n,
            bins: mass_bins(confidence, bins).iter().map(|rows| bin(rows)).collect(),
        })
    }
}
