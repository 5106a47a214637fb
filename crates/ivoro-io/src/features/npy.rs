//! `NumPy` arrays: the `.npy` format, alone or inside an archive.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::array::{Array, ArrayHeader, Element, Order};
use super::assemble::Parts;
use super::keys::{LAST, Part};
use super::{FeatureFile, ReadOptions};
use crate::map;
use ivoro::{Error, Result};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Real headers are about a hundred bytes; only structured types need more.
const LONGEST_HEADER: usize = 1 << 16;
/// Within so many bytes every header that is read has ended.
pub(super) const MOST_START: usize = LONGEST_HEADER + 12;
/// `NumPy` itself stops here.
const MOST_AXES: usize = 64;

/// Where the labels of a lone array are.
#[derive(Debug)]
pub(super) enum LabelFile {
    None,
    At(PathBuf),
}

/// The file named by the options, else `NAME.labels.npy` or `NAME_labels.npy` next to `path`.
pub(super) fn labels_beside(path: &Path, options: &ReadOptions) -> Result<LabelFile> {
    if let Some(labels) = &options.labels {
        return Ok(LabelFile::At(labels.clone()));
    }
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
        return Ok(LabelFile::None);
    };
    for name in [format!("{stem}.labels.npy"), format!("{stem}_labels.npy")] {
        let beside = path.with_file_name(name);
        if beside.try_exists()? {
            return Ok(LabelFile::At(beside));
        }
    }
    Ok(LabelFile::None)
}

/// An array on its own: one layer, not divided.
pub(super) fn read_lone(
    path: &Path,
    bytes: &[u8],
    labels: &LabelFile,
    options: &ReadOptions,
) -> Result<FeatureFile> {
    // A lone array has no layer name to choose by.
    let options = ReadOptions { layers: None, ..options.clone() };
    let mut parts = Parts::new(path, &options);
    let features = parse(path, "array", Cow::Borrowed(bytes))?;
    parts.add_layer(Part::All, LAST.to_owned(), features.matrices()?)?;
    if let LabelFile::At(beside) = labels {
        let mapped = map::map(beside)?;
        let labels = parse(beside, "array", Cow::Borrowed(&mapped))?.labels()?;
        parts.add_labels(Part::All, labels)?;
    }
    parts.finish()
}

/// The array in `bytes`, called `name` in messages.
pub(super) fn parse<'a>(path: &'a Path, name: &str, bytes: Cow<'a, [u8]>) -> Result<Array<'a>> {
    let refuse = |what: String| Error::malformed(path, format!("{name}: {what}"));
    let (text, start) = header(&bytes).map_err(refuse)?;
    let header = Header::parse(text).map_err(refuse)?;
    let data = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[start..]),
        Cow::Owned(mut bytes) => {
            bytes.drain(..start);
            Cow::Owned(bytes)
        }
    };
    let order = Order { big_endian: header.big_endian, fortran: header.fortran };
    Array::new(path, name, header.shape, header.element, order, data)
}

/// What the header of the array says; `bytes` are its first ones, [`MOST_START`] or all there are.
pub(super) fn array_header(path: &Path, name: &str, bytes: &[u8]) -> Result<ArrayHeader> {
    let refuse = |what: String| Error::malformed(path, format!("{name}: {what}"));
    let (text, _) = header(bytes).map_err(refuse)?;
    let Header { element, shape, .. } = Header::parse(text).map_err(refuse)?;
    let holds_bytes = element == Element::Integer { bytes: 1, signed: false };
    Ok(ArrayHeader { shape, holds_bytes })
}

