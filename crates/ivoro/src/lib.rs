#![doc = include_str!("../../../README.md")]

pub mod atomic;
pub mod audit;
pub mod calibration;
pub mod comparison;
pub mod diagram;
pub mod error;
pub mod features;
pub mod head;
pub mod input;
pub mod lbfgs;
pub mod learner;
pub mod lift;
pub mod linalg;
mod map;
pub mod matrix;
pub mod metrics;
pub mod model;
pub mod peers;
pub mod protocol;
pub mod random;
pub mod record;
pub mod regression;
pub mod run;
pub mod statistics;
pub mod store;
pub mod transform;
pub mod tune;
pub mod uncertainty;

pub use error::{Error, Result};
pub use features::{Features, Split, View};
pub use head::{Head, Settings, Variant};
pub use learner::Learner;
pub use matrix::Matrix;
pub use model::{Model, ModelOptions};
pub use protocol::{ClassOrder, Protocol};
pub use run::{Run, Stream};
