//! Sums of products of features as integers.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::grid::Grid;
use super::halves;
use super::sums::Sums;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::linalg::{Symmetric, tile_rows};
use crate::matrix::Matrix;
use crate::vectors::{too_large, vectorised};

/// Samples whose scaled products an `f64` adds without rounding: 2^(53 − 42).
const SAMPLES: usize = 1 << 11;
/// Samples multiplied at a time: they stay in the second-level cache.
const PANEL: usize = 256;
/// Dimensions up to which tasks have sums of their own; beyond, they share out the tiles.
const OWN_SUMS: usize = 1024;
/// Tasks with sums of their own, at most about.
const TASKS: usize = 64;
/// The largest whole number that is multiplied at once: the limit of a grid in its own units.
const WITHIN: f32 = (1u32 << 21) as f32;
/// Adding and subtracting 1.5 · 2⁵² rounds an `f64` to the nearest integer.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Bits of a part of a value beyond the range, and how many parts there are: two of them added stay
/// below the 2²¹ units of a value within it.
const PART: u32 = 20;
const PARTS: usize = 3;

/// Second moments Σ z zᵀ of one block, exact; lower triangle in rows of tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondMoments {
    dim: usize,
    /// The lower 64 bits of each sum.
    pub(crate) tiles: Vec<Vec<i64>>,
    /// The upper 64 bits, tile row for tile row, where a sum of the tile row needs them; else none.
    pub(crate) high: Vec<Vec<i64>>,
}

impl SecondMoments {
    /// Of no sample.
    pub fn zeros(dim: usize) -> Self {
        let tiles = tile_rows(dim).map(|(_, rows, cols)| vec![0; rows * cols]).collect();
        Self::from_tiles(dim, tiles)
    }

    /// From tile rows that fit the dimension, as read from a file.
    pub(crate) fn from_tiles(dim: usize, tiles: Vec<Vec<i64>>) -> Self {
        let high = vec![Vec::new(); tiles.len()];
        Self { dim, tiles, high }
    }

    /// From both halves of tile rows that fit the dimension, as read from a file.
    pub(crate) fn from_halves(dim: usize, low: &[Vec<i64>], high: &[Vec<i64>]) -> Self {
        let tile = |(low, high): (&Vec<i64>, &Vec<i64>)| {
            let numbers: Vec<i128> =
                (0..low.len()).map(|at| halves::number(low, high, at)).collect();
            halves::split(&numbers)
        };
        let (tiles, high) = low.iter().zip(high).map(tile).unzip();
        Self { dim, tiles, high }
    }

