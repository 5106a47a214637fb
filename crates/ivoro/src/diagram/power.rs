//! Power diagrams: centres with weights, and the distances of queries to them.

use std::borrow::Cow;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::screen::{Margin, Screen};
use crate::error::{Error, Result};
use crate::linalg::{Columns, chain, squared_distance};
use crate::matrix::Matrix;
use crate::vectors::{least, vectorised};

/// Queries and centres of one tile. Many queries share one packing of the centres; with few centres
/// there is little to pack, and a smaller tile stays in the cache for the query's own length.
const QUERIES: usize = 2048;
const QUERIES_FEW: usize = 512;
const CENTRES: usize = 512;
/// Most bytes of centres that are kept packed; of more, each tile is packed anew.
const PACKED: usize = 1 << 28;
/// Numbers in all centres together up to which every distance is measured by itself, in double
/// precision: nothing cancels.
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
#[derive(Clone, Debug)]
pub struct PowerDiagram {
    centres: Matrix,
    weights: Vec<f32>,
    /// ‖c‖² − ν: what is left of the distance besides ‖z‖² − 2 z·c.
    offsets: Vec<f32>,
    /// Where all centres lie far from zero: centres and queries are compared around this point.
    far: Option<Far>,
    form: Form,
    /// Centres as they are multiplied; packed when first asked.
    packed: OnceLock<Columns>,
}

impl PartialEq for PowerDiagram {
    fn eq(&self, other: &Self) -> bool {
        (&self.centres, &self.weights, &self.far, self.form)
            == (&other.centres, &other.weights, &other.far, other.form)
    }
}

