//! CIFAR-10 and CIFAR-100 as their author publishes them: binary records or Python pickles.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::archive::{Store, names};
use super::pickle::Pickle;
use super::{Dataset, Shape, Split, label};
use crate::error::{Error, Result};

const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };
/// Pixels of one colour of an image.
const PLANE: usize = 32 * 32;
/// Bytes of an image: a plane of red, one of green, one of blue.
const IMAGE: usize = 3 * PLANE;

/// One of the four publications.
#[derive(Debug, PartialEq, Eq)]
struct Edition {
    name: &'static str,
    layout: &'static str,
    train: &'static [&'static str],
    test: &'static str,
    /// The file with the class names.
    names: &'static str,
    classes: usize,
    coding: Coding,
}

#[derive(Debug, PartialEq, Eq)]
enum Coding {
    /// So many label bytes, of which the last counts, then the image.
    Binary { label_bytes: usize },
    /// The keys of the labels and of the class names.
    Pickle { labels: &'static str, names: &'static str },
}

const EDITIONS: [Edition; 4] = [
    Edition {
        name: "cifar-100",
        layout: "CIFAR-100, binary",
        train: &["train.bin"],
        test: "test.bin",
        names: "fine_label_names.txt",
        classes: 100,
        coding: Coding::Binary { label_bytes: 2 },
    },
    Edition {
        name: "cifar-10",
        layout: "CIFAR-10, binary",
        train: &[
            "data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin",
        ],
        test: "test_batch.bin",
        names: "batches.meta.txt",
        classes: 10,
        coding: Coding::Binary { label_bytes: 1 },
    },
    Edition {
        name: "cifar-100",
        layout: "CIFAR-100, Python pickles",
        train: &["train"],
        test: "test",
        names: "meta",
        classes: 100,
        coding: Coding::Pickle { labels: "fine_labels", names: "fine_label_names" },
    },
    Edition {
        name: "cifar-10",
        layout: "CIFAR-10, Python pickles",
        train: &["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"],
        test: "test_batch",
        names: "batches.meta",
        classes: 10,
        coding: Coding::Pickle { labels: "labels", names: "label_names" },
    },
];

impl Edition {
    /// Every file but those of the other editions.
    fn files(&self) -> impl Iterator<Item = &'static str> {
        self.train.iter().copied().chain([self.test, self.names])
    }

    /// A folder with two of its files is meant to be this edition; a missing third is named.
    fn is_in(&self, store: &Store) -> bool {
        self.files().filter(|name| store.has(name)).count() >= 2
    }
}

/// The set in a folder, if there is one.
pub(super) fn open_folder(path: &Path) -> Result<Option<Dataset>> {
    open(Store::folder(path))
}

/// The set in a `.tar.gz`, if there is one.
pub(super) fn open_archive(path: &Path) -> Result<Option<Dataset>> {
    let wanted: Vec<&str> = EDITIONS.iter().flat_map(Edition::files).collect();
    open(Store::tar_gz(path, &wanted)?)
}

fn open(mut store: Store) -> Result<Option<Dataset>> {
    let Some(edition) = EDITIONS.iter().find(|edition| edition.is_in(&store)) else {
        return Ok(None);
    };
    let expected = format!("the class names of {}", edition.layout);
    let bytes = store.take(edition.names, &expected)?;
    let classes = class_names(&store.path(edition.names), &bytes, edition)?;
    let train = part(&mut store, edition.train, edition)?;
    let test = part(&mut store, &[edition.test], edition)?;
    let (name, layout) = (edition.name.to_owned(), edition.layout.to_owned());
    Ok(Some(Dataset { name, layout, classes, train, test, left_out: Vec::new() }))
}

fn class_names(path: &Path, bytes: &[u8], edition: &Edition) -> Result<Vec<String>> {
    let found = match edition.coding {
        Coding::Binary { .. } => names(path, bytes)?,
        Coding::Pickle { names, .. } => Pickle::parse(bytes)
            .and_then(|pickle| pickle.texts(names))
            .map_err(|what| Error::malformed(path, what))?,
    };
    if found.len() != edition.classes {
        let what = format!("expected {} class names, found {}", edition.classes, found.len());
        return Err(Error::malformed(path, what));
    }
    Ok(found)
}

/// Which of the two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cifar {
    /// CIFAR-10.
    Ten,
    /// CIFAR-100, with its fine labels.
    Hundred,
}

