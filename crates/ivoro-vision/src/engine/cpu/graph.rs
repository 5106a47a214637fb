//! Networks as lists of operations: the one way in which this engine computes a frozen network, an
//! architecture of this crate or an ONNX file.
//!
//! A graph knows no size of images. Each run is told one, and the sizes of all values follow.
//!
//! An operator of ONNX takes two files. Here: a variant of [`Work`], the size of what it makes in
//! [`Task::made`], how it is computed in [`Task::run`], and a function of [`Builder`] that checks
//! the sizes. In `engine/onnx/builtin.rs`: a line of `Network::add` that reads the operator's inputs
//! and attributes and calls that function.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use crate::shape::Shape;
use std::collections::BTreeMap;

use ivoro::vectors::vectorised;

use super::conv_geometry::{ConvGeometry, kernel_to_engine};
use super::convolution::{convolve_here, convolve_shared, prepare};
use super::gemm::{Store, multiply_by_transposed};

/// The most numbers in memory at once and the most weights of a graph that is bounded: 1 GiB each.
const MOST: usize = 1 << 28;

/// A square window that is moved over an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stride {
    /// Height and width of the window.
    pub(crate) size: usize,
    /// Step between two positions.
    pub(crate) step: usize,
    /// Rows and columns around the image that it begins in.
    pub(crate) padding: usize,
}

/// What makes a value of another one.
#[derive(Clone, Debug)]
enum Work {
    /// A convolution with a prepared kernel.
    Convolve { geometry: ConvGeometry, kernel: Vec<f32>, bias: Vec<f32> },
    /// The value itself, for what it is added to or cut off.
    Copy,
    /// The largest number of each channel in a window.
    Maximum(ConvGeometry),
    /// The mean over all pixels.
    Mean,
    /// A linear map; the matrix is `[out, in]`.
    Linear { matrix: Vec<f32>, bias: Vec<f32> },
}

/// An operation as it is computed.
#[derive(Clone, Debug)]
struct Task {
    work: Work,
    input: usize,
    /// A value that the result is added to.
    onto: Option<usize>,
    /// Whether negative results become 0.
    relu: bool,
    target: usize,
    /// Values that nothing needs after this.
    done: Vec<usize>,
}

impl Task {
    fn takes(&self, value: usize) -> bool {
        self.input == value || self.onto == Some(value)
    }
}

/// A network that operations are added to. Values are numbered, the images being 0; an operation
/// gives the number of the value it makes, or none if sizes do not fit or are beyond all measure.
#[derive(Debug)]
pub(crate) struct Builder {
    /// Images that are computed together.
    images: usize,
    /// The most numbers of a value, of all values in memory, and of all weights.
    most: usize,
    shapes: Vec<Shape>,
    tasks: Vec<Task>,
    weights: usize,
}

impl Builder {
    /// A network without operations, for images of `shape` and of any other that its operations
    /// can be applied to.
    pub(super) fn new(shape: Shape) -> Self {
        Self { images: 1, most: usize::MAX, shapes: vec![shape], tasks: Vec::new(), weights: 0 }
    }

    /// The same for what is not trusted: it may take so much memory and no more, for so many images
    /// of `shape` at once.
    pub(crate) fn bounded(images: usize, shape: Shape) -> Self {
        Self { images, most: MOST, ..Self::new(shape) }
    }

    /// The size of a value.
    pub(crate) fn shape(&self, value: usize) -> Shape {
        self.shapes[value]
    }

    /// A convolution. The kernel is `[out, in, height, width]`; there is a bias for each output.
    pub(crate) fn convolve(
        &mut self,
        input: usize,
        stride: Stride,
        kernel: &[f32],
        bias: Vec<f32>,
    ) -> Option<usize> {
        let geometry = geometry(self.shapes[input], bias.len(), stride)?;
        if kernel.len() != geometry.kernel_len() {
            return None;
        }
        // The memory of a row of squares, see `winograd`.
        let row =
            (geometry.width + 2).checked_mul(geometry.inputs.checked_add(geometry.outputs)?)?;
        if row > self.most / 16 {
            return None;
        }
        let kernel = prepare(&geometry, &kernel_to_engine(&geometry, kernel));
        self.count_weights(kernel.len())?;
        self.push(Work::Convolve { geometry, kernel, bias }, input, None, out_shape(&geometry))
    }

    /// A sum of two values of one size.
    pub(crate) fn add(&mut self, one: usize, other: usize) -> Option<usize> {
        let shape = self.shapes[one];
        (shape == self.shapes[other]).then(|| self.push(Work::Copy, one, Some(other), shape))?
    }

