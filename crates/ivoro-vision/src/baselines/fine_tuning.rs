//! Incremental fine-tuning: cross-entropy on the new classes' images and nothing against
//! forgetting. On all images at once it is joint training.

use ivoro::Matrix;

use super::head::Head;
use super::losses::cross_entropy;
use super::method::{Lesson, Loss, Method, on_outputs};
use crate::error::Result;

pub(super) struct FineTuning;

impl Method for FineTuning {
    fn teach(&mut self, lesson: &Lesson<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let all = 0..head.len();
        Ok(on_outputs(points, head, |outputs, gradient| {
            cross_entropy(outputs, lesson.labels, &all, 1.0, 1.0, gradient)
        }))
    }
}
