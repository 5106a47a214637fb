//! A list of operations as a graph.

use super::activation::Activation;
use super::graph::{Builder, Graph};
use super::window::Window;
use crate::network::{Clip, Kernel, Operation, OperationNetwork};

/// The graph of a network for so many images at once, if its sizes fit each other and memory.
pub(super) fn lower(network: &OperationNetwork, images: usize) -> Option<Graph> {
    let mut builder = Builder::bounded(images, network.fit.shape);
    let mut values = vec![0];
    for (step, kernel) in network.operations.steps.iter().zip(&network.kernels) {
        values.push(add(&mut builder, &values, step, kernel)?);
    }
    let layers = network.operations.layers.iter();
    builder.finish(layers.map(|(_, value)| values.get(*value).copied()).collect::<Option<_>>()?)
}

fn add(
    builder: &mut Builder,
    values: &[usize],
    step: &Operation,
    kernel: &Kernel,
) -> Option<usize> {
    let (made, clip) = match step {
        Operation::Convolution { input, groups, window, step, padding, clip, .. } => {
            let &[above, left, below, right] = padding;
            let window = Window {
                size: (window[0], window[1]),
                step: (step[0], step[1]),
                before: (above, left),
                after: (below, right),
            };
            let Kernel { values: numbers, bias } = kernel;
            let input = *values.get(*input)?;
            (builder.convolve(input, window, *groups, numbers, bias.clone())?, clip)
        }
        Operation::Add { inputs: [one, other], clip } => {
            (builder.add(*values.get(*one)?, *values.get(*other)?)?, clip)
        }
    };
    if clip.is_none() {
        return Some(made);
    }
    let &Clip { least, most } = clip;
    let (least, most) = (least.unwrap_or(f32::NEG_INFINITY), most.unwrap_or(f32::INFINITY));
    builder.activate(made, Activation::Clip { least, most })
}
