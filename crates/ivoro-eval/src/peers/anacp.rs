//! AnaCP (Momeni, Xiao and Liu, "AnaCP: Toward Upper-Bound Continual Learning via Analytic
//! Contrastive Projection", NeurIPS 2025), on frozen features: regressions from random lifts to class
//! prototypes that were moved apart, then a regression on pseudo samples behind them.
//!
//! With features of length 1, class means μ_c, their plain mean μ̄ and the pooled covariance
//! Σ = S / n + 10⁻⁴·I,
//!
//! ```text
//! P = (M − μ̄)·Σ^−½ = U·D·Vᵀ,       t_c = row c of unit(U·(D + I)·Vᵀ·Σ^−½ + μ̄)
//! head i:    Z = gelu(X·W_iᵀ),      Θ_i = (ZᵀZ + λ·I)⁻¹·Σ_c (Σ z of class c)·t_cᵀ
//! o(x) = mean over i of unit(z_i·Θ_i),   H = gelu(o·Wᵀ) of 100 samples of N(μ_c, Σ) for each class
//! d(x, c) = −h(x)·((HᵀH + λ·I)⁻¹·HᵀY)_c
//! ```
//!
//! W and W_i are standard normal, with 5000 rows each; there are 3 heads and λ = 100, as in the authors'
//! program. Directions in which P is 0 stay so. There, their part is left to rounding. And phases enter
//! Σ by their samples here; there, a later phase counts for less. First-session adaptation, which trains
//! the network, has no part in a comparison on frozen features.

use super::PeerSettings;
use super::checked::Method;
use super::intake::Phase;
use super::random::{Directions, mapped};
use super::regression::Regression;
use super::rows::{append, normalised, one_hot, single_bytes, triangle};
use super::spectrum::Spectrum;
use ivoro::Matrix;
use ivoro::Result;
use ivoro::lift::normals;
use ivoro::linalg::{self, Symmetric};

/// Rows lifted at a time.
const ROWS: usize = 2048;

/// Added to the variance of every feature.
const VARIANCE: f64 = 1e-4;

/// Squared lengths below this share of the largest are rounding.
const ROUNDING: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct Anacp {
    settings: PeerSettings,
    means: Matrix,
    scatter: Symmetric,
    count: usize,
    heads: Vec<Regression>,
    /// The prototypes that were moved apart, one column a class.
    targets: Matrix,
    classifier: Regression,
}

impl Anacp {
    pub(super) fn new(settings: PeerSettings) -> Self {
        let regression = |what| Regression::new(what, settings.anacp_dim, settings.anacp_ridge);
        let heads = (0..settings.anacp_heads).map(|_| regression("lifted Gram matrix"));
        Self {
            settings,
            means: Matrix::default(),
            scatter: Symmetric::zeros(0),
            count: 0,
            heads: heads.collect(),
            targets: Matrix::default(),
            classifier: regression("lifted Gram matrix of pseudo samples"),
        }
    }

    fn lifted(&self, rows: &Matrix, which: usize) -> Matrix {
        let seed = self.settings.seed.wrapping_add(which as u64);
        mapped(Directions::Normal(1.0).project(rows, self.settings.anacp_dim, seed), gelu)
    }

    /// The pooled covariance as its eigenvalues and eigenvectors.
    fn covariance(&self) -> Result<Spectrum> {
        let mut covariance = self.scatter.clone();
        covariance.scale(1.0 / self.count as f64);
        covariance.add_diagonal(VARIANCE);
        Spectrum::of(&covariance, "shared covariance")
    }

    /// Prototypes moved apart: one row a class.
    fn spread(&self, covariance: &Spectrum) -> Result<Matrix> {
        let whole = Phase::new(&self.means, vec![0; self.means.rows()], 1);
        let middle = whole.means();
        let inverse_root = covariance.function(|value| 1.0 / value.sqrt());
        let white = linalg::times_transposed(&whole.centred(&middle), &inverse_root).transposed();
        let mut gram = Symmetric::zeros(white.cols());
        gram.add_gram(&white, 1.0);
        let spectrum = Spectrum::of(&gram, "products of prototypes")?;
        let smallest = ROUNDING * spectrum.values.first().copied().unwrap_or(0.0);
        let longer = |square: f64| if square > smallest { 1.0 + 1.0 / square.sqrt() } else { 0.0 };
        let apart = linalg::times_transposed(&spectrum.function(longer), &white);
        let mut moved = linalg::times_transposed(&apart, &inverse_root);
        for row in 0..moved.rows() {
            let pairs = moved.row_mut(row).iter_mut().zip(middle.row(0));
            pairs.for_each(|(value, middle)| *value += middle);
        }
        Ok(normalised(moved))
    }