    /// Negative numbers become 0.
    pub(crate) fn relu(&mut self, input: usize) -> Option<usize> {
        let made = self.push(Work::Copy, input, None, self.shapes[input])?;
        self.tasks.last_mut()?.relu = true;
        Some(made)
    }

    /// The largest number of each channel in a window.
    pub(crate) fn maximum(&mut self, input: usize, stride: Stride) -> Option<usize> {
        let shape = self.shapes[input];
        let geometry = geometry(shape, shape.channels, stride)?;
        self.push(Work::Maximum(geometry), input, None, out_shape(&geometry))
    }

    /// The mean over all pixels.
    pub(crate) fn mean(&mut self, input: usize) -> Option<usize> {
        let shape = Shape { height: 1, width: 1, ..self.shapes[input] };
        self.push(Work::Mean, input, None, shape)
    }

    /// A linear map of values of one pixel; the matrix is `[out, in]`.
    pub(crate) fn linear(
        &mut self,
        input: usize,
        matrix: Vec<f32>,
        bias: Vec<f32>,
    ) -> Option<usize> {
        let Shape { height, width, channels } = self.shapes[input];
        let fits = height * width == 1 && channels.checked_mul(bias.len()) == Some(matrix.len());
        self.count_weights(matrix.len())?;
        let shape = Shape { height, width, channels: bias.len() };
        fits.then(|| self.push(Work::Linear { matrix, bias }, input, None, shape))?
    }

    fn count_weights(&mut self, more: usize) -> Option<()> {
        self.weights = self.weights.checked_add(more).filter(|&sum| sum <= self.most)?;
        Some(())
    }

    fn push(
        &mut self,
        work: Work,
        input: usize,
        onto: Option<usize>,
        made: Shape,
    ) -> Option<usize> {
        let Shape { height, width, channels } = made;
        let numbers = height.checked_mul(width)?.checked_mul(channels)?.checked_mul(self.images)?;
        if !(1..=self.most).contains(&numbers) {
            return None;
        }
        let target = self.shapes.len();
        self.shapes.push(made);
        self.tasks.push(Task { work, input, onto, relu: false, target, done: Vec::new() });
        Some(target)
    }

    /// The network, of which these values can be wanted; none if it needs too much memory.
    pub(crate) fn finish(self, outputs: Vec<usize>) -> Option<Graph> {
        let Self { shapes, tasks, images, most, .. } = self;
        let mut graph = Graph { tasks, outputs, slots: vec![0; shapes.len()] };
        graph.merge();
        graph.note_last_uses();
        graph.assign_slots();
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        let made = graph.tasks.iter().map(|task| task.target);
        for value in std::iter::once(0).chain(made) {
            let size = sizes.entry(graph.slots[value]).or_default();
            *size = shapes[value].len().max(*size);
        }
        let numbers = sizes.values().try_fold(0usize, |sum, size| sum.checked_add(*size))?;
        let held = numbers.checked_mul(images).filter(|&held| held <= most);
        held.map(|_| graph)
    }
}

/// A network of operations.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    tasks: Vec<Task>,
    outputs: Vec<usize>,
    /// Where in [`Memory`] each value lies; values that are never there together share a place.
    slots: Vec<usize>,
}

/// Memory that values lie in, which the next run uses again.
#[derive(Debug, Default)]
pub(crate) struct Memory(Vec<Vec<f32>>);

impl Memory {
    /// The place for the images of a run, so many numbers in NHWC order.
    pub(crate) fn images(&mut self, length: usize) -> &mut [f32] {
        if self.0.is_empty() {
            self.0.push(Vec::new());
        }
        at_least(&mut self.0[0], length)
    }

    fn value(&self, slot: usize, length: usize) -> &[f32] {
        &self.0[slot][..length]
    }
}

fn at_least(place: &mut Vec<f32>, length: usize) -> &mut [f32] {
    if place.len() < length {
        place.resize(length, 0.0);
    }
    &mut place[..length]
}

