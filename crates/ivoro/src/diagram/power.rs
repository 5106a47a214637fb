use std::borrow::Cow;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::screen::Screen;
use crate::error::{Error, Result};
use crate::linalg::{fill_products, squared_distance};
use crate::matrix::Matrix;
use crate::vectors::vectorised;

/// Queries and centres of one tile. Many queries share one packing of the centres; with few centres
/// there is little to pack, and a smaller tile stays in the cache for the query's own length.
const QUERIES: usize = 2048;
const QUERIES_FEW: usize = 512;
const CENTRES: usize = 512;
/// Numbers in all centres together up to which every distance is measured by itself, in double
/// precision: nothing cancels, and an answer does not depend on the queries beside it.
const FEW: usize = 512;
/// Queries and centres from which on centres are screened; queries of one tile of that.
const MANY: usize = 2048;
const MANY_CENTRES: usize = 32;
const SCREENED: usize = 510;
const SCREENED_FEW: usize = 126;
/// Queries that are tried first, and how many centres, and what share of them, may have to be
/// measured in full for each.
const SAMPLE: usize = 96;
const FULL: usize = 4;
const SHARE: usize = 32;
/// Partial results side by side in a loop that is to be vectorised.
const LANES: usize = 32;
/// Squared distance of all centres from zero, in units of their spread, from which on they are
/// compared around their mean: products then lose 5 bits and more of 24.
const CANCELLING: f64 = 1024.0;

/// A power diagram: the cell of centre k is where ‖z − c_k‖² − ν_k is smallest.
///
/// With equal weights ν it is a Voronoi diagram. A linear classifier is a power diagram
/// (Theorem 2.1 of the paper): c_k = W_k / 2, ν_k = b_k + ‖W_k‖² / 4, and back.
///
/// ```
/// use ivoro::{Matrix, diagram::PowerDiagram};
/// let centres = Matrix::new(2, 2, vec![0.0, 0.0, 4.0, 0.0])?;
/// let diagram = PowerDiagram::voronoi(centres);
/// let nearest = diagram.nearest(&Matrix::new(1, 2, vec![1.0, 1.0])?)?;
/// assert_eq!((nearest[0].cell, nearest[0].distance), (0, 2.0));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PowerDiagram {
    centres: Matrix,
    weights: Vec<f32>,
    /// ‖c‖² − ν: what is left of the distance besides ‖z‖² − 2 z·c.
    offsets: Vec<f32>,
    /// Where all centres lie far from zero: centres and queries are compared around this point.
    far: Option<Far>,
}

/// Centres around a point of their own. Products of numbers that are all nearly one large number
/// would cancel to nothing.
#[derive(Clone, Debug, PartialEq)]
struct Far {
    origin: Vec<f32>,
    /// Centres less the origin.
    centres: Matrix,
}

/// The cell a query lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest {
    /// Index of the centre; the smaller one on a tie.
    pub cell: u32,
    /// ‖z − c‖² − ν.
    pub distance: f32,
}

impl PowerDiagram {
    /// A Voronoi diagram: all weights zero.
    pub fn voronoi(centres: Matrix) -> Self {
        let weights = vec![0.0; centres.rows()];
        Self::placed(centres, weights)
    }

    /// A power diagram from centres and weights ν.
    pub fn new(centres: Matrix, weights: Vec<f32>) -> Result<Self> {
        if weights.len() != centres.rows() {
            let what = "weights of a power diagram".to_owned();
            return Err(Error::Size { what, expected: centres.rows(), found: weights.len() });
        }
        Ok(Self::placed(centres, weights))
    }

    fn placed(centres: Matrix, weights: Vec<f32>) -> Self {
        let far = far_origin(&centres).map(|origin| {
            let centres = less(&centres, &origin);
            Far { origin, centres }
        });
        let offsets = offsets(far.as_ref().map_or(&centres, |far| &far.centres), &weights);
        Self { centres, weights, offsets, far }
    }

    /// A power diagram whose centres are given around a point, or around zero: queries are compared
    /// there and nowhere else.
    pub(crate) fn around(origin: Option<Vec<f32>>, centres: Matrix, weights: Vec<f32>) -> Self {
        let offsets = offsets(&centres, &weights);
        let Some(origin) = origin else { return Self { centres, weights, offsets, far: None } };
        let mut whole = centres.clone();
        for at in 0..whole.rows() {
            whole.row_mut(at).iter_mut().zip(&origin).for_each(|(value, from)| *value += from);
        }
        Self { centres: whole, weights, offsets, far: Some(Far { origin, centres }) }
    }

