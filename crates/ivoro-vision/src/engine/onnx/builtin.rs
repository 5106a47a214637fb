//! Networks computed by the CPU engine of this crate, if it has all of their operators. All others
//! are left to a runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::constants::{Constant, fold};
use super::input::Input;
use super::operator::{Files, Node, is_standard, number, text};
use super::options::Layout;
use super::protobuf::{Field, Fields};
use super::to_features::Tensor;
use super::{Compute, Source};
use crate::engine::cpu::activation::Activation;
use crate::engine::cpu::graph::{Builder, Graph, Memory};
use crate::engine::cpu::record::{Listed, list};
use crate::engine::cpu::window::Window;
use crate::network::affine;
use crate::shape::Shape;

/// Networks of more operators are left to a runtime.
const MOST_OPERATORS: usize = 4096;
/// Images that go together: more make larger products where images have few pixels, fewer stay in
/// the cache where they have many.
const TOGETHER: usize = 2;
/// Operators mean what they mean here from this set on.
const FIRST_SET: u64 = 7;

/// A network of operations that the engine has.
pub(super) struct Builtin {
    graph: Graph,
    shape: Shape,
    /// Memory of earlier runs: to get new memory from the system costs as much as a layer.
    memory: Mutex<Vec<Memory>>,
}

impl Builtin {
    /// The network, if all of its operators are known here. Its images come channel by channel.
    pub(super) fn load(source: &Source, files: &Files, input: &Input) -> Option<Self> {
        let images = if input.fixed_batch { input.batch } else { input.batch.min(TOGETHER) };
        let builder = Builder::bounded(images, input.shape);
        let model = Model::read(&source.file, &source.outputs)?;
        let (builder, outputs) = model.lower(&input.name, files, builder)?;
        let graph = builder.finish(outputs)?;
        Some(Self { graph, shape: input.shape, memory: Mutex::default() })
    }

    /// The operations of a network, if it is one of convolutions, sums and limits.
    pub(super) fn listed(source: &Source, files: &Files, input: &Input) -> Option<Listed> {
        let model = Model::read(&source.file, &source.outputs)?;
        let builder = Builder::recording(input.shape);
        let (builder, outputs) = model.lower(&input.name, files, builder)?;
        list(builder.recorded()?, &outputs)
    }

    fn one(&self, numbers: &[f32], wanted: &[usize], shared: bool) -> Vec<Tensor> {
        let kept = || self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = &mut kept().pop().unwrap_or_default();
        let images = numbers.len() / self.shape.len();
        memory.images(numbers.len()).copy_from_slice(numbers);
        let found = self.graph.run(memory, (images, self.shape), wanted, shared);
        kept().push(std::mem::take(memory));
        let tensor = |(size, numbers)| Tensor { shape: vec![images, size], numbers };
        found.into_iter().map(tensor).collect()
    }
}

impl Compute for Builtin {
    fn name(&self) -> &'static str {
        "ivoro"
    }

    fn layout(&self) -> Option<Layout> {
        Some(Layout::ChannelsLast)
    }

    fn side_by_side(&self) -> usize {
        rayon::current_num_threads()
    }

    fn images(&self, most: usize) -> usize {
        most.min(TOGETHER)
    }

    fn run(
        &self,
        inputs: Vec<(Vec<f32>, [usize; 4])>,
        wanted: &[usize],
    ) -> Result<Vec<Vec<Tensor>>, String> {
        // Far fewer inputs than threads: all threads work on each.
        let shared = 2 * inputs.len() <= rayon::current_num_threads();
        let one = |(numbers, _): &(Vec<f32>, _)| self.one(numbers, wanted, shared);
        if shared {
            return Ok(inputs.iter().map(one).collect());
        }
        Ok(inputs.par_iter().with_max_len(1).map(one).collect())
    }
}

/// What of a file is needed to compute it.
struct Model<'a> {
    nodes: Vec<Node<'a>>,
    weights: BTreeMap<&'a str, Field<'a>>,
    /// The values wanted.
    outputs: Vec<&'a str>,
    /// Bytes of weights that may be read: a file that says one weight is many is no bargain.
    bytes: usize,
}

