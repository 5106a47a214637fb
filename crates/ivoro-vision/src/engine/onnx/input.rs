//! The network's one input: which axes, which size, and how pixels get there.

use std::path::Path;

use rayon::prelude::*;

use super::OnnxError;
use super::graph::{Graph, Value};
use super::options::{Layout, OnnxOptions, imagenet};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The number of the element type `float`.
const FLOAT: u64 = 1;
/// The most numbers of one input: 4 GiB.
const MOST_NUMBERS: u64 = 1 << 30;

/// How images become the input.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) layout: Layout,
    /// Images that are computed at once.
    pub(super) batch: usize,
    /// Whether the file allows that number only.
    pub(super) fixed_batch: bool,
    /// Factor and shift of each channel.
    affine: Vec<(f32, f32)>,
}

impl Input {
    pub(super) fn new(path: &Path, graph: &Graph, options: &OnnxOptions) -> Result<Self> {
        let value = only(path, graph)?;
        let dimensions = four(path, value)?;
        let layout = options.layout.unwrap_or_else(|| guess(dimensions));
        let [images, second, third, fourth] = dimensions;
        let (rows, columns, channels) = match layout {
            Layout::ChannelsFirst => (third, fourth, second),
            Layout::ChannelsLast => (second, third, fourth),
        };
        let asked = options.normalisation.as_ref().map(|asked| asked.mean.len());
        let channels = agree(path, "number of channels", channels, asked)?;
        // Nothing says how many there are: colour is what networks take.
        let channels = channels.unwrap_or(3);
        if !matches!(channels, 1 | 3) {
            let what = format!(
                "its input \"{}\" has {channels} channels, expected 1 or 3{}",
                value.name,
                if options.layout.is_none() { "; the order of its axes can be given" } else { "" }
            );
            return Err(refuse(path, what));
        }
        let height = agree(path, "height", rows, options.height)?;
        let width = agree(path, "width", columns, options.width)?;
        let (height, width) = match (height, width) {
            (Some(height), Some(width)) => (height, width),
            (None, Some(_)) => return Err(open(path, "the height")),
            (Some(_), None) => return Err(open(path, "the width")),
            (None, None) => return Err(open(path, "height and width")),
        };
        let batch = images.unwrap_or(options.batch);
        let sizes = [batch, height, width, channels];
        if sizes.contains(&0) || count(sizes).is_none_or(|count| count > MOST_NUMBERS) {
            let what = format!("{batch} images of {width}×{height} can't be computed at once");
            return Err(refuse(path, what));
        }
        let affine = affine(options, channels)?;
        let shape = Shape { height, width, channels };
        let (name, fixed_batch) = (value.name.to_owned(), images.is_some());
        Ok(Self { name, shape, layout, batch, fixed_batch, affine })
    }

    /// The axes of an input of so many images.
    pub(super) fn dimensions(&self, images: usize) -> [usize; 4] {
        let Shape { height, width, channels } = self.shape;
        match self.layout {
            Layout::ChannelsFirst => [images, channels, height, width],
            Layout::ChannelsLast => [images, height, width, channels],
        }
    }

    /// The numbers of so many images; those that `pixels` does not have are zero.
    pub(super) fn numbers(&self, pixels: &[u8], images: usize) -> Vec<f32> {
        let length = self.shape.len();
        let mut numbers = vec![0.0; images * length];
        let pairs = numbers.par_chunks_exact_mut(length).zip(pixels.par_chunks_exact(length));
        pairs.for_each(|(out, image)| match self.layout {
            Layout::ChannelsFirst => self.planes(image, out),
            Layout::ChannelsLast => self.interleaved(image, out),
        });
        numbers
    }

    fn planes(&self, image: &[u8], out: &mut [f32]) {
        let channels = self.shape.channels;
        let planes = out.chunks_exact_mut(image.len() / channels);
        for ((channel, plane), &(factor, shift)) in planes.enumerate().zip(&self.affine) {
            let values = image[channel..].iter().step_by(channels);
            for (out, &value) in plane.iter_mut().zip(values) {
                *out = f32::from(value) * factor + shift;
            }
        }
    }

