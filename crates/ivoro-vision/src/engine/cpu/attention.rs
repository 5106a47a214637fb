//! Attention: each token asks all tokens, and takes as much of what they say as it is like them.
//!
//! For each head, with queries Q, keys K and values V: `softmax(factor · Q Kᵀ) V`.
//!
//! The similarities of some queries with all keys are computed at once. They stay in the cache until
//! they are weights and are multiplied with the values, so that no matrix of all similarities is
//! ever in memory. A query's numbers do not depend on what is computed beside it.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use std::array::from_fn;

use ivoro::vectors::vectorised;
use rayon::prelude::*;

use super::activation::exp;
use super::aligned::with_scratch;
use super::gemm::Store;
use super::panels::{Finish, Out, Panels, Rows};
use crate::shape::Shape;

/// Queries whose similarities are in the cache together.
const QUERIES: usize = 48;
/// Numbers of a row that are compared and summed side by side.
const LANES: usize = 32;

/// Where the tokens of each head lie in an image. The numbers of a token are side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first number of the first token of the first head.
    pub(crate) first: usize,
    /// From one head to the next.
    pub(crate) head: usize,
    /// From one token to the next.
    pub(crate) token: usize,
    /// How many tokens there are.
    pub(crate) tokens: usize,
    /// How many numbers a token has in each head.
    pub(crate) size: usize,
}

impl Place {
    /// Whether it lies within images of so many numbers, with no number twice.
    fn fits(&self, heads: usize, length: usize) -> bool {
        let last = |count: usize, step: usize| count.checked_sub(1)?.checked_mul(step);
        let end = || {
            let start = self.first.checked_add(last(heads, self.head)?)?;
            start.checked_add(last(self.tokens, self.token)?)?.checked_add(self.size)
        };
        let count = || heads.checked_mul(self.tokens)?.checked_mul(self.size);
        end().is_some_and(|end| end <= length) && count().is_some_and(|count| count <= length)
    }

    fn token(&self, head: usize, token: usize) -> usize {
        self.first + head * self.head + token * self.token
    }
}

/// An attention of several heads.
#[derive(Clone, Debug)]
pub(crate) struct Attention {
    /// How many heads there are.
    pub(crate) heads: usize,
    /// Where queries, keys and values lie, each in a value of the network.
    pub(crate) places: [Place; 3],
    /// What the similarities are multiplied by.
    pub(crate) factor: f32,
}

impl Attention {
    /// Whether images of these shapes hold the queries, keys and values, a query for each pixel.
    pub(super) fn fits(&self, shapes: [Shape; 3]) -> bool {
        let [queries, keys, values] = self.places;
        let inside =
            self.places.iter().zip(shapes).all(|(at, shape)| at.fits(self.heads, shape.len()));
        inside
            && self.heads > 0
            && queries.size == keys.size
            && keys.tokens == values.tokens
            && queries.tokens == shapes[0].height * shapes[0].width
            && self.places.iter().all(|place| place.size > 0 && place.tokens > 0)
    }

    /// What it makes of queries in images of `shape`: the heads of a token are side by side.
    pub(super) fn made(&self, shape: Shape) -> Shape {
        Shape { channels: self.heads * self.places[2].size, ..shape }
    }

    /// Computes it for some images: those with the queries, the keys and the values.
    pub(super) fn run(&self, images: [&[f32]; 3], count: usize, out: &mut [f32], shared: bool) {
        let lengths = images.map(|all| all.len() / count);
        for (at, out) in out.chunks_exact_mut(out.len() / count).enumerate() {
            let image = from_fn(|of| &images[of][at * lengths[of]..][..lengths[of]]);
            if shared { self.shared(image, out) } else { self.here(image, out) }
        }
    }

    /// One head after the other, so that its keys and values stay in the cache.
    fn here(&self, [queries, keys, values]: [&[f32]; 3], out: &mut [f32]) {
        let row = self.row();
        for head in 0..self.heads {
            let packed = self.pack(keys, values, head);
            for (at, out) in out.chunks_mut(QUERIES * row).enumerate() {
                self.block(queries, &packed, (head, at * QUERIES), out);
            }
        }
    }

    /// Some queries of all heads for each thread.
    fn shared(&self, [queries, keys, values]: [&[f32]; 3], out: &mut [f32]) {
        let row = self.row();
        let pack = |head: usize| self.pack(keys, values, head);
        let packed: Vec<[Panels; 2]> = (0..self.heads).into_par_iter().map(pack).collect();
        let rows = (out.len() / row).div_ceil(2 * rayon::current_num_threads()).min(QUERIES);
        out.par_chunks_mut(rows * row).enumerate().for_each(|(at, out)| {
            for (head, packed) in packed.iter().enumerate() {
                self.block(queries, packed, (head, at * rows), out);
            }
        });
    }

    /// Numbers of a token in the result.
    fn row(&self) -> usize {
        self.heads * self.places[2].size
    }

    /// Keys and values of a head as matrices that rows are multiplied by.
    fn pack(&self, keys: &[f32], values: &[f32], head: usize) -> [Panels; 2] {
        let [_, key, value] = self.places;
        let tokens = key.tokens;
        [
            Panels::new(key.size, &vec![0.0; tokens], |input, token| {
                keys[key.token(head, token) + input]
            }),
            Panels::new(tokens, &vec![0.0; value.size], |token, output| {
                values[value.token(head, token) + output]
            }),
        ]
    }

