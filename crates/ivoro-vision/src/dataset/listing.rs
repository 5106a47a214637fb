//! What lies in folders.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The endings of image files.
const ENDINGS: [&str; 7] = ["png", "jpg", "jpeg", "webp", "bmp", "tif", "tiff"];

/// Whether the name ends as that of an image file.
pub(super) fn is_image_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Image files among `paths` and, with all subfolders, in the folders among them. Those of a
/// folder are sorted by name; hidden files, and files in folders that are no images, are left
/// out. A file named itself is taken as an image whatever its ending.
pub fn collect_images(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut images = Vec::new();
    for path in paths {
        if path.is_dir() {
            collect_below(path, &mut images)?;
        } else if path.exists() {
            images.push(path.clone());
        } else {
            let expected = "an image or a folder of images".to_owned();
            return Err(Error::Missing { path: path.clone(), expected });
        }
    }
    Ok(images)
}

fn collect_below(folder: &Path, images: &mut Vec<PathBuf>) -> Result<()> {
    for Entry { path, is_folder } in listed(folder)? {
        // A link to a folder above would never end.
        if is_folder && !path.is_symlink() {
            collect_below(&path, images)?;
        } else if !is_folder && is_image_name(&path) {
            images.push(path);
        }
    }
    Ok(())
}

/// Something that lies in a folder.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) is_folder: bool,
}

impl Entry {
    /// The name; what is not Unicode in it is replaced.
    pub(super) fn name(&self) -> String {
        name_of(&self.path)
    }
}

/// The last part of a path; what is not Unicode in it is replaced.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What lies in a folder, sorted by name, without what is hidden.
pub(super) fn listed(folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_folder = kind.is_dir() || (kind.is_symlink() && path.is_dir());
        entries.push(Entry { path, is_folder });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}
