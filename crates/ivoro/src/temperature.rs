//! The temperature of a softmin that suits distances and labels best.

use rayon::prelude::*;

use crate::matrix::Matrix;
use crate::vectors::least;

/// Exponents from here on add less to a sum of probabilities than its last bit.
const NEGLIGIBLE: f64 = 40.0;
/// Most steps towards the temperature, and the relative change that ends them.
const STEPS: usize = 60;
const PRECISION: f64 = 1e-9;

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
pub(crate) fn fit_temperature(distances: &Matrix, labels: &[u32]) -> f64 {
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
    use crate::calibration::softmin;

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
        let found = fit_temperature(&distances, &labels);
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
}
