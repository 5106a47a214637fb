//! Networks computed by the CPU engine of this crate: those of convolutions, ReLUs, sums, pools and
//! linear maps. All others are left to a runtime.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::input::Input;
use super::operator::{Files, Node, floats, integers, is_standard, number, text};
use super::options::Layout;
use super::protobuf::{Field, Fields};
use super::to_features::Tensor;
use super::{Compute, Source};
use crate::engine::cpu::graph::{Builder, Graph, Memory};
use crate::network::affine;
use crate::shape::Shape;

/// Networks of more operators are left to a runtime.
const MOST_OPERATORS: usize = 4096;
/// Images that go together: enough for products of a good size where images have few pixels.
const TOGETHER: usize = 4;
/// Operators mean what they mean here from this set on.
const FIRST_SET: u64 = 7;

/// A network of operations that the engine has.
pub(super) struct Builtin {
    graph: Graph,
    shape: Shape,
}

impl Builtin {
    /// The network, if all of its operators are known here. Its images come channel by channel.
    pub(super) fn load(source: &Source, files: &Files, input: &Input) -> Option<Self> {
        let images = if input.fixed_batch { input.batch } else { input.batch.min(TOGETHER) };
        let builder = Builder::bounded(images, input.shape);
        let model = Model::read(&source.file, &source.outputs)?;
        let graph = model.graph(&input.name, files, builder)?;
        Some(Self { graph, shape: input.shape })
    }

