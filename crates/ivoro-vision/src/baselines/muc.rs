//! MUC: more classifiers, less forgetting. Side classifiers that disagree wherever they may are
//! distilled along with the main one, so that the network keeps more of what old classes need.

use ivoro::Matrix;

use super::classroom::Classroom;
use super::head::{Head, fit};
use super::losses::cross_entropy;
use super::lwf::learn_without_forgetting;
use super::method::{Lesson, Loss, Method, Phase, on_outputs};
use crate::engine::Student;
use crate::error::Result;

/// Side classifiers.
const SIDES: usize = 2;
/// Epochs in which they are made to disagree.
const EPOCHS: usize = 10;
/// Weight of their disagreement on images that show none of the classes.
const DISAGREEMENT: f32 = 1.0;

#[derive(Default)]
pub(super) struct Muc {
    sides: Vec<Head>,
    /// The same as they were after the phase before.
    before: Vec<Head>,
}

impl Method for Muc {
    fn needs_before(&self) -> bool {
        true
    }

    fn teach(&mut self, lesson: &Lesson<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let before = lesson.before.map(|before| before.head);
        let mut loss = learn_without_forgetting(lesson, points, head, before);
        for (side, old) in self.sides.iter_mut().zip(&self.before) {
            let more = learn_without_forgetting(lesson, points, side, Some(old));
            loss.value += more.value;
            let sums = loss.points.as_mut_slice().iter_mut().zip(more.points.as_slice());
            sums.for_each(|(sum, value)| *sum += value);
            side.change(lesson.recipe, lesson.rate);
        }
        Ok(loss)
    }

    fn begin(&mut self, phase: &Phase, _: &mut dyn Student, head: &mut Head) -> Result<()> {
        self.before = self.sides.clone();
        for (at, side) in self.sides.iter_mut().enumerate() {
            side.grow(head.len() - side.len(), (phase.index * SIDES + at) as u64);
        }
        Ok(())
    }

    fn finish(
        &mut self,
        phase: &Phase,
        room: &mut Classroom<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        let own = room.points(&phase.classes)?;
        let strange = room.strange_points(&phase.classes)?;
        let columns = if phase.index == 0 { 0..head.len() } else { phase.classes.clone() };
        if self.sides.is_empty() {
            self.sides = vec![head.clone(); SIDES];
        }
        for at in 0..SIDES {
            // Each in turn is pushed away from the other on what shows no class.
            let other = self.sides[(at + 1) % SIDES].clone();
            fit(&mut self.sides[at], &own.points, room.recipe, EPOCHS, |side, points, rows| {
                let labels: Vec<usize> = rows.iter().map(|&row| own.labels[row]).collect();
                on_outputs(points, side, |outputs, gradient| {
                    cross_entropy(outputs, &labels, &columns, 1.0, 1.0, gradient)
                });
                let outside = strange.select(rows);
                let theirs = other.outputs(&outside);
                on_outputs(&outside, side, |outputs, gradient| {
                    disagree(outputs, &theirs, gradient)
                });
                Ok(())
            })?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.sides.iter().map(Head::bytes).sum()
    }
}

/// Minus the mean absolute difference of two classifiers' outputs.
fn disagree(outputs: &Matrix, others: &Matrix, gradient: &mut Matrix) -> f64 {
    let weight = DISAGREEMENT / outputs.as_slice().len().max(1) as f32;
    let mut sum = 0.0;
    let values = outputs.as_slice().iter().zip(others.as_slice());
    for (gradient, (own, other)) in gradient.as_mut_slice().iter_mut().zip(values) {
        sum -= f64::from(weight * (own - other).abs());
        *gradient -= weight * if own == other { 1.0 } else { (own - other).signum() };
    }
    sum
}
