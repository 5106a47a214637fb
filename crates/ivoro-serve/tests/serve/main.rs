//! The server as programs use it: over a socket.

mod api;
mod conventions;
mod durable;
mod harness;
mod images;
mod mutations;
mod same_as_library;
mod security;
