//! What is kept of a class: a count, sums and second moments – exact, so that the order and the
//! place in which samples were learned leave no trace.
//!
//! Every value is rounded once to a fixed-point [`Grid`]; from then on all sums are integer sums.
//! Integer addition is associative: one sample at a time, in batches, a phase at once, on any
//! number of threads, or at two sites and merged, the result is the same bit for bit. The rounding
//! itself is at most 2⁻⁴¹ of the grid's range for sums and 2⁻²² for second moments; with the
//! range chosen here a mean is off by less than one unit in the last place of `f32`.

use pulp::Arch;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::linalg::{Symmetric, tile_rows};
use crate::matrix::Matrix;

/// Bits below the range kept of each value in sums.
const SUM_BITS: i32 = 40;
/// Bits below the range kept of each value in second moments.
const SQUARE_BITS: i32 = 21;
/// Samples whose scaled values an `f64` adds without rounding: 2^(53 − 41).
const EXACT_SUMS: u32 = 1 << 12;
/// Samples whose scaled products an `f64` adds without rounding: 2^(53 − 42).
const EXACT_PRODUCTS: usize = 1 << 11;
/// Adding and subtracting 1.5 · 2⁵² rounds an `f64` to the nearest integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Exponents whose units and their squares are ordinary `f64` numbers; the largest covers all `f32`.
const LEAST_EXPONENT: i32 = -120;
const MOST_EXPONENT: i32 = 132;

/// The fixed-point grid of one block: values in ±2^exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    exponent: i32,
}

impl Grid {
    /// The grid for values like these: at least four times the largest magnitude, and a power
    /// of 16 so that sites with similar data choose the same one.
    pub fn covering(block: &Matrix) -> Self {
        let max = block.as_slice().iter().fold(0f32, |max, value| max.max(value.abs()));
        if max == 0.0 {
            return Self { exponent: 0 };
        }
        let bits = (f64::from(max) * 4.0).log2().ceil() as i32;
        let exponent = bits.div_euclid(4) * 4 + if bits.rem_euclid(4) > 0 { 4 } else { 0 };
        Self { exponent: exponent.clamp(LEAST_EXPONENT, MOST_EXPONENT) }
    }

    /// A grid with the given exponent, as read from a file.
    pub fn from_exponent(exponent: i32) -> Option<Self> {
        (LEAST_EXPONENT..=MOST_EXPONENT).contains(&exponent).then_some(Self { exponent })
    }

    /// Exponent of the range.
    pub fn exponent(self) -> i32 {
        self.exponent
    }

    /// Largest magnitude on the grid.
    pub fn limit(self) -> f64 {
        f64::from(self.exponent).exp2()
    }

    fn sum_unit(self) -> f64 {
        f64::from(self.exponent - SUM_BITS).exp2()
    }

    fn square_unit(self) -> f64 {
        f64::from(self.exponent - SQUARE_BITS).exp2()
    }

    /// Unit of second moments.
    pub(crate) fn product_unit(self) -> f64 {
        self.square_unit() * self.square_unit()
    }
}

/// Sums over the samples of one class in one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Σ z, in units of 2^(exponent − 40).
    pub(crate) sums: Vec<i64>,
    /// Σ ‖z‖², in units of 2^(2·exponent − 42).
    pub(crate) squares: i128,
}

impl Sums {
    /// Of no sample.
    pub fn zeros(dim: usize) -> Self {
        Self { sums: vec![0; dim], squares: 0 }
    }

    /// Mean of `count` samples.
    pub fn mean(&self, count: u64, grid: Grid) -> Vec<f64> {
        let factor = grid.sum_unit() / count as f64;
        self.sums.iter().map(|&sum| sum as f64 * factor).collect()
    }

    /// Mean squared distance of the samples to their mean, as an unbiased estimate.
    pub fn spread(&self, count: u64, grid: Grid) -> f64 {
        let squares = self.squares as f64 * grid.square_unit() * grid.square_unit();
        let mean: f64 = self.mean(count, grid).iter().map(|m| m * m).sum();
        let total = (squares - count as f64 * mean).max(0.0);
        total / (count.max(2) - 1) as f64
    }

