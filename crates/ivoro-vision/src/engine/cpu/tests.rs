//! Every layer against its definition, and its gradient against differences or its adjoint.

use super::activation::Activation;
use super::batch_norm::{self, Moments, Shortcut, Statistics};
use super::conv_geometry::ConvGeometry;
use super::convolution::{Memory, backward_inputs, backward_kernel, convolve};
use super::dense::Way;
use super::gemm::Store;
use super::graph::convolution;
use super::loss::cross_entropy;
use super::pool::{self, Maximum};
use super::window::Window;
use super::work::Work;
use crate::network::EPSILON;
use crate::shape::Shape;

fn random(seed: u64, count: usize) -> Vec<f32> {
    (0..count as u64).map(|at| (2.0 * ivoro::random::unit(seed, at) - 1.0) as f32).collect()
}

fn dot(left: &[f32], right: &[f32]) -> f64 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn assert_close(left: f64, right: f64, scale: f64) {
    assert!((left - right).abs() < 1e-5 * scale.max(1.0), "{left} {right}");
}

/// Windows of every kind: both strides, odd and even sides, all three kernels, many channels.
fn geometries() -> Vec<ConvGeometry> {
    let geometry = |height, width, inputs, outputs, size, stride| ConvGeometry {
        height,
        width,
        inputs,
        outputs,
        size,
        stride,
        padding: size / 2,
    };
    vec![
        geometry(6, 5, 3, 4, 3, 1),
        geometry(6, 5, 3, 4, 3, 2),
        geometry(1, 1, 2, 3, 3, 1),
        geometry(1, 2, 2, 3, 3, 2),
        geometry(7, 4, 5, 2, 1, 2),
        geometry(4, 4, 5, 2, 1, 1),
        geometry(9, 12, 3, 4, 7, 2),
        geometry(5, 4, 300, 3, 3, 1),
        geometry(5, 4, 300, 3, 3, 2),
        geometry(20, 19, 2, 3, 3, 1),
        geometry(6, 8, 8, 17, 3, 1),
        geometry(5, 7, 17, 8, 3, 1),
        geometry(1, 1, 8, 8, 3, 1),
        geometry(2, 1, 8, 9, 3, 1),
        geometry(33, 300, 8, 8, 3, 1),
    ]
}

/// The definition: each output is a sum over positions in the kernel and input channels.
fn direct(geometry: &ConvGeometry, images: &[f32], kernel: &[f32], count: usize) -> Vec<f64> {
    let ConvGeometry { height, width, inputs, outputs, size, stride, padding } = *geometry;
    let mut out = Vec::new();
    let positions = (0..count).flat_map(|n| (0..geometry.out_pixels()).map(move |at| (n, at)));
    for (n, at) in positions {
        let (y, x) = (at / geometry.out_width(), at % geometry.out_width());
        for output in 0..outputs {
            let mut sum = 0.0;
            for tap in 0..size * size {
                let (row, column) = (y * stride + tap / size, x * stride + tap % size);
                let inside = (padding..height + padding).contains(&row)
                    && (padding..width + padding).contains(&column);
                for input in (0..inputs).filter(|_| inside) {
                    let source = (n * height + row - padding) * width + column - padding;
                    let weight = kernel[(tap * inputs + input) * outputs + output];
                    sum += f64::from(images[source * inputs + input]) * f64::from(weight);
                }
            }
            out.push(sum);
        }
    }
    out
}

fn shape(geometry: &ConvGeometry) -> Shape {
    let ConvGeometry { height, width, inputs: channels, .. } = *geometry;
    Shape { height, width, channels }
}

/// The convolution of a frozen network with a kernel `[tap, input, output]`.
fn frozen(geometry: &ConvGeometry, kernel: &[f32]) -> Work {
    let ConvGeometry { inputs, outputs, size, stride, padding, .. } = *geometry;
    let taps = size * size;
    let place =
        |at: usize| (at % taps * inputs + at / taps % inputs) * outputs + at / (taps * inputs);
    let kernel: Vec<f32> = (0..kernel.len()).map(|at| kernel[place(at)]).collect();
    let window = Window::square(size, stride, padding);
    let weights = (&kernel[..], vec![0.0; outputs]);
    convolution(window, shape(geometry), 1, weights, usize::MAX).unwrap().0
}

#[test]
fn convolutions_are_what_their_definition_says() {
    for geometry in geometries() {
        // Enough images for more than one tile.
        let count = 3 + super::ROWS / geometry.out_pixels();
        let images = random(1, count * geometry.in_len());
        let kernel = random(2, geometry.kernel_len());
        let mut prepared = Vec::new();
        let mut out = vec![f32::NAN; count * geometry.out_len()];
        convolve(&geometry, &images, &kernel, &mut prepared, &mut out, Store::Replace, |_| ());
        let mut here = vec![1.0; out.len()];
        let way = Way { store: Store::Add, activation: Activation::NONE, shared: false };
        frozen(&geometry, &kernel).run((&images, shape(&geometry)), &[], &mut here, way);
        for ((out, here), expected) in
            out.iter().zip(here).zip(direct(&geometry, &images, &kernel, count))
        {
            assert!((f64::from(*out) - expected).abs() < 1e-4, "{geometry:?}: {out} {expected}");
            assert!((here - out - 1.0).abs() < 1e-4, "{geometry:?}: {here} {out}");
        }
    }
}