    fn interleaved(&self, image: &[u8], out: &mut [f32]) {
        let channels = self.shape.channels;
        for (out, pixel) in out.chunks_exact_mut(channels).zip(image.chunks_exact(channels)) {
            for ((out, &value), &(factor, shift)) in out.iter_mut().zip(pixel).zip(&self.affine) {
                *out = f32::from(value) * factor + shift;
            }
        }
    }
}

fn refuse(path: &Path, what: String) -> Error {
    OnnxError::Input { path: path.to_owned(), what }.into()
}

fn open(path: &Path, side: &'static str) -> Error {
    OnnxError::SizeOpen { path: path.to_owned(), side }.into()
}

fn count(sizes: [usize; 4]) -> Option<u64> {
    sizes.iter().try_fold(1u64, |product, &size| product.checked_mul(size as u64))
}

/// The one input there must be.
fn only<'g, 'a>(path: &Path, graph: &'g Graph<'a>) -> Result<&'g Value<'a>> {
    let [value] = &graph.inputs[..] else {
        let names: Vec<&str> = graph.inputs.iter().take(8).map(|input| input.name).collect();
        let (count, names) = (graph.inputs.len(), names.join(", "));
        let what = format!("it has {count} inputs ({names}), expected one, the images");
        return Err(refuse(path, what));
    };
    match value.element {
        None | Some(FLOAT) => Ok(value),
        Some(other) => {
            let what = format!(
                "its input \"{}\" is of ONNX's element type {other}, expected 1, 32-bit floats",
                value.name
            );
            Err(refuse(path, what))
        }
    }
}

/// The four dimensions there must be, `None` where one is open.
fn four(path: &Path, value: &Value) -> Result<[Option<usize>; 4]> {
    let Some(shape) = &value.shape else { return Ok([None; 4]) };
    let sizes: Vec<Option<usize>> =
        shape.iter().map(|size| size.and_then(|size| usize::try_from(size).ok())).collect();
    <[_; 4]>::try_from(sizes).map_err(|sizes| {
        let (name, rank) = (value.name, sizes.len());
        refuse(path, format!("its input \"{name}\" has {rank} dimensions, expected 4: images"))
    })
}

fn guess([_, second, _, fourth]: [Option<usize>; 4]) -> Layout {
    let channels = |size: Option<usize>| matches!(size, Some(1 | 3));
    if channels(fourth) && !channels(second) { Layout::ChannelsLast } else { Layout::ChannelsFirst }
}

/// What the file fixes, which must be what was asked for; else what was asked for.
fn agree(
    path: &Path,
    side: &'static str,
    fixed: Option<usize>,
    asked: Option<usize>,
) -> Result<Option<usize>> {
    match (fixed, asked) {
        (Some(fixed), Some(asked)) if fixed != asked => {
            Err(OnnxError::Size { path: path.to_owned(), side, fixed, asked }.into())
        }
        _ => Ok(fixed.or(asked)),
    }
}

fn affine(options: &OnnxOptions, channels: usize) -> Result<Vec<(f32, f32)>> {
    let normalisation = options.normalisation.clone().unwrap_or_else(|| imagenet(channels));
    let pairs = normalisation.affine();
    let scaled: Vec<(f32, f32)> = pairs
        .iter()
        .map(|(factor, shift)| (factor * options.scale, shift * options.scale))
        .collect();
    let whole = scaled.len() == channels && normalisation.deviation.len() == channels;
    if !whole || scaled.iter().any(|(factor, shift)| !factor.is_finite() || !shift.is_finite()) {
        let list =
            |numbers: &[f32]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let (mean, deviation) = (list(&normalisation.mean), list(&normalisation.deviation));
        let value = format!("mean {mean}, deviation {deviation}, times {}", options.scale);
        let reason = "mean and deviation are finite, one a channel, and no deviation is 0";
        return Err(Error::Setting { name: "normalisation", value, reason });
    }
    Ok(scaled)
}
