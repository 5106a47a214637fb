//! Loss and gradient of multinomial logistic regression, one pass over the samples.
//!
//! With rows x (a 1 at their end for the bias), labels y and one row of weights w a class,
//!
//! ```text
//! f(w) = 1/n · Σ (ln Σ_c exp(w_c·x) − w_y·x)  +  ½ · decay · ‖w without biases‖²
//! ```
//!
//! Rows are taken in blocks of a fixed size. Each block makes its logits, turns them into
//! residuals in place and multiplies them back, so that nothing of size samples × classes is ever
//! held; the blocks' gradients are added in their order whoever computed them.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use ivoro::Matrix;
use ivoro::softmax::residues;

/// Rows of one block.
const ROWS: usize = 512;

/// Parameters summed by one task.
const PARAMETERS: usize = 4096;

/// The function to minimise.
#[derive(Debug)]
pub(super) struct Objective<'a> {
    /// One row a sample, its last entry 1.
    pub(super) points: &'a Matrix,
    /// One class a sample.
    pub(super) labels: &'a [usize],
    /// Number of classes.
    pub(super) classes: usize,
    /// Weight decay.
    pub(super) decay: f64,
}

impl Objective<'_> {
    /// The loss at `weights`, one row a class; its gradient goes to `gradient`.
    pub(super) fn evaluate(&self, weights: &[f32], gradient: &mut [f32]) -> f64 {
        let parts: Vec<(f64, Vec<f32>)> = self
            .labels
            .par_chunks(ROWS)
            .enumerate()
            .map(|(at, labels)| self.block(at * ROWS, labels, weights))
            .collect();
        gradient.par_chunks_mut(PARAMETERS).enumerate().for_each(|(chunk, out)| {
            self.add_up(&parts, chunk * PARAMETERS, weights, out);
        });
        let loss: f64 = parts.iter().map(|(loss, _)| loss).sum();
        loss / self.labels.len() as f64 + 0.5 * self.decay * self.penalty(weights)
    }

    /// Summed loss and gradient of the rows from `first` on.
    fn block(&self, first: usize, labels: &[usize], weights: &[f32]) -> (f64, Vec<f32>) {
        let (rows, dim) = (labels.len(), self.points.cols());
        let points = &self.points.as_slice()[first * dim..(first + rows) * dim];
        let points = MatRef::from_row_major_slice(points, rows, dim);
        let weights = MatRef::from_row_major_slice(weights, self.classes, dim);
        let mut values = vec![0.0; rows * self.classes];
        let logits = MatMut::from_row_major_slice_mut(&mut values, self.classes, rows);
        matmul(logits, Accum::Replace, weights, points.transpose(), 1.0, Par::Seq);
        let loss = residues(&mut values, None, rows, |sample| labels[sample]);
        let mut gradient = vec![0.0; self.classes * dim];
        let residues = MatRef::from_row_major_slice(&values, self.classes, rows);
        let out = MatMut::from_row_major_slice_mut(&mut gradient, self.classes, dim);
        matmul(out, Accum::Replace, residues, points, 1.0, Par::Seq);
        (loss, gradient)
    }

    /// Entries `first ..` of the whole gradient.
    fn add_up(&self, parts: &[(f64, Vec<f32>)], first: usize, weights: &[f32], out: &mut [f32]) {
        let (dim, count) = (self.points.cols(), self.labels.len() as f64);
        for (at, out) in (first..).zip(out) {
            let sum: f64 = parts.iter().map(|(_, gradient)| f64::from(gradient[at])).sum();
            let decay = if at % dim == dim - 1 { 0.0 } else { self.decay };
            *out = (sum / count + decay * f64::from(weights[at])) as f32;
        }
    }

    fn penalty(&self, weights: &[f32]) -> f64 {
        let square = |row: &[f32]| -> f64 {
            row[..row.len() - 1].iter().map(|&weight| f64::from(weight).powi(2)).sum()
        };
        weights.chunks_exact(self.points.cols()).map(square).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        let mut points = Matrix::new(1100, 4, (0..4400).map(value).collect()).unwrap();
        (0..1100).for_each(|row| points.row_mut(row)[3] = 1.0);
        let labels: Vec<usize> = (0..1100).map(|row| row * 31 % 3).collect();
        let objective = Objective { points: &points, labels: &labels, classes: 3, decay: 0.1 };
        let mut weights: Vec<f32> = (100..112).map(value).collect();
        let (mut gradient, mut unused) = (vec![0.0; 12], vec![0.0; 12]);
        objective.evaluate(&weights, &mut gradient);
        for at in 0..12 {
            let centre = weights[at];
            weights[at] = centre + 0.01;
            let above = objective.evaluate(&weights, &mut unused);
            weights[at] = centre - 0.01;
            let below = objective.evaluate(&weights, &mut unused);
            weights[at] = centre;
            let slope = (above - below) / 0.02;
            assert!((slope - f64::from(gradient[at])).abs() < 1e-4, "{at}: {slope}");
        }
    }
}
