//! TinyImageNet's folders: `train/WNID/images`, and `val` with a list of labels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::archive::{names, read_file};
use super::folder::{Class, Classes, split, with_labels};
use super::listing::{is_image_name, listed, name_of};
use super::{Dataset, OpenOptions, Split};
use crate::error::{Error, Result};

/// The list of the labels of `val/images`.
const ANNOTATIONS: &str = "val_annotations.txt";

/// The set in a folder, if there is one. The published test part has no labels; `val` is taken.
pub(super) fn open_folder(folder: &Path, options: &OpenOptions) -> Result<Option<Dataset>> {
    let (train_folder, val) = (folder.join("train"), folder.join("val"));
    let listed_labels = val.join(ANNOTATIONS);
    let is_known = folder.join("wnids.txt").is_file() || listed_labels.is_file();
    if !is_known || !train_folder.is_dir() || !val.is_dir() {
        return Ok(None);
    }
    let mut train = Classes::read(&train_folder, options.broken)?;
    train.need_each(&train_folder, 1)?;
    let ids: Vec<String> = train.classes.iter().map(|class| class.name.clone()).collect();
    let test = if listed_labels.is_file() {
        annotated(folder, &listed_labels, &val.join("images"), &ids)?
    } else {
        let test = Classes::read(&val, options.broken)?;
        train.left_out.extend(test.left_out);
        split(folder, with_labels(&val, test.classes, &ids)?.into_iter())
    };
    let layout = "TinyImageNet, val as the test part".to_owned();
    let classes = class_names(&folder.join("words.txt"), ids)?;
    let left_out = train.left_out;
    let train: Vec<(usize, Class)> = train.classes.into_iter().enumerate().collect();
    let train = split(folder, train.into_iter());
    Ok(Some(Dataset { name: name_of(folder), layout, classes, train, test, left_out }))
}

/// The images in `images` with the labels of the list: name, class, and a box that is not needed.
fn annotated(root: &Path, list: &Path, images: &Path, ids: &[String]) -> Result<Split> {
    let entries = listed(images)?.into_iter().filter(|entry| is_image_name(&entry.path));
    let mut files: BTreeMap<String, PathBuf> =
        entries.map(|entry| (entry.name(), entry.path)).collect();
    let lines = names(list, &read_file(list)?)?;
    let (count, found) = (files.len(), lines.len());
    let (mut paths, mut labels) = (Vec::new(), Vec::new());
    for line in lines {
        let mut fields = line.split('\t');
        let (Some(name), Some(id)) = (fields.next(), fields.next()) else {
            let what = format!("expected lines of file and class with tabs between, found {line}");
            return Err(Error::malformed(list, what));
        };
        let Some(label) = ids.iter().position(|known| known == id) else {
            let what = format!("{name}: expected a class that train has, found {id}");
            return Err(Error::malformed(list, what));
        };
        // Taken out, so that a file that is listed twice is not found again.
        let path = files.remove(name).ok_or_else(|| Error::Missing {
            path: images.join(name),
            expected: format!("an image for each line of {ANNOTATIONS}, once"),
        })?;
        paths.push(path);
        labels.push(label as u32);
    }
    super::label::check_count(list, found, count)?;
    Ok(Split::in_files(root, paths, labels))
}

/// The first word for each id, with the id behind where two classes have the same; the ids if
/// there is no list of words.
fn class_names(list: &Path, ids: Vec<String>) -> Result<Vec<String>> {
    if !list.is_file() {
        return Ok(ids);
    }
    let lines = names(list, &read_file(list)?)?;
    let words: BTreeMap<&str, &str> =
        lines.iter().filter_map(|line| line.split_once('\t')).collect();
    let word = |id: &String| {
        let words = words.get(id.as_str())?;
        words.split(',').next().map(str::trim).filter(|word| !word.is_empty())
    };
    let found: Vec<&str> = ids.iter().map(|id| word(id).unwrap_or(id)).collect();
    let count = |word: &str| found.iter().filter(|other| **other == word).count();
    let name = |(id, &word): (&String, &&str)| {
        if count(word) > 1 && word != id { format!("{word} ({id})") } else { word.to_owned() }
    };
    Ok(ids.iter().zip(&found).map(name).collect())
}
