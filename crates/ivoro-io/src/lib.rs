#![doc = include_str!("../README.md")]

pub mod atomic;
pub mod features;
mod lock;
mod map;
mod model;

pub use ivoro::{Error, Result};
pub use lock::FileLock;
pub use model::{load, load_predictor, load_receipt, save, save_receipt};
