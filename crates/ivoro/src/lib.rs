//! iVoro.

pub mod error;
pub mod features;
pub mod learner;
pub mod linalg;
pub mod matrix;

pub use error::{Error, Result};
pub use features::{Features, Split, View};
pub use learner::Learner;
pub use matrix::Matrix;
