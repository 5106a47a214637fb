//! Base-phase training: recipe, augmentation, loop, checkpoints.

mod augment;
mod checkpoint;
mod epochs;
mod session;

pub use crate::recipe::{Augmentation, Optimiser, Recipe, Schedule};
pub use augment::augment;
pub use checkpoint::Checkpoint;
pub use epochs::{Epoch, TrainingData, run_epoch};
pub(crate) use epochs::{Ready, each_batch};
pub use session::{Plan, Training};
