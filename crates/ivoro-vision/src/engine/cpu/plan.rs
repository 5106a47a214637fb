//! Where each layer's weights lie, and the sizes it works with.

use std::ops::Range;

use super::check_size;
use super::conv_geometry::{ConvGeometry, kernel_to_engine};
use super::pool::Maximum;
use crate::error::{Error, Result};
use crate::network::{Architecture, Convolution, Stem};
use crate::shape::Shape;

/// A convolution with its batch norm, for images of one size.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) geometry: ConvGeometry,
    /// Place of the kernel among the learned weights.
    pub(super) kernel: Range<usize>,
    /// Place of the batch norm's factor γ.
    pub(super) scale: Range<usize>,
    /// Place of the batch norm's shift β.
    pub(super) shift: Range<usize>,
    /// Place of the running mean among the measured weights.
    pub(super) mean: Range<usize>,
    /// Place of the running variance.
    pub(super) variance: Range<usize>,
}

/// Two convolutions and their shortcut.
#[derive(Clone, Debug)]
pub(super) struct BlockPlan {
    pub(super) first: Layer,
    pub(super) second: Layer,
    pub(super) shortcut: Option<Layer>,
}

/// A linear layer.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    pub(super) matrix: Range<usize>,
    pub(super) bias: Range<usize>,
}

/// A network for images of one size.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) stem: Layer,
    pub(super) pool: Option<Maximum>,
    pub(super) blocks: Vec<BlockPlan>,
    pub(super) embedding: Option<Linear>,
    pub(super) classifier: Linear,
    /// How many weights are learned.
    pub(super) learned: usize,
}

/// Hands out places in the order of [`Architecture::parameters`].
#[derive(Default)]
struct Places {
    learned: usize,
    measured: usize,
}

fn place(end: &mut usize, length: usize) -> Range<usize> {
    *end += length;
    *end - length..*end
}

impl Places {
    fn layer(&mut self, convolution: &Convolution, height: usize, width: usize) -> Layer {
        let Convolution { inputs, outputs, size, stride, .. } = *convolution;
        let geometry =
            ConvGeometry { height, width, inputs, outputs, size, stride, padding: size / 2 };
        Layer {
            geometry,
            kernel: place(&mut self.learned, geometry.kernel_len()),
            scale: place(&mut self.learned, outputs),
            shift: place(&mut self.learned, outputs),
            mean: place(&mut self.measured, outputs),
            variance: place(&mut self.measured, outputs),
        }
    }

    fn linear(&mut self, inputs: usize, outputs: usize) -> Linear {
        let matrix = place(&mut self.learned, inputs * outputs);
        Linear { inputs, outputs, matrix, bias: place(&mut self.learned, outputs) }
    }
}

impl Plan {
    /// The plan of a network for images of `shape`.
    pub(super) fn new(architecture: &Architecture, shape: Shape) -> Result<Self> {
        check_architecture(architecture)?;
        check_images(architecture.channels, shape)?;
        let mut places = Places::default();
        let stem = places.layer(&architecture.stem_convolution(), shape.height, shape.width);
        let (mut height, mut width) = (stem.geometry.out_height(), stem.geometry.out_width());
        let large = architecture.stem == Stem::Large;
        let pool = large.then_some(Maximum { height, width, channels: stem.geometry.outputs });
        if let Some(pool) = pool {
            (height, width) = (pool.out_height(), pool.out_width());
        }
        let mut blocks = Vec::new();
        for block in architecture.stages().into_iter().flatten() {
            let first = places.layer(&block.first, height, width);
            let before = (height, width);
            (height, width) = (first.geometry.out_height(), first.geometry.out_width());
            let second = places.layer(&block.second, height, width);
            let shortcut = block.shortcut.map(|layer| places.layer(&layer, before.0, before.1));
            blocks.push(BlockPlan { first, second, shortcut });
        }
        let last = architecture.last_width();
        let embedding = architecture.embedding.map(|outputs| places.linear(last, outputs));
        let classifier = places.linear(architecture.dimensions(), architecture.outputs);
        let learned = places.learned;
        Ok(Self { stem, pool, blocks, embedding, classifier, learned })
    }

    /// All convolutions in the order in which an image passes them.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> {
        let blocks = self.blocks.iter();
        let blocks = blocks
            .flat_map(|block| [&block.first, &block.second].into_iter().chain(&block.shortcut));
        std::iter::once(&self.stem).chain(blocks)
    }

    /// Output window of the last convolution.
    pub(super) fn last_geometry(&self) -> ConvGeometry {
        self.blocks.last().map_or(self.stem.geometry, |block| block.second.geometry)
    }

    /// Learned weights with kernels as `[height, width, in, out]`, from `[out, in, height, width]`.
    pub(super) fn to_engine(&self, learned: &[f32]) -> Vec<f32> {
        let mut out = learned.to_vec();
        for Layer { geometry, kernel, .. } in self.layers() {
            let turned = kernel_to_engine(geometry, &learned[kernel.clone()]);
            out[kernel.clone()].copy_from_slice(&turned);
        }
        out
    }

    /// The opposite of [`to_engine`](Self::to_engine).
    pub(super) fn to_file(&self, learned: &[f32]) -> Vec<f32> {
        let mut out = learned.to_vec();
        for Layer { geometry, kernel, .. } in self.layers() {
            let (taps, inner) = (geometry.taps(), geometry.taps() * geometry.inputs);
            let (from, to) = (&learned[kernel.clone()], &mut out[kernel.clone()]);
            for (at, value) in from.iter().enumerate() {
                let (output, rest) = (at % geometry.outputs, at / geometry.outputs);
                let (input, tap) = (rest % geometry.inputs, rest / geometry.inputs);
                to[output * inner + input * taps + tap] = *value;
            }
        }
        out
    }
}

/// Checks images for a network of so many channels.
pub(super) fn check_images(channels: usize, shape: Shape) -> Result<()> {
    check_size("channels of the images", channels, shape.channels)?;
    if shape.is_empty() {
        let (name, value) = ("shape", shape.to_string());
        return Err(Error::Setting { name, value, reason: "images must have pixels" });
    }
    Ok(())
}

pub(super) fn check_architecture(architecture: &Architecture) -> Result<()> {
    let Architecture { channels, widths, depth, embedding, .. } = architecture;
    let sizes = widths.iter().chain(embedding).chain([channels, depth]);
    if widths.is_empty() || sizes.clone().any(|&size| size == 0) {
        return Err(Error::Setting {
            name: "architecture",
            value: architecture.to_string(),
            reason: "channels, depth, every width and the embedding must be above 0",
        });
    }
    Ok(())
}
