//! Networks of iVoro on libtorch, on the CPU or on an NVIDIA GPU.
//!
//! Everything is behind the feature `libtorch`: without it the crate is empty and needs nothing.

#[cfg(feature = "libtorch")]
mod libtorch;

#[cfg(feature = "libtorch")]
pub use libtorch::{TorchEngine, synchronise};
