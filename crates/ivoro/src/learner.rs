//! What a run needs of a method: learn a phase, measure queries, say what it keeps.

use crate::error::Result;
use crate::features::Features;
use crate::matrix::Matrix;

/// A class-incremental learner on features. Labels are arrival order: the classes of a phase
/// follow directly on those known.
pub trait Learner {
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
}
