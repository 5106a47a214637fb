//! Arrays as files hold them: bytes, an element type and a shape, checked against each other.

use std::borrow::Cow;
use std::path::Path;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rayon::prelude::*;

use super::labels::{Interner, Labels, MAX_CLASSES};
use ivoro::Matrix;
use ivoro::{Error, Result};

/// What one element of an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    F16,
    BF16,
    F32,
    F64,
    Integer {
        bytes: usize,
        signed: bool,
    },
    /// `NumPy`'s `U`: a fixed number of UTF-32 code points, padded with zeros.
    Unicode {
        characters: usize,
    },
    /// `NumPy`'s `S`: a fixed number of bytes, padded with zeros.
    Bytes {
        length: usize,
    },
}

impl Element {
    /// Bytes of one element, or `None` where the product leaves `usize`.
    pub(super) fn size(self) -> Option<usize> {
        match self {
            Self::F16 | Self::BF16 => Some(2),
            Self::F32 => Some(4),
            Self::F64 => Some(8),
            Self::Integer { bytes, .. } => Some(bytes),
            Self::Unicode { characters } => characters.checked_mul(4),
            Self::Bytes { length } => Some(length),
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }
}

/// What the header of an array says of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayHeader {
    /// Its axes.
    pub shape: Vec<usize>,
    /// Whether they are unsigned bytes, as pixels are.
    pub holds_bytes: bool,
}

/// Byte order and axis order of an array's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) big_endian: bool,
    /// The first axis runs fastest.
    pub(super) fortran: bool,
}

/// Integers of a file, the last axis running fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerArray {
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The numbers, as many as the product of the axes.
    pub values: Integers,
}

/// Numbers as narrow as the file has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integers {
    /// Unsigned bytes.
    Bytes(Vec<u8>),
    /// All other integers.
    Wide(Vec<i64>),
}

