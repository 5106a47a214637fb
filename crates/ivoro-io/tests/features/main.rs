//! Feature files as other programs write them, and as an attacker might.

mod features_file;
mod fixtures;
mod hostile;
mod mutations;
mod numpy;
#[cfg(feature = "tables")]
mod tables;
