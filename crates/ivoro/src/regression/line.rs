//! The loss along one direction, for the line search.

use std::ops::RangeInclusive;

use rayon::prelude::*;

use super::{Blocks, Objective, Penalty, products};
use crate::lbfgs::{LineObjective, moved};
use crate::softmax::{add_row_sums, residues};
use crate::vectors::{add, dot, vectorised};

/// Steps after which logits are computed from the samples again: until then they are moved, and
/// every move rounds.
const FRESH: usize = 32;

/// The objective along lines. In the direction D the logits of W + tD are X·Wᵀ + t·X·Dᵀ and a
/// bias that is quadratic in t, so that any number of lengths t can be tried for one pass over
/// the samples. A length is therefore sought until the slope has almost gone.
pub(super) struct Lines<'a> {
    objective: &'a Objective<'a>,
    blocks: Blocks,
    /// X·Wᵀ and X·Dᵀ, block by block.
    logits: Vec<f32>,
    shift: Vec<f32>,
    /// Of each class ‖W‖², W·D and ‖D‖².
    squares: Vec<[f64; 3]>,
    /// The same sums for what the penalty measures.
    moved: [f64; 3],
    steps: usize,
    /// The direction of the line.
    turned: Vec<f32>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(objective: &'a Objective<'a>) -> Self {
        let samples = objective.labels.len();
        let logits = vec![0.0; samples * objective.classes];
        let (blocks, shift) = (Blocks::of(samples), logits.clone());
        let (squares, turned) = (Vec::new(), Vec::new());
        Self { objective, blocks, logits, shift, squares, moved: [0.0; 3], steps: 0, turned }
    }

    /// Cross-entropy and slope of one group of samples at a length.
    fn group(&self, group: usize, length: f64, tied: &[f32]) -> (f64, f64) {
        let Blocks { group: size, rows: block } = self.blocks;
        let (classes, labels) = (self.objective.classes, self.objective.labels);
        let range = group * size..labels.len().min((group + 1) * size);
        let (logits, shift) = (&self.logits[..], &self.shift[..]);
        let (mut loss, mut slope) = (0.0, 0.0);
        let (mut values, mut sums) = (vec![0f32; block * classes], vec![0.0; classes]);
        for first in range.clone().step_by(block) {
            let count = block.min(range.end - first);
            let place = first * classes..(first + count) * classes;
            let values = &mut values[..place.len()];
            ahead(&logits[place.clone()], &shift[place.clone()], length as f32, values);
            loss += residues(values, Some(tied), count, |sample| labels[first + sample] as usize);
            slope += dot(values, &shift[place]);
            add_row_sums(values, count, &mut sums);
        }
        let pull =
            |(sum, [_, along, across]): (&f64, &[f64; 3])| 0.5 * sum * (along + length * across);
        (loss, slope - sums.iter().zip(&self.squares).map(pull).sum::<f64>())
    }

    /// Prepares to probe from a point along a direction.
    fn turn(&mut self, x: &[f32], direction: &[f64]) {
        let objective = self.objective;
        let dim = objective.points.cols();
        self.turned = direction.iter().map(|&value| value as f32).collect();
        let squares = |w: &[f32], d: &[f32]| [dot(w, w), dot(w, d), dot(d, d)];
        let rows = x.chunks_exact(dim).zip(self.turned.chunks_exact(dim));
        self.squares = rows.map(|(w, d)| squares(w, d)).collect();
        self.moved = match objective.penalty {
            Penalty::Decay(_) => squares(x, &self.turned),
            Penalty::Residual(_) => {
                let moved: Vec<f32> = x.iter().zip(&objective.start).map(|(w, s)| w - s).collect();
                squares(&moved, &self.turned)
            }
        };
    }
}

/// Logits so many lengths ahead.
fn ahead(logits: &[f32], shift: &[f32], length: f32, out: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            let pairs = logits.iter().zip(shift);
            out.iter_mut()
                .zip(pairs)
                .for_each(|(out, (logit, shift))| *out = logit + length * shift);
        },
    );
}

