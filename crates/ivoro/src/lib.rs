//! iVoro.

pub mod error;
pub mod features;
pub mod lbfgs;
pub mod learner;
pub mod lift;
pub mod linalg;
pub mod matrix;
pub mod peers;

pub use error::{Error, Result};
pub use features::{Features, Split, View};
pub use learner::Learner;
pub use matrix::Matrix;
