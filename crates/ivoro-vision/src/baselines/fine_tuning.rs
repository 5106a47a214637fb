//! Incremental fine-tuning: cross-entropy on the new classes' images and nothing against
//! forgetting. On all images at once it is joint training.

use ivoro::Matrix;

use super::head::Head;
use super::losses::cross_entropy;
use super::method::{Loss, Method, Step, on_outputs};
use crate::error::Result;

pub(super) struct FineTuning;

impl Method for FineTuning {
    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let all = 0..head.len();
        Ok(on_outputs(points, head, |outputs, gradient| {
            cross_entropy(outputs, step.labels, &all, 1.0, 1.0, gradient)
        }))
    }
}
