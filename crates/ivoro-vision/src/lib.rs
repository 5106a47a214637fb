//! From images to features.

pub mod dataset;
pub mod error;

pub use error::{Error, Result};
