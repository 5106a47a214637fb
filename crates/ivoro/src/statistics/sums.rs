use super::grid::Grid;

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
    pub(super) fn combine(&mut self, other: &Self, sign: i64) -> Option<()> {
        for (sum, other) in self.sums.iter_mut().zip(&other.sums) {
            *sum = sum.checked_add(other.checked_mul(sign)?)?;
        }
        let squares = other.squares.checked_mul(i128::from(sign))?;
        self.squares = self.squares.checked_add(squares)?;
        Some(())
    }
}
