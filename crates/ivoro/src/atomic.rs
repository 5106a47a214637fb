//! Files that appear whole or not at all.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fs_err::File;

use crate::error::{Error, Result};

/// Writes `path` through `fill`: a reader sees the old file or the complete new one, and after a
/// return without an error the new one survives a power cut.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let (temporary, file) = create_beside(path)?;
    let written = fill_and_rename(file, &temporary, path, fill);
    if written.is_err() {
        // The first error is the one to report; a file left behind only costs space.
        let _ = fs_err::remove_file(&temporary);
    }
    written
}

fn fill_and_rename(
    file: File,
    temporary: &Path,
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 18, file);
    fill(&mut writer)?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    drop(writer);
    fs_err::rename(temporary, path)?;
    sync_directory(path)
}

/// A new file in the same directory, because a rename is atomic only inside one file system.
///
/// A killed process leaves its file behind, and a later one may have the same id: names that are
/// taken are passed over.
fn create_beside(path: &Path) -> Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        let what = "a file is to be written here, but the path names none".to_owned();
        return Err(Error::Malformed { path: path.to_owned(), what });
    };
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}-{count}.tmp", name.to_string_lossy(), std::process::id());
        let temporary = path.with_file_name(name);
        match fs_err::OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The rename itself lives in the directory, which has to reach the disk too.
#[cfg(unix)]
fn sync_directory(path: &Path) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()?;
    Ok(())
}

#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn replaces_a_file_and_leaves_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        for text in ["first", "second"] {
            write_atomically(&path, |file| Ok(file.write_all(text.as_bytes())?)).unwrap();
            assert_eq!(fs_err::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(directory.path()), ["model"]);
    }

    #[test]
    fn files_left_by_a_killed_process_of_the_same_id_are_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        for count in 0..100 {
            let left = format!(".model.{}-{count}.tmp", std::process::id());
            fs_err::write(directory.path().join(left), "half").unwrap();
        }
        write_atomically(&path, |file| Ok(file.write_all(b"whole")?)).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "whole");
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        fs_err::write(&path, "old").unwrap();
        let failed = write_atomically(&path, |file| {
            file.write_all(b"half of the n")?;
            Err(Error::Unsupported { what: "stopped".to_owned() })
        });
        assert_eq!(failed.unwrap_err().to_string(), "stopped");
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(directory.path()), ["model"]);
    }
}
