//! Networks as lists of operations: the one way in which this engine computes a frozen network, an
//! architecture of this crate or an ONNX file.
//!
//! A graph knows no size of images. Each run is told one, and the sizes of all values follow.
//!
//! An operator of ONNX takes three files. In `work.rs`: a variant of [`Work`], the size of what it
//! makes in [`Work::made`], and how it is computed in [`Work::run`]. Here: a function of [`Builder`]
//! that checks the sizes. In `engine/onnx/lower`: a function of `Network` that reads the operator's
//! inputs and attributes and calls that function.

use std::collections::BTreeMap;

use super::activation::Activation;
use super::aligned::Aligned;
use super::attention::Attention;
use super::conv_geometry::{ConvGeometry, kernel_to_engine};
use super::dense::{Dense, Way};
use super::depthwise::Depthwise;
use super::gemm::Store;
use super::layer_norm::LayerNorm;
use super::memory::Memory;
use super::panels::Panels;
use super::record::Addition;
use super::tokens::{Around, Meeting, Part};
use super::window::Window;
use super::winograd::{self, Packed};
use super::work::Work;
pub(crate) use super::work::means;
use crate::network::{Clip, Kernel, Operation};
use crate::shape::Shape;

/// The most numbers in memory at once and the most weights of a graph that is bounded: 1 GiB each.
const MOST: usize = 1 << 28;

/// An operation as it is computed.
#[derive(Clone, Debug)]
struct Task {
    work: Work,
    input: usize,
    /// Other values that are needed.
    others: Vec<usize>,
    /// A value that the result is added to.
    onto: Option<usize>,
    /// What becomes of each number of the result.
    activation: Activation,
    target: usize,
    /// Values that nothing needs after this.
    done: Vec<usize>,
}

impl Task {
    fn takes(&self, value: usize) -> bool {
        self.needs().any(|needed| needed == value)
    }

    /// The values that are needed for it.
    fn needs(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.input).chain(self.others.iter().copied()).chain(self.onto)
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
    /// What was added, where that is to be written down.
    record: Option<Vec<Addition>>,
}

