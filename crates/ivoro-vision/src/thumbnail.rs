//! Small copies of photos, for pages.

use std::path::Path;

use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;

use crate::dataset::{Fit, How, Shape, decode};
use crate::error::{Error, Result};

/// Quality of the copies, out of 100: artefacts are not seen at this size.
const QUALITY: u8 = 80;
/// The largest side.
const MOST: usize = 1024;

/// The centre of a photo as a square JPEG with sides of so many pixels. Nothing that the camera noted
/// comes along, such as place and time.
pub fn jpeg(path: &Path, side: usize) -> Result<Vec<u8>> {
    let side = side.clamp(1, MOST);
    let shape = Shape { height: side, width: side, channels: 3 };
    let pixels = decode(path, Fit { shape, how: How::ResizeThenCentreCrop { resize: side } })?;
    let mut out = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut out, QUALITY);
    encoder
        .encode(&pixels, side as u32, side as u32, ExtendedColorType::Rgb8)
        .map_err(|error| Error::broken(path, &error))?;
    Ok(out)
}
