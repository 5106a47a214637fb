//! Folders of images: `split/class/*`, or `class/*` with a seeded split.

use std::path::{Path, PathBuf};

use ivoro::random::{mix, permutation};

use super::listing::{Entry, is_image_name, listed, name_of};
use super::{Broken, Dataset, OpenOptions, Split};
use crate::error::{Error, Result};

/// Names of the folder with the test part; the first that is there is taken.
pub(super) const TEST: [&str; 4] = ["test", "val", "valid", "validation"];

/// A class folder.
pub(super) struct Class {
    pub(super) name: String,
    pub(super) files: Vec<PathBuf>,
}

/// Class folders, and what in them is no image.
pub(super) struct Classes {
    pub(super) classes: Vec<Class>,
    pub(super) left_out: Vec<PathBuf>,
}

/// The set in `folder/train` and `folder/test` (or `val`), if there is one.
pub(super) fn open_split(folder: &Path, options: &OpenOptions) -> Result<Option<Dataset>> {
    let train_folder = folder.join("train");
    // A class may be called train too; then there are images in that folder.
    if !train_folder.is_dir() || !listed(&train_folder)?.iter().any(|entry| entry.is_folder) {
        return Ok(None);
    }
    let there: Vec<&str> = TEST.into_iter().filter(|name| folder.join(name).is_dir()).collect();
    let Some(&test_name) = there.first() else {
        let expected = format!("the test part beside train, called {}", TEST.join(", "));
        return Err(Error::Missing { path: folder.join(TEST[0]), expected });
    };
    let train = Classes::read(&train_folder, options.broken)?;
    let test_folder = folder.join(test_name);
    let test = Classes::read(&test_folder, options.broken)?;
    train.need_each(&train_folder, 1)?;
    let classes: Vec<String> = train.classes.iter().map(|class| class.name.clone()).collect();
    let left_out = [train.left_out, test.left_out].concat();
    let train = split(folder, train.classes.into_iter().enumerate());
    let test = split(folder, with_labels(&test_folder, test.classes, &classes)?.into_iter());
    let mut layout = format!("folders train and {test_name} of class folders");
    for unused in &there[1..] {
        layout.extend([", ", unused, " not used"]);
    }
    Ok(Some(Dataset { name: name_of(folder), layout, classes, train, test, left_out }))
}

/// The set whose class folders lie in `folder`, if there are any with images.
pub(super) fn open_classes(folder: &Path, options: &OpenOptions) -> Result<Option<Dataset>> {
    let share = options.test_share;
    if !(0.0..1.0).contains(&share) {
        let (name, value) = ("test_share", share.to_string());
        let reason = "the share of images held out is at least 0 and below 1";
        return Err(Error::Setting { name, value, reason });
    }
    let found = Classes::read(folder, options.broken)?;
    if found.classes.iter().all(|class| class.files.is_empty()) {
        return Ok(None);
    }
    found.need_each(folder, if share > 0.0 { 2 } else { 1 })?;
    let classes: Vec<String> = found.classes.iter().map(|class| class.name.clone()).collect();
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (label, Class { name, files }) in found.classes.into_iter().enumerate() {
        let (kept, held_out) = divided(&name, files, share, options.seed);
        train.push((label, Class { name: name.clone(), files: kept }));
        test.push((label, Class { name, files: held_out }));
    }
    let layout = if share > 0.0 {
        format!("class folders, {share} of each held out with seed {}", options.seed)
    } else {
        "class folders, nothing held out".to_owned()
    };
    let (train, test) = (split(folder, train.into_iter()), split(folder, test.into_iter()));
    let (name, left_out) = (name_of(folder), found.left_out);
    Ok(Some(Dataset { name, layout, classes, train, test, left_out }))
}

