//! What operators make of each number of constants, or of the numbers of several that meet.

use super::constants::{Array, Constant, count, pick, strides};

/// What an operator makes of constants, if it is one of these.
pub(super) fn elementwise(kind: &str, inputs: &[&Constant]) -> Option<Constant> {
    match (kind, inputs) {
        ("Sqrt", [Constant::Floats(array)]) => Some(Constant::Floats(Array {
            shape: array.shape.clone(),
            numbers: array.numbers.iter().map(|number| number.sqrt()).collect(),
        })),
        ("Where", [Constant::Integers(condition), one, other]) => choose(condition, one, other),
        ("Equal", [Constant::Floats(one), Constant::Floats(other)]) => {
            Some(Constant::Integers(combine(one, other, |a, b| Some(i64::from(a == b)))?))
        }
        (_, [Constant::Floats(one), Constant::Floats(other)]) => {
            Some(Constant::Floats(combine(one, other, |one, other| float(kind, one, other))?))
        }
        (_, [Constant::Integers(one), Constant::Integers(other)]) => {
            Some(Constant::Integers(combine(one, other, |one, other| integer(kind, one, other))?))
        }
        _ => None,
    }
}

fn float(kind: &str, one: f32, other: f32) -> Option<f32> {
    match kind {
        "Add" => Some(one + other),
        "Sub" => Some(one - other),
        "Mul" => Some(one * other),
        "Div" => Some(one / other),
        _ => None,
    }
}

fn integer(kind: &str, one: i64, other: i64) -> Option<i64> {
    match kind {
        "Add" => one.checked_add(other),
        "Sub" => one.checked_sub(other),
        "Mul" => one.checked_mul(other),
        "Div" => one.checked_div(other),
        // of positive numbers all meanings of it are one
        "Mod" if one >= 0 && other > 0 => one.checked_rem(other),
        "Equal" => Some(i64::from(one == other)),
        _ => None,
    }
}

/// The shape that arrays of two shapes have together.
fn joint(one: &[usize], other: &[usize]) -> Option<Vec<usize>> {
    let length = one.len().max(other.len());
    let size = |shape: &[usize], at: usize| {
        (at + shape.len()).checked_sub(length).map_or(1, |at| shape[at])
    };
    let joint = |at| match (size(one, at), size(other, at)) {
        (1, other) => Some(other),
        (one, 1) => Some(one),
        (one, other) => (one == other).then_some(one),
    };
    (0..length).map(joint).collect()
}

/// An array of another shape, in which an axis of one entry has it everywhere.
pub(super) fn expand<T: Copy>(array: &Array<T>, shape: &[usize]) -> Option<Array<T>> {
    let shape = joint(&array.shape, shape)?;
    count(&shape)?;
    let missing = shape.len() - array.shape.len();
    let strides = strides(&array.shape);
    let step = |at: usize| match at.checked_sub(missing) {
        Some(at) if array.shape[at] != 1 => strides[at],
        _ => 0,
    };
    let steps: Vec<isize> = (0..shape.len()).map(step).collect();
    pick(array, shape, &steps, 0)
}

fn combine<T: Copy, M>(
    one: &Array<T>,
    other: &Array<T>,
    make: impl Fn(T, T) -> Option<M>,
) -> Option<Array<M>> {
    let shape = joint(&one.shape, &other.shape)?;
    let (one, other) = (expand(one, &shape)?, expand(other, &shape)?);
    let pairs = one.numbers.iter().zip(&other.numbers);
    let numbers = pairs.map(|(&one, &other)| make(one, other)).collect::<Option<_>>()?;
    Some(Array { shape, numbers })
}

/// The numbers of one array where a condition is not 0, else those of another.
fn choose(condition: &Array<i64>, one: &Constant, other: &Constant) -> Option<Constant> {
    fn choose<T: Copy>(
        condition: &Array<i64>,
        one: &Array<T>,
        other: &Array<T>,
    ) -> Option<Array<T>> {
        let shape = joint(&joint(&one.shape, &other.shape)?, &condition.shape)?;
        let (one, other) = (expand(one, &shape)?, expand(other, &shape)?);
        let pairs = one.numbers.into_iter().zip(other.numbers);
        let choices = expand(condition, &shape)?.numbers.into_iter().zip(pairs);
        let numbers = choices.map(|(yes, (one, other))| if yes == 0 { other } else { one });
        let numbers = numbers.collect();
        Some(Array { shape, numbers })
    }
    match (one, other) {
        (Constant::Floats(one), Constant::Floats(other)) => {
            Some(Constant::Floats(choose(condition, one, other)?))
        }
        (Constant::Integers(one), Constant::Integers(other)) => {
            Some(Constant::Integers(choose(condition, one, other)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(shape: &[usize], numbers: &[f32]) -> Constant {
        Constant::Floats(Array { shape: shape.to_vec(), numbers: numbers.to_vec() })
    }

    fn integers(numbers: &[i64]) -> Constant {
        Constant::Integers(Array { shape: vec![numbers.len()], numbers: numbers.to_vec() })
    }

    #[test]
    fn arrays_meet_along_axes_of_one_entry() {
        let (one, other) = (floats(&[2, 1], &[1., 2.]), floats(&[3], &[10., 20., 30.]));
        let sum = elementwise("Add", &[&one, &other]);
        assert_eq!(sum, Some(floats(&[2, 3], &[11., 21., 31., 12., 22., 32.])));
        assert_eq!(elementwise("Add", &[&floats(&[2], &[1., 2.]), &other]), None);
    }

    #[test]
    fn sizes_are_chosen_as_exporters_write_it() {
        let (told, open) = (integers(&[7, -1, -1]), integers(&[-1, -1, -1]));
        let is_open = elementwise("Equal", &[&told, &open]).unwrap();
        assert_eq!(is_open, integers(&[0, 1, 1]));
        let chosen = elementwise("Where", &[&is_open, &integers(&[1, 1, 1]), &told]);
        assert_eq!(chosen, Some(integers(&[7, 1, 1])));
        assert_eq!(elementwise("Mod", &[&integers(&[7]), &integers(&[3])]), Some(integers(&[1])));
        assert_eq!(elementwise("Mod", &[&integers(&[7]), &integers(&[0])]), None);
    }
}
