//! From distances to probabilities and to "unknown": a temperature and a rejection threshold, both
//! fitted on held-out samples of the base phase and then fixed.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::matrix::Matrix;
use crate::vectors::least;

/// Share of own samples that may be rejected: the levels thresholds are kept for, in per mille.
pub const LEVELS: [u32; 12] = [1, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300];

/// Exponents from here on add less to a sum of probabilities than its last bit.
const NEGLIGIBLE: f64 = 40.0;
/// Most steps towards the temperature, and the relative change that ends them.
const STEPS: usize = 60;
const PRECISION: f64 = 1e-9;

/// What was fitted on held-out samples.
///
/// ```
/// use ivoro::{Calibration, Matrix};
/// // of four held-out samples of two classes: distances, labels, and how strange they are
/// let distances = Matrix::new(4, 2, vec![1.0, 9.0, 2.0, 8.0, 9.0, 1.0, 4.0, 5.0])?;
/// let fitted = Calibration::fit(&distances, &[0, 0, 1, 1], &[0.8, 0.9, 1.0, 1.2]);
/// assert!(fitted.temperature > 0.0 && fitted.threshold(0.05) <= 1.2);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// T of p_k ∝ exp(−d_k / T).
    pub temperature: f64,
    /// Threshold on the strangeness for each of [`LEVELS`].
    pub thresholds: Vec<f64>,
    /// Held-out samples it was fitted on.
    pub samples: usize,
    /// Under W, without D, R and a large lift: how far apart the classes of the base phase were in the
    /// metric of then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<f64>,
}

impl Calibration {
    /// Fits on held-out samples: the strangeness of all, distances and labels (columns) of some.
    pub fn fit(distances: &Matrix, labels: &[u32], strangeness: &[f64]) -> Self {
        let mut sorted = strangeness.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let thresholds = LEVELS.iter().map(|&level| quantile(&sorted, f64::from(level) / 1e3));
        Self {
            temperature: fit_temperature(distances, labels),
            thresholds: thresholds.collect(),
            samples: strangeness.len(),
            reach: None,
        }
    }

    /// The temperature where the classes of the base phase are so far apart now.
    pub(crate) fn temperature_at(&self, reach: Option<f64>) -> f64 {
        match (reach, self.reach) {
            (Some(now), Some(then)) => self.temperature * now / then,
            _ => self.temperature,
        }
    }

    /// Whether every number is finite; distances near the ends of `f32` can't be calibrated.
    pub fn is_finite(&self) -> bool {
        self.temperature.is_finite() && self.thresholds.iter().all(|value| value.is_finite())
    }

    /// Strangeness above which a query is rejected, when so large a share of own samples may be
    /// rejected wrongly; between the levels kept, interpolated.
    pub fn threshold(&self, false_rejection: f64) -> f64 {
        let level = |at: usize| f64::from(LEVELS[at]) / 1e3;
        let above = (0..LEVELS.len()).find(|&at| level(at) >= false_rejection);
        match above {
            Some(0) => self.thresholds[0],
            None => self.thresholds[LEVELS.len() - 1],
            Some(at) => {
                let share = (false_rejection - level(at - 1)) / (level(at) - level(at - 1));
                self.thresholds[at - 1] + share * (self.thresholds[at] - self.thresholds[at - 1])
            }
        }
    }

    /// Whether every number is one that fitting can give, as a file might hold others.
    pub(crate) fn is_sensible(&self) -> bool {
        self.temperature > 0.0
            && self.thresholds.len() == LEVELS.len()
            && self.thresholds.iter().chain([&self.temperature]).all(|number| number.is_finite())
            && self.reach.is_none_or(|reach| reach.is_finite() && reach > 0.0)
    }
}

