//! Values of a network that do not depend on its images: weights, and what operators make of them.
//!
//! Exporters write the sizes of values as little programs: the shape of a value, a part of it, a
//! number put to the front. What they give is computed once, when the network is loaded.

use super::elementwise::{elementwise, expand};
use super::operator::{Files, Node, booleans, floats, integers};
use super::protobuf::Field;

/// The most dimensions of a constant.
const DIMENSIONS: usize = 8;
/// The most numbers that an operator makes of constants.
const MOST: usize = 1 << 24;

/// Numbers in the order of their axes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array<T> {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Vec<T>,
}

/// A value that does not depend on the images.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Floats(Array<f32>),
    Integers(Array<i64>),
}

/// Applies a function to the array of a constant, of whatever type, which gives one of its type.
macro_rules! each {
    ($constant:expr, $array:ident => $made:expr) => {
        match $constant {
            Constant::Floats($array) => Constant::Floats($made),
            Constant::Integers($array) => Constant::Integers($made),
        }
    };
}

impl Constant {
    /// The constant in a message, if it is of a type that is known here.
    pub(super) fn read(field: &Field, files: &Files) -> Option<Self> {
        if let Some((shape, numbers)) = floats(field, files) {
            return Some(Self::Floats(Array { shape, numbers }));
        }
        // a truth is a number that is not 0
        let (shape, numbers) = integers(field, files).or_else(|| booleans(field, files))?;
        Some(Self::Integers(Array { shape, numbers }))
    }

    pub(super) fn shape(&self) -> &[usize] {
        match self {
            Self::Floats(array) => &array.shape,
            Self::Integers(array) => &array.shape,
        }
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Floats(array) => 4 * array.numbers.len(),
            Self::Integers(array) => 8 * array.numbers.len(),
        }
    }

    pub(super) fn integers(&self) -> Option<&[i64]> {
        match self {
            Self::Integers(array) => Some(&array.numbers),
            Self::Floats(_) => None,
        }
    }

    pub(super) fn floats(&self) -> Option<&[f32]> {
        match self {
            Self::Floats(array) => Some(&array.numbers),
            Self::Integers(_) => None,
        }
    }

    /// The one number it consists of.
    pub(super) fn float(&self) -> Option<f32> {
        match *self.floats()? {
            [number] => Some(number),
            _ => None,
        }
    }
}

/// What an operator makes of constants, none where an input is missing.
pub(super) fn fold(node: &Node, inputs: &[Option<&Constant>]) -> Option<Constant> {
    if inputs.iter().flatten().any(|input| count(input.shape()).is_none()) {
        return None;
    }
    let input = |at: usize| inputs.get(at).copied().flatten();
    let integers = |at: usize| input(at)?.integers();
    let first = || input(0);
    match node.kind {
        "Identity" => first().cloned(),
        "ConstantOfShape" => fill(node, integers(0)?),
        "Concat" => concat(node, inputs),
        "Reshape" => {
            let allow_zero = node.number("allowzero", 0) != 0;
            Some(each!(first()?, array => reshape(array, integers(1)?, allow_zero)?))
        }
        "Transpose" => Some(each!(first()?, array => transpose(array, node.numbers("perm"))?)),
        "Slice" => {
            let given = |at: usize| match inputs.get(at) {
                Some(Some(_)) => Some(Some(integers(at)?)),
                _ => Some(None),
            };
            let (axes, steps) = (given(3)?, given(4)?);
            Some(each!(first()?, array => {
                slice(array, (integers(1)?, integers(2)?), axes, steps)?
            }))
        }
        "Gather" => {
            let (places, at) = (input(1)?, node.number("axis", 0));
            Some(each!(first()?, array => gather(array, places, at)?))
        }
        "Unsqueeze" | "Squeeze" => {
            let axes = if inputs.len() > 1 { integers(1)? } else { node.numbers("axes") };
            let insert = node.kind == "Unsqueeze";
            Some(each!(first()?, array => squeeze(array, axes, insert)?))
        }
        "Cast" => cast(first()?, node.number("to", 0)),
        "Shape" if node.attributes.is_empty() => {
            let sizes = first()?.shape().iter().map(|&size| i64::try_from(size).ok());
            let numbers = sizes.collect::<Option<Vec<i64>>>()?;
            Some(Constant::Integers(Array { shape: vec![numbers.len()], numbers }))
        }
        "Expand" => {
            let sizes: Option<Vec<usize>> =
                integers(1)?.iter().map(|&size| size.try_into().ok()).collect();
            Some(each!(first()?, array => expand(array, &sizes?)?))
        }
        _ => elementwise(node.kind, &inputs.iter().copied().collect::<Option<Vec<_>>>()?),
    }
}

/// How many numbers there are. The sizes must not be too large even where one of them is 0: what is
/// done for each place along an axis would take for ever.
pub(super) fn count(shape: &[usize]) -> Option<usize> {
    let places = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)))?;
    let fits = shape.len() <= DIMENSIONS && places <= MOST;
    fits.then(|| shape.iter().product())
}

