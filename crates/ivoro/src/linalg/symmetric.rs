//! Symmetric matrices in tiles, their Cholesky factors, and what is solved with them.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{
    LltRegularization, cholesky_in_place, cholesky_in_place_scratch,
};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, Mat, MatMut, MatRef, Par, Spec};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::interrupt;
use crate::matrix::Matrix;

/// Side of a tile. Fixed, so that results do not depend on the machine.
pub(crate) const TILE: usize = 128;

/// Right-hand sides solved by one task.
const SIDES: usize = 64;

/// Right-hand sides of which there are always a multiple, where bits must not depend on how many there
/// are: one alone is solved in another order than several.
const ALIKE: usize = 8;

/// Samples converted to `f64` at a time when a Gram matrix is added.
const SAMPLES: usize = 2048;

/// A symmetric `f64` matrix: its lower triangle, in rows of tiles.
///
/// Tile row `i` holds the matrix rows `i · TILE ..` and all columns up to the end of the diagonal
/// tile, row-major. The part of a diagonal tile above the diagonal mirrors what is below.
#[derive(Clone, Debug, PartialEq)]
pub struct Symmetric {
    dim: usize,
    tiles: Vec<Vec<f64>>,
}

/// Tile rows of a symmetric matrix of this dimension: (first row, rows, columns).
pub(crate) fn tile_rows(dim: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..dim.div_ceil(TILE)).map(move |index| {
        let first = index * TILE;
        let rows = TILE.min(dim - first);
        (first, rows, first + rows)
    })
}

impl Symmetric {
    /// All zeros.
    pub fn zeros(dim: usize) -> Self {
        let tiles = tile_rows(dim).map(|(_, rows, cols)| vec![0.0; rows * cols]).collect();
        Self { dim, tiles }
    }

    /// A matrix whose tile rows are given.
    pub(crate) fn from_tiles(dim: usize, tiles: Vec<Vec<f64>>) -> Self {
        debug_assert!(
            tile_rows(dim).zip(&tiles).all(|((_, rows, cols), tile)| tile.len() == rows * cols)
        );
        Self { dim, tiles }
    }

    /// Number of rows and of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// One entry.
    pub fn get(&self, row: usize, col: usize) -> f64 {
        let (row, col) = (row.max(col), row.min(col));
        let first = row / TILE * TILE;
        let cols = first + TILE.min(self.dim - first);
        self.tiles[row / TILE][(row - first) * cols + col]
    }

    /// Changes every entry of the lower triangle: `change(row, col, value)`.
    pub fn for_each(&mut self, change: impl Fn(usize, usize, &mut f64) + Sync) {
        self.tiles.par_iter_mut().enumerate().for_each(|(index, tile)| {
            let first = index * TILE;
            let cols = tile.len() / TILE.min(self.dim - first);
            for (row, values) in tile.chunks_exact_mut(cols).enumerate() {
                for (col, value) in values.iter_mut().enumerate() {
                    change(first + row, col, value);
                }
            }
        });
    }

    /// Adds `weight · rowsᵀ · rows`: the Gram matrix of the columns.
    ///
    /// # Panics
    /// If the rows are not of this dimension.
    pub fn add_gram(&mut self, rows: &Matrix, weight: f64) {
        assert_eq!(rows.cols(), self.dim, "dimension of a Gram matrix");
        for chunk in rows.as_slice().chunks(SAMPLES * self.dim.max(1)) {
            let wide: Vec<f64> = chunk.par_iter().map(|&value| f64::from(value)).collect();
            self.add_gram_wide(&wide, weight);
        }
    }

    /// The same for rows of `f64`, one after another.
    pub(crate) fn add_gram_wide(&mut self, rows: &[f64], weight: f64) {
        if self.dim == 0 {
            return;
        }
        let rows = MatRef::from_row_major_slice(rows, rows.len() / self.dim, self.dim);
        self.tiles.par_iter_mut().enumerate().for_each(|(index, tile)| {
            gram_tile(index * TILE, tile, rows, weight);
        });
    }

