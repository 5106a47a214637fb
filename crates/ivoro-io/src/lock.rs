//! Locks that the operating system holds: one writer per file.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::atomic::{behind_links, remove_leftovers};
use ivoro::{Error, Result};

/// Holds a model for writing; another process that asks meanwhile is told that it is locked.
///
/// The lock is a file beside the model, because the model itself is replaced when it is saved. The
/// operating system releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    file: std::fs::File,
}

impl FileLock {
    /// Locks a model, which need not exist yet, and removes what killed writers of it have left behind.
    /// One that is write-protected is refused: it would be replaced, whatever its permissions say.
    pub fn acquire(model: &Path) -> Result<Self> {
        let place = behind_links(model);
        let name = place.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| Error::malformed(model, "the path names no file"))?;
        if std::fs::metadata(&place).is_ok_and(|it| it.is_file() && it.permissions().readonly()) {
            let sentence = format!("{}: is write-protected, so it is not changed", model.display());
            return Err(std::io::Error::new(ErrorKind::PermissionDenied, sentence).into());
        }
        let path = place.with_file_name(format!(".{name}.lock"));
        loop {
            let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
            // who asked for the model never heard of the file beside it
            let file = open.map_err(|error| {
                let sentence =
                    format!("{}: no file can be made in its folder: {error}", model.display());
                std::io::Error::new(error.kind(), sentence)
            })?;
            match file.try_lock() {
                Ok(()) if is_current(&file, &path) => {
                    remove_leftovers(&place);
                    return Ok(Self { path, file });
                }
                // the holder removed the file between our open and our lock
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(Error::Locked { path: model.to_owned() });
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // a lock file left behind does no harm: it is not locked any more
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
fn is_current(file: &std::fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(there)) => held.ino() == there.ino() && held.dev() == there.dev(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_current(_: &std::fs::File, path: &Path) -> bool {
    path.exists()
}
