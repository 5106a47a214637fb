//! Base-phase training: recipe, augmentation, loop, checkpoints.

mod augment;
mod checkpoint;
mod epochs;
mod recipe;
mod session;

pub use augment::augment;
pub use checkpoint::Checkpoint;
pub use epochs::{Epoch, TrainingData, run_epoch};
pub use recipe::{Augmentation, Optimiser, Recipe, Schedule};
pub use session::{Plan, Training};
