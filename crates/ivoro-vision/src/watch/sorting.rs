//! Photos sorted into folders by class. Nothing is overwritten and no photo is lost.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use fs_err::File;

use super::rows::Rows;
use super::{relative, visible};
use crate::error::{Error, Result};

/// The folder of what is rejected.
pub const UNKNOWN: &str = "unknown";
/// What unfinished copies begin with.
const UNFINISHED: &str = ".ivoro-watch-";
/// Bytes of a name, for a file system that allows 255.
const MOST_BYTES: usize = 200;
/// Names that are tried for a photo.
const MOST_NAMES: usize = 100_000;

/// What happens to the photo that is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It stays, and a copy is sorted.
    Copy,
    /// It goes, once its copy is safe.
    Move,
    /// It stays, and a second name of the same file is sorted.
    Link,
}

/// Sorts photos.
#[derive(Debug)]
pub struct Sorter {
    target: PathBuf,
    keep: Keep,
}

impl Sorter {
    /// Sorts into folders below `target`. Unfinished copies of a process that was killed are removed;
    /// no other process may be sorting there.
    pub fn open(target: &Path, keep: Keep) -> Result<Self> {
        fs_err::create_dir_all(target)?;
        for folder in fs_err::read_dir(target)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for entry in fs_err::read_dir(folder.path())? {
                let entry = entry?;
                if entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                    fs_err::remove_file(entry.path())?;
                }
            }
        }
        Ok(Self { target: target.to_owned(), keep })
    }

    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// Puts a photo where it belongs and says where that is. If the same photo is there already, it is
    /// taken for what a process that was killed had put there.
    pub(super) fn place(&self, photo: &Path, unknown: Option<bool>, class: &str) -> Result<String> {
        let folder = if unknown == Some(true) { UNKNOWN.to_owned() } else { folder_name(class) };
        let folder = self.target.join(folder);
        fs_err::create_dir_all(&folder)?;
        let copy = if self.keep == Keep::Link { None } else { Some(copied(photo, &folder)?) };
        let mut copy = copy;
        for count in 1..MOST_NAMES {
            let to = folder.join(numbered(photo, count));
            let placed = match copy.take() {
                None => std::fs::hard_link(photo, &to),
                Some(unplaced) => unplaced.persist_noclobber(&to).map(drop).map_err(|refused| {
                    copy = Some(refused.file);
                    refused.error
                }),
            };
            match placed {
                Ok(()) => {
                    sync(&folder)?;
                    return Ok(relative(&self.target, &to));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if same(photo, &to)? {
                        return Ok(relative(&self.target, &to));
                    }
                }
                Err(error) => return Err(refused(photo, &to, &error)),
            }
        }
        Err(Error::malformed(photo, format!("{}: every name for it is taken", folder.display())))
    }

    /// The row of a photo is written: under [`Keep::Move`] it is removed.
    pub(super) fn release(&self, photo: &Path) -> Result<()> {
        if self.keep == Keep::Move { Ok(fs_err::remove_file(photo)?) } else { Ok(()) }
    }

    /// Removes the photos that a process was killed before it removed: those with a row, whose copy is
    /// there, byte for byte.
    pub(super) fn finish(&self, folder: &Path, rows: &Rows) -> Result<()> {
        if self.keep != Keep::Move {
            return Ok(());
        }
        for (key, to) in rows.sorted() {
            let (photo, to) = (folder.join(&key.file), self.target.join(to));
            let is_same = photo.is_file() && to.is_file() && !is_one(&photo, &to);
            if is_same && same(&photo, &to)? {
                self.release(&photo)?;
            }
        }
        Ok(())
    }
}

/// Whether two paths lead to one place, as where photos are sorted into the folder they lie in.
fn is_one(a: &Path, b: &Path) -> bool {
    a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

/// A copy without a name of its own, safe on the disk, with the photo's time.
fn copied(photo: &Path, folder: &Path) -> Result<tempfile::NamedTempFile<File>> {
    let open = |place: &Path| fs_err::OpenOptions::new().write(true).create_new(true).open(place);
    let builder =
        || tempfile::Builder::new().prefix(UNFINISHED).suffix(".tmp").make_in(folder, open);
    let mut copy = builder()?;
    let mut from = File::open(photo)?;
    io::copy(&mut from, copy.as_file_mut())?;
    copy.as_file_mut().flush()?;
    if let Ok(modified) = from.metadata().and_then(|it| it.modified()) {
        // a file system that can't keep it still keeps the photo
        let _ = copy.as_file().file().set_modified(modified);
    }
    copy.as_file().sync_all()?;
    Ok(copy)
}

/// A new name in a folder has to reach the disk before the photo is removed elsewhere.
#[cfg(unix)]
fn sync(folder: &Path) -> Result<()> {
    Ok(File::open(folder)?.sync_all()?)
}

#[cfg(not(unix))]
fn sync(_folder: &Path) -> Result<()> {
    Ok(())
}

fn refused(photo: &Path, to: &Path, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::CrossesDevices => "; links need one file system: use --copy",
        _ => "",
    };
    let sentence =
        format!("{}: can't be sorted into {}: {error}{hint}", photo.display(), to.display());
    io::Error::new(error.kind(), sentence).into()
}

/// The name of a photo, from the second on with a number before its ending.
fn numbered(photo: &Path, count: usize) -> PathBuf {
    let name = photo.file_name().unwrap_or(photo.as_os_str());
    if count == 1 {
        return name.into();
    }
    let stem = photo.file_stem().unwrap_or(name).to_string_lossy().into_owned();
    let ending = photo.extension().map_or(String::new(), |it| format!(".{}", it.to_string_lossy()));
    format!("{stem}-{count}{ending}").into()
}

