//! A metric for every class in few numbers: the usual form of the letter Q.
//!
//! In the whitened space of the pooled metric, t = L⁻¹·z with L·Lᵀ = β·S + ε·mean diagonal of S·I, a
//! class's own metric Σ_c (see [`quadrics`](super::quadrics)) differs from the identity in few
//! directions. The r leading ones v_i, with their variances λ_i, are kept; in all other directions
//! the class has one variance ρ:
//!
//! ```text
//! d(z, c) = ‖t − t_c‖²/ρ + Σ_i (1/λ_i − 1/ρ)·(v_i·(t − t_c))² + α · (Σ_i ln λ_i + (d − r)·ln ρ)
//! ```
//!
//! A class of n samples has its own variance in n − 1 directions and no more. Where all classes keep
//! all of those (complete), β is the mean share of the pooled covariance in them, and ρ what is left
//! on average: nothing is lost if all classes have equally many samples. Where one keeps fewer, β is
//! 1: what is not kept of a class counts as pooled, and so ρ is 1 for it. If r is the dimension, there
//! is nothing else, and nothing is lost.
//!
//! All classes are asked together: the query is whitened once, and all directions of all classes are
//! the rows of one product. The order in which a product is summed depends on nothing else, so an
//! answer is the same bits whatever is asked beside it.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::head::Settings;
use crate::linalg::{Columns, Symmetric, eigen, leading_space, thin_products, times};
use crate::matrix::Matrix;
use crate::vectors::{dot, vectorised};

/// Queries of one task: their whitened vectors stay in the second-level cache.
const QUERIES: usize = 96;
/// Classes whose covariances are in memory at a time.
const HELD: usize = 16;
/// Rows of the whitening triangle that end at the same column.
const PART: usize = 128;

/// Sums side by side.
const LANES: usize = 16;

/// What a covariance that has no inverse is called.
const WHAT: &str = "covariance of a class";

/// One class: where it is and how it spreads, in the whitened space.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompactClass {
    /// Its centre less the origin.
    pub(crate) centre: Vec<f32>,
    /// Directions of length 1, one per row.
    pub(crate) directions: Matrix,
    /// The variance in each direction.
    pub(crate) variances: Vec<f32>,
    /// The variance in all others.
    pub(crate) rest: f32,
}

/// What all classes share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SharedMetric {
    /// The point that queries are measured from, so that no digit is lost where all values are large.
    pub(crate) origin: Vec<f32>,
    /// `L⁻¹`, a lower triangle.
    pub(crate) whitener: Matrix,
    /// β.
    pub(crate) share: f64,
    /// ε · mean diagonal.
    pub(crate) floor: f64,
}

/// The classes of one block, ready to be asked.
pub(crate) struct Compact {
    origin: Vec<f32>,
    /// `L⁻¹` in parts of its rows, each up to the last column that holds a number.
    whitener: Vec<Columns>,
    /// What whitened queries are multiplied with, class after class: the whitened centre, then the
    /// directions, each times the root of |1/λ − 1/ρ|.
    rows: Columns,
    classes: Vec<Place>,
}

/// Numbers of one task after another: a new place for each would cost more than filling it.
#[derive(Default)]
struct Room {
    heads: Vec<f32>,
    part: Vec<f32>,
    products: Vec<f32>,
}

/// What of a class does not depend on the query.
struct Place {
    /// Rows in which it is wider than elsewhere: they make it nearer. The others make it farther.
    wide: usize,
    /// The product of each row with the class's centre.
    at_centre: Vec<f32>,
    /// 1/ρ.
    share: f32,
    /// ‖t_c‖².
    length: f32,
    /// What is added to every distance.
    volume: f32,
}

/// A class as it comes: its place, its number of samples and its centre.
pub(crate) struct Arrived<'a> {
    pub(crate) at: usize,
    pub(crate) count: u64,
    pub(crate) centre: &'a [f32],
}

/// The covariance of the class at a place.
pub(crate) type CovarianceOf<'a> = dyn FnMut(usize) -> Result<Symmetric> + 'a;

/// The shared metric in double precision, as classes are described with it.
pub(crate) struct Base {
    shared: SharedMetric,
    /// The transpose of `L⁻¹`.
    whitener: Mat<f64>,
    /// The trace of `L⁻¹·L⁻ᵀ`.
    trace: f64,
}

