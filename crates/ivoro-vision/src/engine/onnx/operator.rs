//! The operators of an ONNX file and its weights, for the engine that computes them itself.

use std::collections::BTreeMap;

use super::protobuf::Field;
use crate::engine::cpu::window::Window;

/// The numbers of the element types `float`, `int64` and `bool`.
const FLOAT: u64 = 1;
const INTEGER: u64 = 7;
const BOOLEAN: u64 = 9;

/// The field that no message has: numbers that are always bytes.
const UNPACKED: u64 = 0;

/// Files of weights, by the name that the network has for them.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// An operator as the file has it.
#[derive(Default)]
pub(super) struct Node<'a> {
    pub(super) kind: &'a str,
    pub(super) domain: &'a str,
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) attributes: BTreeMap<&'a str, Attribute<'a>>,
}

/// What an operator is told besides its inputs.
#[derive(Default)]
pub(super) struct Attribute<'a> {
    number: Option<i64>,
    float: Option<f32>,
    numbers: Vec<i64>,
    text: &'a [u8],
    pub(super) tensor: Option<Field<'a>>,
}

/// Whether a set of operators is the one everybody has.
pub(super) fn is_standard(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

/// A message's field of a number, the last one if there are several.
fn part<'a>(message: &Field<'a>, number: u64) -> Option<Field<'a>> {
    let fields = message.fields().ok()?;
    fields.filter_map(Result::ok).filter(|field| field.number == number).last()
}

pub(super) fn text<'a>(message: &Field<'a>, number: u64) -> Option<&'a str> {
    part(message, number)?.text().ok()
}

pub(super) fn number(message: &Field, at: u64) -> Option<u64> {
    part(message, at)?.number().ok()
}

impl<'a> Node<'a> {
    pub(super) fn read(field: &Field<'a>) -> Option<Self> {
        let mut node = Self::default();
        for part in field.fields().ok()? {
            let part = part.ok()?;
            match part.number {
                1 => node.inputs.push(part.text().ok()?),
                2 => node.outputs.push(part.text().ok()?),
                4 => node.kind = part.text().ok()?,
                5 => drop(node.attributes.insert(text(&part, 1)?, Attribute::read(&part)?)),
                7 => node.domain = part.text().ok()?,
                _ => {}
            }
        }
        Some(node)
    }

    // An attribute without content is 0: some writers leave that out.
    pub(super) fn number(&self, name: &str, default: i64) -> i64 {
        self.attributes.get(name).map_or(default, |attribute| attribute.number.unwrap_or(0))
    }

    pub(super) fn float(&self, name: &str, default: f32) -> f32 {
        self.attributes.get(name).map_or(default, |attribute| attribute.float.unwrap_or(0.0))
    }

    pub(super) fn numbers(&self, name: &str) -> &[i64] {
        self.attributes.get(name).map_or(&[], |attribute| &attribute.numbers)
    }

    /// Whether there is nothing after so many inputs, and one output.
    pub(super) fn has_only(&self, inputs: usize) -> bool {
        let absent = |names: &[&str]| names.iter().all(|name| name.is_empty());
        absent(self.inputs.get(inputs..).unwrap_or_default())
            && absent(self.outputs.get(1..).unwrap_or_default())
    }

    /// The window that is moved over an image of this size, if its pixels lie side by side.
    pub(super) fn window(
        &self,
        size: (usize, usize),
        (height, width): (usize, usize),
    ) -> Option<Window> {
        let whole = |number: &i64| usize::try_from(*number).ok();
        let pair = |name: &str, default: (usize, usize)| match self.numbers(name) {
            [] => Some(default),
            [rows, columns] => Some((whole(rows)?, whole(columns)?)),
            _ => None,
        };
        if pair("dilations", (1, 1))? != (1, 1) || pair("kernel_shape", size)? != size {
            return None;
        }
        let step = pair("strides", (1, 1))?;
        let (before, after) = match (self.text("auto_pad"), self.numbers("pads")) {
            (b"" | b"NOTSET", []) | (b"VALID", _) => ((0, 0), (0, 0)),
            (b"" | b"NOTSET", [top, left, bottom, right]) => {
                ((whole(top)?, whole(left)?), (whole(bottom)?, whole(right)?))
            }
            (kind @ (b"SAME_UPPER" | b"SAME_LOWER"), _) => {
                let rows = same(size.0, step.0, height)?;
                let columns = same(size.1, step.1, width)?;
                let (less, more) =
                    ((rows / 2, columns / 2), (rows.div_ceil(2), columns.div_ceil(2)));
                if kind == b"SAME_UPPER" { (less, more) } else { (more, less) }
            }
            _ => return None,
        };
        Some(Window { size, step, before, after })
    }

