//! Ridge regression that learns phase by phase: a Gram matrix and what belongs to each class.

use rayon::prelude::*;

use super::rows::{single, single_bytes, triangle};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::lift::Lift;
use ivoro::linalg::{self, Symmetric};

/// Points that are lifted together when they are measured.
const ROWS: usize = 2048;

/// The scores of lifted points, negated, since the least distance wins; one row of `weights` per class.
pub(super) fn negated_scores(lift: Lift, points: &Matrix, weights: &Matrix) -> Matrix {
    let classes = weights.rows();
    let mut out = Matrix::zeros(points.rows(), classes);
    for (block, out) in out.as_mut_slice().chunks_mut(ROWS * classes).enumerate() {
        let first = block * ROWS;
        let rows: Vec<usize> = (first..first + out.len() / classes).collect();
        let lifted = lift.apply(&points.select(&rows));
        let scores = linalg::times_transposed(&lifted, weights);
        out.par_iter_mut().zip(scores.as_slice()).for_each(|(out, score)| *out = -score);
    }
    out
}

/// `(HᵀH + λ·I)⁻¹·HᵀT` for all rows H and targets T so far.
#[derive(Debug)]
pub(super) struct Regression {
    what: &'static str,
    dim: usize,
    ridge: f64,
    gram: Symmetric,
    /// One row a class.
    sums: Vec<Vec<f64>>,
    /// One row a class.
    weights: Matrix,
}

impl Regression {
    /// Nothing is taken from memory before the first class.
    pub(super) fn new(what: &'static str, dim: usize, ridge: f64) -> Self {
        let weights = Matrix::default();
        Self { what, dim, ridge, gram: Symmetric::zeros(0), sums: Vec::new(), weights }
    }

    /// Makes room for the classes of a phase. What an interrupted phase had begun is gone.
    pub(super) fn begin_classes(&mut self, known: usize, classes: usize) {
        if known == 0 {
            self.gram = Symmetric::zeros(self.dim);
        }
        self.sums.truncate(known);
        self.sums.resize(known + classes, vec![0.0; self.dim]);
    }

    /// Adds rows; column j of the targets belongs to class `first + j`.
    pub(super) fn add(&mut self, rows: &Matrix, targets: &Matrix, first: usize) {
        self.gram.add_gram(rows, 1.0);
        let sums = linalg::times_transposed(&targets.transposed(), &rows.transposed());
        for (to, sum) in self.sums[first..].iter_mut().zip(sums.iter_rows()) {
            to.iter_mut().zip(sum).for_each(|(to, &value)| *to += f64::from(value));
        }
    }

    pub(super) fn solve(&mut self) -> Result<()> {
        let mut matrix = self.gram.clone();
        matrix.add_diagonal(self.ridge);
        let sums = single(&self.sums, self.dim);
        self.weights = matrix.factor(self.what, self.ridge)?.solve(&sums);
        Ok(())
    }

    pub(super) fn predict(&self, rows: &Matrix) -> Matrix {
        linalg::times_transposed(rows, &self.weights)
    }

    /// Bytes of what must be kept; weights follow from it.
    pub(super) fn bytes(&self) -> usize {
        triangle(self.gram.dim()) * size_of::<f64>() + single_bytes(self.sums.len() * self.dim)
    }
}
