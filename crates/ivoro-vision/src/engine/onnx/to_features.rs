//! From a value that the network computed to one feature vector an image.

use super::options::Layout;
use crate::engine::cpu::graph::means;
use crate::shape::Shape;

/// A tensor of a runtime, its numbers in the order of its axes.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Vec<f32>,
}

impl Tensor {
    /// Features of each of the first `wanted` of `images` images: two dimensions as they are,
    /// four averaged over rows and columns. `None` for any other shape.
    pub(super) fn features(
        &self,
        images: usize,
        wanted: usize,
        layout: Layout,
    ) -> Option<(usize, Vec<f32>)> {
        let whole = self.shape.iter().product::<usize>() == self.numbers.len();
        if !whole || self.shape.first() != Some(&images) || self.numbers.is_empty() {
            return None;
        }
        match (&self.shape[..], layout) {
            (&[_, features], _) => Some((features, self.numbers[..wanted * features].to_vec())),
            (&[_, channels, rows, columns], Layout::ChannelsFirst) => {
                let planes = self.numbers.chunks_exact(rows * columns).take(wanted * channels);
                let mean = |plane: &[f32]| {
                    plane.iter().map(|&value| f64::from(value)).sum::<f64>() / plane.len() as f64
                };
                Some((channels, planes.map(|plane| mean(plane) as f32).collect()))
            }
            (&[_, rows, columns, channels], Layout::ChannelsLast) => {
                let shape = Shape { height: rows, width: columns, channels };
                Some((channels, means(&self.numbers[..wanted * shape.len()], shape)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize]) -> Tensor {
        let numbers = (0..shape.iter().product::<usize>()).map(|at| at as f32).collect();
        Tensor { shape: shape.to_vec(), numbers }
    }

    #[test]
    fn two_dimensions_are_taken_as_they_are() {
        let features = tensor(&[3, 2]).features(3, 2, Layout::ChannelsFirst);
        assert_eq!(features, Some((2, vec![0.0, 1.0, 2.0, 3.0])));
    }

    #[test]
    fn four_dimensions_are_averaged_over_pixels() {
        // One image of 2 channels, 2 rows, 3 columns, and the same numbers read the other way.
        let first = tensor(&[1, 2, 2, 3]).features(1, 1, Layout::ChannelsFirst);
        assert_eq!(first, Some((2, vec![2.5, 8.5])));
        let last = tensor(&[1, 2, 3, 2]).features(1, 1, Layout::ChannelsLast);
        assert_eq!(last, Some((2, vec![5.0, 6.0])));
    }

    #[test]
    fn any_other_shape_is_none() {
        for shape in [&[][..], &[2], &[2, 3, 4], &[2, 1, 1, 1, 1], &[2, 0], &[3, 4]] {
            assert_eq!(tensor(shape).features(2, 2, Layout::ChannelsFirst), None, "{shape:?}");
        }
    }
}
