//! Where a network looks: the Grad-CAM map of a class, and the loss that keeps it.
//!
//! Grad-CAM weighs the channels of the last stage by the mean over pixels of the gradient of the
//! class's output. Points are means over pixels and the head is linear, so that this gradient is the
//! same at every pixel: the class's weights over the number of pixels. The map is max(0, Σ w a) but
//! for a factor that its normalisation takes out, and a loss of it needs first derivatives alone.

use ivoro::Matrix;
use ivoro::vectors::{add, dot};

use super::losses::{normalised, through_normalised};

/// A map that is shorter is none: it has no direction.
const SHORTEST: f32 = 1e-9;

/// The map of a class for each image, a value for each pixel: `maps` has the image's pixels one after
/// another, `weights` the class's weights, a row for each image.
pub(super) fn attention(maps: &Matrix, weights: &Matrix) -> Matrix {
    let channels = weights.cols().max(1);
    let mut found = Matrix::zeros(maps.rows(), maps.cols() / channels);
    for row in 0..maps.rows() {
        let pixels = maps.row(row).chunks_exact(channels);
        for (to, pixel) in found.row_mut(row).iter_mut().zip(pixels) {
            *to = dot(pixel, weights.row(row)).max(0.0) as f32;
        }
    }
    found
}

/// The map of each image at length 1.
pub(super) fn direction_of_attention(maps: &Matrix, weights: &Matrix) -> Matrix {
    normalised(&attention(maps, weights)).0
}

/// The gradients of a loss of maps.
pub(super) struct MapGradients {
    pub(super) maps: Matrix,
    /// That of the class's weights, a row for each image.
    pub(super) weights: Matrix,
}

/// The sum of absolute differences between each image's map at length 1 and the one wanted; the mean
/// over images times `weight`.
pub(super) fn keep_attention(
    maps: &Matrix,
    weights: &Matrix,
    wanted: &Matrix,
    weight: f64,
) -> (f64, MapGradients) {
    let channels = weights.cols().max(1);
    let found = attention(maps, weights);
    let (unit, lengths) = normalised(&found);
    let share = (weight / maps.rows().max(1) as f64) as f32;
    let mut value = 0.0;
    let mut slopes = Matrix::zeros(unit.rows(), unit.cols());
    let pairs = unit.as_slice().iter().zip(wanted.as_slice());
    for (slope, (own, wanted)) in slopes.as_mut_slice().iter_mut().zip(pairs) {
        let apart = own - wanted;
        value += f64::from(share * apart.abs());
        *slope = if apart == 0.0 { 0.0 } else { share * apart.signum() };
    }
    let slopes = through_normalised(&unit, &lengths, &slopes);
    let mut gradients = MapGradients {
        maps: Matrix::zeros(maps.rows(), maps.cols()),
        weights: Matrix::zeros(weights.rows(), weights.cols()),
    };
    for row in (0..maps.rows()).filter(|&row| lengths[row] > SHORTEST) {
        let lit = (0..found.cols()).filter(|&at| found.row(row)[at] > 0.0);
        for at in lit {
            let (slope, place) = (slopes.row(row)[at], at * channels..(at + 1) * channels);
            add(&mut gradients.maps.row_mut(row)[place.clone()], weights.row(row), slope);
            add(gradients.weights.row_mut(row), &maps.row(row)[place], slope);
        }
    }
    (value, gradients)
}

#[cfg(test)]
mod tests {
    use super::super::losses::tests::{check, some};
    use super::*;

    #[test]
    fn a_map_is_the_gradient_of_the_output_times_the_stage() {
        // two pixels of three channels; the output is w · mean of pixels
        let maps = Matrix::new(1, 6, vec![1.0, 2.0, 0.0, 0.5, 0.0, 3.0]).unwrap();
        let weights = Matrix::new(1, 3, vec![2.0, -0.5, -1.0]).unwrap();
        let output = |maps: &Matrix| -> f32 {
            let mean = |channel: usize| maps.row(0)[channel].midpoint(maps.row(0)[3 + channel]);
            (0..3).map(|channel| weights.row(0)[channel] * mean(channel)).sum()
        };
        let slope = |at: usize| {
            let mut moved = maps.clone();
            moved.as_mut_slice()[at] += 0.5;
            (output(&moved) - output(&maps)) / 0.5
        };
        let cam = |pixel: usize| -> f32 {
            // the mean over pixels of the gradient weighs each channel
            let alpha = |channel: usize| slope(channel).midpoint(slope(3 + channel));
            (0..3).map(|channel| alpha(channel) * maps.row(0)[3 * pixel + channel]).sum()
        };
        let grad_cam = Matrix::new(1, 2, vec![cam(0).max(0.0), cam(1).max(0.0)]).unwrap();
        assert_eq!(attention(&maps, &weights).row(0), [1.0, 0.0]);
        assert_eq!(direction_of_attention(&maps, &weights), normalised(&grad_cam).0);
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (maps, weights) = (some(3, 24, 1), some(3, 4, 2));
        let wanted = direction_of_attention(&some(3, 24, 8), &some(3, 4, 9));
        check(&maps, |maps, gradient| {
            let (value, found) = keep_attention(maps, &weights, &wanted, 1.5);
            add(gradient.as_mut_slice(), found.maps.as_slice(), 1.0);
            value
        });
        check(&weights, |weights, gradient| {
            let (value, found) = keep_attention(&maps, weights, &wanted, 1.5);
            add(gradient.as_mut_slice(), found.weights.as_slice(), 1.0);
            value
        });
    }

    #[test]
    fn a_map_that_is_longer_looks_at_the_same_place() {
        let (maps, weights) = (some(3, 24, 1), some(3, 4, 2));
        let wanted = direction_of_attention(&maps, &weights);
        let mut longer = maps.clone();
        longer.as_mut_slice().iter_mut().for_each(|value| *value *= 8.0);
        assert!(keep_attention(&longer, &weights, &wanted, 1.0).0 < 1e-5);
        // a map without light has no direction, and no gradient that is no number
        let dark = Matrix::zeros(3, 24);
        let (value, found) = keep_attention(&dark, &weights, &wanted, 1.0);
        assert!(value > 0.1 && found.maps.as_slice().iter().all(|&slope| slope == 0.0));
    }
}
