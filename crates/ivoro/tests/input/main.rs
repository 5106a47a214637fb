//! Feature files as other programs write them, and as an attacker might.

mod build;
mod hostile;
mod mutations;
mod numpy;
mod own;
#[cfg(feature = "tables")]
mod tables;
