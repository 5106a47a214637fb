//! A linear classifier that grows, beside the network: its loss is computed on the host, so that
//! every engine trains every method.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use ivoro::Matrix;
use ivoro::random::unit;

use crate::engine::{State, cpu};
use crate::error::Result;
use crate::network::Weights;
use crate::recipe::Recipe;

/// Products up to which one core is done before others would have woken: beside a GPU they sleep.
const ALONE: usize = 1 << 22;
/// Cores that are woken at most: few are worth their waking.
const WOKEN: usize = 4;

/// One row per output: its weights, then its bias.
#[derive(Clone, Debug)]
pub(super) struct Head {
    dims: usize,
    /// What its sums are multiplied by: one over the temperature that the network was trained at.
    scale: f32,
    /// Numbers at the front that no step changes.
    fixed: usize,
    state: State,
    gradient: Vec<f32>,
}

impl Head {
    /// A head without outputs for points of `dims` values.
    pub(super) fn new(dims: usize) -> Self {
        Self { dims, scale: 1.0, fixed: 0, state: State::default(), gradient: Vec::new() }
    }

    /// The classifier that a network was trained with at a temperature: every `step`-th output.
    pub(super) fn of_network(weights: &Weights, step: usize, temperature: f32) -> Self {
        let dims = weights.architecture.dimensions();
        let part = |name: &str| weights.get(name).unwrap_or_default();
        let (matrix, biases) = (part("fc.weight"), part("fc.bias"));
        let mut head = Self { scale: 1.0 / temperature, ..Self::new(dims) };
        for (row, bias) in matrix.chunks_exact(dims.max(1)).zip(biases).step_by(step.max(1)) {
            head.state.learned.extend(row.iter().chain([bias]));
        }
        head.begin();
        head
    }

    /// A head of the same kind, without outputs.
    pub(super) fn without_outputs(&self) -> Self {
        Self { scale: self.scale, ..Self::new(self.dims) }
    }

    /// The number of outputs.
    pub(super) fn len(&self) -> usize {
        self.state.learned.len() / (self.dims + 1)
    }

    /// Adds outputs, small and random.
    pub(super) fn grow(&mut self, outputs: usize, seed: u64) {
        let length = self.state.learned.len() + outputs * (self.dims + 1);
        let bound = 1.0 / (self.dims.max(1) as f64).sqrt();
        let random = |at: usize| (bound * (2.0 * unit(seed, at as u64) - 1.0)) as f32;
        let start = self.state.learned.len();
        self.state.learned.extend((start..length).map(random));
        self.begin();
    }

    /// From now on, the first outputs stay as they are.
    pub(super) fn fix(&mut self, outputs: usize) {
        self.fixed = outputs.min(self.len()) * (self.dims + 1);
    }

    /// Gives an output these weights, and no bias.
    pub(super) fn set(&mut self, output: usize, weights: &[f32]) {
        let row = self.state.learned.chunks_exact_mut(self.dims + 1).nth(output);
        if let Some((bias, row)) = row.and_then(<[f32]>::split_last_mut) {
            row.copy_from_slice(weights);
            *bias = 0.0;
        }
    }

    /// Forgets the optimiser's memory, as a phase begins.
    pub(super) fn begin(&mut self) {
        let length = self.state.learned.len();
        self.state.first = vec![0.0; length];
        self.state.second = vec![0.0; length];
        self.state.steps = 0;
        self.gradient = vec![0.0; length];
    }