    /// Adds (`sign` = 1) or takes away (−1) other sums; `None` if an integer would overflow.
    fn combine(&mut self, other: &Self, sign: i64) -> Option<()> {
        for (sum, other) in self.sums.iter_mut().zip(&other.sums) {
            *sum = sum.checked_add(other.checked_mul(sign)?)?;
        }
        let squares = other.squares.checked_mul(i128::from(sign))?;
        self.squares = self.squares.checked_add(squares)?;
        Some(())
    }
}

/// Second moments Σ z zᵀ of one block, exact; lower triangle in rows of tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondMoments {
    dim: usize,
    pub(crate) tiles: Vec<Vec<i64>>,
}

impl SecondMoments {
    /// Of no sample.
    pub fn zeros(dim: usize) -> Self {
        let tiles = tile_rows(dim).map(|(_, rows, cols)| vec![0; rows * cols]).collect();
        Self { dim, tiles }
    }

    /// From tile rows that fit the dimension, as read from a file.
    pub(crate) fn from_tiles(dim: usize, tiles: Vec<Vec<i64>>) -> Self {
        Self { dim, tiles }
    }

    /// Dimension of the block.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Adds the products of every row's coordinates.
    pub fn add(&mut self, rows: &Matrix, grid: Grid) -> Result<()> {
        let scale = grid.square_unit().recip();
        for chunk in rows.as_slice().chunks(EXACT_PRODUCTS * self.dim.max(1)) {
            let mut exact = Symmetric::zeros(self.dim);
            let whole = chunk
                .par_iter()
                .map(|&v| (f64::from(v) * scale + ROUND) - ROUND)
                .collect::<Vec<_>>();
            exact.add_gram_wide(&whole, 1.0);
            self.add_exact(&exact, rows.rows() as u64)?;
        }
        Ok(())
    }

    fn add_exact(&mut self, exact: &Symmetric, count: u64) -> Result<()> {
        let overflow = || Error::CountOverflow { class: "all".to_owned(), count };
        self.tiles.par_iter_mut().zip(exact.tiles()).try_for_each(|(tile, exact)| {
            for (value, &exact) in tile.iter_mut().zip(exact) {
                *value = value.checked_add(exact as i64).ok_or_else(overflow)?;
            }
            Ok(())
        })
    }

    /// Adds (1) or takes away (−1) other second moments.
    pub(crate) fn combine(&mut self, other: &Self, sign: i64) -> Option<()> {
        for (tile, other) in self.tiles.iter_mut().zip(&other.tiles) {
            for (value, other) in tile.iter_mut().zip(other) {
                *value = value.checked_add(other.checked_mul(sign)?)?;
            }
        }
        Some(())
    }

    /// Σ z zᵀ as real numbers.
    pub(crate) fn to_symmetric(&self, grid: Grid) -> Symmetric {
        let unit = grid.product_unit();
        let tiles =
            self.tiles.par_iter().map(|tile| tile.iter().map(|&v| v as f64 * unit).collect());
        Symmetric::from_tiles(self.dim, tiles.collect())
    }

    /// Bytes of the numbers kept.
    pub fn bytes(&self) -> usize {
        self.tiles.iter().map(|tile| tile.len() * size_of::<i64>()).sum()
    }
}

/// What is kept of one class: no sample, and no more numbers for more samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStatistics {
    /// Samples learned.
    pub count: u64,
    /// Sums, one entry a block.
    pub blocks: Vec<Sums>,
    /// Second moments, one entry a block, where the model keeps them per class.
    pub second: Option<Vec<SecondMoments>>,
}

impl ClassStatistics {
    /// Of no sample.
    pub fn empty(dims: &[usize], second: bool) -> Self {
        let blocks = dims.iter().map(|&dim| Sums::zeros(dim)).collect();
        let second = second.then(|| dims.iter().map(|&dim| SecondMoments::zeros(dim)).collect());
        Self { count: 0, blocks, second }
    }

    /// Adds (`sign` = 1) or takes away (−1) another statistic of the same shape.
    pub(crate) fn combine(&mut self, other: &Self, sign: i64, class: &str) -> Result<()> {
        let overflow = || Error::CountOverflow { class: class.to_owned(), count: self.count };
        let change = i64::try_from(other.count).ok().and_then(|count| count.checked_mul(sign));
        let count = change.and_then(|change| self.count.checked_add_signed(change));
        let count = count.ok_or_else(overflow)?;
        for (sums, other) in self.blocks.iter_mut().zip(&other.blocks) {
            sums.combine(other, sign).ok_or_else(overflow)?;
        }
        if let (Some(second), Some(other)) = (&mut self.second, &other.second) {
            for (moments, other) in second.iter_mut().zip(other) {
                moments.combine(other, sign).ok_or_else(overflow)?;
            }
        }
        self.count = count;
        Ok(())
    }
}

