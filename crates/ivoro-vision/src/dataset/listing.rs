//! What lies in folders.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::error::Result;

/// The endings of image files.
const ENDINGS: [&str; 19] = [
    "png", "jpg", "jpeg", "jfif", "jpe", "webp", "bmp", "tif", "tiff", "gif", "ppm", "pgm", "pbm",
    "pnm", "pam", "dib", "heic", "heif", "hif",
];

/// Whether the name ends as that of an image file.
pub(super) fn is_image_name(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// What something is that is no file.
#[cfg(unix)]
pub(super) fn kind_of(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;

    let kind = metadata.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// What something is that is no file.
#[cfg(not(unix))]
pub(super) fn kind_of(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() { "a folder" } else { "a device" }
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

    /// Whether it is hidden.
    pub(super) fn is_hidden(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b".")
    }
}

/// The last part of a path; what is not Unicode in it is replaced.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What lies in a folder, sorted by name, without what is hidden.
pub(super) fn listed(folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = all_listed(folder)?;
    entries.retain(|entry| !entry.is_hidden());
    Ok(entries)
}

/// What lies in a folder, sorted by name.
pub(super) fn all_listed(folder: &Path) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_folder = kind.is_dir() || (kind.is_symlink() && path.is_dir());
        entries.push(Entry { path, is_folder });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}
