//! MUC: more classifiers, less forgetting. Side classifiers of the phase before, which disagree
//! wherever they may, are distilled along with the main one, so that the network keeps more of what
//! its classes need.

use ivoro::Matrix;
use ivoro::random::mix;
use ivoro::softmax::Softened;
use ivoro::vectors::add;

use super::head::{Head, fit};
use super::losses::cross_entropy;
use super::lwf::{keep_old, learn_without_forgetting};
use super::method::{Loss, Method, Phase, Step, on_outputs};
use super::phase_data::{Labelled, PhaseData};
use crate::error::Result;
use crate::recipe::Recipe;

/// Side classifiers.
const SIDES: usize = 3;
/// Epochs in which they are made to disagree.
const EPOCHS: usize = 10;

#[derive(Default)]
pub(super) struct Muc {
    /// Phases before the one that is trained.
    earlier: usize,
    /// Classifiers among the classes of the newest phase that is finished.
    sides: Vec<Head>,
    /// The same as they were when that phase ended.
    before: Vec<Head>,
}

impl Method for Muc {
    fn needs_before(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let weights = weights(self.earlier);
        let mut loss = learn_without_forgetting(step, points, head, weights);
        let Some(before) = step.before else { return Ok(loss) };
        for (side, old) in self.sides.iter_mut().zip(&self.before) {
            let more = on_outputs(points, side, |outputs, gradient| {
                keep_old(outputs, before, old, weights.1 / SIDES as f64, gradient)
            });
            loss.value += more.value;
            add(loss.points.as_mut_slice(), more.points.as_slice(), 1.0);
            side.change(step.recipe, step.rate);
        }
        Ok(loss)
    }

    fn begin(&mut self, phase: &Phase, _: &mut PhaseData<'_, '_>, _: &mut Head) -> Result<()> {
        self.earlier = phase.index;
        self.before = self.sides.clone();
        Ok(())
    }

    fn finish(
        &mut self,
        phase: &Phase,
        data: &mut PhaseData<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        let Labelled { points, mut labels } = data.points()?;
        labels.iter_mut().for_each(|label| *label -= phase.classes.start);
        let strange = data.strange_points()?;
        let side = |at: usize| {
            let mut side = head.without_outputs();
            let seed = mix(data.recipe.seed, (phase.index * SIDES + at) as u64);
            side.grow(phase.classes.len(), seed);
            side
        };
        self.sides = (0..SIDES).map(side).collect();
        set_apart(&mut self.sides, &Labelled { points, labels }, &strange, data.recipe)
    }

    fn bytes(&self) -> usize {
        self.sides.iter().map(Head::bytes).sum()
    }
}

/// What learning and keeping weigh behind so many phases: every phase counts alike.
fn weights(earlier: usize) -> (f64, f64) {
    let keep = earlier as f64 / (earlier + 1) as f64;
    (1.0 - keep, keep)
}

