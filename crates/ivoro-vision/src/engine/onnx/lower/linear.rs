//! Linear maps, and what brings their rows to one mean and variance.

use super::super::constants::{Array, axis};
use super::super::operator::Node;
use super::Network;
use super::known::{Known, Statistic, Tensor};
use super::view::View;
use crate::engine::cpu::layer_norm::LayerNorm;

impl<'a> Network<'_, 'a> {
    /// An input whose last axis holds all channels, with the number of those.
    fn pixels(&mut self, node: &Node<'a>, at: usize) -> Option<(Tensor, usize)> {
        let tensor = self.whole_tensor(node, at)?;
        let shape = self.builder.shape(tensor.value);
        tensor.view.is_of_pixels(shape).then_some((tensor, shape.channels))
    }

    /// A product with a matrix that never changes, or of two values.
    pub(super) fn multiply(&mut self, node: &Node<'a>) -> Option<Known> {
        if let Some(other) = self.known(node, 1) {
            let one = self.known(node, 0)?;
            return self.attend(one, other);
        }
        let Array { shape, numbers } = self.floats(node, 1)?;
        let &[inputs, outputs] = &shape[..] else { return None };
        let weight = |input: usize, output: usize| numbers[input * outputs + output];
        self.map(node, inputs, &vec![0.0; outputs], weight)
    }

    pub(super) fn gemm(&mut self, node: &Node<'a>) -> Option<Known> {
        let factors = [node.float("alpha", 1.0), node.float("beta", 1.0)];
        if factors != [1.0; 2] || node.number("transA", 0) != 0 {
            return None;
        }
        let Array { shape, numbers } = self.floats(node, 1)?;
        let &[rows, columns] = &shape[..] else { return None };
        let turned = node.number("transB", 0) != 0;
        let (inputs, outputs) = if turned { (columns, rows) } else { (rows, columns) };
        let bias = match node.inputs.get(2) {
            None | Some(&"") => vec![0.0; outputs],
            Some(_) => {
                let Array { shape, numbers } = self.floats(node, 2)?;
                (shape == [outputs] || shape == [1, outputs]).then_some(numbers)?
            }
        };
        let steps = if turned { (1, inputs) } else { (outputs, 1) };
        let weight = |input: usize, output: usize| numbers[input * steps.0 + output * steps.1];
        self.map(node, inputs, &bias, weight)
    }

    /// A linear map of the rows that the last axis of the first input holds.
    fn map(
        &mut self,
        node: &Node<'a>,
        inputs: usize,
        bias: &[f32],
        weight: impl Fn(usize, usize) -> f32,
    ) -> Option<Known> {
        let (Tensor { value, view }, channels) = self.pixels(node, 0)?;
        let view = view.with_channels(channels, bias.len())?;
        let fits = inputs == channels;
        let value = fits.then(|| self.builder.linear(value, bias, weight))??;
        Some(Known::Tensor(Tensor { value, view }))
    }

    pub(super) fn layer_norm(&mut self, node: &Node<'a>) -> Option<Known> {
        let (of, channels) = self.pixels(node, 0)?;
        let axes = of.view.axes.len();
        let last = axis(node.number("axis", -1), axes)? + 1 == axes;
        let factor = self.vector(node, 1, channels)?;
        let shift = match node.inputs.get(2) {
            None | Some(&"") => vec![0.0; channels],
            Some(_) => self.vector(node, 2, channels)?,
        };
        let plain = last && node.has_only(3);
        let epsilon = plain.then(|| node.float("epsilon", 1e-5))?;
        self.normalised(of, LayerNorm { factor, shift, epsilon })
    }

    fn normalised(&mut self, of: Tensor, norm: LayerNorm) -> Option<Known> {
        let value = self.builder.layer_norm(of.value, norm)?;
        Some(Known::Tensor(Tensor { value, ..of }))
    }

    /// A mean over pixels or tokens, or over the numbers of each row on the way to a layer norm.
    pub(super) fn mean(&mut self, node: &Node<'a>) -> Option<Known> {
        let known = self.known(node, 0)?;
        let dimensions = known.dimensions()?;
        let axes = self.axes(node, 1)?;
        let axes: Option<Vec<usize>> = axes.iter().map(|&at| axis(at, dimensions)).collect();
        let (axes, keeps) = (axes?, node.number("keepdims", 1) != 0);
        if axes == [dimensions.checked_sub(1)?] && keeps {
            return self.mean_of_rows(node, known);
        }
        let Tensor { value, mut view } = self.whole_tensor(node, 0)?;
        axes.iter().for_each(|&at| view.axes[at].clear());
        // all pixels of an image, and no channel
        let all = view.tokens(self.builder.shape(value).channels) == Some((0, 1));
        if !all || axes.is_empty() {
            return None;
        }
        let kept = |at: &usize| keeps || !axes.contains(at);
        let left = (0..dimensions).filter(kept).map(|at| view.axes[at].clone());
        let view = View::new(0, left.collect());
        Some(Known::Tensor(Tensor { value: self.builder.mean(value)?, view }))
    }

    fn mean_of_rows(&mut self, node: &Node<'a>, known: Known) -> Option<Known> {
        if let Known::Statistic(of, Statistic::Square) = known {
            return Some(Known::Statistic(of, Statistic::Variance(0.0)));
        }
        let (of, _) = self.pixels(node, 0)?;
        Some(Known::Statistic(of, Statistic::Mean))
    }

    /// What two inputs make on the way to a layer norm.
    pub(super) fn statistic(&mut self, kind: &str, one: &Known, other: &Known) -> Option<Known> {
        let statistic = |known: &Known| match known {
            Known::Statistic(of, statistic) => Some((of.clone(), *statistic)),
            Known::Tensor(of) => Some((of.clone(), Statistic::Itself)),
            Known::Scalar { of, made: Some(value), .. } => {
                Some((Tensor { value: *value, view: of.view.clone() }, Statistic::Itself))
            }
            _ => None,
        };
        let ((of, first), (same, second)) = (statistic(one)?, statistic(other)?);
        if of != same {
            return None;
        }
        let made = match (kind, first, second) {
            ("Sub", Statistic::Itself, Statistic::Mean) => Statistic::Distance,
            ("Mul", Statistic::Distance, Statistic::Distance) => Statistic::Square,
            ("Div", Statistic::Distance, Statistic::Deviation(epsilon)) => {
                let channels = self.builder.shape(of.value).channels;
                let (factor, shift) = (vec![1.0; channels], vec![0.0; channels]);
                return self.normalised(of, LayerNorm { factor, shift, epsilon });
            }
            _ => return None,
        };
        Some(Known::Statistic(of, made))
    }
}
