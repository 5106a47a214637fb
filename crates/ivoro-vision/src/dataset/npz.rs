//! NumPy archives of images, as MedMNIST and Keras publish them.

use std::collections::BTreeMap;
use std::path::Path;

use ivoro_io::features::{
    IntegerArray, Integers, read_array_headers, read_integers, read_integers_bytes,
};

use super::archive::{names, read_file};
use super::{Dataset, Shape, Split, label};
use crate::error::{Error, Result};

/// Names of images and labels: MedMNIST's, then Keras's.
const TRAIN: [[&str; 2]; 2] = [["train_images", "train_labels"], ["x_train", "y_train"]];
/// The first pair that is there becomes the test part.
const TEST: [[&str; 2]; 3] =
    [["test_images", "test_labels"], ["x_test", "y_test"], ["val_images", "val_labels"]];

type Arrays = BTreeMap<String, IntegerArray>;

/// The set in the archive at `path`.
pub(super) fn open(path: &Path) -> Result<Dataset> {
    let beside = path.with_extension("classes.txt");
    let classes = if beside.is_file() { Some(names(&beside, &read_file(&beside)?)?) } else { None };
    read(path, classes, |wanted| Ok(read_integers(path, wanted)?))
}

/// Whether the archive at `path` holds images, by the headers of its arrays. Features go by some of
/// the same names, but they are no bytes and have two axes.
pub(super) fn holds_images(path: &Path) -> bool {
    let of_images = |pairs: &[[&str; 2]]| {
        let names: Vec<&str> = pairs.iter().map(|[images, _]| *images).collect();
        let headers = read_array_headers(path, &names).unwrap_or_default();
        let first = names.iter().find_map(|name| headers.get(*name));
        first.is_some_and(|found| found.holds_bytes && matches!(found.shape.len(), 3 | 4))
    };
    of_images(&TRAIN) && of_images(&TEST)
}

/// The set in an archive in memory; `name` stands for the file in messages.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Dataset> {
    read(Path::new(name), None, |wanted| Ok(read_integers_bytes(name, bytes, wanted)?))
}

fn read(
    path: &Path,
    classes: Option<Vec<String>>,
    arrays: impl Fn(&[&str]) -> Result<Arrays>,
) -> Result<Dataset> {
    let (train_name, (train_shape, train_pixels), train_labels) = part(path, &TRAIN, &arrays)?;
    let (test_name, (test_shape, test_pixels), test_labels) = part(path, &TEST, &arrays)?;
    let mut labels = [train_labels, test_labels];
    let classes = classes
        .unwrap_or_else(|| label::close_up(&mut labels).iter().map(u32::to_string).collect());
    let [train_labels, test_labels] = labels;
    let origin = |array: &str| path.join(array);
    let split = |array: &str, shape, pixels, labels| {
        Split::in_memory(&origin(array), shape, pixels, labels, classes.len())
    };
    let train = split(train_name, train_shape, train_pixels, train_labels)?;
    let test = split(test_name, test_shape, test_pixels, test_labels)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let layout = format!("NumPy archive with {train_name} and {test_name}");
    Ok(Dataset { name, layout, classes, train, test, left_out: Vec::new() })
}

type Part = (&'static str, (Shape, Vec<u8>), Vec<u32>);

/// The first of the pairs that the archive has; no other is unpacked.
fn part(
    path: &Path,
    pairs: &'static [[&'static str; 2]],
    arrays: &impl Fn(&[&str]) -> Result<Arrays>,
) -> Result<Part> {
    for [image_name, label_name] in pairs {
        let mut found = arrays(&[image_name, label_name])?;
        let Some(pixels) = found.remove(*image_name) else { continue };
        let Some(labels) = found.remove(*label_name) else {
            let what = format!("there is {image_name}, but no {label_name}");
            return Err(Error::malformed(path, what));
        };
        let (shape, pixels) = images(path, image_name, pixels)?;
        let labels = integer_labels(path, label_name, &labels)?;
        label::check_count(&path.join(label_name), labels.len(), pixels.len() / shape.len())?;
        return Ok((image_name, (shape, pixels), labels));
    }
    let wanted: Vec<&str> = pairs.iter().map(|[images, _]| *images).collect();
    let what = format!("expected images under one of the names {}, found none", wanted.join(", "));
    Err(Error::malformed(path, what))
}

fn images(path: &Path, name: &str, array: IntegerArray) -> Result<(Shape, Vec<u8>)> {
    let refuse = |what: String| Error::malformed(path, format!("{name}: {what}"));
    let Integers::Bytes(pixels) = array.values else {
        return Err(refuse("expected unsigned bytes, found other integers".to_owned()));
    };
    let (count, shape) = match array.shape[..] {
        [count, height, width] => (count, Shape { height, width, channels: 1 }),
        [count, height, width, channels @ (1 | 3)] => (count, Shape { height, width, channels }),
        _ => {
            let found = &array.shape;
            return Err(refuse(format!(
                "expected axes [n, height, width] or [n, height, width, 3], found {found:?}"
            )));
        }
    };
    if count == 0 || !shape.is_valid() {
        return Err(refuse(format!("axes {:?} hold no image that can be read", array.shape)));
    }
    Ok((shape, pixels))
}

fn integer_labels(path: &Path, name: &str, array: &IntegerArray) -> Result<Vec<u32>> {
    if !matches!(array.shape[..], [_] | [_, 1]) {
        let found = &array.shape;
        let what = format!("{name}: expected one label an image, found axes {found:?}");
        return Err(Error::malformed(path, what));
    }
    let narrow = |(row, &label): (usize, &i64)| {
        let path = path.join(name);
        u32::try_from(label).map_err(|_| Error::LabelRange {
            path,
            row,
            label,
            classes: u32::MAX as usize,
        })
    };
    match &array.values {
        Integers::Bytes(labels) => Ok(labels.iter().map(|&label| u32::from(label)).collect()),
        Integers::Wide(labels) => labels.iter().enumerate().map(narrow).collect(),
    }
}