/// Sums per class of one block: row `i` belongs to class `labels[i]` of `classes`.
pub fn sums_by_class(
    block: &Matrix,
    labels: &[u32],
    classes: usize,
    grid: Grid,
    index: usize,
) -> Result<Vec<Sums>> {
    let dim = block.cols();
    let rows = block.rows().div_ceil(4 * rayon::current_num_threads().max(1)).max(256);
    let partial = block.as_slice().par_chunks(rows * dim).zip(labels.par_chunks(rows));
    let partial = partial.map(|(chunk, labels)| {
        let mut tally = Tally::new(classes, dim, grid);
        let added = Arch::new().dispatch(
            #[inline(always)]
            || tally.add(chunk, labels),
        );
        added.map_err(|at| Error::OutOfRange {
            block: index,
            value: chunk[at],
            limit: grid.limit(),
        })?;
        Ok(tally.finish())
    });
    partial
        .try_reduce_with(|mut left, right| {
            for (left, right) in left.iter_mut().zip(&right) {
                let overflow =
                    || Error::CountOverflow { class: "?".to_owned(), count: labels.len() as u64 };
                left.combine(right, 1).ok_or_else(overflow)?;
            }
            Ok(left)
        })
        .unwrap_or_else(|| Ok(vec![Sums::zeros(dim); classes]))
}

/// Running sums of one task: `f64` accumulators that hold whole numbers and are emptied into
/// integers before they could round.
struct Tally {
    dim: usize,
    limit: f32,
    sum_scale: f64,
    square_scale: f64,
    running: Vec<f64>,
    pending: Vec<u32>,
    sums: Vec<Sums>,
}

impl Tally {
    fn new(classes: usize, dim: usize, grid: Grid) -> Self {
        Self {
            dim,
            limit: (grid.limit() as f32).min(f32::MAX),
            sum_scale: grid.sum_unit().recip(),
            square_scale: grid.square_unit().recip(),
            running: vec![0.0; classes * dim],
            pending: vec![0; classes],
            sums: vec![Sums::zeros(dim); classes],
        }
    }

    /// Adds rows; the error is the position of a value outside the grid.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn add(&mut self, rows: &[f32], labels: &[u32]) -> Result<(), usize> {
        for (at, (row, &label)) in rows.chunks_exact(self.dim).zip(labels).enumerate() {
            let class = label as usize;
            if self.pending[class] == EXACT_SUMS {
                self.flush(class);
            }
            self.pending[class] += 1;
            let running = &mut self.running[class * self.dim..(class + 1) * self.dim];
            let (squares, fits) =
                add_row(running, row, self.sum_scale, self.square_scale, self.limit);
            if !fits {
                let bad = row.iter().position(|v| v.abs() > self.limit || v.is_nan());
                return Err(at * self.dim + bad.unwrap_or(0));
            }
            self.sums[class].squares += squares;
        }
        Ok(())
    }

    fn flush(&mut self, class: usize) {
        let running = &mut self.running[class * self.dim..(class + 1) * self.dim];
        for (sum, running) in self.sums[class].sums.iter_mut().zip(running) {
            *sum += *running as i64;
            *running = 0.0;
        }
        self.pending[class] = 0;
    }

    fn finish(mut self) -> Vec<Sums> {
        (0..self.pending.len()).for_each(|class| self.flush(class));
        self.sums
    }
}

/// Values handled side by side, so that the compiler can use vectors of any width.
const LANES: usize = 16;
/// Values whose squares on the coarse grid an `f64` adds without rounding: 2^(53 − 42) a lane.
const PART: usize = LANES * 1024;

