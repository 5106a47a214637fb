#![doc = include_str!("../README.md")]

// Hidden modules are public for the other crates of this workspace alone: they compute with the same
// kernels, generators and optimisers, and may change in any version.
pub mod calibration;
pub mod codec;
mod default_variant;
pub mod diagram;
pub mod error;
pub mod head;
pub mod interrupt;
pub mod journal;
#[doc(hidden)]
pub mod lbfgs;
mod leave_one_out;
mod lesson;
#[doc(hidden)]
pub mod lift;
#[doc(hidden)]
pub mod linalg;
pub mod matrix;
pub mod model;
pub mod network;
mod prediction;
#[doc(hidden)]
pub mod probe_cache;
#[doc(hidden)]
pub mod random;
#[doc(hidden)]
pub mod regression;
#[doc(hidden)]
pub mod rehearsal;
pub mod samples;
mod setting_range;
#[doc(hidden)]
pub mod softmax;
pub mod statistics;
mod temperature;
pub mod transform;
pub mod tune;
#[doc(hidden)]
pub mod uncertainty;
#[doc(hidden)]
pub mod vectors;

pub use default_variant::Budget;
pub use error::{Error, Result};
pub use head::{BurstRule, Forgetting, Retraction, SealOptions, Search, Settings, Variant};
pub use journal::Journal;
pub use matrix::Matrix;
pub use model::{Model, ModelOptions, Predictor, Receipt};
pub use network::NetworkDescription;
pub use prediction::{AskOptions, Candidate, Prediction};
pub use samples::{Points, Samples, View};
