//! One image: decoded, converted to the channels asked for and brought to a shape.
//!
//! Where there is a choice, it is Pillow's: an alpha channel is dropped, grey is the weighted sum
//! of ITU-R 601, and the orientation noted by a camera is not applied. Sixteen bits are rounded
//! to eight. The bilinear filter widens when an image shrinks, as Pillow's and torchvision's
//! (`antialias=True`) does.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::path::Path;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::{DynamicImage, ImageDecoder, ImageReader};

use crate::error::{Error, Result};
use crate::shape::{Fit, How, MOST_PIXELS, Shape};

/// Decoders may take this much for themselves, besides the image.
const DECODER_MEMORY: u64 = 1 << 30;

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

/// Pixels in the order height, width, channel.
struct Picture<'a> {
    shape: Shape,
    pixels: Cow<'a, [u8]>,
}

impl Picture<'_> {
    /// Writes the picture, brought to the shape asked for, to `out`.
    fn fit(self, path: &Path, fit: Fit, out: &mut [u8]) -> Result<()> {
        if self.shape == fit.shape && !matches!(fit.how, How::ResizeThenCentreCrop { .. }) {
            out.copy_from_slice(&self.pixels);
            return Ok(());
        }
        let Shape { height, width, channels } = fit.shape;
        match fit.how {
            How::Exact => {
                let (expected, found) = (fit.shape, self.shape);
                return Err(Error::Mixed { path: path.to_owned(), expected, found });
            }
            How::Resize => {
                let resized = self.with_channels(channels).resized(path, height, width)?;
                out.copy_from_slice(&resized.pixels);
            }
            How::ResizeThenCentreCrop { resize } => {
                let (height, width) = self.shorter_side_to(resize);
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

    fn with_channels(self, channels: usize) -> Self {
        let pixels: Vec<u8> = match (self.shape.channels, channels) {
            (1, 3) => self.pixels.iter().flat_map(|&grey| [grey; 3]).collect(),
            (3, 1) => self.pixels.as_chunks::<3>().0.iter().copied().map(grey).collect(),
            _ => return self,
        };
        Self { shape: Shape { channels, ..self.shape }, pixels: Cow::Owned(pixels) }
    }

    fn resized(self, path: &Path, height: usize, width: usize) -> Result<Self> {
        if (height, width) == (self.shape.height, self.shape.width) {
            return Ok(self);
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
        Ok(Self { shape, pixels: Cow::Owned(to.into_vec()) })
    }

    /// The size with the shorter side at `side`, the other in proportion, rounded down.
    fn shorter_side_to(&self, side: usize) -> (usize, usize) {
        let Shape { height, width, .. } = self.shape;
        if height <= width { (side, side * width / height) } else { (side * height / width, side) }
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

/// Brightness after ITU-R 601, in sixteen-bit fractions as Pillow has them.
fn grey([red, green, blue]: [u8; 3]) -> u8 {
    ((u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471 + 0x8000) >> 16)
        as u8
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
    decode_into(input, fit, &mut out)?;
    Ok(out)
}

pub(super) fn decode_into(input: ImageInput<'_>, fit: Fit, out: &mut [u8]) -> Result<()> {
    match input {
        ImageInput::Path(path) => load(open(path)?, path)?.fit(path, fit, out),
        ImageInput::Bytes { name, bytes } => load(Cursor::new(bytes), name)?.fit(name, fit, out),
        ImageInput::Pixels { name, shape, pixels } => {
            if !shape.is_valid() || pixels.len() != shape.len() {
                let what = format!("{} bytes of pixels are no image of {shape}", pixels.len());
                return Err(Error::malformed(name, what));
            }
            Picture { shape, pixels: pixels.into() }.fit(name, fit, out)
        }
    }
}

/// The shape of the image at `path`, from its header.
pub(super) fn measure(path: &Path) -> Result<Shape> {
    shape_of(path, &decoder(open(path)?, path)?)
}

/// Read as it is decoded: a large file that is no image never comes to memory.
fn open(path: &Path) -> Result<BufReader<fs_err::File>> {
    Ok(BufReader::new(fs_err::File::open(path)?))
}

/// The decoder of the format that the first bytes show.
fn decoder<'a, R>(file: R, name: &'a Path) -> Result<impl ImageDecoder>
where
    R: BufRead + Seek + 'a,
{
    let mut reader = ImageReader::new(file).with_guessed_format()?;
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(DECODER_MEMORY);
    reader.limits(limits);
    reader.into_decoder().map_err(|error| Error::broken(name, &error))
}

fn shape_of(path: &Path, decoder: &impl ImageDecoder) -> Result<Shape> {
    let (width, height) = decoder.dimensions();
    let channels = if decoder.color_type().has_color() { 3 } else { 1 };
    let shape = Shape { height: height as usize, width: width as usize, channels };
    if shape.is_valid() {
        return Ok(shape);
    }
    let (most, bytes) = (MOST_PIXELS * 3, u64::from(width) * u64::from(height) * 3);
    let what = format!("an image of {width}×{height}");
    Err(Error::TooLarge { path: path.to_owned(), what, bytes, most })
}

fn load<'a, R>(file: R, name: &'a Path) -> Result<Picture<'static>>
where
    R: BufRead + Seek + 'a,
{
    let decoder = decoder(file, name)?;
    let shape = shape_of(name, &decoder)?;
    let image = DynamicImage::from_decoder(decoder).map_err(|error| Error::broken(name, &error))?;
    let pixels = match (image, shape.channels) {
        (DynamicImage::ImageLuma8(image), _) => image.into_raw(),
        (DynamicImage::ImageRgb8(image), _) => image.into_raw(),
        // A grey image keeps its values: the crate's own conversion is exact between greys.
        (image, 1) => image.into_luma8().into_raw(),
        (image, _) => image.into_rgb8().into_raw(),
    };
    Ok(Picture { shape, pixels: Cow::Owned(pixels) })
}