    /// What the queries from `first` on take from a head, for as many as `out` has rows.
    fn block(
        &self,
        queries: &[f32],
        [keys, values]: &[Panels; 2],
        (head, first): (usize, usize),
        out: &mut [f32],
    ) {
        let Place { size, .. } = self.places[0];
        let (tokens, row, width) = (self.places[1].tokens, self.row(), self.places[2].size);
        let count = out.len() / row;
        let starts: [usize; QUERIES] =
            from_fn(|at| self.places[0].token(head, first + at.min(count - 1)));
        let places: [usize; QUERIES] = from_fn(|at| at * tokens);
        let finish = Finish { store: Store::Replace, limits: (f32::NEG_INFINITY, f32::INFINITY) };
        with_scratch(count * tokens, |weights| {
            let rows = Rows { numbers: queries, starts: &starts[..count], runs: &[0], run: size };
            keys.multiply(&rows, finish, Out { numbers: &mut *weights, row: tokens, column: 0 });
            let mut sums = [0.0; QUERIES];
            soften(weights, tokens, self.factor, &mut sums);
            let starts = &places[..count];
            let rows = Rows { numbers: weights, starts, runs: &[0], run: tokens };
            let column = head * width;
            values.multiply(&rows, finish, Out { numbers: &mut *out, row, column });
            for (out, sum) in out.chunks_exact_mut(row).zip(sums) {
                out[column..column + width].iter_mut().for_each(|value| *value /= sum);
            }
        });
    }
}

/// Makes each row of similarities one of weights, and says what they sum to.
fn soften(rows: &mut [f32], length: usize, factor: f32, sums: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (row, sum) in rows.chunks_exact_mut(length).zip(sums.iter_mut()) {
                // the greatest of what the exponent will be, whatever sign the factor has
                row.iter_mut().for_each(|value| *value *= factor);
                let most = greatest(row);
                row.iter_mut().for_each(|value| *value = exp(*value - most));
                *sum = total(row);
            }
        },
    );
}

/// The greatest number of a row.
#[inline(always)]
fn greatest(row: &[f32]) -> f32 {
    let larger = |one: f32, other: f32| if other > one { other } else { one };
    let mut most = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for numbers in whole {
        most.iter_mut().zip(numbers).for_each(|(most, &value)| *most = larger(*most, value));
    }
    rest.iter().chain(&most).fold(f32::NEG_INFINITY, |most, &value| larger(most, value))
}

/// The sum of a row.
#[inline(always)]
fn total(row: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for numbers in whole {
        sums.iter_mut().zip(numbers).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attention of images in double precision.
    fn exact(of: &Attention, [queries, keys, values]: [&[f32]; 3]) -> Vec<f64> {
        let [query, key, value] = of.places;
        let row = of.row();
        let mut out = vec![0.0; query.tokens * row];
        for head in 0..of.heads {
            for at in 0..query.tokens {
                let similarity = |token: usize| {
                    let product = |number: usize| {
                        let one = queries[query.token(head, at) + number];
                        f64::from(one) * f64::from(keys[key.token(head, token) + number])
                    };
                    (0..query.size).map(product).sum::<f64>() * f64::from(of.factor)
                };
                let weights: Vec<f64> =
                    (0..key.tokens).map(|token| similarity(token).exp()).collect();
                for number in 0..value.size {
                    let said = |token: usize| f64::from(values[value.token(head, token) + number]);
                    let sum: f64 = weights
                        .iter()
                        .enumerate()
                        .map(|(token, weight)| weight * said(token))
                        .sum();
                    out[at * row + head * value.size + number] = sum / weights.iter().sum::<f64>();
                }
            }
        }
        out
    }

    #[test]
    fn heads_are_those_of_the_formula_on_any_number_of_threads() {
        for (heads, size, tokens) in [(1, 3, 1), (2, 16, 50), (3, 5, 131)] {
            // queries, keys and values of a token side by side, as one linear map makes them
            let row = 3 * heads * size;
            let place = |first| Place { first, head: size, token: row, tokens, size };
            let places = [place(0), place(heads * size), place(2 * heads * size)];
            let attention = Attention { heads, places, factor: 0.7 };
            let image: Vec<f32> =
                (0..2 * tokens * row).map(|at| ((at * at) % 89) as f32 / 40.0 - 1.0).collect();
            let shape = Shape { height: tokens, width: 1, channels: row };
            assert!(attention.fits([shape; 3]));
            let mut out = vec![0.0; 2 * tokens * heads * size];
            attention.run([&image; 3], 2, &mut out, false);
            let mut shared = vec![0.0; out.len()];
            attention.run([&image; 3], 2, &mut shared, true);
            assert_eq!(out, shared);
            for (image, out) in image.chunks(tokens * row).zip(out.chunks(tokens * heads * size)) {
                for (out, expected) in out.iter().zip(exact(&attention, [image; 3])) {
                    assert!((f64::from(*out) - expected).abs() < 1e-5, "{out} or {expected}");
                }
            }
        }
    }

    #[test]
    fn places_beyond_an_image_are_seen() {
        let shape = Shape { height: 4, width: 1, channels: 6 };
        let place = Place { first: 0, head: 2, token: 6, tokens: 4, size: 2 };
        let fits = |place| Attention { heads: 1, places: [place; 3], factor: 1.0 }.fits([shape; 3]);
        assert!(fits(place));
        assert!(!fits(Place { first: 5, ..place }));
        assert!(!fits(Place { token: 8, ..place }));
        assert!(!fits(Place { size: 7, ..place }));
        assert!(!fits(Place { token: usize::MAX, ..place }));
    }
}
