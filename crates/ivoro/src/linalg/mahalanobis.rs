//! Distances in a metric that is given by a whitening matrix.

use rayon::prelude::*;

use super::product::times_transposed_alike;
use crate::matrix::Matrix;

/// Squared distances of queries from a centre, one row, that is whitened already. No bit of them
/// depends on which other queries there are.
pub(crate) fn mahalanobis(queries: &Matrix, whitener: &Matrix, centre: &Matrix) -> Vec<f32> {
    let white = times_transposed_alike(queries, whitener);
    let rows = white.as_slice().par_chunks_exact(white.cols().max(1));
    rows.map(|row| squared_distance(row, centre.row(0))).collect()
}

/// Squared Euclidean distance; eight running sums keep the arithmetic units busy.
pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            lanes[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum();
    lanes.iter().sum::<f32>() + rest
}
