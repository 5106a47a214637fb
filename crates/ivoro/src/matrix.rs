//! A row-major `f32` matrix: one row per sample or centre.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Numbers that someone else keeps, such as an array of another language, and that are read in
/// place.
pub type SharedNumbers = Arc<dyn AsRef<[f32]> + Send + Sync>;

/// Row-major matrix of `f32`, one row per sample or centre.
///
/// A clone of shared numbers shares them too; whoever writes gets numbers of their own first.
///
/// ```
/// use ivoro::Matrix;
/// let matrix = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!((matrix.row(1), matrix.transposed().row(1)), (&[3.0, 4.0][..], &[2.0, 4.0][..]));
/// assert!(Matrix::new(2, 2, vec![1.0]).is_err());
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
    /// Stands for `data` while it is there.
    shared: Option<SharedNumbers>,
}

impl Default for Matrix {
    fn default() -> Self {
        Self::owning(0, 0, Vec::new())
    }
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<&[f32]> = self.iter_rows().collect();
        f.debug_struct("Matrix")
            .field("cols", &self.cols)
            .field("rows", &rows)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Matrix {
    fn eq(&self, other: &Self) -> bool {
        let sizes = |matrix: &Self| (matrix.rows, matrix.cols);
        sizes(self) == sizes(other) && self.as_slice() == other.as_slice()
    }
}

impl Matrix {
    /// A matrix over `data`, which must hold exactly `rows · cols` numbers.
    pub fn new(rows: usize, cols: usize, data: Vec<f32>) -> Result<Self> {
        check_size(rows, cols, data.len())?;
        Ok(Self::owning(rows, cols, data))
    }

    /// A matrix over numbers that stay where they are: nothing is copied.
    ///
    /// ```
    /// use std::sync::Arc;
    /// let kept = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
    /// let matrix = ivoro::Matrix::shared(2, 2, kept.clone())?;
    /// assert!(std::ptr::eq(matrix.as_slice(), kept.as_slice()));
    /// # Ok::<(), ivoro::Error>(())
    /// ```
    pub fn shared(rows: usize, cols: usize, numbers: SharedNumbers) -> Result<Self> {
        check_size(rows, cols, (*numbers).as_ref().len())?;
        Ok(Self { rows, cols, data: Vec::new(), shared: Some(numbers) })
    }

    /// The same numbers, and whoever clones the matrix copies nothing.
    #[must_use]
    pub fn into_shared(mut self) -> Self {
        if self.shared.is_none() {
            self.shared = Some(Arc::new(std::mem::take(&mut self.data)));
        }
        self
    }

    fn owning(rows: usize, cols: usize, data: Vec<f32>) -> Self {
        Self { rows, cols, data, shared: None }
    }

    /// The numbers to write to; shared ones are copied first.
    fn make_own(&mut self) -> &mut Vec<f32> {
        if let Some(shared) = self.shared.take() {
            self.data = (*shared).as_ref().to_vec();
        }
        &mut self.data
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self::owning(rows, cols, vec![0.0; rows * cols])
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
        &self.as_slice()[row * self.cols..(row + 1) * self.cols]
    }

    /// One row, to write to.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let cols = self.cols;
        &mut self.make_own()[row * cols..(row + 1) * cols]
    }

    /// All numbers, row after row.
    pub fn as_slice(&self) -> &[f32] {
        self.shared.as_ref().map_or(&self.data, |shared| (**shared).as_ref())
    }

    /// All numbers, row after row, to write to.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        self.make_own()
    }

    /// The numbers themselves.
    pub fn into_vec(mut self) -> Vec<f32> {
        std::mem::take(self.make_own())
    }

    /// The rows one after another (none for a matrix without columns).
    pub fn iter_rows(&self) -> impl Iterator<Item = &[f32]> {
        self.as_slice().chunks_exact(self.cols.max(1))
    }

    /// A new matrix of the rows named, in the order given.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut data = Vec::with_capacity(rows.len() * self.cols);
        for &row in rows {
            data.extend_from_slice(self.row(row));
        }
        Self::owning(rows.len(), self.cols, data)
    }

    /// Rows become columns.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut out = Self::zeros(self.cols, self.rows);
        for (row, values) in self.iter_rows().enumerate() {
            values.iter().enumerate().for_each(|(col, &value)| out.row_mut(col)[row] = value);
        }
        out
    }

    /// Appends the rows of `other`.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        if self.cols != other.cols {
            let what = "columns of appended rows".to_owned();
            return Err(Error::Size { what, expected: self.cols, found: other.cols });
        }
        self.make_own().extend_from_slice(other.as_slice());
        self.rows += other.rows;
        Ok(())
    }

    /// Drops rows at the end, or adds rows of zeros.
    pub fn resize_rows(&mut self, rows: usize) {
        let cols = self.cols;
        self.make_own().resize(rows * cols, 0.0);
        self.rows = rows;
    }

    /// Matrices side by side; all must have the same number of rows.
    pub fn concat_columns(parts: &[&Self]) -> Result<Self> {
        if let [alone] = parts {
            return Ok((*alone).clone());
        }
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
        Ok(Self::owning(rows, cols, data))
    }

    /// The numbers as faer sees them.
    #[doc(hidden)]
    pub fn view(&self) -> faer::MatRef<'_, f32> {
        faer::MatRef::from_row_major_slice(self.as_slice(), self.rows, self.cols)
    }
}

fn check_size(rows: usize, cols: usize, found: usize) -> Result<()> {
    if rows.checked_mul(cols) == Some(found) {
        return Ok(());
    }
    let what = format!("numbers in a {rows} × {cols} matrix");
    Err(Error::Size { what, expected: rows.saturating_mul(cols), found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_leaves_shared_numbers_as_they_are() {
        let kept = Arc::new(vec![1.0, 2.0, 3.0, 4.0]);
        let first = Matrix::shared(2, 2, kept.clone()).unwrap();
        let mut second = first.clone();
        assert!(std::ptr::eq(first.as_slice(), second.as_slice()));
        second.row_mut(0)[0] = 9.0;
        assert_eq!(*kept, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(second.as_slice(), [9.0, 2.0, 3.0, 4.0]);
        assert_ne!(first, second);
        assert_eq!(first, Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap());
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        assert!(Matrix::shared(3, 2, Arc::new(vec![0.0; 4])).is_err());
        assert!(Matrix::new(usize::MAX, 2, vec![0.0; 4]).is_err());
    }
}
