//! What transformers do with rows of numbers, their tokens: some of them taken, others put around
//! them, and numbers that never change added to or multiplied with all of them.

use ivoro::vectors::vectorised;

use crate::shape::Shape;

/// How numbers that never change meet those of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// They are added.
    Sum,
    /// They are multiplied.
    Product,
}

impl Meeting {
    /// Lets numbers meet others.
    pub(super) fn apply(self, numbers: &mut [f32], others: &[f32]) {
        let pairs = numbers.iter_mut().zip(others);
        match self {
            Self::Sum => pairs.for_each(|(number, other)| *number += other),
            Self::Product => pairs.for_each(|(number, other)| *number *= other),
        }
    }

    /// Lets the numbers of each image meet the same others.
    pub(super) fn run(self, images: &[f32], others: &[f32], out: &mut [f32]) {
        let length = others.len();
        vectorised(
            #[inline(always)]
            || {
                let images = images.chunks_exact(length).zip(out.chunks_exact_mut(length));
                for (image, out) in images {
                    let numbers = out.iter_mut().zip(image).zip(others);
                    match self {
                        Self::Sum => numbers.for_each(|((out, a), b)| *out = a + b),
                        Self::Product => numbers.for_each(|((out, a), b)| *out = a * b),
                    }
                }
            },
        );
    }
}

/// Tokens that are the same for every image, before and after those of the image.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    /// The numbers of the tokens before.
    pub(crate) before: Vec<f32>,
    /// The numbers of the tokens after.
    pub(crate) after: Vec<f32>,
}

impl Around {
    /// What it makes of images of `shape`: tokens are one below the other.
    pub(super) fn made(&self, shape: Shape) -> Shape {
        let Shape { height, width, channels } = shape;
        let more = (self.before.len() + self.after.len()) / channels.max(1);
        Shape { height: height * width + more, width: 1, channels }
    }

    /// Puts them around the tokens of each image.
    pub(super) fn run(&self, images: &[f32], shape: Shape, out: &mut [f32]) {
        let made = self.made(shape).len();
        for (image, out) in images.chunks_exact(shape.len()).zip(out.chunks_exact_mut(made)) {
            let (before, out) = out.split_at_mut(self.before.len());
            let (inside, after) = out.split_at_mut(image.len());
            before.copy_from_slice(&self.before);
            inside.copy_from_slice(image);
            after.copy_from_slice(&self.after);
        }
    }
}

/// Some tokens of each image, from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first one.
    pub(crate) first: usize,
    /// How many.
    pub(crate) count: usize,
}

impl Part {
    /// What it makes of images of `shape`: tokens are one below the other.
    pub(super) fn made(self, shape: Shape) -> Shape {
        Shape { height: self.count, width: 1, ..shape }
    }

    /// Takes them out of each image.
    pub(super) fn run(self, images: &[f32], shape: Shape, out: &mut [f32]) {
        let (first, length) = (self.first * shape.channels, self.made(shape).len());
        for (image, out) in images.chunks_exact(shape.len()).zip(out.chunks_exact_mut(length)) {
            out.copy_from_slice(&image[first..first + length]);
        }
    }
}
