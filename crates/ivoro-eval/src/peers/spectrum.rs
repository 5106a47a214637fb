//! Eigenvalues and eigenvectors of symmetric matrices, the largest first.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use rayon::prelude::*;

use ivoro::linalg::Symmetric;
use ivoro::{Error, Matrix, Result};

/// Columns multiplied by one task.
const COLUMNS: usize = 256;

/// `A = V · diag(λ) · Vᵀ`.
#[derive(Debug)]
pub(super) struct Spectrum {
    /// The largest first.
    pub(super) values: Vec<f64>,
    /// One column an eigenvector, in the same order.
    vectors: Mat<f64>,
}

impl Spectrum {
    pub(super) fn of(matrix: &Symmetric, what: &'static str) -> Result<Self> {
        let dim = matrix.dim();
        let whole = Mat::from_fn(dim, dim, |row, col| matrix.get(row, col));
        // the fault of numbers that are not finite: there is no ridge that would help
        let failed = |_| Error::NotPositiveDefinite { what, ridge: 0.0 };
        let found = whole.self_adjoint_eigen(Side::Lower).map_err(failed)?;
        // they come in ascending order
        let last = dim.saturating_sub(1);
        let ascending = found.S().column_vector();
        let values: Vec<f64> = (0..dim).map(|at| ascending[last - at]).collect();
        let vectors = found.U();
        let vectors = Mat::from_fn(dim, dim, |row, col| vectors[(row, last - col)]);
        Ok(Self { values, vectors })
    }

    /// The symmetric matrix `V · diag(f(λ)) · Vᵀ`; with f = √ it is the root of A.
    pub(super) fn function(&self, change: impl Fn(f64) -> f64) -> Matrix {
        let scaled: Vec<f64> = self.values.iter().map(|&value| change(value)).collect();
        let scaled = Mat::from_fn(self.vectors.nrows(), self.vectors.ncols(), |row, col| {
            self.vectors[(row, col)] * scaled[col]
        });
        product(scaled.as_ref(), self.values.len(), |first, width| {
            self.vectors.subrows(first, width).transpose().to_owned()
        })
    }

    /// `v_iᵀ · rows` for the first `count` eigenvectors: one row each.
    pub(super) fn leading(&self, count: usize, rows: &Matrix) -> Matrix {
        let leading = self.vectors.subcols(0, count).transpose();
        product(leading, rows.cols(), |first, width| {
            Mat::from_fn(rows.rows(), width, |row, col| f64::from(rows.row(row)[first + col]))
        })
    }

    /// The first `count` eigenvectors themselves, one row each, times f(λ).
    pub(super) fn vectors(&self, count: usize, change: impl Fn(f64) -> f64) -> Matrix {
        let mut out = Matrix::zeros(count, self.vectors.nrows());
        for at in 0..count {
            let factor = change(self.values[at]);
            let entries = out.row_mut(at).iter_mut().enumerate();
            entries.for_each(|(row, to)| *to = (factor * self.vectors[(row, at)]) as f32);
        }
        out
    }
}

/// `a · b` in double precision, b given as blocks of so many columns from some first one on.
fn product(
    a: MatRef<'_, f64>,
    cols: usize,
    block: impl Fn(usize, usize) -> Mat<f64> + Sync,
) -> Matrix {
    let parts: Vec<Vec<f64>> = (0..cols.div_ceil(COLUMNS))
        .into_par_iter()
        .map(|part| {
            let first = part * COLUMNS;
            let block = block(first, COLUMNS.min(cols - first));
            let mut out = vec![0.0; a.nrows() * block.ncols()];
            let to = MatMut::from_row_major_slice_mut(&mut out, a.nrows(), block.ncols());
            matmul(to, Accum::Replace, a, block.as_ref(), 1.0, Par::Seq);
            out
        })
        .collect();
    let mut out = Matrix::zeros(a.nrows(), cols);
    for (part, numbers) in parts.iter().enumerate() {
        let first = part * COLUMNS;
        let width = COLUMNS.min(cols - first);
        for (row, values) in numbers.chunks_exact(width).enumerate() {
            let to = out.row_mut(row)[first..first + width].iter_mut();
            to.zip(values).for_each(|(to, &value)| *to = value as f32);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ivoro::linalg::times_transposed;

    #[test]
    fn roots_and_eigenvectors_are_those_of_the_matrix() {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        let rows = Matrix::new(9, 5, (0..45).map(value).collect()).unwrap();
        let mut gram = Symmetric::zeros(5);
        gram.add_gram(&rows, 1.0);
        let spectrum = Spectrum::of(&gram, "test matrix").unwrap();
        assert!(spectrum.values.is_sorted_by(|a, b| a >= b));
        let mut unit = Matrix::zeros(5, 5);
        (0..5).for_each(|at| unit.row_mut(at)[at] = 1.0);
        let root = spectrum.function(f64::sqrt);
        let back = times_transposed(&root, &root);
        for row in 0..5 {
            for col in 0..5 {
                assert!((f64::from(back.row(row)[col]) - gram.get(row, col)).abs() < 1e-5);
            }
        }
        let first = spectrum.leading(2, &unit);
        assert_eq!(first, spectrum.vectors(2, |_| 1.0));
        let length: f32 = first.row(0).iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-6);
    }
}
