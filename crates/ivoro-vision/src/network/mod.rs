//! Networks: their description as data and their weights.

mod architecture;
mod fold;
mod normalisation;
mod operations;
mod weights;

pub use architecture::{Architecture, Block, Convolution, Parameter, Role, Stem};
pub(crate) use fold::affine;
pub use fold::{EPSILON, Folded, fold};
pub use normalisation::Normalisation;
pub use operations::{Clip, Kernel, Operation, OperationNetwork, Operations};
pub(crate) use weights::checked_parameters;
pub use weights::{Precision, Weights, fingerprint};
