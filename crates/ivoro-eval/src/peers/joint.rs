//! Logistic regression on every feature of every phase, fitted anew after each: what a linear
//! classifier reaches on these features if it may keep all samples. It is a reference, not a
//! bound: methods that are not linear in the features can do better.
//!
//! Features are standardised by the mean and standard deviation of all samples, for conditioning
//! and so that one weight decay fits all networks; a feature that never varies is left as it is.
//! `d(z, c) = −(w_c·z' + b_c)` for the standardised z'. See [`super::logistic`] for the loss.

use rayon::prelude::*;

use super::PeerSettings;
use super::checked::Method;
use super::intake::{Phase, sums};
use super::logistic::Objective;
use super::rows::{append, single_bytes};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::lbfgs;
use ivoro::linalg;

#[derive(Debug)]
pub(super) struct Joint {
    settings: PeerSettings,
    points: Matrix,
    labels: Vec<usize>,
    scaling: Scaling,
    /// One row a class, its bias last.
    weights: Matrix,
}

impl Joint {
    pub(super) fn new(settings: PeerSettings) -> Self {
        Self {
            settings,
            points: Matrix::default(),
            labels: Vec::new(),
            scaling: Scaling::default(),
            weights: Matrix::default(),
        }
    }

    fn fit(&mut self, classes: usize) -> Result<()> {
        self.scaling = Scaling::of(&self.points);
        let points = self.scaling.apply(&self.points);
        let decay = self.settings.joint_weight_decay;
        let objective = Objective { points: &points, labels: &self.labels, classes, decay };
        let start = vec![0.0; classes * points.cols()];
        let evaluate =
            |weights: &[f32], gradient: &mut [f32]| objective.evaluate(weights, gradient);
        let (iterations, tolerance) =
            (self.settings.joint_iterations, self.settings.joint_tolerance);
        let outcome = lbfgs::minimise(start, iterations, tolerance, evaluate);
        self.weights = Matrix::new(classes, points.cols(), outcome.x)?;
        Ok(())
    }
}

impl Method for Joint {
    fn absorb(&mut self, phase: &Phase<'_>, known: usize) -> Result<()> {
        append(&mut self.points, phase.points.clone())?;
        self.labels.extend(phase.labels.iter().map(|label| known + label));
        self.fit(known + phase.members.len())
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let mut out = linalg::times_transposed(&self.scaling.apply(points), &self.weights);
        out.as_mut_slice().par_iter_mut().for_each(|value| *value = -*value);
        Ok(out)
    }

    fn bytes(&self) -> usize {
        single_bytes(self.points.as_slice().len()) + self.labels.len() * size_of::<u32>()
    }
}

/// Mean and reciprocal standard deviation of every feature.
#[derive(Debug, Default)]
struct Scaling {
    means: Vec<f64>,
    factors: Vec<f64>,
}

impl Scaling {
    fn of(points: &Matrix) -> Self {
        let count = points.rows() as f64;
        let all: Vec<Vec<usize>> = vec![(0..points.rows()).collect()];
        let means: Vec<f64> = sums(points, &all)[0].iter().map(|sum| sum / count).collect();
        let mut squares = vec![0.0; points.cols()];
        for row in points.iter_rows() {
            for ((square, &value), mean) in squares.iter_mut().zip(row).zip(&means) {
                *square += (f64::from(value) - mean).powi(2);
            }
        }
        let factor = |&square: &f64| if square > 0.0 { (count / square).sqrt() } else { 1.0 };
        let factors = squares.iter().map(factor).collect();
        Self { means, factors }
    }

    /// Standardised rows with a 1 at their end for the bias.
    fn apply(&self, points: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(points.rows(), points.cols() + 1);
        let rows = out.as_mut_slice().par_chunks_exact_mut(points.cols() + 1).enumerate();
        rows.for_each(|(at, row)| {
            let values = points.row(at).iter().zip(&self.means).zip(&self.factors);
            for (out, ((&value, mean), factor)) in row.iter_mut().zip(values) {
                *out = ((f64::from(value) - mean) * factor) as f32;
            }
            row[points.cols()] = 1.0;
        });
        out
    }
}
