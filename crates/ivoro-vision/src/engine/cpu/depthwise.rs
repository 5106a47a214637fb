//! Convolutions of each channel by itself.
//!
//! A tile is some output pixels side by side; its sums stay in registers, a vector of channels at
//! a time, while the rows of the window pass by.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use std::array::from_fn;

use ivoro::vectors::{Simd, Wide, widest};
use rayon::prelude::*;

use super::aligned::Aligned;
use super::dense::Way;
use super::panels::{clip, lanes};
use super::window::Window;
use crate::shape::Shape;

/// Output pixels of a tile: a divisor of the usual sizes of images.
const TILE: usize = 7;

/// A convolution of each channel by itself.
#[derive(Clone, Debug)]
pub(super) struct Depthwise {
    window: Window,
    channels: usize,
    /// First channels of the vectors; the last vector may begin within the one before it.
    starts: Vec<usize>,
    /// For each vector its bias, and then its weights, tap after tap.
    weights: Aligned,
}

impl Depthwise {
    /// Whether it is of the kind that this module computes.
    pub(super) fn fits(window: &Window, channels: usize) -> bool {
        let known =
            matches!(window.size, (3, 3) | (5, 5)) && matches!(window.step, (1, 1) | (2, 2));
        known && channels >= lanes()
    }

    /// A convolution with a kernel `[channel, 1, height, width]`.
    pub(super) fn new(window: Window, kernel: &[f32], bias: &[f32]) -> Self {
        let (lanes, taps, channels) = (lanes(), window.taps(), bias.len());
        let starts = (0..channels.div_ceil(lanes)).map(|at| (at * lanes).min(channels - lanes));
        let starts: Vec<usize> = starts.collect();
        let length = (1 + taps) * lanes;
        let mut weights = Aligned::zeros(starts.len() * length);
        let place = weights.at_least(starts.len() * length).chunks_exact_mut(length);
        for (&first, out) in starts.iter().zip(place) {
            let (sum, out) = out.split_at_mut(lanes);
            sum.copy_from_slice(&bias[first..][..lanes]);
            for (tap, out) in out.chunks_exact_mut(lanes).enumerate() {
                let values = (first..).map(|channel| kernel[channel * taps + tap]);
                out.iter_mut().zip(values).for_each(|(out, value)| *out = value);
            }
        }
        Self { window, channels, starts, weights }
    }

    /// What it makes of images of `shape`.
    pub(super) fn made(&self, shape: Shape) -> Shape {
        self.window.made(shape, self.channels)
    }

    /// Convolves images of `shape`.
    pub(super) fn run(&self, images: &[f32], shape: Shape, out: &mut [f32], way: Way) {
        let made = self.made(shape);
        let lines = out.chunks_exact_mut(made.width * made.channels);
        let one = |(at, line): (usize, &mut [f32])| {
            let image = &images[at / made.height * shape.len()..][..shape.len()];
            self.line(image, shape, at % made.height, line, way);
        };
        if way.shared {
            let lines = out.par_chunks_exact_mut(made.width * made.channels);
            lines.enumerate().for_each(one);
        } else {
            lines.enumerate().for_each(one);
        }
    }

    /// A row of output pixels.
    fn line(&self, image: &[f32], shape: Shape, at: usize, out: &mut [f32], way: Way) {
        let rows = self.window.rows(at, shape);
        let above = self.window.before.0.saturating_sub(at * self.window.step.0);
        let width = shape.width * self.channels;
        let rows = &image[rows.start * width..rows.end * width];
        widest(Line { of: self, rows, width, above, limits: way.activation.limits(), out });
        way.activation.apply_rest(out);
    }
}

/// A row of output pixels.
struct Line<'a> {
    of: &'a Depthwise,
    /// The rows of the image that the window sees.
    rows: &'a [f32],
    /// Numbers of a row.
    width: usize,
    /// Rows of the window above the image.
    above: usize,
    limits: (f32, f32),
    out: &'a mut [f32],
}

impl Wide for Line<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match (self.of.window.size.1, self.of.window.step.1) {
            (3, 1) => self.tiles::<S, 3, 1, { TILE + 2 }>(simd),
            (3, _) => self.tiles::<S, 3, 2, { 2 * TILE + 1 }>(simd),
            (_, 1) => self.tiles::<S, 5, 1, { TILE + 4 }>(simd),
            (..) => self.tiles::<S, 5, 2, { 2 * TILE + 3 }>(simd),
        }
    }
}

impl Line<'_> {
    /// Tile after tile, each of which sees SEEN columns.
    #[inline(always)]
    fn tiles<S: Simd, const SIZE: usize, const STEP: usize, const SEEN: usize>(self, simd: S) {
        let channels = self.of.channels;
        let (weights, _) = S::as_simd_f32s(self.of.weights.numbers());
        for (tile, out) in self.out.chunks_mut(TILE * channels).enumerate() {
            let left = (tile * TILE * STEP).wrapping_sub(self.of.window.before.1);
            let weights = weights.chunks_exact(1 + SIZE * SIZE);
            for (&first, weights) in self.of.starts.iter().zip(weights) {
                let mut sums = [weights[0]; TILE];
                let weights = weights[1..].chunks_exact(SIZE).skip(self.above);
                for (row, weights) in self.rows.chunks_exact(self.width).zip(weights) {
                    let pixels: [S::f32s; SEEN] = from_fn(|at| {
                        let start =
                            left.wrapping_add(at).wrapping_mul(channels).wrapping_add(first);
                        // what is left or right of the image lies outside the row
                        match row.get(start..start.wrapping_add(S::F32_LANES)) {
                            Some(pixel) => S::as_simd_f32s(pixel).0[0],
                            None => simd.splat_f32s(0.0),
                        }
                    });
                    for (x, sum) in sums.iter_mut().enumerate() {
                        for (tap, weight) in weights.iter().enumerate() {
                            *sum = simd.mul_add_e_f32s(pixels[x * STEP + tap], *weight, *sum);
                        }
                    }
                }
                let count = out.len() / channels;
                for (x, sum) in sums.into_iter().enumerate() {
                    if x < count {
                        let place = &mut out[x * channels + first..][..S::F32_LANES];
                        S::as_mut_simd_f32s(place).0[0] = clip(simd, sum, self.limits);
                    }
                }
            }
        }
    }
}