    /// o of features of length 1.
    fn projected(&self, rows: &Matrix) -> Matrix {
        let mut sum = Matrix::zeros(rows.rows(), rows.cols());
        for (at, head) in self.heads.iter().enumerate() {
            let shares = head.predict(&self.lifted(rows, at));
            let out = normalised(linalg::times_transposed(&shares, &self.targets));
            let pairs = sum.as_mut_slice().iter_mut().zip(out.as_slice());
            pairs.for_each(|(sum, value)| *sum += value);
        }
        let heads = self.heads.len() as f32;
        sum.as_mut_slice().iter_mut().for_each(|value| *value /= heads);
        sum
    }

    /// h of features of length 1.
    fn features(&self, rows: &Matrix) -> Matrix {
        self.lifted(&self.projected(rows), self.heads.len())
    }

    /// Learns the classifier anew from samples drawn around the means of all classes.
    fn replay(&mut self, covariance: &Spectrum) -> Result<()> {
        let PeerSettings { seed, anacp_heads, anacp_samples, .. } = self.settings;
        let seed = seed.wrapping_add(anacp_heads as u64 + 1);
        let (classes, dim) = (self.means.rows(), self.means.cols());
        let root = covariance.function(f64::sqrt);
        self.classifier.begin_classes(0, classes);
        let places: Vec<usize> = (0..classes * anacp_samples).collect();
        for places in places.chunks(ROWS) {
            let mut noise = Matrix::zeros(places.len(), dim);
            for (row, &place) in places.iter().enumerate() {
                let values = noise.row_mut(row).iter_mut().zip(normals(seed, place, dim));
                values.for_each(|(to, value)| *to = value as f32);
            }
            let mut drawn = linalg::times_transposed(&noise, &root);
            let labels: Vec<usize> = places.iter().map(|place| place / anacp_samples).collect();
            for (row, &class) in labels.iter().enumerate() {
                let pairs = drawn.row_mut(row).iter_mut().zip(self.means.row(class));
                pairs.for_each(|(value, mean)| *value += mean);
            }
            let lifted = self.features(&drawn);
            self.classifier.add(&lifted, &one_hot(&labels, classes), 0);
        }
        self.classifier.solve()
    }
}

/// x·Φ(x), Φ being the distribution function of the normal distribution.
fn gelu(value: f64) -> f64 {
    0.5 * value * (1.0 + libm::erf(value * std::f64::consts::FRAC_1_SQRT_2))
}

impl Method for Anacp {
    fn absorb(&mut self, phase: &Phase<'_>, known: usize) -> Result<()> {
        let points = normalised(phase.points.clone());
        let phase = phase.with(&points);
        if known == 0 {
            self.scatter = Symmetric::zeros(points.cols());
        }
        let means = phase.means();
        self.scatter.add_gram(&phase.centred(&means), 1.0);
        self.count += phase.labels.len();
        append(&mut self.means, means)?;
        let covariance = self.covariance()?;
        self.targets = self.spread(&covariance)?.transposed();
        let rows: Vec<usize> = (0..phase.labels.len()).collect();
        for at in 0..self.heads.len() {
            self.heads[at].begin_classes(known, phase.members.len());
            for rows in rows.chunks(ROWS) {
                let lifted = self.lifted(&points.select(rows), at);
                self.heads[at].add(&lifted, &phase.one_hot(rows), known);
            }
            self.heads[at].solve()?;
        }
        self.replay(&covariance)
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let points = normalised(points.clone());
        let rows: Vec<usize> = (0..points.rows()).collect();
        let mut out = Matrix::default();
        for rows in rows.chunks(ROWS) {
            let scores = self.classifier.predict(&self.features(&points.select(rows)));
            append(&mut out, mapped(scores, |score| -score))?;
        }
        Ok(out)
    }

    /// The classifier follows from the rest.
    fn bytes(&self) -> usize {
        let heads: usize = self.heads.iter().map(Regression::bytes).sum();
        heads
            + single_bytes(self.means.as_slice().len())
            + triangle(self.scatter.dim()) * size_of::<f64>()
            + size_of_val(&self.count)
    }
}
