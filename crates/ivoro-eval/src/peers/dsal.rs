//! DS-AL (Zhuang, He, Tong, Zeng, Chen and Lin, "DS-AL: A Dual-Stream Analytic Learning for
//! Exemplar-Free Class-Incremental Learning", AAAI 2024): ridge regression on a rectified random lift,
//! and a second one, on the same lift behind tanh, of what the first leaves over.
//!
//! With P = z·Wᵀ for random W, even over ±1/√d, and Y the one-hot labels, every phase adds to
//!
//! ```text
//! main:          H = max(0, P),   G = Hᵀ·H,    C = Hᵀ·Y,    A = (G + γ·I)⁻¹·C
//! compensation:  T = tanh(P),     G' = Tᵀ·T,   C' = Tᵀ·R,   B = (G' + γ'·I)⁻¹·C'
//! d(z, c) = −(h(z)·a_c + κ·t(z)·b_c)
//! ```
//!
//! R is Y − H·A after the main stream has learned the phase, for the classes of the phase; for earlier
//! classes it is 0 (the paper's previous label cleansing). 8192 directions, γ = γ' = 0.1 and κ = 0.6
//! are the published values for CIFAR-100. A phase is one batch here, where the published program
//! forms R batch by batch.

use rayon::prelude::*;

use super::PeerSettings;
use super::checked::Method;
use super::intake::Phase;
use super::random::{Directions, mapped};
use super::regression::Regression;
use ivoro::Matrix;
use ivoro::Result;

/// Rows lifted at a time.
const ROWS: usize = 2048;

#[derive(Debug)]
pub(super) struct Dsal {
    settings: PeerSettings,
    main: Regression,
    compensation: Regression,
}

impl Dsal {
    pub(super) fn new(settings: PeerSettings) -> Self {
        let regression = |what| Regression::new(what, settings.dsal_dim, settings.dsal_ridge);
        Self {
            settings,
            main: regression("lifted Gram matrix"),
            compensation: regression("lifted Gram matrix of the compensation"),
        }
    }

    fn project(&self, points: &Matrix) -> Matrix {
        let most = 1.0 / (points.cols() as f64).sqrt();
        Directions::Even(most).project(points, self.settings.dsal_dim, self.settings.seed)
    }
}

fn rectified(projected: &Matrix) -> Matrix {
    mapped(projected.clone(), |value| value.max(0.0))
}

/// Blocks of so many rows: the first row of each, and its rows.
fn blocks(rows: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..rows).step_by(ROWS).map(move |first| (first..rows.min(first + ROWS)).collect())
}

impl Method for Dsal {
    fn absorb(&mut self, phase: &Phase<'_>, known: usize) -> Result<()> {
        let classes = phase.members.len();
        self.main.begin_classes(known, classes);
        self.compensation.begin_classes(known, classes);
        for rows in blocks(phase.labels.len()) {
            let lifted = rectified(&self.project(&phase.points.select(&rows)));
            self.main.add(&lifted, &phase.one_hot(&rows), known);
        }
        self.main.solve()?;
        for rows in blocks(phase.labels.len()) {
            let projected = self.project(&phase.points.select(&rows));
            let fitted = self.main.predict(&rectified(&projected));
            let mut left = phase.one_hot(&rows);
            for (at, fitted) in fitted.iter_rows().enumerate() {
                let own = left.row_mut(at).iter_mut().zip(&fitted[known..]);
                own.for_each(|(left, fitted)| *left -= fitted);
            }
            self.compensation.add(&mapped(projected, f64::tanh), &left, known);
        }
        self.compensation.solve()
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let ratio = self.settings.dsal_compensation;
        let mut out = Matrix::default();
        for rows in blocks(points.rows()) {
            let projected = self.project(&points.select(&rows));
            let mut scores = self.main.predict(&rectified(&projected));
            let more = self.compensation.predict(&mapped(projected, f64::tanh));
            let pairs = scores.as_mut_slice().par_iter_mut().zip(more.as_slice());
            pairs.for_each(|(score, more)| {
                *score = -(f64::from(*score) + ratio * f64::from(*more)) as f32;
            });
            super::rows::append(&mut out, scores)?;
        }
        Ok(out)
    }

    fn bytes(&self) -> usize {
        self.main.bytes() + self.compensation.bytes()
    }
}