    /// Whether a sum needs more than 64 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.high.iter().any(|high| !high.is_empty())
    }

    /// Dimension of the block.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Adds the products of every row's coordinates.
    pub fn add(&mut self, rows: &Matrix, grid: Grid) -> Result<()> {
        if self.dim == 0 {
            return Ok(());
        }
        let scale = grid.square_unit().recip();
        let overflow =
            || Error::CountOverflow { class: "all".to_owned(), count: rows.rows() as u64 };
        let limit = (grid.limit() as f32).min(f32::MAX);
        self.add_scaled(rows, limit, scale).ok_or_else(overflow)
    }

    /// The same for rows of whole numbers.
    pub(super) fn add_whole(&mut self, rows: &Matrix) -> Option<()> {
        if self.dim == 0 { Some(()) } else { self.add_scaled(rows, WITHIN, 1.0) }
    }

    /// Adds rows that are multiplied by `scale`; values beyond the limit take longer.
    fn add_scaled(&mut self, rows: &Matrix, limit: f32, scale: f64) -> Option<()> {
        if too_large(rows.as_slice(), limit).is_none() {
            return self.add_within(rows, scale);
        }
        let beyond = |row: &usize| too_large(rows.row(*row), limit).is_some();
        let (beyond, within): (Vec<usize>, Vec<usize>) = (0..rows.rows()).partition(beyond);
        self.add_within(&rows.select(&within), scale)?;
        self.add_beyond(&rows.select(&beyond), scale)
    }

    /// Adds rows whose values lie beyond the range. A value is cut into parts of 20 bits, and the
    /// products of parts are those of their sum less those of each:
    /// `a·bᵀ + b·aᵀ = (a + b)(a + b)ᵀ − a·aᵀ − b·bᵀ`.
    fn add_beyond(&mut self, rows: &Matrix, scale: f64) -> Option<()> {
        let mut parts = vec![Matrix::zeros(rows.rows(), self.dim); PARTS];
        for (at, &value) in rows.as_slice().iter().enumerate() {
            let mut whole = (f64::from(value) * scale).round_ties_even() as i64;
            for part in &mut parts {
                let rest = (whole + (1 << (PART - 1))) >> PART;
                part.as_mut_slice()[at] = (whole - (rest << PART)) as f32;
                whole = rest;
            }
            if whole != 0 {
                return None;
            }
        }
        let weight = |first: usize, second: usize| 1i128 << (PART as usize * (first + second));
        for first in 0..PARTS {
            let others = (0..PARTS).filter(|&other| other != first);
            let factor =
                weight(first, first) - others.map(|other| weight(first, other)).sum::<i128>();
            self.add_times(&parts[first], factor)?;
            for second in first + 1..PARTS {
                let mut both = parts[first].clone();
                let more = parts[second].as_slice();
                both.as_mut_slice().iter_mut().zip(more).for_each(|(a, b)| *a += b);
                self.add_times(&both, weight(first, second))?;
            }
        }
        Some(())
    }

    /// Adds the products of rows of whole numbers, times a factor.
    fn add_times(&mut self, rows: &Matrix, factor: i128) -> Option<()> {
        let mut products = Self::zeros(self.dim);
        products.add_within(rows, 1.0)?;
        self.combine_times(&products, factor)
    }

    /// Adds other second moments, times a factor.
    pub(super) fn combine_times(&mut self, other: &Self, factor: i128) -> Option<()> {
        let others = other.tiles.par_iter().zip(&other.high);
        let tiles = self.tiles.par_iter_mut().zip(&mut self.high).zip(others);
        tiles.try_for_each(|((low, high), (more, more_high))| {
            let sums = (0..more.len()).map(|at| {
                let more = halves::number(more, more_high, at).checked_mul(factor)?;
                halves::number(low, high, at).checked_add(more)
            });
            let sums: Vec<i128> = sums.collect::<Option<_>>()?;
            (*low, *high) = halves::split(&sums);
            Some(())
        })
    }

    /// Adds to each sum of squares a number of its own.
    pub(super) fn add_to_diagonal(&mut self, squares: &[i128]) -> Option<()> {
        let places = tile_rows(self.dim);
        for ((low, high), (first, rows, cols)) in
            self.tiles.iter_mut().zip(&mut self.high).zip(places)
        {
            let number = |at: usize| halves::number(low, high, at);
            let mut sums: Vec<i128> = (0..low.len()).map(number).collect();
            for (row, more) in squares[first..first + rows].iter().enumerate() {
                let sum = &mut sums[row * cols + first + row];
                *sum = sum.checked_add(*more)?;
            }
            (*low, *high) = halves::split(&sums);
        }
        Some(())
    }

    /// Adds rows whose values, times the scale, are at most 2²¹.
    fn add_within(&mut self, rows: &Matrix, scale: f64) -> Option<()> {
        let chunks = rows.as_slice();
        if self.dim > OWN_SUMS {
            let mut chunks = chunks.chunks(SAMPLES * self.dim);
            return chunks.try_for_each(|chunk| self.add_chunk(chunk, scale));
        }
        let size = SAMPLES * self.dim;
        let tasks = chunks.par_chunks(size).with_min_len((chunks.len() / size / TASKS).max(1));
        let sums = tasks.try_fold(
            || Self::zeros(self.dim),
            |mut sums, chunk| sums.add_chunk(chunk, scale).map(|()| sums),
        );
        let sum = sums.try_reduce_with(|mut left, right| left.combine(&right, 1).map(|()| left));
        sum.map_or(Some(()), |sum| self.combine(&sum?, 1))
    }

    /// Adds a few rows: the sums of their products are whole numbers that an `f64` holds.
    fn add_chunk(&mut self, chunk: &[f32], scale: f64) -> Option<()> {
        let mut exact: Vec<Vec<f64>> =
            self.tiles.iter().map(|tile| vec![0.0; tile.len()]).collect();
        let mut panels: Vec<Vec<f64>> = vec![Vec::new(); self.tiles.len()];
        for rows in chunk.chunks(PANEL * self.dim) {
            let count = rows.len() / self.dim;
            for (panel, (first, width, _)) in panels.iter_mut().zip(tile_rows(self.dim)) {
                panel.resize(count * width, 0.0);
                vectorised(
                    #[inline(always)]
                    || fill_panel(panel, width, rows, self.dim, first, scale),
                );
            }
            exact
                .par_iter_mut()
                .enumerate()
                .for_each(|(index, exact)| add_tile_row(index, exact, &panels, count));
        }
        let places: Vec<_> = tile_rows(self.dim).collect();
        let tiles = self.tiles.par_iter_mut().zip(&mut self.high).zip(&mut exact).zip(places);
        tiles.try_for_each(|(((tile, high), exact), (first, rows, _))| {
            mirror(exact, first, rows);
            let whole: Vec<i64> = exact.iter().map(|&exact| exact as i64).collect();
            halves::combine((tile, high), (&whole, &[]), 1)
        })
    }

    /// Adds (1) or takes away (−1) other second moments.
    pub(crate) fn combine(&mut self, other: &Self, sign: i64) -> Option<()> {
        let tiles = self.tiles.iter_mut().zip(&mut self.high);
        for ((tile, high), (other, other_high)) in tiles.zip(other.tiles.iter().zip(&other.high)) {
            halves::combine((tile, high), (other, other_high), sign)?;
        }
        Some(())
    }

    /// The same sums where the unit of values is so many bits finer.
    pub(crate) fn refine(&mut self, bits: u32) -> Option<()> {
        if bits == 0 {
            return Some(());
        }
        let mut tiles = self.tiles.iter_mut().zip(&mut self.high);
        tiles.try_for_each(|(tile, high)| halves::refine(tile, high, 2 * bits))
    }

    /// Σ z zᵀ as real numbers.
    pub(crate) fn to_symmetric(&self, grid: Grid) -> Symmetric {
        let unit = grid.product_unit();
        let tiles = self.tiles.par_iter().zip(&self.high);
        let tiles = tiles.map(|(tile, high)| halves::real(tile, high, unit));
        Symmetric::from_tiles(self.dim, tiles.collect())
    }

    /// Bytes of the numbers kept.
    pub fn bytes(&self) -> usize {
        let numbers = self.tiles.iter().chain(&self.high).map(Vec::len);
        numbers.sum::<usize>() * size_of::<i64>()
    }
}

