//! iVoro.

pub mod audit;
pub mod diagram;
pub mod error;
pub mod features;
pub mod head;
pub mod lbfgs;
pub mod learner;
pub mod lift;
pub mod linalg;
pub mod matrix;
pub mod protocol;
mod random;
pub mod regression;
pub mod statistics;
pub mod transform;
pub mod uncertainty;
pub mod peers;

pub use error::{Error, Result};
pub use features::{Features, Split, View};
pub use head::{Head, Settings, Variant};
pub use learner::Learner;
pub use matrix::Matrix;
pub use protocol::{ClassOrder, Protocol};
