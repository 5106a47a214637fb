//! Convolutions of a frozen network, with the batch normalisation worked into them.

use std::collections::BTreeMap;

use super::architecture::Convolution;
use super::weights::Weights;

/// Added to every variance, as PyTorch does.
pub const EPSILON: f32 = 1e-5;

/// A kernel `[out, in, height, width]` and a bias that do what convolution and normalisation did.
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
    let factors: Vec<f32> =
        scale.iter().zip(variance).map(|(scale, v)| scale / (v + EPSILON).sqrt()).collect();
    let one = convolution.inputs * convolution.size * convolution.size;
    let kernel = of(&convolution.kernel, "weight").chunks_exact(one).zip(&factors);
    let kernel = kernel.flat_map(|(part, factor)| part.iter().map(move |value| value * factor));
    let bias = shift.iter().zip(mean).zip(&factors);
    Folded {
        kernel: kernel.collect(),
        bias: bias.map(|((shift, mean), factor)| shift - mean * factor).collect(),
    }
}
