//! Streaming linear discriminant analysis (Hayes and Kanan 2020): a mean a class and one
//! covariance for all.
//!
//! Every phase adds the scatter of its samples around their class means to S and their number to
//! n. With Σ = S / n and shrinkage ε,
//!
//! ```text
//! Λ = ((1 − ε)·Σ + ε·I)⁻¹,   w_c = Λ·μ_c,   b_c = −½ μ_cᵀ·Λ·μ_c,   d(z, c) = −(w_c·z + b_c)
//! ```
//!
//! All samples of a class arrive in one phase, so each is centred on the final mean of its class;
//! the original, one sample at a time, centres on the mean so far. The order of phases is of no
//! consequence here.

use rayon::prelude::*;

use super::PeerSettings;
use super::checked::Method;
use super::intake::Phase;
use super::rows::{append, single_bytes, triangle};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::linalg::{self, Symmetric};

#[derive(Debug)]
pub(super) struct Slda {
    settings: PeerSettings,
    means: Matrix,
    scatter: Symmetric,
    count: usize,
    weights: Matrix,
    biases: Vec<f64>,
}

impl Slda {
    pub(super) fn new(settings: PeerSettings) -> Self {
        Self {
            settings,
            means: Matrix::default(),
            scatter: Symmetric::zeros(0),
            count: 0,
            weights: Matrix::default(),
            biases: Vec::new(),
        }
    }

    fn solve(&mut self) -> Result<()> {
        let shrinkage = self.settings.slda_shrinkage;
        let mut covariance = self.scatter.clone();
        covariance.scale((1.0 - shrinkage) / self.count as f64);
        covariance.add_diagonal(shrinkage);
        self.weights = covariance.factor("shared covariance", shrinkage)?.solve(&self.means);
        let product = |(mean, weight): (&f32, &f32)| f64::from(*mean) * f64::from(*weight);
        let bias = |(mean, weights): (&[f32], &[f32])| {
            -0.5 * mean.iter().zip(weights).map(product).sum::<f64>()
        };
        self.biases = self.means.iter_rows().zip(self.weights.iter_rows()).map(bias).collect();
        Ok(())
    }
}

impl Method for Slda {
    fn absorb(&mut self, phase: &Phase<'_>, _known: usize) -> Result<()> {
        let means = phase.means();
        if self.count == 0 {
            self.scatter = Symmetric::zeros(means.cols());
        }
        self.scatter.add_gram(&phase.centred(&means), 1.0);
        self.count += phase.labels.len();
        append(&mut self.means, means)?;
        self.solve()
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let mut out = linalg::times_transposed(points, &self.weights);
        out.as_mut_slice().par_chunks_mut(self.means.rows()).for_each(|row| {
            let pairs = row.iter_mut().zip(&self.biases);
            pairs.for_each(|(value, bias)| *value = -(f64::from(*value) + bias) as f32);
        });
        Ok(out)
    }

    fn bytes(&self) -> usize {
        single_bytes(self.means.as_slice().len())
            + triangle(self.scatter.dim()) * size_of::<f64>()
            + size_of_val(&self.count)
    }
}
