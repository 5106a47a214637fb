//! One image: brought to a shape, the right way up, in the channels and colours asked for.
//!
//! Where there is a choice, it is Pillow's: grey is the weighted sum of ITU-R 601. The bilinear filter widens
//! when an image shrinks, as Pillow's and torchvision's (`antialias=True`) does. Colours and orientation
//! are settled after an image has shrunk: of 12 megapixels few are left then, and values differ by
//! one step at most.

use std::borrow::Cow;
use std::path::Path;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::metadata::Orientation;

use super::colour::ToSrgb;
use super::orientation::{is_transposed, upright, upright_shape};
use crate::error::{Error, Result};
use crate::shape::{Fit, How, Shape};

impl Fit {
    pub(super) fn check(&self) -> Result<()> {
        let value = format!("{}×{}×{}", self.shape.height, self.shape.width, self.shape.channels);
        if !self.shape.is_valid() {
            let reason = "an image has at least one pixel, at most 2^27, and 1 or 3 channels";
            return Err(Error::Setting { name: "shape", value, reason });
        }
        if let How::ResizeThenCentreCrop { resize } = self.how
            && resize < self.shape.height.max(self.shape.width)
        {
            let (name, value) = ("resize", resize.to_string());
            let reason = "the centre that is cut out can't be larger than the resized image";
            return Err(Error::Setting { name, value, reason });
        }
        Ok(())
    }
}

/// Pixels in the order height, width, channel, as they are stored.
pub(super) struct Picture<'a> {
    pub(super) shape: Shape,
    pub(super) pixels: Cow<'a, [u8]>,
    /// How they come the right way up.
    pub(super) orientation: Orientation,
    /// How their colours become those of sRGB, if they are others.
    pub(super) to_srgb: Option<ToSrgb>,
}

impl Picture<'_> {
    /// Writes the picture, brought to the shape asked for, to `out`.
    pub(super) fn fit(self, path: &Path, fit: Fit, out: &mut [u8]) -> Result<()> {
        let own = upright_shape(self.shape, self.orientation);
        if own == fit.shape && !matches!(fit.how, How::ResizeThenCentreCrop { .. }) {
            out.copy_from_slice(&self.settled().pixels);
            return Ok(());
        }
        let Shape { height, width, channels } = fit.shape;
        match fit.how {
            How::Exact => {
                let (expected, found) = (fit.shape, own);
                return Err(Error::Mixed { path: path.to_owned(), expected, found });
            }
            How::Resize => {
                let resized = self.with_channels(channels).resized(path, height, width)?;
                out.copy_from_slice(&resized.pixels);
            }
            How::ResizeThenCentreCrop { resize } => {
                let (height, width) = shorter_side_to(own, resize);
                if !(Shape { height, width, channels }).is_valid() {
                    let reason = format!("its longer side would be {}", height.max(width));
                    return Err(Error::broken(path, &reason));
                }
                let resized = self.with_channels(channels).resized(path, height, width)?;
                resized.centre(fit.shape, out);
            }
        }
        Ok(())
    }

    /// The same in colours of sRGB.
    fn in_srgb(mut self) -> Self {
        if let Some(to_srgb) = self.to_srgb.take()
            && let Some(pixels) = to_srgb.apply(&self.pixels)
        {
            self.pixels = Cow::Owned(pixels);
        }
        self
    }

    /// The same in colours of sRGB and the right way up.
    fn settled(self) -> Self {
        let mut picture = self.in_srgb();
        if picture.orientation != Orientation::NoTransforms {
            let Self { shape, orientation, .. } = picture;
            picture.pixels = Cow::Owned(upright(&picture.pixels, shape, orientation));
            picture.shape = upright_shape(shape, orientation);
            picture.orientation = Orientation::NoTransforms;
        }
        picture
    }

    fn with_channels(self, channels: usize) -> Self {
        if self.shape.channels == channels {
            return self;
        }
        let picture = self.in_srgb();
        let pixels: Vec<u8> = if channels == 3 {
            picture.pixels.iter().flat_map(|&grey| [grey; 3]).collect()
        } else {
            picture.pixels.as_chunks::<3>().0.iter().copied().map(grey).collect()
        };
        let shape = Shape { channels, ..picture.shape };
        Self { shape, pixels: Cow::Owned(pixels), ..picture }
    }

    /// The photo the right way up, in colours of sRGB, with this height and width.
    fn resized(self, path: &Path, height: usize, width: usize) -> Result<Self> {
        let is_turned = is_transposed(self.orientation);
        let (height, width) = if is_turned { (width, height) } else { (height, width) };
        if (height, width) == (self.shape.height, self.shape.width) {
            return Ok(self.settled());
        }
        let Shape { height: rows, width: columns, channels } = self.shape;
        let pixel = if channels == 1 { PixelType::U8 } else { PixelType::U8x3 };
        let from = ImageRef::new(columns as u32, rows as u32, &self.pixels, pixel);
        let from = from.map_err(|error| Error::broken(path, &error))?;
        let mut to = Image::new(width as u32, height as u32, pixel);
        let filter = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
        Resizer::new()
            .resize(&from, &mut to, &filter)
            .map_err(|error| Error::broken(path, &error))?;
        let shape = Shape { height, width, channels };
        Ok(Self { shape, pixels: Cow::Owned(to.into_vec()), ..self }.settled())
    }

    /// Cuts the centre out; a spare line goes to the side that `round` gives it in Python.
    fn centre(&self, wanted: Shape, out: &mut [u8]) {
        let half = |spare: usize| spare / 2 + usize::from(spare % 4 == 3);
        let top = half(self.shape.height - wanted.height);
        let left = half(self.shape.width - wanted.width) * wanted.channels;
        let (line, from) = (wanted.width * wanted.channels, self.shape.width * wanted.channels);
        for (at, out) in out.chunks_exact_mut(line).enumerate() {
            let start = (top + at) * from + left;
            out.copy_from_slice(&self.pixels[start..start + line]);
        }
    }
}

/// The size with the shorter side at `side`, the other in proportion, rounded down.
fn shorter_side_to(Shape { height, width, .. }: Shape, side: usize) -> (usize, usize) {
    if height <= width { (side, side * width / height) } else { (side * height / width, side) }
}

/// Brightness after ITU-R 601, in sixteen-bit fractions as Pillow has them.
fn grey([red, green, blue]: [u8; 3]) -> u8 {
    ((u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471 + 0x8000) >> 16)
        as u8
}
