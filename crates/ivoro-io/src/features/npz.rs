//! `NumPy` archives: `.npz`, a zip of `.npy` members, stored or deflated.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;

use zip::ZipArchive;

use super::array::{ArrayHeader, IntegerArray};
use super::assemble::Parts;
use super::keys::{Role, asked_for, missing, usual};
use super::{FeatureFile, ReadOptions, npy};
use ivoro::{Error, Result};

/// Features rarely compress tenfold; an archive that claims to unpack to more than this many
/// times its length (and to more than [`ALWAYS_READ`]) is taken for a bomb.
const MOST_EXPANSION: u64 = 100;
/// Unpacked sizes up to this are read whatever the ratio.
const ALWAYS_READ: u64 = 1 << 28;
/// More members than any archive of features has.
const MOST_MEMBERS: usize = 1 << 12;

/// How many bytes a compressed file of `length` bytes may unpack to before it is taken for a
/// decompression bomb.
pub fn most_unpacked(length: usize) -> u64 {
    (length as u64).saturating_mul(MOST_EXPANSION).max(ALWAYS_READ)
}

pub(super) fn read(path: &Path, bytes: &[u8], options: &ReadOptions) -> Result<FeatureFile> {
    let mut parts = Parts::new(path, options);
    let mut names = Vec::new();
    each_array(path, bytes, |key, _| {
        names.push(key.to_owned());
        Ok(())
    })?;
    if let Some(missing) = missing(&names, options) {
        let found = names.join(", ");
        return Err(Error::malformed(
            path,
            format!("there is no array {missing}; the arrays are {found}"),
        ));
    }
    each_array(path, bytes, |key, unpack| {
        if is_text(key) {
            return add_text(path, &mut parts, key, unpack()?);
        }
        match asked_for(key, usual(key), options) {
            None => Ok(()),
            Some((_, Role::Layer(layer))) if !parts.wants(&layer) => Ok(()),
            Some(key_role) => {
                let array = npy::parse(path, key, Cow::Owned(unpack()?))?;
                parts.add(key_role, &array)
            }
        }
    })?;
    parts.finish()
}

/// The arrays of integers that are wanted, by name. Others are not unpacked.
pub(super) fn read_integers(
    path: &Path,
    bytes: &[u8],
    wanted: &[&str],
) -> Result<BTreeMap<String, IntegerArray>> {
    let mut arrays = BTreeMap::new();
    each_array(path, bytes, |key, unpack| {
        if wanted.contains(&key) {
            let array = npy::parse(path, key, Cow::Owned(unpack()?))?.into_integers()?;
            arrays.insert(key.to_owned(), array);
        }
        Ok(())
    })?;
    Ok(arrays)
}

/// The headers of the arrays that are wanted, by name. Nothing behind a header is unpacked.
pub(super) fn read_headers(
    path: &Path,
    bytes: &[u8],
    wanted: &[&str],
) -> Result<BTreeMap<String, ArrayHeader>> {
    let refuse = |error| Error::malformed(path, format!("not a readable zip archive: {error}"));
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(refuse)?;
    let mut headers = BTreeMap::new();
    for key in wanted {
        let name = format!("{key}.npy");
        let Ok(member) = archive.by_name(&name) else { continue };
        let mut start = Vec::new();
        let read = member.take(npy::MOST_START as u64).read_to_end(&mut start);
        read.map_err(|error| {
            Error::malformed(path, format!("{name}: can't be unpacked: {error}"))
        })?;
        headers.insert((*key).to_owned(), npy::array_header(path, key, &start)?);
    }
    Ok(headers)
}

/// Gives `visit` the name of each array and a function that unpacks it.
fn each_array(
    path: &Path,
    bytes: &[u8],
    mut visit: impl FnMut(&str, &mut dyn FnMut() -> Result<Vec<u8>>) -> Result<()>,
) -> Result<()> {
    let refuse = |error| Error::malformed(path, format!("not a readable zip archive: {error}"));
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(refuse)?;
    if archive.has_duplicate_names() {
        return Err(Error::malformed(path, "two members of the archive have the same name"));
    }
    if archive.len() > MOST_MEMBERS {
        let what = format!("{} members, at most {MOST_MEMBERS} are read", archive.len());
        return Err(Error::malformed(path, what));
    }
    let mut left = most_unpacked(bytes.len());
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(refuse)?;
        let name = member.name().map_err(refuse)?.into_owned();
        let Some(key) = name.strip_suffix(".npy") else {
            return Err(Error::malformed(path, format!("member {name} is not a .npy array")));
        };
        visit(key, &mut || {
            let size = member.size();
            left = left.checked_sub(size).ok_or_else(|| too_large(path, &name, bytes.len()))?;
            unpack(path, &name, &mut member, size)
        })?;
    }
    Ok(())
}

fn too_large(path: &Path, name: &str, length: usize) -> Error {
    let most = most_unpacked(length);
    let what = format!(
        "{name} brings the unpacked size over {most} bytes, the most for a file of {length} bytes"
    );
    Error::malformed(path, what)
}

/// The member's bytes, which must be exactly as many as the archive declares. The buffer grows
/// with what is really there, so a declared size alone allocates nothing.
fn unpack(path: &Path, name: &str, member: &mut impl Read, size: u64) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    let read = member.take(size.saturating_add(1)).read_to_end(&mut data);
    read.map_err(|error| Error::malformed(path, format!("{name}: can't be unpacked: {error}")))?;
    if data.len() as u64 != size {
        let found = if data.len() as u64 > size { "more" } else { "fewer" };
        let what = format!("{name}: the archive declares {size} bytes, found {found}");
        return Err(Error::malformed(path, what));
    }
    Ok(data)
}

/// Arrays of strings that say of the file what the metadata of a `.features` file says.
fn is_text(key: &str) -> bool {
    matches!(key, "layers" | "views" | "classes")
}

fn add_text(path: &Path, parts: &mut Parts<'_>, key: &str, data: Vec<u8>) -> Result<()> {
    let array = npy::parse(path, key, Cow::Owned(data))?;
    let texts = array.texts()?;
    let text = if key == "classes" {
        serde_json::to_string(&texts).map_err(|error| Error::malformed(path, error.to_string()))?
    } else {
        texts.join(",")
    };
    parts.metadata.insert(key.to_owned(), text);
    Ok(())
}