impl Graph {
    /// Lets convolutions add to the value that theirs is added to, and cut off what is negative.
    fn merge(&mut self) {
        let mut at = 0;
        while at < self.tasks.len() {
            if self.merge_addition(at) || self.merge_relu(at) {
                self.tasks.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// The task that makes a value which only the task at `user` takes.
    fn maker(&self, value: usize, user: usize) -> Option<usize> {
        let others =
            self.tasks.iter().enumerate().any(|(at, task)| at != user && task.takes(value));
        let alone = !others && !self.outputs.contains(&value);
        alone.then(|| self.tasks[..user].iter().position(|task| task.target == value))?
    }

    /// Whether the sum at `at` is now made by the last of the convolutions it adds.
    fn merge_addition(&mut self, at: usize) -> bool {
        let Task { work: Work::Copy, input, onto: Some(other), target, .. } = self.tasks[at] else {
            return false;
        };
        let pairs = [(input, other), (other, input)].into_iter().filter(|(one, two)| one != two);
        let fits = |(one, two): (usize, usize)| {
            let maker = self.maker(one, at)?;
            let Task { work: Work::Convolve { .. }, onto: None, relu: false, .. } =
                self.tasks[maker]
            else {
                return None;
            };
            // what it is added to must be there by then
            let ready = two == 0 || self.tasks[..maker].iter().any(|task| task.target == two);
            ready.then_some((maker, two))
        };
        let Some((maker, onto)) = pairs.filter_map(fits).max() else { return false };
        (self.tasks[maker].onto, self.tasks[maker].target) = (Some(onto), target);
        true
    }

    /// Whether the ReLU at `at` is now part of the task before it.
    fn merge_relu(&mut self, at: usize) -> bool {
        let Task { work: Work::Copy, input, onto: None, target, .. } = self.tasks[at] else {
            return false;
        };
        let Some(maker) = self.maker(input, at) else { return false };
        if !matches!(self.tasks[maker].work, Work::Convolve { .. } | Work::Copy) {
            return false;
        }
        (self.tasks[maker].relu, self.tasks[maker].target) = (true, target);
        true
    }

    fn note_last_uses(&mut self) {
        for value in (0..self.slots.len()).filter(|value| !self.outputs.contains(value)) {
            if let Some(last) = self.tasks.iter().rposition(|task| task.takes(value)) {
                self.tasks[last].done.push(value);
            }
        }
    }

    /// Gives each value a place. The images have the first.
    fn assign_slots(&mut self) {
        let (mut free, mut count) = (Vec::new(), 1);
        for task in &self.tasks {
            let over = task.over();
            self.slots[task.target] = match over {
                Some(value) => self.slots[value],
                None => free.pop().unwrap_or_else(|| {
                    count += 1;
                    count - 1
                }),
            };
            let done = task.done.iter().filter(|&&value| Some(value) != over);
            free.extend(done.map(|&value| self.slots[value]));
        }
    }

    /// The size of each value for images of `shape`.
    fn shapes(&self, shape: Shape) -> Vec<Shape> {
        let mut shapes = vec![shape; self.slots.len()];
        for task in &self.tasks {
            shapes[task.target] = task.made(shapes[task.input]);
        }
        shapes
    }

    /// Whether each value is needed to compute these.
    fn needed(&self, wanted: &[usize]) -> Vec<bool> {
        let mut needed = vec![false; self.slots.len()];
        wanted.iter().for_each(|&value| needed[value] = true);
        for task in self.tasks.iter().rev() {
            if needed[task.target] {
                std::iter::once(task.input).chain(task.onto).for_each(|value| needed[value] = true);
            }
        }
        needed
    }

    /// The means over all pixels of the outputs wanted, for so many images of `shape`, which lie in
    /// `memory`: their length and a row for each image. Only what they need is computed. `shared`:
    /// all threads compute each operation, otherwise this thread alone. The numbers are the same.
    pub(crate) fn run(
        &self,
        memory: &mut Memory,
        (images, shape): (usize, Shape),
        wanted: &[usize],
        shared: bool,
    ) -> Vec<(usize, Vec<f32>)> {
        let wanted: Vec<usize> = wanted.iter().map(|&output| self.outputs[output]).collect();
        let (shapes, needed) = (self.shapes(shape), self.needed(&wanted));
        let length = |value: usize| images * shapes[value].len();
        let slots = self.slots.iter().max().map_or(1, |last| last + 1);
        memory.0.resize_with(slots.max(memory.0.len()), Vec::new);
        for task in self.tasks.iter().filter(|task| needed[task.target]) {
            let slot = self.slots[task.target];
            let mut place = std::mem::take(&mut memory.0[slot]);
            let out = at_least(&mut place, length(task.target));
            if let Some(value) = task.onto.filter(|&value| self.slots[value] != slot) {
                out.copy_from_slice(memory.value(self.slots[value], length(value)));
            }
            let input = memory.value(self.slots[task.input], length(task.input));
            task.run(input, shapes[task.input], out, shared);
            memory.0[slot] = place;
        }
        let take = |&value: &usize| {
            let numbers = memory.value(self.slots[value], length(value));
            (shapes[value].channels, means(numbers, shapes[value]))
        };
        wanted.iter().map(take).collect()
    }
}

/// A window over images of `shape`, if it fits.
fn geometry(shape: Shape, outputs: usize, stride: Stride) -> Option<ConvGeometry> {
    let Stride { size, step, padding } = stride;
    let Shape { height, width, channels: inputs } = shape;
    // beyond half of it a window could lie outside the image
    let fits = step > 0 && size > 0 && outputs > 0 && padding <= size / 2;
    let fits = fits && size <= height.min(width) + 2 * padding;
    fits.then_some(ConvGeometry { height, width, inputs, outputs, size, stride: step, padding })
}

fn out_shape(geometry: &ConvGeometry) -> Shape {
    let (height, width) = (geometry.out_height(), geometry.out_width());
    Shape { height, width, channels: geometry.outputs }
}

impl Task {
    /// The value that the result is written over: what it is added to, where nothing else needs it.
    fn over(&self) -> Option<usize> {
        self.onto.filter(|value| self.done.contains(value) && *value != self.input)
    }

    /// The size of what is made of a value of `shape`.
    fn made(&self, shape: Shape) -> Shape {
        match &self.work {
            Work::Convolve { geometry, .. } | Work::Maximum(geometry) => {
                out_shape(&over(shape, geometry))
            }
            Work::Copy => shape,
            Work::Mean => Shape { height: 1, width: 1, ..shape },
            Work::Linear { bias, .. } => Shape { channels: bias.len(), ..shape },
        }
    }

    fn run(&self, input: &[f32], shape: Shape, out: &mut [f32], shared: bool) {
        let store = if self.onto.is_some() { Store::Add } else { Store::Replace };
        let least = if self.relu { 0.0 } else { f32::NEG_INFINITY };
        match &self.work {
            Work::Convolve { geometry, kernel, bias } => {
                let geometry = over(shape, geometry);
                let finish = |tile: &mut [f32]| add_bias(tile, bias, least);
                if shared {
                    convolve_shared(&geometry, input, kernel, out, store, finish);
                } else {
                    convolve_here(&geometry, input, kernel, out, store, finish);
                }
            }
            Work::Copy if store == Store::Add => {
                let values = out.iter_mut().zip(input);
                values.for_each(|(out, value)| *out = cut(*out + value, least));
            }
            Work::Copy => {
                out.iter_mut().zip(input).for_each(|(out, value)| *out = cut(*value, least));
            }
            Work::Maximum(geometry) => {
                let geometry = over(shape, geometry);
                let images = out.chunks_exact_mut(geometry.out_len());
                let images = images.zip(input.chunks_exact(geometry.in_len()));
                images.for_each(|(out, image)| maximum(&geometry, image, out));
            }
            Work::Mean => out.copy_from_slice(&means(input, shape)),
            Work::Linear { matrix, bias } => {
                multiply_by_transposed(out, Store::Replace, input, matrix, shape.channels);
                add_bias(out, bias, f32::NEG_INFINITY);
            }
        }
    }
}

/// A window over images of another size.
fn over(shape: Shape, geometry: &ConvGeometry) -> ConvGeometry {
    ConvGeometry { height: shape.height, width: shape.width, ..*geometry }
}

/// Adds a value for each channel, and raises what is below the least to it.
fn add_bias(rows: &mut [f32], bias: &[f32], least: f32) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(bias.len()) {
                let values = row.iter_mut().zip(bias);
                values.for_each(|(value, bias)| *value = cut(*value + bias, least));
            }
        },
    );
}

