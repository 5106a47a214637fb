//! Attacks on model files, each test named after what was done to the file.

mod file;
mod forged;
mod golden;
mod mutations;