/// An array whose bytes are exactly what its shape and element type call for.
#[derive(Debug)]
pub(super) struct Array<'a> {
    path: &'a Path,
    name: String,
    shape: Vec<usize>,
    element: Element,
    order: Order,
    size: usize,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Array<'a> {
    /// Checks that `shape · element` is the length of `bytes`; nothing is allocated before.
    pub(super) fn new(
        path: &'a Path,
        name: &str,
        shape: Vec<usize>,
        element: Element,
        order: Order,
        bytes: Cow<'a, [u8]>,
    ) -> Result<Self> {
        let size = element.size().filter(|&size| size > 0);
        let count = shape.iter().try_fold(1_usize, |product, &axis| product.checked_mul(axis));
        let needed = count.zip(size).and_then(|(count, size)| count.checked_mul(size));
        if let (Some(size), true) = (size, needed == Some(bytes.len())) {
            return Ok(Self { path, name: name.to_owned(), shape, element, order, size, bytes });
        }
        let needed =
            needed.map_or("an impossible number of".to_owned(), |needed| needed.to_string());
        let found = bytes.len();
        let what = format!("{name}: shape {shape:?} needs {needed} bytes of data, found {found}");
        Err(Error::malformed(path, what))
    }

    /// One matrix a view from `[n, dim]` (one view) or `[n, views, dim]`.
    pub(super) fn matrices(&self) -> Result<Vec<Matrix>> {
        if !self.element.is_float() {
            return Err(self.malformed("features must be 16, 32 or 64-bit floats"));
        }
        let (rows, views, dim) = match self.shape[..] {
            [rows, dim] => (rows, 1, dim),
            [rows, views, dim] => (rows, views, dim),
            _ => {
                let what = format!("expected [n, dim] or [n, views, dim], found {:?}", self.shape);
                return Err(self.malformed(&what));
            }
        };
        // An empty axis would let the others claim any size without a byte behind it.
        if rows == 0 || views == 0 || dim == 0 {
            return Err(self.malformed(&format!("shape {:?} holds no number", self.shape)));
        }
        (0..views).map(|view| self.view(rows, views, dim, view)).collect()
    }

    fn view(&self, rows: usize, views: usize, dim: usize, view: usize) -> Result<Matrix> {
        let mut data = vec![0.0_f32; rows * dim];
        data.par_chunks_mut(dim).enumerate().for_each(|(row, out)| {
            if self.order.fortran {
                for (column, out) in out.iter_mut().enumerate() {
                    let at = row + rows * (view + views * column);
                    self.convert(at, std::slice::from_mut(out));
                }
            } else {
                self.convert((row * views + view) * dim, out);
            }
        });
        Matrix::new(rows, dim, data)
    }

    /// The elements from `start` on, as `f32`.
    fn convert(&self, start: usize, out: &mut [f32]) {
        let bytes = &self.bytes[start * self.size..(start + out.len()) * self.size];
        match (self.element, self.order.big_endian) {
            (Element::F16, false) => match native::<f16>(bytes) {
                Some(values) => values.convert_to_f32_slice(out),
                None => each(bytes, out, |raw| f16::from_le_bytes(raw).to_f32()),
            },
            (Element::BF16, false) => match native::<bf16>(bytes) {
                Some(values) => values.convert_to_f32_slice(out),
                None => each(bytes, out, |raw| bf16::from_le_bytes(raw).to_f32()),
            },
            (Element::F32, false) => each(bytes, out, f32::from_le_bytes),
            (Element::F64, false) => each(bytes, out, |raw| f64::from_le_bytes(raw) as f32),
            (Element::F16, true) => each(bytes, out, |raw| f16::from_be_bytes(raw).to_f32()),
            (Element::BF16, true) => each(bytes, out, |raw| bf16::from_be_bytes(raw).to_f32()),
            (Element::F32, true) => each(bytes, out, f32::from_be_bytes),
            (Element::F64, true) => each(bytes, out, |raw| f64::from_be_bytes(raw) as f32),
            // `matrices` lets floats through only.
            _ => out.fill(f32::NAN),
        }
    }

    /// One label a row from a `[n]` (or `[n, 1]`) array of integers or strings.
    pub(super) fn labels(&self) -> Result<Labels> {
        if !matches!(self.shape[..], [_] | [_, 1]) {
            return Err(self.malformed(&format!("expected labels [n], found {:?}", self.shape)));
        }
        match self.element {
            Element::Integer { signed, .. } => self.integer_labels(signed),
            Element::Unicode { .. } | Element::Bytes { .. } => {
                let mut interner = Interner::default();
                for row in 0..self.bytes.len() / self.size {
                    let refuse = |what| self.malformed(&format!("row {row}: {what}"));
                    interner.push(&self.text(row)?).map_err(refuse)?;
                }
                Ok(interner.finish())
            }
            _ => Err(self.malformed("labels must be integers or strings, found floats")),
        }
    }

    fn integer_labels(&self, signed: bool) -> Result<Labels> {
        let parse = |(row, raw): (usize, &[u8])| {
            let value = integer(raw, self.order.big_endian, signed);
            match u32::try_from(value) {
                Ok(label) if (label as usize) < MAX_CLASSES => Ok(label),
                _ => Err(self.label_range(row, value)),
            }
        };
        let labels = self.bytes.chunks_exact(self.size).enumerate().map(parse);
        Ok(Labels::Ids(labels.collect::<Result<_>>()?))
    }

    /// The numbers of an array of integers.
    pub(super) fn into_integers(self) -> Result<IntegerArray> {
        let Element::Integer { bytes, signed } = self.element else {
            return Err(self.malformed("expected an array of integers"));
        };
        // With one axis longer than 1 both orders are the same.
        if self.order.fortran && self.shape.iter().filter(|&&axis| axis > 1).count() > 1 {
            return Err(
                self.malformed("expected the last axis to run fastest, found Fortran order")
            );
        }
        if bytes == 1 && !signed {
            let values = Integers::Bytes(self.bytes.into_owned());
            return Ok(IntegerArray { shape: self.shape, values });
        }
        let narrow = |raw: &[u8]| i64::try_from(integer(raw, self.order.big_endian, signed));
        let values: Result<Vec<i64>, _> = self.bytes.chunks_exact(self.size).map(narrow).collect();
        match values {
            Ok(values) => Ok(IntegerArray { shape: self.shape, values: Integers::Wide(values) }),
            Err(_) => Err(self.malformed("a number does not fit 64 bits with a sign")),
        }
    }

    fn label_range(&self, row: usize, value: i128) -> Error {
        match i64::try_from(value) {
            Ok(label) => {
                let origin = format!("{}: {}", self.path.display(), self.name);
                Error::LabelRange { origin, row, label, classes: MAX_CLASSES }
            }
            Err(_) => {
                self.malformed(&format!("row {row}: label {value} is outside 0..{MAX_CLASSES}"))
            }
        }
    }

    /// All elements as text, for arrays that name classes, layers or views.
    pub(super) fn texts(&self) -> Result<Vec<String>> {
        if !matches!(self.element, Element::Unicode { .. } | Element::Bytes { .. }) {
            return Err(self.malformed("expected an array of strings"));
        }
        (0..self.bytes.len() / self.size).map(|at| self.text(at)).collect()
    }

    fn text(&self, at: usize) -> Result<String> {
        let raw = &self.bytes[at * self.size..(at + 1) * self.size];
        let text = match self.element {
            Element::Unicode { .. } => unicode(raw, self.order.big_endian),
            _ => std::str::from_utf8(raw).ok().map(str::to_owned),
        };
        let text = text.ok_or_else(|| self.malformed(&format!("row {at}: not valid text")))?;
        Ok(text.trim_end_matches('\0').to_owned())
    }

    fn malformed(&self, what: &str) -> Error {
        Error::malformed(self.path, format!("{}: {what}", self.name))
    }
}