/// An axis as counted from either end.
pub(super) fn axis(axis: i64, dimensions: usize) -> Option<usize> {
    let length = i64::try_from(dimensions).ok()?;
    let axis = if axis < 0 { axis.checked_add(length)? } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < dimensions)
}

fn fill(node: &Node, shape: &[i64]) -> Option<Constant> {
    let shape: Option<Vec<usize>> = shape.iter().map(|&size| size.try_into().ok()).collect();
    let shape = shape?;
    let count = count(&shape)?;
    let value = node.attributes.get("value").and_then(|attribute| attribute.tensor);
    let value = match value {
        Some(value) => Constant::read(&value, &Files::new())?,
        None => Constant::Floats(Array { shape: vec![1], numbers: vec![0.0] }),
    };
    Some(each!(value, array => {
        Array { shape, numbers: vec![*array.numbers.first()?; count] }
    }))
}

fn reshape<T: Copy>(array: &Array<T>, sizes: &[i64], allow_zero: bool) -> Option<Array<T>> {
    let shape = reshaped(&array.shape, sizes, allow_zero)?;
    count(&shape)?;
    Some(Array { shape, numbers: array.numbers.clone() })
}

/// The shape that an array of `shape` gets when it is told these sizes, of which one may be −1.
pub(super) fn reshaped(shape: &[usize], sizes: &[i64], allow_zero: bool) -> Option<Vec<usize>> {
    let product =
        |sizes: &[usize]| sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    let total = product(shape)?;
    let size = |(at, &size): (usize, &i64)| match size {
        0 if !allow_zero => shape.get(at).copied(),
        -1 => Some(1),
        size => usize::try_from(size).ok(),
    };
    let mut made = sizes.iter().enumerate().map(size).collect::<Option<Vec<usize>>>()?;
    let rest = product(&made)?;
    let mut open = sizes.iter().enumerate().filter(|(_, size)| **size == -1);
    match (open.next(), open.next()) {
        (Some((at, _)), None) => made[at] = total.checked_div(rest)?,
        (None, _) => {}
        (Some(_), Some(_)) => return None,
    }
    (product(&made) == Some(total)).then_some(made)
}

/// An array whose numbers are looked up: `place` says where each axis steps to.
pub(super) fn pick<T: Copy>(
    array: &Array<T>,
    shape: Vec<usize>,
    steps: &[isize],
    start: usize,
) -> Option<Array<T>> {
    let total = count(&shape)?;
    let number = |at: usize| {
        let (mut rest, mut place) = (at, start.cast_signed());
        for (size, step) in shape.iter().zip(steps).rev() {
            place += (rest % size).cast_signed() * step;
            rest /= size;
        }
        array.numbers.get(usize::try_from(place).ok()?).copied()
    };
    let numbers = (0..total).map(number).collect::<Option<_>>()?;
    Some(Array { shape, numbers })
}

/// How far apart the numbers along each axis lie.
pub(super) fn strides(shape: &[usize]) -> Vec<isize> {
    (0..shape.len()).map(|at| shape[at + 1..].iter().product::<usize>().cast_signed()).collect()
}

fn transpose<T: Copy>(array: &Array<T>, order: &[i64]) -> Option<Array<T>> {
    let dimensions = array.shape.len();
    let order: Vec<usize> = if order.is_empty() {
        (0..dimensions).rev().collect()
    } else {
        order.iter().map(|&at| axis(at, dimensions)).collect::<Option<_>>()?
    };
    let complete = (0..dimensions).all(|axis| order.contains(&axis));
    if order.len() != dimensions || !complete {
        return None;
    }
    let strides = strides(&array.shape);
    let shape = order.iter().map(|&axis| array.shape[axis]).collect();
    let steps: Vec<isize> = order.iter().map(|&axis| strides[axis]).collect();
    pick(array, shape, &steps, 0)
}

fn slice<T: Copy>(
    array: &Array<T>,
    (starts, ends): (&[i64], &[i64]),
    axes: Option<&[i64]>,
    steps: Option<&[i64]>,
) -> Option<Array<T>> {
    let mut shape = array.shape.clone();
    let mut strides = strides(&shape);
    let mut first = 0;
    let same = |given: Option<&[i64]>| given.is_none_or(|given| given.len() == starts.len());
    if ends.len() != starts.len() || !same(axes) || !same(steps) {
        return None;
    }
    for (at, (&start, &end)) in starts.iter().zip(ends).enumerate() {
        let axis = match axes {
            Some(axes) => axis(axes[at], shape.len())?,
            None => Some(at).filter(|&at| at < shape.len())?,
        };
        let step = steps.map_or(1, |steps| steps[at]);
        let length = i64::try_from(array.shape[axis]).ok()?;
        let (start, count) = range(start, end, step, length)?;
        first += start * strides[axis].unsigned_abs();
        (shape[axis], strides[axis]) =
            (count, strides[axis].checked_mul(isize::try_from(step).ok()?)?);
    }
    pick(array, shape, &strides, first)
}

