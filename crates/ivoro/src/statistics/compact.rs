//! How a class spreads, in few whole numbers that come from its own samples alone.
//!
//! With C the covariance of a class, its r widest directions are kept, and what they leave of the
//! variance of each feature:
//!
//! ```text
//! C ≈ Σ_i w_iᵀw_i + diag(δ)        w_i = q_i · f_i · u        δ_j = p_j · 2^s · u²
//! ```
//!
//! u is the unit that values of the block are rounded to before they are multiplied, q_i are numbers of 8
//! bits and p_j of 15, and f_i and 2^s are whole numbers that bring them to size. So the scatter of all
//! classes together, Σ_k (n_k − 1) · C_k, is a sum of whole numbers: it is the same whatever the order of
//! classes, and what is left of it without a class is what it was before.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use faer::{ColRef, Mat, MatRef};

use super::grid::Grid;
use super::moments::SecondMoments;
use crate::error::Result;
use crate::linalg::{Covariance, Symmetric, eigen, leading_space, times};
use crate::matrix::Matrix;

/// The largest number of a direction, and of a variance.
const MOST: f64 = 127.0;
const MOST_VARIANCE: f64 = 32767.0;
/// Bits of a factor that are not zero: times a number of a direction, an `f32` holds it.
const FACTOR_BITS: u32 = 16;
/// Bits of the largest factor and of the largest shift that sums of 128 bits have room for.
const MOST_FACTOR: i64 = 1 << 50;
const MOST_SHIFT: u8 = 64;

/// The share of the largest variance below which one is taken for rounding.
const ROUNDING: f64 = 1e-12;

/// What a covariance that can't be described is called.
const WHAT: &str = "covariance of a class";

/// One block of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactScatter {
    dim: usize,
    /// Whose unit these numbers have.
    grid: Grid,
    /// q, direction after direction.
    directions: Vec<i8>,
    /// f.
    factors: Vec<i64>,
    /// p and s.
    variances: Vec<i16>,
    shift: u8,
}

/// Points less their mean, sorted, so that nothing computed of them depends on the order in which they
/// came; each is divided by the root of their number less 1.
struct Spread(Mat<f64>);

impl Spread {
    fn of(points: &Matrix, mean: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..points.rows()).collect();
        let compare = |a: &usize, b: &usize| {
            let pairs = points.row(*a).iter().zip(points.row(*b));
            pairs
                .map(|(a, b)| a.total_cmp(b))
                .find(|found| found.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        order.sort_by(compare);
        let root = (points.rows().max(2) as f64 - 1.0).sqrt();
        let apart =
            |row: usize, col: usize| (f64::from(points.row(order[row])[col]) - mean[col]) / root;
        Self(Mat::from_fn(points.rows(), points.cols(), apart))
    }

    fn diagonal(&self) -> Vec<f64> {
        let square = |column: ColRef<'_, f64>| column.iter().map(|value| value * value).sum();
        self.0.col_iter().map(square).collect()
    }
}

impl Covariance for Spread {
    fn dim(&self) -> usize {
        self.0.ncols()
    }