impl<'a> Model<'a> {
    fn read(file: &'a [u8], outputs: &'a [String]) -> Option<Self> {
        let (mut graph, mut set) = (None, None);
        for field in Fields::new(file) {
            let field = field.ok()?;
            match field.number {
                7 => graph = Some(field),
                8 if text(&field, 1).is_none_or(is_standard) => set = number(&field, 2),
                _ => {}
            }
        }
        if set? < FIRST_SET {
            return None;
        }
        let (nodes, weights) = Default::default();
        let outputs = outputs.iter().map(String::as_str).collect();
        let mut model = Self { nodes, weights, outputs, bytes: 4 * file.len() };
        for field in graph?.fields().ok()? {
            let field = field.ok()?;
            match field.number {
                1 if model.nodes.len() == MOST_OPERATORS => return None,
                1 => model.nodes.push(Node::read(&field)?),
                5 => drop(model.weights.insert(text(&field, 8)?, field)),
                _ => {}
            }
        }
        Some(model)
    }

    /// Adds all operators that the outputs need; with the values that are the outputs.
    fn lower(
        mut self,
        input: &'a str,
        files: &Files,
        builder: Builder,
    ) -> Option<(Builder, Vec<usize>)> {
        let nodes = self.needed();
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        let names = nodes.iter().flat_map(|node| &node.inputs).chain(&self.outputs);
        names.for_each(|name| *uses.entry(name).or_default() += 1);
        let Self { weights, outputs, bytes, .. } = self;
        let bytes = bytes + 4 * files.values().map(Vec::len).sum::<usize>();
        let values = BTreeMap::from([(input, Known::new(0, false))]);
        let (merged, constants) = Default::default();
        let mut network = Network {
            nodes: &nodes,
            weights,
            files,
            bytes,
            uses,
            builder,
            values,
            constants,
            merged,
        };
        for node in &nodes {
            network.add(node)?;
        }
        let value = |name: &&str| Some(network.values.get(name)?.value);
        let outputs = outputs.iter().map(value).collect::<Option<_>>()?;
        Some((network.builder, outputs))
    }

    /// The operators that the outputs need, in the file's order.
    fn needed(&mut self) -> Vec<Node<'a>> {
        let mut names: BTreeSet<&str> = self.outputs.iter().copied().collect();
        let mut needed = Vec::new();
        for node in std::mem::take(&mut self.nodes).into_iter().rev() {
            if node.outputs.iter().any(|name| names.contains(name)) {
                names.extend(&node.inputs);
                needed.push(node);
            }
        }
        needed.reverse();
        needed
    }
}

/// A value that depends on the images.
#[derive(Clone, Copy)]
struct Known {
    value: usize,
    /// Whether it has two dimensions instead of four.
    flat: bool,
    /// Zeros around it that it does not have yet: rows above, columns left, rows below and columns
    /// right. A convolution takes them as its own.
    pads: [usize; 4],
    /// The value that this is a sigmoid of, and what the product of both is.
    gate: Option<(usize, Activation)>,
}

impl Known {
    fn new(value: usize, flat: bool) -> Self {
        Self { value, flat, pads: [0; 4], gate: None }
    }
}

/// A network that is being put together.
struct Network<'n, 'a> {
    nodes: &'n [Node<'a>],
    weights: BTreeMap<&'a str, Field<'a>>,
    files: &'n Files,
    bytes: usize,
    uses: BTreeMap<&'a str, usize>,
    builder: Builder,
    /// Values by name.
    values: BTreeMap<&'a str, Known>,
    /// What operators made of constants.
    constants: BTreeMap<&'a str, Constant>,
    /// Results of batch norms that are part of a convolution.
    merged: BTreeSet<&'a str>,
}

