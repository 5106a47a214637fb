//! Nearest class mean: `d(z, c) = ‖z − μ_c‖²`.

use rayon::prelude::*;

use super::checked::Method;
use super::intake::Phase;
use super::rows::{append, single_bytes};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::linalg::squared_distance;

#[derive(Debug, Default)]
pub(super) struct Ncm {
    means: Matrix,
}

impl Method for Ncm {
    fn absorb(&mut self, phase: &Phase<'_>, _known: usize) -> Result<()> {
        append(&mut self.means, phase.means())
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let mut out = Matrix::zeros(points.rows(), self.means.rows());
        let rows = out.as_mut_slice().par_chunks_mut(self.means.rows()).enumerate();
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
