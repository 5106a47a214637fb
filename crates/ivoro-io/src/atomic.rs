//! Files that appear whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::TryLockError;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use fs_err::File;
use tempfile::{NamedTempFile, TempPath};

use ivoro::{Error, Result};

/// Letters and digits that tell temporary files apart.
const RANDOM: usize = 6;

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
    // held while the file grows, so that nobody takes it for one of a killed writer; where a file system
    // knows no locks, that of the model has to do
    let _ = file.file().try_lock();
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
        .rand_bytes(RANDOM)
        .suffix(".tmp")
        .make_in(directory_of(path), open)?;
    Ok(file)
}

/// Removes the temporary files of writers of a file that were killed. The caller holds the file's lock.
/// Such a file has the name that [`create_beside`] gives, or gave in version 0.1, and nobody has it
/// locked; what can't be removed stays.
pub(crate) fn remove_leftovers(path: &Path) {
    let Some(name) = path.file_name() else { return };
    let Ok(entries) = std::fs::read_dir(directory_of(path)) else { return };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && is_temporary(&entry.file_name(), name) && is_abandoned(&entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether `found` is the name of a temporary file of `name`: between the dots are six letters and
/// digits, or the two numbers of version 0.1.
fn is_temporary(found: &OsStr, name: &OsStr) -> bool {
    let inside = found.as_encoded_bytes().strip_prefix(b".");
    let inside = inside.and_then(|rest| rest.strip_prefix(name.as_encoded_bytes()));
    let inside = inside.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(b".tmp"));
    let Some(inside) = inside else { return false };
    let number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let mut parts = inside.splitn(2, |&sign| sign == b'-');
    let two_numbers = parts.next().is_some_and(number) && parts.next().is_some_and(number);
    two_numbers || inside.len() == RANDOM && inside.iter().all(u8::is_ascii_alphanumeric)
}

/// Whether no process is writing a file.
fn is_abandoned(path: &Path) -> bool {
    let open = std::fs::OpenOptions::new().write(true).open(path);
    open.is_ok_and(|file| !matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
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

    #[test]
    fn only_temporary_files_of_killed_writers_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.x");
        let left = [".m.x.a1B2c3.tmp", ".m.x.1234-0.tmp"];
        let others = [
            ".m.a1B2c3.tmp",
            ".m.x.a1B2c3",
            ".m.x.a1B2c.tmp",
            ".m.x.a1-B2c.tmp",
            ".m.x.y.a1B2c3.tmp",
            ".m.x.12-.tmp",
            "m.x.a1B2c3.tmp",
            "m.x",
        ];
        for name in left.iter().chain(&others) {
            fs_err::write(directory.path().join(name), "half").unwrap();
        }
        fs_err::create_dir(directory.path().join(".m.x.folder.tmp")).unwrap();
        // one that is being written now
        let busy = fs_err::File::create(directory.path().join(".m.x.000000.tmp")).unwrap();
        busy.file().lock().unwrap();
        remove_leftovers(&path);
        let mut found = names(directory.path());
        found.sort();
        let mut expected = others.map(str::to_owned).to_vec();
        expected.extend([".m.x.folder.tmp".to_owned(), ".m.x.000000.tmp".to_owned()]);
        expected.sort();
        assert_eq!(found, expected);
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