    fn one(
        &self,
        memory: &mut Memory,
        numbers: &[f32],
        wanted: &[usize],
        shared: bool,
    ) -> Vec<Tensor> {
        let images = numbers.len() / self.shape.len();
        memory.images(numbers.len()).copy_from_slice(numbers);
        let found = self.graph.run(memory, (images, self.shape), wanted, shared);
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
        if 2 * inputs.len() <= rayon::current_num_threads() {
            let memory = &mut Memory::default();
            let one = |(numbers, _): &(Vec<f32>, _)| self.one(memory, numbers, wanted, true);
            return Ok(inputs.iter().map(one).collect());
        }
        let one = |memory: &mut Memory, (numbers, _): &(Vec<f32>, _)| {
            self.one(memory, numbers, wanted, false)
        };
        Ok(inputs.par_iter().with_max_len(1).map_init(Memory::default, one).collect())
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

    fn graph(mut self, input: &'a str, files: &Files, builder: Builder) -> Option<Graph> {
        let nodes = self.needed();
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        let names = nodes.iter().flat_map(|node| &node.inputs).chain(&self.outputs);
        names.for_each(|name| *uses.entry(name).or_default() += 1);
        let Self { weights, outputs, bytes, .. } = self;
        let bytes = bytes + 4 * files.values().map(Vec::len).sum::<usize>();
        let values = BTreeMap::from([(input, (0, false))]);
        let merged = BTreeSet::new();
        let mut network =
            Network { nodes: &nodes, weights, files, bytes, uses, builder, values, merged };
        for node in &nodes {
            network.add(node)?;
        }
        let value = |name: &&str| Some(network.values.get(name)?.0);
        let outputs = outputs.iter().map(value).collect::<Option<_>>()?;
        network.builder.finish(outputs)
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

/// A network that is being put together.
struct Network<'n, 'a> {
    nodes: &'n [Node<'a>],
    weights: BTreeMap<&'a str, Field<'a>>,
    files: &'n Files,
    bytes: usize,
    uses: BTreeMap<&'a str, usize>,
    builder: Builder,
    /// Values by name, and whether they have two dimensions instead of four.
    values: BTreeMap<&'a str, (usize, bool)>,
    /// Results of batch norms that are part of a convolution.
    merged: BTreeSet<&'a str>,
}

impl<'a> Network<'_, 'a> {
    fn value(&self, node: &Node<'a>, at: usize) -> Option<(usize, bool)> {
        self.values.get(node.inputs.get(at)?).copied()
    }

    fn weight(&mut self, node: &Node<'a>, at: usize) -> Option<Field<'a>> {
        let field = self.weights.get(node.inputs.get(at)?)?;
        self.bytes = self.bytes.checked_sub(field.whole.len())?;
        Some(*field)
    }

    fn floats(&mut self, node: &Node<'a>, at: usize) -> Option<(Vec<usize>, Vec<f32>)> {
        let (shape, numbers) = floats(&self.weight(node, at)?, self.files)?;
        self.bytes = self.bytes.checked_sub(4 * numbers.len())?;
        Some((shape, numbers))
    }

    fn integers(&mut self, node: &Node<'a>, at: usize) -> Option<Vec<i64>> {
        integers(&self.weight(node, at)?, self.files)
    }

    /// A weight for each of `count` outputs.
    fn vector(&mut self, node: &Node<'a>, at: usize, count: usize) -> Option<Vec<f32>> {
        let (shape, numbers) = self.floats(node, at)?;
        (shape == [count]).then_some(numbers)
    }

    /// Gives a value a name, if nothing has it.
    fn name(&mut self, name: &'a str, value: (usize, bool)) -> Option<()> {
        let free = !self.weights.contains_key(name);
        (free && self.values.insert(name, value).is_none()).then_some(())
    }

    /// Adds an operator; none if it is not one that the engine has.
    fn add(&mut self, node: &Node<'a>) -> Option<()> {
        let &output = node.outputs.first().filter(|_| is_standard(node.domain))?;
        if self.merged.contains(output) {
            return Some(());
        }
        let input = self.value(node, 0);
        let made = match (node.kind, input) {
            // Some exporters write weights as operators that make them.
            ("Constant", None) => {
                let tensor = node.attributes.get("value")?.tensor?;
                let free = !self.values.contains_key(output);
                return (free && self.weights.insert(output, tensor).is_none()).then_some(());
            }
            ("Conv", Some((input, false))) => return self.convolve(node, input),
            ("MaxPool", Some((input, false))) => {
                let size = usize::try_from(*node.numbers("kernel_shape").first()?).ok()?;
                let plain = node.has_only(1) && node.number("ceil_mode", 0) == 0;
                (plain.then(|| self.builder.maximum(input, node.stride(size)?))??, false)
            }
            ("Relu", Some((input, flat))) => (self.builder.relu(input)?, flat),
            ("Add", Some((input, flat))) => {
                let (other, like) = self.value(node, 1)?;
                ((like == flat).then(|| self.builder.add(input, other))??, flat)
            }
            ("GlobalAveragePool", Some((input, false))) => (self.builder.mean(input)?, false),
            ("ReduceMean", Some((input, false))) => {
                self.reduces_over_pixels(node)?;
                (self.builder.mean(input)?, node.number("keepdims", 1) == 0)
            }
            ("Gemm", Some((input, true))) => (self.linear(node, input)?, true),
            ("Identity", Some(value)) => value,
            // beyond its share it may be told to be in training
            ("Dropout", Some(value)) if node.has_only(2) => value,
            ("Flatten", Some((input, _))) if node.number("axis", 1) == 1 => self.flat(input)?,
            ("Squeeze", Some((input, false))) => {
                self.reduces_over_pixels(node)?;
                self.flat(input)?
            }
            ("Reshape", Some((input, _))) => {
                let shape = self.integers(node, 1)?;
                let size = i64::try_from(self.builder.shape(input).channels).ok()?;
                let same = shape == [0, -1] || shape == [0, size];
                let same = same && node.number("allowzero", 0) == 0;
                let plain = same || shape == [-1, size];
                plain.then(|| self.flat(input))??
            }
            _ => return None,
        };
        self.name(output, made)
    }

    /// A value of one pixel, whose order of numbers is the same with two dimensions.
    fn flat(&self, value: usize) -> Option<(usize, bool)> {
        let Shape { height, width, .. } = self.builder.shape(value);
        (height * width == 1).then_some((value, true))
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
    fn convolve(&mut self, node: &Node<'a>, input: usize) -> Option<()> {
        let (shape, mut kernel) = self.floats(node, 1)?;
        let &[outputs, inputs, height, width] = &shape[..] else { return None };
        let known = height == width && inputs == self.builder.shape(input).channels;
        if !known || node.number("group", 1) != 1 {
            return None;
        }
        let stride = node.stride(height)?;
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
        let value = self.builder.convolve(input, stride, &kernel, bias)?;
        self.name(name, (value, false))
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
        self.builder.linear(input, matrix, bias)
    }
}
