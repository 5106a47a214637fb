//! Rows of numbers: joined, scaled, turned, compared; and how many bytes they take.

use rayon::prelude::*;

use ivoro::Matrix;
use ivoro::Result;

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

/// One row a label, one column a class: 1 where they are the same.
pub(super) fn one_hot(labels: &[usize], classes: usize) -> Matrix {
    let mut out = Matrix::zeros(labels.len(), classes);
    labels.iter().enumerate().for_each(|(row, &class)| out.row_mut(row)[class] = 1.0);
    out
}

/// Rows of double precision in single precision.
pub(super) fn single(rows: &[Vec<f64>], cols: usize) -> Matrix {
    let mut out = Matrix::zeros(rows.len(), cols);
    for (row, values) in rows.iter().enumerate() {
        out.row_mut(row).iter_mut().zip(values).for_each(|(out, &value)| *out = value as f32);
    }
    out
}

/// Bytes of `count` numbers of single precision.
pub(super) fn single_bytes(count: usize) -> usize {
    count * size_of::<f32>()
}

/// Numbers in one triangle of a symmetric matrix, its diagonal included.
pub(super) fn triangle(dim: usize) -> usize {
    dim * (dim + 1) / 2
}
