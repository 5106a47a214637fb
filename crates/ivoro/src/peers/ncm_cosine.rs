//! Nearest class mean on the sphere: every sample is scaled to length 1 before it is averaged,
//! the mean is scaled to length 1 as well, and `d(z, c) = 1 − cos(z, μ_c)`.

use rayon::prelude::*;

use super::Peer;
use super::intake::{Intake, Phase};
use super::rows::{append, normalised, single_bytes};
use crate::error::Result;
use crate::features::Features;
use crate::learner::Learner;
use crate::linalg;
use crate::matrix::Matrix;

#[derive(Debug)]
pub(super) struct NcmCosine {
    intake: Intake,
    means: Matrix,
}

impl NcmCosine {
    pub(super) fn new() -> Self {
        Self { intake: Intake::new(Peer::NcmCosine), means: Matrix::default() }
    }
}

impl Learner for NcmCosine {
    fn name(&self) -> String {
        Peer::NcmCosine.to_string()
    }

    fn learn(&mut self, phase: &Features) -> Result<()> {
        let phase = self.intake.phase(phase)?;
        let points = normalised(phase.points.clone());
        let phase = Phase { points: &points, ..phase };
        append(&mut self.means, normalised(phase.means()))?;
        self.intake.admit(&phase);
        Ok(())
    }

    fn classes(&self) -> usize {
        self.intake.classes()
    }

    fn distances(&self, queries: &Features) -> Result<Matrix> {
        let points = normalised(self.intake.queries(queries)?.clone());
        if self.classes() == 0 {
            return Ok(Matrix::zeros(points.rows(), 0));
        }
        let mut out = linalg::times_transposed(&points, &self.means);
        out.as_mut_slice().par_iter_mut().for_each(|value| *value = 1.0 - *value);
        Ok(out)
    }

    fn bytes(&self) -> usize {
        single_bytes(self.means.as_slice().len())
    }
}
