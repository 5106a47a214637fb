//! What a run needs of a method: learn a phase, measure queries, say what it keeps.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::features::Features;
use crate::matrix::Matrix;

/// What a learner says of queries.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// One row a query, one column a known class, smaller is nearer.
    pub distances: Matrix,
    /// How unlike anything known each query is, where that can be said.
    pub strangeness: Option<Vec<f64>>,
    /// How much the views of each query disagree, where there are several.
    pub uncertainty: Option<Vec<f64>>,
    /// Temperature that turns distances into probabilities, where one was fitted.
    pub temperature: Option<f64>,
}

/// One choice made on the base phase, or on test samples by [`Tuner::on_test`](crate::tune::Tuner::on_test).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Which setting.
    pub setting: String,
    /// The value chosen.
    pub value: String,
    /// The variant it was chosen with.
    pub variant: String,
    /// Candidates with their accuracy in percent on the samples that judged.
    pub candidates: Vec<(String, f64)>,
}

/// A class-incremental learner on features. Labels are arrival order: the classes of a phase
/// follow directly on those known.
pub trait Learner: Send {
    /// The name under which it was asked for.
    fn name(&self) -> String;

    /// Learns the classes of one phase; none of them may be known already.
    fn learn(&mut self, phase: &Features) -> Result<()>;

    /// Number of classes known.
    fn classes(&self) -> usize;

    /// One row a query, one column a known class, smaller is nearer.
    fn distances(&self, queries: &Features) -> Result<Matrix>;

    /// Bytes kept after learning, all classes together.
    fn bytes(&self) -> usize;

    /// Distances and whatever else the learner can say of queries.
    fn judge(&self, queries: &Features) -> Result<Judgement> {
        let distances = self.distances(queries)?;
        Ok(Judgement { distances, strangeness: None, uncertainty: None, temperature: None })
    }

    /// The settings in use, for the record.
    fn settings(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// How settings were chosen, for the record.
    fn choices(&self) -> &[Choice] {
        &[]
    }
}