/// The larger of both; a value that is no number stays so.
#[inline(always)]
fn cut(value: f32, least: f32) -> f32 {
    if value < least { least } else { value }
}

/// The mean of each channel over the pixels of images of `shape`, a row for each, summed in 64 bits.
pub(crate) fn means(images: &[f32], shape: Shape) -> Vec<f32> {
    let channels = shape.channels;
    let mut means = Vec::with_capacity(images.len() / shape.len() * channels);
    let mut sums = vec![0f64; channels];
    for image in images.chunks_exact(shape.len()) {
        sums.fill(0.0);
        for pixel in image.chunks_exact(channels) {
            sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let pixels = (shape.height * shape.width) as f64;
        means.extend(sums.iter().map(|sum| (sum / pixels) as f32));
    }
    means
}

/// The largest values of each channel in the windows over an image.
fn maximum(geometry: &ConvGeometry, image: &[f32], out: &mut [f32]) {
    let ConvGeometry { height, width, outputs: channels, size, stride, padding, .. } = *geometry;
    let seen = |at: usize, side: usize| {
        let first = at * stride;
        first.max(padding)..(first + size).min(side + padding)
    };
    for (at, out) in out.chunks_exact_mut(channels).enumerate() {
        out.fill(f32::NEG_INFINITY);
        for row in seen(at / geometry.out_width(), height) {
            for column in seen(at % geometry.out_width(), width) {
                let pixel = (row - padding) * width + column - padding;
                let pixel = &image[pixel * channels..][..channels];
                out.iter_mut().zip(pixel).for_each(|(out, &value)| {
                    if value > *out || value.is_nan() {
                        *out = value;
                    }
                });
            }
        }
    }
}
