//! Figures: a canvas, axes, and the kinds of charts that reports need.
//!
//! The charts are our own, over a markup crate that escapes, because what a report asks of them
//! is not what plotting crates give: colours that turn with the page, labels measured with the font
//! that is built in so that none overlaps another, and letters that keep their size on a phone.

pub(crate) mod boxes;
pub(crate) mod canvas;
pub(crate) mod frame;
pub(crate) mod lines;
pub(crate) mod palette;
pub(crate) mod scale;
pub(crate) mod scatter;
pub(crate) mod text;