    fn times(&self, columns: MatRef<'_, f64>) -> Mat<f64> {
        let along = times(self.0.as_ref(), columns);
        times(self.0.transpose(), along.as_ref())
    }
}

/// The numbers of a [`CompactScatter`], as they stand in a file.
pub(crate) struct CompactNumbers {
    pub(crate) directions: Vec<i8>,
    pub(crate) factors: Vec<i64>,
    pub(crate) variances: Vec<i16>,
    pub(crate) shift: i64,
}

impl CompactScatter {
    /// Of the points of a class, in any order, and their mean.
    pub(crate) fn of(points: &Matrix, mean: &[f64], rank: usize, grid: Grid) -> Result<Self> {
        let dim = points.cols();
        let unit = grid.square_unit();
        let free = points.rows().saturating_sub(1);
        let mut kept = Self {
            dim,
            grid,
            directions: Vec::new(),
            factors: Vec::new(),
            variances: vec![0; dim],
            shift: 0,
        };
        if free == 0 || dim == 0 {
            return Ok(kept);
        }
        let spread = Spread::of(points, mean);
        let space = leading_space(&spread, None, rank.min(dim), free);
        let (lengths, turn) = eigen(space.covariance.as_ref(), WHAT, 0.0)?;
        // of shorter ones nothing is left but rounding
        let least = (unit * unit / 4.0).max(ROUNDING * lengths.first().copied().unwrap_or(0.0));
        let found = lengths.iter().take(rank).take_while(|&&length| length > least).count();
        let directions = times(space.basis.as_ref(), turn.subcols(0, found));
        for (direction, length) in directions.col_iter().zip(&lengths) {
            let root = length.sqrt() / unit;
            kept.push(&direction.iter().map(|value| value * root).collect::<Vec<f64>>());
        }
        kept.add_rest(&spread.diagonal(), unit);
        Ok(kept)
    }

    /// From the numbers of a file, if they can be those of a class.
    pub(crate) fn from_numbers(dim: usize, grid: Grid, numbers: CompactNumbers) -> Option<Self> {
        let CompactNumbers { directions, factors, variances, shift } = numbers;
        let shift = u8::try_from(shift).ok().filter(|&shift| shift <= MOST_SHIFT)?;
        let sensible = directions.len() == factors.len().checked_mul(dim)?
            && variances.len() == dim
            && variances.iter().all(|&variance| variance >= 0)
            && factors.iter().all(|&factor| is_factor(factor));
        sensible.then_some(Self { dim, grid, directions, factors, variances, shift })
    }

    /// The same numbers for a file.
    pub(crate) fn numbers(&self) -> (&[i8], &[i64], &[i16], i64) {
        (&self.directions, &self.factors, &self.variances, self.shift.into())
    }

    /// Whose unit the numbers have.
    pub(crate) fn grid(&self) -> Grid {
        self.grid
    }

    /// How many directions are kept.
    pub fn rank(&self) -> usize {
        self.factors.len()
    }

    /// How many features there are.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rounds a direction, times its deviation in units, to 8 bits.
    fn push(&mut self, direction: &[f64]) {
        let most = direction.iter().fold(0f64, |most, value| most.max(value.abs()));
        // no more bits than a factor may have
        let mut factor = (most / MOST).ceil().clamp(1.0, MOST_FACTOR as f64) as i64;
        let spare = (i64::BITS - factor.leading_zeros()).saturating_sub(FACTOR_BITS);
        factor = ((factor + (1 << spare) - 1) >> spare) << spare;
        let whole = |&value: &f64| (value / factor as f64).round_ties_even().clamp(-MOST, MOST);
        self.directions.extend(direction.iter().map(|value| whole(value) as i8));
        self.factors.push(factor);
    }

    /// Keeps what the directions leave of the variance of each feature.
    fn add_rest(&mut self, diagonal: &[f64], unit: f64) {
        let mut rest: Vec<f64> = diagonal.iter().map(|value| value / (unit * unit)).collect();
        for (direction, &factor) in self.directions.chunks_exact(self.dim).zip(&self.factors) {
            for (rest, &whole) in rest.iter_mut().zip(direction) {
                *rest -= (f64::from(whole) * factor as f64).powi(2);
            }
        }
        let most = rest.iter().copied().fold(0f64, f64::max);
        let shift = (0..MOST_SHIFT).find(|&shift| most / f64::from(shift).exp2() <= MOST_VARIANCE);
        self.shift = shift.unwrap_or(MOST_SHIFT);
        let scale = f64::from(self.shift).exp2();
        let whole = |value: f64| (value / scale).round_ties_even().clamp(0.0, MOST_VARIANCE) as i16;
        self.variances = rest.into_iter().map(whole).collect();
    }

