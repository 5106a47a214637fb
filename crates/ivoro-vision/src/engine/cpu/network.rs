//! A frozen network: normalisations are part of the kernels.

use std::ops::Range;

use ivoro::Matrix;
use rayon::prelude::*;

use super::convolution::{convolve_here, prepare};
use super::input::Lookup;
use super::plan::{Layer, Plan};
use super::product::Store;
use super::{check_size, count_images, pool};
use crate::dataset::Shape;
use crate::engine::Backbone;
use crate::error::{Error, Result};
use crate::network::{Architecture, EPSILON, Weights, affine};

/// Pixels of the images that go through the network together: enough for products of a good size
/// in the last stage, few enough for the caches.
const PIXELS: usize = 1 << 14;
/// The images that go together at least and at most, if there are as many.
const TOGETHER: (usize, usize) = (4, 16);
/// Groups that the images are divided into if they are few, so that all threads have work.
const GROUPS: usize = 8;

/// A convolution with its normalisation in it.
#[derive(Clone, Debug)]
struct Folded {
    kernel: Vec<f32>,
    bias: Vec<f32>,
}

/// A frozen residual network on the processor's cores.
#[derive(Clone, Debug)]
pub struct Network {
    architecture: Architecture,
    layers: Vec<(String, usize)>,
    lookup: Lookup,
    /// Learned weights as the engine has them, for the linear layers.
    learned: Vec<f32>,
    /// In the order of [`Plan::layers`].
    folded: Vec<Folded>,
}

/// Memory that a group of images passes through.
#[derive(Default)]
struct Memory {
    current: Vec<f32>,
    inner: Vec<f32>,
    outer: Vec<f32>,
    found: Vec<u8>,
}

/// What is wanted of the network.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    Layers(&'a [usize]),
    Outputs,
}

impl Network {
    /// The network that `weights` make.
    pub fn new(weights: &Weights) -> Result<Self> {
        let architecture = weights.architecture.clone();
        // Neither the places of the weights nor their number depend on the size of the images.
        let shape = Shape { height: 1, width: 1, channels: architecture.channels };
        let plan = Plan::new(&architecture, shape)?;
        check_size("learned weights", plan.learned, weights.learned.len())?;
        check_size("measured weights", plan.measured, weights.measured.len())?;
        let lookup = Lookup::new(&weights.normalisation, architecture.channels)?;
        let learned = plan.to_engine(&weights.learned);
        let fold = |layer| Folded::new(layer, &learned, &weights.measured);
        let mut folded: Vec<Folded> = plan.layers().map(fold).collect();
        let mut at = 1;
        for block in &plan.blocks {
            if block.around.is_some() {
                // What both ways add is added once.
                let around = folded[at + 2].bias.clone();
                folded[at + 1].bias.iter_mut().zip(around).for_each(|(sum, more)| *sum += more);
            }
            at += 2 + usize::from(block.around.is_some());
        }
        let layers = architecture.layers();
        Ok(Self { architecture, layers, lookup, learned, folded })
    }

    /// What the classifier says of images (`pixels` in NHWC order, each of `shape`).
    pub fn outputs(&self, pixels: &[u8], shape: Shape) -> Result<Matrix> {
        let mut matrices = self.compute(pixels, shape, Wanted::Outputs)?;
        Ok(matrices.swap_remove(0))
    }

    fn compute(&self, pixels: &[u8], shape: Shape, wanted: Wanted) -> Result<Vec<Matrix>> {
        let plan = Plan::new(&self.architecture, shape)?;
        let images = count_images(pixels, shape)?;
        let most = (PIXELS / (shape.height * shape.width)).clamp(TOGETHER.0, TOGETHER.1);
        let together = images.div_ceil(GROUPS).clamp(1, most);
        let groups = pixels.par_chunks(together * shape.len());
        let groups: Vec<Vec<Vec<f32>>> = groups
            .map_init(Memory::default, |memory, group| self.group(&plan, group, wanted, memory))
            .collect();
        let columns: Vec<usize> = match wanted {
            Wanted::Layers(layers) => layers.iter().map(|&layer| self.layers[layer].1).collect(),
            Wanted::Outputs => vec![self.architecture.outputs],
        };
        let join = |(index, columns): (usize, usize)| {
            let parts = groups.iter().flat_map(|group| group[index].iter().copied());
            Ok(Matrix::new(images, columns, parts.collect())?)
        };
        columns.into_iter().enumerate().map(join).collect()
    }

    /// The stage after which the layer at `index` is taken; the last one for the embedding.
    fn stage(&self, index: usize) -> usize {
        let stages = self.architecture.widths.len();
        if self.architecture.embedding.is_some() {
            stages - index.saturating_sub(1)
        } else {
            stages - index
        }
    }

