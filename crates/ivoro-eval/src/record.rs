//! What a run leaves behind: versioned JSON with all that a report may need.

mod options;
mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::metrics;
use ivoro::Variant;
use ivoro::tune::Choice;

pub use options::{NamedValues, RunOptions, named_values};
pub use read::{ReadError, RecordFile, read, read_json, read_versioned};

/// Version of the JSON; raised when a field changes its meaning.
pub const VERSION: u32 = 1;

/// One comparison: one data set, protocol and class order, several methods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this format.
    pub version: u32,
    /// Version of the program.
    pub program: String,
    /// Name of the features file.
    pub features: String,
    /// Name of the data set, as in `CIFAR-100`, where it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_set: Option<String>,
    /// What tells networks on one data set apart, where it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Whether test samples chose settings, as some papers did; never so by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tuned_on_test: bool,
    /// What settings were chosen on, where that was not the base phase itself.
    #[serde(default, rename = "judge", skip_serializing_if = "Option::is_none")]
    pub tuned_on: Option<String>,
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
    #[serde(deserialize_with = "options::read", serialize_with = "options::write")]
    pub options: RunOptions,
    /// The methods.
    pub methods: Vec<MethodRecord>,
}

impl RunRecord {
    /// The same with what older runs said for all their baselines, their revision, said by each of them.
    #[must_use]
    pub fn with_revisions(mut self) -> Self {
        let Some(all) = self.options.revision.take() else { return self };
        for method in self.methods.iter_mut().filter(|method| method.kind == Kind::Baseline) {
            if method.settings.is_null() {
                method.settings = serde_json::json!({});
            }
            if let Some(settings) = method.settings.as_object_mut() {
                settings.entry("revision").or_insert(all.into());
            }
        }
        self
    }
}

/// One method's way through the phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodRecord {
    /// The name it was asked for under.
    pub name: String,
    /// Whether it is a variant of iVoro or a peer.
    pub kind: Kind,
    /// Whether it keeps no sample of an earlier phase.
    pub exemplar_free: bool,
    /// Samples kept of each class: the number of a method that keeps as many of each, or the most that
    /// one has kept on average after a phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exemplars: Option<usize>,
    /// Rotations and mirror images of each test image that the network is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub views: Option<usize>,
    /// Layers of the network that are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<usize>,
    /// Settings in use.
    pub settings: serde_json::Value,
    /// How settings were chosen on the base phase.
    pub choices: Vec<Choice>,
    /// One entry a phase.
    pub phases: Vec<PhaseOutcome>,
    /// The numbers of the table.
    pub summary: Summary,
}

impl MethodRecord {
    /// How many views of each test image are looked at; where a record of an earlier version does not
    /// tell, as its name says.
    pub fn views(&self) -> usize {
        let variant = || self.name.parse::<Variant>().ok().filter(|_| self.kind == Kind::Variant);
        self.views.unwrap_or_else(|| variant().map_or(1, |variant| variant.views().len()))
    }

    /// The revision that a baseline was trained at; before they were counted it was 1.
    pub fn revision(&self) -> u64 {
        self.settings.get("revision").and_then(serde_json::Value::as_u64).unwrap_or(1)
    }

    /// Whether it is a baseline that has changed since it was trained, where `revisions` are those
    /// that baselines have now, by name.
    pub fn is_outdated(&self, revisions: &BTreeMap<String, u64>) -> bool {
        let present = revisions.get(&self.name).filter(|_| self.kind == Kind::Baseline);
        present.is_some_and(|&present| self.revision() < present)
    }

    /// Whether it has been through all phases and every number of it is one.
    pub fn is_whole(&self, phases: usize) -> bool {
        self.fault(phases).is_none()
    }