impl Builder {
    /// A network without operations, for images of `shape` and of any other that its operations
    /// can be applied to.
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            images: 1,
            most: usize::MAX,
            shapes: vec![shape],
            tasks: Vec::new(),
            weights: 0,
            record: None,
        }
    }

    /// The same for what is not trusted: it may take so much memory and no more, for so many images
    /// of `shape` at once.
    pub(crate) fn bounded(images: usize, shape: Shape) -> Self {
        Self { images, most: MOST, ..Self::new(shape) }
    }

    /// The same, and what is added is written down.
    pub(crate) fn recording(shape: Shape) -> Self {
        Self { record: Some(Vec::new()), ..Self::bounded(1, shape) }
    }

    /// What was written down; none if something was added that can't be.
    pub(crate) fn recorded(self) -> Option<Vec<Addition>> {
        self.record.filter(|record| record.len() == self.tasks.len())
    }

    fn note(&mut self, addition: impl FnOnce() -> Addition) {
        if let Some(record) = &mut self.record {
            record.push(addition());
        }
    }

    /// The size of a value.
    pub(crate) fn shape(&self, value: usize) -> Shape {
        self.shapes[value]
    }

    /// A convolution in groups of channels. The kernel is `[out, in / groups, height, width]`;
    /// there is a bias for each output.
    pub(crate) fn convolve(
        &mut self,
        input: usize,
        window: Window,
        groups: usize,
        kernel: &[f32],
        bias: Vec<f32>,
    ) -> Option<usize> {
        let shape = self.fitting(input, &window)?;
        let (inputs, outputs) = (shape.channels, bias.len());
        let divides = |count: usize| count.checked_rem(groups) == Some(0);
        let inner = divides(inputs).then(|| inputs / groups)?;
        let length = window.taps().checked_mul(inner)?.checked_mul(outputs)?;
        if !divides(outputs) || outputs == 0 || kernel.len() != length {
            return None;
        }
        // The memory of a row of squares, see `winograd`.
        let row = (shape.width + 2).checked_mul(inputs.checked_add(outputs)?)?;
        if row > self.most / 16 {
            return None;
        }
        self.note(|| {
            let operation = Operation::Convolution {
                input,
                outputs,
                groups,
                window: window.size.into(),
                step: window.step.into(),
                padding: [window.before.0, window.before.1, window.after.0, window.after.1],
                clip: Clip::default(),
            };
            Addition::Convolution(operation, Kernel { values: kernel.to_vec(), bias: bias.clone() })
        });
        let room = self.most - self.weights;
        let (work, weights) = convolution(window, shape, groups, (kernel, bias), room)?;
        self.count_weights(weights)?;
        let made = work.made(shape);
        self.push(work, input, None, made)
    }

    /// The size of a value that a window can be moved over, if there is memory for its padding.
    fn fitting(&self, input: usize, window: &Window) -> Option<Shape> {
        let shape = self.shapes[input];
        let wide = window.fits(shape).then(|| window.padded(shape))?;
        let numbers = wide.height.checked_mul(wide.width)?.checked_mul(wide.channels)?;
        let fits = numbers.checked_mul(self.images)? <= self.most;
        fits.then_some(shape)
    }

    /// A sum of two values of one size.
    pub(crate) fn add(&mut self, one: usize, other: usize) -> Option<usize> {
        let shape = self.shapes[one];
        self.note(|| Addition::Add([one, other]));
        (shape == self.shapes[other]).then(|| self.push(Work::Copy, one, Some(other), shape))?
    }

    /// What becomes of each number.
    pub(crate) fn activate(&mut self, input: usize, activation: Activation) -> Option<usize> {
        let made = self.push(Work::Copy, input, None, self.shapes[input])?;
        self.tasks.last_mut()?.activation = activation;
        if let Some(clip) = activation.clip() {
            self.note(|| Addition::Clip(input, clip));
        }
        Some(made)
    }

    /// The largest number of each channel in a window.
    pub(crate) fn maximum(&mut self, input: usize, window: Window) -> Option<usize> {
        let shape = self.fitting(input, &window)?;
        self.push(Work::Maximum(window), input, None, window.made(shape, shape.channels))
    }

    /// The mean of each channel in a window; `padded`: zeros around the image count too.
    pub(crate) fn average(&mut self, input: usize, window: Window, padded: bool) -> Option<usize> {
        let shape = self.fitting(input, &window)?;
        let made = window.made(shape, shape.channels);
        self.push(Work::Average { window, padded }, input, None, made)
    }

    /// Each channel of an image times a number: that of a second value, of one pixel.
    pub(crate) fn scale(&mut self, input: usize, factors: usize) -> Option<usize> {
        let (shape, of) = (self.shapes[input], self.shapes[factors]);
        let fits = of == Shape { height: 1, width: 1, ..shape };
        let made = fits.then(|| self.push(Work::Scale, input, None, shape))??;
        self.tasks.last_mut()?.others = vec![factors];
        Some(made)
    }

    /// A layer norm of each pixel.
    pub(crate) fn layer_norm(&mut self, input: usize, norm: LayerNorm) -> Option<usize> {
        let shape = self.shapes[input];
        let fits = [&norm.factor, &norm.shift].iter().all(|all| all.len() == shape.channels);
        fits.then(|| self.push(Work::LayerNorm(norm), input, None, shape))?
    }

    /// An attention of queries, keys and values, which lie in values of these numbers.
    pub(crate) fn attend(
        &mut self,
        [queries, keys, values]: [usize; 3],
        attention: Attention,
    ) -> Option<usize> {
        let shapes = [queries, keys, values].map(|value| self.shapes[value]);
        let made = attention.fits(shapes).then(|| attention.made(shapes[0]))?;
        let made = self.push(Work::Attention(attention), queries, None, made)?;
        self.tasks.last_mut()?.others = vec![keys, values];
        Some(made)
    }

    /// Some of the pixels.
    pub(crate) fn part(&mut self, input: usize, part: Part) -> Option<usize> {
        let shape = self.shapes[input];
        let end = part.first.checked_add(part.count)?;
        let fits = part.count > 0 && end <= shape.height * shape.width;
        fits.then(|| self.push(Work::Part(part), input, None, part.made(shape)))?
    }

    /// Pixels that never change put around those of an image.
    pub(crate) fn surround(&mut self, input: usize, around: Around) -> Option<usize> {
        let shape = self.shapes[input];
        self.count_weights(around.before.len().checked_add(around.after.len())?)?;
        let whole = |numbers: &Vec<f32>| numbers.len().is_multiple_of(shape.channels);
        let fits = whole(&around.before) && whole(&around.after);
        let made = fits.then(|| around.made(shape))?;
        self.push(Work::Around(around), input, None, made)
    }

    /// Numbers that never change, one for each number of an image, added or multiplied.
    pub(crate) fn meet(
        &mut self,
        input: usize,
        meeting: Meeting,
        numbers: Vec<f32>,
    ) -> Option<usize> {
        let shape = self.shapes[input];
        let fits = numbers.len() == shape.len();
        self.count_weights(fits.then_some(numbers.len())?)?;
        self.push(Work::Meet(meeting, numbers), input, None, shape)
    }

    /// The mean over all pixels.
    pub(crate) fn mean(&mut self, input: usize) -> Option<usize> {
        let shape = Shape { height: 1, width: 1, ..self.shapes[input] };
        self.note(|| Addition::Mean(input));
        self.push(Work::Mean, input, None, shape)
    }

    /// Whether the same is now part of what makes a value, with a number for each channel: a linear map
    /// or a layer norm. Nothing else may take the value.
    pub(crate) fn meet_channels(
        &mut self,
        value: usize,
        meeting: Meeting,
        numbers: &[f32],
    ) -> bool {
        let maker = self.tasks.iter_mut().rfind(|task| task.target == value);
        match maker.map(|task| &mut task.work) {
            // what was written down has the weights as they were
            _ if self.record.is_some() => false,
            Some(Work::Dense(dense)) => dense.meet(meeting, numbers),
            Some(Work::LayerNorm(norm)) => {
                norm.meet(meeting, numbers);
                true
            }
            _ => false,
        }
    }

    /// A linear map of each pixel, of which `weight` gives the number of an input and an output;
    /// there is a bias for each output.
    pub(crate) fn linear(
        &mut self,
        input: usize,
        bias: &[f32],
        weight: impl Fn(usize, usize) -> f32,
    ) -> Option<usize> {
        let shape = self.shapes[input];
        let weights = Panels::count(shape.channels, bias.len()).filter(|&weights| weights > 0);
        self.count_weights(weights?)?;
        let made = Shape { channels: bias.len(), ..shape };
        let work = Work::Dense(Dense::linear(Panels::new(shape.channels, bias, weight)));
        self.push(work, input, None, made)
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
        let (activation, done) = (Activation::NONE, Vec::new());
        let others = Vec::new();
        self.tasks.push(Task { work, input, others, onto, activation, target, done });
        Some(target)
    }

    /// The network, of which these values can be wanted; none if it needs too much memory.
    pub(crate) fn finish(self, outputs: Vec<usize>) -> Option<Graph> {
        let means = outputs.len();
        self.finish_with(outputs, means)
    }

    /// The same with one more value, the last output: it is given pixel after pixel.
    pub(super) fn finish_with_maps(self, mut outputs: Vec<usize>, maps: usize) -> Option<Graph> {
        let means = outputs.len();
        outputs.push(maps);
        self.finish_with(outputs, means)
    }

    fn finish_with(self, outputs: Vec<usize>, means: usize) -> Option<Graph> {
        let Self { shapes, tasks, images, most, .. } = self;
        let mut graph = Graph { tasks, outputs, means, slots: vec![0; shapes.len()] };
        let needed = graph.needed(&graph.outputs);
        graph.tasks.retain(|task| needed[task.target]);
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
    /// How many of the outputs, the first ones, are given as means over all pixels.
    means: usize,
    /// Where in [`Memory`] each value lies; values that are never there together share a place.
    slots: Vec<usize>,
}

