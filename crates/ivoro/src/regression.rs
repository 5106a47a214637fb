//! Voronoi logistic regression, letters **D** and **R**.
//!
//! A softmax classifier with logits W_k·z + b_k whose bias is tied to b_k = −‖W_k‖²/4, so that its
//! cells are the Voronoi cells of the centres W_k / 2 (Theorem 2.1). It starts at W = 2c, c being
//! the class means.
//!
//! - plain (D): mean cross-entropy + δ/2 · ‖W‖²,
//! - residual (R): mean cross-entropy + β · ‖W − 2c‖².
//!
//! With p the softmax and y the label as a unit vector, the gradient of the cross-entropy is
//! ∂/∂W_k = mean_i (p_ik − y_ik) · (z_i − W_k/2).

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, text_choice};
use crate::interrupt;
use crate::lbfgs;
use crate::linalg::{THIN, add_thin_sums, thin_products};
use crate::matrix::Matrix;
use crate::random;
use crate::softmax::{add_row_sums, residues};
use crate::vectors::dot;

mod line;

use line::Lines;

/// Rows taken at a time: they are read from memory for the logits and are still in the cache for
/// the gradient.
const BLOCK: usize = 96;
/// Partial gradients, added in order: fixed, so that threads do not change the result.
const GROUPS: usize = 16;
/// Rows of a partial gradient, at least.
const GROUP: usize = 64;
/// Rows of a block are a multiple of this, the widest vector.
const ALIGNED: usize = 16;
/// Mini-batch and learning rate of the stochastic optimiser.
const BATCH: usize = 64;
const RATE: f64 = 1e-3;

/// How a probe is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimiser {
    /// Full-batch L-BFGS: deterministic, to convergence.
    #[default]
    Lbfgs,
    /// Mini-batches with Adam at the paper's rate 1e-3.
    Adam,
}

text_choice!(Optimiser, "optimiser", "write lbfgs or adam", "lbfgs" => Lbfgs, "adam" => Adam);

/// What keeps the weights in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Penalty {
    /// δ/2 · ‖W‖².
    Decay(f64),
    /// β · ‖W − 2c‖².
    Residual(f64),
}

impl Penalty {
    /// What the sum of squares is multiplied by.
    fn factor(self) -> f64 {
        match self {
            Self::Decay(decay) => 0.5 * decay,
            Self::Residual(beta) => beta,
        }
    }
}

/// How to fit.
#[derive(Clone, Copy, Debug)]
pub struct FitOptions {
    /// Which optimiser.
    pub optimiser: Optimiser,
    /// Iterations or epochs at most.
    pub iterations: usize,
    /// Seed of the mini-batches.
    pub seed: u64,
}

/// The centres W / 2 of a fitted probe and how the fit went.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// One centre per class.
    pub centres: Matrix,
    /// Final value of the objective.
    pub loss: f64,
    /// Iterations or epochs done.
    pub iterations: usize,
}

/// The objective: samples, labels, starting point and penalty.
pub struct Objective<'a> {
    points: &'a Matrix,
    labels: &'a [u32],
    classes: usize,
    start: Vec<f32>,
    penalty: Penalty,
}

impl<'a> Objective<'a> {
    /// An objective on `points` that starts at twice the `centres`.
    pub fn new(
        points: &'a Matrix,
        labels: &'a [u32],
        centres: &Matrix,
        penalty: Penalty,
    ) -> Result<Self> {
        let size =
            |what: &str, expected, found| Error::Size { what: what.to_owned(), expected, found };
        if labels.len() != points.rows() {
            return Err(size("labels of a probe", points.rows(), labels.len()));
        }
        if centres.cols() != points.cols() {
            return Err(size("dimension of a probe's centres", points.cols(), centres.cols()));
        }
        let start = centres.as_slice().iter().map(|value| 2.0 * value).collect();
        Ok(Self { points, labels, classes: centres.rows(), start, penalty })
    }

    /// Where the fit starts: W = 2c.
    pub fn start(&self) -> &[f32] {
        &self.start
    }

    /// Value at W; writes the gradient.
    pub fn evaluate(&self, weight: &[f32], gradient: &mut [f32]) -> f64 {
        self.evaluate_rows(weight, gradient, self.points.as_slice(), self.labels)
    }

    fn evaluate_rows(
        &self,
        weight: &[f32],
        gradient: &mut [f32],
        rows: &[f32],
        labels: &[u32],
    ) -> f64 {
        let sizes = (self.classes, self.points.cols());
        let groups = 0..labels.len().div_ceil(Blocks::of(labels.len()).group);
        let sources = groups.into_par_iter().map(|_| {
            move |_: usize, rows: &[f32], logits: &mut [f32]| products(weight, rows, sizes, logits)
        });
        self.pass(weight, gradient, (rows, labels), sources)
    }