/// Divides the files of a class by its name and the seed, so that other classes change nothing.
fn divided(name: &str, files: Vec<PathBuf>, share: f64, seed: u64) -> (Vec<PathBuf>, Vec<PathBuf>) {
    if share == 0.0 {
        return (files, Vec::new());
    }
    let held = ((files.len() as f64 * share).round() as usize).clamp(1, files.len() - 1);
    let own = blake3::hash(name.as_bytes())
        .as_bytes()
        .first_chunk()
        .map_or(0, |own| u64::from_le_bytes(*own));
    let mut is_held = vec![false; files.len()];
    for &row in &permutation(mix(seed, own), files.len())[..held] {
        is_held[row] = true;
    }
    let (mut kept, mut held_out) = (Vec::new(), Vec::new());
    for (file, is_held) in files.into_iter().zip(is_held) {
        if is_held { held_out.push(file) } else { kept.push(file) }
    }
    (kept, held_out)
}

/// Files with the label of their class.
pub(super) fn split(root: &Path, classes: impl Iterator<Item = (usize, Class)>) -> Split {
    let (mut paths, mut labels) = (Vec::new(), Vec::new());
    for (label, class) in classes {
        labels.resize(labels.len() + class.files.len(), label as u32);
        paths.extend(class.files);
    }
    Split::in_files(root, paths, labels)
}

/// The classes of a test folder with their labels, which those of the train folder give.
pub(super) fn with_labels(
    folder: &Path,
    found: Vec<Class>,
    classes: &[String],
) -> Result<Vec<(usize, Class)>> {
    let labelled = |class: Class| {
        let label = classes.iter().position(|name| *name == class.name);
        let path = folder.join(&class.name);
        if class.files.is_empty() {
            return Err(Error::EmptyClass { path, least: 1 });
        }
        match label {
            Some(label) => Ok((label, class)),
            None => {
                Err(Error::malformed(&path, "expected a class that train has too, found another"))
            }
        }
    };
    found.into_iter().map(labelled).collect()
}

impl Classes {
    /// The class folders in `folder`, sorted by name.
    pub(super) fn read(folder: &Path, broken: Broken) -> Result<Self> {
        let mut found = Self { classes: Vec::new(), left_out: Vec::new() };
        for entry in listed(folder)? {
            if entry.is_folder {
                let files = found.files(&entry.path, broken)?;
                found.classes.push(Class { name: entry.name(), files });
            } else if is_image_name(&entry.path) {
                found.leave_out(
                    entry,
                    "an image beside the class folders, expected it in one",
                    broken,
                )?;
            }
        }
        Ok(found)
    }

    /// The images of a class, in its folder or in a folder `images` there.
    fn files(&mut self, folder: &Path, broken: Broken) -> Result<Vec<PathBuf>> {
        let mut entries = listed(folder)?;
        let is_image = |entry: &Entry| !entry.is_folder && is_image_name(&entry.path);
        let inner = entries.iter().position(|entry| entry.is_folder && entry.name() == "images");
        if let (Some(inner), false) = (inner, entries.iter().any(is_image)) {
            entries = listed(&entries[inner].path)?;
        }
        let mut files = Vec::new();
        for entry in entries {
            if is_image(&entry) {
                files.push(entry.path);
            } else {
                let what = if entry.is_folder { "a folder" } else { "a file that is no image" };
                let what = format!("{what} in a class folder, expected images only");
                self.leave_out(entry, &what, broken)?;
            }
        }
        Ok(files)
    }

    fn leave_out(&mut self, entry: Entry, what: &str, broken: Broken) -> Result<()> {
        match broken {
            Broken::Fail => Err(Error::malformed(&entry.path, what)),
            Broken::Skip => {
                self.left_out.push(entry.path);
                Ok(())
            }
        }
    }

    pub(super) fn need_each(&self, folder: &Path, least: usize) -> Result<()> {
        match self.classes.iter().find(|class| class.files.len() < least) {
            Some(class) => Err(Error::EmptyClass { path: folder.join(&class.name), least }),
            None => Ok(()),
        }
    }
}
