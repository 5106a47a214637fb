//! A row-major `f32` matrix: one row a sample or a centre.

use crate::error::{Error, Result};

/// Row-major matrix of `f32`, one row a sample or a centre.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

impl Matrix {
    /// A matrix over `data`, which must hold exactly `rows · cols` numbers.
    pub fn new(rows: usize, cols: usize, data: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(data.len()) {
            let what = format!("numbers in a {rows} × {cols} matrix");
            return Err(Error::Size {
                what,
                expected: rows.saturating_mul(cols),
                found: data.len(),
            });
        }
        Ok(Self { rows, cols, data })
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: the dimension of each row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.cols..(row + 1) * self.cols]
    }

    /// One row, to write to.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.data[row * self.cols..(row + 1) * self.cols]
    }

    /// All numbers, row after row.
    pub fn as_slice(&self) -> &[f32] {
        &self.data
    }

    /// All numbers, row after row, to write to.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The numbers themselves.
    pub fn into_vec(self) -> Vec<f32> {
        self.data
    }

    /// The rows one after another (none for a matrix without columns).
    pub fn iter_rows(&self) -> impl Iterator<Item = &[f32]> {
        self.data.chunks_exact(self.cols.max(1))
    }

    /// A new matrix of the rows named, in the order given.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut data = Vec::with_capacity(rows.len() * self.cols);
        for &row in rows {
            data.extend_from_slice(self.row(row));
        }
        Self { rows: rows.len(), cols: self.cols, data }
    }

    /// Appends the rows of `other`.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        if self.cols != other.cols {
            let what = "columns of appended rows".to_owned();
            return Err(Error::Size { what, expected: self.cols, found: other.cols });
        }
        self.data.extend_from_slice(&other.data);
        self.rows += other.rows;
        Ok(())
    }

    /// Drops rows at the end, or adds rows of zeros.
    pub(crate) fn resize_rows(&mut self, rows: usize) {
        self.data.resize(rows * self.cols, 0.0);
        self.rows = rows;
    }

    /// Matrices side by side; all must have the same number of rows.
    pub fn concat_columns(parts: &[&Self]) -> Result<Self> {
        let rows = parts.first().map_or(0, |part| part.rows);
        let cols = parts.iter().map(|part| part.cols).sum();
        let mut data = Vec::with_capacity(rows * cols);
        for part in parts {
            if part.rows != rows {
                let what = "rows of matrices side by side".to_owned();
                return Err(Error::Size { what, expected: rows, found: part.rows });
            }
        }
        for row in 0..rows {
            parts.iter().for_each(|part| data.extend_from_slice(part.row(row)));
        }
        Ok(Self { rows, cols, data })
    }

    pub(crate) fn view(&self) -> faer::MatRef<'_, f32> {
        faer::MatRef::from_row_major_slice(&self.data, self.rows, self.cols)
    }
}
