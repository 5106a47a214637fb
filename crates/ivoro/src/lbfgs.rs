//! Limited-memory BFGS: minimises a smooth function of many variables from its gradient.
//!
//! The direction is −H·∇f, H being the inverse Hessian estimated from the last [`MEMORY`] steps
//! s and gradient changes y by the two-loop recursion (Nocedal 1980). The step length t is found by
//! secants of the slope until the Wolfe conditions hold,
//!
//! ```text
//! f(x + t·d) ≤ f(x) + 10⁻⁴ · t · ∇f·d        and        ∇f(x + t·d)·d ÷ ∇f·d in a range,
//! ```
//!
//! the second of which makes s·y positive, so that H stays positive definite. The range is narrow
//! where probing a line is cheap and wide where it costs as much as a step, see
//! `LineObjective`. Everything runs in a fixed order: equal inputs give equal results.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::vectors::{dot, vectorised};

/// Steps remembered.
pub const MEMORY: usize = 10;

/// Trials of one line search before the function is taken to be flat to working precision.
const TRIALS: usize = 25;

/// Relative differences of losses below this are not trusted: parameters are single precision.
const RESOLUTION: f64 = 1e-8;

/// A line search moves at least this share of its bracket away from either end, and at most this
/// factor beyond the longest step tried.
const MARGIN: f64 = 0.1;
const FURTHEST: f64 = 10.0;

/// Where a minimisation ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The best point found.
    pub x: Vec<f32>,
    /// The function there.
    pub loss: f64,
    /// Steps taken.
    pub iterations: usize,
    /// Points at which the function was evaluated.
    pub evaluations: usize,
}

/// A function to minimise along lines. A descent begins at a point; then, for each direction, it
/// tries the full step and accepts it, or probes other lengths and moves to one of them.
pub trait LineObjective {
    /// The slope after a step must be within this range, in parts of the slope before it.
    const ACCEPTED_SLOPES: RangeInclusive<f64>;
    /// The same for the full step: it has cost its gradient already, so a worse slope will do.
    const FULL_STEP_SLOPES: RangeInclusive<f64>;

    /// The loss at a point; writes the gradient.
    fn begin(&mut self, x: &[f32], gradient: &mut [f32]) -> f64;

    /// Sets out from a point in a direction; writes the gradient at so many lengths of it and
    /// returns loss and slope there.
    fn try_full_step(
        &mut self,
        x: &[f32],
        direction: &[f64],
        length: f64,
        gradient: &mut [f32],
    ) -> (f64, f64);

    /// Keeps the full step.
    fn accept(&mut self, length: f64);

    /// Loss and slope at so many lengths of the direction.
    fn probe(&mut self, length: f64) -> (f64, f64);

    /// Moves to the `x` that is so many lengths away; writes the gradient there.
    fn move_to(&mut self, length: f64, x: &[f32], gradient: &mut [f32]);
}

/// A function known by its values and gradients alone: a probe costs as much as a step.
struct Plain<F> {
    evaluate: F,
    from: Vec<f32>,
    direction: Vec<f64>,
    /// The length last probed and the gradient there.
    seen: (f64, Vec<f32>),
}

impl<F: FnMut(&[f32], &mut [f32]) -> f64> LineObjective for Plain<F> {
    const ACCEPTED_SLOPES: RangeInclusive<f64> = f64::NEG_INFINITY..=0.9;
    const FULL_STEP_SLOPES: RangeInclusive<f64> = Self::ACCEPTED_SLOPES;

    fn begin(&mut self, x: &[f32], gradient: &mut [f32]) -> f64 {
        self.seen.1.resize(x.len(), 0.0);
        (self.evaluate)(x, gradient)
    }

    fn try_full_step(
        &mut self,
        x: &[f32],
        direction: &[f64],
        length: f64,
        gradient: &mut [f32],
    ) -> (f64, f64) {
        self.from = x.to_vec();
        self.direction = direction.to_vec();
        let seen = self.probe(length);
        gradient.copy_from_slice(&self.seen.1);
        seen
    }

    fn accept(&mut self, _: f64) {}

    fn probe(&mut self, length: f64) -> (f64, f64) {
        let x = moved(&self.from, &self.direction, length);
        self.seen.0 = length;
        let loss = (self.evaluate)(&x, &mut self.seen.1);
        (loss, dot(&self.seen.1, &self.direction))
    }

    fn move_to(&mut self, length: f64, x: &[f32], gradient: &mut [f32]) {
        if self.seen.0.to_bits() == length.to_bits() {
            gradient.copy_from_slice(&self.seen.1);
        } else {
            (self.evaluate)(x, gradient);
        }
    }
}

