//! LoRanPAC (Peng, Elenter, Agterberg, Ribeiro and Vidal, "LoRanPAC: Low-rank Random Features and
//! Pre-trained Models for Bridging Theory and Practice in Continual Learning", ICLR 2025): the
//! regression of the smallest norm on a rectified random lift whose smallest singular directions are
//! cut off in every phase.
//!
//! With H the lifted samples of a phase, one row each, and Y their one-hot labels,
//!
//! ```text
//! C ← C + Hᵀ·Y,   [Σ·Uᵀ; H] = V·Σ'·U'ᵀ, of which the q largest stay,   d(z, c) = −h(z)·(U·Σ⁻²·Uᵀ·C)_c
//! q = min(¾ of the samples so far, ¾ of the lift, 10 000)
//! ```
//!
//! Only Σ·Uᵀ and C are kept. The published values are a quarter cut off, at most 10 000 directions
//! and a lift of 100 000; the lift is 10 000 here. A phase is added at once, where the published
//! program adds 10 000 samples at a time. There is no ridge. A lift scaled by a number, as ours is,
//! gives the same answers.

use rayon::prelude::*;

use super::PeerSettings;
use super::checked::Method;
use super::intake::{Phase, sums};
use super::regression::negated_scores;
use super::rows::{append, single, single_bytes};
use super::spectrum::Spectrum;
use ivoro::Matrix;
use ivoro::Result;
use ivoro::lift::Lift;
use ivoro::linalg::{self, Symmetric};

#[derive(Debug)]
pub(super) struct Loranpac {
    settings: PeerSettings,
    samples: usize,
    /// Σ·Uᵀ: one row a direction, as long as its singular value.
    directions: Matrix,
    /// Cᵀ: the lifted sum of every class.
    targets: Matrix,
    /// One row a class.
    weights: Matrix,
}

impl Loranpac {
    pub(super) fn new(settings: PeerSettings) -> Self {
        Self {
            settings,
            samples: 0,
            directions: Matrix::default(),
            targets: Matrix::default(),
            weights: Matrix::default(),
        }
    }

    fn lift(&self, dim: usize) -> Lift {
        Lift::new(dim, self.settings.loranpac_dim, self.settings.seed)
    }

    /// How many directions stay.
    fn rank(&self) -> usize {
        let kept = |count: usize| (count as f64 * self.settings.loranpac_kept).round() as usize;
        let PeerSettings { loranpac_dim, loranpac_rank, .. } = self.settings;
        kept(self.samples).min(kept(loranpac_dim)).min(loranpac_rank).max(1)
    }

    /// The largest directions of all rows; those whose length is nothing but rounding are none.
    fn truncated(&self, rows: &Matrix) -> Result<(Matrix, Vec<f64>)> {
        let tall = rows.rows() > rows.cols();
        let mut gram = Symmetric::zeros(rows.rows().min(rows.cols()));
        if tall {
            gram.add_gram(rows, 1.0);
        } else {
            gram.add_gram(&rows.transposed(), 1.0);
        }
        let spectrum = Spectrum::of(&gram, "lifted Gram matrix")?;
        let smallest =
            spectrum.values.first().copied().unwrap_or(0.0) * f64::from(f32::EPSILON).powi(2);
        let real = spectrum.values.iter().take_while(|&&value| value > smallest).count();
        let rank = self.rank().min(real);
        let directions =
            if tall { spectrum.vectors(rank, f64::sqrt) } else { spectrum.leading(rank, rows) };
        Ok((directions, spectrum.values[..rank].to_vec()))
    }

    /// Cᵀ·U·Σ⁻²·Uᵀ, where U is Σ·Uᵀ over Σ: twice more Σ⁻².
    fn solve(&mut self, squares: &[f64]) {
        let mut parts = linalg::times_transposed(&self.targets, &self.directions);
        parts.as_mut_slice().par_chunks_mut(squares.len().max(1)).for_each(|row| {
            for (part, square) in row.iter_mut().zip(squares) {
                *part = (f64::from(*part) / square.powi(2)) as f32;
            }
        });
        self.weights = linalg::times_transposed(&parts, &self.directions.transposed());
    }
}

impl Method for Loranpac {
    fn absorb(&mut self, phase: &Phase<'_>, _known: usize) -> Result<()> {
        let lifted = self.lift(phase.points.cols()).apply(phase.points);
        let targets = single(&sums(&lifted, &phase.members), lifted.cols());
        self.samples += phase.labels.len();
        let mut rows = std::mem::take(&mut self.directions);
        append(&mut rows, lifted)?;
        let (directions, squares) = self.truncated(&rows)?;
        self.directions = directions;
        append(&mut self.targets, targets)?;
        self.solve(&squares);
        Ok(())
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        Ok(negated_scores(self.lift(points.cols()), points, &self.weights))
    }

    fn bytes(&self) -> usize {
        let numbers = self.directions.as_slice().len() + self.targets.as_slice().len();
        single_bytes(numbers) + size_of_val(&self.samples) + size_of::<Lift>()
    }
}
