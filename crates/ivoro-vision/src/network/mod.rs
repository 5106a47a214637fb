//! Networks: their description as data and their weights.

mod architecture;
mod fold;
mod weights;

pub use architecture::{Architecture, Block, Convolution, Parameter, Role, Stem};
pub(crate) use fold::affine;
pub use fold::{EPSILON, Folded, fold};
pub(crate) use weights::checked_parameters;
pub use weights::{Precision, Weights, fingerprint};