impl Graph {
    /// Lets convolutions add to the value that theirs is added to, and cut off what is negative.
    fn merge(&mut self) {
        let mut at = 0;
        while at < self.tasks.len() {
            if self.merge_addition(at) || self.merge_activation(at) {
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
            let task = &self.tasks[maker];
            if !task.work.adds() || task.onto.is_some() || task.activation != Activation::NONE {
                return None;
            }
            // what it is added to must be there by then
            let ready = two == 0 || self.tasks[..maker].iter().any(|task| task.target == two);
            ready.then_some((maker, two))
        };
        let Some((maker, onto)) = pairs.filter_map(fits).max() else { return false };
        (self.tasks[maker].onto, self.tasks[maker].target) = (Some(onto), target);
        true
    }

    /// Whether the activation at `at` is now part of the task before it.
    fn merge_activation(&mut self, at: usize) -> bool {
        let Task { work: Work::Copy, input, onto: None, target, activation, .. } = self.tasks[at]
        else {
            return false;
        };
        let Some(maker) = self.maker(input, at) else { return false };
        let task = &mut self.tasks[maker];
        if !task.work.activates() || task.activation != Activation::NONE {
            return false;
        }
        (task.activation, task.target) = (activation, target);
        true
    }

    /// Which output is given pixel after pixel, if one is.
    pub(super) fn maps(&self) -> Option<usize> {
        (self.means < self.outputs.len()).then_some(self.means)
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
            shapes[task.target] = task.work.made(shapes[task.input]);
        }
        shapes
    }

