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
    let (old, all) = (0..lesson.old, lesson.old..head.len());
    on_outputs(points, head, |outputs, gradient| {
        let mut value = cross_entropy(outputs, lesson.labels, &all, 1.0, 1.0, gradient);
        if let (Some(before), Some(old_head)) = (lesson.before, old_head) {
            let wanted = old_head.outputs(&before.points);
            value += distil(outputs, &wanted, &old, TEMPERATURE, WEIGHT, gradient);
        }
        value
    })
}