/// p_k ∝ exp(−d_k / T).
pub fn softmin(distances: &[f32], temperature: f64) -> Vec<f64> {
    let low = distances.get(least(distances)).copied().map_or(0.0, f64::from);
    let weights: Vec<f64> =
        distances.iter().map(|&d| ((low - f64::from(d)) / temperature).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// The (1 − share) quantile: so large a share of the values lies above.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::INFINITY };
    let place = (1.0 - share).clamp(0.0, 1.0) * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(last);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// How the mean −log p of the true class changes with b = 1 / T: its first and second derivative,
///
/// ```text
/// mean_i (d_i,y − Σ_k p_k d_k)        mean_i (Σ_k p_k d_k² − (Σ_k p_k d_k)²)
/// ```
///
/// The true class counts with a little of every other one: where all held-out samples are right,
/// probabilities still admit an error in about as many samples as were seen.
fn slope(distances: &Matrix, labels: &[u32], inverse: f64) -> (f64, f64) {
    let rows = distances.as_slice().par_chunks(distances.cols().max(1)).zip(labels);
    let doubt = 1.0 / (labels.len() as f64 + 2.0);
    let slopes = rows.map(|(row, &label)| {
        let low = f64::from(row[least(row)]);
        let (mut sum, mut first, mut second, mut total) = (0.0, 0.0, 0.0, 0.0);
        for &distance in row {
            let further = f64::from(distance) - low;
            total += further;
            let exponent = further * inverse;
            if exponent < NEGLIGIBLE {
                let weight = (-exponent).exp();
                sum += weight;
                first += weight * further;
                second += weight * further * further;
            }
        }
        let (mean, square) = (first / sum, second / sum);
        let right = f64::from(row[label as usize]) - low;
        let expected = (1.0 - doubt) * right + doubt * total / row.len() as f64;
        (expected - mean, (square - mean * mean).max(0.0))
    });
    // added in order, so that the number of threads does not change the last bits
    let slopes: Vec<(f64, f64)> = slopes.collect();
    let sum = slopes.iter().fold((0.0, 0.0), |sum, slope| (sum.0 + slope.0, sum.1 + slope.1));
    let count = labels.len().max(1) as f64;
    (sum.0 / count, sum.1 / count)
}

/// The temperature with the least log loss. The loss is convex in 1 / T: Newton's method, and
/// halving where a step would leave the bracket.
fn fit_temperature(distances: &Matrix, labels: &[u32]) -> f64 {
    let spans = distances.iter_rows().map(|row| {
        let mean = row.iter().map(|&d| f64::from(d)).sum::<f64>() / row.len().max(1) as f64;
        mean - f64::from(row[least(row)])
    });
    let scale = (spans.sum::<f64>() / labels.len().max(1) as f64).max(f64::MIN_POSITIVE);
    // bounds of log 1/T
    let (mut low, mut high) = (-scale.ln() - 5.0, 9.0 - scale.ln());
    let mut at = f64::midpoint(low, high);
    for _ in 0..STEPS {
        let (first, second) = slope(distances, labels, at.exp());
        if first < 0.0 {
            low = at;
        } else {
            high = at;
        }
        let newton = (at.exp() - first / second).ln();
        let next = if newton > low && newton < high { newton } else { f64::midpoint(low, high) };
        let step = (next - at).abs();
        at = next;
        if step < PRECISION {
            break;
        }
    }
    (-at).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels drawn by a known softmin: the fit must find its temperature again.
    #[test]
    fn finds_the_temperature_that_made_the_labels() {
        let uniform = |at: u64| (crate::random::mix(7, at) >> 11) as f64 / (1u64 << 53) as f64;
        let rows = 4000;
        let distances: Vec<f32> =
            (0..rows * 3).map(|at| uniform(at as u64) as f32 * 10.0).collect();
        let distances = Matrix::new(rows, 3, distances).unwrap();
        let labels: Vec<u32> = (0..rows)
            .map(|row| {
                let p = softmin(distances.row(row), 2.5);
                let u = uniform(1_000_000 + row as u64);
                u32::from(u > p[0]) + u32::from(u > p[0] + p[1])
            })
            .collect();
        let found = Calibration::fit(&distances, &labels, &[0.0]).temperature;
        assert!((found - 2.5).abs() < 0.25, "{found}");
        let doubt = 1.0 / (rows as f64 + 2.0);
        let loss = |temperature: f64| -> f64 {
            let rows = distances.iter_rows().zip(&labels).map(|(row, &label)| {
                let p = softmin(row, temperature);
                let mean = p.iter().map(|p| p.ln()).sum::<f64>() / p.len() as f64;
                -(1.0 - doubt) * p[label as usize].ln() - doubt * mean
            });
            rows.sum()
        };
        for factor in [0.5, 0.999, 1.001, 2.0] {
            assert!(loss(found) < loss(found * factor), "{factor}");
        }
    }

    #[test]
    fn thresholds_reject_the_share_asked_for() {
        let strangeness: Vec<f64> = (0..1000).map(f64::from).collect();
        let distances = Matrix::new(1, 2, vec![0.0, 1.0]).unwrap();
        let calibration = Calibration::fit(&distances, &[0], &strangeness);
        for share in [0.01, 0.05, 0.06, 0.2] {
            let above = strangeness.iter().filter(|&&s| s > calibration.threshold(share)).count();
            assert!((above as f64 / 1000.0 - share).abs() < 0.002, "{share} {above}");
        }
    }

    #[test]
    fn extreme_distances_do_not_overflow() {
        let p = softmin(&[1e30, 0.0, f32::MAX], 1e-3);
        assert_eq!(p, [0.0, 1.0, 0.0]);
    }
}
