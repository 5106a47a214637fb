//! Softmax and cross-entropy of a block of samples, one row per class and one column per sample, so
//! that samples are handled side by side. Plain arithmetic throughout: no bit depends on the
//! machine's mathematical library.

use crate::vectors::vectorised;

/// Logits this far below the largest do not count: e^−40 is beyond the precision of `f32`, and
/// products with numbers below the normal range are a hundred times slower.
const NEGLIGIBLE: f32 = -40.0;
/// Adding 1.5 · 2²³ rounds an `f32` to the nearest integer, which is then in its lower bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts: a multiple of the first by a small integer is exact.
const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
/// Sums, of 1 at least and as many as there are classes at most, whose product an `f64` holds.
const FACTORS: usize = 16;
/// Partial sums side by side.
const LANES: usize = 16;

/// Softmax of one sample's logits divided by a temperature.
#[derive(Clone, Debug)]
pub struct Softened {
    /// The chance of each class; 0 where it is negligible.
    pub chances: Vec<f32>,
    temperature: f32,
    /// ln Σ e^(logit / temperature).
    level: f64,
}

impl Softened {
    /// What logits say.
    pub fn of(logits: &[f32], temperature: f32) -> Self {
        let mut chances = logits.to_vec();
        let factor = 1.0 / temperature;
        let (most, sum) = vectorised(
            #[inline(always)]
            || {
                let mut lanes = [f32::NEG_INFINITY; LANES];
                for part in logits.chunks(LANES) {
                    let pairs = lanes.iter_mut().zip(part);
                    pairs.for_each(|(most, &logit)| {
                        *most = if logit > *most { logit } else { *most }
                    });
                }
                let most = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
                chances.iter_mut().for_each(|logit| *logit = exponential((*logit - most) * factor));
                let mut sums = [0f32; LANES];
                for part in chances.chunks(LANES) {
                    sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
                }
                let sum = sums.iter().sum::<f32>();
                chances.iter_mut().for_each(|value| *value *= 1.0 / sum);
                (most, sum)
            },
        );
        let level = f64::from(most) / f64::from(temperature) + f64::from(sum).ln();
        Self { chances, temperature, level }
    }

    /// −ln of the chance of the class with this logit, however small it is. What is no number stays
    /// none, so that a training that went astray shows it.
    pub fn surprise(&self, logit: f32) -> f64 {
        self.level - f64::from(logit) / f64::from(self.temperature)
    }
}

/// Adds the biases to logits, turns them into p − y, y being 1 for the class `label(sample)`, and
/// returns Σ −log p_label.
pub fn residues(
    logits: &mut [f32],
    biases: Option<&[f32]>,
    samples: usize,
    label: impl Fn(usize) -> usize,
) -> f64 {
    let (mut most, mut sums) = (vec![f32::NEG_INFINITY; samples], vec![0f64; samples]);
    vectorised(
        #[inline(always)]
        || raise(logits, biases, &mut most),
    );
    let chosen: f64 = (0..samples)
        .map(|sample| f64::from(logits[label(sample) * samples + sample] - most[sample]))
        .sum();
    vectorised(
        #[inline(always)]
        || normalise(logits, &most, &mut sums),
    );
    (0..samples).for_each(|sample| logits[label(sample) * samples + sample] -= 1.0);
    let products = sums.chunks(FACTORS).map(|sums| sums.iter().product::<f64>());
    products.map(f64::ln).sum::<f64>() - chosen
}

/// Σ of each row.
pub fn add_row_sums(rows: &[f32], samples: usize, sums: &mut [f64]) {
    for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(samples)) {
        let (whole, rest) = row.as_chunks::<LANES>();
        let mut lanes = [0f64; LANES];
        for part in whole {
            lanes.iter_mut().zip(part).for_each(|(lane, &value)| *lane += f64::from(value));
        }
        *sum += lanes.iter().sum::<f64>() + rest.iter().copied().map(f64::from).sum::<f64>();
    }
}

/// Adds the biases and finds the largest logit of each sample.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn raise(logits: &mut [f32], biases: Option<&[f32]>, most: &mut [f32]) {
    for (class, row) in logits.chunks_exact_mut(most.len()).enumerate() {
        let bias = biases.map_or(0.0, |biases| biases[class]);
        for (logit, most) in row.iter_mut().zip(&mut *most) {
            *logit += bias;
            *most = if *logit > *most { *logit } else { *most };
        }
    }
}

