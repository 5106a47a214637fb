#![doc = include_str!("../README.md")]

mod document;
pub mod evaluation;
mod figures;
mod group;
pub mod inputs;
mod page;
pub mod paper;
mod plot;
mod run_settings;
mod table;

pub use inputs::{FileKind, Inputs, Problem};
pub use page::{Report, build};
pub use plot::canvas::{DrawError, Figure};