    /// Why it takes no part in tables and figures, if it does not.
    pub fn fault(&self, phases: usize) -> Option<String> {
        if self.phases.len() != phases || phases == 0 {
            return Some(format!("{} of {phases} phases", self.phases.len()));
        }
        let mut rows = self.phases.iter().enumerate();
        if let Some((at, row)) = rows.find(|(at, row)| row.accuracy_by_phase.len() != at + 1) {
            let count = row.accuracy_by_phase.len();
            return Some(format!("{count} accuracies by phase in phase {}", at + 1));
        }
        let percent = |value: &f64| (0.0..=100.0).contains(value);
        let of_phase = self.phases.iter().map(|phase| phase.accuracy);
        let wrong = of_phase.filter(|value| !percent(value)).count();
        let by_phase = self.phases.iter().flat_map(|phase| &phase.accuracy_by_phase);
        let wrong = wrong + by_phase.filter(|value| value.is_finite() && !percent(value)).count();
        if wrong > 0 {
            return Some(format!("{wrong} accuracies that are no percentages"));
        }
        let (told, found) = (&self.summary, Summary::of(&self.phases));
        let differs = |told: f64, found: f64| {
            let apart = (told - found).abs() > ROUNDING || told.is_finite() != found.is_finite();
            apart.then(|| format!("its summary says {told:.2} where its phases give {found:.2}"))
        };
        differs(told.average, found.average)
            .or_else(|| differs(told.last, found.last))
            .or_else(|| differs(told.forgetting_pass, found.forgetting_pass))
    }
}

/// Points by which a summary may differ from what its phases give.
const ROUNDING: f64 = 0.01;

/// What kind of method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A variant of iVoro.
    #[default]
    Variant,
    /// A method to compare with, on the same frozen features.
    Peer,
    /// A method to compare with that trains the network in every phase.
    Baseline,
}

/// One phase learned and tested. Accuracies are in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseOutcome {
    /// Which phase, from 0.
    pub phase: usize,
    /// Classes known after it.
    pub classes: usize,
    /// Accuracy on the test samples of all classes known.
    #[serde(default = "nan", deserialize_with = "number")]
    pub accuracy: f64,
    /// Accuracy on the classes of each phase so far: a row of the accuracy matrix.
    #[serde(deserialize_with = "numbers")]
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
    /// Share of unknown queries that are taken for known ones where 95 % of the known are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_positive_rate: Option<f64>,
    /// Shares of known and of unknown queries rejected at the threshold for 5 % of the known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<[f64; 2]>,
    /// Expected calibration error, 15 bins of as many answers each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_error_by_mass: Option<f64>,
    /// The bins behind the calibration error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reliability: Vec<ReliabilityBin>,
    /// [coverage, share of wrong answers], 0 to 1, where the least sure answers are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "pairs")]
    pub risk_coverage: Vec<[f64; 2]>,
    /// [share of known queries rejected, share of unknown ones rejected], 0 to 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "pairs")]
    pub rejection_roc: Vec<[f64; 2]>,
    /// Accuracy where several images of one class are one query: another task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstOutcome>,
    /// Seconds to learn the phase, choosing of settings included in phase 0.
    #[serde(default = "nan", deserialize_with = "number")]
    pub learn_seconds: f64,
    /// Seconds to judge all test samples.
    #[serde(default = "nan", deserialize_with = "number")]
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
    /// 5, 25, 50, 75 and 95 % quantiles of the HV of its samples.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "five")]
    pub hv: Option<[f64; 5]>,
}

/// Answers of about the same confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// How many.
    pub count: usize,
    /// Their mean confidence, 0 to 1.
    #[serde(deserialize_with = "number")]
    pub confidence: f64,
    /// The share of right ones, 0 to 1.
    #[serde(deserialize_with = "number")]
    pub accuracy: f64,
}

/// Several different test images of one class taken as one query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstOutcome {
    /// Images in a burst.
    pub size: usize,
    /// Bursts tested.
    pub queries: usize,
    /// Accuracy in percent where distances are added.
    #[serde(deserialize_with = "number")]
    pub sum: f64,
    /// Accuracy in percent where each image votes.
    #[serde(deserialize_with = "number")]
    pub vote: f64,
}

