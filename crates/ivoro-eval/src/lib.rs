#![doc = include_str!("../README.md")]

pub mod comparison;
pub mod csv;
pub mod curves;
pub mod evaluation;
pub mod few_shot;
pub mod learner;
pub mod metrics;
pub mod peers;
pub mod picture;
pub mod plan;
pub mod protocol;
pub mod record;
pub mod run;

pub use ivoro::{Error, Result};
pub use learner::Learner;
pub use protocol::{ClassOrder, Protocol};
pub use run::{Run, Stream};
