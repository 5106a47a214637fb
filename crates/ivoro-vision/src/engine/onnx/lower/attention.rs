//! Attention, from the operators that exporters write it with: queries times keys, times a number, a
//! softmax, times values.

use super::super::constants::axis;
use super::super::operator::Node;
use super::Network;
use super::known::{Known, Scores, Tensor};
use super::view::{Axis, By, Steps, View};
use crate::engine::cpu::attention::{Attention, Place};

/// A value whose last two axes are tokens and the numbers of a token.
struct Heads {
    /// The axes before them, images and heads.
    outer: Vec<Axis>,
    count: usize,
    place: Place,
}

impl Heads {
    fn new(view: &View) -> Option<Self> {
        let (numbers, rest) = view.axes.split_last()?;
        let (tokens, outer) = rest.split_last()?;
        let (tokens, token) = single(tokens)?;
        let (size, 1) = single(numbers).filter(|_| !numbers.is_empty())? else { return None };
        let mut heads = outer.iter().flatten().filter_map(within);
        let (count, head) = heads.next().unwrap_or((1, 0));
        let place = Place { first: view.first, head, token, tokens, size };
        heads.next().is_none().then(|| Self { outer: outer.to_vec(), count, place })
    }

    /// The axes of images and heads, with heads so far apart.
    fn with_heads(&self, by: usize) -> Vec<Axis> {
        let steps = |steps: &Steps| match steps.by {
            By::Image => *steps,
            By::Numbers(_) => Steps::numbers(steps.count, by),
        };
        self.outer.iter().map(|axis| axis.iter().map(steps).collect()).collect()
    }
}

fn within(steps: &Steps) -> Option<(usize, usize)> {
    match steps.by {
        By::Numbers(by) => Some((steps.count, by)),
        By::Image => None,
    }
}

/// An axis that is one kind of step within an image.
fn single(axis: &[Steps]) -> Option<(usize, usize)> {
    match axis {
        [] => Some((1, 0)),
        [steps] => within(steps),
        _ => None,
    }
}

impl<'a> Network<'_, 'a> {
    /// Products of queries and keys, or what is taken of the values.
    pub(super) fn attend(&mut self, one: Known, other: Known) -> Option<Known> {
        if let Known::Scores(scores) = one {
            let values = self.tensor_of(other)?;
            return self.mix(&scores, &values);
        }
        let (queries, first) = one.times()?;
        let (keys, second) = other.times()?;
        Some(Known::Scores(Scores { queries, keys, factor: first * second, softened: false }))
    }

    pub(super) fn soften(&mut self, node: &Node<'a>) -> Option<Known> {
        let Known::Scores(scores) = self.known(node, 0)? else { return None };
        let axes = scores.queries.view.axes.len();
        let last = axis(node.number("axis", -1), axes)? + 1 == axes;
        (last && !scores.softened).then_some(Known::Scores(Scores { softened: true, ..scores }))
    }

    /// Weights with 0 for what is no number: they are numbers wherever images are.
    pub(super) fn without_missing(&mut self, node: &Node<'a>) -> Option<Known> {
        if node.kind == "IsNaN" {
            let Known::Scores(scores) = self.known(node, 0)? else { return None };
            return Some(Known::Missing(scores));
        }
        let Known::Missing(missing) = self.known(node, 0)? else { return None };
        let Known::Scores(scores) = self.known(node, 2)? else { return None };
        let zero = self.floats(node, 1)?.numbers == [0.0];
        (zero && missing == scores).then_some(Known::Scores(scores))
    }

    fn mix(&mut self, scores: &Scores, values: &Tensor) -> Option<Known> {
        let Scores { queries, keys, factor, softened: true } = scores else { return None };
        let axes = keys.view.axes.len();
        let mut order: Vec<usize> = (0..axes).collect();
        order.swap(axes.checked_sub(2)?, axes - 1);
        let keys = Tensor { value: keys.value, view: keys.view.transposed(&order)? };
        let of = |tensor: &Tensor| Heads::new(&tensor.view);
        let (query, key, value) = (of(queries)?, of(&keys)?, of(values)?);
        let outer = query.with_heads(0);
        if outer != key.with_heads(0) || outer != value.with_heads(0) {
            return None;
        }
        let (heads, size, tokens) = (query.count, value.place.size, query.place.tokens);
        let row = heads.checked_mul(size)?;
        let places = [query.place, key.place, value.place];
        let attention = Attention { heads, places, factor: *factor as f32 };
        let made = self.builder.attend([queries.value, keys.value, values.value], attention)?;
        let mut axes = query.with_heads(size);
        axes.push(vec![Steps::numbers(tokens, row)]);
        axes.push(vec![Steps::numbers(size, 1)]);
        Some(Known::Tensor(Tensor { value: made, view: View::new(0, axes) }))
    }
}

impl Known {
    /// A value of the network times a number.
    fn times(self) -> Option<(Tensor, f64)> {
        match self {
            Self::Tensor(tensor) => Some((tensor, 1.0)),
            Self::Scalar { of, scalar, .. } => {
                let (factor, shift) = scalar.linear()?;
                (shift.abs() <= 1e-9 * factor.abs()).then_some((of, factor))
            }
            _ => None,
        }
    }
}