impl<'a> Network<'_, 'a> {
    /// An input that depends on the images.
    fn value(&self, node: &Node<'a>, at: usize) -> Option<Known> {
        self.values.get(node.inputs.get(at)?).copied()
    }

    /// An input that does not.
    fn constant(&mut self, node: &Node<'a>, at: usize) -> Option<Constant> {
        let name = node.inputs.get(at)?;
        if let Some(constant) = self.constants.get(name) {
            return Some(constant.clone());
        }
        let field = self.weights.get(name)?;
        self.bytes = self.bytes.checked_sub(field.whole.len())?;
        let constant = Constant::read(field, self.files)?;
        self.bytes = self.bytes.checked_sub(constant.bytes())?;
        Some(constant)
    }

    fn floats(&mut self, node: &Node<'a>, at: usize) -> Option<(Vec<usize>, Vec<f32>)> {
        match self.constant(node, at)? {
            Constant::Floats(array) if !array.numbers.is_empty() => {
                Some((array.shape, array.numbers))
            }
            _ => None,
        }
    }

    fn integers(&mut self, node: &Node<'a>, at: usize) -> Option<Vec<i64>> {
        self.constant(node, at)?.integers().map(<[i64]>::to_vec)
    }

    /// A weight for each of `count` outputs.
    fn vector(&mut self, node: &Node<'a>, at: usize, count: usize) -> Option<Vec<f32>> {
        let (shape, numbers) = self.floats(node, at)?;
        (shape == [count]).then_some(numbers)
    }

    /// Gives a value a name, if nothing has it.
    fn name(&mut self, name: &'a str, value: Known) -> Option<()> {
        let free = self.is_free(name);
        (free && self.values.insert(name, value).is_none()).then_some(())
    }

    fn is_free(&self, name: &str) -> bool {
        !self.weights.contains_key(name) && !self.constants.contains_key(name)
    }

    /// What an operator makes of constants, if all of its inputs are some.
    fn fold(&mut self, node: &Node<'a>, output: &'a str) -> Option<()> {
        if let ("Constant", Some(tensor)) =
            (node.kind, node.attributes.get("value").and_then(|attribute| attribute.tensor))
        {
            // read where it is used: it may be a large weight
            let free = self.is_free(output) && !self.values.contains_key(output);
            return (free && self.weights.insert(output, tensor).is_none()).then_some(());
        }
        let mut inputs = Vec::new();
        for at in 0..node.inputs.len() {
            inputs.push(match node.inputs[at] {
                "" => None,
                _ => Some(self.constant(node, at)?),
            });
        }
        let inputs: Vec<Option<&Constant>> = inputs.iter().map(Option::as_ref).collect();
        let made = fold(node, &inputs)?;
        self.bytes = self.bytes.checked_sub(made.bytes())?;
        let free = self.is_free(output) && !self.values.contains_key(output);
        (free && self.constants.insert(output, made).is_none()).then_some(())
    }

    /// Adds an operator; none if it is not one that the engine has.
    fn add(&mut self, node: &Node<'a>) -> Option<()> {
        let &output = node.outputs.first().filter(|_| is_standard(node.domain))?;
        if self.merged.contains(output) {
            return Some(());
        }
        let Some(first) = (0..node.inputs.len()).find_map(|at| self.value(node, at)) else {
            return self.fold(node, output);
        };
        // the other operators of images take them as their first input
        let input = self.value(node, 0).or_else(|| (node.kind == "Add").then_some(first))?;
        match (node.kind, input.pads) {
            ("Conv", _) if !input.flat => return self.convolve(node, input),
            ("Pad", [0, 0, 0, 0]) if !input.flat => {
                let pads = self.pads(node)?;
                return self.name(output, Known { pads, ..input });
            }
            (_, [0, 0, 0, 0]) => {}
            _ => return None,
        }
        let made = self.apply(node, input)?;
        self.name(output, made)
    }

    /// What an operator makes of a value.
    fn apply(&mut self, node: &Node<'a>, input: Known) -> Option<Known> {
        let Known { value, flat, .. } = input;
        let of = |value: usize, flat: bool| Some(Known::new(value, flat));
        match node.kind {
            "MaxPool" if !flat => {
                let &[rows, columns] = node.numbers("kernel_shape") else { return None };
                let window =
                    self.window(node, value, (rows.try_into().ok()?, columns.try_into().ok()?))?;
                let plain = node.has_only(1) && node.number("ceil_mode", 0) == 0;
                of(plain.then(|| self.builder.maximum(value, window))??, false)
            }
            "AveragePool" if !flat => {
                let &[rows, columns] = node.numbers("kernel_shape") else { return None };
                let size = (rows.try_into().ok()?, columns.try_into().ok()?);
                let window = self.window(node, value, size)?;
                let padded = node.number("count_include_pad", 0) != 0;
                let plain = node.has_only(1) && node.number("ceil_mode", 0) == 0;
                of(plain.then(|| self.builder.average(value, window, padded))??, false)
            }
            "Relu" => of(self.builder.activate(value, Activation::RELU)?, flat),
            "Clip" | "Sigmoid" | "HardSigmoid" | "HardSwish" | "Gelu" => {
                let (activation, product) = self.activation(node)?;
                let made = self.builder.activate(value, activation)?;
                let gate = product.map(|product| (value, product));
                Some(Known { gate, ..Known::new(made, flat) })
            }
            "Mul" => self.multiply(input, self.value(node, 1)?),
            "Add" => {
                let other = self.value(node, 1).filter(|other| other.pads == [0; 4])?;
                let sum = (other.flat == flat).then(|| self.builder.add(value, other.value))??;
                of(sum, flat)
            }
            "GlobalAveragePool" if !flat => of(self.builder.mean(value)?, false),
            "ReduceMean" if !flat => {
                self.reduces_over_pixels(node)?;
                of(self.builder.mean(value)?, node.number("keepdims", 1) == 0)
            }
            "Gemm" if flat => of(self.linear(node, value)?, true),
            "Identity" => Some(input),
            // beyond its share it may be told to be in training
            "Dropout" if node.has_only(2) => Some(input),
            "Flatten" if node.number("axis", 1) == 1 => self.flat(value),
            "Squeeze" if !flat => {
                self.reduces_over_pixels(node)?;
                self.flat(value)
            }
            "Reshape" => {
                let shape = self.integers(node, 1)?;
                let size = i64::try_from(self.builder.shape(value).channels).ok()?;
                let same = shape == [0, -1] || shape == [0, size];
                let same = same && node.number("allowzero", 0) == 0;
                let plain = same || shape == [-1, size];
                plain.then(|| self.flat(value))?
            }
            _ => None,
        }
    }

    /// A value of one pixel, whose order of numbers is the same with two dimensions.
    fn flat(&self, value: usize) -> Option<Known> {
        let Shape { height, width, .. } = self.builder.shape(value);
        (height * width == 1).then_some(Known::new(value, true))
    }

    /// The window of an operator over a value.
    fn window(&self, node: &Node<'a>, value: usize, size: (usize, usize)) -> Option<Window> {
        let Shape { height, width, .. } = self.builder.shape(value);
        node.window(size, (height, width))
    }

    /// The zeros that an operator puts around images.
    fn pads(&mut self, node: &Node<'a>) -> Option<[usize; 4]> {
        let zero = match node.inputs.get(2) {
            None | Some(&"") => node.float("value", 0.0) == 0.0,
            Some(_) => self.constant(node, 2)?.float()? == 0.0,
        };
        let constant = matches!(node.text("mode"), b"" | b"constant");
        let pads = if node.inputs.len() > 1 {
            self.integers(node, 1)?
        } else {
            node.numbers("pads").to_vec()
        };
        let &[0, 0, top, left, 0, 0, bottom, right] = &pads[..] else { return None };
        if !zero || !constant || !node.has_only(3) {
            return None;
        }
        let pads = [top, left, bottom, right].map(usize::try_from);
        pads.iter().all(Result::is_ok).then(|| pads.map(Result::unwrap_or_default))
    }

    /// What an operator makes of each number, and what the product of that and the number is.
    fn activation(&mut self, node: &Node<'a>) -> Option<(Activation, Option<Activation>)> {
        match (node.kind, node.text("approximate")) {
            ("Clip", _) => Some((self.limits(node)?, None)),
            ("Sigmoid", _) => Some((Activation::Sigmoid, Some(Activation::Silu))),
            ("HardSigmoid", _) => {
                let (slope, shift) = (node.float("alpha", 0.2), node.float("beta", 0.5));
                let swish = (slope - 1.0 / 6.0).abs() < 1e-6 && shift == 0.5;
                let product = swish.then_some(Activation::HardSwish);
                Some((Activation::HardSigmoid { slope, shift }, product))
            }
            ("HardSwish", _) => Some((Activation::HardSwish, None)),
            ("Gelu", b"" | b"none") => Some((Activation::Gelu, None)),
            ("Gelu", b"tanh") => Some((Activation::TanhGelu, None)),
            _ => None,
        }
    }

    /// A product: of a number and its sigmoid, or of an image and a factor for each channel.
    fn multiply(&mut self, one: Known, other: Known) -> Option<Known> {
        if one.flat != other.flat || other.pads != [0; 4] {
            return None;
        }
        let pairs = [(one, other), (other, one)];
        let gated = pairs.iter().find_map(|(one, other)| {
            let (_, product) = other.gate.filter(|(value, _)| *value == one.value)?;
            Some((one.value, product))
        });
        if let Some((value, product)) = gated {
            return Some(Known::new(self.builder.activate(value, product)?, one.flat));
        }
        let scaled =
            pairs.iter().find_map(|(one, other)| self.builder.scale(one.value, other.value))?;
        Some(Known::new(scaled, one.flat))
    }

    /// The limits that numbers are cut off at.
    fn limits(&mut self, node: &Node<'a>) -> Option<Activation> {
        let mut limit = |at: usize, name: &str, open: f32| match node.inputs.get(at) {
            None | Some(&"") => Some(node.float(name, open)),
            Some(_) => self.constant(node, at)?.float(),
        };
        let least = limit(1, "min", f32::NEG_INFINITY)?;
        let most = limit(2, "max", f32::INFINITY)?;
        (least <= most).then_some(Activation::Clip { least, most })
    }

    /// Whether the axes of an operator are rows and columns.
    fn reduces_over_pixels(&mut self, node: &Node<'a>) -> Option<()> {
        let axes = match node.inputs.len() {
            1 => node.numbers("axes").to_vec(),
            _ => self.integers(node, 1)?,
        };
        matches!(axes[..], [2 | -2, 3 | -1] | [3 | -1, 2 | -2]).then_some(())
    }

    /// A convolution, with the batch norm after it if nothing else takes its result.
    fn convolve(&mut self, node: &Node<'a>, input: Known) -> Option<()> {
        let (shape, mut kernel) = self.floats(node, 1)?;
        let &[outputs, inputs, height, width] = &shape[..] else { return None };
        let groups = usize::try_from(node.number("group", 1)).ok()?;
        if inputs.checked_mul(groups)? != self.builder.shape(input.value).channels {
            return None;
        }
        let mut window = self.window(node, input.value, (height, width))?;
        if input.pads != [0; 4] {
            // padding that depends on the size would be another after it
            let plain = matches!(node.text("auto_pad"), b"" | b"NOTSET" | b"VALID");
            let [top, left, bottom, right] = plain.then_some(input.pads)?;
            let add = |side: &mut usize, more: usize| side.checked_add(more).map(|sum| *side = sum);
            add(&mut window.before.0, top)?;
            add(&mut window.before.1, left)?;
            add(&mut window.after.0, bottom)?;
            add(&mut window.after.1, right)?;
        }
        let mut bias = match node.inputs.get(2) {
            None | Some(&"") => vec![0.0; outputs],
            Some(_) => self.vector(node, 2, outputs)?,
        };
        let mut name = *node.outputs.first()?;
        let alone = self.uses.get(name) == Some(&1);
        let follows = |next: &&Node| next.inputs.first() == Some(&name);
        let next = self.nodes.iter().find(follows).filter(|_| alone);
        if let Some(next) = next.filter(|next| next.kind == "BatchNormalization") {
            self.normalise(next, &mut kernel, &mut bias)?;
            name = next.outputs.first()?;
            self.merged.insert(name);
        }
        let value = self.builder.convolve(input.value, window, groups, &kernel, bias)?;
        self.name(name, Known::new(value, false))
    }

    /// Makes a batch norm part of the convolution before it.
    fn normalise(&mut self, node: &Node<'a>, kernel: &mut [f32], bias: &mut [f32]) -> Option<()> {
        let outputs = bias.len();
        let plain = is_standard(node.domain) && node.has_only(5);
        if !plain || node.number("training_mode", 0) != 0 {
            return None;
        }
        let mut weights = |at| self.vector(node, at, outputs);
        let (scale, shift, means, variance) = (weights(1)?, weights(2)?, weights(3)?, weights(4)?);
        let epsilon = f64::from(node.float("epsilon", 1e-5));
        let kernels = kernel.chunks_exact_mut(kernel.len() / outputs).zip(bias);
        let affine = affine([&scale[..], &shift, &means, &variance], epsilon);
        for ((kernel, bias), (factor, shift)) in kernels.zip(affine) {
            kernel.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32);
            *bias = (f64::from(*bias) * factor + shift) as f32;
        }
        Some(())
    }

    fn linear(&mut self, node: &Node<'a>, input: usize) -> Option<usize> {
        let factors = [node.float("alpha", 1.0), node.float("beta", 1.0)];
        if factors != [1.0; 2] || node.number("transA", 0) != 0 {
            return None;
        }
        let (shape, numbers) = self.floats(node, 1)?;
        let &[rows, columns] = &shape[..] else { return None };
        let (outputs, matrix) = if node.number("transB", 0) == 0 {
            let value = |at: usize| numbers[at % rows * columns + at / rows];
            (columns, (0..numbers.len()).map(value).collect())
        } else {
            (rows, numbers)
        };
        let bias = match node.inputs.get(2) {
            None | Some(&"") => vec![0.0; outputs],
            Some(_) => {
                let (shape, numbers) = self.floats(node, 2)?;
                (shape == [outputs] || shape == [1, outputs]).then_some(numbers)?
            }
        };
        self.builder.linear(input, &matrix, &bias)
    }
}
