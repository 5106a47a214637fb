//! Convolutions of a frozen network, with the batch norm worked into them.

use std::collections::BTreeMap;

use super::architecture::Convolution;
use super::weights::Weights;

/// Added to every variance, as PyTorch does.
pub const EPSILON: f64 = 1e-5;

/// A kernel `[out, in, height, width]` and a bias that do what convolution and batch norm did.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// The kernel's values.
    pub kernel: Vec<f32>,
    /// One value for each output channel.
    pub bias: Vec<f32>,
}

/// The folded convolutions by the name of their kernel's layer.
pub fn fold(weights: &Weights) -> BTreeMap<String, Folded> {
    let named: BTreeMap<String, &[f32]> =
        weights.iter().map(|(parameter, values)| (parameter.name, values)).collect();
    let convolutions = weights.architecture.convolutions();
    convolutions.iter().map(|one| (one.kernel.clone(), fold_one(one, &named))).collect()
}

fn fold_one(convolution: &Convolution, named: &BTreeMap<String, &[f32]>) -> Folded {
    let of = |layer: &str, kind: &str| named[&format!("{layer}.{kind}")];
    let layer = &convolution.normalisation;
    let (scale, shift) = (of(layer, "weight"), of(layer, "bias"));
    let (mean, variance) = (of(layer, "running_mean"), of(layer, "running_var"));
    let affine = affine([scale, shift, mean, variance], EPSILON);
    let one = convolution.inputs * convolution.size * convolution.size;
    let kernel = of(&convolution.kernel, "weight").chunks_exact(one).zip(&affine);
    let kernel = kernel.flat_map(|(part, (factor, _))| {
        part.iter().map(move |value| (f64::from(*value) * factor) as f32)
    });
    Folded {
        kernel: kernel.collect(),
        bias: affine.iter().map(|(_, shift)| *shift as f32).collect(),
    }
}

/// What a batch norm of scale, shift, mean and variance does to each channel: a factor, and what
/// is added then.
pub(crate) fn affine([scale, shift, mean, variance]: [&[f32]; 4], epsilon: f64) -> Vec<(f64, f64)> {
    let channels = scale.iter().zip(shift).zip(mean.iter().zip(variance));
    let one = |((&scale, &shift), (&mean, &variance)): ((&f32, &f32), (&f32, &f32))| {
        let factor = f64::from(scale) / (f64::from(variance) + epsilon).sqrt();
        (factor, f64::from(shift) - f64::from(mean) * factor)
    };
    channels.map(one).collect()
}