    /// Value at W and its gradient in one pass over the rows. The logits W_k·z of each group's
    /// blocks, one row per class, come from its source: it is told how many logits were before, and
    /// the rows.
    fn pass<S: FnMut(usize, &[f32], &mut [f32])>(
        &self,
        weight: &[f32],
        gradient: &mut [f32],
        (rows, labels): (&[f32], &[u32]),
        sources: impl IndexedParallelIterator<Item = S>,
    ) -> f64 {
        let (dim, classes) = (self.points.cols(), self.classes);
        let tied: Vec<f32> = weight.chunks_exact(dim).map(|w| (-0.25 * dot(w, w)) as f32).collect();
        let blocks = Blocks::of(labels.len());
        let partial: Vec<Partial> = rows
            .par_chunks(blocks.group * dim)
            .zip(labels.par_chunks(blocks.group))
            .zip(sources)
            .map(|((rows, labels), source)| {
                self.partial(&tied, (rows, labels), source, blocks.rows)
            })
            .collect();
        gradient.fill(0.0);
        let mut loss = 0.0;
        let mut residues = vec![0f64; classes];
        for part in &partial {
            loss += part.loss;
            gradient.iter_mut().zip(&part.gradient).for_each(|(sum, part)| *sum += part);
            residues.iter_mut().zip(&part.residues).for_each(|(sum, part)| *sum += part);
        }
        let count = labels.len().max(1) as f64;
        for (class, gradient) in gradient.chunks_exact_mut(dim).enumerate() {
            let pull = (0.5 * residues[class]) as f32;
            let weight = &weight[class * dim..(class + 1) * dim];
            for (slope, w) in gradient.iter_mut().zip(weight) {
                *slope = (*slope - pull * w) / count as f32;
            }
        }
        loss / count + self.penalise(weight, gradient)
    }

    fn penalise(&self, weight: &[f32], gradient: &mut [f32]) -> f64 {
        let factor = self.penalty.factor();
        let origin = match self.penalty {
            Penalty::Decay(_) => None,
            Penalty::Residual(_) => Some(&self.start),
        };
        let mut sum = 0f64;
        for (at, (slope, &w)) in gradient.iter_mut().zip(weight).enumerate() {
            let moved = w - origin.map_or(0.0, |origin| origin[at]);
            sum += f64::from(moved) * f64::from(moved);
            *slope += (2.0 * factor) as f32 * moved;
        }
        factor * sum
    }

    /// Cross-entropy and Σ (p − y) zᵀ of some rows, block by block while they are in the cache.
    fn partial(
        &self,
        tied: &[f32],
        (rows, labels): (&[f32], &[u32]),
        mut source: impl FnMut(usize, &[f32], &mut [f32]),
        block: usize,
    ) -> Partial {
        let (dim, classes) = (self.points.cols(), self.classes);
        let mut part =
            Partial { loss: 0.0, gradient: vec![0.0; classes * dim], residues: vec![0.0; classes] };
        let mut values = vec![0f32; block * classes];
        let blocks = rows.chunks(block * dim).zip(labels.chunks(block));
        for (at, (rows, labels)) in blocks.enumerate() {
            let count = labels.len();
            let values = &mut values[..count * classes];
            source(at * block * classes, rows, values);
            part.loss += residues(values, Some(tied), count, |sample| labels[sample] as usize);
            add_row_sums(values, count, &mut part.residues);
            add_sums(values, rows, (classes, dim), &mut part.gradient);
        }
        part
    }
}

/// W_k·z of a block of rows, one row per class.
fn products(weight: &[f32], rows: &[f32], (classes, dim): (usize, usize), out: &mut [f32]) {
    interrupt::check();
    if classes <= THIN {
        return thin_products(weight, rows, dim, out);
    }
    let count = rows.len() / dim;
    let weight = MatRef::from_row_major_slice(weight, classes, dim);
    let points = MatRef::from_row_major_slice(rows, count, dim);
    let target = MatMut::from_row_major_slice_mut(out, classes, count);
    matmul(target, Accum::Replace, weight, points.transpose(), 1.0, Par::Seq);
}

/// Adds Σ (p − y) zᵀ of a block of rows.
fn add_sums(residues: &[f32], rows: &[f32], (classes, dim): (usize, usize), out: &mut [f32]) {
    if classes <= THIN {
        return add_thin_sums(residues, rows, dim, out);
    }
    let count = rows.len() / dim;
    let residues = MatRef::from_row_major_slice(residues, classes, count);
    let points = MatRef::from_row_major_slice(rows, count, dim);
    let target = MatMut::from_row_major_slice_mut(out, classes, dim);
    matmul(target, Accum::Add, residues, points, 1.0, Par::Seq);
}

/// How samples are divided: into groups, and those into blocks of nearly equal size.
#[derive(Clone, Copy)]
struct Blocks {
    /// Samples of a group.
    group: usize,
    /// Samples of a block.
    rows: usize,
}

impl Blocks {
    fn of(samples: usize) -> Self {
        let group = samples.div_ceil(GROUPS).max(GROUP);
        let rows = group.div_ceil(group.div_ceil(BLOCK)).next_multiple_of(ALIGNED);
        Self { group, rows }
    }
}

struct Partial {
    loss: f64,
    gradient: Vec<f32>,
    residues: Vec<f64>,
}