struct Point {
    x: Vec<f32>,
    gradient: Vec<f32>,
    loss: f64,
}

struct Step {
    moved: Vec<f32>,
    change: Vec<f32>,
    curvature: f64,
}

/// Minimises from `x`, for at most so many `iterations` or until no entry of the gradient is
/// larger than `tolerance` or no further decrease can be resolved. `evaluate(x, gradient)` writes
/// the gradient and returns the loss.
pub fn minimise(
    x: Vec<f32>,
    iterations: usize,
    tolerance: f64,
    evaluate: impl FnMut(&[f32], &mut [f32]) -> f64,
) -> Outcome {
    let (from, direction, seen) = (Vec::new(), Vec::new(), (f64::NAN, Vec::new()));
    descend(&mut Plain { evaluate, from, direction, seen }, x, iterations, tolerance)
}

/// The same for any objective.
pub fn descend(
    objective: &mut impl LineObjective,
    x: Vec<f32>,
    iterations: usize,
    tolerance: f64,
) -> Outcome {
    let mut gradient = vec![0.0; x.len()];
    let loss = objective.begin(&x, &mut gradient);
    let mut at = Point { x, gradient, loss };
    let mut steps = VecDeque::with_capacity(MEMORY);
    let (mut taken, mut evaluations) = (0, 1);
    while taken < iterations && largest(&at.gradient) > tolerance {
        let direction = direction(&steps, &at.gradient);
        // nothing is known of the scale before the first step
        let first = if steps.is_empty() { 1.0 / norm(&at.gradient).max(1.0) } else { 1.0 };
        let mut gradient = vec![0.0; at.x.len()];
        let tried = objective.try_full_step(&at.x, &direction, first, &mut gradient);
        let slope = dot(&at.gradient, &direction);
        let found = search(objective, (at.loss, slope), (first, tried), &mut evaluations);
        let Some((length, loss)) = found else { break };
        let x = moved(&at.x, &direction, length);
        if length.to_bits() == first.to_bits() {
            objective.accept(length);
        } else {
            objective.move_to(length, &x, &mut gradient);
        }
        let next = Point { x, gradient, loss };
        remember(&mut steps, &at, &next);
        at = next;
        taken += 1;
    }
    Outcome { x: at.x, loss: at.loss, iterations: taken, evaluations }
}

/// A length at which the Wolfe conditions hold, or failing that the last one tried that decreases
/// enough, and the loss there. What the full step has seen is known.
fn search<L: LineObjective>(
    objective: &mut L,
    (before, slope): (f64, f64),
    (first, mut seen): (f64, (f64, f64)),
    evaluations: &mut usize,
) -> Option<(f64, f64)> {
    let mut low = (0.0, slope);
    let mut high: Option<(f64, f64)> = None;
    let (mut length, mut best) = (first, None);
    for trial in 0..TRIALS {
        if trial > 0 {
            seen = objective.probe(length);
        }
        *evaluations += 1;
        let (loss, new_slope) = seen;
        let ratio = new_slope / slope;
        let mut beyond = None;
        if decreases(before, loss, length * slope, ratio) {
            best = Some((length, loss));
            let wanted = if trial == 0 { L::FULL_STEP_SLOPES } else { L::ACCEPTED_SLOPES };
            if wanted.contains(&ratio) {
                break;
            }
            if ratio > 0.0 {
                beyond = Some(secant(low, (length, new_slope)));
                low = (length, new_slope);
            } else {
                high = Some((length, new_slope));
            }
        } else {
            high = Some((length, new_slope));
        }
        length = match high {
            Some(high) => between(low, high),
            // not a number or negative where the slope grows: as far as allowed
            None => beyond
                .filter(|&to| to > 0.0)
                .unwrap_or(f64::INFINITY)
                .clamp(2.0 * low.0, FURTHEST * low.0),
        };
    }
    best
}

/// Where the slope vanishes if it is linear.
fn secant(a: (f64, f64), b: (f64, f64)) -> f64 {
    a.0 - a.1 * (b.0 - a.0) / (b.1 - a.1)
}

/// The next length to try within a bracket: the zero of the slope if it lies in between.
fn between(low: (f64, f64), high: (f64, f64)) -> f64 {
    let (width, zero) = (high.0 - low.0, secant(low, high));
    if high.1 > 0.0 && zero.is_finite() {
        zero.clamp(low.0 + MARGIN * width, high.0 - MARGIN * width)
    } else {
        f64::midpoint(low.0, high.0)
    }
}