/// The header's text and where the data begin.
fn header(bytes: &[u8]) -> Result<(&str, usize), String> {
    let truncated = || "not a complete NumPy array: the header is cut short".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("not a NumPy array: the first bytes differ")?;
    let (&[major, _], rest) = rest.split_first_chunk::<2>().ok_or_else(truncated)?;
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
            (u32::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
            (u32::from_le_bytes(*length), rest)
        }
        _ => return Err(format!("NumPy array format {major}, this program reads 1 to 3")),
    };
    let length = length as usize;
    if length > LONGEST_HEADER {
        return Err(format!("a header of {length} bytes, at most {LONGEST_HEADER} are read"));
    }
    let text = rest.get(..length).ok_or_else(truncated)?;
    let text = std::str::from_utf8(text).map_err(|_| "the header is not text".to_owned())?;
    Ok((text, bytes.len() - rest.len() + length))
}

#[derive(Debug, PartialEq, Eq)]
struct Header {
    element: Element,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Reads the dictionary literal that `NumPy` writes: the three keys, in any order, once each.
    fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Literal { rest: text };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        reader.expect('{')?;
        while !reader.accept('}') {
            let key = reader.string()?;
            reader.expect(':')?;
            let repeated = match key {
                "descr" => descr.replace(reader.string()?).is_some(),
                "fortran_order" => fortran.replace(reader.boolean()?).is_some(),
                "shape" => shape.replace(reader.shape()?).is_some(),
                _ => return Err(format!("the header has an unknown key {key}")),
            };
            if repeated {
                return Err(format!("the header has {key} twice"));
            }
            if !reader.accept(',') {
                reader.expect('}')?;
                break;
            }
        }
        let missing = |key: &str| format!("the header has no {key}");
        let (big_endian, element) = element(descr.ok_or_else(|| missing("descr"))?)?;
        let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
        Ok(Self { element, big_endian, fortran, shape: shape.ok_or_else(|| missing("shape"))? })
    }
}

/// A `NumPy` type such as `<f4`, `>i8`, `|u1`, `<U12` or `S5`.
fn element(descr: &str) -> Result<(bool, Element), String> {
    let refuse = || format!("elements of type {descr} are not read");
    let (big_endian, kind) = match descr.split_at_checked(1) {
        Some(("<" | "|" | "=", kind)) => (false, kind),
        Some((">", kind)) => (true, kind),
        _ => (false, descr),
    };
    let (kind, size) = kind.split_at_checked(1).ok_or_else(refuse)?;
    let size: usize = size.parse().map_err(|_| refuse())?;
    let element = match (kind, size) {
        ("f", 2) => Element::F16,
        ("f", 4) => Element::F32,
        ("f", 8) => Element::F64,
        ("i", 1 | 2 | 4 | 8) => Element::Integer { bytes: size, signed: true },
        ("u", 1 | 2 | 4 | 8) | ("b", 1) => Element::Integer { bytes: size, signed: false },
        ("U", 1..) => Element::Unicode { characters: size },
        ("S" | "a", 1..) => Element::Bytes { length: size },
        _ => return Err(refuse()),
    };
    Ok((big_endian, element))
}

/// A reader of the few Python literals a header is made of.
struct Literal<'a> {
    rest: &'a str,
}

impl<'a> Literal<'a> {
    fn accept(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.accept(wanted) {
            return Ok(());
        }
        let found = self.rest.chars().next().map_or("its end".to_owned(), |c| format!("{c:?}"));
        Err(format!("the header has {found} where {wanted:?} was expected"))
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect(quote)?;
        }
        let unfinished = || "the header has a string without an end".to_owned();
        let (text, rest) = self.rest.split_once(quote).ok_or_else(unfinished)?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("the header's fortran_order is neither True nor False".to_owned())
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.accept(')') {
            if shape.len() == MOST_AXES {
                return Err(format!("the header's shape has more than {MOST_AXES} axes"));
            }
            shape.push(self.number()?);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Result<usize, String> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        // Python 2 wrote long integers with an L behind.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        digits.parse().map_err(|_| "the header's shape has an axis that is no number".to_owned())
    }
}

#[cfg(test)]
#[path = "npy_tests.rs"]
mod tests;
