//! From distances to probabilities and to "unknown": a temperature and a rejection threshold, both
//! fitted on held-out samples of the base phase and then fixed.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::head::least;
use crate::matrix::Matrix;

/// Share of own samples that may be rejected: the levels thresholds are kept for, in per mille.
pub const LEVELS: [u32; 12] = [1, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300];

/// Distances that the temperature is fitted on; a few samples of each class tell as much as many.
const DISTANCES: usize = 1 << 20;

/// What was fitted on held-out samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// T of p_k ∝ exp(−d_k / T).
    pub temperature: f64,
    /// Threshold on the strangeness for each of [`LEVELS`].
    pub thresholds: Vec<f64>,
    /// Held-out samples it was fitted on.
    pub samples: usize,
}

impl Calibration {
    /// Fits on held-out samples: their distances, labels (columns), and strangeness.
    pub fn fit(distances: &Matrix, labels: &[u32], strangeness: &[f64]) -> Self {
        let thresholds = LEVELS.iter().map(|&level| quantile(strangeness, f64::from(level) / 1e3));
        Self {
            temperature: fit_temperature(distances, labels),
            thresholds: thresholds.collect(),
            samples: labels.len(),
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
    }

    /// Probabilities of one query's classes.
    pub fn probabilities(&self, distances: &[f32]) -> Vec<f64> {
        softmin(distances, self.temperature)
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
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::INFINITY };
    let place = (1.0 - share).clamp(0.0, 1.0) * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(last);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// Mean −log p of the true class, with a little of every other class: where all held-out samples
/// are right, probabilities still admit an error in about as many samples as were seen.
fn log_loss(distances: &Matrix, labels: &[u32], temperature: f64) -> f64 {
    let rows = distances.as_slice().par_chunks(distances.cols().max(1)).zip(labels);
    let doubt = 1.0 / (labels.len() as f64 + 2.0);
    let loss = rows.map(|(row, &label)| {
        let low = f64::from(row[least(row)]);
        let sum: f64 = row.iter().map(|&d| ((low - f64::from(d)) / temperature).exp()).sum();
        let mean = row.iter().map(|&d| f64::from(d)).sum::<f64>() / row.len() as f64;
        let expected = (1.0 - doubt) * f64::from(row[label as usize]) + doubt * mean;
        sum.ln() + (expected - low) / temperature
    });
    // added in order, so that the number of threads does not change the last bits
    loss.collect::<Vec<f64>>().into_iter().sum::<f64>() / labels.len().max(1) as f64
}

/// The temperature with the least log loss, by golden section on log T.
fn fit_temperature(distances: &Matrix, labels: &[u32]) -> f64 {
    let most = (DISTANCES / distances.cols().max(1)).max(1);
    let step = distances.rows().div_ceil(most).max(1);
    if step > 1 {
        let rows: Vec<usize> = (0..distances.rows()).step_by(step).collect();
        let labels: Vec<u32> = rows.iter().map(|&row| labels[row]).collect();
        return fit_temperature(&distances.select(&rows), &labels);
    }
    let spans = distances.iter_rows().map(|row| {
        let mean = row.iter().map(|&d| f64::from(d)).sum::<f64>() / row.len().max(1) as f64;
        mean - f64::from(row[least(row)])
    });
    let scale = (spans.sum::<f64>() / labels.len().max(1) as f64).max(f64::MIN_POSITIVE);
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (scale.ln() - 9.0, scale.ln() + 5.0);
    let loss = |log: f64| log_loss(distances, labels, log.exp());
    for _ in 0..40 {
        let step = ratio * (high - low);
        if loss(high - step) <= loss(low + step) {
            high = low + step;
        } else {
            low = high - step;
        }
    }
    f64::midpoint(low, high).exp()
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