    /// Queries as they are compared: around the diagram's own point, where it has one.
    pub(crate) fn local<'a>(&self, queries: &'a Matrix) -> Cow<'a, Matrix> {
        match &self.far {
            Some(far) => Cow::Owned(less(queries, &far.origin)),
            None => Cow::Borrowed(queries),
        }
    }

    /// Centres as queries are compared with them.
    fn local_centres(&self) -> &Matrix {
        self.far.as_ref().map_or(&self.centres, |far| &far.centres)
    }

    /// The diagram of the classifier argmax_k W_k·z + b_k.
    pub fn from_linear(weight: &Matrix, bias: &[f32]) -> Result<Self> {
        let mut centres = weight.clone();
        centres.as_mut_slice().iter_mut().for_each(|value| *value *= 0.5);
        let quarter = squared_lengths(&centres);
        let weights = bias.iter().zip(&quarter).map(|(b, q)| b + q).collect();
        Self::new(centres, weights)
    }

    /// The linear classifier (W, b) with these cells: W = 2c, b = ν − ‖c‖².
    pub fn to_linear(&self) -> (Matrix, Vec<f32>) {
        let mut weight = self.centres.clone();
        weight.as_mut_slice().iter_mut().for_each(|value| *value *= 2.0);
        (weight, offsets(&self.centres, &self.weights).iter().map(|offset| -offset).collect())
    }

    /// Centres, one per row.
    pub fn centres(&self) -> &Matrix {
        &self.centres
    }

    /// Weights ν.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// ‖z − c_k‖² − ν_k for every query (row) and centre (column).
    pub fn distances(&self, queries: &Matrix) -> Result<Matrix> {
        self.check(queries)?;
        let queries = &*self.local(queries);
        if self.is_small() {
            return Ok(self.one_by_one(queries));
        }
        let mut out = Matrix::zeros(queries.rows(), self.centres.rows());
        fill_products(queries, self.local_centres(), &mut out);
        let cols = out.cols().max(1);
        out.as_mut_slice().par_chunks_mut(cols).enumerate().for_each(|(row, out)| {
            let length = squared_length(queries.row(row));
            for (value, offset) in out.iter_mut().zip(&self.offsets) {
                *value = length + offset - 2.0 * *value;
            }
        });
        Ok(out)
    }

    /// The cell of every query. Distances to other centres are never stored: each tile of a
    /// matrix product is reduced while it is in the cache. Of many queries most centres are ruled
    /// out in bytes first, where the machine multiplies those.
    pub fn nearest(&self, queries: &Matrix) -> Result<Vec<Nearest>> {
        self.check(queries)?;
        if self.centres.rows() == 0 {
            let what = "centres of a diagram".to_owned();
            return Err(Error::Size { what, expected: 1, found: 0 });
        }
        let queries = &*self.local(queries);
        if self.is_small() {
            let distances = self.one_by_one(queries);
            let rows = distances.iter_rows().map(|row| (row, crate::vectors::least(row)));
            let nearest =
                |(row, at): (&[f32], usize)| Nearest { cell: at as u32, distance: row[at] };
            return Ok(rows.map(nearest).collect());
        }
        let mut out = vec![Nearest { cell: 0, distance: f32::INFINITY }; queries.rows()];
        let dim = queries.cols();
        let (screen, few) = (self.screen(queries), self.centres.rows() <= CENTRES);
        let tile = match (&screen, few) {
            (Some(_), true) => SCREENED_FEW,
            (Some(_), false) => SCREENED,
            (None, true) => QUERIES_FEW,
            (None, false) => QUERIES,
        };
        let tiles = out.par_chunks_mut(tile).zip(queries.as_slice().par_chunks(tile * dim));
        tiles.for_each(|(out, queries)| {
            if !screen.as_ref().is_some_and(|screen| screen.nearest(queries, out)) {
                self.nearest_of_all(queries, out);
            }
        });
        Ok(out)
    }

    /// The nearest centre of some queries, by products with all of them.
    fn nearest_of_all(&self, queries: &[f32], out: &mut [Nearest]) {
        let mut scores = vec![0f32; out.len() * CENTRES.min(self.centres.rows())];
        for first in (0..self.centres.rows()).step_by(CENTRES) {
            self.tile(queries, first, &mut scores, out);
        }
        for (nearest, query) in out.iter_mut().zip(queries.chunks_exact(self.centres.cols())) {
            let cell = nearest.cell as usize;
            let square = squared_distance(query, self.local_centres().row(cell));
            nearest.distance = square - self.weights[cell];
        }
    }

    /// A screen, where it pays: there is enough to do, and few centres of a sample of the queries
    /// have to be measured in full.
    fn screen(&self, queries: &Matrix) -> Option<Screen<'_>> {
        if queries.rows() < MANY || self.centres.rows() < MANY_CENTRES {
            return None;
        }
        let screen = Screen::of(self.local_centres(), &self.weights)?;
        let rows: Vec<usize> = (0..SAMPLE).map(|at| at * queries.rows() / SAMPLE).collect();
        let left = screen.left(queries.select(&rows).as_slice())?;
        (left <= SAMPLE * (FULL + self.centres.rows() / SHARE)).then_some(screen)
    }

    fn is_small(&self) -> bool {
        self.centres.as_slice().len() <= FEW
    }

    fn one_by_one(&self, queries: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(queries.rows(), self.centres.rows());
        let cols = out.cols().max(1);
        out.as_mut_slice().par_chunks_mut(cols).enumerate().for_each(|(row, out)| {
            let query = queries.row(row);
            for ((out, centre), weight) in
                out.iter_mut().zip(self.local_centres().iter_rows()).zip(&self.weights)
            {
                let pairs = query.iter().zip(centre);
                let square: f64 = pairs.map(|(z, c)| (f64::from(*z) - f64::from(*c)).powi(2)).sum();
                *out = (square - f64::from(*weight)) as f32;
            }
        });
        out
    }

    /// Compares a block of queries with the centres from `first` on.
    fn tile(&self, queries: &[f32], first: usize, scores: &mut [f32], out: &mut [Nearest]) {
        let dim = self.centres.cols();
        let count = CENTRES.min(self.centres.rows() - first);
        let scores = &mut scores[..out.len() * count];
        let left = MatRef::from_row_major_slice(queries, out.len(), dim);
        let right = self.local_centres().view().subrows(first, count).transpose();
        let target = MatMut::from_row_major_slice_mut(scores, out.len(), count);
        matmul(target, Accum::Replace, left, right, -2.0, Par::Seq);
        let offsets = &self.offsets[first..first + count];
        vectorised(
            #[inline(always)]
            || {
                for (scores, nearest) in scores.chunks_exact(count).zip(&mut *out) {
                    let least = least_sum(scores, offsets);
                    if least < nearest.distance {
                        let mut sums =
                            scores.iter().zip(offsets).map(|(score, offset)| score + offset);
                        let at = sums.position(|sum| sum == least);
                        *nearest =
                            Nearest { cell: (first + at.unwrap_or(0)) as u32, distance: least };
                    }
                }
            },
        );
    }

    fn check(&self, queries: &Matrix) -> Result<()> {
        if queries.cols() == self.centres.cols() {
            return Ok(());
        }
        let what = "dimension of the queries".to_owned();
        Err(Error::Size { what, expected: self.centres.cols(), found: queries.cols() })
    }
}

