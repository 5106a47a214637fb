//! What a model gets right on labelled queries, and what it should be taught next.
//!
//! [`Answer`]s come first: what the model says of each query. [`Findings`] sum them up: accuracy with an
//! interval, classes, confusions, calibration and rejection. [`Next`] names the queries that a person
//! should look at.

mod answers;
mod classes;
mod clusters;
mod folds;
mod interval;
mod next;
mod rejection;
mod reliability;

use ivoro::{Model, Result};
use serde::Serialize;

pub use answers::{Answer, Asked, RunnerUp, Set, csv};
pub use classes::{ClassFindings, Confusion};
pub use clusters::{Cluster, Clusters};
pub use folds::{Calibrated, Fitness, Threshold, calibrate};
pub use interval::Interval;
pub use next::Next;
pub use rejection::{AtThreshold, Rejected, Rejection};
pub use reliability::{Bin, Reliability};

/// Version of the JSON; raised when a field changes its meaning.
pub const VERSION: u32 = 1;
/// Bins of equal mass of the calibration error.
pub const BINS: usize = 15;

/// What a model got right. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// Version of this format.
    pub version: u32,
    /// The variant.
    pub variant: String,
    /// How many views of each query it looked at.
    pub views: usize,
    /// Queries of classes that the model knows.
    pub queries: usize,
    /// How many of them were given the right class.
    pub right: usize,
    /// Share of them, with the interval of Wilson at 95 %. None without a query.
    pub accuracy: Option<Interval>,
    /// Mean over classes of the share that is right, each class counting once.
    pub macro_accuracy: Option<f64>,
    /// One entry for each class of the model, in order of arrival.
    pub classes: Vec<ClassFindings>,
    /// Which class was taken for which, the most frequent first.
    pub confusions: Vec<Confusion>,
    /// Whether probabilities are what they say; none where the model gives none.
    pub calibration: Option<Reliability>,
    /// What is rejected; none where the model measures no strangeness.
    pub rejection: Option<Rejection>,
    /// Classes of the labelled queries that the model does not know, with their queries. These count as
    /// unknown and not towards accuracy.
    pub unknown_classes: Vec<UnknownClass>,
    /// Queries that were named as unknown.
    pub unknown_queries: usize,
}

/// A class that the model has never learned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownClass {
    /// Its name.
    pub class: String,
    /// Its queries.
    pub queries: usize,
}

impl Findings {
    /// Sums up what a model said of queries, rejected at a share or not at all.
    pub fn of(model: &Model, reject: Option<f64>, answers: &[Answer]) -> Result<Self> {
        let known: Vec<&Answer> = answers.iter().filter(|answer| answer.known).collect();
        let right = known.iter().filter(|answer| answer.is_right()).count();
        let names: Vec<&str> =
            model.head().classes().iter().map(|class| class.name.as_str()).collect();
        let classes = classes::by_class(&names, &known);
        let threshold = match reject {
            Some(share) => Some((share, model.threshold(share)?)),
            None => None,
        };
        Ok(Self {
            version: VERSION,
            variant: model.head().variant().to_string(),
            views: model.head().variant().views().len(),
            queries: known.len(),
            right,
            accuracy: Interval::wilson(right, known.len()),
            macro_accuracy: classes::macro_accuracy(&classes),
            confusions: classes::confusions(&names, &known),
            classes,
            calibration: Reliability::of(&known, BINS),
            rejection: Rejection::of(answers, threshold),
            unknown_classes: unknown_classes(answers),
            unknown_queries: answers.iter().filter(|it| it.set == Set::Unknown).count(),
        })
    }
}

/// Classes of the labelled part that the model does not know, in the order they turn up.
fn unknown_classes(answers: &[Answer]) -> Vec<UnknownClass> {
    let mut found: Vec<UnknownClass> = Vec::new();
    let strangers = answers.iter().filter(|it| it.set == Set::Labelled && !it.known);
    for label in strangers.filter_map(|answer| answer.label.as_ref()) {
        match found.iter_mut().find(|it| it.class == *label) {
            Some(class) => class.queries += 1,
            None => found.push(UnknownClass { class: label.clone(), queries: 1 }),
        }
    }
    found
}
