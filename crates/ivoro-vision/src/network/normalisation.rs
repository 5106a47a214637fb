//! How pixels become a network's input.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How pixels become the network's input: `(value / 255 − mean) / deviation`, per channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalisation {
    /// Mean of each channel, between 0 and 1.
    pub mean: Vec<f32>,
    /// Standard deviation of each channel.
    pub deviation: Vec<f32>,
}

impl Normalisation {
    /// The convention of networks trained on ImageNet.
    pub fn imagenet(channels: usize) -> Self {
        let part = |values: [f32; 3]| (0..channels).map(|channel| values[channel % 3]).collect();
        Self { mean: part([0.485, 0.456, 0.406]), deviation: part([0.229, 0.224, 0.225]) }
    }

    /// Factor and shift of each channel, so that the input is `value · factor + shift`.
    pub fn affine(&self) -> Vec<(f32, f32)> {
        let channels = self.mean.iter().zip(&self.deviation);
        channels.map(|(mean, deviation)| (1.0 / (255.0 * deviation), -mean / deviation)).collect()
    }

    /// Mean and deviation of these pixels.
    pub fn measure(pixels: &[u8], channels: usize) -> Self {
        let mut sums = vec![(0u64, 0u64); channels];
        for pixel in pixels.chunks_exact(channels) {
            for (sum, &value) in sums.iter_mut().zip(pixel) {
                sum.0 += u64::from(value);
                sum.1 += u64::from(value) * u64::from(value);
            }
        }
        let count = (pixels.len() / channels).max(1) as f64;
        let moments = sums.iter().map(|&(first, second)| {
            let mean = first as f64 / count / 255.0;
            let variance = second as f64 / count / (255.0 * 255.0) - mean * mean;
            (mean as f32, variance.max(1e-6).sqrt() as f32)
        });
        let (mean, deviation) = moments.unzip();
        Self { mean, deviation }
    }
}

impl fmt::Display for Normalisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[f32]| {
            let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
            texts.join(",")
        };
        write!(f, "mean {}, deviation {}", list(&self.mean), list(&self.deviation))
    }
}
