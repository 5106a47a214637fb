//! The numbers of a model file on their way into its bytes.

use super::safetensors_header::{Entry, F32, I64};
use crate::matrix::Matrix;

/// One tensor and its little-endian bytes.
pub(super) struct Tensor {
    pub(super) entry: Entry,
    pub(super) bytes: Vec<u8>,
}

impl Tensor {
    pub(super) fn integers(
        name: String,
        shape: Vec<usize>,
        values: impl Iterator<Item = i64>,
    ) -> Self {
        let bytes = values.flat_map(i64::to_le_bytes).collect();
        Self { entry: Entry { name, kind: I64, shape }, bytes }
    }

    pub(super) fn row(name: String, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { entry: Entry { name, kind: F32, shape: vec![1, values.len()] }, bytes }
    }

    pub(super) fn floats(name: String, matrix: &Matrix) -> Self {
        let bytes = matrix.as_slice().iter().flat_map(|value| value.to_le_bytes()).collect();
        let shape = vec![matrix.rows(), matrix.cols()];
        Self { entry: Entry { name, kind: F32, shape }, bytes }
    }
}
