//! What a run leaves behind: versioned JSON with all that a report may need.

use serde::{Deserialize, Serialize};

use crate::metrics;
use crate::tune::Choice;

/// Version of the JSON; raised when a field changes its meaning.
pub const VERSION: u32 = 1;

/// One comparison: one data set, protocol and class order, several methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this format.
    pub version: u32,
    /// Version of the program.
    pub program: String,
    /// Name of the features file.
    pub features: String,
    /// Where training and test samples came from.
    pub split: String,
    /// The protocol, as text.
    pub protocol: String,
    /// Classes per phase.
    pub phases: Vec<usize>,
    /// The class order, as text.
    pub order: String,
    /// Class names in order of arrival.
    pub classes: Vec<String>,
    /// What was asked for: given settings and choices that are not tuned.
    pub options: serde_json::Value,
    /// The methods.
    pub methods: Vec<MethodRecord>,
}

/// One method's way through the phases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// The name it was asked for under.
    pub name: String,
    /// Whether it is a variant of iVoro or a peer.
    pub kind: Kind,
    /// Whether it keeps no sample of an earlier phase.
    pub exemplar_free: bool,
    /// Settings in use.
    pub settings: serde_json::Value,
    /// How settings were chosen on the base phase.
    pub choices: Vec<Choice>,
    /// One entry a phase.
    pub phases: Vec<PhaseOutcome>,
    /// The numbers of the table.
    pub summary: Summary,
}

/// What kind of method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A variant of iVoro.
    Variant,
    /// A method to compare with.
    Peer,
}

/// One phase learned and tested. Accuracies are in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseOutcome {
    /// Which phase, from 0.
    pub phase: usize,
    /// Classes known after it.
    pub classes: usize,
    /// Accuracy on the test samples of all classes known.
    pub accuracy: f64,
    /// Accuracy on the classes of each phase so far: a row of the accuracy matrix.
    pub accuracy_by_phase: Vec<f64>,
    /// Accuracy on the classes of earlier phases.
    pub accuracy_old: Option<f64>,
    /// Accuracy on the classes of this phase.
    pub accuracy_new: Option<f64>,
    /// One entry a class known.
    pub by_class: Vec<ClassOutcome>,
    /// [true, predicted, count] of every pair that occurs.
    pub confusion: Vec<[usize; 3]>,
    /// Expected calibration error, 15 bins.
    pub calibration_error: Option<f64>,
    /// Mean −log p of the true class.
    pub log_loss: Option<f64>,
    /// Area under the ROC of telling classes that have not arrived yet from known ones.
    pub rejection_auroc: Option<f64>,
    /// Seconds to learn the phase, choosing of settings included in phase 0.
    pub learn_seconds: f64,
    /// Seconds to judge all test samples.
    pub predict_seconds: f64,
    /// Bytes kept after the phase.
    pub bytes: usize,
}

/// One class in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassOutcome {
    /// Test samples.
    pub tested: usize,
    /// Of those, right.
    pub correct: usize,
    /// Mean HV of its samples.
    pub uncertainty: Option<f64>,
}

/// The numbers of the table, accuracies in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Average incremental accuracy.
    pub average: f64,
    /// Accuracy after the last phase.
    pub last: f64,
    /// Average forgetting at the end, as PASS defines it.
    pub forgetting_pass: f64,
    /// Average forgetting at the end, as PyCIL defines it.
    pub forgetting_pycil: f64,
    /// Backward transfer.
    pub backward_transfer: f64,
    /// Bytes kept at the end per class.
    pub bytes_per_class: f64,
    /// Seconds of all phases, learning and judging.
    pub seconds: f64,
}

impl Summary {
    /// The summary of a finished run.
    pub fn of(phases: &[PhaseOutcome]) -> Self {
        let Some(last) = phases.last() else { return Self::default() };
        let matrix: Vec<Vec<f64>> =
            phases.iter().map(|phase| phase.accuracy_by_phase.clone()).collect();
        let accuracies: Vec<f64> = phases.iter().map(|phase| phase.accuracy).collect();
        Self {
            average: metrics::average(&accuracies),
            last: last.accuracy,
            forgetting_pass: metrics::forgetting_pass(&matrix, matrix.len() - 1),
            forgetting_pycil: metrics::forgetting_pycil(&matrix),
            backward_transfer: metrics::backward_transfer(&matrix),
            bytes_per_class: last.bytes as f64 / last.classes.max(1) as f64,
            seconds: phases.iter().map(|phase| phase.learn_seconds + phase.predict_seconds).sum(),
        }
    }
}