    /// Weights and bias of each output.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[f32], f32)> {
        self.state
            .learned
            .chunks_exact(self.dims + 1)
            .map(|row| (&row[..self.dims], row[self.dims]))
    }

    /// All numbers, row after row, the bias last in each.
    pub(super) fn values(&self) -> &[f32] {
        &self.state.learned
    }

    /// The gradient, as [`values`](Self::values) lie.
    pub(super) fn gradient_mut(&mut self) -> &mut [f32] {
        &mut self.gradient
    }

    /// Its outputs for points, one row per point.
    pub(super) fn outputs(&self, points: &Matrix) -> Matrix {
        let biases: Vec<f32> = self.rows().map(|(_, bias)| self.scale * bias).collect();
        let mut outputs = Matrix::zeros(points.rows(), self.len());
        for row in 0..points.rows() {
            outputs.row_mut(row).copy_from_slice(&biases);
        }
        let to =
            MatMut::from_row_major_slice_mut(outputs.as_mut_slice(), points.rows(), self.len());
        let cores = self.cores(points);
        matmul(to, Accum::Add, view(points), self.matrix().transpose(), self.scale, cores);
        outputs
    }

    /// Adds to the gradient of the weights; returns that of the points.
    pub(super) fn backward(&mut self, points: &Matrix, outputs: &Matrix) -> Matrix {
        let (count, dims, scale) = (self.len(), self.dims, self.scale);
        let cores = self.cores(points);
        let to = MatMut::from_row_major_slice_mut(&mut self.gradient, count, dims + 1);
        let to = to.subcols_mut(0, dims);
        matmul(to, Accum::Add, view(outputs).transpose(), view(points), scale, cores);
        for row in outputs.iter_rows() {
            let biases = self.gradient.iter_mut().skip(dims).step_by(dims + 1);
            biases.zip(row).for_each(|(bias, value)| *bias += scale * value);
        }
        let mut back = Matrix::zeros(points.rows(), dims);
        let to = MatMut::from_row_major_slice_mut(back.as_mut_slice(), points.rows(), dims);
        matmul(to, Accum::Replace, view(outputs), self.matrix(), scale, cores);
        back
    }

    /// Who multiplies points with the weights.
    fn cores(&self, points: &Matrix) -> Par {
        let few = points.as_slice().len() * self.len() <= ALONE;
        if few { Par::Seq } else { Par::rayon(WOKEN.min(rayon::current_num_threads())) }
    }

    /// The weights without the biases, one row per output.
    fn matrix(&self) -> MatRef<'_, f32> {
        let all = MatRef::from_row_major_slice(&self.state.learned, self.len(), self.dims + 1);
        all.subcols(0, self.dims)
    }

    /// Moves the weights along the gradient, which begins anew.
    pub(super) fn change(&mut self, recipe: &Recipe, rate: f32) {
        self.state.steps += 1;
        let fixed = self.state.learned[..self.fixed].to_vec();
        cpu::change(&mut self.state, &self.gradient, recipe.optimiser, rate, recipe.decay);
        self.state.learned[..self.fixed].copy_from_slice(&fixed);
        self.gradient.fill(0.0);
    }

    /// Bytes of its numbers.
    pub(super) fn bytes(&self) -> usize {
        4 * self.state.learned.len()
    }
}

fn view(matrix: &Matrix) -> MatRef<'_, f32> {
    MatRef::from_row_major_slice(matrix.as_slice(), matrix.rows(), matrix.cols())
}

/// Trains a head on points that stay as they are: `add_gradient` adds that of a batch of rows.
pub(super) fn fit(
    head: &mut Head,
    points: &Matrix,
    recipe: &Recipe,
    epochs: usize,
    mut add_gradient: impl FnMut(&mut Head, &Matrix, &[usize]) -> Result<()>,
) -> Result<()> {
    let batch = recipe.batch.min(points.rows()).max(1);
    head.begin();
    for epoch in 0..epochs {
        let order = ivoro::random::permutation(recipe.seed ^ epoch as u64, points.rows());
        for rows in order.chunks_exact(batch) {
            add_gradient(head, &points.select(rows), rows)?;
            head.change(recipe, recipe.rate);
        }
    }
    head.begin();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_outputs_stay_where_they_are_while_others_move() {
        let mut head = Head::new(2);
        head.grow(3, 5);
        head.set(2, &[0.5, -0.5]);
        head.fix(2);
        let before = head.values().to_vec();
        for _ in 0..3 {
            head.gradient_mut().fill(1.0);
            head.change(&Recipe::default(), 0.1);
        }
        assert_eq!(head.values()[..6], before[..6]);
        assert!(head.values()[6..].iter().zip(&before[6..]).all(|(now, then)| now < then));
    }

    #[test]
    fn a_networks_own_head_says_what_the_network_does_at_its_temperature() {
        let normalisation = crate::engine::Normalisation { mean: vec![0.2], deviation: vec![0.2] };
        let architecture = crate::network::Architecture::small(1, 8);
        let weights = Weights::random(architecture, normalisation, 7);
        let head = Head::of_network(&weights, 4, 0.1);
        let dims = weights.architecture.dimensions();
        let (matrix, biases) = (weights.get("fc.weight").unwrap(), weights.get("fc.bias").unwrap());
        let points = Matrix::new(1, dims, (0..dims).map(|at| at as f32 / 100.0).collect()).unwrap();
        let logit = |row: usize| {
            let weights = matrix[row * dims..][..dims].iter().zip(points.row(0));
            weights.map(|(a, b)| a * b).sum::<f32>() + biases[row]
        };
        let outputs = head.outputs(&points);
        assert_eq!(outputs.cols(), 2);
        for (output, row) in outputs.row(0).iter().zip([0, 4]) {
            assert!((output - logit(row) / 0.1).abs() < 1e-3, "{output}, {}", logit(row));
        }
    }

    #[test]
    fn a_temperature_divides_outputs_and_their_gradient() {
        let mut head = Head::new(2);
        head.grow(2, 5);
        let mut colder = Head { scale: 10.0, ..head.clone() };
        let points = Matrix::new(1, 2, vec![0.3, -0.8]).unwrap();
        let (one, ten) = (head.outputs(&points), colder.outputs(&points));
        let close =
            |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (10.0 * a - b).abs() < 1e-5);
        assert!(close(one.row(0), ten.row(0)));
        let push = Matrix::new(1, 2, vec![1.0, -2.0]).unwrap();
        let (one, ten) = (head.backward(&points, &push), colder.backward(&points, &push));
        assert!(close(one.row(0), ten.row(0)));
        assert!(close(head.gradient_mut(), colder.gradient_mut()));
    }
}