/// The images of one file of the binary publication; `path` is named in errors.
pub fn parse_binary(path: &Path, bytes: &[u8], set: Cifar) -> Result<Split> {
    let edition = &EDITIONS[usize::from(set == Cifar::Ten)];
    collect(path, edition, [Ok((path.to_owned(), bytes))])
}

/// The images of one pickle of the Python publication; `path` is named in errors.
pub fn parse_pickle(path: &Path, bytes: &[u8], set: Cifar) -> Result<Split> {
    let edition = &EDITIONS[2 + usize::from(set == Cifar::Ten)];
    collect(path, edition, [Ok((path.to_owned(), bytes))])
}

fn part(store: &mut Store, files: &[&str], edition: &Edition) -> Result<Split> {
    let origin = store.path(files[0]);
    let take = |name: &&str| {
        let bytes = store.take(name, &format!("a part of {}", edition.layout))?;
        Ok((store.path(name), bytes))
    };
    collect(&origin, edition, files.iter().map(take))
}

fn collect<B: AsRef<[u8]>>(
    origin: &Path,
    edition: &Edition,
    files: impl IntoIterator<Item = Result<(PathBuf, B)>>,
) -> Result<Split> {
    let (mut pixels, mut labels, classes) = (Vec::new(), Vec::new(), edition.classes);
    for file in files {
        let (path, bytes) = file?;
        let batch = match edition.coding {
            Coding::Binary { label_bytes } => records(&path, bytes.as_ref(), label_bytes)?,
            Coding::Pickle { labels, .. } => pickled(&path, bytes.as_ref(), labels)?,
        };
        if let Some((row, &label)) = out_of_range(&batch.labels, classes) {
            return Err(Error::LabelRange { path, row, label, classes });
        }
        labels.extend(batch.labels.iter().map(|&label| label as u32));
        append(&mut pixels, &batch.images);
    }
    Split::in_memory(origin, SHAPE, pixels, labels, classes)
}

fn out_of_range(labels: &[i64], classes: usize) -> Option<(usize, &i64)> {
    labels.iter().enumerate().find(|&(_, &label)| !(0..classes as i64).contains(&label))
}

/// Images as three planes each, and their labels.
struct Batch<'a> {
    images: Vec<&'a [u8]>,
    labels: Vec<i64>,
}

fn records<'a>(path: &Path, bytes: &'a [u8], label_bytes: usize) -> Result<Batch<'a>> {
    let record = label_bytes + IMAGE;
    if bytes.is_empty() || !bytes.len().is_multiple_of(record) {
        let found = bytes.len();
        let what = format!("expected records of {record} bytes, found {found} bytes in all");
        return Err(Error::malformed(path, what));
    }
    let records = bytes.chunks_exact(record);
    let (labels, images) =
        records.map(|record| (i64::from(record[label_bytes - 1]), &record[label_bytes..])).unzip();
    Ok(Batch { images, labels })
}

fn pickled<'a>(path: &Path, bytes: &'a [u8], key: &str) -> Result<Batch<'a>> {
    let refuse = |what| Error::malformed(path, what);
    let pickle = Pickle::parse(bytes).map_err(refuse)?;
    let (matrix, labels) =
        (pickle.matrix("data").map_err(refuse)?, pickle.integers(key).map_err(refuse)?);
    if matrix.columns != IMAGE || matrix.rows == 0 {
        let what = format!("data: expected rows of {IMAGE} bytes, found {}", matrix.columns);
        return Err(refuse(what));
    }
    label::check_count(path, labels.len(), matrix.rows)?;
    Ok(Batch { images: matrix.bytes.chunks_exact(IMAGE).collect(), labels })
}

/// Adds images, pixel by pixel instead of plane by plane.
fn append(pixels: &mut Vec<u8>, images: &[&[u8]]) {
    let start = pixels.len();
    pixels.resize(start + images.len() * IMAGE, 0);
    pixels[start..].par_chunks_exact_mut(IMAGE).zip(images).for_each(|(out, image)| {
        let (red, rest) = image.split_at(PLANE);
        let (green, blue) = rest.split_at(PLANE);
        for (((out, &red), &green), &blue) in
            out.as_chunks_mut::<3>().0.iter_mut().zip(red).zip(green).zip(blue)
        {
            *out = [red, green, blue];
        }
    });
}
