//! Networks computed by the CPU engine of this crate, if it has all of their operators. All others
//! are left to a runtime.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::input::Input;
use super::lower::{Parts, lower};
use super::operator::{Files, Node, is_standard, number, text};
use super::options::Layout;
use super::protobuf::{Field, Fields};
use super::to_features::Tensor;
use super::{Compute, Source};
use crate::engine::cpu::graph::{Builder, Graph};
use crate::engine::cpu::memory::Memories;
use crate::engine::cpu::record::{Listed, list};
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
    memories: Memories,
}

impl Builtin {
    /// The network, if all of its operators are known here. Its images come channel by channel.
    pub(super) fn load(source: &Source, files: &Files, input: &Input) -> Option<Self> {
        let images = if input.fixed_batch { input.batch } else { input.batch.min(TOGETHER) };
        let builder = Builder::bounded(images, input.shape);
        let model = Model::read(&source.file, &source.outputs)?;
        let (builder, outputs) = model.lower(input, files, builder)?;
        let graph = builder.finish(outputs)?;
        Some(Self { graph, shape: input.shape, memories: Memories::default() })
    }

    /// The operations of a network, if it is one of convolutions, sums and limits.
    pub(super) fn listed(source: &Source, files: &Files, input: &Input) -> Option<Listed> {
        let model = Model::read(&source.file, &source.outputs)?;
        let builder = Builder::recording(input.shape);
        let (builder, outputs) = model.lower(input, files, builder)?;
        list(builder.recorded()?, &outputs)
    }

    fn one(&self, numbers: &[f32], wanted: &[usize], shared: bool) -> Vec<Tensor> {
        let images = numbers.len() / self.shape.len();
        let found = self.memories.lend(|memory| {
            memory.images(numbers.len()).copy_from_slice(numbers);
            self.graph.run(memory, (images, self.shape), wanted, shared)
        });
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
        input: &'a Input,
        files: &Files,
        builder: Builder,
    ) -> Option<(Builder, Vec<usize>)> {
        let nodes = self.needed();
        let Self { weights, outputs, bytes, .. } = self;
        let bytes = bytes + 4 * files.values().map(Vec::len).sum::<usize>();
        let parts = Parts { nodes: &nodes, weights, files, outputs: &outputs, bytes };
        let images = input.fixed_batch.then_some(input.batch);
        lower(parts, (&input.name, images), builder)
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