/// How much a class's own covariance counts, and how many directions it has.
#[derive(Clone, Copy)]
struct Weight {
    class: f64,
    pooled: f64,
    most: usize,
}

impl Weight {
    fn of(count: u64, prior: f64) -> Self {
        let freedom = count.saturating_sub(1);
        // of one sample and no prior there is nothing but the ridge
        let all = (freedom as f64 + prior).max(f64::MIN_POSITIVE);
        let most = usize::try_from(freedom).unwrap_or(usize::MAX);
        Self { class: freedom as f64 / all, pooled: prior / all, most }
    }
}

impl Compact {
    /// From what is kept of classes.
    pub(crate) fn assemble(shared: SharedMetric, classes: &[CompactClass], volume: f64) -> Self {
        let dim = shared.whitener.cols();
        let sizes: Vec<f64> = classes.iter().map(CompactClass::log_volume).collect();
        let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        let mut rows = Vec::new();
        let mut places = Vec::with_capacity(classes.len());
        for (class, size) in classes.iter().zip(sizes) {
            rows.extend_from_slice(&class.centre);
            let (wide, at_centre) = class.append_rows(&mut rows);
            places.push(Place {
                wide,
                at_centre,
                share: class.rest.recip(),
                length: dot(&class.centre, &class.centre) as f32,
                volume: (volume * (size - least)) as f32,
            });
        }
        let parts = (0..dim).step_by(PART).map(|first| {
            let end = (first + PART).min(dim);
            let rows = (first..end).flat_map(|row| shared.whitener.row(row)[..end].iter().copied());
            Columns::new(&rows.collect::<Vec<f32>>(), end)
        });
        let whitener = parts.collect();
        let rows = Columns::new(&rows, dim);
        Self { origin: shared.origin, whitener, rows, classes: places }
    }

    /// Rows of queries in the whitened space.
    fn whiten(&self, queries: &[f32], Room { heads, part, .. }: &mut Room) -> Matrix {
        let dim = self.origin.len();
        let local = less(queries, &self.origin);
        let mut white = Matrix::zeros(local.len() / dim, dim);
        for (first, columns) in (0..dim).step_by(PART).zip(&self.whitener) {
            let end = first + columns.count();
            heads.clear();
            local.chunks_exact(dim).for_each(|row| heads.extend_from_slice(&row[..end]));
            part.resize(white.rows() * columns.count(), 0.0);
            columns.fill(heads, 0..columns.count(), part);
            let rows = part.chunks_exact(columns.count()).enumerate();
            rows.for_each(|(row, part)| white.row_mut(row)[first..end].copy_from_slice(part));
        }
        white
    }

    /// Distances of every query to every class.
    pub(crate) fn distances(&self, queries: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(queries.rows(), self.classes.len());
        let (dim, classes) = (queries.cols(), self.classes.len());
        if queries.rows() * classes * dim == 0 {
            return out;
        }
        // a single task shares out its columns between threads
        let single = queries.rows() <= QUERIES;
        let tasks = out.as_mut_slice().par_chunks_mut(QUERIES * classes);
        let tasks = tasks.zip(queries.as_slice().par_chunks(QUERIES * dim));
        tasks.for_each_init(Room::default, |room, (out, queries)| {
            let white = self.whiten(queries, room);
            let products = if single {
                self.rows.products(&white).into_vec()
            } else {
                let mut products = std::mem::take(&mut room.products);
                products.resize(white.rows() * self.rows.count(), 0.0);
                self.rows.fill(white.as_slice(), 0..self.rows.count(), &mut products);
                products
            };
            let rows = out.chunks_exact_mut(classes).zip(white.iter_rows());
            let rows = rows.zip(products.chunks_exact(self.rows.count()));
            rows.for_each(|((out, white), products)| self.finish(white, products, out));
            room.products = products;
        });
        out
    }

    /// Distances of one whitened query to all classes, given its products with all rows.
    fn finish(&self, white: &[f32], products: &[f32], out: &mut [f32]) {
        let length = dot(white, white) as f32;
        vectorised(
            #[inline(always)]
            || {
                let mut products = products;
                for (distance, place) in out.iter_mut().zip(&self.classes) {
                    let (own, rest) = products.split_at(1 + place.at_centre.len());
                    products = rest;
                    let apart = (length + place.length - 2.0 * own[0]).max(0.0);
                    *distance = apart * place.share + place.along(&own[1..]) + place.volume;
                }
            },
        );
    }

