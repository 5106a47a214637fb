//! Products of row-major matrices on the thread that asks; see [`convolution`](super::convolution)
//! for how work is spread over threads.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// Whether a product replaces what is there or is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// What is there is not read.
    Replace,
    /// The product is added.
    Add,
}

impl Store {
    fn accum(self) -> Accum {
        match self {
            Self::Replace => Accum::Replace,
            Self::Add => Accum::Add,
        }
    }
}

/// `left · right`; `right` has `inner` rows, and all else follows from the lengths.
pub(super) fn multiply(out: &mut [f32], store: Store, left: &[f32], right: &[f32], inner: usize) {
    let (rows, columns) = (left.len() / inner, right.len() / inner);
    let left = MatRef::from_row_major_slice(left, rows, inner);
    let right = MatRef::from_row_major_slice(right, inner, columns);
    let out = MatMut::from_row_major_slice_mut(out, rows, columns);
    matmul(out, store.accum(), left, right, 1.0, Par::Seq);
}

/// `leftᵀ · right`; both have `inner` rows.
pub(super) fn multiply_transposed(
    out: &mut [f32],
    store: Store,
    left: &[f32],
    right: &[f32],
    inner: usize,
) {
    let (rows, columns) = (left.len() / inner, right.len() / inner);
    let left = MatRef::from_column_major_slice(left, rows, inner);
    let right = MatRef::from_row_major_slice(right, inner, columns);
    let out = MatMut::from_row_major_slice_mut(out, rows, columns);
    matmul(out, store.accum(), left, right, 1.0, Par::Seq);
}

/// `left · rightᵀ`; both have `inner` columns.
pub(super) fn multiply_by_transposed(
    out: &mut [f32],
    store: Store,
    left: &[f32],
    right: &[f32],
    inner: usize,
) {
    let (rows, columns) = (left.len() / inner, right.len() / inner);
    let left = MatRef::from_row_major_slice(left, rows, inner);
    let right = MatRef::from_column_major_slice(right, inner, columns);
    let out = MatMut::from_row_major_slice_mut(out, rows, columns);
    matmul(out, store.accum(), left, right, 1.0, Par::Seq);
}
