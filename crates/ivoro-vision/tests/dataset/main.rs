//! Data sets in every layout, made by hand and damaged by hand.

mod cifar;
mod fixtures;
mod folders;
mod hostile;
mod idx;
#[path = "../mutated/mod.rs"]
mod mutated;
mod mutations;
mod npz;
mod photo_files;
mod photos;
mod pictures;
