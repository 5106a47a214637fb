//! MUC: more classifiers, less forgetting. Side classifiers that disagree wherever they may are
//! distilled along with the main one, so that the network keeps more of what old classes need.

use std::ops::Range;

use ivoro::Matrix;

use super::classroom::{Classroom, Labelled};
use super::head::{Head, fit};
use super::losses::cross_entropy;
use super::lwf::learn_without_forgetting;
use super::method::{Lesson, Loss, Method, Phase, on_outputs};
use crate::error::Result;
use crate::train::Recipe;

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

    fn begin(&mut self, phase: &Phase, _: &mut Classroom<'_, '_>, head: &mut Head) -> Result<()> {
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
        let own = room.points()?;
        let strange = room.strange_points()?;
        let columns = if phase.index == 0 { 0..head.len() } else { phase.classes.clone() };
        if self.sides.is_empty() {
            self.sides = vec![head.clone(); SIDES];
        }
        set_apart(&mut self.sides, &own, &strange, &columns, room.recipe)
    }

    fn bytes(&self) -> usize {
        self.sides.iter().map(Head::bytes).sum()
    }
}

/// Each side in turn learns the labels, and is pushed away from the other on what shows no class.
fn set_apart(
    sides: &mut [Head],
    own: &Labelled,
    strange: &Matrix,
    columns: &Range<usize>,
    recipe: &Recipe,
) -> Result<()> {
    for at in 0..sides.len() {
        let other = sides[(at + 1) % sides.len()].clone();
        fit(&mut sides[at], &own.points, recipe, EPOCHS, |side, points, rows| {
            let labels: Vec<usize> = rows.iter().map(|&row| own.labels[row]).collect();
            on_outputs(points, side, |outputs, gradient| {
                cross_entropy(outputs, &labels, columns, 1.0, 1.0, gradient)
            });
            let outside = strange.select(rows);
            let theirs = other.outputs(&outside);
            on_outputs(&outside, side, |outputs, gradient| disagree(outputs, &theirs, gradient));
            Ok(())
        })?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use ivoro::random::unit;

    use super::*;

    #[test]
    fn sides_part_on_what_shows_no_class_and_agree_on_what_does() {
        // two classes along one axis; what shows none of them lies along the other
        let value = |at: usize| unit(3, at as u64) as f32;
        let labels: Vec<usize> = (0..64).map(|at| at % 2).collect();
        let own = |at: usize| [if labels[at] == 0 { 1.0 } else { -1.0 }, 0.1 * value(at)];
        let points = Matrix::new(64, 2, (0..64).flat_map(own).collect()).unwrap();
        let outside = |at: usize| [0.1 * value(at), 1.0 + value(at)];
        let strange = Matrix::new(64, 2, (0..64).flat_map(outside).collect()).unwrap();
        let mut head = Head::new(2);
        head.grow(2, 1);
        let mut sides = vec![head; SIDES];
        let recipe = Recipe { batch: 8, rate: 2e-2, decay: 0.0, ..Recipe::default() };
        let labelled = Labelled { points, labels };
        set_apart(&mut sides, &labelled, &strange, &(0..2), &recipe).unwrap();
        let apart = |points: &Matrix| -> f32 {
            let (one, other) = (sides[0].outputs(points), sides[1].outputs(points));
            let pairs = one.as_slice().iter().zip(other.as_slice());
            pairs.map(|(a, b)| (a - b).abs()).sum::<f32>() / 128.0
        };
        let (outside, inside) = (apart(&strange), apart(&labelled.points));
        assert!(outside > 0.5 && outside > 2.0 * inside, "{outside} outside, {inside} inside");
        for side in &sides {
            let outputs = side.outputs(&labelled.points);
            let right = |row: usize| usize::from(outputs.row(row)[1] > outputs.row(row)[0]);
            assert!((0..64).all(|row| right(row) == labelled.labels[row]));
        }
    }
}
