//! iCaRL: one logistic loss per class, old ones distilled, with kept images trained on again.
//! It answers by its outputs (CNN) or by the nearest mean of the kept images (NME).

use ivoro::Matrix;

use super::Baseline;
use super::exemplars::Memory;
use super::head::Head;
use super::losses::{direction, normalised};
use super::lwf_mc::one_against_all;
use super::method::{Loss, Method, Phase, Step, by_outputs};
use super::phase_data::PhaseData;
use crate::error::Result;

#[derive(Default)]
pub(super) struct Icarl {
    memory: Memory,
    /// Mean of each class's kept images, each at length 1, under the present network.
    means: Vec<Vec<f32>>,
}

impl Method for Icarl {
    fn memory(&self) -> Option<&Memory> {
        Some(&self.memory)
    }

    fn needs_before(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        Ok(one_against_all(step, points, head))
    }

    fn finish(&mut self, _: &Phase, data: &mut PhaseData<'_, '_>, _: &mut Head) -> Result<()> {
        data.keep(&mut self.memory)?;
        let points = data.points_kept(&self.memory)?;
        self.means = points.iter().map(direction).collect::<Result<_>>()?;
        Ok(())
    }

    fn distances(&self, reading: Baseline, points: &Matrix, head: &Head) -> Matrix {
        if reading == Baseline::IcarlCnn {
            return by_outputs(points, head, self.sisters());
        }
        let (unit, _) = normalised(points);
        let mut distances = Matrix::zeros(points.rows(), self.means.len());
        for row in 0..points.rows() {
            for (to, mean) in distances.row_mut(row).iter_mut().zip(&self.means) {
                // a class whose images are all broken is no one's nearest
                *to = match mean.len() {
                    0 => f32::MAX,
                    _ => unit.row(row).iter().zip(mean).map(|(a, b)| (a - b).powi(2)).sum(),
                };
            }
        }
        distances
    }

    fn is_linear(&self) -> bool {
        false
    }

    fn bytes(&self) -> usize {
        4 * self.means.iter().map(Vec::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_without_images_is_no_ones_nearest() {
        let icarl = Icarl { means: vec![Vec::new(), vec![1.0, 0.0]], ..Icarl::default() };
        let points = Matrix::new(1, 2, vec![-3.0, 0.0]).unwrap();
        let distances = icarl.distances(Baseline::IcarlNme, &points, &Head::new(2));
        assert_eq!(distances.row(0), [f32::MAX, 4.0]);
    }
}
