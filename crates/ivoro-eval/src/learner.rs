//! What a run needs of a method: learn a phase, measure queries, say what it keeps.

use ivoro::Points;
use ivoro::head::Head;
use ivoro::model::Evaluation;
use ivoro::tune::Choice;
use ivoro::{Matrix, Model, Result, Samples};

/// A class-incremental learner on features. Labels are arrival order: the classes of a phase
/// follow directly on those known.
pub trait Learner: Send {
    /// The name under which it was asked for.
    fn name(&self) -> String;

    /// Learns the classes of one phase; none of them may be known already.
    fn learn(&mut self, phase: &Samples) -> Result<()>;

    /// Number of classes known.
    fn class_count(&self) -> usize;

    /// One row a query, one column a known class, smaller is nearer.
    fn distances(&self, queries: &Points) -> Result<Matrix>;

    /// Bytes kept after learning, all classes together.
    fn bytes(&self) -> usize;

    /// Distances and whatever else the learner can say of queries.
    fn evaluate(&self, queries: &Points) -> Result<Evaluation> {
        let distances = self.distances(queries)?;
        Ok(Evaluation::of(distances))
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

impl Learner for Head {
    fn name(&self) -> String {
        self.variant().to_string()
    }

    fn learn(&mut self, phase: &Samples) -> Result<()> {
        self.learn(phase)
    }

    fn class_count(&self) -> usize {
        self.classes().len()
    }

    fn distances(&self, queries: &Points) -> Result<Matrix> {
        self.distances(queries)
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

impl Learner for Model {
    fn name(&self) -> String {
        self.head().variant().to_string()
    }

    fn learn(&mut self, phase: &Samples) -> Result<()> {
        self.learn(phase)
    }

    fn class_count(&self) -> usize {
        self.head().classes().len()
    }

    fn distances(&self, queries: &Points) -> Result<Matrix> {
        self.head().distances(queries)
    }

    fn bytes(&self) -> usize {
        self.head().bytes()
    }

    fn evaluate(&self, queries: &Points) -> Result<Evaluation> {
        self.evaluate(queries)
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::to_value(self.head().settings()).unwrap_or_default()
    }

    fn choices(&self) -> &[Choice] {
        self.choices()
    }
}