/// Whether the loss went down enough for what the slope promised. Near the minimum differences of
/// losses drown in rounding while slopes are still good; there the slope must have shrunk instead
/// (the approximate condition of Hager and Zhang 2005). A loss that is no number never passes.
fn decreases(before: f64, after: f64, promised: f64, slope_ratio: f64) -> bool {
    let plainly = after < before && after <= before + 1e-4 * promised;
    plainly || (after <= before + RESOLUTION * before.abs() && slope_ratio > -0.999)
}

fn remember(steps: &mut VecDeque<Step>, from: &Point, to: &Point) {
    let difference = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a - b).collect();
    let moved: Vec<f32> = difference(&to.x, &from.x);
    let change: Vec<f32> = difference(&to.gradient, &from.gradient);
    let curvature = dot(&moved, &change);
    // rounding can spoil the curvature of a tiny step; such a step would spoil the estimate
    if curvature <= 1e-12 * dot(&change, &change) {
        return;
    }
    if steps.len() == MEMORY {
        steps.pop_front();
    }
    steps.push_back(Step { moved, change, curvature });
}

/// −H·gradient by the two-loop recursion.
fn direction(steps: &VecDeque<Step>, gradient: &[f32]) -> Vec<f64> {
    let mut out: Vec<f64> = gradient.iter().map(|&value| -f64::from(value)).collect();
    let mut weights = Vec::with_capacity(steps.len());
    for step in steps.iter().rev() {
        let weight = dot(&step.moved, &out) / step.curvature;
        add(&mut out, &step.change, -weight);
        weights.push(weight);
    }
    if let Some(last) = steps.back() {
        let scale = last.curvature / dot(&last.change, &last.change);
        for value in &mut out {
            *value *= scale;
        }
    }
    for (step, weight) in steps.iter().zip(weights.into_iter().rev()) {
        let back = dot(&step.change, &out) / step.curvature;
        add(&mut out, &step.moved, weight - back);
    }
    out
}

/// The point so many lengths of the direction away.
pub fn moved(x: &[f32], direction: &[f64], length: f64) -> Vec<f32> {
    x.iter().zip(direction).map(|(&x, d)| (f64::from(x) + length * d) as f32).collect()
}

fn add(out: &mut [f64], vector: &[f32], weight: f64) {
    vectorised(
        #[inline(always)]
        || out.iter_mut().zip(vector).for_each(|(out, &value)| *out += weight * f64::from(value)),
    );
}

fn norm(vector: &[f32]) -> f64 {
    dot(vector, vector).sqrt()
}

fn largest(vector: &[f32]) -> f64 {
    vector.iter().fold(0.0, |most, value| f64::max(most, value.abs().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_valley_of_rosenbrock_is_followed_to_its_end() {
        let outcome = minimise(vec![-1.2, 1.0], 200, 1e-5, |x, gradient| {
            let (a, b) = (f64::from(x[0]), f64::from(x[1]));
            let bend = b - a * a;
            gradient[0] = (-2.0 * (1.0 - a) - 400.0 * a * bend) as f32;
            gradient[1] = (200.0 * bend) as f32;
            (1.0 - a).powi(2) + 100.0 * bend * bend
        });
        assert!((outcome.x[0] - 1.0).abs() < 1e-3, "{outcome:?}");
        assert!(outcome.evaluations < 120, "{outcome:?}");
    }

    #[test]
    fn a_long_ellipsoid_is_solved() {
        let scale = |at: usize| 10_f64.powf(at as f64 / 20.0);
        let outcome = minimise(vec![1.0; 40], 200, 1e-6, |x, gradient| {
            for (at, (g, &x)) in gradient.iter_mut().zip(x).enumerate() {
                *g = (scale(at) * f64::from(x)) as f32;
            }
            x.iter().enumerate().map(|(at, &x)| 0.5 * scale(at) * f64::from(x).powi(2)).sum()
        });
        assert!(outcome.loss < 1e-9, "{outcome:?}");
    }

    #[test]
    fn a_minimum_is_left_where_it_is() {
        let outcome = minimise(vec![0.0; 3], 10, 1e-6, |_, gradient| {
            gradient.fill(0.0);
            4.0
        });
        assert_eq!((outcome.x, outcome.iterations, outcome.evaluations), (vec![0.0; 3], 0, 1));
    }

    #[test]
    fn a_loss_that_is_no_number_is_never_accepted() {
        let outcome = minimise(vec![1.0], 50, 1e-6, |x, gradient| {
            gradient[0] = 2.0 * x[0] - 1.0;
            if x[0] < 0.4 { f64::NAN } else { f64::from(x[0] * x[0] - x[0]) }
        });
        assert!((outcome.x[0] - 0.5).abs() < 1e-3, "{outcome:?}");
    }
}
