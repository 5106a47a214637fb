//! Limited-memory BFGS: minimises a smooth function of many variables from its gradient.
//!
//! The direction is −H·∇f, H being the inverse Hessian estimated from the last [`MEMORY`] steps
//! s and gradient changes y by the two-loop recursion (Nocedal 1980). The step length t is found by
//! bisection and doubling until both weak Wolfe conditions hold,
//!
//! ```text
//! f(x + t·d) ≤ f(x) + 10⁻⁴ · t · ∇f·d        and        ∇f(x + t·d)·d ≥ 0.9 · ∇f·d,
//! ```
//!
//! the second of which makes s·y positive, so that H stays positive definite. Everything runs in
//! a fixed order: equal inputs give equal results.

use std::collections::VecDeque;

/// Steps remembered.
pub const MEMORY: usize = 10;

/// Trials of one line search before the function is taken to be flat to working precision.
const TRIALS: usize = 25;

/// Relative differences of losses below this are not trusted: parameters are single precision.
const RESOLUTION: f64 = 1e-8;

/// Partial sums of a product.
const LANES: usize = 8;

/// Where a minimisation ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The best point found.
    pub x: Vec<f32>,
    /// The function there.
    pub loss: f64,
    /// Steps taken.
    pub iterations: usize,
    /// Calls of the function.
    pub evaluations: usize,
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
    let mut search = Search { evaluate, evaluations: 0 };
    let mut at = search.point(x);
    let mut steps = VecDeque::with_capacity(MEMORY);
    let mut taken = 0;
    while taken < iterations && largest(&at.gradient) > tolerance {
        let direction = direction(&steps, &at.gradient);
        // nothing is known of the scale before the first step
        let first = if steps.is_empty() { 1.0 / norm(&at.gradient).max(1.0) } else { 1.0 };
        let Some(next) = search.along(&at, &direction, first) else { break };
        remember(&mut steps, &at, &next);
        at = next;
        taken += 1;
    }
    Outcome { x: at.x, loss: at.loss, iterations: taken, evaluations: search.evaluations }
}

struct Search<F> {
    evaluate: F,
    evaluations: usize,
}

impl<F: FnMut(&[f32], &mut [f32]) -> f64> Search<F> {
    fn point(&mut self, x: Vec<f32>) -> Point {
        let mut gradient = vec![0.0; x.len()];
        let loss = (self.evaluate)(&x, &mut gradient);
        self.evaluations += 1;
        Point { x, gradient, loss }
    }

    /// A point along the direction at which the weak Wolfe conditions hold, or failing that the
    /// last one that decreases enough.
    fn along(&mut self, from: &Point, direction: &[f64], first: f64) -> Option<Point> {
        let slope = dot(&from.gradient, direction);
        let (mut low, mut high, mut length) = (0.0, f64::INFINITY, first);
        let mut best = None;
        for _ in 0..TRIALS {
            let point = self.point(moved(&from.x, direction, length));
            let new_slope = dot(&point.gradient, direction);
            if decreases(from.loss, point.loss, length * slope, new_slope / slope) {
                low = length;
                if new_slope >= 0.9 * slope {
                    return Some(point);
                }
                best = Some(point);
            } else {
                high = length;
            }
            length = if high.is_finite() { f64::midpoint(low, high) } else { 2.0 * low };
        }
        best
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

fn moved(x: &[f32], direction: &[f64], length: f64) -> Vec<f32> {
    x.iter().zip(direction).map(|(&x, d)| (f64::from(x) + length * d) as f32).collect()
}

fn add(out: &mut [f64], vector: &[f32], weight: f64) {
    out.iter_mut().zip(vector).for_each(|(out, &value)| *out += weight * f64::from(value));
}

/// Partial sums side by side: one alone would wait for every addition.
fn dot<T: Copy + Into<f64>>(a: &[f32], b: &[T]) -> f64 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0f64; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += f64::from(a[lane]) * b[lane].into();
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&a, &b)| f64::from(a) * b.into()).sum();
    sums.iter().sum::<f64>() + rest
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