/// The numbers of the table, accuracies in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Average incremental accuracy.
    #[serde(default = "nan", deserialize_with = "number")]
    pub average: f64,
    /// Accuracy after the last phase.
    #[serde(default = "nan", deserialize_with = "number")]
    pub last: f64,
    /// Average forgetting at the end, as PASS defines it.
    #[serde(default = "nan", deserialize_with = "number")]
    pub forgetting_pass: f64,
    /// Average forgetting at the end, as PyCIL defines it.
    #[serde(default = "nan", deserialize_with = "number")]
    pub forgetting_pycil: f64,
    /// Backward transfer.
    #[serde(default = "nan", deserialize_with = "number")]
    pub backward_transfer: f64,
    /// Bytes kept at the end per class.
    #[serde(default = "nan", deserialize_with = "number")]
    pub bytes_per_class: f64,
    /// Seconds of all phases, learning and judging.
    #[serde(default = "nan", deserialize_with = "number")]
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

fn nan() -> f64 {
    f64::NAN
}

/// JSON has no NaN; it is written as `null` and comes back as what it was.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let numbers: Vec<Option<f64>> = Deserialize::deserialize(from)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<[f64; 2]>, D::Error> {
    let pairs: Vec<[Option<f64>; 2]> = Deserialize::deserialize(from)?;
    Ok(pairs.into_iter().map(|pair| pair.map(|number| number.unwrap_or(f64::NAN))).collect())
}

fn five<'de, D: Deserializer<'de>>(from: D) -> Result<Option<[f64; 5]>, D::Error> {
    let five: Option<[Option<f64>; 5]> = Deserialize::deserialize(from)?;
    Ok(five.map(|five| five.map(|number| number.unwrap_or(f64::NAN))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_told_by_the_method_then_by_the_run() {
        let told = |revision: u64| serde_json::json!({ "revision": revision });
        let method = |settings: serde_json::Value| MethodRecord {
            kind: Kind::Baseline,
            settings,
            ..MethodRecord::default()
        };
        let silent = || {
            [
                method(serde_json::json!({})),
                MethodRecord { kind: Kind::Baseline, ..MethodRecord::default() },
            ]
        };
        let methods = [vec![method(told(3))], silent().to_vec()].concat();
        let revisions = |options: serde_json::Value| -> Vec<u64> {
            let options = serde_json::from_value(options).unwrap();
            let run = RunRecord { options, methods: methods.clone(), ..RunRecord::default() };
            let moved = run.with_revisions();
            assert!(moved.options.revision.is_none());
            moved.methods.iter().map(MethodRecord::revision).collect()
        };
        assert_eq!(revisions(serde_json::json!({})), [3, 1, 1]);
        assert_eq!(revisions(told(2)), [3, 2, 2]);
    }

    #[test]
    fn older_records_say_by_the_name_how_many_views_there_are() {
        let views = |name: &str, kind: Kind, told: Option<usize>| {
            let name = name.to_owned();
            MethodRecord { name, kind, views: told, ..MethodRecord::default() }.views()
        };
        assert_eq!(views("iVoro-NFWAIL", Kind::Variant, None), 8);
        assert_eq!(views("iVoro-AC", Kind::Variant, None), 4);
        assert_eq!(views("slda", Kind::Peer, None), 1);
        assert_eq!(views("PASS", Kind::Baseline, None), 1);
        assert_eq!(views("slda-F", Kind::Peer, Some(2)), 2);
    }

    #[test]
    fn a_number_that_is_none_survives_the_file() {
        let phase = PhaseOutcome {
            accuracy: f64::NAN,
            accuracy_by_phase: vec![1.5, f64::NAN],
            ..PhaseOutcome::default()
        };
        let text = serde_json::to_string(&phase).unwrap();
        assert!(text.contains("\"accuracy\":null"), "{text}");
        let back: PhaseOutcome = serde_json::from_str(&text).unwrap();
        assert!(back.accuracy.is_nan() && back.accuracy_by_phase[1].is_nan());
        assert_eq!(back.accuracy_by_phase[0], 1.5);
    }

    #[test]
    fn records_without_the_optional_fields_are_read_and_written_as_before() {
        let text = r#"{"version":1,"program":"0.1.0","features":"a","split":"s","protocol":"1","phases":[1],"order":"identity","classes":["x"],"options":null,"methods":[]}"#;
        let record: RunRecord = serde_json::from_str(text).unwrap();
        assert_eq!((record.data_set.as_ref(), record.tuned_on_test), (None, false));
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
    }
}
