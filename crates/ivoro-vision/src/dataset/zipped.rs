//! Photos in a zip archive, unpacked one at a time.

use std::fmt;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use zip::ZipArchive;

use super::format::HEAD;
use super::photo::MOST_BYTES;
use crate::error::{Error, Result};

/// How a zip archive begins.
const MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// More entries than an archive of photos has.
const MOST_ENTRIES: usize = 1 << 22;

/// An open archive. Its names are never taken for paths.
pub struct Archive {
    path: PathBuf,
    zip: Mutex<ZipArchive<BufReader<fs_err::File>>>,
}

/// A file in an archive.
pub(super) struct Entry {
    /// Its number.
    pub(super) number: usize,
    /// The folders in its name, and behind them the name alone; nothing in them leads upwards.
    pub(super) parts: Vec<String>,
    /// Its first bytes, or why there are none.
    pub(super) head: Result<Vec<u8>>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Archive").field(&self.path).finish()
    }
}

/// Whether a file that begins so is an archive.
pub(super) fn is_archive(head: &[u8]) -> bool {
    MAGIC.iter().any(|magic| head.starts_with(magic))
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = BufReader::new(fs_err::File::open(path)?);
        let refuse = |error| Error::malformed(path, format!("not a complete zip archive: {error}"));
        let zip = ZipArchive::new(file).map_err(refuse)?;
        if zip.len() > MOST_ENTRIES {
            let what = format!("{} entries, at most {MOST_ENTRIES} are read", zip.len());
            return Err(Error::malformed(path, what));
        }
        Ok(Self { path: path.to_owned(), zip: Mutex::new(zip) })
    }

    /// The files in it, sorted by name, without folders and links.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let count = self.zip.lock().unwrap_or_else(PoisonError::into_inner).len();
        let mut entries: Vec<Entry> = (0..count).filter_map(|at| self.entry(at)).collect();
        entries.sort_by(|a, b| (&a.parts, a.number).cmp(&(&b.parts, b.number)));
        entries
    }

    fn entry(&self, number: usize) -> Option<Entry> {
        let mut zip = self.zip.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entry = match zip.by_index(number) {
            Ok(entry) if entry.is_dir() || entry.is_symlink() => return None,
            Ok(entry) => entry,
            Err(error) => {
                let parts = vec![format!("entry {number}")];
                let head = Err(self.refused(&self.path.join(&parts[0]), &error));
                return Some(Entry { number, parts, head });
            }
        };
        let parts = entry.name().map_or_else(|_| vec![format!("entry {number}")], |it| parts(&it));
        let mut head = Vec::new();
        let read = entry.by_ref().take(HEAD as u64).read_to_end(&mut head);
        let place = || parts.iter().fold(self.path.clone(), |path, part| path.join(part));
        let head = read.map(|_| head).map_err(|error| Error::broken(&place(), &error));
        Some(Entry { number, parts, head })
    }

    fn refused(&self, name: &Path, error: &dyn fmt::Display) -> Error {
        Error::broken(name, &format!("in the archive {}: {error}", self.path.display()))
    }

    /// The contents of an entry. It may not hold more than it claims to, nor more than any photo does.
    pub(super) fn read(&self, number: usize, name: &Path) -> Result<Vec<u8>> {
        let mut zip = self.zip.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entry = zip.by_index(number).map_err(|error| self.refused(name, &error))?;
        let claimed = entry.size();
        if claimed > MOST_BYTES {
            let (path, what) = (name.to_owned(), "the file unpacked".to_owned());
            return Err(Error::TooLarge { path, what, bytes: claimed, most: MOST_BYTES });
        }
        let mut bytes = Vec::new();
        let read = entry.by_ref().take(claimed + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.refused(name, &error))?;
        if bytes.len() as u64 != claimed {
            let found = if bytes.len() as u64 > claimed { "more" } else { "less" };
            return Err(Error::broken(name, &format!("expected {claimed} bytes, found {found}")));
        }
        Ok(bytes)
    }
}

/// A name as folders and a name: whatever would lead out of the archive is left away.
fn parts(name: &str) -> Vec<String> {
    let parts = name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | ".."));
    let parts: Vec<String> = parts.map(str::to_owned).collect();
    if parts.is_empty() { vec!["entry without a name".to_owned()] } else { parts }
}
