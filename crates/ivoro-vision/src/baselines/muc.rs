//! MUC: more classifiers, less forgetting. Side classifiers that disagree wherever they may are
//! distilled along with the main one, so that the network keeps more of what old classes need.

use std::ops::Range;

use ivoro::Matrix;
use ivoro::random::mix;
use ivoro::softmax::Softened;
use ivoro::vectors::add;

use super::classroom::{Classroom, Labelled};
use super::head::{Head, fit};
use super::losses::cross_entropy;
use super::lwf::{keep_old, learn_without_forgetting};
use super::method::{Lesson, Loss, Method, Phase, on_outputs};
use crate::error::Result;
use crate::train::Recipe;

/// Side classifiers.
const SIDES: usize = 3;
/// Epochs in which they are made to disagree.
const EPOCHS: usize = 10;
/// Weight of their disagreement on images that show none of the classes.
const DISAGREEMENT: f64 = 1.0;

#[derive(Default)]
pub(super) struct Muc {
    /// One row an output that the main head has, but those of the phase that is being taught.
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
            let more = on_outputs(points, side, |outputs, gradient| {
                keep_old(lesson, outputs, Some(old), 1.0 / SIDES as f64, gradient)
            });
            loss.value += more.value;
            add(loss.points.as_mut_slice(), more.points.as_slice(), 1.0);
            side.change(lesson.recipe, lesson.rate);
        }
        Ok(loss)
    }

    fn begin(&mut self, _: &Phase, _: &mut Classroom<'_, '_>, _: &mut Head) -> Result<()> {
        self.before = self.sides.clone();
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
        self.sides.resize_with(SIDES, || head.without_outputs());
        for (at, side) in self.sides.iter_mut().enumerate() {
            let seed = mix(room.recipe.seed, (phase.index * SIDES + at) as u64);
            side.grow(phase.classes.end - side.len(), seed);
        }
        set_apart(&mut self.sides, &own, &strange, &phase.classes, room.recipe)
    }

    fn bytes(&self) -> usize {
        self.sides.iter().map(Head::bytes).sum()
    }
}

/// Each side in turn learns the labels of the new classes, and is pushed away from the others on
/// what shows none. Rows of older classes stay.
fn set_apart(
    sides: &mut [Head],
    own: &Labelled,
    strange: &Matrix,
    columns: &Range<usize>,
    recipe: &Recipe,
) -> Result<()> {
    for at in 0..sides.len() {
        let mut others = sides.to_vec();
        others.swap_remove(at);
        let side = &mut sides[at];
        side.fix(columns.start);
        fit(side, &own.points, recipe, EPOCHS, |side, points, rows| {
            let labels: Vec<usize> = rows.iter().map(|&row| own.labels[row]).collect();
            on_outputs(points, side, |outputs, gradient| {
                cross_entropy(outputs, &labels, columns, 1.0, 1.0, gradient)
            });
            let outside = strange.select(rows);
            for other in &others {
                let theirs = other.outputs(&outside);
                on_outputs(&outside, side, |outputs, gradient| {
                    disagree(outputs, &theirs, columns, 1.0 / others.len() as f64, gradient)
                });
            }
            Ok(())
        })?;
        side.fix(0);
    }
    Ok(())
}

