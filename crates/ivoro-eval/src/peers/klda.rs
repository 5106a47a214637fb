//! KLDA (Momeni, Mazumder and Liu, "Continual Learning Using a Kernel-Based Method Over Foundation
//! Models", AAAI 2025): linear discriminant analysis on random Fourier features of the RBF kernel.
//!
//! ```text
//! φ(z) = √(2/D) · cos(W·z + b),   w_ij ~ N(0, 2γ),   b_j even over [0, 2π)
//! S = Σ (φ − μ_c)·(φ − μ_c)ᵀ,     d(z, c) = (φ(z) − μ_c)ᵀ·(S + r·I)⁻¹·(φ(z) − μ_c)
//! ```
//!
//! S is the sum over all samples, not their mean, as in the authors' program. D = 5000 and r = 10⁻³
//! are theirs. So are γ = 10⁻⁴ for DINOv2 and 10⁻² for MoCo v3: γ depends on how long the features
//! are. For other networks it is chosen on the first phase, as is RanPAC's ridge, among powers of
//! ten: each fifth sample of a class is held out, and the γ with the most right answers is taken.

use rayon::prelude::*;

use super::PeerSettings;
use super::checked::Method;
use super::intake::Phase;
use super::random::Directions;
use super::ridge::parts;
use super::rows::{append, single_bytes, triangle};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::linalg::{self, Symmetric};
use ivoro::random::unit;
use ivoro::vectors::least;

/// Exponents of ten tried for γ.
const EXPONENTS: std::ops::RangeInclusive<i32> = -6..=0;

/// Used when no class has enough samples to hold one out: the published value of one network.
const FALLBACK: f64 = 1e-2;

/// Rows projected at a time.
const ROWS: usize = 2048;

#[derive(Debug)]
pub(super) struct Klda {
    settings: PeerSettings,
    gamma: f64,
    means: Matrix,
    scatter: Symmetric,
    weights: Matrix,
    /// `μ_cᵀ·(S + r·I)⁻¹·μ_c`.
    lengths: Vec<f64>,
}

impl Klda {
    pub(super) fn new(settings: PeerSettings) -> Self {
        Self {
            settings,
            gamma: 0.0,
            means: Matrix::default(),
            scatter: Symmetric::zeros(0),
            weights: Matrix::default(),
            lengths: Vec::new(),
        }
    }

    /// φ less φ(0), which changes no distance: a small γ leaves little but that constant.
    fn features(&self, points: &Matrix) -> Matrix {
        let PeerSettings { klda_dim, seed, .. } = self.settings;
        let scale = (2.0 / klda_dim as f64).sqrt();
        let directions = Directions::Normal((2.0 * self.gamma).sqrt());
        let mut angles = directions.project(points, klda_dim, seed);
        let shift = |at| std::f64::consts::TAU * unit(seed.wrapping_add(1), at);
        let shifts: Vec<(f64, f64)> =
            (0..klda_dim as u64).map(shift).map(|shift| (shift, shift.cos())).collect();
        angles.as_mut_slice().par_chunks_exact_mut(klda_dim).for_each(|row| {
            for (value, (shift, origin)) in row.iter_mut().zip(&shifts) {
                *value = (scale * ((f64::from(*value) + shift).cos() - origin)) as f32;
            }
        });
        angles
    }

    /// The γ under which most of the held-out samples are told right; the smaller one if two are equal.
    fn choose(&self, phase: &Phase<'_>) -> Result<f64> {
        let (fitted, held) = parts(&phase.members);
        if held.is_empty() {
            return Ok(FALLBACK);
        }
        let (part, queries) = (phase.points.select(&fitted), phase.points.select(&held));
        let labels = fitted.iter().map(|&row| phase.labels[row]).collect();
        let part = Phase::new(&part, labels, phase.members.len());
        let mut best = (0, FALLBACK);
        for gamma in EXPONENTS.map(|exponent| 10_f64.powi(exponent)) {
            let mut candidate = Self::new(self.settings);
            candidate.gamma = gamma;
            candidate.add(&part)?;
            let distances = candidate.measure(&queries)?;
            let rows = distances.iter_rows().zip(&held);
            let right = rows.filter(|(row, at)| least(row) == phase.labels[**at]).count();
            if right > best.0 {
                best = (right, gamma);
            }
        }
        Ok(best.1)
    }

    fn add(&mut self, phase: &Phase<'_>) -> Result<()> {
        if self.means.rows() == 0 {
            self.scatter = Symmetric::zeros(self.settings.klda_dim);
        }
        let features = self.features(phase.points);
        let phase = phase.with(&features);
        let means = phase.means();
        self.scatter.add_gram(&phase.centred(&means), 1.0);
        append(&mut self.means, means)?;
        let mut matrix = self.scatter.clone();
        matrix.add_diagonal(self.settings.klda_ridge);
        let factor = matrix.factor("scatter of Fourier features", self.settings.klda_ridge)?;
        self.weights = factor.solve(&self.means);
        let product = |(mean, weight): (&f32, &f32)| f64::from(*mean) * f64::from(*weight);
        let length =
            |(mean, weights): (&[f32], &[f32])| mean.iter().zip(weights).map(product).sum::<f64>();
        self.lengths = self.means.iter_rows().zip(self.weights.iter_rows()).map(length).collect();
        Ok(())
    }
}

impl Method for Klda {
    fn absorb(&mut self, phase: &Phase<'_>, known: usize) -> Result<()> {
        if known == 0 {
            self.gamma = match self.settings.klda_gamma {
                Some(gamma) => gamma,
                None => self.choose(phase)?,
            };
        }
        self.add(phase)
    }

    /// Without `φᵀ·(S + r·I)⁻¹·φ`, which is the same for all classes.
    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let classes = self.means.rows();
        let mut out = Matrix::zeros(points.rows(), classes);
        for (block, out) in out.as_mut_slice().chunks_mut(ROWS * classes).enumerate() {
            let first = block * ROWS;
            let rows: Vec<usize> = (first..first + out.len() / classes).collect();
            let features = self.features(&points.select(&rows));
            let products = linalg::times_transposed(&features, &self.weights);
            let pairs =
                out.par_chunks_exact_mut(classes).zip(products.as_slice().par_chunks(classes));
            pairs.for_each(|(out, products)| {
                for ((out, product), length) in out.iter_mut().zip(products).zip(&self.lengths) {
                    *out = (length - 2.0 * f64::from(*product)) as f32;
                }
            });
        }
        Ok(out)
    }

    fn bytes(&self) -> usize {
        single_bytes(self.means.as_slice().len())
            + triangle(self.scatter.dim()) * size_of::<f64>()
            + size_of_val(&self.gamma)
    }
}