    fn group(
        &self,
        plan: &Plan,
        pixels: &[u8],
        wanted: Wanted,
        memory: &mut Memory,
    ) -> Vec<Vec<f32>> {
        let stages = self.architecture.widths.len();
        let deepest = match wanted {
            Wanted::Layers(layers) => layers.iter().map(|&layer| self.stage(layer)).max(),
            Wanted::Outputs => Some(stages),
        };
        let mut means = Vec::with_capacity(stages);
        self.stem(plan, pixels, memory);
        let mut folded = self.folded[1..].iter();
        let blocks = &plan.blocks[..deepest.unwrap_or(0) * plan.depth];
        for (index, block) in blocks.iter().enumerate() {
            let layers = [Some(&block.first), Some(&block.second), block.around.as_ref()];
            let pairs = layers.map(|layer| layer.and_then(|layer| Some((layer, folded.next()?))));
            memory.block(pairs);
            if (index + 1).is_multiple_of(plan.depth) {
                let window = block.second.window;
                means.push(pool::mean(&memory.current, window.out_pixels(), window.outputs));
            }
        }
        let last = |means: &[Vec<f32>]| {
            let mean = means.last().cloned().unwrap_or_default();
            let Some(embedding) = &plan.embedding else { return mean };
            let mut embedded = Vec::new();
            embedding.forward(&mean, &self.learned, &mut embedded);
            embedded
        };
        match wanted {
            Wanted::Outputs => {
                let mut outputs = Vec::new();
                plan.classifier.forward(&last(&means), &self.learned, &mut outputs);
                vec![outputs]
            }
            Wanted::Layers(layers) => {
                let take = |&layer: &usize| match layer {
                    0 => last(&means),
                    _ => means[self.stage(layer) - 1].clone(),
                };
                layers.iter().map(take).collect()
            }
        }
    }

    fn stem(&self, plan: &Plan, pixels: &[u8], memory: &mut Memory) {
        let Memory { current, inner, found, .. } = memory;
        inner.resize(pixels.len(), 0.0);
        self.lookup.apply(pixels, inner);
        self.folded[0].convolve(&plan.stem, inner, current, Store::Replace);
        if let Some(pool) = &plan.pool {
            let images = current.len() / pool.in_len();
            inner.resize(images * pool.out_len(), 0.0);
            found.resize(images * pool.out_len(), 0);
            pool.forward(current, inner, found);
            std::mem::swap(current, inner);
        }
    }
}

impl Folded {
    fn new(layer: &Layer, learned: &[f32], measured: &[f32]) -> Self {
        let weights = |range: &Range<usize>| &learned[range.clone()];
        let running = |range: &Range<usize>| &measured[range.clone()];
        let (scale, shift) = (weights(&layer.scale), weights(&layer.shift));
        let affine =
            affine([scale, shift, running(&layer.mean), running(&layer.variance)], EPSILON);
        let bias = affine.iter().map(|(_, shift)| *shift as f32).collect();
        let kernel = weights(&layer.kernel).iter().zip(affine.iter().cycle());
        let kernel: Vec<f32> =
            kernel.map(|(value, (factor, _))| (f64::from(*value) * factor) as f32).collect();
        Self { kernel: prepare(&layer.window, &kernel), bias }
    }

    /// Convolves, adds the bias and turns negative values into 0.
    fn convolve(&self, layer: &Layer, input: &[f32], out: &mut Vec<f32>, store: Store) {
        let window = &layer.window;
        out.resize(input.len() / window.in_len() * window.out_len(), 0.0);
        convolve_here(window, input, &self.kernel, out, store, |tile| {
            for row in tile.chunks_exact_mut(window.outputs) {
                let values = row.iter_mut().zip(&self.bias);
                values.for_each(|(value, bias)| *value = (*value + bias).max(0.0));
            }
        });
    }
}

impl Memory {
    /// Takes `current` through a block: first and second convolution and the one around them.
    fn block(&mut self, layers: [Option<(&Layer, &Folded)>; 3]) {
        let [Some((first, first_weights)), Some((second, second_weights)), around] = layers else {
            return;
        };
        let Self { current, inner, outer, .. } = self;
        first_weights.convolve(first, current, inner, Store::Replace);
        if let Some((layer, weights)) = around {
            let window = &layer.window;
            outer.resize(current.len() / window.in_len() * window.out_len(), 0.0);
            convolve_here(window, current, &weights.kernel, outer, Store::Replace, |_| ());
            std::mem::swap(current, outer);
        }
        second_weights.convolve(second, inner, current, Store::Add);
    }
}

impl Backbone for Network {
    fn layers(&self) -> &[(String, usize)] {
        &self.layers
    }

    fn shape(&self) -> Option<Shape> {
        None
    }

    fn features(&self, pixels: &[u8], shape: Shape, layers: &[usize]) -> Result<Vec<Matrix>> {
        if let Some(layer) = layers.iter().find(|&&layer| layer >= self.layers.len()) {
            return Err(Error::Setting {
                name: "layer",
                value: layer.to_string(),
                reason: "the network has fewer layers",
            });
        }
        self.compute(pixels, shape, Wanted::Layers(layers))
    }
}