    pub(super) fn text(&self, name: &str) -> &'a [u8] {
        self.attributes.get(name).map_or(&b""[..], |attribute| attribute.text)
    }
}

/// Rows or columns around an image so that a window has a position for each step of it.
fn same(size: usize, step: usize, length: usize) -> Option<usize> {
    let last = length.div_ceil(Some(step).filter(|&step| step > 0)?).checked_sub(1)?;
    Some(last.checked_mul(step)?.checked_add(size)?.saturating_sub(length))
}

impl<'a> Attribute<'a> {
    fn read(field: &Field<'a>) -> Option<Self> {
        let mut attribute = Self::default();
        for part in field.fields().ok()? {
            let part = part.ok()?;
            match part.number {
                2 => attribute.float = part.bytes().ok()?.try_into().map(f32::from_le_bytes).ok(),
                3 => attribute.number = Some(part.number().ok()?.cast_signed()),
                4 => attribute.text = part.bytes().ok()?,
                5 => attribute.tensor = Some(part),
                8 => attribute.numbers.extend(signed(part.numbers().ok()?)),
                _ => {}
            }
        }
        Some(attribute)
    }
}

fn signed(numbers: Vec<u64>) -> impl Iterator<Item = i64> {
    numbers.into_iter().map(u64::cast_signed)
}

/// Dimensions and bytes of a weight of element type `kind`; `packed` is the field of its numbers
/// where they are not bytes.
fn weight(field: &Field, kind: u64, packed: u64, files: &Files) -> Option<(Vec<usize>, Vec<u8>)> {
    let (mut shape, mut found, mut bytes) = (Vec::new(), 0, Vec::new());
    let mut outside = BTreeMap::new();
    for part in field.fields().ok()? {
        let part = part.ok()?;
        match part.number {
            1 => shape.extend(part.numbers().ok()?.into_iter().map(|size| size as usize)),
            2 => found = part.number().ok()?,
            9 => bytes.extend_from_slice(part.bytes().ok()?),
            13 => drop(outside.insert(text(&part, 1)?, text(&part, 2)?)),
            number if number == packed && kind == FLOAT => {
                bytes.extend_from_slice(part.bytes().ok()?);
            }
            number if number == packed => {
                let numbers = part.numbers().ok()?.into_iter();
                bytes.extend(numbers.flat_map(u64::to_le_bytes));
            }
            _ => {}
        }
    }
    if let Some(&name) = outside.get("location") {
        let place = |name| outside.get(name).map(|text| text.parse::<usize>().ok());
        let start = place("offset").unwrap_or(Some(0))?;
        let rest = files.get(name)?.get(start..)?;
        bytes.extend_from_slice(rest.get(..place("length").unwrap_or(Some(rest.len()))?)?);
    }
    (found == kind).then_some((shape, bytes))
}

/// Dimensions and numbers of a weight of 32-bit floats, of which there are some.
pub(super) fn floats(field: &Field, files: &Files) -> Option<(Vec<usize>, Vec<f32>)> {
    let (shape, bytes) = weight(field, FLOAT, 4, files)?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    let whole = count(&shape) == Some(numbers.len()) && rest.is_empty() && !numbers.is_empty();
    whole.then(|| (shape, numbers.iter().copied().map(f32::from_le_bytes).collect()))
}

/// Dimensions and numbers of a weight of 64-bit integers, of which there may be none.
pub(super) fn integers(field: &Field, files: &Files) -> Option<(Vec<usize>, Vec<i64>)> {
    let (shape, bytes) = weight(field, INTEGER, 7, files)?;
    let (numbers, rest) = bytes.as_chunks::<8>();
    let whole = count(&shape) == Some(numbers.len()) && rest.is_empty();
    whole.then(|| (shape, numbers.iter().copied().map(i64::from_le_bytes).collect()))
}

/// Dimensions and truths of a weight of one byte each, 1 or 0.
pub(super) fn booleans(field: &Field, files: &Files) -> Option<(Vec<usize>, Vec<i64>)> {
    let (shape, bytes) = weight(field, BOOLEAN, UNPACKED, files)?;
    let whole = count(&shape) == Some(bytes.len());
    whole.then(|| (shape, bytes.into_iter().map(|byte| i64::from(byte != 0)).collect()))
}

fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size))
}