/// Adds one row to running sums; returns Σ of squares on the coarse grid and whether all fit.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_row(running: &mut [f64], row: &[f32], scale: f64, coarse: f64, limit: f32) -> (i128, bool) {
    let mut total = 0i128;
    let mut fits = true;
    for (running, row) in running.chunks_mut(PART).zip(row.chunks(PART)) {
        let (mut squares, mut largest, mut strange) = ([0f64; LANES], [0f32; LANES], [0f32; LANES]);
        let (running, running_rest) = running.as_chunks_mut::<LANES>();
        let (row, row_rest) = row.as_chunks::<LANES>();
        for (running, row) in running.iter_mut().zip(row) {
            for lane in 0..LANES {
                let value = f64::from(row[lane]);
                running[lane] += (value * scale + ROUND) - ROUND;
                let whole = (value * coarse + ROUND) - ROUND;
                squares[lane] += whole * whole;
                let size = row[lane].abs();
                largest[lane] = if size > largest[lane] { size } else { largest[lane] };
                // 0 for every number, NaN for NaN, which no comparison finds
                strange[lane] += size * 0.0;
            }
        }
        for (running, &value) in running_rest.iter_mut().zip(row_rest) {
            *running += (f64::from(value) * scale + ROUND) - ROUND;
            let whole = (f64::from(value) * coarse + ROUND) - ROUND;
            total += (whole * whole) as i128;
            fits &= value.abs() <= limit;
        }
        total += squares.iter().map(|&square| square as i128).sum::<i128>();
        fits &=
            largest.iter().all(|size| *size <= limit) && strange.iter().all(|zero| *zero == 0.0);
    }
    (total, fits)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize, cols: usize) -> Matrix {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 300.1;
        Matrix::new(rows, cols, (0..rows * cols).map(value).collect()).unwrap()
    }

    #[test]
    fn any_order_and_any_batches_give_the_same_bits() {
        let points = sample(97, 37);
        let labels: Vec<u32> = (0..97).map(|row| row % 3).collect();
        let grid = Grid::covering(&points);
        let whole = sums_by_class(&points, &labels, 3, grid, 0).unwrap();
        let mut single = vec![Sums::zeros(37); 3];
        for row in (0..97).rev() {
            let one =
                sums_by_class(&points.select(&[row]), &labels[row..=row], 3, grid, 0).unwrap();
            single.iter_mut().zip(&one).for_each(|(sum, one)| sum.combine(one, 1).unwrap());
        }
        assert_eq!(whole, single);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
        assert_eq!(pool.install(|| sums_by_class(&points, &labels, 3, grid, 0)).unwrap(), whole);
    }

    #[test]
    fn second_moments_are_exact_in_any_batches() {
        let points = sample(2500, 5);
        let grid = Grid::covering(&points);
        let mut whole = SecondMoments::zeros(5);
        whole.add(&points, grid).unwrap();
        let mut parts = SecondMoments::zeros(5);
        parts.add(&points.select(&(1000..2500).collect::<Vec<_>>()), grid).unwrap();
        parts.add(&points.select(&(0..1000).collect::<Vec<_>>()), grid).unwrap();
        assert_eq!(whole, parts);
    }

    #[test]
    fn means_and_spread_match_plain_arithmetic() {
        let points = sample(50, 3);
        let grid = Grid::covering(&points);
        let sums = &sums_by_class(&points, &[0; 50], 1, grid, 0).unwrap()[0];
        let mean = sums.mean(50, grid);
        let plain: f64 = points.iter_rows().map(|row| f64::from(row[1])).sum::<f64>() / 50.0;
        assert!((mean[1] - plain).abs() < 1e-9);
        let spread: f64 = points
            .iter_rows()
            .map(|row| row.iter().zip(&mean).map(|(v, m)| (f64::from(*v) - m).powi(2)).sum::<f64>())
            .sum::<f64>()
            / 49.0;
        assert!((sums.spread(50, grid) - spread).abs() < 1e-4 * spread);
        let mut second = SecondMoments::zeros(3);
        second.add(&points, grid).unwrap();
        let covariance = within_covariance(&second, [(sums, 50u64)].into_iter(), grid);
        let trace: f64 = covariance.diagonal().iter().sum();
        assert!((trace - spread).abs() < 1e-4 * spread);
    }

    #[test]
    fn values_outside_the_grid_and_nan_are_refused() {
        let grid = Grid::covering(&sample(2, 2));
        for bad in [1e9, f32::NAN, f32::INFINITY] {
            let points = Matrix::new(1, 2, vec![0.0, bad]).unwrap();
            assert!(matches!(
                sums_by_class(&points, &[0], 1, grid, 4),
                Err(Error::OutOfRange { block: 4, .. })
            ));
        }
    }
}
