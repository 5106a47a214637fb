//! A frozen network: an architecture with its weights as a graph, and what pixels become in it.

use std::path::Path;

use ivoro::Matrix;
use rayon::prelude::*;

use super::activation::Activation;
use super::graph::{Builder, Graph};
use super::input::Lookup;
use super::memory::{Memories, Memory};
use super::plan::{check_architecture, check_images};
use super::window::Window;
use super::{check_size, count_images, operations};
use crate::engine::Backbone;
use crate::error::{Error, Result};
use crate::network::{
    Architecture, Block, Convolution, Folded, OperationNetwork, Stem, Weights, fold,
};
use crate::shape::Shape;

/// Pixels of the images that go through the network together: enough for products of a good size
/// in the last stage, few enough for the caches.
const PIXELS: usize = 1 << 14;
/// The images that go together at least and at most, if there are as many: with fewer, the kernels
/// of the last stage are read too often for what is computed with them.
const TOGETHER: (usize, usize) = (4, 16);
/// Groups that the images are divided into if they are few, so that all threads have work.
const GROUPS: usize = 8;

/// A frozen residual network on the CPU's cores.
#[derive(Clone, Debug)]
pub struct Network {
    layers: Vec<(String, usize)>,
    channels: usize,
    /// The only shape of images that it takes, if there is one.
    shape: Option<Shape>,
    /// Outputs of the classifier; 0 where there is none.
    outputs: usize,
    lookup: Lookup,
    /// Its outputs are the layers, then the classifier's if there is one, then what each pixel adds
    /// to the last layer if the network is one of an architecture.
    graph: Graph,
    memories: Memories,
}

impl Network {
    /// The network that `weights` make.
    pub fn new(weights: &Weights) -> Result<Self> {
        let architecture = &weights.architecture;
        check_architecture(architecture)?;
        let (learned, measured) = architecture.counts();
        check_size("learned weights", learned, weights.learned.len())?;
        check_size("measured weights", measured, weights.measured.len())?;
        let lookup = Lookup::new(&weights.normalisation, architecture.channels)?;
        let graph = lower(weights).ok_or_else(|| Error::Setting {
            name: "architecture",
            value: architecture.to_string(),
            reason: "its sizes are beyond all measure",
        })?;
        let Architecture { channels, outputs, .. } = *architecture;
        let layers = architecture.layers();
        let memories = Memories::default();
        Ok(Self { layers, channels, shape: None, outputs, lookup, graph, memories })
    }

    /// The network that a list of operations makes; `path` names it in errors.
    pub fn of_operations(path: &Path, network: &OperationNetwork) -> Result<Self> {
        let OperationNetwork { operations, normalisation, fit, .. } = network;
        let channels = operations.channels;
        let graph = operations::lower(network, TOGETHER.0)
            .ok_or_else(|| Error::malformed(path, "its operations do not fit its images"))?;
        let lookup = Lookup::new(normalisation, channels)?;
        let sizes = operations.layer_sizes();
        let sizes =
            sizes.ok_or_else(|| Error::malformed(path, "its operations contradict themselves"))?;
        let names = operations.layers.iter().map(|(name, _)| name.clone());
        let layers = names.zip(sizes).collect();
        let (shape, memories) = (Some(fit.shape), Memories::default());
        Ok(Self { layers, channels, shape, outputs: 0, lookup, graph, memories })
    }

    /// What the classifier says of images (`pixels` in NHWC order, each of `shape`).
    pub fn outputs(&self, pixels: &[u8], shape: Shape) -> Result<Matrix> {
        let wanted: &[usize] = if self.outputs == 0 { &[] } else { &[self.layers.len()] };
        match self.compute(pixels, shape, wanted)?.pop() {
            Some(outputs) => Ok(outputs),
            None => Ok(Matrix::new(count_images(pixels, shape)?, 0, Vec::new())?),
        }
    }

    /// The outputs of the graph that are wanted, a row for each image.
    fn compute(&self, pixels: &[u8], shape: Shape, wanted: &[usize]) -> Result<Vec<Matrix>> {
        check_images(self.channels, shape)?;
        if let Some(expected) = self.shape.filter(|expected| *expected != shape) {
            return Err(Error::NetworkShape { expected, found: shape });
        }
        let images = count_images(pixels, shape)?;
        // Never by the number of threads: the last digits depend on what is computed together.
        let most = (PIXELS / (shape.height * shape.width)).clamp(TOGETHER.0, TOGETHER.1);
        let together = images.div_ceil(GROUPS).clamp(TOGETHER.0, most);
        let groups = pixels.chunks(together * shape.len());
        // Far fewer groups than threads: all threads work on each.
        let shared = 2 * groups.len() <= rayon::current_num_threads();
        let on = |memory: &mut Memory, group: &[u8]| {
            self.lookup.apply(group, memory.images(group.len()));
            self.graph.run(memory, (group.len() / shape.len(), shape), wanted, shared)
        };
        let one = |group: &[u8]| self.memories.lend(|memory| on(memory, group));
        let groups: Vec<Vec<(usize, Vec<f32>)>> = if shared {
            groups.map(one).collect()
        } else {
            pixels.par_chunks(together * shape.len()).map(one).collect()
        };
        let join = |(index, &output): (usize, &usize)| {
            let parts: Vec<f32> =
                groups.iter().flat_map(|group| group[index].1.iter().copied()).collect();
            let columns = match self.layers.get(output) {
                Some((_, size)) => *size,
                None if Some(output) == self.graph.maps() => parts.len() / images.max(1),
                None => self.outputs,
            };
            Ok(Matrix::new(images, columns, parts)?)
        };
        wanted.iter().enumerate().map(join).collect()
    }
}