/// Each side in turn learns the labels, and is pushed away from the others on what shows no class.
fn set_apart(sides: &mut [Head], own: &Labelled, strange: &Matrix, recipe: &Recipe) -> Result<()> {
    for at in 0..sides.len() {
        let mut others = sides.to_vec();
        others.swap_remove(at);
        fit(&mut sides[at], &own.points, recipe, EPOCHS, |side, points, rows| {
            let labels: Vec<usize> = rows.iter().map(|&row| own.labels[row]).collect();
            let all = 0..side.len();
            on_outputs(points, side, |outputs, gradient| {
                cross_entropy(outputs, &labels, &all, 1.0, 1.0, gradient)
            });
            let outside = strange.select(rows);
            for other in &others {
                let theirs = other.outputs(&outside);
                on_outputs(&outside, side, |outputs, gradient| {
                    disagree(outputs, &theirs, gradient)
                });
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Minus how far apart what two classifiers make of the same rows is, as chances of the classes: the
/// mean of absolute differences.
fn disagree(outputs: &Matrix, others: &Matrix, gradient: &mut Matrix) -> f64 {
    let weight = 1.0 / outputs.as_slice().len().max(1) as f64;
    let mut sum = 0.0;
    for row in 0..outputs.rows() {
        let own = Softened::of(outputs.row(row), 1.0).chances;
        let theirs = Softened::of(others.row(row), 1.0).chances;
        let apart = || own.iter().zip(&theirs).map(|(own, theirs)| own - theirs);
        sum -= weight * apart().map(|apart| f64::from(apart.abs())).sum::<f64>();
        // a class is pushed up or down by how much more so than the mean of all
        let mean: f32 = own.iter().zip(apart()).map(|(own, apart)| own * apart.signum()).sum();
        for ((to, own), apart) in gradient.row_mut(row).iter_mut().zip(&own).zip(apart()) {
            *to -= weight as f32 * own * (apart.signum() - mean);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use ivoro::random::unit;

    use super::super::losses::tests::{check, some};
    use super::super::method::Before;
    use super::super::tests::{dataset, network, trainer_of};
    use super::*;
    use crate::baselines::Baseline;

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
        set_apart(&mut sides, &labelled, &strange, &recipe).unwrap();
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
    fn the_more_phases_there_are_the_more_keeping_weighs() {
        assert_eq!([0, 1, 3].map(weights), [(1.0, 0.0), (0.5, 0.5), (0.25, 0.75)]);
    }

    #[test]
    fn learning_keeping_and_the_mean_of_sides_have_their_weights() {
        let (points, labels) = (some(6, 3, 1), [2, 3, 2, 3, 2, 3]);
        let head_of = |outputs: usize, seed: u64| {
            let mut head = Head::new(3);
            head.grow(outputs, seed);
            head
        };
        let (old, recipe) = (head_of(2, 1), Recipe::default());
        let before = Before { points: some(6, 3, 2), head: &old };
        let step = Step {
            labels: &labels,
            before: Some(&before),
            old: 2,
            recipe: &recipe,
            rate: 0.0,
            index: 0,
        };
        let heads =
            |seed: u64| -> Vec<Head> { (seed..seed + 3).map(|at| head_of(2, at)).collect() };
        let (sides, sides_before) = (heads(10), heads(20));
        let mut unused = Matrix::zeros(6, 4);
        let outputs = head_of(4, 3).outputs(&points);
        let learned = cross_entropy(&outputs, &labels, &(2..4), 1.0, 1.0, &mut unused);
        let main = keep_old(&outputs, &before, &old, 1.0, &mut unused);
        let kept = |(side, old): (&Head, &Head)| {
            keep_old(&side.outputs(&points), &before, old, 1.0, &mut Matrix::zeros(6, 2))
        };
        let aside = sides.iter().zip(&sides_before).map(kept).sum::<f64>() / 3.0;
        for earlier in [1, 3] {
            let mut muc = Muc { earlier, sides: sides.clone(), before: sides_before.clone() };
            let found = muc.loss(&step, &points, &mut head_of(4, 3)).unwrap().value;
            let share = earlier as f64 / (earlier + 1) as f64;
            let wanted = (1.0 - share) * learned + share * (main + aside);
            assert!((found - wanted).abs() < 1e-9, "{earlier}: {found}, {wanted}");
        }
    }

    #[test]
    fn sides_are_of_the_newest_phase_alone() {
        let data = dataset();
        let network = network(&data);
        let trainer = trainer_of(&data, &network, vec![0..4, 4..6]);
        let mut muc = Muc::default();
        trainer.run_method(&mut muc, &[Baseline::Muc], &mut |_| true).unwrap();
        assert_eq!((muc.earlier, muc.sides.len(), muc.before.len()), (1, SIDES, SIDES));
        assert!(muc.sides.iter().all(|side| side.len() == 2));
        assert!(muc.before.iter().all(|side| side.len() == 4));
    }

    #[test]
    fn the_push_is_that_of_finite_differences() {
        let other = some(3, 5, 2);
        check(&some(3, 5, 1), |outputs, gradient| disagree(outputs, &other, gradient));
    }
}
