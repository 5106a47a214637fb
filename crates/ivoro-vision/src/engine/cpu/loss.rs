//! Cross-entropy of outputs divided by a temperature, with smoothed labels.

use crate::engine::Tally;

/// Sums the loss over rows and turns `outputs` into the gradient of its mean.
pub(super) fn cross_entropy(
    outputs: &mut [f32],
    labels: &[usize],
    temperature: f32,
    smoothing: f32,
) -> Tally {
    let classes = outputs.len() / labels.len();
    let (temperature, smoothing) = (f64::from(temperature), f64::from(smoothing));
    let spread = smoothing / classes as f64;
    let weight = 1.0 / (labels.len() as f64 * temperature);
    let mut tally = Tally { views: labels.len() as u64, ..Tally::default() };
    let mut exponentials = vec![0.0; classes];
    for (row, &label) in outputs.chunks_exact_mut(classes).zip(labels) {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        tally.correct += u64::from(row.iter().position(|&value| value == largest) == Some(label));
        let scaled = |value: f32| f64::from(value - largest) / temperature;
        exponentials.iter_mut().zip(&*row).for_each(|(out, &value)| *out = scaled(value).exp());
        let total: f64 = exponentials.iter().sum();
        let sum: f64 = row.iter().map(|&value| scaled(value)).sum();
        // −Σ target · (scaled − ln total), the targets adding up to 1.
        tally.loss += total.ln() - (1.0 - smoothing) * scaled(row[label]) - spread * sum;
        for (class, (out, exponential)) in row.iter_mut().zip(&exponentials).enumerate() {
            let target = if class == label { 1.0 - smoothing + spread } else { spread };
            *out = ((exponential / total - target) * weight) as f32;
        }
    }
    tally
}
