//! Layer norm: the channels of each pixel are brought to mean 0 and variance 1, then multiplied by a
//! factor each, and a shift is added: `out = γ (x − μ) / √(σ² + ε) + β`.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use ivoro::vectors::vectorised;
use rayon::prelude::*;

use super::tokens::Meeting;

/// Pixels that one task handles where all threads work.
const PIXELS: usize = 32;
/// Sums side by side: one alone would wait for every addition.
const LANES: usize = 32;

/// A layer norm.
#[derive(Clone, Debug)]
pub(crate) struct LayerNorm {
    /// A factor for each channel.
    pub(crate) factor: Vec<f32>,
    /// What is then added.
    pub(crate) shift: Vec<f32>,
    /// What is added to the variance, so that nothing is divided by 0.
    pub(crate) epsilon: f32,
}

impl LayerNorm {
    /// Adds a number to each channel, or multiplies it.
    pub(super) fn meet(&mut self, meeting: Meeting, numbers: &[f32]) {
        if meeting == Meeting::Product {
            meeting.apply(&mut self.factor, numbers);
        }
        meeting.apply(&mut self.shift, numbers);
    }

    /// Normalises each pixel. `shared`: all threads work on it; the numbers are the same.
    pub(super) fn run(&self, input: &[f32], out: &mut [f32], shared: bool) {
        if shared {
            let length = PIXELS * self.factor.len();
            let parts = out.par_chunks_mut(length).zip(input.par_chunks(length));
            parts.for_each(|(out, input)| self.pixels(input, out));
        } else {
            self.pixels(input, out);
        }
    }

    fn pixels(&self, input: &[f32], out: &mut [f32]) {
        let channels = self.factor.len();
        vectorised(
            #[inline(always)]
            || {
                let pixels = out.chunks_exact_mut(channels).zip(input.chunks_exact(channels));
                pixels.for_each(|(out, pixel)| self.pixel(pixel, out));
            },
        );
    }

    #[inline(always)]
    fn pixel(&self, pixel: &[f32], out: &mut [f32]) {
        let channels = pixel.len() as f32;
        let mean = sum(pixel, |value| value) / channels;
        let squares = sum(pixel, |value| (value - mean) * (value - mean));
        let inverse = 1.0 / (squares / channels + self.epsilon).sqrt();
        let weights = self.factor.iter().zip(&self.shift);
        for ((out, value), (factor, shift)) in out.iter_mut().zip(pixel).zip(weights) {
            *out = (value - mean) * inverse * factor + shift;
        }
    }
}

/// The sum of what becomes of each number.
#[inline(always)]
fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0f32; LANES];
    let (whole, rest) = numbers.as_chunks::<LANES>();
    for numbers in whole {
        sums.iter_mut().zip(numbers).for_each(|(sum, &value)| *sum += of(value));
    }
    rest.iter().zip(&mut sums).for_each(|(&value, sum)| *sum += of(value));
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pixel_is_that_of_the_formula() {
        for channels in [1, 5, 32, 77] {
            let factor: Vec<f32> = (0..channels).map(|at| 1.0 + at as f32 / 9.0).collect();
            let shift: Vec<f32> = (0..channels).map(|at| at as f32 / 7.0 - 1.0).collect();
            let norm = LayerNorm { factor, shift, epsilon: 1e-5 };
            let input: Vec<f32> =
                (0..70 * channels).map(|at| ((at * at) % 23) as f32 / 3.0 - 2.0).collect();
            let mut out = vec![0.0; input.len()];
            norm.run(&input, &mut out, false);
            let mut shared = vec![0.0; input.len()];
            norm.run(&input, &mut shared, true);
            assert_eq!(out, shared);
            for (out, pixel) in out.chunks(channels).zip(input.chunks(channels)) {
                let count = channels as f64;
                let mean = pixel.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
                let square = |&value: &f32| (f64::from(value) - mean).powi(2);
                let variance = pixel.iter().map(square).sum::<f64>() / count;
                for (at, (out, &value)) in out.iter().zip(pixel).enumerate() {
                    let expected = (f64::from(value) - mean) / (variance + 1e-5).sqrt()
                        * f64::from(norm.factor[at])
                        + f64::from(norm.shift[at]);
                    assert!((f64::from(*out) - expected).abs() < 1e-4, "{out} or {expected}");
                }
            }
        }
    }
}
