//! Convolutions of frozen networks: what each output pixel sees, times the packed kernel.

use rayon::prelude::*;

use super::activation::Activation;
use super::aligned::with_scratch;
use super::gemm::Store;
use super::panels::{Finish, Out, Panels, Rows};
use super::tokens::Meeting;
use super::window::{Window, pad};
use crate::shape::Shape;

/// Output pixels whose inputs stay in the cache while all panels of the kernel pass by.
const BLOCK: usize = 96;
/// Fewest output pixels of a block.
const LEAST: usize = 12;

/// A convolution, in groups of channels.
#[derive(Clone, Debug)]
pub(super) struct Dense {
    window: Window,
    inputs: usize,
    outputs: usize,
    groups: Vec<Panels>,
}

/// How one operation is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Whether results are added to what is there.
    pub(super) store: Store,
    pub(super) activation: Activation,
    /// Whether all threads work on it, or this one alone. The numbers are the same.
    pub(super) shared: bool,
}

impl Dense {
    /// How many weights are kept; none if that can't be counted.
    pub(super) fn count(
        window: &Window,
        inputs: usize,
        outputs: usize,
        groups: usize,
    ) -> Option<usize> {
        let each = Panels::count(window.taps().checked_mul(inputs / groups)?, outputs / groups)?;
        each.checked_mul(groups)
    }

    /// A convolution with a kernel `[out, in / groups, height, width]`.
    pub(super) fn new(
        window: Window,
        inputs: usize,
        groups: usize,
        kernel: &[f32],
        bias: &[f32],
    ) -> Self {
        let (taps, outputs) = (window.taps(), bias.len());
        let (inner, outer) = (inputs / groups, outputs / groups);
        let group = |group: usize| {
            let weight = |input: usize, output: usize| {
                let (tap, input) = (input / inner, input % inner);
                kernel[((group * outer + output) * inner + input) * taps + tap]
            };
            Panels::new(taps * inner, &bias[group * outer..][..outer], weight)
        };
        Self { window, inputs, outputs, groups: (0..groups).map(group).collect() }
    }

    /// A linear map of each pixel.
    pub(super) fn linear(panels: Panels) -> Self {
        let (inputs, outputs) = (panels.inputs, panels.outputs);
        Self { window: Window::square(1, 1, 0), inputs, outputs, groups: vec![panels] }
    }

    /// Adds to each output, or multiplies it, if there is one group; says whether there is.
    pub(super) fn meet(&mut self, meeting: Meeting, numbers: &[f32]) -> bool {
        let [panels] = &mut self.groups[..] else { return false };
        panels.meet(meeting, numbers);
        true
    }

    /// What it makes of images of `shape`.
    pub(super) fn made(&self, shape: Shape) -> Shape {
        self.window.made(shape, self.outputs)
    }

    /// Convolves images of `shape`.
    pub(super) fn run(&self, images: &[f32], shape: Shape, out: &mut [f32], way: Way) {
        if !self.window.pads() {
            return self.run_padded(images, shape, out, way);
        }
        let wide = self.window.padded(shape);
        with_scratch(images.len() / shape.len() * wide.len(), |padded| {
            let images = images.chunks_exact(shape.len());
            for (image, out) in images.zip(padded.chunks_exact_mut(wide.len())) {
                pad(&self.window, shape, image, out);
            }
            self.run_padded(padded, wide, out, way);
        });
    }

    /// The same for images that have their padding.
    fn run_padded(&self, images: &[f32], wide: Shape, out: &mut [f32], way: Way) {
        let one = |(at, out): (usize, &mut [f32]), block| {
            self.block(images, wide, at * block, out, way);
        };
        if way.shared {
            let rows = out.len() / self.outputs;
            let block = rows.div_ceil(4 * rayon::current_num_threads());
            let block = block.next_multiple_of(LEAST).min(BLOCK);
            let blocks = out.par_chunks_mut(block * self.outputs).enumerate();
            blocks.for_each(|each| one(each, block));
        } else {
            let blocks = out.chunks_mut(BLOCK * self.outputs).enumerate();
            blocks.for_each(|each| one(each, BLOCK));
        }
    }

    /// The output pixels from `first` on that `out` has rows for.
    fn block(&self, images: &[f32], wide: Shape, first: usize, out: &mut [f32], way: Way) {
        let Window { size, step, .. } = self.window;
        let unpadded = Window { before: (0, 0), after: (0, 0), ..self.window };
        let (down, across) = unpadded.positions(wide);
        let mut starts = [0; BLOCK];
        let starts = &mut starts[..out.len() / self.outputs];
        for (at, start) in starts.iter_mut().enumerate() {
            let (line, x) = ((first + at) / across, (first + at) % across);
            let (image, y) = (line / down, line % down);
            let row = image * wide.height + y * step.0;
            *start = (row * wide.width + x * step.1) * self.inputs;
        }
        let inner = self.inputs / self.groups.len();
        // All channels of a row of the window lie side by side if there is one group.
        let (across, run) =
            if self.groups.len() == 1 { (1, size.1 * inner) } else { (size.1, inner) };
        let offset = |at: usize| (at / across * wide.width + at % across) * self.inputs;
        let runs: Vec<usize> = (0..size.0 * across).map(offset).collect();
        let finish = Finish { store: way.store, limits: way.activation.limits() };
        for (group, panels) in self.groups.iter().enumerate() {
            let numbers = &images[group * inner..];
            let rows = Rows { numbers, starts, runs: &runs, run };
            let column = group * panels.outputs;
            let out = Out { numbers: &mut *out, row: self.outputs, column };
            panels.multiply(&rows, finish, out);
        }
        way.activation.apply_rest(out);
    }
}
