//! MNIST's idx files, plain or gzipped, and the sets that took over the format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::archive::{names, read_file};
use super::listing::{listed, name_of};
use super::{Dataset, Shape, Split, label};
use crate::error::{Error, Result};

/// What the file of a part's images is called behind the part, and that of its labels.
const IMAGES: [&str; 2] = ["-images-idx3-ubyte", "-images.idx3-ubyte"];
const LABELS: [&str; 2] = ["-labels-idx1-ubyte", "-labels.idx1-ubyte"];
/// What the two parts are called.
const TRAIN: [&str; 1] = ["train"];
const TEST: [&str; 2] = ["t10k", "test"];

/// The files of one set; EMNIST comes as several sets in one folder.
#[derive(Default)]
struct Files {
    train_images: Option<PathBuf>,
    train_labels: Option<PathBuf>,
    test_images: Option<PathBuf>,
    test_labels: Option<PathBuf>,
}

/// The set in a folder, if there is one.
pub(super) fn open_folder(folder: &Path) -> Result<Option<Dataset>> {
    let mut sets = sets(folder)?;
    match sets.len() {
        0 => Ok(None),
        1 => sets.pop_first().map(|(stem, files)| read(folder, &stem, files)).transpose(),
        count => {
            let stems: Vec<&str> = sets.keys().map(|stem| stem.trim_end_matches('-')).collect();
            let stems = stems.join(", ");
            let what = format!(
                "{count} idx data sets ({stems}), expected one; name the file with its train images"
            );
            Err(Error::malformed(folder, what))
        }
    }
}

/// Whether a file is called as one of such a set is.
pub(super) fn is_called_so(path: &Path) -> bool {
    understood(&name_of(path)).is_some()
}

/// The set that the file at `path` belongs to, if its name is one of such a set.
pub(super) fn open_file(path: &Path) -> Result<Option<Dataset>> {
    let Some((stem, ..)) = understood(&name_of(path)) else { return Ok(None) };
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let files = sets(folder)?.remove(&stem);
    files.map(|files| read(folder, &stem, files)).transpose()
}

/// The sets in a folder by what stands in front of the part in their files' names.
fn sets(folder: &Path) -> Result<BTreeMap<String, Files>> {
    let mut sets: BTreeMap<String, Files> = BTreeMap::new();
    for entry in listed(folder)?.into_iter().filter(|entry| !entry.is_folder) {
        let Some((stem, is_train, is_images)) = understood(&entry.name()) else { continue };
        let set = sets.entry(stem).or_default();
        let place = match (is_train, is_images) {
            (true, true) => &mut set.train_images,
            (true, false) => &mut set.train_labels,
            (false, true) => &mut set.test_images,
            (false, false) => &mut set.test_labels,
        };
        // A plain file comes before its gzipped copy, and needs no unpacking.
        place.get_or_insert(entry.path);
    }
    Ok(sets)
}

/// What stands in front of the part, whether the part is train, and whether it is images.
fn understood(name: &str) -> Option<(String, bool, bool)> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let behind = |endings: [&str; 2]| endings.iter().find_map(|ending| name.strip_suffix(ending));
    let (rest, is_images) = behind(IMAGES)
        .map(|rest| (rest, true))
        .or_else(|| behind(LABELS).map(|rest| (rest, false)))?;
    let strip = |parts: &[&str]| parts.iter().find_map(|part| rest.strip_suffix(part));
    let (stem, is_train) = strip(&TRAIN)
        .map(|stem| (stem, true))
        .or_else(|| strip(&TEST).map(|stem| (stem, false)))?;
    Some((stem.to_owned(), is_train, is_images))
}