#[test]
fn gradients_of_convolutions_are_their_adjoints() {
    for geometry in geometries() {
        let count = 3 + super::ROWS / geometry.out_pixels();
        let images = random(3, count * geometry.in_len());
        let kernel = random(4, geometry.kernel_len());
        let gradient = random(5, count * geometry.out_len());
        let mut prepared = Vec::new();
        let mut out = vec![0.0; gradient.len()];
        convolve(&geometry, &images, &kernel, &mut prepared, &mut out, Store::Replace, |_| ());
        let expected = dot(&out, &gradient);
        let scale = dot(&out, &out).sqrt() * dot(&gradient, &gradient).sqrt();
        let mut back = vec![f32::NAN; images.len()];
        let mut memory = Memory::default();
        backward_inputs(&geometry, &kernel, &gradient, &mut memory, &mut back, Store::Replace);
        assert_close(dot(&back, &images), expected, scale);
        let mut twice = back.clone();
        backward_inputs(&geometry, &kernel, &gradient, &mut memory, &mut twice, Store::Add);
        assert_close(dot(&twice, &images), 2.0 * expected, scale);
        let mut sums = vec![f32::NAN; kernel.len()];
        backward_kernel(&geometry, &images, &gradient, &mut memory, &mut sums);
        assert_close(dot(&sums, &kernel), expected, scale);
        // One number would not show a gradient in the wrong place.
        let other = random(6, kernel.len());
        convolve(&geometry, &images, &other, &mut prepared, &mut out, Store::Replace, |_| ());
        assert_close(dot(&sums, &other), dot(&out, &gradient), scale);
        let other = random(7, images.len());
        convolve(&geometry, &other, &kernel, &mut prepared, &mut out, Store::Replace, |_| ());
        assert_close(dot(&back, &other), dot(&out, &gradient), scale);
    }
}

const CHANNELS: usize = 3;

/// A batch norm with another one on the shortcut, in `f64`, and the sum of its weighted outputs.
fn reference(values: &[f64], weights: &[f32]) -> f64 {
    let rows = weights.len() / CHANNELS;
    let (raw, rest) = values.split_at(rows * CHANNELS);
    let (other, learned) = rest.split_at(rows * CHANNELS);
    let normal = |raw: &[f64], channel: usize, learned: &[f64]| -> Vec<f64> {
        let column: Vec<f64> = raw.iter().skip(channel).step_by(CHANNELS).copied().collect();
        let mean = column.iter().sum::<f64>() / rows as f64;
        let variance = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / rows as f64;
        let root = (variance + EPSILON).sqrt();
        let (scale, shift) = (learned[channel], learned[CHANNELS + channel]);
        column.iter().map(|value| (value - mean) / root * scale + shift).collect()
    };
    let mut sum = 0.0;
    for channel in 0..CHANNELS {
        let own = normal(raw, channel, learned);
        let shortcut = normal(other, channel, &learned[2 * CHANNELS..]);
        for row in 0..rows {
            let out = (own[row] + shortcut[row]).max(0.0);
            sum += out * f64::from(weights[row * CHANNELS + channel]);
        }
    }
    sum
}

