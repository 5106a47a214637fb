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
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::linalg::Columns;
use crate::matrix::Matrix;
use crate::random::{normal_pair, unit};

/// Most bytes of directions that are kept, of all lifts together: 256 MB.
const KEPT: usize = 1 << 28;
/// Directions made at a time where they are not kept.
const AT_ONCE: usize = 4096;

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
        let mut lifted = Matrix::zeros(points.rows(), self.output);
        for first in (0..self.output).step_by(AT_ONCE) {
            let range = first..(first + AT_ONCE).min(self.output);
            let part = self.columns(range.clone()).products(points);
            let rows = lifted.as_mut_slice().par_chunks_exact_mut(self.output.max(1));
            rows.zip(part.as_slice().par_chunks_exact(range.len())).for_each(|(row, part)| {
                row[range.clone()].copy_from_slice(part);
            });
        }
        rectified(lifted)
    }

    /// Some directions, packed.
    fn columns(&self, columns: Range<usize>) -> Columns {
        Columns::new(self.weights(columns).as_slice(), self.input)
    }

    /// Bytes of all directions.
    fn bytes(&self) -> usize {
        self.input.saturating_mul(self.output).saturating_mul(size_of::<f32>())
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

fn rectified(mut lifted: Matrix) -> Matrix {
    lifted.as_mut_slice().par_iter_mut().for_each(|value| *value = value.max(0.0));
    lifted
}

/// Directions of lifts, kept from one query to the next: making them takes far longer than a query.
#[derive(Debug, Default)]
pub(crate) struct LiftCache {
    kept: Mutex<Vec<(Lift, Arc<Columns>)>>,
}

impl LiftCache {
    /// Lifts every row, with directions that are kept if there is room for them.
    pub(crate) fn apply(&self, lift: Lift, points: &Matrix) -> Matrix {
        match self.columns(lift) {
            Some(columns) => rectified(columns.products(points)),
            None => lift.apply(points),
        }
    }

    fn columns(&self, lift: Lift) -> Option<Arc<Columns>> {
        let there = |kept: &[(Lift, Arc<Columns>)]| {
            let found = kept.iter().find(|(other, _)| *other == lift);
            found.map(|(_, columns)| Arc::clone(columns))
        };
        {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(columns) = there(&kept) {
                return Some(columns);
            }
            let bytes: usize = kept.iter().map(|(_, columns)| columns.bytes()).sum();
            if bytes.saturating_add(lift.bytes()) > KEPT {
                return None;
            }
        }
        // without the lock: a thread that waits for parts of this work may take up another query
        let made = Arc::new(lift.columns(0..lift.output));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(columns) = there(&kept) {
            return Some(columns);
        }
        kept.push((lift, Arc::clone(&made)));
        Some(made)
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
    fn directions_that_are_kept_change_no_bit() {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        let points = Matrix::new(9, 30, (0..270).map(value).collect()).unwrap();
        let (lift, cache) = (Lift::new(30, AT_ONCE + 70, 5), LiftCache::default());
        let expected = lift.apply(&points);
        for _ in 0..2 {
            assert_eq!(cache.apply(lift, &points), expected);
        }
        assert_eq!(cache.kept.lock().unwrap().len(), 1);
        let large = Lift::new(1, KEPT, 5);
        assert!(cache.columns(large).is_none());
    }

    #[test]
    fn nothing_lifted_is_negative() {
        let points = Matrix::new(2, 3, vec![1.0, -2.0, 0.5, 0.0, 3.0, 1.0]).unwrap();
        let lifted = Lift::new(3, 50, 1).apply(&points);
        assert!(lifted.as_slice().iter().all(|&value| value >= 0.0));
        assert!(lifted.as_slice().iter().any(|&value| value > 0.0));
    }
}
