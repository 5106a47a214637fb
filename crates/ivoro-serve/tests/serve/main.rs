//! The server as programs use it: over a socket.

mod api;
mod durable;
mod harness;
mod images;
mod same_as_library;
mod security;