/// The first of some places along an axis, and how many there are.
pub(super) fn range(start: i64, end: i64, step: i64, length: i64) -> Option<(usize, usize)> {
    let from_end = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
    let (start, end) = (from_end(start), from_end(end));
    let (start, distance) = if step > 0 {
        let start = start.clamp(0, length);
        (start, end.clamp(0, length) - start)
    } else {
        let start = start.clamp(-1, length - 1);
        (start, start - end.clamp(-1, length - 1))
    };
    let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs().max(1));
    let count = if step == 0 { None } else { usize::try_from(count).ok() };
    Some((usize::try_from(start.max(0)).ok()?, count?))
}

fn gather<T: Copy>(array: &Array<T>, places: &Constant, along: i64) -> Option<Array<T>> {
    let along = axis(along, array.shape.len())?;
    let length = array.shape[along];
    let (before, after) = (&array.shape[..along], &array.shape[along + 1..]);
    let shape = [before, places.shape(), after].concat();
    count(&shape)?;
    let inner: usize = after.iter().product();
    let mut numbers = Vec::new();
    for outer in 0..before.iter().product() {
        for &place in places.integers()? {
            let from = (outer * length + axis(place, length)?) * inner;
            numbers.extend_from_slice(array.numbers.get(from..from + inner)?);
        }
    }
    Some(Array { shape, numbers })
}

/// Takes axes of one entry out, or puts them in.
fn squeeze<T: Copy>(array: &Array<T>, axes: &[i64], insert: bool) -> Option<Array<T>> {
    let old = array.shape.len();
    let dimensions = if insert { old.checked_add(axes.len())? } else { old };
    let axes: Vec<usize> = axes.iter().map(|&at| axis(at, dimensions)).collect::<Option<_>>()?;
    let mut rest = array.shape.iter().copied();
    let shape: Vec<usize> = if insert {
        (0..dimensions)
            .map(|at| if axes.contains(&at) { Some(1) } else { rest.next() })
            .collect::<Option<_>>()?
    } else {
        let kept = |at: &usize| !axes.contains(at) && (!axes.is_empty() || array.shape[*at] != 1);
        (0..dimensions).filter(kept).map(|at| array.shape[at]).collect()
    };
    (count(&shape) == Some(array.numbers.len()))
        .then(|| Array { shape, numbers: array.numbers.clone() })
}

fn concat(node: &Node, inputs: &[Option<&Constant>]) -> Option<Constant> {
    let parts = inputs.iter().copied().collect::<Option<Vec<&Constant>>>()?;
    let first = parts.first()?;
    let along = axis(node.number("axis", 0), first.shape().len())?;
    let mut shape = first.shape().to_vec();
    shape[along] = 0;
    for part in &parts {
        let same = part.shape().len() == shape.len()
            && (0..shape.len()).all(|at| at == along || part.shape()[at] == shape[at]);
        shape[along] = same.then(|| shape[along].checked_add(part.shape()[along]))??;
    }
    count(&shape)?;
    let outer: usize = shape[..along].iter().product();
    let inner: usize = shape[along + 1..].iter().product();
    match first {
        Constant::Floats(_) => {
            let arrays = parts.iter().map(|part| match part {
                Constant::Floats(array) => Some(array),
                Constant::Integers(_) => None,
            });
            let numbers = join(&arrays.collect::<Option<Vec<_>>>()?, outer, along, inner);
            Some(Constant::Floats(Array { shape, numbers }))
        }
        Constant::Integers(_) => {
            let arrays = parts.iter().map(|part| match part {
                Constant::Integers(array) => Some(array),
                Constant::Floats(_) => None,
            });
            let numbers = join(&arrays.collect::<Option<Vec<_>>>()?, outer, along, inner);
            Some(Constant::Integers(Array { shape, numbers }))
        }
    }
}

/// The parts of one type, a piece of each in turn.
fn join<T: Copy>(arrays: &[&Array<T>], outer: usize, along: usize, inner: usize) -> Vec<T> {
    let pieces = (0..outer).flat_map(|at| {
        arrays.iter().flat_map(move |array| {
            let length = array.shape[along] * inner;
            &array.numbers[at * length..(at + 1) * length]
        })
    });
    pieces.copied().collect()
}

/// The same numbers in another type; whole numbers cut off what follows the point.
fn cast(constant: &Constant, to: i64) -> Option<Constant> {
    match (constant, to) {
        (Constant::Floats(_), 1) | (Constant::Integers(_), 7) => Some(constant.clone()),
        (Constant::Floats(array), 7) => {
            let numbers = array.numbers.iter().map(|&number| number as i64).collect();
            Some(Constant::Integers(Array { shape: array.shape.clone(), numbers }))
        }
        (Constant::Integers(array), 1) => {
            let numbers = array.numbers.iter().map(|&number| number as f32).collect();
            Some(Constant::Floats(Array { shape: array.shape.clone(), numbers }))
        }
        _ => None,
    }
}
