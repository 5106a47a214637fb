//! Learning without forgetting: on the new images, the outputs of old classes stay what the network
//! of the phase before said, while the new outputs learn the new classes among themselves.

use ivoro::Matrix;

use super::head::Head;
use super::losses::{cross_entropy, distil};
use super::method::{Lesson, Loss, Method, on_outputs};
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

    fn teach(&mut self, lesson: &Lesson<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        Ok(learn_without_forgetting(lesson, points, head, lesson.before.map(|b| b.head)))
    }
}

/// The loss for any head and the one it was before.
pub(super) fn learn_without_forgetting(
    lesson: &Lesson<'_>,
    points: &Matrix,
    head: &mut Head,
    old_head: Option<&Head>,
) -> Loss {
    let all = lesson.old..head.len();
    on_outputs(points, head, |outputs, gradient| {
        let mut value = cross_entropy(outputs, lesson.labels, &all, 1.0, 1.0, gradient);
        value += keep_old(lesson, outputs, old_head, 1.0, gradient);
        value
    })
}

/// What holds the old outputs of a head where those of the one before were.
pub(super) fn keep_old(
    lesson: &Lesson<'_>,
    outputs: &Matrix,
    old_head: Option<&Head>,
    share: f64,
    gradient: &mut Matrix,
) -> f64 {
    let (Some(before), Some(old_head)) = (lesson.before, old_head) else { return 0.0 };
    let wanted = old_head.outputs(&before.points);
    distil(outputs, &wanted, &(0..lesson.old), TEMPERATURE, share * WEIGHT, gradient)
}
