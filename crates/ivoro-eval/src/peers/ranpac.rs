//! RanPAC (`McDonnell` et al. 2023; the recursion is that of ACIL, Zhuang et al. 2022): ridge
//! regression on a random rectified [`Lift`] of the features.
//!
//! With H the lifted samples and Y their one-hot labels, every phase adds to
//!
//! ```text
//! G = Hᵀ·H,   C = Hᵀ·Y,   W = (G + λ·I)⁻¹·C,   d(z, c) = −h(z)·w_c
//! ```
//!
//! which is exactly the regression on all samples so far. λ is chosen once, on the first phase
//! (see [`super::ridge`]), where the published program chooses anew in every phase.

use super::checked::Method;
use super::intake::{Phase, members, sums};
use super::regression::negated_scores;
use super::rows::{append, single, single_bytes, triangle};
use super::{PeerSettings, ridge};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::lift::Lift;
use ivoro::linalg::Symmetric;

/// Rows lifted at a time: 80 MB at the default dimension.
const ROWS: usize = 2048;

#[derive(Debug)]
pub(super) struct Ranpac {
    settings: PeerSettings,
    ridge: f64,
    gram: Symmetric,
    /// Cᵀ: the lifted sum of every class.
    targets: Matrix,
    /// Wᵀ: one row a class.
    weights: Matrix,
}

impl Ranpac {
    pub(super) fn new(settings: PeerSettings) -> Self {
        Self {
            settings,
            ridge: 0.0,
            gram: Symmetric::zeros(0),
            targets: Matrix::default(),
            weights: Matrix::default(),
        }
    }

    fn lift(&self, dim: usize) -> Lift {
        Lift::new(dim, self.settings.ranpac_dim, self.settings.seed)
    }

    fn begin(&mut self, phase: &Phase<'_>) {
        let lift = self.lift(phase.points.cols());
        let chosen = self.settings.ranpac_ridge;
        self.ridge = chosen.unwrap_or_else(|| ridge::choose(&lift, phase));
        self.gram = Symmetric::zeros(lift.output());
    }

    /// Adds the samples to G and returns what they are in Cᵀ.
    fn accumulate(&mut self, phase: &Phase<'_>) -> Matrix {
        let lift = self.lift(phase.points.cols());
        let classes = phase.members.len();
        let mut targets = vec![vec![0.0; lift.output()]; classes];
        for first in (0..phase.labels.len()).step_by(ROWS) {
            let rows: Vec<usize> = (first..phase.labels.len().min(first + ROWS)).collect();
            let lifted = lift.apply(&phase.points.select(&rows));
            self.gram.add_gram(&lifted, 1.0);
            let members = members(&phase.labels[first..first + rows.len()], classes);
            for (target, sum) in targets.iter_mut().zip(sums(&lifted, &members)) {
                target.iter_mut().zip(sum).for_each(|(target, sum)| *target += sum);
            }
        }
        single(&targets, lift.output())
    }

    fn solve(&mut self) -> Result<()> {
        let mut matrix = self.gram.clone();
        matrix.add_diagonal(self.ridge);
        self.weights = matrix.factor("lifted Gram matrix", self.ridge)?.solve(&self.targets);
        Ok(())
    }
}

impl Method for Ranpac {
    fn absorb(&mut self, phase: &Phase<'_>, known: usize) -> Result<()> {
        if known == 0 {
            self.begin(phase);
        }
        let targets = self.accumulate(phase);
        append(&mut self.targets, targets)?;
        self.solve()
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        Ok(negated_scores(self.lift(points.cols()), points, &self.weights))
    }

    fn bytes(&self) -> usize {
        single_bytes(self.targets.as_slice().len())
            + triangle(self.gram.dim()) * size_of::<f64>()
            + size_of::<Lift>()
    }
}
