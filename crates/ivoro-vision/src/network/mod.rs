//! Networks: their description as data and their weights.

mod architecture;
mod weights;

pub use architecture::{Architecture, Block, Convolution, Parameter, Role, Stem};
pub use weights::{Precision, Weights, fingerprint};
