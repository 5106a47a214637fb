//! Many images at once: decoded on all cores into one buffer, in the order they were given.

use rayon::prelude::*;
use serde::Serialize;

use super::picture::{ImageInput, decode_into};
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
    pub broken: Vec<(usize, String)>,
}

/// Decodes all images on all cores and brings them to one shape. The result is in the order of
/// `inputs` and independent of the number of threads.
pub fn decode_all(inputs: &[ImageInput<'_>], fit: Fit, broken: Broken) -> Result<Images> {
    fit.check()?;
    let length = fit.shape.len();
    let mut pixels = vec![0; inputs.len() * length];
    let decode = |(out, &input): (&mut [u8], &ImageInput<'_>)| decode_into(input, fit, out);
    // A copy in memory is over before another core would have begun.
    let is_copy = |input: &ImageInput<'_>| matches!(input, ImageInput::Pixels { shape, .. } if *shape == fit.shape);
    let outcomes: Vec<Result<()>> = if inputs.iter().all(is_copy) {
        pixels.chunks_exact_mut(length).zip(inputs).map(decode).collect()
    } else {
        pixels.par_chunks_exact_mut(length).zip(inputs).map(decode).collect()
    };
    let mut images = Images { shape: fit.shape, pixels, rows: Vec::new(), broken: Vec::new() };
    for (at, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(()) => {
                let to = images.rows.len() * length;
                if to != at * length {
                    images.pixels.copy_within(at * length..(at + 1) * length, to);
                }
                images.rows.push(at);
            }
            Err(error) if broken == Broken::Fail => return Err(error),
            Err(error) => images.broken.push((at, error.to_string())),
        }
    }
    images.pixels.truncate(images.rows.len() * length);
    Ok(images)
}
