//! Networks as lists of operations: what came from another program is computed as our own are.

use super::convolution::{convolve_here, convolve_shared, prepare};
use super::product::{Store, multiply_by_transposed};
use super::window::{Window, kernel_to_engine};
use crate::shape::Shape;

/// The most numbers in memory at once, and the most weights: 1 GiB each.
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
    Convolve { window: Window, kernel: Vec<f32>, bias: Vec<f32> },
    /// The value itself, for what it is added to or cut off.
    Copy,
    /// The largest number of each channel in a window.
    Maximum(Window),
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
    rectify: bool,
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
    shapes: Vec<Shape>,
    tasks: Vec<Task>,
    weights: usize,
}

impl Builder {
    /// A network without operations, for so many images of `shape` at once.
    pub(crate) fn new(images: usize, shape: Shape) -> Self {
        Self { images, shapes: vec![shape], tasks: Vec::new(), weights: 0 }
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
        let window = window(self.shapes[input], bias.len(), stride)?;
        if kernel.len() != window.kernel_len() {
            return None;
        }
        // The memory of a row of squares, see `winograd`.
        let row = (window.width + 2).checked_mul(window.inputs.checked_add(window.outputs)?)?;
        if row > MOST / 16 {
            return None;
        }
        let kernel = prepare(&window, &kernel_to_engine(&window, kernel));
        self.weights = self.weights.checked_add(kernel.len()).filter(|&sum| sum <= MOST)?;
        self.push(Work::Convolve { window, kernel, bias }, input, None, out_shape(&window))
    }

    /// A sum of two values of one size.
    pub(crate) fn add(&mut self, one: usize, other: usize) -> Option<usize> {
        let shape = self.shapes[one];
        (shape == self.shapes[other]).then(|| self.push(Work::Copy, one, Some(other), shape))?
    }

    /// Negative numbers become 0.
    pub(crate) fn rectify(&mut self, input: usize) -> Option<usize> {
        let made = self.push(Work::Copy, input, None, self.shapes[input])?;
        self.tasks.last_mut()?.rectify = true;
        Some(made)
    }

    /// The largest number of each channel in a window.
    pub(crate) fn maximum(&mut self, input: usize, stride: Stride) -> Option<usize> {
        let shape = self.shapes[input];
        let window = window(shape, shape.channels, stride)?;
        self.push(Work::Maximum(window), input, None, out_shape(&window))
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
        self.weights = self.weights.checked_add(matrix.len()).filter(|&sum| sum <= MOST)?;
        let shape = Shape { height, width, channels: bias.len() };
        fits.then(|| self.push(Work::Linear { matrix, bias }, input, None, shape))?
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
        if !(1..=MOST).contains(&numbers) {
            return None;
        }
        let target = self.shapes.len();
        self.shapes.push(made);
        self.tasks.push(Task { work, input, onto, rectify: false, target, done: Vec::new() });
        Some(target)
    }

    /// The network, of which these values can be wanted; none if it needs too much memory.
    pub(crate) fn finish(self, outputs: Vec<usize>) -> Option<Graph> {
        let Self { shapes, tasks, images, .. } = self;
        let mut graph = Graph { shapes, tasks, outputs };
        graph.merge();
        graph.note_last_uses();
        let numbers = |value: usize| images * graph.shapes[value].len();
        let mut held = numbers(0);
        for task in &graph.tasks {
            held += numbers(task.target);
            if held > MOST {
                return None;
            }
            held -= task.done.iter().map(|&value| numbers(value)).sum::<usize>();
        }
        Some(graph)
    }
}

/// A network of operations, for images of one size.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    shapes: Vec<Shape>,
    tasks: Vec<Task>,
    outputs: Vec<usize>,
}