    /// Adds `weight · other`.
    ///
    /// # Panics
    /// If the dimensions differ.
    pub fn add(&mut self, other: &Self, weight: f64) {
        assert_eq!(self.dim, other.dim, "dimension of a sum");
        for (tile, other) in self.tiles.iter_mut().zip(&other.tiles) {
            tile.iter_mut().zip(other).for_each(|(value, other)| *value += weight * other);
        }
    }

    /// Multiplies every entry.
    pub fn scale(&mut self, factor: f64) {
        self.tiles.iter_mut().flatten().for_each(|value| *value *= factor);
    }

    /// Adds to every diagonal entry.
    pub fn add_diagonal(&mut self, value: f64) {
        for at in 0..self.dim {
            let first = at / TILE * TILE;
            let cols = first + TILE.min(self.dim - first);
            self.tiles[at / TILE][(at - first) * cols + at] += value;
        }
    }

    /// Adds to each diagonal entry a number of its own.
    pub fn add_to_diagonal(&mut self, values: &[f64]) {
        for (at, value) in values.iter().enumerate().take(self.dim) {
            let first = at / TILE * TILE;
            let cols = first + TILE.min(self.dim - first);
            self.tiles[at / TILE][(at - first) * cols + at] += value;
        }
    }

    /// The diagonal.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.dim).map(|at| self.get(at, at)).collect()
    }

    /// Mean of the diagonal.
    pub fn mean_diagonal(&self) -> f64 {
        self.diagonal().iter().sum::<f64>() / self.dim.max(1) as f64
    }

    /// This matrix times few columns, computed by one thread.
    pub(crate) fn times(&self, columns: MatRef<'_, f64>) -> Mat<f64> {
        let mut out = Mat::zeros(self.dim, columns.ncols());
        for ((first, rows, cols), tile) in tile_rows(self.dim).zip(&self.tiles) {
            let tile = MatRef::from_row_major_slice(tile, rows, cols);
            let target = out.as_mut().subrows_mut(first, rows);
            matmul(target, Accum::Add, tile, columns.subrows(0, cols), 1.0, Par::Seq);
            // what is left of the diagonal tile stands for what is above it too
            let (left, above) = (tile.subcols(0, first), out.as_mut().subrows_mut(0, first));
            let side = columns.subrows(first, rows);
            matmul(above, Accum::Add, left.transpose(), side, 1.0, Par::Seq);
        }
        out
    }

    /// Sum of the squares of all entries.
    pub(crate) fn squares(&self) -> f64 {
        let of_row = |(tile, (first, rows, cols)): (&Vec<f64>, (usize, usize, usize))| -> f64 {
            let square = |row: usize| {
                let (left, diagonal) = tile[row * cols..(row + 1) * cols].split_at(first);
                let sum = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
                2.0 * sum(left) + sum(diagonal)
            };
            (0..rows).map(square).sum()
        };
        self.tiles.iter().zip(tile_rows(self.dim)).map(of_row).sum()
    }

    /// Cholesky factor L with `L · Lᵀ` = this matrix; `what` and `ridge` go into the error.
    pub fn factor(mut self, what: &'static str, ridge: f64) -> Result<Factor> {
        for index in 0..self.tiles.len() {
            let (done, rest) = self.tiles.split_at_mut(index + 1);
            let current = &mut done[index];
            factor_diagonal(index, current)
                .map_err(|()| Error::NotPositiveDefinite { what, ridge })?;
            let current = &*current;
            rest.par_iter_mut().enumerate().for_each(|(below, tile)| {
                factor_below(index, current, index + 1 + below, tile, self.dim);
            });
        }
        Ok(Factor { dim: self.dim, tiles: self.tiles })
    }
}