    /// Whether each value is needed to compute these.
    fn needed(&self, wanted: &[usize]) -> Vec<bool> {
        let mut needed = vec![false; self.slots.len()];
        wanted.iter().for_each(|&value| needed[value] = true);
        for task in self.tasks.iter().rev() {
            if needed[task.target] {
                task.needs().for_each(|value| needed[value] = true);
            }
        }
        needed
    }

    /// The outputs wanted, all but maps as means over all pixels, for so many images of `shape`,
    /// which lie in `memory`: their channels and a row for each image. Only what they need is
    /// computed. `shared`: all threads compute each operation, otherwise this thread alone. The
    /// numbers are the same.
    pub(crate) fn run(
        &self,
        memory: &mut Memory,
        (images, shape): (usize, Shape),
        wanted: &[usize],
        shared: bool,
    ) -> Vec<(usize, Vec<f32>)> {
        let values: Vec<usize> = wanted.iter().map(|&output| self.outputs[output]).collect();
        let (shapes, needed) = (self.shapes(shape), self.needed(&values));
        let length = |value: usize| images * shapes[value].len();
        let slots = self.slots.iter().max().map_or(1, |last| last + 1);
        memory.0.resize_with(slots.max(memory.0.len()), Aligned::default);
        for task in self.tasks.iter().filter(|task| needed[task.target]) {
            let slot = self.slots[task.target];
            let mut place = std::mem::take(&mut memory.0[slot]);
            let out = place.at_least(length(task.target));
            if let Some(value) = task.onto.filter(|&value| self.slots[value] != slot) {
                out.copy_from_slice(memory.value(self.slots[value], length(value)));
            }
            let input = memory.value(self.slots[task.input], length(task.input));
            let store = if task.onto.is_some() { Store::Add } else { Store::Replace };
            let way = Way { store, activation: task.activation, shared };
            let other = |&value: &usize| memory.value(self.slots[value], length(value));
            let others: Vec<&[f32]> = task.others.iter().map(other).collect();
            task.work.run((input, shapes[task.input]), &others, out, way);
            memory.0[slot] = place;
        }
        let take = |(&output, &value): (&usize, &usize)| {
            let numbers = memory.value(self.slots[value], length(value));
            let mean = output < self.means;
            let rows = if mean { means(numbers, shapes[value]) } else { numbers.to_vec() };
            (shapes[value].channels, rows)
        };
        wanted.iter().zip(&values).map(take).collect()
    }
}

/// The way to compute a convolution over images of `shape`, and how many weights it keeps; none if
/// those are more than there is room for.
pub(super) fn convolution(
    window: Window,
    shape: Shape,
    groups: usize,
    (kernel, bias): (&[f32], Vec<f32>),
    room: usize,
) -> Option<(Work, usize)> {
    let (inputs, outputs) = (shape.channels, bias.len());
    let fits = |count: Option<usize>| count.filter(|&count| count <= room);
    let geometry = square(&window, shape, outputs);
    if let Some(geometry) = geometry.filter(|geometry| groups == 1 && winograd::fits(geometry)) {
        let weights = fits(Packed::count(&geometry))?;
        let kernel = Packed::new(&geometry, &kernel_to_engine(&geometry, kernel));
        return Some((Work::Winograd { geometry, kernel, bias }, weights));
    }
    if groups == inputs && inputs == outputs && Depthwise::fits(&window, inputs) {
        let weights = fits(kernel.len().checked_mul(2))?;
        return Some((Work::Depthwise(Depthwise::new(window, kernel, &bias)), weights));
    }
    let weights = fits(Dense::count(&window, inputs, outputs, groups))?;
    Some((Work::Dense(Dense::new(window, inputs, groups, kernel, &bias)), weights))
}

/// The convolution over images of `shape`, if its window is a square with the same step and padding
/// on all sides.
fn square(window: &Window, shape: Shape, outputs: usize) -> Option<ConvGeometry> {
    let (size, stride, padding) = (window.size.0, window.step.0, window.before.0);
    let Shape { height, width, channels: inputs } = shape;
    let geometry = ConvGeometry { height, width, inputs, outputs, size, stride, padding };
    (*window == Window::square(size, stride, padding)).then_some(geometry)
}

impl Task {
    /// The value that the result is written over: what it is added to, where nothing else needs it.
    fn over(&self) -> Option<usize> {
        let read = |value| self.input == value || self.others.contains(&value);
        self.onto.filter(|&value| self.done.contains(&value) && !read(value))
    }
}
