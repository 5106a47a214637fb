//! Data sets in every layout, made by hand and damaged by hand.

mod cifar;
mod fixtures;
mod folders;
mod hostile;
mod idx;
mod npz;
mod photo_files;
mod photos;
mod pictures;
