//! The directions in which a class spreads most, without a whole eigen-decomposition.
//!
//! A few random directions are multiplied by the covariance again and again; the space that all these
//! products span soon holds its leading eigenvectors (block Lanczos), and within that space the small
//! problem is solved exactly. A covariance of n samples has at most n − 1 directions: where those are
//! no more than are iterated, a single product spans all of them.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};

use super::Symmetric;
use crate::error::{Error, Result};
use crate::random::normals;

/// Directions sought beyond those wanted: they take up what the last ones would else lack.
const BEYOND: usize = 8;
/// Blocks of half as many directions as are sought, each the product of the covariance with the one
/// before.
const BLOCKS: usize = 6;
/// Seed of the directions to begin with.
const SEED: u64 = 0x1D_1EC7;

/// A covariance that columns can be multiplied by, on one thread.
pub(crate) trait Covariance {
    fn dim(&self) -> usize;
    fn times(&self, columns: MatRef<'_, f64>) -> Mat<f64>;
}

impl Covariance for Symmetric {
    fn dim(&self) -> usize {
        self.dim()
    }

    fn times(&self, columns: MatRef<'_, f64>) -> Mat<f64> {
        self.times(columns)
    }
}

/// A space of few dimensions that a class spreads in, for a covariance C in the space that a
/// whitening matrix W leads to.
pub(crate) struct LeadingSpace {
    /// Orthonormal columns.
    pub(crate) basis: Mat<f64>,
    /// Wᵀ · basis.
    pub(crate) raw: Mat<f64>,
    /// basisᵀ · W·C·Wᵀ · basis.
    pub(crate) covariance: Mat<f64>,
}

/// A space that holds nearly all of the `rank` leading directions of `W·C·Wᵀ`, given Wᵀ, or of C; C is
/// known to have no more than `most` directions.
pub(crate) fn leading_space(
    covariance: &impl Covariance,
    whitener: Option<MatRef<'_, f64>>,
    rank: usize,
    most: usize,
) -> LeadingSpace {
    let turned = |matrix: Option<MatRef<'_, f64>>, columns: MatRef<'_, f64>| match matrix {
        Some(matrix) => times(matrix, columns),
        None => columns.to_owned(),
    };
    let dim = covariance.dim();
    let (sought, most) = (rank + BEYOND, most.min(dim));
    let (width, columns) = if sought >= most {
        (most, most)
    } else {
        let width = sought.div_ceil(2);
        (width, (BLOCKS * width).min(most))
    };
    let mut drawn = normals(SEED, 0);
    let start = Mat::from_fn(dim, width, |_, _| drawn.next().unwrap_or(0.0));
    let mut products = covariance.times(start.as_ref());
    let mut basis = Mat::zeros(dim, columns);
    let (mut raw, mut images) = (basis.clone(), basis.clone());
    for first in (0..columns).step_by(width.max(1)) {
        let count = width.min(columns - first);
        let next = turned(whitener.map(MatRef::transpose), products.subcols(0, count));
        let block = orthogonal(basis.subcols(0, first), next);
        let back = turned(whitener, block.as_ref());
        products = covariance.times(back.as_ref());
        basis.subcols_mut(first, count).copy_from(&block);
        raw.subcols_mut(first, count).copy_from(&back);
        images.subcols_mut(first, count).copy_from(&products);
    }
    let covariance = times(raw.as_ref().transpose(), images.as_ref());
    LeadingSpace { basis, raw, covariance }
}

/// Orthonormal columns that span what these add to the known ones. Once is not enough: what is left
/// of nearly dependent columns is mostly rounding.
fn orthogonal(known: MatRef<'_, f64>, mut columns: Mat<f64>) -> Mat<f64> {
    for _ in 0..2 {
        if known.ncols() > 0 {
            let shares = times(known.transpose(), columns.as_ref());
            matmul(columns.as_mut(), Accum::Add, known, shares.as_ref(), -1.0, Par::Seq);
        }
        columns = columns.qr().compute_thin_Q();
    }
    columns
}

/// `a · b`, computed by one thread: whoever calls has several such products to make.
pub(crate) fn times(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), b.ncols());
    matmul(out.as_mut(), Accum::Replace, a, b, 1.0, Par::Seq);
    out
}

/// Eigenvalues of a small symmetric matrix, the largest first, and their vectors as columns.
pub(crate) fn eigen(
    matrix: MatRef<'_, f64>,
    what: &'static str,
    ridge: f64,
) -> Result<(Vec<f64>, Mat<f64>)> {
    if matrix.nrows() == 0 {
        return Ok((Vec::new(), Mat::zeros(0, 0)));
    }
    let failed = |_| Error::NotPositiveDefinite { what, ridge };
    let found = matrix.self_adjoint_eigen(Side::Lower).map_err(failed)?;
    let (values, vectors) = (found.S().column_vector(), found.U());
    let last = matrix.nrows();
    let reversed = Mat::from_fn(last, last, |row, col| vectors[(row, last - 1 - col)]);
    Ok(((0..last).rev().map(|at| values[at]).collect(), reversed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    fn covariance(dim: usize, samples: usize) -> Symmetric {
        let mut drawn = normals(7, 3);
        let mut rows = Matrix::zeros(samples, dim);
        for at in 0..samples {
            let row = rows.row_mut(at).iter_mut().enumerate();
            row.for_each(|(col, value)| {
                *value = (drawn.next().unwrap() / (1.0 + col as f64 / 3.0)) as f32;
            });
        }
        let mut matrix = Symmetric::zeros(dim);
        matrix.add_gram(&rows, 1.0 / samples as f64);
        matrix
    }

    fn identity(dim: usize) -> Mat<f64> {
        Mat::identity(dim, dim)
    }

    #[test]
    fn few_samples_leave_nothing_out() {
        let matrix = covariance(150, 9);
        let space = leading_space(&matrix, None, 9, 9);
        let (values, _) = eigen(space.covariance.as_ref(), "test", 0.0).unwrap();
        let trace: f64 = matrix.diagonal().iter().sum();
        assert!((values.iter().sum::<f64>() - trace).abs() < 1e-9 * trace, "{values:?} {trace}");
    }

    #[test]
    fn leading_directions_are_those_of_the_whole_decomposition() {
        let matrix = covariance(150, 400);
        let whole = Mat::from_fn(150, 150, |row, col| matrix.get(row, col));
        let (expected, _) = eigen(whole.as_ref(), "test", 0.0).unwrap();
        let space = leading_space(&matrix, Some(identity(150).as_ref()), 12, 399);
        let (found, _) = eigen(space.covariance.as_ref(), "test", 0.0).unwrap();
        for (found, expected) in found.iter().zip(&expected).take(8) {
            assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
        }
        let (found, best) = (found[..12].iter().sum::<f64>(), expected[..12].iter().sum::<f64>());
        assert!(found <= best * (1.0 + 1e-9) && found > 0.99 * best, "{found} of {best}");
    }
}
