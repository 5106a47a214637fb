//! Sums of features and of their squares as integers.

use super::grid::Grid;
use super::halves;

/// Sums over the samples of one class in one block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "sums of features beside other sums")]
pub struct Sums {
    /// Σ z, in units of 2^(exponent − 40): the lower 64 bits.
    pub(crate) sums: Vec<i64>,
    /// The upper 64 bits, where a sum needs them; else none.
    pub(crate) high: Vec<i64>,
    /// Σ ‖z‖², in units of 2^(2·exponent − 42).
    pub(crate) squares: i128,
}

impl Sums {
    /// Of no sample.
    pub fn zeros(dim: usize) -> Self {
        Self { sums: vec![0; dim], high: Vec::new(), squares: 0 }
    }

    /// From whole numbers.
    pub(crate) fn of(numbers: &[i128], squares: i128) -> Self {
        let (sums, high) = halves::split(numbers);
        Self { sums, high, squares }
    }

    /// Whether nothing but zeros was added, whatever the unit.
    pub(crate) fn are_zero(&self) -> bool {
        self.squares == 0 && self.high.is_empty() && self.sums.iter().all(|&sum| sum == 0)
    }

    /// Σ z, in units of 2^(exponent − 40).
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i128> {
        (0..self.sums.len()).map(|at| halves::number(&self.sums, &self.high, at))
    }

    /// Mean of `count` samples.
    pub fn mean(&self, count: u64, grid: Grid) -> Vec<f64> {
        halves::real(&self.sums, &self.high, grid.sum_unit() / count as f64)
    }

    /// Mean squared distance of the samples to their mean, as an unbiased estimate.
    pub fn spread(&self, count: u64, grid: Grid) -> f64 {
        let squares = self.squares as f64 * grid.square_unit() * grid.square_unit();
        let mean: f64 = self.mean(count, grid).iter().map(|m| m * m).sum();
        let total = (squares - count as f64 * mean).max(0.0);
        total / (count.max(2) - 1) as f64
    }

    /// Adds (`sign` = 1) or takes away (−1) other sums; `None` if an integer would overflow.
    pub(super) fn combine(&mut self, other: &Self, sign: i64) -> Option<()> {
        let kept = (&mut self.sums, &mut self.high);
        halves::combine(kept, (&other.sums, &other.high), sign)?;
        let squares = other.squares.checked_mul(i128::from(sign))?;
        self.squares = self.squares.checked_add(squares)?;
        Some(())
    }

    /// The same sums in a unit that is so many bits finer.
    pub(super) fn refine(&mut self, bits: u32) -> Option<()> {
        halves::refine(&mut self.sums, &mut self.high, bits)?;
        self.squares = halves::refined(self.squares, 2 * bits)?;
        Some(())
    }
}