/// Whether two files hold the same bytes.
fn same(a: &Path, b: &Path) -> Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let read = a.read(&mut left)?;
        if read == 0 {
            return Ok(true);
        }
        if b.read_exact(&mut right[..read]).is_err() || left[..read] != right[..read] {
            return Ok(false);
        }
    }
}

/// A class as the name of one folder that every system takes. Different classes have different folders,
/// none of which is hidden, above, or that of what is unknown.
///
/// ```
/// use ivoro_vision::watch::folder_name;
/// assert_eq!(folder_name("water lily"), "water lily");
/// assert_eq!(folder_name("../etc"), "%2E.%2Fetc");
/// assert_eq!(folder_name("unknown"), "%75nknown");
/// ```
pub fn folder_name(class: &str) -> String {
    let text: Cow<'_, str> = visible(class).into();
    let count = text.chars().count();
    let is_reserved = is_reserved(&text);
    let mut out = String::new();
    for (at, sign) in text.chars().enumerate() {
        let first =
            at == 0 && (matches!(sign, '.' | '-' | '=' | '+' | '@' | '~' | ' ') || is_reserved);
        let last = at + 1 == count && matches!(sign, '.' | ' ');
        let never = matches!(sign, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|' | '%');
        if first || last || never {
            let mut bytes = [0; 4];
            for byte in sign.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(sign);
        }
    }
    if out.is_empty() {
        return "%".to_owned();
    }
    if out.len() <= MOST_BYTES {
        return out;
    }
    let hash = blake3::hash(class.as_bytes()).to_hex();
    let end = (0..=MOST_BYTES).rev().find(|&end| out.is_char_boundary(end)).unwrap_or(0);
    format!("{}%{}", &out[..end], &hash[..16])
}

/// Names with a meaning of their own: ours, and those of Windows' devices.
fn is_reserved(text: &str) -> bool {
    const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
    let lower = text.to_lowercase();
    let stem = lower.split('.').next().unwrap_or("");
    let numbered = |of: &str| {
        stem.strip_prefix(of)
            .is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    lower == UNKNOWN || DEVICES.contains(&stem) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_class_has_one_folder_of_its_own_below_the_target() {
        let classes = [
            "",
            ".",
            "..",
            "../../etc/passwd",
            "/root",
            "a/b",
            "a\\b",
            "a%2Fb",
            "CON",
            "unknown",
            "Unknown",
            "=cmd()",
            "-rf",
            "nul.txt",
            "x ",
            " x",
            "x.",
            "line\nbreak",
            "漢字",
            &"long".repeat(200),
            &format!("{}x", "long".repeat(200)),
            "com1",
            "a:b",
            "~root",
        ];
        let names: Vec<String> = classes.iter().map(|class| folder_name(class)).collect();
        for name in &names {
            let path = Path::new(name);
            let parts: Vec<_> = path.components().collect();
            assert!(matches!(&parts[..], [std::path::Component::Normal(_)]), "{name}");
            assert!(!name.starts_with(['.', '-', '=', ' ']) && name.len() < 255, "{name}");
            assert!(!name.chars().any(char::is_control) && name.to_lowercase() != UNKNOWN);
        }
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), classes.len());
        assert_eq!(folder_name("漢字"), "漢字");
    }

    fn place() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let [photos, sorted] = ["photos", "sorted"].map(|name| folder.path().join(name));
        std::fs::create_dir(&photos).unwrap();
        (folder, photos, sorted)
    }

    #[test]
    fn nothing_is_overwritten_and_the_same_photo_is_placed_once() {
        for keep in [Keep::Copy, Keep::Link, Keep::Move] {
            let (_folder, photos, sorted) = place();
            std::fs::create_dir_all(sorted.join("cat")).unwrap();
            std::fs::write(sorted.join("cat/1.jpg"), "another photo").unwrap();
            let sorter = Sorter::open(&sorted, keep).unwrap();
            let photo = photos.join("1.jpg");
            std::fs::write(&photo, "this photo").unwrap();
            assert_eq!(sorter.place(&photo, Some(false), "cat").unwrap(), "cat/1-2.jpg");
            // a process that was killed before it wrote the row does it again
            assert_eq!(sorter.place(&photo, Some(false), "cat").unwrap(), "cat/1-2.jpg");
            assert_eq!(sorter.place(&photo, Some(true), "cat").unwrap(), "unknown/1.jpg");
            assert_eq!(std::fs::read(sorted.join("cat/1.jpg")).unwrap(), b"another photo");
            assert_eq!(std::fs::read(sorted.join("cat/1-2.jpg")).unwrap(), b"this photo");
            assert_eq!(std::fs::read_dir(sorted.join("cat")).unwrap().count(), 2);
            assert!(photo.exists());
            sorter.release(&photo).unwrap();
            assert_eq!(photo.exists(), keep != Keep::Move);
        }
    }

    #[test]
    fn unfinished_copies_are_cleaned_and_others_stay() {
        let (_folder, _, sorted) = place();
        std::fs::create_dir_all(sorted.join("cat")).unwrap();
        for name in [".ivoro-watch-abc.tmp", ".hidden", "photo.jpg"] {
            std::fs::write(sorted.join("cat").join(name), "x").unwrap();
        }
        Sorter::open(&sorted, Keep::Copy).unwrap();
        assert!(!sorted.join("cat/.ivoro-watch-abc.tmp").exists());
        assert!(sorted.join("cat/.hidden").exists() && sorted.join("cat/photo.jpg").exists());
    }
}
