//! Files as slices of memory.

use std::path::Path;

use fs_err::File;
use memmap2::Mmap;

use ivoro::{Error, Result};

/// Maps a regular file for reading.
#[allow(unsafe_code, reason = "the only way to map a file; see SAFETY below")]
pub(crate) fn map(path: &Path) -> Result<Mmap> {
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
    let broken = |error| Error::malformed(path, format!("can't be mapped into memory: {error}"));
    map.map_err(broken)
}