impl Graph {
    /// Lets convolutions add to the value that theirs is added to, and cut off what is negative.
    fn merge(&mut self) {
        let mut at = 0;
        while at < self.tasks.len() {
            if self.merge_addition(at) || self.merge_rectifier(at) {
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
            let Task { work: Work::Convolve { .. }, onto: None, rectify: false, .. } =
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

    /// Whether the rectifier at `at` is now part of the task before it.
    fn merge_rectifier(&mut self, at: usize) -> bool {
        let Task { work: Work::Copy, input, onto: None, target, .. } = self.tasks[at] else {
            return false;
        };
        let Some(maker) = self.maker(input, at) else { return false };
        if !matches!(self.tasks[maker].work, Work::Convolve { .. } | Work::Copy) {
            return false;
        }
        (self.tasks[maker].rectify, self.tasks[maker].target) = (true, target);
        true
    }

    fn note_last_uses(&mut self) {
        for value in (0..self.shapes.len()).filter(|value| !self.outputs.contains(value)) {
            if let Some(last) = self.tasks.iter().rposition(|task| task.takes(value)) {
                self.tasks[last].done.push(value);
            }
        }
    }

    /// The means over all pixels of the outputs wanted, for images in NHWC order: their length and
    /// a row for each image. `shared`: all threads compute each operation, otherwise this thread
    /// alone. The numbers are the same.
    pub(crate) fn run(
        &self,
        images: Vec<f32>,
        wanted: &[usize],
        shared: bool,
    ) -> Vec<(usize, Vec<f32>)> {
        let count = images.len() / self.shapes[0].len();
        let wanted: Vec<usize> = wanted.iter().map(|&output| self.outputs[output]).collect();
        let mut values: Vec<Option<Vec<f32>>> = vec![None; self.shapes.len()];
        values[0] = Some(images);
        let mut spare: Vec<Vec<f32>> = Vec::new();
        let needed = self.tasks.iter().rposition(|task| wanted.contains(&task.target));
        for task in &self.tasks[..needed.map_or(0, |last| last + 1)] {
            // what is added to is written over where nothing else needs it
            let over = task.onto.filter(|value| task.done.contains(value) && *value != task.input);
            let mut out = match over.and_then(|value| values[value].take()) {
                Some(out) => out,
                None => spare.pop().unwrap_or_default(),
            };
            out.resize(count * self.shapes[task.target].len(), 0.0);
            if let (Some(value), None) = (task.onto, over) {
                out.copy_from_slice(values[value].as_deref().unwrap_or_default());
            }
            let input = values[task.input].as_deref().unwrap_or_default();
            task.run(input, self.shapes[task.input], &mut out, shared);
            spare.extend(task.done.iter().filter_map(|&value| values[value].take()));
            values[task.target] = Some(out);
        }
        let take = |&value: &usize| {
            let numbers = values[value].as_deref().unwrap_or_default();
            (self.shapes[value].channels, means(numbers, self.shapes[value]))
        };
        wanted.iter().map(take).collect()
    }
}

/// A window over images of `shape`, if it fits.
fn window(shape: Shape, outputs: usize, stride: Stride) -> Option<Window> {
    let Stride { size, step, padding } = stride;
    let Shape { height, width, channels: inputs } = shape;
    // beyond half of it a window could lie outside the image
    let fits = step > 0 && size > 0 && outputs > 0 && padding <= size / 2;
    let fits = fits && size <= height.min(width) + 2 * padding;
    fits.then_some(Window { height, width, inputs, outputs, size, stride: step, padding })
}

fn out_shape(window: &Window) -> Shape {
    let (height, width) = (window.out_height(), window.out_width());
    Shape { height, width, channels: window.outputs }
}

impl Task {
    fn run(&self, input: &[f32], shape: Shape, out: &mut [f32], shared: bool) {
        let store = if self.onto.is_some() { Store::Add } else { Store::Replace };
        let least = if self.rectify { 0.0 } else { f32::NEG_INFINITY };
        match &self.work {
            Work::Convolve { window, kernel, bias } => {
                let finish = |tile: &mut [f32]| {
                    for row in tile.chunks_exact_mut(window.outputs) {
                        let values = row.iter_mut().zip(bias);
                        values.for_each(|(value, bias)| *value = cut(*value + bias, least));
                    }
                };
                if shared {
                    convolve_shared(window, input, kernel, out, store, finish);
                } else {
                    convolve_here(window, input, kernel, out, store, finish);
                }
            }
            Work::Copy if store == Store::Add => {
                let values = out.iter_mut().zip(input);
                values.for_each(|(out, value)| *out = cut(*out + value, least));
            }
            Work::Copy => {
                out.iter_mut().zip(input).for_each(|(out, value)| *out = cut(*value, least));
            }
            Work::Maximum(window) => {
                let images = out.chunks_exact_mut(window.out_len());
                let images = images.zip(input.chunks_exact(window.in_len()));
                images.for_each(|(out, image)| maximum(window, image, out));
            }
            Work::Mean => out.copy_from_slice(&means(input, shape)),
            Work::Linear { matrix, bias } => {
                multiply_by_transposed(out, Store::Replace, input, matrix, shape.channels);
                for row in out.chunks_exact_mut(bias.len()) {
                    row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
                }
            }
        }
    }
}

/// The larger of both; a value that is no number stays so.
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
fn maximum(window: &Window, image: &[f32], out: &mut [f32]) {
    let Window { height, width, outputs: channels, size, stride, padding, .. } = *window;
    let seen = |at: usize, side: usize| {
        let first = at * stride;
        first.max(padding)..(first + size).min(side + padding)
    };
    for (at, out) in out.chunks_exact_mut(channels).enumerate() {
        out.fill(f32::NEG_INFINITY);
        for row in seen(at / window.out_width(), height) {
            for column in seen(at % window.out_width(), width) {
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