    /// What a class pays for its volume.
    pub(crate) fn volume(&self, class: usize) -> f32 {
        self.classes[class].volume
    }
}

impl Place {
    /// Σ (1/λ_i − 1/ρ)·(v_i·(t − t_c))².
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn along(&self, products: &[f32]) -> f32 {
        let (wide, narrow) = products.split_at(self.wide);
        let (wide_at, narrow_at) = self.at_centre.split_at(self.wide);
        squares_apart(narrow, narrow_at) - squares_apart(wide, wide_at)
    }
}

impl SharedMetric {
    /// Rows of queries in the whitened space.
    pub(crate) fn whiten(&self, queries: &[f32]) -> Vec<f32> {
        let dim = self.origin.len();
        let local = less(queries, &self.origin);
        let mut white = vec![0.0; local.len()];
        thin_products(&local, self.whitener.as_slice(), dim, &mut white);
        white
    }

    /// The point that [`Self::whiten`] brings there.
    pub(crate) fn unwhitened(&self, white: &[f32]) -> Vec<f32> {
        let mut local: Vec<f64> = Vec::with_capacity(white.len());
        for (row, &value) in self.whitener.iter_rows().zip(white) {
            let known: f64 = row.iter().zip(&local).map(|(&w, x)| f64::from(w) * x).sum();
            let diagonal = row.get(local.len()).copied().unwrap_or(1.0);
            local.push((f64::from(value) - known) / f64::from(diagonal));
        }
        local.iter().zip(&self.origin).map(|(x, &from)| (x + f64::from(from)) as f32).collect()
    }
}

impl CompactClass {
    /// ln det of its metric, less that of the shared one.
    fn log_volume(&self) -> f64 {
        let kept: f64 = self.variances.iter().map(|&variance| f64::from(variance).ln()).sum();
        let others = self.centre.len() - self.variances.len();
        kept + others as f64 * f64::from(self.rest).ln()
    }

    /// Appends its directions as they are asked, those in which it is wide first; returns how many
    /// those are and the product of each row with the centre.
    fn append_rows(&self, rows: &mut Vec<f32>) -> (usize, Vec<f32>) {
        let mut wide = 0;
        let mut at_centre = Vec::with_capacity(self.variances.len());
        for sign in [1.0, -1.0] {
            for (direction, &variance) in self.directions.iter_rows().zip(&self.variances) {
                let nearer = sign * (1.0 / f64::from(self.rest) - 1.0 / f64::from(variance));
                if nearer > 0.0 || nearer == 0.0 && sign > 0.0 {
                    let first = rows.len();
                    let root = nearer.sqrt();
                    rows.extend(direction.iter().map(|&v| (f64::from(v) * root) as f32));
                    at_centre.push(dot(&rows[first..], &self.centre) as f32);
                    wide += usize::from(sign > 0.0);
                }
            }
        }
        (wide, at_centre)
    }
}

impl Base {
    /// From the pooled covariance of classes with these numbers of samples and centres.
    pub(crate) fn new(
        mut pooled: Symmetric,
        centres: &Matrix,
        counts: &[u64],
        settings: &Settings,
        rank: usize,
    ) -> Result<Self> {
        let weights: Vec<Weight> =
            counts.iter().map(|&count| Weight::of(count, settings.prior)).collect();
        let complete = rank < pooled.dim() && weights.iter().all(|weight| weight.most <= rank);
        let mean = weights.iter().map(|weight| weight.pooled).sum::<f64>() / counts.len() as f64;
        let share = if complete { mean } else { 1.0 };
        let floor = settings.ridge * pooled.mean_diagonal();
        pooled.scale(share);
        pooled.add_diagonal(floor);
        let factor = pooled.factor(WHAT, settings.ridge)?;
        let (origin, whitener) = (mean_row(centres), factor.inverse());
        let shared = SharedMetric { origin, whitener, share, floor };
        Ok(Self::with(shared, factor.inverse_transposed()))
    }

    /// From a metric that was fixed earlier.
    pub(crate) fn of(shared: SharedMetric) -> Self {
        let rows = shared.whitener.view();
        let whitener = Mat::from_fn(rows.ncols(), rows.nrows(), |row, col| rows[(col, row)].into());
        Self::with(shared, whitener)
    }

    fn with(shared: SharedMetric, whitener: Mat<f64>) -> Self {
        let trace = squares(whitener.as_ref());
        Self { shared, whitener, trace }
    }

