//! Rows of numbers: joined, scaled, turned, compared; and how many bytes they take.

use rayon::prelude::*;

use crate::error::Result;
use crate::matrix::Matrix;

/// Appends rows to a matrix that may not have any yet.
pub(super) fn append(to: &mut Matrix, rows: Matrix) -> Result<()> {
    if to.rows() == 0 {
        *to = rows;
        return Ok(());
    }
    to.append(&rows)
}

/// Every row scaled to length 1; a row of zeros stays.
pub(super) fn normalised(mut points: Matrix) -> Matrix {
    let dim = points.cols().max(1);
    points.as_mut_slice().par_chunks_exact_mut(dim).for_each(|row| {
        let square: f64 = row.iter().map(|&value| f64::from(value).powi(2)).sum();
        let scale = if square > 0.0 { 1.0 / square.sqrt() } else { 1.0 };
        for value in row.iter_mut() {
            *value = (f64::from(*value) * scale) as f32;
        }
    });
    points
}

/// Squared Euclidean distance; eight running sums keep the arithmetic units busy.
pub(super) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
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

/// Bytes of `count` numbers of single precision.
pub(super) fn single_bytes(count: usize) -> usize {
    count * size_of::<f32>()
}

/// Numbers in one triangle of a symmetric matrix, its diagonal included.
pub(super) fn triangle(dim: usize) -> usize {
    dim * (dim + 1) / 2
}

/// Rows become columns.
pub(super) fn transposed(matrix: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(matrix.cols(), matrix.rows());
    for (row, values) in matrix.iter_rows().enumerate() {
        values.iter().enumerate().for_each(|(col, &value)| out.row_mut(col)[row] = value);
    }
    out
}