#[test]
fn gradients_of_normalisations_are_differences() {
    let rows = 11;
    let (raw, other) = (random(1, rows * CHANNELS), random(2, rows * CHANNELS));
    let (learned, weights) = (random(3, 4 * CHANNELS), random(4, rows * CHANNELS));
    let measure = |raw: &[f32], learned: &[f32]| {
        // Two tiles of unequal sizes.
        let (one, two) = raw.split_at(4 * CHANNELS);
        let moments = [Moments::of(one, CHANNELS), Moments::of(two, CHANNELS)];
        let mut running = ([0.0; CHANNELS], [0.0; CHANNELS]);
        Statistics::new(&moments, learned.split_at(CHANNELS), (&mut running.0, &mut running.1))
    };
    let own = measure(&raw, &learned[..2 * CHANNELS]);
    let shortcut = measure(&other, &learned[2 * CHANNELS..]);
    let mut out = vec![0.0; raw.len()];
    batch_norm::forward(&raw, &own, Shortcut::Convolved(&other, &shortcut), &mut out);
    let values: Vec<f64> =
        [&raw[..], &other, &learned].concat().into_iter().map(f64::from).collect();
    assert_close(dot(&out, &weights), reference(&values, &weights), 1.0);

    let mut gradient = weights.clone();
    let sums = batch_norm::mask_and_sum(&mut gradient, &out, &[(&raw, &own), (&other, &shortcut)]);
    let mut first = vec![0.0; raw.len()];
    batch_norm::backward(&gradient, &raw, &own, &sums[0], &mut first);
    batch_norm::backward_here(&mut gradient, &other, &shortcut, &sums[1]);
    let mut weights_of = vec![0.0; learned.len()];
    let (one, two) = weights_of.split_at_mut(2 * CHANNELS);
    for (part, statistics, sums) in [(one, &own, &sums[0]), (two, &shortcut, &sums[1])] {
        let (scale, shift) = part.split_at_mut(CHANNELS);
        sums.learned(statistics, scale, shift);
    }
    let found = [first, gradient, weights_of].concat();
    for (at, found) in found.iter().enumerate() {
        let moved = |by: f64| {
            let mut values = values.clone();
            values[at] += by;
            reference(&values, &weights)
        };
        let expected = (moved(1e-6) - moved(-1e-6)) / 2e-6;
        assert!((f64::from(*found) - expected).abs() < 1e-4, "{at}: {found} {expected}");
    }
}

#[test]
fn running_statistics_follow_the_unbiased_variance() {
    let raw = [1.0, 2.0, 3.0, 6.0];
    let mut running = ([10.0f32], [20.0f32]);
    let moments = [Moments::of(&raw, 1)];
    Statistics::new(&moments, (&[1.0], &[0.0]), (&mut running.0, &mut running.1));
    // Mean 3, sum of squared differences 14, over 3.
    assert!((running.0[0] - (9.0 + 0.3)).abs() < 1e-6);
    assert!((running.1[0] - (18.0 + 0.1 * 14.0 / 3.0)).abs() < 1e-5);
}

#[test]
fn pools_and_their_gradients() {
    let images = random(1, 2 * 6 * 4);
    let means = pool::mean(&images, 6, 4);
    let expected: f32 = (0..6).map(|pixel| images[pixel * 4 + 1]).sum::<f32>() / 6.0;
    assert!((means[1] - expected).abs() < 1e-6);
    let weights = random(2, means.len());
    let mut back = vec![0.0; images.len()];
    pool::mean_backward(&weights, 6, 4, &mut back);
    assert_close(dot(&back, &images), dot(&means, &weights), 1.0);

    for (height, width) in [(5, 4), (4, 7), (1, 1), (2, 1)] {
        let maximum = Maximum { height, width, channels: 2 };
        let images: Vec<f32> = random(3, 3 * maximum.in_len()).iter().map(|v| v - 2.0).collect();
        let mut out = vec![0.0; 3 * maximum.out_len()];
        let mut found = vec![0; out.len()];
        maximum.forward(&images, &mut out, &mut found);
        let at = |n: usize, y: usize, x: usize| {
            let rows = (2 * y).saturating_sub(1)..(2 * y + 2).min(height);
            let columns = (2 * x).saturating_sub(1)..(2 * x + 2).min(width);
            let pixels = rows.flat_map(|row| columns.clone().map(move |column| (row, column)));
            pixels
                .map(|(row, column)| images[((n * height + row) * width + column) * 2 + 1])
                .fold(f32::NEG_INFINITY, f32::max)
        };
        for (index, out) in out.iter().skip(1).step_by(2).enumerate() {
            let (pixel, n) = (index % (maximum.out_len() / 2), index / (maximum.out_len() / 2));
            let (y, x) = (pixel / maximum.out_width(), pixel % maximum.out_width());
            assert_eq!(*out, at(n, y, x), "{height}×{width}: {n} {y} {x}");
        }
        let weights = random(4, out.len());
        let mut back = vec![0.0; images.len()];
        maximum.backward(&weights, &found, &mut back);
        assert_close(dot(&back, &images), dot(&out, &weights), 1.0);
    }
}

#[test]
fn the_gradient_of_the_loss_is_its_difference() {
    let (labels, classes) = ([2usize, 0, 4], 5);
    let outputs = random(1, labels.len() * classes);
    let loss = |outputs: &[f32]| cross_entropy(&mut outputs.to_vec(), &labels, 0.5, 0.2).loss;
    let mut gradient = outputs.clone();
    let tally = cross_entropy(&mut gradient, &labels, 0.5, 0.2);
    assert_eq!(tally.views, 3);
    for at in 0..outputs.len() {
        let moved = |by: f32| {
            let mut outputs = outputs.clone();
            outputs[at] += by;
            loss(&outputs)
        };
        let expected = (moved(1e-3) - moved(-1e-3)) / 2e-3 / labels.len() as f64;
        assert!((f64::from(gradient[at]) - expected).abs() < 1e-4, "{at}: {expected}");
    }
}
