//! What is said of queries.

use ivoro::Prediction;
use ivoro::model::AskOptions;
use serde::Serialize;
use utoipa::ToSchema;

use crate::given::Skipped;
use crate::snapshot::Snapshot;

/// Answers to the queries of a request.
#[derive(Serialize, ToSchema)]
pub(crate) struct AskReply {
    /// The hash of the model that answered.
    pub(crate) hash: String,
    /// One for each query that could be read.
    pub(crate) answers: Vec<Answer>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skipped: Vec<Skipped>,
}

/// What is said of one query.
#[derive(Serialize, ToSchema)]
pub(crate) struct Answer {
    /// What the client called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The nearest classes, nearest first.
    pub(crate) top: Vec<Near>,
    /// Whether it is none of them; missing where that can't be said yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unknown: Option<bool>,
    /// How unlike everything known it is: 1 is usual for a known class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strangeness: Option<f64>,
    /// The strangeness from which on it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threshold: Option<f64>,
    /// How much its views disagree.
    pub(crate) uncertainty: f64,
    /// Its number among the unknowns, where it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unknown_id: Option<u64>,
    /// Where it lies in the map of the classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) point: Option<[f64; 2]>,
}

/// A class that is near.
#[derive(Serialize, ToSchema)]
pub(crate) struct Near {
    /// Its name.
    pub(crate) class: String,
    /// Calibrated; missing where nothing was measured yet.
    pub(crate) probability: Option<f64>,
    /// The distance, comparable within one answer only.
    pub(crate) distance: f32,
    /// How far its own samples usually are, where distances say that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usual: Option<f64>,
}

/// How queries are asked.
pub(crate) fn options(snapshot: &Snapshot, top: usize, false_rejection: f64) -> AskOptions {
    let false_rejection = snapshot.can_reject.then_some(false_rejection);
    AskOptions { top, false_rejection, ..AskOptions::default() }
}

impl Answer {
    pub(crate) fn of(
        snapshot: &Snapshot,
        prediction: Prediction,
        name: Option<String>,
        threshold: Option<f64>,
    ) -> Self {
        let top = prediction.top.into_iter().map(|candidate| Near {
            usual: snapshot.usual(&candidate.class),
            class: candidate.class,
            probability: candidate.probability,
            distance: candidate.distance,
        });
        Self {
            name,
            top: top.collect(),
            unknown: prediction.unknown,
            strangeness: prediction.strangeness,
            threshold,
            uncertainty: prediction.uncertainty,
            unknown_id: None,
            point: None,
        }
    }
}
