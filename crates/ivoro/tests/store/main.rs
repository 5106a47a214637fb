//! Attacks on model files, each test named after what was done to the file, and the lock.

mod file;
mod forged;
mod lock;
mod mutations;
