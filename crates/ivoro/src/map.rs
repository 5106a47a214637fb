//! Files as slices of memory.

use std::path::Path;

use fs_err::File;
use memmap2::Mmap;

use crate::error::{Error, Result};

/// Maps a regular file for reading.
pub(crate) fn map(path: &Path) -> Result<Mmap> {
    Ok(open_and_map(path)?.1)
}

/// The same, and the open file: a map can be given up and the same file read on.
#[allow(unsafe_code, reason = "the only way to map a file; see SAFETY below")]
pub(crate) fn open_and_map(path: &Path) -> Result<(File, Mmap)> {
    let file = File::open(path)?;
    // A pipe or a directory has no length to check anything against.
    if !file.metadata()?.is_file() {
        let sentence = format!("{}: not a regular file", path.display());
        return Err(std::io::Error::other(sentence).into());
    }
    // SAFETY: the map is read-only, private to one `read` call, and only ever read as plain
    // bytes, for which every bit pattern is valid: another process that rewrites the file
    // meanwhile gives wrong numbers, as with `read(2)`. One that truncates it meanwhile ends this
    // process with SIGBUS, which is no memory unsafety and is documented in docs/format.md.
    let map = unsafe { Mmap::map(file.file()) };
    let broken = |error| malformed(path, format!("can't be mapped into memory: {error}"));
    Ok((file, map.map_err(broken)?))
}

fn malformed(path: &Path, what: String) -> Error {
    Error::Malformed { path: path.to_owned(), what }
}

/// Of a safetensors file that can't be read: how many bytes it lacks, if that is why.
pub(crate) fn shortage(bytes: &[u8]) -> Option<String> {
    let found = bytes.len() as u64;
    let short = |what: &str, expected: u64| {
        Some(format!("{what}: expected {expected} bytes, found {found}; the file may be cut off"))
    };
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return short("the length of the header", 8);
    };
    let length = u64::from_le_bytes(*length);
    let Some(header) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
        return short("the header", length.saturating_add(8));
    };
    let header: serde_json::Value = serde_json::from_slice(header).ok()?;
    let ends = header.as_object().into_iter().flatten();
    let end = ends.filter_map(|(_, tensor)| tensor["data_offsets"][1].as_u64()).max()?;
    let expected = end.saturating_add(length).saturating_add(8);
    if expected > found { short("the tensors", expected) } else { None }
}
