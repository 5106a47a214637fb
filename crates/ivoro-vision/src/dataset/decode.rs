//! An image, wherever it comes from, as pixels of the shape asked for.

use std::borrow::Cow;
use std::path::Path;

use image::metadata::Orientation;

use super::photo::{self, Truncated};
use super::picture::Picture;
use super::zipped::Archive;
use crate::error::{Error, Result};
use crate::shape::{Fit, Shape};

/// One image, wherever it comes from.
#[derive(Clone, Copy, Debug)]
pub enum ImageInput<'a> {
    /// An image file.
    Path(&'a Path),
    /// The contents of an image file. The format is read from the bytes, never from the name.
    Bytes {
        /// Stands for the file in messages.
        name: &'a Path,
        /// The whole file.
        bytes: &'a [u8],
    },
    /// An image file in a zip archive.
    Zipped {
        /// Stands for the file in messages.
        name: &'a Path,
        /// The archive.
        archive: &'a Archive,
        /// Its number there.
        entry: usize,
    },
    /// An image that is decoded already.
    Pixels {
        /// Stands for the image in messages.
        name: &'a Path,
        /// Its height, width and channels.
        shape: Shape,
        /// Its pixels in the order height, width, channel.
        pixels: &'a [u8],
    },
}

/// The image at `path`, brought to a shape: pixels in the order height, width, channel.
pub fn decode(path: &Path, fit: Fit) -> Result<Vec<u8>> {
    decode_one(ImageInput::Path(path), fit)
}

/// The image that `bytes`, the contents of an image file, hold; `name` stands for the file in
/// messages. The result is that of [`decode`] for a file with these contents.
pub fn decode_bytes(bytes: &[u8], name: &Path, fit: Fit) -> Result<Vec<u8>> {
    decode_one(ImageInput::Bytes { name, bytes }, fit)
}

fn decode_one(input: ImageInput<'_>, fit: Fit) -> Result<Vec<u8>> {
    fit.check()?;
    let mut out = vec![0; fit.shape.len()];
    decode_into(input, fit, Truncated::Refuse, &mut out)?;
    Ok(out)
}

/// Decodes an image to `out`; says whether it is whole.
pub(super) fn decode_into(
    input: ImageInput<'_>,
    fit: Fit,
    truncated: Truncated,
    out: &mut [u8],
) -> Result<bool> {
    let (name, (picture, is_whole)) = match input {
        ImageInput::Path(path) => (path, photo::read(path, truncated)?),
        ImageInput::Bytes { name, bytes } => (name, photo::of_bytes(bytes, name, truncated)?),
        ImageInput::Zipped { name, archive, entry } => {
            (name, photo::of_bytes(&archive.read(entry, name)?, name, truncated)?)
        }
        ImageInput::Pixels { name, shape, pixels } => {
            if !shape.is_valid() || pixels.len() != shape.len() {
                let what = format!("{} bytes of pixels are no image of {shape}", pixels.len());
                return Err(Error::malformed(name, what));
            }
            let orientation = Orientation::NoTransforms;
            let pixels = Cow::Borrowed(pixels);
            (name, (Picture { shape, pixels, orientation, to_srgb: None }, true))
        }
    };
    picture.fit(name, fit, out)?;
    Ok(is_whole)
}

/// The shape of an image the right way up; of a file as little as possible is read.
pub fn measure(input: ImageInput<'_>) -> Result<Shape> {
    match input {
        ImageInput::Path(path) => photo::measure(path),
        ImageInput::Bytes { name, bytes } => photo::measure_bytes(bytes, name),
        ImageInput::Zipped { name, archive, entry } => {
            photo::measure_bytes(&archive.read(entry, name)?, name)
        }
        ImageInput::Pixels { shape, .. } => Ok(shape),
    }
}
