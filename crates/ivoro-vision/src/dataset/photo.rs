//! From the bytes of an image file to pixels.
//!
//! The first bytes say the format, never the name. Pixels come as they are stored, with the orientation that
//! the camera noted and the colour profile, if it says other colours than sRGB. Sixteen bits are rounded
//! to eight. What is transparent is seen on white, as on a page. CMYK becomes RGB by its numbers alone,
//! as Pillow does it. Of an animation the first picture counts.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read, Seek};
use std::path::Path;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};

use super::colour::ToSrgb;
use super::format::{Format, HEAD, READ};
use super::orientation::upright_shape;
use super::picture::Picture;
use super::{jpeg, listing};
use crate::error::{Error, Result};
use crate::shape::{MOST_PIXELS, Shape};

/// Decoders may take this much for themselves, besides the image.
const DECODER_MEMORY: u64 = 1 << 30;
/// The longest file that is brought to memory whole: a JPEG of the most pixels, hardly compressed.
pub(super) const MOST_BYTES: u64 = 1 << 29;

/// What to do about a JPEG that ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Truncated {
    /// It can't be read: half of it would be grey.
    #[default]
    Refuse,
    /// What there is of it is taken, the rest is grey.
    Take,
}

/// The picture in a file, and whether it is whole.
pub(super) fn read(path: &Path, truncated: Truncated) -> Result<(Picture<'static>, bool)> {
    let (mut file, format) = open(path)?;
    match format {
        Format::Known(format) if format != ImageFormat::Jpeg => {
            Ok((load(decoder(file, format, path)?, path)?, true))
        }
        _ => of_bytes(&all(&mut file, path)?, path, truncated),
    }
}

/// The picture in the contents of a file.
pub(super) fn of_bytes(
    bytes: &[u8],
    name: &Path,
    truncated: Truncated,
) -> Result<(Picture<'static>, bool)> {
    match format_of(bytes, name)? {
        Format::Known(ImageFormat::Jpeg) => {
            let is_whole = jpeg::is_whole(bytes);
            if !is_whole && truncated == Truncated::Refuse {
                let found = format!("a JPEG without its end, {} bytes", bytes.len());
                return Err(Error::TruncatedImage { path: name.to_owned(), found });
            }
            let picture = load(decoder(Cursor::new(bytes), ImageFormat::Jpeg, name)?, name)?;
            Ok((picture, is_whole))
        }
        Format::Known(format) => {
            Ok((load(decoder(Cursor::new(bytes), format, name)?, name)?, true))
        }
        _ => Ok((load(heic(bytes, name)?, name)?, true)),
    }
}

/// The shape of the picture in a file, from its header.
pub(super) fn measure(path: &Path) -> Result<Shape> {
    let (mut file, format) = open(path)?;
    match format {
        Format::Known(format) => seen_shape(path, &mut decoder(file, format, path)?),
        _ => seen_shape(path, &mut heic(&all(&mut file, path)?, path)?),
    }
}

/// The shape of the picture in the contents of a file.
pub(super) fn measure_bytes(bytes: &[u8], name: &Path) -> Result<Shape> {
    match format_of(bytes, name)? {
        Format::Known(format) => seen_shape(name, &mut decoder(Cursor::new(bytes), format, name)?),
        _ => seen_shape(name, &mut heic(bytes, name)?),
    }
}