fn gram_tile(first: usize, tile: &mut [f64], samples: MatRef<'_, f64>, weight: f64) {
    interrupt::check();
    let rows = TILE.min(samples.ncols() - first);
    let left = samples.subcols(first, rows).transpose();
    let right = samples.subcols(0, first + rows);
    let tile = MatMut::from_row_major_slice_mut(tile, rows, first + rows);
    matmul(tile, Accum::Add, left, right, weight, Par::Seq);
}

/// Finishes the diagonal tile of tile row `index`: everything left of it is final.
fn factor_diagonal(index: usize, tile: &mut [f64]) -> Result<(), ()> {
    let first = index * TILE;
    // rows · (first + rows) = len  ⇒  the positive root
    let rows = rows_of(first, tile.len());
    let whole = MatMut::from_row_major_slice_mut(tile, rows, first + rows);
    let (left, mut diagonal) = whole.split_at_col_mut(first);
    matmul(diagonal.as_mut(), Accum::Add, left.as_ref(), left.as_ref().transpose(), -1.0, Par::Seq);
    // the factorisation wants columns that are contiguous; the tile is symmetric, so copy it out
    let mut square = faer::Mat::from_fn(rows, rows, |row, col| diagonal[(row, col)]);
    let mut memory =
        MemBuffer::new(cholesky_in_place_scratch::<f64>(rows, Par::Seq, Spec::default()));
    let stack = MemStack::new(&mut memory);
    cholesky_in_place(
        square.as_mut(),
        LltRegularization::default(),
        Par::Seq,
        stack,
        Spec::default(),
    )
    .map_err(|_| ())?;
    for row in 0..rows {
        for col in 0..rows {
            diagonal[(row, col)] = if col <= row { square[(row, col)] } else { 0.0 };
        }
    }
    if (0..rows).all(|at| diagonal[(at, at)].is_finite()) { Ok(()) } else { Err(()) }
}

/// Computes tile `(below, index)` of the factor from the finished tile row `index`.
fn factor_below(index: usize, current: &[f64], below: usize, tile: &mut [f64], dim: usize) {
    interrupt::check();
    let first = index * TILE;
    let rows = TILE.min(dim - below * TILE);
    let whole = MatMut::from_row_major_slice_mut(tile, rows, below * TILE + rows);
    let (left, right) = whole.split_at_col_mut(first);
    let mut target = right.subcols_mut(0, TILE);
    let done = MatRef::from_row_major_slice(current, TILE, first + TILE);
    let (done_left, diagonal) = done.split_at_col(first);
    matmul(target.as_mut(), Accum::Add, left.as_ref(), done_left.transpose(), -1.0, Par::Seq);
    solve_lower_triangular_in_place(diagonal, target.transpose_mut(), Par::Seq);
}

fn rows_of(first: usize, len: usize) -> usize {
    (1..=TILE).find(|rows| rows * (first + rows) == len).unwrap_or(TILE)
}

/// A Cholesky factor: solves and whitens.
#[derive(Clone, Debug)]
pub struct Factor {
    dim: usize,
    tiles: Vec<Vec<f64>>,
}

impl Factor {
    /// ln det of the matrix that was factored.
    pub fn log_determinant(&self) -> f64 {
        let of_tile = |(index, tile): (usize, &Vec<f64>)| -> f64 {
            let first = index * TILE;
            let rows = rows_of(first, tile.len());
            (0..rows).map(|row| tile[row * (first + rows) + first + row].ln()).sum()
        };
        2.0 * self.tiles.iter().enumerate().map(of_tile).sum::<f64>()
    }

    /// Each row z becomes `L⁻¹ z`: squared distances between rows are then Mahalanobis distances.
    pub fn whiten(&self, rows: &Matrix) -> Matrix {
        self.apply(rows, |side| self.forward(side))
    }

    /// The same where no bit of a row depends on which other rows there are.
    pub(crate) fn whiten_alike(&self, rows: &Matrix) -> Matrix {
        let mut filled = rows.clone();
        filled.resize_rows(rows.rows().next_multiple_of(ALIKE));
        let mut white = self.whiten(&filled);
        white.resize_rows(rows.rows());
        white
    }

