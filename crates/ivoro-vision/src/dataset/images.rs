//! Many images at once: decoded on all cores into one buffer, in the order they were given.

use rayon::prelude::*;
use serde::Serialize;

use super::decode::{ImageInput, decode_into};
use super::photo::Truncated;
use super::unread::Unread;
use crate::error::Result;
use crate::shape::{Fit, Shape};

/// What to do about an image that can't be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Broken {
    /// Stop with an error that names it.
    #[default]
    Fail,
    /// Leave it out and report it.
    Skip,
}

/// How images are decoded that leave a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Decoding {
    /// What to do about an image that can't be decoded.
    pub broken: Broken,
    /// What to do about one that ends too early.
    pub truncated: Truncated,
}

impl From<Broken> for Decoding {
    fn from(broken: Broken) -> Self {
        Self { broken, ..Self::default() }
    }
}

/// Decoded images of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Height, width and channels of every image.
    pub shape: Shape,
    /// Pixels in the order image, height, width, channel.
    pub pixels: Vec<u8>,
    /// For each image here, its place among those asked for: the input of [`decode_all`], the row
    /// of the split in [`Split::read`](super::Split::read). Broken ones are missing.
    pub rows: Vec<usize>,
    /// Places left out under [`Broken::Skip`], each with a sentence that names file and reason.
    pub broken: Vec<(usize, Unread)>,
    /// Places of images that end too early and were taken under [`Truncated::Take`].
    pub truncated: Vec<usize>,
}

/// Decodes all images on all cores and brings them to one shape. The result is in the order of
/// `inputs` and independent of the number of threads.
pub fn decode_all(
    inputs: &[ImageInput<'_>],
    fit: Fit,
    decoding: impl Into<Decoding>,
) -> Result<Images> {
    fit.check()?;
    let Decoding { broken, truncated } = decoding.into();
    let length = fit.shape.len();
    let mut pixels = vec![0; inputs.len() * length];
    let decode =
        |(out, &input): (&mut [u8], &ImageInput<'_>)| decode_into(input, fit, truncated, out);
    // A copy in memory is over before another core would have begun.
    let is_copy = |input: &ImageInput<'_>| matches!(input, ImageInput::Pixels { shape, .. } if *shape == fit.shape);
    let outcomes: Vec<Result<bool>> = if inputs.iter().all(is_copy) {
        pixels.chunks_exact_mut(length).zip(inputs).map(decode).collect()
    } else {
        pixels.par_chunks_exact_mut(length).zip(inputs).map(decode).collect()
    };
    let (rows, cut) = (Vec::new(), Vec::new());
    let mut images = Images { shape: fit.shape, pixels, rows, broken: Vec::new(), truncated: cut };
    for (at, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(is_whole) => {
                let to = images.rows.len() * length;
                if to != at * length {
                    images.pixels.copy_within(at * length..(at + 1) * length, to);
                }
                images.rows.push(at);
                images.truncated.extend((!is_whole).then_some(at));
            }
            Err(error) if broken == Broken::Fail => return Err(error),
            Err(error) => images.broken.push((at, Unread::from(&error))),
        }
    }
    images.pixels.truncate(images.rows.len() * length);
    Ok(images)
}
