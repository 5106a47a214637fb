//! Data sets of images as people have them, read as one type.
//!
//! [`Dataset::open`] knows the layout by what lies there. Sets that come as arrays are held in
//! memory; sets that come as image files are lists of paths, and [`Split::read`] decodes the rows
//! asked for on all cores.

mod archive;
pub mod cifar;
mod colour;
mod decode;
mod folder;
mod format;
pub mod idx;
mod images;
mod jpeg;
mod label;
mod listing;
pub mod npz;
mod orientation;
mod photo;
pub mod photos;
mod pickle;
mod picture;
mod split;
mod tiny;
mod unread;
mod zipped;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub use decode::{ImageInput, decode, decode_bytes, measure};
use format::Format;
use image::ImageFormat;
pub use images::{Broken, Decoding, Images, decode_all};
use ivoro::random::permutation;
pub use photo::Truncated;
pub use photos::{ClassFrom, Photo, Photos};
pub use split::Split;
pub use unread::Unread;
pub use zipped::Archive;

use crate::error::{Error, Result};
pub use crate::shape::{Fit, How, Shape};

/// Images with labels, divided into a train and a test part.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// A short name: that of a known set, or of the folder or file.
    pub name: String,
    /// Which layout was recognised, in words.
    pub layout: String,
    /// Class names; a label is an index into them.
    pub classes: Vec<String>,
    /// What is learned from.
    pub train: Split,
    /// What is asked about.
    pub test: Split,
    /// Files in class folders that are no images, left out under [`Broken::Skip`].
    pub left_out: Vec<PathBuf>,
}

/// How to open a data set, beyond what it says of itself.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The share of each class that becomes the test part of a `class/*` folder.
    pub test_share: f64,
    /// The seed of that division.
    pub seed: u64,
    /// What to do about a file in a class folder that is no image.
    pub broken: Broken,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { test_share: 0.2, seed: 0, broken: Broken::Fail }
    }
}

impl Dataset {
    /// Opens the data set at `path`, a folder, an archive or an array file.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        let looked_for = if path.is_dir() { FOLDERS } else { FILES };
        if !path.exists() {
            let (path, expected) = (path.to_owned(), "a data set of images".to_owned());
            return Err(Error::Missing { path, expected });
        }
        let found = if path.is_dir() { open_folder(path, options) } else { open_file(path) }?;
        let looked_for = looked_for.to_owned();
        found.ok_or_else(|| Error::UnknownLayout { path: path.to_owned(), looked_for })
    }

    /// Opens a data set of a layout that is more than class folders, if there is one at `path`.
    pub fn open_known(path: &Path, options: &OpenOptions) -> Result<Option<Self>> {
        if path.is_dir() { open_known_folder(path, options) } else { open_file(path) }
    }

    /// The training images of some classes alone, `share` of each class as the test part: a data
    /// set to choose settings on. Classes stand in the order given, images are drawn by the seed.
    #[must_use]
    pub fn rehearsal(&self, classes: &[u32], share: f64, seed: u64) -> Self {
        let mut parts = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
        let order = permutation(seed, self.train.len());
        for (place, &class) in classes.iter().enumerate() {
            let of_class = |&&row: &&usize| self.train.labels()[row] == class;
            let rows: Vec<usize> = order.iter().filter(of_class).copied().collect();
            let held = (rows.len() as f64 * share).round() as usize;
            let held = held.min(rows.len().saturating_sub(1));
            for (at, row) in rows.into_iter().enumerate() {
                let (rows, labels) = &mut parts[usize::from(at < held)];
                rows.push(row);
                labels.push(place as u32);
            }
        }
        let [train, test] = parts.map(|(rows, labels)| self.train.select(&rows, labels));
        Self {
            name: self.name.clone(),
            layout: format!("{} of its classes, training images alone", classes.len()),
            classes: classes.iter().map(|&class| self.classes[class as usize].clone()).collect(),
            train,
            test,
            left_out: Vec::new(),
        }
    }

    /// A name for exactly these images and labels, 64 hexadecimal digits.
    ///
    /// It is the BLAKE3 hash of the class names and of both parts: shape, labels and pixels of
    /// sets in memory; labels, paths below the set's folder and file contents of sets of files.
    /// Where the set lies on the disk does not matter.
    pub fn identity(&self) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        split::hash_count(&mut hasher, self.classes.len());
        for class in &self.classes {
            split::hash_bytes(&mut hasher, class.as_bytes());
        }
        self.train.hash(&mut hasher)?;
        self.test.hash(&mut hasher)?;
        Ok(hasher.finalize().to_hex().to_string())
    }
}

/// Whether features are to be read from `path`, and not images. The name decides; of a `.npz`, which
/// may hold either, the headers of its arrays do. Nothing is unpacked, so this is fast whatever the
/// size of the file.
pub fn is_features_file(path: &Path) -> bool {
    let extension = path.extension().map(OsStr::to_ascii_lowercase).unwrap_or_default();
    match extension.to_str() {
        _ if path.is_dir() => false,
        Some("gz" | "tgz") => false,
        Some("npz") => !npz::holds_images(path),
        _ => !idx::is_called_so(path),
    }
}

/// Whether there are images at `path`: a folder, a file of images, an archive of photos, or a photo. What its
/// first bytes say counts, or else its name. `-` is a list of photos.
pub fn is_images(path: &Path) -> bool {
    if path.as_os_str() == "-" || path.is_dir() || !is_features_file(path) {
        return true;
    }
    let head = if path.is_file() { photos::head_of(path).unwrap_or_default() } else { Vec::new() };
    let is_npz = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("npz"));
    let is_archive = zipped::is_archive(&head) && !is_npz;
    is_archive || Format::of_file(&head, path).is_some() || ImageFormat::from_path(path).is_ok()
}

/// The layouts of folders, for a message.
const FOLDERS: &str = "CIFAR's batches, idx files (train-images-idx3-ubyte), TinyImageNet, \
    train/CLASS/IMAGE with test/CLASS/IMAGE, or CLASS/IMAGE";
/// The layouts of files, for a message.
const FILES: &str = "CIFAR's .tar.gz, an .npz with train_images and test_images, or an idx file \
    (train-images-idx3-ubyte)";

fn open_known_folder(path: &Path, options: &OpenOptions) -> Result<Option<Dataset>> {
    if let Some(found) = cifar::open_folder(path)? {
        return Ok(Some(found));
    }
    if let Some(found) = idx::open_folder(path)? {
        return Ok(Some(found));
    }
    tiny::open_folder(path, options)
}

fn open_folder(path: &Path, options: &OpenOptions) -> Result<Option<Dataset>> {
    if let Some(found) = open_known_folder(path, options)? {
        return Ok(Some(found));
    }
    if let Some(found) = folder::open_split(path, options)? {
        return Ok(Some(found));
    }
    folder::open_classes(path, options)
}

fn open_file(path: &Path) -> Result<Option<Dataset>> {
    let name = listing::name_of(path).to_ascii_lowercase();
    let ends_with = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if ends_with(&[".tar.gz", ".tgz"]) {
        return cifar::open_archive(path);
    }
    if ends_with(&[".npz"]) {
        return npz::open(path).map(Some);
    }
    idx::open_file(path)
}