    /// The metric as it is kept.
    pub(crate) fn shared(&self) -> &SharedMetric {
        &self.shared
    }

    /// What is kept of each class.
    pub(crate) fn describe(
        &self,
        arrived: &[Arrived<'_>],
        covariance: &mut CovarianceOf<'_>,
        settings: &Settings,
        rank: usize,
    ) -> Result<Vec<CompactClass>> {
        let mut classes = Vec::with_capacity(arrived.len());
        for held in arrived.chunks(HELD) {
            let covariances: Vec<Symmetric> =
                held.iter().map(|class| covariance(class.at)).collect::<Result<_>>()?;
            let described = covariances.into_par_iter().zip(held).map(|(covariance, class)| {
                let weight = Weight::of(class.count, settings.prior);
                let centre = self.shared.whiten(class.centre);
                self.class(&covariance, weight, centre, (rank, settings.ridge))
            });
            classes.extend(described.collect::<Result<Vec<_>>>()?);
        }
        Ok(classes)
    }

    fn class(
        &self,
        covariance: &Symmetric,
        weight: Weight,
        centre: Vec<f32>,
        (rank, ridge): (usize, f64),
    ) -> Result<CompactClass> {
        let dim = covariance.dim();
        let rank = rank.min(dim);
        let singular = || Error::NotPositiveDefinite { what: WHAT, ridge };
        // the pooled part of the class in units of that in the base, and what that leaves of the ridge
        let most = if rank == dim { dim } else { weight.most };
        let whole = most <= rank;
        let share = self.shared.share;
        let pooled = if share > 0.0 { weight.pooled / share } else { 1.0 };
        let ridged = (1.0 - pooled) * self.shared.floor;
        let space = leading_space(covariance, Some(self.whitener.as_ref()), rank, most);
        let gram = times(space.raw.as_ref().transpose(), space.raw.as_ref());
        let size = gram.nrows();
        let metric = Mat::from_fn(size, size, |row, col| {
            let same = if row == col { pooled } else { 0.0 };
            weight.class * space.covariance[(row, col)] + ridged * gram[(row, col)] + same
        });
        let (variances, turn) = eigen(metric.as_ref(), WHAT, ridge)?;
        let kept = rank.min(size);
        let turn = turn.subcols(0, kept);
        let directions = times(space.basis.as_ref(), turn);
        let inside = squares(times(space.raw.as_ref(), turn).as_ref());
        let others = dim - kept;
        let rest = if whole && others > 0 {
            pooled + ridged * (self.trace - inside) / others as f64
        } else {
            1.0
        };
        let variances: Vec<f32> = variances[..kept].iter().map(|&value| value as f32).collect();
        if !(rest.is_normal() && rest > 0.0) || variances.iter().any(|&v| !v.is_normal() || v < 0.0)
        {
            return Err(singular());
        }
        let directions = to_rows(directions.as_ref())?;
        Ok(CompactClass { centre, directions, variances, rest: rest as f32 })
    }
}

/// Squared distance of two short rows, in sums side by side.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn squares_apart(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    for ((sum, a), b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum += (a - b) * (a - b);
    }
    let eight: [f32; 8] = std::array::from_fn(|at| sums[at] + sums[at + 8]);
    let four: [f32; 4] = std::array::from_fn(|at| eight[at] + eight[at + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Rows less a point.
fn less(rows: &[f32], origin: &[f32]) -> Vec<f32> {
    let mut local = rows.to_vec();
    for row in local.chunks_exact_mut(origin.len().max(1)) {
        row.iter_mut().zip(origin).for_each(|(value, from)| *value -= from);
    }
    local
}

/// The sum of all squares.
fn squares(matrix: MatRef<'_, f64>) -> f64 {
    matrix.col_iter().map(|column| column.iter().map(|value| value * value).sum::<f64>()).sum()
}

/// Columns as rows of single precision.
fn to_rows(columns: MatRef<'_, f64>) -> Result<Matrix> {
    let data = columns.col_iter().flat_map(|column| column.iter().map(|&value| value as f32));
    Matrix::new(columns.ncols(), columns.nrows(), data.collect())
}

fn mean_row(rows: &Matrix) -> Vec<f32> {
    let mut sums = vec![0f64; rows.cols()];
    for row in rows.iter_rows() {
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    sums.into_iter().map(|sum| (sum / rows.rows().max(1) as f64) as f32).collect()
}
