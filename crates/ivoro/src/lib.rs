//! iVoro.

pub(crate) mod atomic;
pub mod error;
pub mod features;
pub mod input;
pub mod matrix;

pub use error::{Error, Result};
pub use features::{Features, Split, View};
pub use matrix::Matrix;
