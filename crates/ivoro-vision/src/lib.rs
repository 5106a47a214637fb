#![doc = include_str!("../README.md")]

mod ahead;
pub mod baselines;
pub mod cache;
pub mod convert;
pub mod dataset;
pub mod engine;
pub mod error;
pub mod extract;
pub mod network;
pub mod networks;
pub mod photos;
pub mod recipe;
pub mod recogniser;
pub mod remembered;
pub mod shape;
pub mod shipped;
pub mod thumbnail;
pub mod train;
pub mod view;
pub mod watch;

pub use error::{Error, Result};
pub use networks::Networks;
pub use recogniser::{FrozenNetwork, NetworkOptions, Recogniser};