/// The least sum of a score and its offset.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn least_sum(scores: &[f32], offsets: &[f32]) -> f32 {
    let mut least = [f32::INFINITY; LANES];
    let (scores, scores_rest) = scores.as_chunks::<LANES>();
    let (offsets, offsets_rest) = offsets.as_chunks::<LANES>();
    for (scores, offsets) in scores.iter().zip(offsets) {
        for lane in 0..LANES {
            let sum = scores[lane] + offsets[lane];
            least[lane] = if sum < least[lane] { sum } else { least[lane] };
        }
    }
    for (score, offset) in scores_rest.iter().zip(offsets_rest) {
        least[0] = least[0].min(score + offset);
    }
    least.into_iter().fold(f32::INFINITY, f32::min)
}

/// Σ z²: a fixed number of partial sums, so that the compiler can use vectors of any width and
/// the result is the same with each.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
pub(crate) fn squared_length(row: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for part in whole {
        sums.iter_mut().zip(part).for_each(|(sum, value)| *sum += value * value);
    }
    let rest: f64 = rest.iter().map(|value| f64::from(value * value)).sum();
    (sums.iter().map(|&sum| f64::from(sum)).sum::<f64>() + rest) as f32
}

/// ‖c‖² − ν.
fn offsets(centres: &Matrix, weights: &[f32]) -> Vec<f32> {
    let mut offsets = squared_lengths(centres);
    offsets.iter_mut().zip(weights).for_each(|(offset, weight)| *offset -= weight);
    offsets
}

/// The mean of rows, where it is further from zero than they are from each other by so much that
/// products would cancel more than a few bits.
pub(crate) fn far_origin(rows: &Matrix) -> Option<Vec<f32>> {
    let count = rows.rows() as f64;
    let mut sums = vec![0f64; rows.cols()];
    for row in rows.iter_rows() {
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    let mean: Vec<f64> = sums.into_iter().map(|sum| sum / count).collect();
    let length: f64 = mean.iter().map(|value| value * value).sum();
    let spread = |row: &[f32]| -> f64 {
        row.iter().zip(&mean).map(|(&value, mean)| (f64::from(value) - mean).powi(2)).sum()
    };
    let spread = rows.iter_rows().map(spread).sum::<f64>() / count;
    // with a single row there is nothing to tell apart
    (rows.rows() > 1 && length > CANCELLING * spread)
        .then(|| mean.into_iter().map(|value| value as f32).collect())
}

/// Rows less a point.
pub(crate) fn less(rows: &Matrix, origin: &[f32]) -> Matrix {
    let mut out = rows.clone();
    for at in 0..out.rows() {
        out.row_mut(at).iter_mut().zip(origin).for_each(|(value, from)| *value -= from);
    }
    out
}

fn squared_lengths(rows: &Matrix) -> Vec<f32> {
    rows.iter_rows().map(squared_length).collect()
}
