//! Nearest class mean on the sphere: every sample is scaled to length 1 before it is averaged,
//! the mean is scaled to length 1 as well, and `d(z, c) = 1 − cos(z, μ_c)`.

use rayon::prelude::*;

use super::checked::Method;
use super::intake::Phase;
use super::rows::{append, normalised, single_bytes};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::linalg;

#[derive(Debug, Default)]
pub(super) struct NcmCosine {
    means: Matrix,
}

impl Method for NcmCosine {
    fn absorb(&mut self, phase: &Phase<'_>, _known: usize) -> Result<()> {
        let points = normalised(phase.points.clone());
        append(&mut self.means, normalised(phase.with(&points).means()))
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let points = normalised(points.clone());
        let mut out = linalg::times_transposed(&points, &self.means);
        out.as_mut_slice().par_iter_mut().for_each(|value| *value = 1.0 - *value);
        Ok(out)
    }

    fn bytes(&self) -> usize {
        single_bytes(self.means.as_slice().len())
    }
}
