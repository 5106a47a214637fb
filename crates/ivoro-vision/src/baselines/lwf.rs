//! Learning without forgetting: on the new images, the outputs of old classes stay what the network
//! of the phase before said, while the new outputs learn the new classes among themselves.

use ivoro::Matrix;

use super::head::Head;
use super::losses::{cross_entropy, distil};
use super::method::{Before, Loss, Method, Step, on_outputs};
use crate::error::Result;

/// Softens both sides of the distillation.
pub(super) const TEMPERATURE: f32 = 2.0;
/// Weight of the distillation.
const WEIGHT: f64 = 3.0;

pub(super) struct Lwf;

impl Method for Lwf {
    fn needs_before(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        Ok(learn_without_forgetting(step, points, head, (1.0, WEIGHT)))
    }
}

/// The loss of a head that learns new classes and is distilled from the one before, with the weights
/// of both.
pub(super) fn learn_without_forgetting(
    step: &Step<'_>,
    points: &Matrix,
    head: &mut Head,
    (learn, keep): (f64, f64),
) -> Loss {
    let new = step.old..head.len();
    on_outputs(points, head, |outputs, gradient| {
        let mut value = cross_entropy(outputs, step.labels, &new, 1.0, learn, gradient);
        if let Some(before) = step.before {
            value += keep_old(outputs, before, before.head, keep, gradient);
        }
        value
    })
}

/// What holds outputs where those that `old` has of the points before were.
pub(super) fn keep_old(
    outputs: &Matrix,
    before: &Before<'_>,
    old: &Head,
    weight: f64,
    gradient: &mut Matrix,
) -> f64 {
    let wanted = old.outputs(&before.points);
    distil(outputs, &wanted, &(0..wanted.cols()), TEMPERATURE, weight, gradient)
}