    /// `A⁻¹ z` of rows in double precision, one after another.
    pub(crate) fn solve_wide(&self, rows: &[f64]) -> Vec<f64> {
        let mut side = rows.to_vec();
        if !side.is_empty() {
            self.forward(&mut side);
            self.backward(&mut side);
        }
        side
    }

    /// Each row z becomes `A⁻¹ z`, A being the matrix that was factored.
    pub fn solve(&self, rows: &Matrix) -> Matrix {
        self.apply(rows, |side| {
            self.forward(side);
            self.backward(side);
        })
    }

    /// `L⁻¹`: what [`Self::whiten`] multiplies with.
    pub fn inverse(&self) -> Matrix {
        let mut columns = Matrix::zeros(self.dim, self.dim);
        (0..self.dim).for_each(|at| columns.row_mut(at)[at] = 1.0);
        self.whiten(&columns).transposed()
    }

    /// The transpose of `L⁻¹`, in double precision.
    pub(crate) fn inverse_transposed(&self) -> Mat<f64> {
        let mut rows = vec![0.0; self.dim * self.dim];
        rows.iter_mut().step_by(self.dim + 1).for_each(|value| *value = 1.0);
        let tasks = rows.par_chunks_mut(SIDES * self.dim.max(1));
        tasks.for_each(|side| self.forward(side));
        MatRef::from_row_major_slice(&rows, self.dim, self.dim).to_owned()
    }

    fn apply(&self, rows: &Matrix, work: impl Fn(&mut [f64]) + Sync) -> Matrix {
        assert_eq!(rows.cols(), self.dim, "dimension of a right-hand side");
        let mut out = Matrix::zeros(rows.rows(), rows.cols());
        let size = SIDES * self.dim.max(1);
        let sources = rows.as_slice().par_chunks(size);
        out.as_mut_slice().par_chunks_mut(size).zip(sources).for_each(|(out, source)| {
            interrupt::check();
            let mut side: Vec<f64> = source.iter().map(|&value| f64::from(value)).collect();
            work(&mut side);
            out.iter_mut().zip(side).for_each(|(out, value)| *out = value as f32);
        });
        out
    }

    /// Solves L y = b for every row b of `side`, in place.
    fn forward(&self, side: &mut [f64]) {
        let count = side.len() / self.dim;
        let mut whole = MatMut::from_row_major_slice_mut(side, count, self.dim);
        for (index, (first, rows, cols)) in tile_rows(self.dim).enumerate() {
            let tile = MatRef::from_row_major_slice(&self.tiles[index], rows, cols);
            let (left, diagonal) = tile.split_at_col(first);
            let (known, rest) = whole.as_mut().split_at_col_mut(first);
            let mut target = rest.subcols_mut(0, rows);
            matmul(target.as_mut(), Accum::Add, known.as_ref(), left.transpose(), -1.0, Par::Seq);
            solve_lower_triangular_in_place(diagonal, target.transpose_mut(), Par::Seq);
        }
    }