/// What is compared between centres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// ‖z − c‖² − ν.
    Whole,
    /// ‖z − c‖² − ν less ‖z‖²: centres say nothing of how far a query is.
    Relative,
    /// −2 z·c + ‖c‖² − ν, and no square: centres are of quite another size than queries.
    Linear,
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
        Self { centres, weights, offsets, far, form: Form::Whole, packed: OnceLock::new() }
    }

    /// The diagram of −2 z·c + offset, with centres that are given around a point, or around zero:
    /// queries are compared there and nowhere else. Where squares of lengths are far larger than the
    /// offsets, those of centres or those of queries, which are of the size given, they are left out.
    pub(crate) fn linear(
        origin: Option<Vec<f32>>,
        centres: Matrix,
        offsets: &[f64],
        size: f64,
    ) -> Self {
        let square = |row: &[f32]| f64::from(squared_length(row));
        let weights: Vec<f32> = centres
            .iter_rows()
            .zip(offsets)
            .map(|(centre, offset)| (square(centre) - offset) as f32)
            .collect();
        let square = centres.iter_rows().map(square).fold(size, f64::max);
        let offset = offsets.iter().fold(0.0, |most, offset| f64::max(most, offset.abs()));
        // what is no number is not below the bound, either
        let (form, offsets) = if square <= CANCELLING * offset {
            (Form::Relative, self::offsets(&centres, &weights))
        } else {
            (Form::Linear, offsets.iter().map(|&offset| offset as f32).collect())
        };
        let packed = OnceLock::new();
        let Some(origin) = origin else {
            return Self { centres, weights, offsets, far: None, form, packed };
        };
        let mut whole = centres.clone();
        for at in 0..whole.rows() {
            whole.row_mut(at).iter_mut().zip(&origin).for_each(|(value, from)| *value += from);
        }
        let far = Some(Far { origin, centres });
        Self { centres: whole, weights, offsets, far, form, packed }
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

    /// A diagram with the same cells for points that were moved and scaled before: a coordinate here
    /// is that of a point less the origin, times the scale.
    pub(crate) fn moved(&self, origin: &[f32], scales: &[f64]) -> Result<Self> {
        let mut centres = self.centres.clone();
        let mut weights = Vec::with_capacity(centres.rows());
        for (at, weight) in self.weights.iter().enumerate() {
            let row = centres.row_mut(at);
            let offset = f64::from(squared_length(row)) - f64::from(*weight);
            row.iter_mut().zip(scales).for_each(|(value, scale)| *value *= *scale as f32);
            weights.push((f64::from(squared_length(row)) - offset) as f32);
            row.iter_mut().zip(origin).for_each(|(value, from)| *value += from);
        }
        Self::new(centres, weights)
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

    /// ‖z − c_k‖² − ν_k for every query (row) and centre (column). No bit of a row depends on which
    /// other queries there are.
    pub fn distances(&self, queries: &Matrix) -> Result<Matrix> {
        self.check(queries)?;
        let queries = &*self.local(queries);
        let mut out = self.products(queries);
        let whole = Form::Whole;
        self.finish(queries, &mut out, |length| self.scorer(whole, length, length));
        Ok(out)
    }

    /// What is compared between centres, plus a number for each query, or none: whether a distance
    /// is absolute changes no rank.
    pub(crate) fn compared(&self, queries: &Matrix, lengths: Option<&[f32]>) -> Result<Matrix> {
        self.check(queries)?;
        let queries = &*self.local(queries);
        let mut out = self.products(queries);
        let Some(lengths) = lengths else {
            self.finish(queries, &mut out, |length| self.scorer(self.form, length, 0.0));
            return Ok(out);
        };
        let cols = out.cols().max(1);
        out.as_mut_slice().par_chunks_mut(cols).enumerate().for_each(|(row, out)| {
            let length = squared_length(queries.row(row));
            let mut ranks = out.to_vec();
            self.score(&mut ranks, 0, self.scorer(self.form, length, 0.0));
            self.score(out, 0, self.scorer(self.form, length, lengths[row]));
            keep_first(out, &ranks);
        });
        Ok(out)
    }

    /// z·c for every query and centre; of few centres what is compared at once.
    fn products(&self, queries: &Matrix) -> Matrix {
        if self.is_small() {
            return self.one_by_one(queries);
        }
        if let Some(packed) = self.packed() {
            return packed.products(queries);
        }
        let (dim, count) = (self.centres.cols(), self.centres.rows());
        let mut out = Matrix::zeros(queries.rows(), count);
        for first in (0..count).step_by(CENTRES) {
            let rows = first..(first + CENTRES).min(count);
            let centres = &self.local_centres().as_slice()[rows.start * dim..rows.end * dim];
            let part = Columns::new(centres, dim).products(queries);
            let target = out.as_mut_slice().chunks_exact_mut(count).zip(part.iter_rows());
            target.for_each(|(out, part)| out[rows.clone()].copy_from_slice(part));
        }
        out
    }

    /// Centres as they are multiplied, if they are not too many to be kept so.
    fn packed(&self) -> Option<&Columns> {
        let centres = self.local_centres();
        let fits = size_of_val(centres.as_slice()) <= PACKED;
        fits.then(|| {
            self.packed.get_or_init(|| Columns::new(centres.as_slice(), centres.cols().max(1)))
        })
    }

    /// Turns products into what is compared, row by row.
    fn finish(&self, queries: &Matrix, out: &mut Matrix, scorer: impl Fn(f32) -> Scorer + Sync) {
        let cols = out.cols().max(1);
        out.as_mut_slice().par_chunks_mut(cols).enumerate().for_each(|(row, out)| {
            self.score(out, 0, scorer(squared_length(queries.row(row))));
        });
    }

    /// How products with a query of this squared length become what is compared; `added` stands for
    /// the length in the end.
    fn scorer(&self, form: Form, length: f32, added: f32) -> Scorer {
        let small = self.is_small();
        match form {
            Form::Whole if self.form == Form::Linear => {
                Scorer { before: 0.0, after: length, small }
            }
            Form::Whole => Scorer { before: length, after: 0.0, small },
            Form::Relative => Scorer { before: length, after: added - length, small },
            Form::Linear => Scorer { before: 0.0, after: added, small },
        }
    }

    /// Products with the centres from `first` on become what is compared.
    fn score(&self, products: &mut [f32], first: usize, by: Scorer) {
        let offsets = &self.offsets[first..first + products.len()];
        vectorised(
            #[inline(always)]
            || {
                for (value, &offset) in products.iter_mut().zip(offsets) {
                    *value = by.of(*value, offset);
                }
            },
        );
    }

    /// The cell of every query. Distances to other centres are never stored: each tile of a
    /// matrix product is reduced while it is in the cache. Of many queries most centres are ruled
    /// out in bytes first, where the machine multiplies those. The answer is always that of comparing
    /// all centres, whatever the number of queries.
    pub fn nearest(&self, queries: &Matrix) -> Result<Vec<Nearest>> {
        self.check(queries)?;
        if self.centres.rows() == 0 {
            let what = "centres of a diagram".to_owned();
            return Err(Error::Size { what, expected: 1, found: 0 });
        }
        if self.is_small() {
            let (ranks, distances) = (self.compared(queries, None)?, self.distances(queries)?);
            let nearest = |(ranks, distances): (&[f32], &[f32])| {
                let at = least(ranks);
                Nearest { cell: at as u32, distance: distances[at] }
            };
            return Ok(ranks.iter_rows().zip(distances.iter_rows()).map(nearest).collect());
        }
        let queries = &*self.local(queries);
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
            if !screen.as_ref().is_some_and(|screen| self.nearest_screened(screen, queries, out)) {
                self.nearest_of_all(queries, out);
            }
        });
        Ok(out)
    }

    /// The nearest centre of some queries, by products with all of them.
    fn nearest_of_all(&self, queries: &[f32], out: &mut [Nearest]) {
        let dim = self.centres.cols();
        let lengths: Vec<f32> = queries.chunks_exact(dim).map(squared_length).collect();
        let mut scores = vec![0f32; out.len() * CENTRES.min(self.centres.rows())];
        let packed = self.packed();
        for first in (0..self.centres.rows()).step_by(CENTRES) {
            let count = CENTRES.min(self.centres.rows() - first);
            let scores = &mut scores[..out.len() * count];
            if let Some(packed) = packed {
                packed.fill(queries, first..first + count, scores);
            } else {
                let numbers = first * dim..(first + count) * dim;
                let columns = Columns::new(&self.local_centres().as_slice()[numbers], dim);
                columns.fill(queries, 0..count, scores);
            }
            for ((scores, nearest), &length) in
                scores.chunks_exact_mut(count).zip(&mut *out).zip(&lengths)
            {
                self.score(scores, first, self.scorer(self.form, length, 0.0));
                let least = least_of(scores);
                if least < nearest.distance {
                    let at = scores.iter().position(|score| *score == least).unwrap_or(0);
                    *nearest = Nearest { cell: (first + at) as u32, distance: least };
                }
            }
        }
        for (nearest, query) in out.iter_mut().zip(queries.chunks_exact(dim)) {
            nearest.distance = self.distance(query, nearest.cell);
        }
    }

    /// ‖z − c‖² − ν of one centre.
    fn distance(&self, query: &[f32], cell: u32) -> f32 {
        squared_distance(query, self.local_centres().row(cell as usize))
            - self.weights[cell as usize]
    }

    /// The nearest centre of some queries by way of a screen: where several centres are as good as
    /// equally near, what all are compared by decides. `false`, with nothing done, if the screen
    /// can't say.
    fn nearest_screened(&self, screen: &Screen<'_>, queries: &[f32], out: &mut [Nearest]) -> bool {
        let Some(rivals) = screen.nearest(queries, out) else { return false };
        let dim = self.centres.cols();
        for rivals in rivals.chunk_by(|a, b| a.row == b.row).filter(|rivals| rivals.len() > 1) {
            let row = rivals[0].row as usize;
            let query = &queries[row * dim..(row + 1) * dim];
            let scorer = self.scorer(self.form, squared_length(query), 0.0);
            let compared = rivals.iter().map(|rival| {
                let cell = rival.cell as usize;
                let product = chain(query, self.local_centres().row(cell));
                (scorer.of(product, self.offsets[cell]), rival.cell)
            });
            // the first of equals stays
            let best = compared.reduce(|best, other| {
                let nearer = other.0 < best.0 || (other.0 == best.0 && other.1 < best.1);
                if nearer { other } else { best }
            });
            if let Some((_, cell)) = best {
                out[row] = Nearest { cell, distance: self.distance(query, cell) };
            }
        }
        true
    }

    /// A screen, where it pays: there is enough to do, and few centres of a sample of the queries
    /// have to be measured in full.
    fn screen(&self, queries: &Matrix) -> Option<Screen<'_>> {
        let few = queries.rows() < MANY || self.centres.rows() < MANY_CENTRES;
        if few || self.form == Form::Linear {
            return None;
        }
        let largest = self.offsets.iter().fold(0f32, |largest, offset| largest.max(offset.abs()));
        let margin = Margin::new(self.local_centres(), largest);
        let screen = Screen::of(self.local_centres(), &self.weights, margin)?;
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
            for (at, (out, centre)) in
                out.iter_mut().zip(self.local_centres().iter_rows()).enumerate()
            {
                let pairs = query.iter().zip(centre).map(|(z, c)| (f64::from(*z), f64::from(*c)));
                *out = if self.form == Form::Linear {
                    let product: f64 = pairs.map(|(z, c)| z * c).sum();
                    (f64::from(self.offsets[at]) - 2.0 * product) as f32
                } else {
                    let square: f64 = pairs.map(|(z, c)| (z - c).powi(2)).sum();
                    (square - f64::from(self.weights[at])) as f32
                };
            }
        });
        out
    }

    fn check(&self, queries: &Matrix) -> Result<()> {
        if queries.cols() == self.centres.cols() {
            return Ok(());
        }
        let what = "dimension of the queries".to_owned();
        Err(Error::Size { what, expected: self.centres.cols(), found: queries.cols() })
    }
}

/// Turns a product into what is compared.
#[derive(Clone, Copy)]
struct Scorer {
    before: f32,
    after: f32,
    /// Whether it is all but the last number already, measured by itself.
    small: bool,
}

impl Scorer {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn of(self, product: f32, offset: f32) -> f32 {
        let whole = if self.small { product } else { self.before + offset - 2.0 * product };
        whole + self.after
    }
}

/// Lets the first of the least in one row be the least in another, which rounding may have changed.
fn keep_first(row: &mut [f32], ranks: &[f32]) {
    if row.is_empty() {
        return;
    }
    let (first, now) = (least(ranks), least(row));
    if first != now {
        row[first] = row[now].next_down();
    }
}

/// The least number.
fn least_of(numbers: &[f32]) -> f32 {
    let mut least = [f32::INFINITY; LANES];
    let (numbers, rest) = numbers.as_chunks::<LANES>();
    vectorised(
        #[inline(always)]
        || {
            for numbers in numbers {
                for lane in 0..LANES {
                    least[lane] =
                        if numbers[lane] < least[lane] { numbers[lane] } else { least[lane] };
                }
            }
        },
    );
    least.iter().chain(rest).copied().fold(f32::INFINITY, f32::min)
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
