//! The files of a data set, in a folder or in a compressed archive.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use ivoro_io::features::most_unpacked;

use super::listing::name_of;
use crate::error::{Error, Result};

/// More bytes than a file of any known set of this kind has.
const MOST_FILE: u64 = 1 << 34;

/// Named files, in a folder or unpacked from an archive.
pub(super) struct Store {
    path: PathBuf,
    /// None for a folder, whose files are read when they are asked for.
    unpacked: Option<BTreeMap<String, Vec<u8>>>,
}

impl Store {
    pub(super) fn folder(path: &Path) -> Self {
        Self { path: path.to_owned(), unpacked: None }
    }

    /// Unpacks the files called as one of `wanted` from a `.tar.gz`, in memory and in one pass.
    pub(super) fn tar_gz(path: &Path, wanted: &[&str]) -> Result<Self> {
        let file = fs_err::File::open(path)?;
        let most = most_unpacked(usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX));
        let mut archive = tar::Archive::new(MultiGzDecoder::new(BufReader::new(file)));
        let refuse = |error| Error::malformed(path, format!("not a complete .tar.gz: {error}"));
        let (mut unpacked, mut total) = (BTreeMap::new(), 0_u64);
        for entry in archive.entries().map_err(refuse)? {
            let mut entry = entry.map_err(refuse)?;
            let name = name_of(&entry.path().map_err(refuse)?);
            total = total.saturating_add(entry.size());
            if total > most {
                let what = format!("everything up to {name}");
                return Err(Error::TooLarge { path: path.to_owned(), what, bytes: total, most });
            }
            if !entry.header().entry_type().is_file() || !wanted.contains(&name.as_str()) {
                continue;
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(refuse)?;
            if (bytes.len() as u64) < entry.size() {
                let what =
                    format!("{name}: expected {} bytes, found {}", entry.size(), bytes.len());
                return Err(Error::malformed(path, what));
            }
            if unpacked.insert(name.clone(), bytes).is_some() {
                return Err(Error::malformed(path, format!("two files are called {name}")));
            }
        }
        Ok(Self { path: path.to_owned(), unpacked: Some(unpacked) })
    }

    /// Where a file is, for messages.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match &self.unpacked {
            Some(unpacked) => unpacked.contains_key(name),
            None => self.path.join(name).is_file(),
        }
    }

    /// The contents of a file, once.
    pub(super) fn take(&mut self, name: &str, expected: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        if !self.has(name) {
            return Err(Error::Missing { path, expected: expected.to_owned() });
        }
        match &mut self.unpacked {
            Some(unpacked) => Ok(unpacked.remove(name).unwrap_or_default()),
            None => read_file(&path),
        }
    }
}

/// The contents of a file, unpacked if its name ends in `.gz`.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let file = fs_err::File::open(path)?;
    let length = file.metadata()?.len();
    let is_packed = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"));
    let most = if is_packed {
        most_unpacked(usize::try_from(length).unwrap_or(usize::MAX)).min(MOST_FILE)
    } else {
        MOST_FILE
    };
    let too_large = |bytes| {
        let (path, what) = (path.to_owned(), "the file".to_owned());
        Error::TooLarge { path, what, bytes, most }
    };
    if length > most {
        return Err(too_large(length));
    }
    let mut bytes = Vec::new();
    let reader = BufReader::new(file);
    if is_packed {
        let unpacked = MultiGzDecoder::new(reader).take(most + 1).read_to_end(&mut bytes);
        unpacked.map_err(|error| Error::malformed(path, format!("not a complete .gz: {error}")))?;
    } else {
        reader.take(most + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > most { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}

/// The lines of a text of class names, without those that are empty.
pub(super) fn names(path: &Path, bytes: &[u8]) -> Result<Vec<String>> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|_| Error::malformed(path, "expected class names, found no text"))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
