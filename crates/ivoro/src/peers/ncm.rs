//! Nearest class mean: `d(z, c) = ‖z − μ_c‖²`.

use rayon::prelude::*;

use super::Peer;
use super::intake::Intake;
use super::rows::{append, single_bytes, squared_distance};
use crate::error::Result;
use crate::features::Features;
use crate::learner::Learner;
use crate::matrix::Matrix;

#[derive(Debug)]
pub(super) struct Ncm {
    intake: Intake,
    means: Matrix,
}

impl Ncm {
    pub(super) fn new() -> Self {
        Self { intake: Intake::new(Peer::Ncm), means: Matrix::default() }
    }
}

impl Learner for Ncm {
    fn name(&self) -> String {
        Peer::Ncm.to_string()
    }

    fn learn(&mut self, phase: &Features) -> Result<()> {
        let phase = self.intake.phase(phase)?;
        append(&mut self.means, phase.means())?;
        self.intake.admit(&phase);
        Ok(())
    }

    fn classes(&self) -> usize {
        self.intake.classes()
    }

    fn distances(&self, queries: &Features) -> Result<Matrix> {
        let points = self.intake.queries(queries)?;
        let mut out = Matrix::zeros(points.rows(), self.classes());
        let rows = out.as_mut_slice().par_chunks_mut(self.classes().max(1)).enumerate();
        rows.for_each(|(row, out)| {
            let distances =
                self.means.iter_rows().map(|mean| squared_distance(points.row(row), mean));
            out.iter_mut().zip(distances).for_each(|(out, distance)| *out = distance);
        });
        Ok(out)
    }

    fn bytes(&self) -> usize {
        single_bytes(self.means.as_slice().len())
    }
}