/// Turns logits into probabilities; `sums` receives Σ e^(logit − most), in `f64` because near a
/// minimum the loss is all that the sums have beyond 1.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn normalise(logits: &mut [f32], most: &[f32], sums: &mut [f64]) {
    for row in logits.chunks_exact_mut(most.len()) {
        for ((logit, most), sum) in row.iter_mut().zip(most).zip(&mut *sums) {
            *logit = exponential(*logit - most);
            *sum += f64::from(*logit);
        }
    }
    for row in logits.chunks_exact_mut(most.len()) {
        row.iter_mut().zip(&*sums).for_each(|(value, sum)| *value /= *sum as f32);
    }
}

/// e^power of a power that is not positive: 2^count · e^rest, |rest| ≤ ln 2 / 2, where the terms of
/// the series beyond the seventh are below the precision of `f32`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn exponential(power: f32) -> f32 {
    let shifted = power * std::f32::consts::LOG2_E + ROUND;
    let count = shifted - ROUND;
    let rest = (power - count * LN_2[0]) - count * LN_2[1];
    let mut series = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * rest + factor;
    }
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32 - 127);
    let scale = f32::from_bits((exponent as u32) << 23);
    if power < NEGLIGIBLE { 0.0 } else { series * scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_two_units_in_the_last_place() {
        for at in 0..400_000 {
            let power = at as f32 * -1e-4;
            let (found, exact) = (f64::from(exponential(power)), f64::from(power).exp());
            assert!((found / exact - 1.0).abs() < 2.0 * f64::from(f32::EPSILON), "{power}");
        }
        assert_eq!((exponential(-41.0), exponential(f32::NEG_INFINITY)), (0.0, 0.0));
    }

    #[test]
    fn chances_match_plain_arithmetic() {
        let logits: Vec<f32> = (0..37).map(|at| ((at * 7) % 11) as f32 / 4.0).collect();
        let powers = logits.iter().map(|&logit| (f64::from(logit) / 0.7).exp());
        let sum: f64 = powers.clone().sum();
        let softened = Softened::of(&logits, 0.7);
        for ((&found, power), &logit) in softened.chances.iter().zip(powers).zip(&logits) {
            assert!((f64::from(found) / (power / sum) - 1.0).abs() < 1e-5, "{found}");
            assert!((softened.surprise(logit) + (power / sum).ln()).abs() < 1e-5);
        }
        // A chance that is 0 in 32 bits is still a loss.
        assert!((Softened::of(&[0.0, -9.0], 0.1).surprise(-9.0) - 90.0).abs() < 1e-5);
        assert!(Softened::of(&[0.0, f32::NAN], 1.0).surprise(0.0).is_nan());
    }

    #[test]
    fn residues_and_loss_match_plain_arithmetic() {
        let (samples, classes) = (37, 5);
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 100.0 - 5.0;
        let start: Vec<f32> = (0..samples * classes).map(value).collect();
        let biases: Vec<f32> = (900..900 + classes).map(value).collect();
        let mut found = start.clone();
        let loss = residues(&mut found, Some(&biases), samples, |sample| sample % classes);
        let mut expected = 0.0;
        for sample in 0..samples {
            let logit = |class: usize| {
                f64::from(start[class * samples + sample]) + f64::from(biases[class])
            };
            let sum: f64 = (0..classes).map(|class| logit(class).exp()).sum();
            expected += sum.ln() - logit(sample % classes);
            for class in 0..classes {
                let residue =
                    logit(class).exp() / sum - f64::from(u8::from(class == sample % classes));
                assert!((f64::from(found[class * samples + sample]) - residue).abs() < 1e-5);
            }
        }
        assert!((loss - expected).abs() < 1e-4 * expected);
        let mut sums = vec![1.0; classes];
        add_row_sums(&found, samples, &mut sums);
        let plain: f64 = found[..samples].iter().copied().map(f64::from).sum();
        assert!((sums[0] - 1.0 - plain).abs() < 1e-9);
    }
}