/// Fits a probe and returns its centres.
pub fn fit(objective: &Objective<'_>, options: FitOptions) -> Result<Fitted> {
    let (weight, loss, iterations) = match options.optimiser {
        Optimiser::Lbfgs => {
            let start = objective.start.clone();
            // On a thread of the pool: from another one every pass would begin and end with waking.
            let outcome = rayon::scope(|_| {
                lbfgs::descend(&mut Lines::of(objective), start, options.iterations, 5e-6)
            });
            (outcome.x, outcome.loss, outcome.iterations)
        }
        Optimiser::Adam => adam(objective, options),
    };
    let centres = weight.into_iter().map(|value| 0.5 * value).collect();
    let centres = Matrix::new(objective.classes, objective.points.cols(), centres)?;
    Ok(Fitted { centres, loss, iterations })
}

/// Mini-batch Adam, epochs of shuffled batches.
fn adam(objective: &Objective<'_>, options: FitOptions) -> (Vec<f32>, f64, usize) {
    let mut weight = objective.start.clone();
    let mut gradient = vec![0f32; weight.len()];
    let (mut first, mut second) = (vec![0f64; weight.len()], vec![0f64; weight.len()]);
    let mut step = 0;
    for epoch in 0..options.iterations {
        let order =
            random::permutation(options.seed.wrapping_add(epoch as u64), objective.points.rows());
        for batch in order.chunks(BATCH) {
            let rows = objective.points.select(batch);
            let labels: Vec<u32> = batch.iter().map(|&row| objective.labels[row]).collect();
            objective.evaluate_rows(&weight, &mut gradient, rows.as_slice(), &labels);
            step += 1;
            let (b1, b2) = (1.0 - 0.9f64.powi(step), 1.0 - 0.999f64.powi(step));
            for (at, w) in weight.iter_mut().enumerate() {
                let slope = f64::from(gradient[at]);
                first[at] = 0.9 * first[at] + 0.1 * slope;
                second[at] = 0.999 * second[at] + 0.001 * slope * slope;
                *w -= (RATE * (first[at] / b1) / ((second[at] / b2).sqrt() + 1e-8)) as f32;
            }
        }
    }
    let loss = objective.evaluate(&weight, &mut gradient);
    (weight, loss, options.iterations)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn problem() -> (Matrix, Vec<u32>, Matrix) {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        let points = Matrix::new(400, 5, (0..2000).map(value).collect()).unwrap();
        let labels = (0..400)
            .map(|row| {
                u32::from(points.row(row as usize)[0] > 0.2)
                    + u32::from(points.row(row as usize)[1] > 0.3)
            })
            .collect();
        let centres = Matrix::new(3, 5, (300..315).map(value).collect()).unwrap();
        (points, labels, centres)
    }

    #[test]
    fn gradients_match_finite_differences() {
        let (points, labels, centres) = problem();
        for penalty in [Penalty::Decay(0.3), Penalty::Residual(0.2), Penalty::Decay(0.0)] {
            let objective = Objective::new(&points, &labels, &centres, penalty).unwrap();
            let mut at = objective.start().to_vec();
            at.iter_mut().enumerate().for_each(|(i, w)| *w += (i % 3) as f32 * 0.1);
            let mut gradient = vec![0f32; at.len()];
            let mut ignored = gradient.clone();
            objective.evaluate(&at, &mut gradient);
            for index in 0..at.len() {
                let step = 1e-2f32;
                let mut moved = at.clone();
                moved[index] += step;
                let up = objective.evaluate(&moved, &mut ignored);
                moved[index] -= 2.0 * step;
                let down = objective.evaluate(&moved, &mut ignored);
                let slope = (up - down) / (2.0 * f64::from(step));
                assert!((slope - f64::from(gradient[index])).abs() < 1e-3, "{penalty:?} {index}");
            }
        }
    }

    #[test]
    fn lbfgs_ends_at_least_as_low_as_adam_and_threads_change_nothing() {
        let (points, labels, centres) = problem();
        let objective = Objective::new(&points, &labels, &centres, Penalty::Decay(1e-3)).unwrap();
        let run = |optimiser, iterations| {
            fit(&objective, FitOptions { optimiser, iterations, seed: 1 }).unwrap()
        };
        let exact = run(Optimiser::Lbfgs, 200);
        assert!(exact.loss <= run(Optimiser::Adam, 300).loss + 1e-6);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(|| run(Optimiser::Lbfgs, 200)).centres, exact.centres);
    }

    #[test]
    fn a_firm_residual_stays_at_the_prototypes() {
        let (points, labels, centres) = problem();
        let far = |beta| {
            let objective =
                Objective::new(&points, &labels, &centres, Penalty::Residual(beta)).unwrap();
            let options = FitOptions { optimiser: Optimiser::Lbfgs, iterations: 100, seed: 1 };
            let fitted = fit(&objective, options).unwrap().centres;
            let pairs = fitted.as_slice().iter().zip(centres.as_slice());
            pairs.map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt()
        };
        assert!(far(1e4) < 1e-3 && far(1e-3) > 10.0 * far(1.0));
    }
}
