//! A window that is moved over an image, and which pixels it sees where.

use std::ops::Range;

use crate::shape::Shape;

/// A window that is moved over an image. Pairs are of rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Height and width of the window.
    pub(crate) size: (usize, usize),
    /// Step between two positions.
    pub(crate) step: (usize, usize),
    /// Rows above and columns left of the image that it begins in.
    pub(crate) before: (usize, usize),
    /// Rows below and columns right of the image that it ends in.
    pub(crate) after: (usize, usize),
}

impl Window {
    /// A square window with the same step and padding on all sides.
    pub(crate) fn square(size: usize, step: usize, padding: usize) -> Self {
        let both = |value| (value, value);
        Self { size: both(size), step: both(step), before: both(padding), after: both(padding) }
    }

    /// Whether it can be moved over images of `shape`, and sees a pixel wherever it is.
    pub(super) fn fits(&self, shape: Shape) -> bool {
        let side = |size: usize, step: usize, before: usize, after: usize, length: usize| {
            let inside = before < size && after < size && step > 0;
            inside && length.checked_add(before + after).is_some_and(|length| size <= length)
        };
        side(self.size.0, self.step.0, self.before.0, self.after.0, shape.height)
            && side(self.size.1, self.step.1, self.before.1, self.after.1, shape.width)
    }

    /// Positions from top to bottom and from left to right.
    pub(super) fn positions(&self, shape: Shape) -> (usize, usize) {
        let Shape { height, width, .. } = self.padded(shape);
        ((height - self.size.0) / self.step.0 + 1, (width - self.size.1) / self.step.1 + 1)
    }

    /// The size of an image with the padding around it.
    pub(super) fn padded(&self, shape: Shape) -> Shape {
        Shape {
            height: shape.height + self.before.0 + self.after.0,
            width: shape.width + self.before.1 + self.after.1,
            channels: shape.channels,
        }
    }

    /// What it makes of images of `shape`, with so many channels.
    pub(super) fn made(&self, shape: Shape, channels: usize) -> Shape {
        let (height, width) = self.positions(shape);
        Shape { height, width, channels }
    }

    /// Whether it ever sees what is outside the image.
    pub(super) fn pads(&self) -> bool {
        (self.before, self.after) != ((0, 0), (0, 0))
    }

    /// Positions within the window.
    pub(super) fn taps(&self) -> usize {
        self.size.0 * self.size.1
    }

    /// The rows of the image that it sees at a position from the top.
    pub(super) fn rows(&self, at: usize, shape: Shape) -> Range<usize> {
        seen(at * self.step.0, self.size.0, self.before.0, shape.height)
    }

    /// The columns of the image that it sees at a position from the left.
    pub(super) fn columns(&self, at: usize, shape: Shape) -> Range<usize> {
        seen(at * self.step.1, self.size.1, self.before.1, shape.width)
    }
}

fn seen(first: usize, size: usize, before: usize, length: usize) -> Range<usize> {
    first.saturating_sub(before)..(first + size).saturating_sub(before).min(length)
}

/// Writes an image with zeros around it.
pub(super) fn pad(window: &Window, shape: Shape, image: &[f32], out: &mut [f32]) {
    let channels = shape.channels;
    let (line, wide) = (shape.width * channels, window.padded(shape).width * channels);
    let left = window.before.1 * channels;
    for (at, out) in out.chunks_exact_mut(wide).enumerate() {
        let row = at.checked_sub(window.before.0).filter(|&row| row < shape.height);
        match row.map(|row| &image[row * line..][..line]) {
            Some(row) => {
                out[..left].fill(0.0);
                out[left..left + line].copy_from_slice(row);
                out[left + line..].fill(0.0);
            }
            None => out.fill(0.0),
        }
    }
}
