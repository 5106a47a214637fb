//! How far a share of few queries can be trusted.

use serde::Serialize;

/// The 97.5 % quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A share with the interval that holds the true one in 95 of 100 samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The share found.
    pub share: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Wilson's score interval, which keeps inside 0 and 1 and has a width where all or none are right;
    /// none without a query.
    ///
    /// ```
    /// use ivoro_eval::evaluation::Interval;
    /// let interval = Interval::wilson(9, 10).unwrap();
    /// assert!((interval.low - 0.596).abs() < 5e-4 && (interval.high - 0.982).abs() < 5e-4);
    /// ```
    pub fn wilson(right: usize, queries: usize) -> Option<Self> {
        if queries == 0 {
            return None;
        }
        let n = queries as f64;
        let share = right as f64 / n;
        let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let spread = share * (1.0 - share) / n + Z * Z / (4.0 * n * n);
        let half = Z * spread.sqrt() / (1.0 + Z * Z / n);
        let low = if right == 0 { 0.0 } else { (middle - half).max(0.0) };
        let high = if right == queries { 1.0 } else { (middle + half).min(1.0) };
        Some(Self { share, low, high })
    }
}