    /// The directions in units: whole numbers that an `f32` holds.
    fn rows(&self) -> impl Iterator<Item = f32> {
        let rows = self.directions.chunks_exact(self.dim.max(1)).zip(&self.factors);
        rows.flat_map(|(row, &factor)| row.iter().map(move |&q| (i64::from(q) * factor) as f32))
    }

    /// The variances beyond the directions, in squared units.
    fn rest(&self) -> impl Iterator<Item = i128> {
        self.variances.iter().map(|&variance| i128::from(variance) << self.shift)
    }

    /// The covariance that these numbers stand for.
    pub(crate) fn covariance(&self) -> Symmetric {
        let mut covariance = Symmetric::zeros(self.dim);
        let unit = self.grid.product_unit();
        let rows: Vec<f64> = self.rows().map(f64::from).collect();
        covariance.add_gram_wide(&rows, unit);
        let rest: Vec<f64> = self.rest().map(|value| value as f64 * unit).collect();
        covariance.add_to_diagonal(&rest);
        covariance
    }

    /// The pooled covariance of classes of so many samples; `None` if a sum would need more than 128 bits.
    pub(crate) fn pooled(classes: &[(&Self, u64)], dim: usize) -> Option<Symmetric> {
        let finest = classes.iter().map(|(class, _)| class.grid).min_by_key(|grid| grid.exponent());
        let Some(finest) = finest else { return Some(Symmetric::zeros(dim)) };
        let mut groups: BTreeMap<(i32, u64), (Vec<f32>, Vec<i128>)> = BTreeMap::new();
        for (class, count) in classes.iter().filter(|(_, count)| *count > 1) {
            let group = groups.entry((class.grid.exponent(), *count)).or_default();
            group.0.extend(class.rows());
            group.1.resize(dim, 0);
            for (sum, more) in group.1.iter_mut().zip(class.rest()) {
                *sum = sum.checked_add(more)?;
            }
        }
        let mut scatter = SecondMoments::zeros(dim);
        for ((exponent, count), (rows, rest)) in groups {
            let mut products = SecondMoments::zeros(dim);
            let rows = Matrix::new(rows.len() / dim.max(1), dim, rows).ok()?;
            products.add_whole(&rows)?;
            products.add_to_diagonal(&rest)?;
            products.refine(u32::try_from(exponent - finest.exponent()).ok()?)?;
            scatter.combine_times(&products, i128::from(count - 1))?;
        }
        let free = classes.iter().map(|(_, count)| count.saturating_sub(1));
        let free = free.fold(0, u64::saturating_add).max(1);
        let mut covariance = scatter.to_symmetric(finest);
        covariance.scale(1.0 / free as f64);
        Some(covariance)
    }
}

/// Whether an `f32` holds a factor times any number of 8 bits.
fn is_factor(factor: i64) -> bool {
    let bits = || i64::BITS - factor.leading_zeros() - factor.trailing_zeros();
    (1..=MOST_FACTOR).contains(&factor) && bits() <= FACTOR_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normals;

    const DIM: usize = 40;

    /// Points of so many samples with their mean, and their covariance.
    fn points(seed: u64, count: usize, size: f64) -> (Matrix, Vec<f64>, Symmetric) {
        let mut drawn = normals(seed, 1);
        let mut rows = Matrix::zeros(count, DIM);
        for at in 0..count {
            let row = rows.row_mut(at).iter_mut().enumerate();
            row.for_each(|(col, value)| {
                *value = (size * (3.0 + drawn.next().unwrap() / (1.0 + col as f64))) as f32;
            });
        }
        let mean = |col: usize| {
            rows.iter_rows().map(|row| f64::from(row[col])).sum::<f64>() / count as f64
        };
        let mean: Vec<f64> = (0..DIM).map(mean).collect();
        let mut covariance = Symmetric::zeros(DIM);
        let apart = rows.iter_rows().flat_map(|row| {
            row.iter().zip(&mean).map(|(&value, mean)| f64::from(value) - mean).collect::<Vec<_>>()
        });
        covariance.add_gram_wide(&apart.collect::<Vec<_>>(), 1.0 / (count.max(2) - 1) as f64);
        (rows, mean, covariance)
    }

    fn kept(seed: u64, (count, size): (usize, f64), rank: usize, exponent: i32) -> CompactScatter {
        let (points, mean, _) = points(seed, count, size);
        let turned: Vec<usize> = (0..count).rev().collect();
        let kept = CompactScatter::of(&points, &mean, rank, grid(exponent)).unwrap();
        let other = CompactScatter::of(&points.select(&turned), &mean, rank, grid(exponent));
        assert_eq!(kept, other.unwrap());
        kept
    }

    fn grid(exponent: i32) -> Grid {
        Grid::from_exponent(exponent).unwrap()
    }

    /// The largest difference, as a share of the largest variance.
    fn apart(a: &Symmetric, b: &Symmetric) -> f64 {
        let pairs = (0..DIM).flat_map(|row| (0..=row).map(move |col| (row, col)));
        let most = pairs.map(|(row, col)| (a.get(row, col) - b.get(row, col)).abs());
        most.fold(0.0, f64::max) / b.diagonal().into_iter().fold(0.0, f64::max)
    }

    #[test]
    fn all_directions_give_the_covariance_back_in_any_unit() {
        for (exponent, size) in [(4, 1.0), (12, 300.0), (-40, 1e-13), (4, 1e6)] {
            let (_, _, exact) = points(1, 60, size);
            let whole = kept(1, (60, size), DIM, exponent);
            assert!(apart(&whole.covariance(), &exact) < 0.02, "{exponent} {size}");
            let few = kept(1, (60, size), 3, exponent);
            let mut pairs = few.covariance().diagonal().into_iter().zip(exact.diagonal());
            let mean = exact.mean_diagonal();
            assert!(pairs.all(|(a, b)| (a - b).abs() < 0.02 * mean.max(b)), "{size}");
        }
    }

    #[test]
    fn the_pooled_covariance_is_the_same_in_any_order_and_in_any_units() {
        let of = |seed, count, exponent| (kept(seed, (count, 1.0), 5, exponent), count as u64);
        let classes = [of(1, 60, 4), of(2, 25, 4), of(3, 60, 8), of(4, 1, 4)];
        let refer = |order: &[usize]| -> Symmetric {
            let classes: Vec<_> = order.iter().map(|&at| (&classes[at].0, classes[at].1)).collect();
            CompactScatter::pooled(&classes, DIM).unwrap()
        };
        let pooled = refer(&[0, 1, 2, 3]);
        assert_eq!(refer(&[3, 2, 1, 0]), pooled);
        let mut expected = Symmetric::zeros(DIM);
        for (class, count) in &classes {
            expected.add(&class.covariance(), (*count - 1) as f64 / 142.0);
        }
        assert!(apart(&pooled, &expected) < 1e-12);
    }

    #[test]
    fn numbers_come_back_and_impossible_ones_do_not() {
        let kept = kept(5, (60, 1e5), 4, 4);
        let numbers = || {
            let (directions, factors, variances, shift) = kept.numbers();
            let (directions, factors) = (directions.to_vec(), factors.to_vec());
            CompactNumbers { directions, factors, variances: variances.to_vec(), shift }
        };
        assert_eq!(CompactScatter::from_numbers(DIM, grid(4), numbers()), Some(kept.clone()));
        assert_eq!(CompactScatter::from_numbers(DIM + 1, grid(4), numbers()), None);
        let forged = CompactNumbers { shift: 65, ..numbers() };
        assert_eq!(CompactScatter::from_numbers(DIM, grid(4), forged), None);
        for factor in [0, -1, (1 << 16) + 1, 1 << 51] {
            let mut forged = numbers();
            forged.factors[2] = factor;
            assert_eq!(CompactScatter::from_numbers(DIM, grid(4), forged), None, "{factor}");
        }
    }
}