/// Opens a file for reading from its start, and says its format. What is no file is never opened: a pipe would wait
/// for ever.
fn open(path: &Path) -> Result<(BufReader<fs_err::File>, Format)> {
    let metadata = fs_err::metadata(path)?;
    if !metadata.is_file() {
        let found = listing::kind_of(&metadata);
        return Err(Error::NoFile { path: path.to_owned(), found });
    }
    let mut file = BufReader::new(fs_err::File::open(path)?);
    let mut head = Vec::new();
    Read::by_ref(&mut file).take(HEAD as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok((file, format_of(&head, path)?))
}

/// The format of what begins so, if it is one that is read.
fn format_of(head: &[u8], name: &Path) -> Result<Format> {
    let head = &head[..head.len().min(HEAD)];
    let Some(format) = Format::of_file(head, name) else {
        let found = if head.is_empty() { "an empty file" } else { "something else" };
        return Err(Error::broken(name, &format!("expected {READ}, found {found}")));
    };
    match format.unread() {
        Some(found) => Err(Error::OtherFormat { path: name.to_owned(), found, read: READ }),
        None => Ok(format),
    }
}

/// All of a file that is not too long.
fn all(file: &mut BufReader<fs_err::File>, path: &Path) -> Result<Vec<u8>> {
    let length = file.get_ref().metadata()?.len();
    if length > MOST_BYTES {
        let (path, what) = (path.to_owned(), "the file".to_owned());
        return Err(Error::TooLarge { path, what, bytes: length, most: MOST_BYTES });
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a decoder said.
fn refused(name: &Path, error: &ImageError) -> Error {
    match error {
        ImageError::IoError(cause) if cause.kind() == ErrorKind::UnexpectedEof => {
            let found = "its data end too early".to_owned();
            Error::TruncatedImage { path: name.to_owned(), found }
        }
        error => Error::broken(name, error),
    }
}

fn decoder<'a, R>(
    file: R,
    format: ImageFormat,
    name: &Path,
) -> Result<impl ImageDecoder + use<'a, R>>
where
    R: BufRead + Seek + 'a,
{
    let mut reader = ImageReader::with_format(file, format);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(DECODER_MEMORY);
    reader.limits(limits);
    reader.into_decoder().map_err(|error| refused(name, &error))
}

/// A decoder of what phones write. It turns pictures itself.
#[cfg(feature = "heic")]
fn heic(bytes: &[u8], name: &Path) -> Result<impl ImageDecoder + use<>> {
    // many images are decoded at once already
    let options = heifer::Options { max_threads: 1, max_pixels: MOST_PIXELS };
    heifer::image_crate::HeifDecoder::from_bytes(bytes, &options)
        .map_err(|error| refused(name, &error))
}

#[cfg(not(feature = "heic"))]
fn heic(_: &[u8], name: &Path) -> Result<image::codecs::png::PngDecoder<Cursor<Vec<u8>>>> {
    Err(Error::OtherFormat { path: name.to_owned(), found: "HEIC", read: READ })
}

fn seen_shape(path: &Path, decoder: &mut impl ImageDecoder) -> Result<Shape> {
    Ok(upright_shape(shape_of(path, decoder)?, orientation_of(decoder)))
}

/// Notes of a camera that can't be read say nothing, as elsewhere.
fn orientation_of(decoder: &mut impl ImageDecoder) -> Orientation {
    decoder.orientation().unwrap_or(Orientation::NoTransforms)
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

fn load(mut decoder: impl ImageDecoder, name: &Path) -> Result<Picture<'static>> {
    let shape = shape_of(name, &decoder)?;
    let orientation = orientation_of(&mut decoder);
    let profile = decoder.icc_profile().ok().flatten().filter(|_| shape.channels == 3);
    let image = DynamicImage::from_decoder(decoder).map_err(|error| refused(name, &error))?;
    let pixels = match (image, shape.channels) {
        (DynamicImage::ImageLuma8(image), _) => image.into_raw(),
        (DynamicImage::ImageRgb8(image), _) => image.into_raw(),
        (image, 1) if image.color().has_alpha() => {
            on_white::<2, 1>(image.into_luma_alpha8().as_raw())
        }
        (image, _) if image.color().has_alpha() => on_white::<4, 3>(image.into_rgba8().as_raw()),
        // A grey image keeps its values: the crate's own conversion is exact between greys.
        (image, 1) => image.into_luma8().into_raw(),
        (image, _) => image.into_rgb8().into_raw(),
    };
    let to_srgb = profile.and_then(|profile| ToSrgb::new(&profile));
    Ok(Picture { shape, pixels: Cow::Owned(pixels), orientation, to_srgb })
}

/// Pixels whose last of `N` channels says how opaque they are, on white and without it.
fn on_white<const N: usize, const M: usize>(pixels: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(pixels.len() / N * M);
    for pixel in pixels.as_chunks::<N>().0 {
        let opaque = u32::from(pixel[M]);
        let seen =
            |&value: &u8| ((u32::from(value) * opaque + 255 * (255 - opaque) + 127) / 255) as u8;
        out.extend(pixel[..M].iter().map(seen));
    }
    out
}
