//! One part of a data set: labels, and images in memory or in files.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::decode::{ImageInput, measure};
use super::images::{Broken, Images, decode_all};
use super::label;
use crate::error::{Error, Result};
use crate::shape::{Fit, Shape};

/// Images read at once to find out which can be.
const READ_AT_ONCE: usize = 512;

/// Images with labels.
#[derive(Clone, Debug)]
pub struct Split {
    labels: Vec<u32>,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// Pixels in the order row, height, width, channel.
    Memory { origin: PathBuf, shape: Shape, pixels: Vec<u8> },
    /// Files below `root`, decoded when they are asked for.
    Files { root: PathBuf, paths: Vec<PathBuf> },
}

impl Split {
    /// Images in memory: `pixels` in the order row, height, width, channel, one label per row, each
    /// below `classes`. `origin` is named in errors.
    pub fn in_memory(
        origin: &Path,
        shape: Shape,
        pixels: Vec<u8>,
        labels: Vec<u32>,
        classes: usize,
    ) -> Result<Self> {
        let images = if shape.is_valid() { pixels.len() / shape.len() } else { 0 };
        if !shape.is_valid() || images * shape.len() != pixels.len() {
            let what = format!("{} bytes of pixels are no images of {shape}", pixels.len());
            return Err(Error::malformed(origin, what));
        }
        label::check_count(origin, labels.len(), images)?;
        label::check(origin, &labels, classes)?;
        let origin = origin.to_owned();
        Ok(Self { labels, source: Source::Memory { origin, shape, pixels } })
    }

    /// Images in files below `root`, one label per file.
    pub(super) fn in_files(root: &Path, paths: Vec<PathBuf>, labels: Vec<u32>) -> Self {
        Self { labels, source: Source::Files { root: root.to_owned(), paths } }
    }

    /// Some of the images, with other labels.
    pub(super) fn select(&self, rows: &[usize], labels: Vec<u32>) -> Self {
        let source = match &self.source {
            Source::Memory { origin, shape, pixels } => {
                let image = |row: usize| &pixels[row * shape.len()..(row + 1) * shape.len()];
                let pixels = rows.iter().flat_map(|&row| image(row)).copied().collect();
                Source::Memory { origin: origin.clone(), shape: *shape, pixels }
            }
            Source::Files { root, paths } => {
                let paths = rows.iter().map(|&row| paths[row].clone()).collect();
                Source::Files { root: root.clone(), paths }
            }
        };
        Self { labels, source }
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The class of each image.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The shape that all images share; none for files, whose sizes are known one by one.
    pub fn shape(&self) -> Option<Shape> {
        match &self.source {
            Source::Memory { shape, .. } => Some(*shape),
            Source::Files { .. } => None,
        }
    }

    /// All pixels in the order row, height, width, channel, if the images are in memory.
    pub fn pixels(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Memory { pixels, .. } => Some(pixels),
            Source::Files { .. } => None,
        }
    }

    /// The file of an image, if the images are in files.
    pub fn path(&self, row: usize) -> Option<&Path> {
        match &self.source {
            Source::Memory { .. } => None,
            Source::Files { paths, .. } => paths.get(row).map(PathBuf::as_path),
        }
    }

    /// The shape of one image; of a file only the header is read.
    pub fn measure(&self, row: usize) -> Result<Shape> {
        self.check(row)?;
        match &self.source {
            Source::Memory { shape, .. } => Ok(*shape),
            Source::Files { paths, .. } => measure(ImageInput::Path(&paths[row])),
        }
    }

    /// Those of `rows` that can be read; of the others, `left_out` is told why. Where broken images
    /// stop the work anyway, or none can be broken, they are not looked at.
    pub fn readable(
        &self,
        rows: Vec<usize>,
        fit: Fit,
        broken: Broken,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<usize>> {
        if broken == Broken::Fail || self.pixels().is_some() {
            return Ok(rows);
        }
        let mut readable = Vec::with_capacity(rows.len());
        for part in rows.chunks(READ_AT_ONCE) {
            let images = self.read(part, fit, Broken::Skip)?;
            left_out.extend(images.broken.iter().map(|(_, unread)| unread.to_string()));
            readable.extend(images.rows);
        }
        Ok(readable)
    }

    /// Reads every image once, so that one that can't be read is found before long work; nothing
    /// is to be found where such images are left out anyway, or where all are in memory.
    pub fn check_all(&self, fit: Fit, broken: Broken) -> Result<()> {
        if broken == Broken::Skip || self.pixels().is_some() {
            return Ok(());
        }
        let rows: Vec<usize> = (0..self.len()).collect();
        rows.chunks(READ_AT_ONCE).try_for_each(|part| self.read(part, fit, broken).map(|_| ()))
    }

    /// The images of `rows` in that order, brought to one shape. Files are decoded on all cores.
    pub fn read(&self, rows: &[usize], fit: Fit, broken: Broken) -> Result<Images> {
        rows.iter().try_for_each(|&row| self.check(row))?;
        let inputs: Vec<ImageInput<'_>> = rows.iter().map(|&row| self.input(row)).collect();
        let mut images = decode_all(&inputs, fit, broken)?;
        images.rows.iter_mut().for_each(|at| *at = rows[*at]);
        images.broken.iter_mut().for_each(|(at, _)| *at = rows[*at]);
        images.truncated.iter_mut().for_each(|at| *at = rows[*at]);
        Ok(images)
    }

    fn input(&self, row: usize) -> ImageInput<'_> {
        match &self.source {
            Source::Memory { origin, shape, pixels } => {
                let pixels = &pixels[row * shape.len()..(row + 1) * shape.len()];
                ImageInput::Pixels { name: origin, shape: *shape, pixels }
            }
            Source::Files { paths, .. } => ImageInput::Path(&paths[row]),
        }
    }

    fn check(&self, row: usize) -> Result<()> {
        let rows = self.len();
        if row < rows { Ok(()) } else { Err(Error::Row { row, rows }) }
    }

    /// Adds labels and images to the hash of a data set.
    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) -> Result<()> {
        hash_count(hasher, self.len());
        for label in &self.labels {
            hasher.update(&label.to_le_bytes());
        }
        match &self.source {
            Source::Memory { shape, pixels, .. } => {
                hasher.update(b"pixels");
                for side in [shape.height, shape.width, shape.channels] {
                    hash_count(hasher, side);
                }
                hasher.update_rayon(pixels);
            }
            Source::Files { root, paths } => {
                hasher.update(b"files");
                let contents: Vec<blake3::Hash> =
                    paths.par_iter().map(|path| Ok(hash_file(path)?)).collect::<Result<_>>()?;
                for (path, content) in paths.iter().zip(&contents) {
                    hash_bytes(hasher, below(root, path).as_bytes());
                    hasher.update(content.as_bytes());
                }
            }
        }
        Ok(())
    }
}

/// The path below `root`, with `/` between its parts on every system.
fn below(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

fn hash_file(path: &Path) -> std::io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(fs_err::File::open(path)?)?;
    Ok(hasher.finalize())
}

/// A length in front of what follows keeps two different sets from hashing the same bytes.
pub(super) fn hash_count(hasher: &mut blake3::Hasher, count: usize) {
    hasher.update(&(count as u64).to_le_bytes());
}

pub(super) fn hash_bytes(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hash_count(hasher, bytes.len());
    hasher.update(bytes);
}
