//! Data sets in every layout, made by hand and damaged by hand.

mod build;
mod cifar;
mod folders;
mod hostile;
mod idx;
mod npz;
mod pictures;
