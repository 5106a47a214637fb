//! A fixed random lift into more dimensions, after which classes are easier to tell apart linearly.
//!
//! A row z of `input` numbers becomes h of `output` numbers,
//!
//! ```text
//! h_j = max(0, Σ_i z_i · g_ij / √input),        g_ij independent standard normal
//! ```
//!
//! The factor `1/√input` makes `h` the size of a typical entry of z whatever the dimension, so
//! that one grid of ridges serves all networks. Against an unscaled projection it only divides
//! every ridge by `input`.
//!
//! The g are never stored: each is a function of the seed and of its place. Words come from the
//! `splitmix64` stream that starts at the seed; column j owns the words
//! `2 · ⌈input / 2⌉ · j ..`, and each two words give two normals by the Box–Muller transform.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::linalg;
use crate::matrix::Matrix;
use crate::random::{normal_pair, unit};

/// A seeded random projection followed by a ReLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lift {
    input: usize,
    output: usize,
    seed: u64,
}

impl Lift {
    /// A lift of `input` numbers to `output`; the same three values always make the same lift.
    pub fn new(input: usize, output: usize, seed: u64) -> Self {
        Self { input, output, seed }
    }

    /// Dimension of what goes in.
    pub fn input(&self) -> usize {
        self.input
    }

    /// Dimension of what comes out.
    pub fn output(&self) -> usize {
        self.output
    }

    /// Lifts every row.
    ///
    /// # Panics
    /// If the rows are not of the input dimension.
    pub fn apply(&self, points: &Matrix) -> Matrix {
        let mut lifted = linalg::times_transposed_alike(points, &self.weights(0..self.output));
        lifted.as_mut_slice().par_iter_mut().for_each(|value| *value = value.max(0.0));
        lifted
    }

    /// The scaled normals of some output columns, one row a column.
    pub fn weights(&self, columns: Range<usize>) -> Matrix {
        let mut weights = Matrix::zeros(columns.len(), self.input);
        let size = self.input.max(1);
        let rows = weights.as_mut_slice().par_chunks_exact_mut(size).enumerate();
        rows.for_each(|(at, row)| self.fill_column(columns.start + at, row));
        weights
    }

    fn fill_column(&self, column: usize, out: &mut [f32]) {
        let scale = 1.0 / (self.input as f64).sqrt();
        for (entry, normal) in out.iter_mut().zip(normals(self.seed, column, self.input)) {
            *entry = (scale * normal) as f32;
        }
    }
}

/// The `row`-th group of `count` independent standard normals of a seed: two from words `2 · pair` and
/// `2 · pair + 1` of the stream.
pub fn normals(seed: u64, row: usize, count: usize) -> impl Iterator<Item = f64> {
    // the first of the two is raised by 2⁻⁵³, which is exact, and so kept off zero
    let above_zero = move |index| unit(seed, index) + f64::EPSILON / 2.0;
    let first = row as u64 * count.div_ceil(2) as u64;
    let pairs =
        (first..).flat_map(move |pair| normal_pair(above_zero(2 * pair), unit(seed, 2 * pair + 1)));
    pairs.take(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::mix;

    #[test]
    fn the_stream_is_splitmix64() {
        // first two outputs of the reference generator for seed 1234567
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([mix(1_234_567, 0), mix(1_234_567, 1)], expected);
    }

    #[test]
    fn a_block_of_columns_equals_the_same_columns_of_the_whole() {
        let lift = Lift::new(7, 40, 3);
        let (whole, part) = (lift.weights(0..40), lift.weights(11..23));
        assert_eq!(part, whole.select(&(11..23).collect::<Vec<_>>()));
    }

    #[test]
    fn the_normals_have_mean_zero_and_variance_one() {
        let weights = Lift::new(100, 400, 9).weights(0..400);
        let count = weights.as_slice().len() as f64;
        let values = || weights.as_slice().iter().map(|&value| f64::from(value) * 10.0);
        let (mean, square) =
            (values().sum::<f64>() / count, values().map(|v| v * v).sum::<f64>() / count);
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.03, "{mean} {square}");
    }

    #[test]
    fn nothing_lifted_is_negative() {
        let points = Matrix::new(2, 3, vec![1.0, -2.0, 0.5, 0.0, 3.0, 1.0]).unwrap();
        let lifted = Lift::new(3, 50, 1).apply(&points);
        assert!(lifted.as_slice().iter().all(|&value| value >= 0.0));
        assert!(lifted.as_slice().iter().any(|&value| value > 0.0));
    }
}
