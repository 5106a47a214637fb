#![doc = include_str!("../README.md")]
#![allow(
    clippy::unused_async,
    reason = "axum takes handlers that are async, also of what does not wait"
)]

mod access;
mod annotations;
mod answers;
mod api;
mod app;
mod change;
mod content;
mod conventions;
mod features;
mod front;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod given;
mod held;
mod hosted;
mod keys;
mod metrics;
mod names;
mod options;
mod page;
mod problem;
mod receipts;
mod record;
mod request;
mod router;
mod server;
mod shelf;
mod snapshot;
mod start_error;
mod store;
mod tls;
mod undo;
mod unknowns;
mod who;
mod writer;

pub use access::{Right, new_token};
pub use options::{Beginning, Limits, Options, PORT, Tls};
pub use server::Server;
pub use start_error::StartError;
