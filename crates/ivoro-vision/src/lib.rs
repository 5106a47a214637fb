//! From images to features.

pub mod baselines;
pub mod dataset;
pub mod engine;
pub mod error;
pub mod extract;
pub mod network;
pub mod recipe;
pub mod shape;
pub mod train;
pub mod view;

pub use error::{Error, Result};
