//! LwF-MC: one logistic loss per class. The target of an old class is what the network of the
//! phase before says of it; iCaRL without its exemplars.

use ivoro::Matrix;

use super::head::Head;
use super::losses::{logistic, sigmoid};
use super::method::{Loss, Method, Step, on_outputs};
use crate::error::Result;

pub(super) struct LwfMc;

impl Method for LwfMc {
    fn needs_before(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        Ok(one_against_all(step, points, head))
    }
}

/// The loss that LwF-MC and iCaRL share.
pub(super) fn one_against_all(step: &Step<'_>, points: &Matrix, head: &mut Head) -> Loss {
    let before = step.before.map(|before| before.head.outputs(&before.points));
    on_outputs(points, head, |outputs, gradient| {
        let target = |row: usize, column: usize| match &before {
            Some(before) if column < step.old => sigmoid(f64::from(before.row(row)[column])) as f32,
            _ => f32::from(u8::from(step.labels[row] == column)),
        };
        logistic(outputs, target, gradient)
    })
}