/// The graph of an architecture with its weights.
fn lower(weights: &Weights) -> Option<Graph> {
    let architecture = &weights.architecture;
    let mut folded = fold(weights);
    let mut take = |one: &Convolution| folded.remove(&one.kernel);
    let channels = architecture.channels;
    // Every layer fits images of one pixel, so that it fits all.
    let mut builder = Builder::new(Shape { height: 1, width: 1, channels });
    let stem = architecture.stem_convolution();
    let mut current = convolve(&mut builder, 0, &stem, take(&stem)?)?;
    current = builder.activate(current, Activation::RELU)?;
    if architecture.stem == Stem::Large {
        current = builder.maximum(current, Window::square(3, 2, 1))?;
    }
    let mut layers = Vec::new();
    for blocks in architecture.stages() {
        for block in &blocks {
            current = add_block(&mut builder, current, block, &mut take)?;
        }
        layers.push(builder.mean(current)?);
    }
    let mut linear = |input: usize, layer: &str| {
        let of = |kind: &str| weights.get(&format!("{layer}.{kind}"));
        let (matrix, bias, inputs) = (of("weight")?, of("bias")?, builder.shape(input).channels);
        let whole = inputs.checked_mul(bias.len()) == Some(matrix.len());
        whole.then(|| builder.linear(input, bias, |from, to| matrix[to * inputs + from]))?
    };
    if architecture.embedding.is_some() {
        layers.push(linear(*layers.last()?, "embedding")?);
    }
    layers.reverse();
    if architecture.outputs > 0 {
        layers.push(linear(layers[0], "fc")?);
    }
    let Some(size) = architecture.embedding else {
        return builder.finish_with_maps(layers, current);
    };
    let matrix = weights.get("embedding.weight")?;
    let maps = builder.convolve(current, Window::square(1, 1, 0), 1, matrix, vec![0.0; size])?;
    builder.finish_with_maps(layers, maps)
}

fn convolve(
    builder: &mut Builder,
    input: usize,
    convolution: &Convolution,
    Folded { kernel, bias }: Folded,
) -> Option<usize> {
    let Convolution { size, stride, .. } = *convolution;
    builder.convolve(input, Window::square(size, stride, size / 2), 1, &kernel, bias)
}

/// Two convolutions, the shortcut before the second one: that is then added to it.
fn add_block(
    builder: &mut Builder,
    input: usize,
    block: &Block,
    take: &mut impl FnMut(&Convolution) -> Option<Folded>,
) -> Option<usize> {
    let first = convolve(builder, input, &block.first, take(&block.first)?)?;
    let inner = builder.activate(first, Activation::RELU)?;
    let shortcut = match &block.shortcut {
        Some(convolution) => convolve(builder, input, convolution, take(convolution)?)?,
        None => input,
    };
    let second = convolve(builder, inner, &block.second, take(&block.second)?)?;
    let sum = builder.add(second, shortcut)?;
    builder.activate(sum, Activation::RELU)
}

impl Backbone for Network {
    fn layers(&self) -> &[(String, usize)] {
        &self.layers
    }

    fn shape(&self) -> Option<Shape> {
        self.shape
    }

    fn features(&self, pixels: &[u8], shape: Shape, layers: &[usize]) -> Result<Vec<Matrix>> {
        if let Some(layer) = layers.iter().find(|&&layer| layer >= self.layers.len()) {
            return Err(Error::Setting {
                name: "layer",
                value: layer.to_string(),
                reason: "the network has fewer layers",
            });
        }
        self.compute(pixels, shape, layers)
    }

    fn points_and_maps(&self, pixels: &[u8], shape: Shape) -> Result<(Matrix, Matrix)> {
        let missing = || Error::Engine { what: "a network of operations has no maps".to_owned() };
        let maps = self.graph.maps().ok_or_else(missing)?;
        let mut found = self.compute(pixels, shape, &[0, maps])?;
        let maps = found.pop().unwrap_or_default();
        Ok((found.pop().unwrap_or_default(), maps))
    }
}
