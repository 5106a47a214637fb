//! Cluster-to-cluster diagrams: classes and queries of several points.

use crate::diagram::PowerDiagram;
use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// A cluster-to-cluster Voronoi diagram: every class is an ordered set of centres, one per layer,
/// and so is the query. The influence F = −sign(γ) Σ_l w_l · d(c⁽ˡ⁾, z⁽ˡ⁾)^γ decides, d being the
/// squared distance.
#[derive(Clone, Debug)]
pub struct ClusterDiagram {
    layers: Vec<PowerDiagram>,
    weights: Vec<f32>,
    gamma: f32,
}

impl ClusterDiagram {
    /// From one Voronoi diagram per layer, a weight for each, and γ ≠ 0.
    pub fn new(layers: Vec<PowerDiagram>, weights: Vec<f32>, gamma: f32) -> Result<Self> {
        if weights.len() != layers.len() || layers.is_empty() {
            let what = "layer weights".to_owned();
            return Err(Error::Size { what, expected: layers.len().max(1), found: weights.len() });
        }
        if gamma == 0.0 || !gamma.is_finite() {
            let reason = "must be finite and not 0";
            return Err(Error::Setting { name: "gamma", value: gamma.to_string(), reason });
        }
        Ok(Self { layers, weights, gamma })
    }

    /// One diagram per layer.
    pub fn layers(&self) -> &[PowerDiagram] {
        &self.layers
    }

    /// −F for every query and class: smaller is nearer. `queries[l]` is layer l.
    pub fn distances(&self, queries: &[&Matrix]) -> Result<Matrix> {
        if queries.len() != self.layers.len() {
            let what = "layers of the query".to_owned();
            return Err(Error::Size { what, expected: self.layers.len(), found: queries.len() });
        }
        let mut total: Option<Matrix> = None;
        for ((layer, &weight), query) in self.layers.iter().zip(&self.weights).zip(queries) {
            let distances = layer.distances(query)?;
            add_influence(&mut total, distances, weight, self.gamma);
        }
        Ok(total.unwrap_or_default())
    }

    /// The cells where all layers see one and the same point: a power diagram, because
    /// Σ w_l ‖z − c⁽ˡ⁾‖² = W ‖z − m‖² + W s with m the weighted mean of a class's centres and s their
    /// weighted variance. So the centre is m and ν = Σ w_l ν_l / W − s. `None` unless γ = 1, the
    /// layers have one dimension and the weights a positive sum W.
    pub fn of_one_point(&self) -> Option<PowerDiagram> {
        let first = self.layers[0].centres();
        let total: f64 = self.weights.iter().map(|&weight| f64::from(weight)).sum();
        let alike = |layer: &PowerDiagram| {
            (layer.centres().rows(), layer.centres().cols()) == (first.rows(), first.cols())
        };
        if self.gamma != 1.0 || total <= 0.0 || !self.layers.iter().all(alike) {
            return None;
        }
        let mut centres = Matrix::zeros(first.rows(), first.cols());
        let mut weights = vec![0f32; first.rows()];
        for (class, power) in weights.iter_mut().enumerate() {
            let mut mean = vec![0f64; first.cols()];
            let mut square = 0f64;
            for (layer, &weight) in self.layers.iter().zip(&self.weights) {
                let share = f64::from(weight) / total;
                for (sum, &value) in mean.iter_mut().zip(layer.centres().row(class)) {
                    *sum += share * f64::from(value);
                    square += share * f64::from(value).powi(2);
                }
                square -= share * f64::from(layer.weights()[class]);
            }
            *power = (mean.iter().map(|value| value * value).sum::<f64>() - square) as f32;
            let row = centres.row_mut(class).iter_mut();
            row.zip(&mean).for_each(|(out, &value)| *out = value as f32);
        }
        PowerDiagram::new(centres, weights).ok()
    }
}

/// Adds sign(γ) · w · d^γ of one layer to the sum of the layers.
pub(crate) fn add_influence(
    total: &mut Option<Matrix>,
    mut layer: Matrix,
    weight: f32,
    gamma: f32,
) {
    if gamma != 1.0 {
        for value in layer.as_mut_slice() {
            // rounding can leave a tiny negative; a negative power of 0 would be infinite
            *value = gamma.signum() * value.max(f32::MIN_POSITIVE).powf(gamma);
        }
    }
    if weight != 1.0 {
        layer.as_mut_slice().iter_mut().for_each(|value| *value *= weight);
    }
    match total {
        None => *total = Some(layer),
        Some(sum) => add_matrix(sum, &layer),
    }
}

/// Adds one matrix to another of the same shape.
pub(crate) fn add_matrix(sum: &mut Matrix, other: &Matrix) {
    sum.as_mut_slice().iter_mut().zip(other.as_slice()).for_each(|(sum, other)| *sum += other);
}
