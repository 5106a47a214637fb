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
    /// From one Voronoi diagram a layer, a weight for each, and γ ≠ 0.
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

    /// One diagram a layer.
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