/// Copies a tile's columns of some rows, rounded to whole numbers, next to each other.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn fill_panel(panel: &mut [f64], width: usize, rows: &[f32], dim: usize, first: usize, scale: f64) {
    for (panel, row) in panel.chunks_exact_mut(width).zip(rows.chunks_exact(dim)) {
        for (whole, &value) in panel.iter_mut().zip(&row[first..]) {
            *whole = (f64::from(value) * scale + ROUND) - ROUND;
        }
    }
}

/// Adds the products of one tile's columns with all columns up to its own; above the diagonal
/// nothing is computed.
fn add_tile_row(index: usize, tile: &mut [f64], panels: &[Vec<f64>], count: usize) {
    interrupt::check();
    let rows = panels[index].len() / count;
    let left = MatRef::from_row_major_slice(&panels[index], count, rows).transpose();
    let cols = tile.len() / rows;
    let mut rest = MatMut::from_row_major_slice_mut(tile, rows, cols);
    for panel in &panels[..index] {
        let width = panel.len() / count;
        let right = MatRef::from_row_major_slice(panel, count, width);
        let (target, next) = rest.split_at_col_mut(width);
        matmul(target, Accum::Add, left, right, 1.0, Par::Seq);
        rest = next;
    }
    let (lower, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    let right = left.transpose();
    triangular::matmul(rest, lower, Accum::Add, left, whole, right, whole, 1.0, Par::Seq);
}

/// Copies what is below the diagonal of a tile row's last tile to above it.
fn mirror(tile: &mut [f64], first: usize, rows: usize) {
    for row in 0..rows {
        for col in row + 1..rows {
            tile[row * (first + rows) + first + col] = tile[col * (first + rows) + first + row];
        }
    }
}

/// Pooled within-class covariance of one block from second moments and class sums.
pub fn within_covariance<'a>(
    second: &SecondMoments,
    classes: impl Iterator<Item = (&'a Sums, u64)>,
    grid: Grid,
) -> Symmetric {
    within_scatter(second.to_symmetric(grid), classes, grid)
}

/// The same in place of Σ z zᵀ.
pub(crate) fn within_scatter<'a>(
    mut covariance: Symmetric,
    classes: impl Iterator<Item = (&'a Sums, u64)>,
    grid: Grid,
) -> Symmetric {
    let (mut centres, mut samples, mut groups) = (Vec::new(), 0, 0);
    for (sums, count) in classes {
        let root = (count as f64).sqrt();
        centres.extend(sums.mean(count, grid).into_iter().map(|value| value * root));
        samples = count.saturating_add(samples);
        groups += 1;
    }
    covariance.add_gram_wide(&centres, -1.0);
    covariance.scale(1.0 / samples.saturating_sub(groups).max(1) as f64);
    covariance
}
