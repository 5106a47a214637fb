#![doc = include_str!("../README.md")]

mod figures;
mod group;
pub mod inputs;
mod page;
pub mod paper;
mod plot;
mod table;
mod traits;

pub use group::is_whole;
pub use inputs::{FileKind, Inputs, Plan, PlannedCell, Problem};
pub use page::{Report, build};
pub use plot::canvas::{DrawError, Figure};
pub use table::quoted;