/// The bytes as numbers in place, where alignment and this machine's byte order allow it.
fn native<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Option<&[T]> {
    if cfg!(target_endian = "little") { bytemuck::try_cast_slice(bytes).ok() } else { None }
}

fn each<const N: usize>(bytes: &[u8], out: &mut [f32], convert: impl Fn([u8; N]) -> f32) {
    let (chunks, _) = bytes.as_chunks::<N>();
    for (out, raw) in out.iter_mut().zip(chunks) {
        *out = convert(*raw);
    }
}

/// An integer of up to eight bytes.
fn integer(raw: &[u8], big_endian: bool, signed: bool) -> i128 {
    let fold = |value: i128, &byte: &u8| (value << 8) | i128::from(byte);
    let value = if big_endian { raw.iter().fold(0, fold) } else { raw.iter().rev().fold(0, fold) };
    let bits = raw.len() * 8;
    if signed && value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
}

fn unicode(raw: &[u8], big_endian: bool) -> Option<String> {
    let (points, _) = raw.as_chunks::<4>();
    let decode = if big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
    points.iter().map(|&point| char::from_u32(decode(point))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(shape: &[usize], element: Element, order: Order, bytes: Vec<u8>) -> Result<Array<'_>> {
        Array::new(Path::new("a.npy"), "x", shape.to_vec(), element, order, bytes.into())
    }

    #[test]
    fn splits_views_without_transposing() {
        // 3 rows × 2 views × 5 dims; the value spells row, view, column.
        let value = |row, view, column| f32::from(100 * row + 10 * view + column);
        let mut bytes = Vec::new();
        for at in 0..30_u16 {
            let (row, view, column) = (at / 10, at / 5 % 2, at % 5);
            bytes.extend_from_slice(&value(row, view, column).to_le_bytes());
        }
        let matrices =
            array(&[3, 2, 5], Element::F32, Order::default(), bytes).unwrap().matrices().unwrap();
        assert_eq!(matrices.len(), 2);
        assert_eq!(matrices[1].row(2), [210.0, 211.0, 212.0, 213.0, 214.0]);
        assert_eq!(matrices[0].row(1), [100.0, 101.0, 102.0, 103.0, 104.0]);
    }

    #[test]
    fn unaligned_half_precision_reads_like_aligned() {
        let values = [0.5_f32, -2.0, 1024.0, 6.0e-5, -0.0, 3.25];
        let mut bytes = vec![0_u8];
        bytes.extend(values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()));
        let path = Path::new("a");
        for start in [0, 1] {
            let copy = [&bytes[1 - start..1], &bytes[1..]].concat();
            let view = Cow::Borrowed(&copy[start..]);
            let array =
                Array::new(path, "x", vec![2, 3], Element::F16, Order::default(), view).unwrap();
            let matrix = &array.matrices().unwrap()[0];
            let expected = values.map(|value| f16::from_f32(value).to_f32());
            assert_eq!(matrix.as_slice(), expected);
        }
    }

    #[test]
    fn integers_of_every_width_and_sign() {
        assert_eq!(integer(&[0xff], false, true), -1);
        assert_eq!(integer(&[0xff], false, false), 255);
        assert_eq!(integer(&[0x01, 0x02], false, true), 0x0201);
        assert_eq!(integer(&[0x01, 0x02], true, true), 0x0102);
        assert_eq!(integer(&[0xff; 8], false, false), i128::from(u64::MAX));
        assert_eq!(integer(&[0xff; 8], true, true), -1);
    }

    #[test]
    fn a_negative_label_is_named_with_its_row() {
        let bytes = [0_i16, 1, -3].into_iter().flat_map(i16::to_le_bytes).collect();
        let element = Element::Integer { bytes: 2, signed: true };
        let error = array(&[3], element, Order::default(), bytes).unwrap().labels().unwrap_err();
        assert_eq!(error.to_string(), "a.npy: x: row 2: label -3 is outside 0..16777216");
    }

    #[test]
    fn a_shape_that_overflows_is_refused() {
        let shape = [1 << 40, 1 << 40];
        let error = array(&shape, Element::F64, Order::default(), vec![0; 8]).unwrap_err();
        assert!(error.to_string().contains("an impossible number of bytes"), "{error}");
    }

    #[test]
    fn an_empty_axis_is_refused() {
        for shape in [[usize::MAX, 0], [0, usize::MAX]] {
            let array = array(&shape, Element::F32, Order::default(), Vec::new());
            assert!(array.and_then(|array| array.matrices()).is_err());
        }
    }
}
