//! Files that appear whole or not at all.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use fs_err::File;
use tempfile::{NamedTempFile, TempPath};

use ivoro::{Error, Result};

/// Writes `path` through `fill`: a reader sees the old file or the complete new one, and after a
/// return without an error the new one survives a power cut. A link stays one, and what it points
/// at is written; the file's permissions stay too.
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let path = &behind_links(path);
    let kept = permissions(path)?;
    // removed when it is dropped, unless it has got its name
    let (file, temporary) = create_beside(path)?.into_parts();
    if let Some(kept) = kept {
        file.set_permissions(kept)?;
    }
    let mut writer = BufWriter::with_capacity(1 << 18, file);
    fill(&mut writer)?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    drop(writer);
    rename(temporary, path)?;
    sync_directory(path)
}

fn rename(temporary: TempPath, path: &Path) -> Result<()> {
    temporary.persist(path).map_err(|refused| {
        let sentence = format!("{}: can't be replaced: {}", path.display(), refused.error);
        std::io::Error::new(refused.error.kind(), sentence).into()
    })
}

/// The file that a path leads to; it need not be there.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    let linked = path.is_symlink().then(|| std::fs::canonicalize(path).ok()).flatten();
    linked.unwrap_or_else(|| path.to_owned())
}

/// The permissions of the file that is to be replaced. A folder, a device or a pipe is none, and to
/// put a file in its place would be more than was asked for.
fn permissions(path: &Path) -> Result<Option<std::fs::Permissions>> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found.permissions())),
        Ok(found) => {
            let what = if found.is_dir() { "a folder" } else { "a device or a pipe" };
            let sentence = format!("{}: expected a file, found {what}", path.display());
            Err(std::io::Error::other(sentence).into())
        }
        // whatever else is wrong is said when the file beside it is made
        Err(_) => Ok(None),
    }
}

/// A new file in the same directory, because a rename is atomic only inside one file system.
fn create_beside(path: &Path) -> Result<NamedTempFile<File>> {
    let Some(name) = path.file_name() else {
        let what = "a file is to be written here, but the path names none";
        return Err(Error::malformed(path, what));
    };
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    // opened here rather than by the crate, whose files only their owner may read
    let open = |place: &Path| fs_err::OpenOptions::new().write(true).create_new(true).open(place);
    let file = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".tmp")
        .make_in(directory_of(path), open)?;
    Ok(file)
}

/// The directory a file is in.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The rename itself lives in the directory, which has to reach the disk too.
#[cfg(unix)]
fn sync_directory(path: &Path) -> Result<()> {
    File::open(directory_of(path))?.sync_all()?;
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

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay_and_only_files_are_replaced() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let [file, link, folder] = ["file", "link", "folder"].map(|it| directory.path().join(it));
        fs_err::write(&file, "old").unwrap();
        fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink("file", &link).unwrap();
        write_atomically(&link, |file| Ok(file.write_all(b"new")?)).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs_err::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs_err::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs_err::create_dir(&folder).unwrap();
        let socket = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, what) in [(&folder, "a folder"), (&socket, "a device or a pipe")] {
            let refused = write_atomically(path, |_| Ok(())).unwrap_err();
            assert!(matches!(refused, Error::Io(_)));
            assert!(refused.to_string().ends_with(&format!("expected a file, found {what}")));
        }
        assert_eq!(names(directory.path()).len(), 4);
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

    #[cfg(unix)]
    #[test]
    fn a_new_file_may_be_read_by_whom_a_plain_one_may() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let [path, plain] = ["model", "plain"].map(|it| directory.path().join(it));
        fs_err::write(&plain, "").unwrap();
        write_atomically(&path, |file| Ok(file.write_all(b"whole")?)).unwrap();
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
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
