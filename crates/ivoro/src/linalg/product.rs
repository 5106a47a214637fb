//! Products of matrices, tile by tile on all threads.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::interrupt;
use crate::matrix::Matrix;

/// Rows handled by one task: small enough to spread over cores, large enough to feed the GEMM.
const ROWS: usize = 256;

/// `a · bᵀ`: one row per row of `a`, one column per row of `b`.
///
/// # Panics
/// If the two do not have the same number of columns.
pub fn times_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows(), b.rows());
    fill_products(a, b, &mut out);
    out
}

/// `a · bᵀ` where no bit of a row depends on which other rows there are, or on how many: a GEMM
/// chooses its order of summation by the shapes, so all blocks are filled up to the same one.
///
/// # Panics
/// If the two do not have the same number of columns.
pub fn times_transposed_alike(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = times_transposed(&filled(a), b);
    out.resize_rows(a.rows());
    out
}

/// With rows of zeros, so that all blocks have one shape.
pub(super) fn filled(rows: &Matrix) -> Matrix {
    let mut filled = rows.clone();
    filled.resize_rows(rows.rows().next_multiple_of(ROWS));
    filled
}

/// Writes `a · bᵀ` over `out`.
///
/// # Panics
/// If the shapes do not fit.
pub fn fill_products(a: &Matrix, b: &Matrix, out: &mut Matrix) {
    assert_eq!((a.cols(), out.cols()), (b.cols(), b.rows()), "shapes of a product");
    if out.as_slice().is_empty() {
        return;
    }
    let (dim, cols) = (a.cols(), b.rows());
    let right = b.view().transpose();
    let blocks = a.as_slice().par_chunks(ROWS * dim);
    out.as_mut_slice().par_chunks_mut(ROWS * cols).zip(blocks).for_each(|(out, block)| {
        interrupt::check();
        let rows = block.len() / dim;
        let left = MatRef::from_row_major_slice(block, rows, dim);
        let out = MatMut::from_row_major_slice_mut(out, rows, cols);
        matmul(out, Accum::Replace, left, right, 1.0, Par::Seq);
    });
}