impl LineObjective for Lines<'_> {
    const ACCEPTED_SLOPES: RangeInclusive<f64> = -0.2..=0.2;

    // Such a step is a little worse than the best and saves a pass over the samples.
    const FULL_STEP_SLOPES: RangeInclusive<f64> = -0.9..=0.9;

    fn begin(&mut self, x: &[f32], gradient: &mut [f32]) -> f64 {
        let sizes = (self.objective.classes, self.objective.points.cols());
        let groups = self.logits.par_chunks_mut(self.blocks.group * sizes.0);
        let sources = groups.map(|logits| {
            move |at: usize, rows: &[f32], out: &mut [f32]| {
                products(x, rows, sizes, out);
                logits[at..at + out.len()].copy_from_slice(out);
            }
        });
        let samples = (self.objective.points.as_slice(), self.objective.labels);
        self.objective.pass(x, gradient, samples, sources)
    }

    fn try_full_step(
        &mut self,
        x: &[f32],
        direction: &[f64],
        length: f64,
        gradient: &mut [f32],
    ) -> (f64, f64) {
        self.turn(x, direction);
        let objective = self.objective;
        let sizes = (objective.classes, objective.points.cols());
        let (group, turned) = (self.blocks.group * sizes.0, &self.turned);
        let fresh = self.steps > 0 && self.steps.is_multiple_of(FRESH);
        let groups = self.logits.par_chunks_mut(group).zip(self.shift.par_chunks_mut(group));
        let sources = groups.map(|(logits, shift)| {
            move |at: usize, rows: &[f32], out: &mut [f32]| {
                let place = at..at + out.len();
                let (logits, shift) = (&mut logits[place.clone()], &mut shift[place]);
                if fresh {
                    products(x, rows, sizes, logits);
                }
                products(turned, rows, sizes, shift);
                ahead(logits, shift, length as f32, out);
            }
        });
        let samples = (objective.points.as_slice(), objective.labels);
        let there = moved(x, direction, length);
        let loss = objective.pass(&there, gradient, samples, sources);
        (loss, dot(gradient, direction))
    }

    fn probe(&mut self, length: f64) -> (f64, f64) {
        let along = |[from, along, across]: &[f64; 3]| {
            from + 2.0 * length * along + length * length * across
        };
        let tied: Vec<f32> =
            self.squares.iter().map(|squares| (-0.25 * along(squares)) as f32).collect();
        let samples = self.objective.labels.len();
        let groups = samples.div_ceil(self.blocks.group);
        let parts: Vec<(f64, f64)> =
            (0..groups).into_par_iter().map(|group| self.group(group, length, &tied)).collect();
        let count = samples.max(1) as f64;
        let loss: f64 = parts.iter().map(|part| part.0).sum();
        let slope: f64 = parts.iter().map(|part| part.1).sum();
        let factor = self.objective.penalty.factor();
        let [_, toward, across] = self.moved;
        (
            loss / count + factor * along(&self.moved),
            slope / count + 2.0 * factor * (toward + length * across),
        )
    }

    fn move_to(&mut self, length: f64, x: &[f32], gradient: &mut [f32]) {
        self.accept(length);
        let groups = self.logits.par_chunks(self.blocks.group * self.objective.classes);
        let sources = groups.map(|logits| {
            move |at: usize, _: &[f32], out: &mut [f32]| {
                out.copy_from_slice(&logits[at..at + out.len()]);
            }
        });
        let samples = (self.objective.points.as_slice(), self.objective.labels);
        self.objective.pass(x, gradient, samples, sources);
    }

    fn accept(&mut self, length: f64) {
        self.steps += 1;
        add(&mut self.logits, &self.shift, length as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problem;
    use super::*;

    #[test]
    fn a_probe_along_a_line_and_a_move_agree_with_the_objective() {
        let (points, labels, centres) = problem();
        for penalty in [Penalty::Decay(0.3), Penalty::Residual(0.2)] {
            let objective = Objective::new(&points, &labels, &centres, penalty).unwrap();
            let mut lines = Lines::of(&objective);
            let mut at = objective.start().to_vec();
            let mut gradient = vec![0f32; at.len()];
            let mut expected = gradient.clone();
            let loss = lines.begin(&at, &mut gradient);
            assert!((loss - objective.evaluate(&at, &mut expected)).abs() < 1e-12);
            // past the step at which the logits are computed again
            for step in 0..FRESH + 3 {
                let direction: Vec<f64> = (0..at.len())
                    .map(|entry| ((entry * 31 + step * 17) % 29) as f64 / 29.0 - 0.5)
                    .collect();
                let (tried, tilted) = lines.try_full_step(&at, &direction, 0.9, &mut gradient);
                let (probed, slope) = lines.probe(0.9);
                assert!((tried - probed).abs() < 1e-4 * probed, "{tried} {probed}");
                assert!((tilted - slope).abs() < 1e-4, "{tilted} {slope}");
                let (loss, slope) = lines.probe(0.3);
                at = moved(&at, &direction, 0.3);
                lines.move_to(0.3, &at, &mut gradient);
                let exact = objective.evaluate(&at, &mut expected);
                assert!((loss - exact).abs() < 1e-4 * exact, "{penalty:?}: {loss} {exact}");
                let exact = dot(&expected, &direction);
                assert!((slope - exact).abs() < 1e-4, "{penalty:?}: {slope} {exact}");
                for (found, expected) in gradient.iter().zip(&expected) {
                    assert!((found - expected).abs() < 1e-4, "{penalty:?} {step}");
                }
            }
        }
    }
}
