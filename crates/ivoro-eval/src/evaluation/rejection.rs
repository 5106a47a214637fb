//! What is rejected as unknown, rightly and wrongly.

use serde::Serialize;

use super::answers::Answer;
use super::interval::Interval;
use crate::metrics::{area_under_roc, false_positive_rate};

/// Share of known queries that are accepted where the false positive rate is taken.
const ACCEPTED: f64 = 0.95;

/// How many of some queries are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rejected {
    /// All of them.
    pub queries: usize,
    /// Those rejected.
    pub rejected: usize,
    /// Their share, with the interval of Wilson at 95 %.
    pub share: Option<Interval>,
}

impl Rejected {
    fn of<'a>(answers: impl Iterator<Item = &'a Answer> + Clone) -> Self {
        let queries = answers.clone().count();
        let rejected = answers.filter(|answer| answer.rejected == Some(true)).count();
        Self { queries, rejected, share: Interval::wilson(rejected, queries) }
    }
}

/// What happens at one threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtThreshold {
    /// Share of known queries that may be rejected wrongly, as the threshold was asked for.
    pub promised: f64,
    /// Strangeness above which a query is rejected.
    pub threshold: f64,
    /// Known queries: rejected wrongly.
    pub known: Rejected,
    /// Unknown ones: rejected rightly. None without any.
    pub unknown: Option<Rejected>,
    /// Accuracy on the known queries that are not rejected.
    pub accepted: Option<Interval>,
}

/// How well known and unknown queries are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rejection {
    /// At the model's threshold; none where it has none.
    pub at_threshold: Option<AtThreshold>,
    /// Chance that an unknown query is stranger than a known one.
    pub auroc: Option<f64>,
    /// Share of unknown queries taken for known where 95 % of known ones are accepted.
    pub fpr95: Option<f64>,
}

impl Rejection {
    /// None where no answer says how strange the query is.
    pub(super) fn of(answers: &[Answer], threshold: Option<(f64, f64)>) -> Option<Self> {
        let known = answers.iter().filter(|answer| answer.known);
        let unknown = answers.iter().filter(|answer| !answer.known);
        let strangeness = |answers: &mut dyn Iterator<Item = &Answer>| -> Vec<f64> {
            answers.filter_map(|answer| answer.strangeness).collect()
        };
        let (near, far) = (strangeness(&mut known.clone()), strangeness(&mut unknown.clone()));
        if near.is_empty() && far.is_empty() {
            return None;
        }
        let at_threshold = threshold.map(|(promised, threshold)| {
            let accepted = known.clone().filter(|answer| answer.rejected == Some(false));
            let right = accepted.clone().filter(|answer| answer.is_right()).count();
            AtThreshold {
                promised,
                threshold,
                known: Rejected::of(known.clone()),
                unknown: (unknown.clone().count() > 0).then(|| Rejected::of(unknown.clone())),
                accepted: Interval::wilson(right, accepted.count()),
            }
        });
        let auroc = area_under_roc(&near, &far);
        Some(Self { at_threshold, auroc, fpr95: false_positive_rate(&near, &far, ACCEPTED) })
    }
}