    /// Solves Lᵀ x = y for every row y of `side`, in place.
    fn backward(&self, side: &mut [f64]) {
        let count = side.len() / self.dim;
        let mut whole = MatMut::from_row_major_slice_mut(side, count, self.dim);
        let tiles: Vec<_> = tile_rows(self.dim).collect();
        for (index, &(first, rows, cols)) in tiles.iter().enumerate().rev() {
            let tile = MatRef::from_row_major_slice(&self.tiles[index], rows, cols);
            let (left, diagonal) = tile.split_at_col(first);
            let (before, rest) = whole.as_mut().split_at_col_mut(first);
            let mut known = rest.subcols_mut(0, rows);
            solve_upper_triangular_in_place(
                diagonal.transpose(),
                known.as_mut().transpose_mut(),
                Par::Seq,
            );
            matmul(before, Accum::Add, known.as_ref(), left, -1.0, Par::Seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize, cols: usize) -> Matrix {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        Matrix::new(rows, cols, (0..rows * cols).map(value).collect()).unwrap()
    }

    fn gram(dim: usize) -> Symmetric {
        let mut matrix = Symmetric::zeros(dim);
        matrix.add_gram(&sample(2 * dim + 3, dim), 1.0);
        matrix.add_diagonal(0.5);
        matrix
    }

    #[test]
    fn solving_inverts_multiplication_across_tile_borders() {
        for dim in [1, 5, TILE - 1, TILE, TILE + 1, 2 * TILE + 37] {
            let matrix = gram(dim);
            let x = sample(3, dim);
            let mut b = Matrix::zeros(3, dim);
            for row in 0..3 {
                for col in 0..dim {
                    let sum: f64 =
                        (0..dim).map(|k| matrix.get(col, k) * f64::from(x.row(row)[k])).sum();
                    b.row_mut(row)[col] = sum as f32;
                }
            }
            let found = matrix.factor("test matrix", 0.5).unwrap().solve(&b);
            for (found, expected) in found.as_slice().iter().zip(x.as_slice()) {
                assert!((found - expected).abs() < 1e-3, "{dim}: {found} {expected}");
            }
        }
    }

    #[test]
    fn whitened_length_is_the_mahalanobis_length() {
        let matrix = gram(TILE + 9);
        let x = sample(2, TILE + 9);
        let factor = matrix.factor("test matrix", 0.5).unwrap();
        let (white, solved) = (factor.whiten(&x), factor.solve(&x));
        let length: f32 = white.row(1).iter().map(|v| v * v).sum();
        let expected: f32 = x.row(1).iter().zip(solved.row(1)).map(|(a, b)| a * b).sum();
        assert!((length - expected).abs() < 1e-4 * expected.abs().max(1.0));
    }

    #[test]
    fn a_row_is_whitened_alike_in_any_company() {
        for dim in [1, 5, 64, TILE + 1, 2 * TILE + 37, 512] {
            let factor = gram(dim).factor("test matrix", 0.5).unwrap();
            let rows = sample(150, dim);
            let whole = factor.whiten_alike(&rows);
            for take in [1, 2, 3, 7, 8, 9, 40, 63, 64, 65, 149] {
                let chosen: Vec<usize> = (0..take).map(|at| (at * 7 + 3) % 150).collect();
                let part = factor.whiten_alike(&rows.select(&chosen));
                assert_eq!(part, whole.select(&chosen), "{dim} {take}");
            }
        }
    }

    #[test]
    fn the_determinant_is_that_of_elimination() {
        for dim in [1, 5, TILE, 2 * TILE + 7] {
            let matrix = gram(dim);
            let mut rows: Vec<Vec<f64>> =
                (0..dim).map(|row| (0..dim).map(|col| matrix.get(row, col)).collect()).collect();
            let mut expected = 0.0;
            for at in 0..dim {
                let pivot = rows[at].clone();
                expected += pivot[at].ln();
                for row in rows.iter_mut().skip(at + 1) {
                    let share = row[at] / pivot[at];
                    row.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= share * pivot);
                }
            }
            let found = matrix.factor("test matrix", 0.5).unwrap().log_determinant();
            assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{dim}");
        }
    }

    #[test]
    fn thread_count_changes_nothing() {
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let work = || gram(300).factor("test matrix", 0.5).unwrap().solve(&sample(70, 300));
        assert_eq!(pool(1).install(work), pool(3).install(work));
    }

    #[test]
    fn an_indefinite_matrix_is_refused() {
        let mut matrix = gram(140);
        matrix.add_diagonal(-1e6);
        assert!(matches!(matrix.factor("x", 0.1), Err(Error::NotPositiveDefinite { .. })));
    }
}