fn read(folder: &Path, stem: &str, files: Files) -> Result<Dataset> {
    let test_part = if stem.is_empty() { "t10k" } else { "test" };
    let need = |file: Option<PathBuf>, part: &str, what: &str| {
        let path = folder.join(format!("{stem}{part}-{what}-ubyte"));
        let expected = "this idx file, plain or with .gz, beside the others".to_owned();
        file.ok_or(Error::Missing { path, expected })
    };
    let images = [
        need(files.train_images, "train", "images-idx3")?,
        need(files.test_images, test_part, "images-idx3")?,
    ];
    let label_files = [
        need(files.train_labels, "train", "labels-idx1")?,
        need(files.test_labels, test_part, "labels-idx1")?,
    ];
    let [train, test] = label_files.each_ref();
    let mut labels =
        [parse_labels(train, &read_file(train)?)?, parse_labels(test, &read_file(test)?)?];
    let classes = class_names(folder, stem, [train, test], &mut labels)?;
    let part = |images: &Path, label_file: &Path, labels: Vec<u32>| {
        let (shape, pixels) = parse_images(images, read_file(images)?)?;
        label::check_count(label_file, labels.len(), pixels.len() / shape.len())?;
        Split::in_memory(images, shape, pixels, labels, classes.len())
    };
    let [train_labels, test_labels] = labels;
    let train = part(&images[0], &label_files[0], train_labels)?;
    let test = part(&images[1], &label_files[1], test_labels)?;
    let name = stem.trim_end_matches('-');
    let name = if name.is_empty() { name_of(folder) } else { name.to_owned() };
    let layout = "idx files as of MNIST".to_owned();
    Ok(Dataset { name, layout, classes, train, test, left_out: Vec::new() })
}

/// The names in `classes.txt`, else the characters of EMNIST's mapping, else the numbers; labels
/// that do not occur are closed up unless `classes.txt` names them.
fn class_names(
    folder: &Path,
    stem: &str,
    files: [&Path; 2],
    labels: &mut [Vec<u32>; 2],
) -> Result<Vec<String>> {
    let listed = folder.join("classes.txt");
    if listed.is_file() {
        let classes = names(&listed, &read_file(&listed)?)?;
        for (labels, file) in labels.iter().zip(files) {
            label::check(file, labels, classes.len())?;
        }
        return Ok(classes);
    }
    let used = label::close_up(labels);
    let mapping = folder.join(format!("{stem}mapping.txt"));
    let characters = if mapping.is_file() { characters(&mapping)? } else { BTreeMap::new() };
    let name = |label: u32| characters.get(&label).cloned().unwrap_or(label.to_string());
    Ok(used.into_iter().map(name).collect())
}

/// EMNIST's mapping: lines of a label and the code points of its characters, of which the first
/// is taken.
fn characters(path: &Path) -> Result<BTreeMap<u32, String>> {
    let mut characters = BTreeMap::new();
    for line in names(path, &read_file(path)?)? {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        let (Some(Ok(label)), Some(Ok(point))) = (numbers.next(), numbers.next()) else {
            let what = format!("expected lines of a label and a code point, found {line}");
            return Err(Error::malformed(path, what));
        };
        let character = char::from_u32(point).map_or(label.to_string(), String::from);
        characters.insert(label, character);
    }
    Ok(characters)
}

/// The images of an idx file with three axes; `path` is named in errors.
pub fn parse_images(path: &Path, mut bytes: Vec<u8>) -> Result<(Shape, Vec<u8>)> {
    let [count, height, width] = header(path, &bytes)?;
    let shape = Shape { height, width, channels: 1 };
    if count == 0 || !shape.is_valid() {
        let what = format!("{count} images of {width}×{height} can't be read");
        return Err(Error::malformed(path, what));
    }
    bytes.drain(..4 + 4 * 3);
    Ok((shape, bytes))
}

/// The labels of an idx file with one axis; `path` is named in errors.
pub fn parse_labels(path: &Path, bytes: &[u8]) -> Result<Vec<u32>> {
    let [_] = header(path, bytes)?;
    Ok(bytes[4 + 4..].iter().map(|&label| u32::from(label)).collect())
}

/// The lengths of the axes, which together are exactly what follows.
fn header<const AXES: usize>(path: &Path, bytes: &[u8]) -> Result<[usize; AXES]> {
    let refuse = |what: String| Error::malformed(path, what);
    let length = 4 + 4 * AXES;
    let Some(head) = bytes.get(..length) else {
        return Err(refuse(format!("an idx header has {length} bytes, found {}", bytes.len())));
    };
    let (words, _) = head.as_chunks::<4>();
    if words[0] != [0, 0, 8, AXES as u8] {
        let found = u32::from_be_bytes(words[0]);
        return Err(refuse(format!("expected the idx number 0000080{AXES}, found {found:08x}")));
    }
    let axes: [u32; AXES] = std::array::from_fn(|axis| u32::from_be_bytes(words[1 + axis]));
    let promised = axes.iter().map(|&axis| u128::from(axis)).product::<u128>();
    let found = (bytes.len() - length) as u128;
    if promised != found {
        return Err(refuse(format!("the header promises {promised} bytes, found {found}")));
    }
    Ok(axes.map(|axis| axis as usize))
}
