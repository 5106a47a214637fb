//! Base-phase training: recipe, augmentation, loop.

mod augment;
mod recipe;

pub use augment::augment;
pub use recipe::{Augmentation, Optimiser, Recipe, Schedule};