/// Minus how far apart what two classifiers make of the same rows is, as chances of the classes in
/// `columns`: the sum of absolute differences, the mean over rows.
fn disagree(
    outputs: &Matrix,
    others: &Matrix,
    columns: &Range<usize>,
    weight: f64,
    gradient: &mut Matrix,
) -> f64 {
    let weight = DISAGREEMENT * weight / outputs.rows().max(1) as f64;
    let mut sum = 0.0;
    for row in 0..outputs.rows() {
        let own = Softened::of(&outputs.row(row)[columns.clone()], 1.0).chances;
        let theirs = Softened::of(&others.row(row)[columns.clone()], 1.0).chances;
        let apart = || own.iter().zip(&theirs).map(|(own, theirs)| own - theirs);
        sum -= weight * apart().map(|apart| f64::from(apart.abs())).sum::<f64>();
        // a class is pushed up or down by how much more so than the mean of all
        let mean: f32 = own.iter().zip(apart()).map(|(own, apart)| own * apart.signum()).sum();
        let to = gradient.row_mut(row)[columns.clone()].iter_mut();
        for ((to, own), apart) in to.zip(&own).zip(apart()) {
            *to -= weight as f32 * own * (apart.signum() - mean);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use ivoro::random::unit;

    use super::super::losses::tests::check;
    use super::*;

    /// How far apart two sides are about points: half of the differences of chances, on average.
    fn apart(sides: &[Head], points: &Matrix) -> f32 {
        let chances =
            |side: &Head, row: usize| Softened::of(side.outputs(points).row(row), 1.0).chances;
        let of_row = |row: usize| -> f32 {
            let (one, other) = (chances(&sides[0], row), chances(&sides[1], row));
            one.iter().zip(&other).map(|(a, b)| (a - b).abs()).sum::<f32>() / 2.0
        };
        (0..points.rows()).map(of_row).sum::<f32>() / points.rows() as f32
    }

    #[test]
    fn sides_part_on_what_shows_no_class_and_agree_on_what_does() {
        // two classes along one axis; what shows none of them lies along the other
        let value = |at: usize| unit(3, at as u64) as f32;
        let labels: Vec<usize> = (0..64).map(|at| at % 2).collect();
        let own = |at: usize| [if labels[at] == 0 { 1.0 } else { -1.0 }, 0.1 * value(at)];
        let points = Matrix::new(64, 2, (0..64).flat_map(own).collect()).unwrap();
        let outside = |at: usize| [0.1 * value(at), 1.0 + value(at)];
        let strange = Matrix::new(64, 2, (0..64).flat_map(outside).collect()).unwrap();
        let mut sides = vec![Head::new(2); SIDES];
        sides.iter_mut().enumerate().for_each(|(at, side)| side.grow(2, at as u64));
        let recipe = Recipe { batch: 8, rate: 2e-2, decay: 0.0, ..Recipe::default() };
        let labelled = Labelled { points, labels };
        set_apart(&mut sides, &labelled, &strange, &(0..2), &recipe).unwrap();
        // chances, not outputs: a number added to all outputs of a side would change nothing
        let (outside, inside) = (apart(&sides, &strange), apart(&sides, &labelled.points));
        assert!(outside > 0.4 && inside < 0.1, "{outside} outside, {inside} inside");
        for side in &sides {
            let outputs = side.outputs(&labelled.points);
            let right = |row: usize| usize::from(outputs.row(row)[1] > outputs.row(row)[0]);
            assert!((0..64).all(|row| right(row) == labelled.labels[row]));
        }
    }

    #[test]
    fn rows_of_older_classes_stay_while_new_ones_part() {
        let points = Matrix::new(8, 2, (0..16).map(|at| at as f32 / 8.0 - 1.0).collect()).unwrap();
        let mut sides = vec![Head::new(2); SIDES];
        sides.iter_mut().enumerate().for_each(|(at, side)| side.grow(4, at as u64));
        let before: Vec<Head> = sides.clone();
        let recipe = Recipe { batch: 4, ..Recipe::default() };
        let labelled = Labelled { points: points.clone(), labels: vec![2, 3, 2, 3, 2, 3, 2, 3] };
        set_apart(&mut sides, &labelled, &points, &(2..4), &recipe).unwrap();
        for (side, before) in sides.iter().zip(&before) {
            assert_eq!(side.values()[..6], before.values()[..6]);
            assert_ne!(side.values()[6..], before.values()[6..]);
        }
    }

    #[test]
    fn the_push_is_that_of_finite_differences() {
        let value = |at: usize, seed: u64| (4.0 * unit(seed, at as u64) - 2.0) as f32;
        let of =
            |seed: u64| Matrix::new(3, 5, (0..15).map(|at| value(at, seed)).collect()).unwrap();
        let other = of(2);
        check(&of(1), |outputs, gradient| disagree(outputs, &other, &(1..5), 1.7, gradient));
    }
}
