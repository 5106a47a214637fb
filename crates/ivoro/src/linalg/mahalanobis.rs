//! Distances in metrics that are given by whitening matrices.

use rayon::prelude::*;

use super::product::{filled, times_transposed};
use crate::interrupt;
use crate::matrix::Matrix;
use crate::vectors::vectorised;

/// Running sums of a distance.
const LANES: usize = 64;

/// Squared distances of queries from classes, each with a whitening matrix and a centre, one row,
/// that is whitened already. No bit of them depends on which other queries there are.
pub fn mahalanobis<'a>(
    queries: &Matrix,
    classes: impl ExactSizeIterator<Item = (&'a Matrix, &'a Matrix)>,
) -> Matrix {
    let mut out = Matrix::zeros(queries.rows(), classes.len());
    let (filled, columns) = (filled(queries), classes.len().max(1));
    for (column, (whitener, centre)) in classes.enumerate() {
        interrupt::check();
        let white = times_transposed(&filled, whitener);
        let rows = white.as_slice().par_chunks_exact(white.cols().max(1));
        out.as_mut_slice().par_chunks_exact_mut(columns).zip(rows).for_each(|(out, row)| {
            out[column] = squared_distance(row, centre.row(0));
        });
    }
    out
}

/// Squared Euclidean distance; running sums side by side keep the arithmetic units busy.
pub fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    vectorised(
        #[inline(always)]
        || {
            let mut lanes = [0f32; LANES];
            for (a, b) in a.iter().zip(b) {
                for lane in 0..LANES {
                    lanes[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
                }
            }
            let rest = a_rest.iter().zip(b_rest);
            lanes.iter_mut().zip(rest).for_each(|(lane, (a, b))| *lane += (a - b) * (a - b));
            total(lanes)
        },
    )
}

/// The sum of all lanes, halves added to each other: one after another would wait for each.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn total(mut lanes: [f32; LANES]) -> f32 {
    for part in 1..LANES / 16 {
        for lane in 0..16 {
            lanes[lane] += lanes[16 * part + lane];
        }
    }
    let eight: [f32; 8] = std::array::from_fn(|at| lanes[at] + lanes[at + 8]);
    let four: [f32; 4] = std::array::from_fn(|at| eight[at] + eight[at + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}
