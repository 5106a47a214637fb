//! How unlike everything known a query is.
//!
//! The distance to the predicted class alone says little: a query far from everything is far from
//! its class too. So it is compared with the distance to the background, which is what a query of no
//! class in particular looks like: normal around the mean of the class centres, as wide as a class
//! and b times as wide as the centres lie. With A the metric, B the spread of the centres c_j, all of
//! m of them as important, and v_j = (c_j − c̄)ᵀ A (z − c̄):
//!
//! ```text
//! d₀ = (z − c̄)ᵀ (A⁻¹ + b·B)⁻¹ (z − c̄) = (z − c̄)ᵀ A (z − c̄) − vᵀ (m/b · I + G)⁻¹ v
//! strangeness = (d_k − w·(d₀ − s)) / u        w = (m − 1) / (m − 1 + 1)
//! ```
//!
//! u is the usual distance of a sample to its own class, s the part of it that the sample's own spread
//! is: a class mean of few samples is uncertain, the mean of all classes is not. Of a single class there
//! is no background.
//!
//! Everything but u follows from distances: of the query to the centres, and of the centres to each
//! other, from which the products G of centres are found by centring. So any metric will do.

use crate::diagram::PowerDiagram;
use crate::error::Result;
use crate::head::compose::Composed;
use crate::head::diagram_set::{DiagramSet, Metric};
use crate::head::variant::Views;
use crate::head::{Frame, Head, LearnedPhase};
use crate::linalg::{Factor, Symmetric};
use crate::matrix::Matrix;
use crate::random::mix;

/// b: how wide classes never learned lie about the mean, as a share of how wide the known ones do.
const WIDTH: f64 = 0.1;
/// Classes that stand for all where there are more.
const MOST: usize = 256;
/// For how many classes the absolute distance counts beside the background.
const DOUBT: f64 = 1.0;
/// The gap of a probe: in this unit the temperature where nothing was measured is 2, at which differences of
/// squared distances to a probe's centres are its own probabilities.
const PROBE_GAP: f64 = 16.0;
/// How many gaps a vote of AC outweighs, about.
const VOTE: f64 = 16.0;
/// Random vectors that a trace is estimated with.
const PROBES: usize = 16;

/// What the strangeness of queries is measured with.
#[derive(Debug)]
pub(crate) struct Background {
    /// The classes that stand for all, spread over the order of arrival.
    members: Vec<usize>,
    /// Squared distance of each from their mean.
    lengths: Vec<f64>,
    /// Of m/b · I + G; none where there is nothing to compare with.
    factor: Option<Factor>,
    /// w: how much the background counts.
    share: f64,
    /// u; 0 where nothing says how far samples lie from their class.
    pub(crate) usual: f64,
    /// s: u without what the uncertain mean of a class adds.
    spread: f64,
    /// Mean distance of a centre to the nearest other one: the unit of the temperature. 0 where there
    /// is no other.
    pub(crate) gap: f64,
}

impl Background {
    /// One number per query from its distances to the classes that stand for all; 1 is usual.
    pub(crate) fn strangeness(&self, distances: &Matrix, own: impl Fn(usize) -> f64) -> Vec<f64> {
        let unit = self.usual.max(f64::MIN_POSITIVE);
        let beyond = self.beyond(distances);
        let rows = (0..distances.rows()).map(|row| {
            let far = beyond.get(row).map_or(0.0, |background| background - self.spread);
            ((own(row) - self.share * far) / unit).clamp(-f64::MAX, f64::MAX)
        });
        rows.collect()
    }

    /// Distances to the classes that stand for all, among those to all.
    pub(crate) fn of_members(&self, distances: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(distances.rows(), self.members.len());
        for row in 0..distances.rows() {
            let from = distances.row(row);
            let pairs = out.row_mut(row).iter_mut().zip(&self.members);
            pairs.for_each(|(place, &member)| *place = from[member]);
        }
        out
    }

    /// The same from the points, where there is but one diagram and it is plain.
    pub(crate) fn to_members(&self, cross: &[Metric], points: &Composed) -> Result<Matrix> {
        match cross.first().and_then(Metric::diagram) {
            Some(diagram) => {
                let centres = diagram.centres().select(&self.members);
                PowerDiagram::voronoi(centres).distances(points.block(0, 0))
            }
            None => Ok(Matrix::zeros(0, self.members.len())),
        }
    }

    /// d₀ of every query; empty without a background.
    fn beyond(&self, distances: &Matrix) -> Vec<f64> {
        let Some(factor) = &self.factor else { return Vec::new() };
        let count = self.members.len() as f64;
        let mean_length = self.lengths.iter().sum::<f64>() / count;
        let mut products = Matrix::zeros(distances.rows(), self.members.len());
        let mut lengths = Vec::with_capacity(distances.rows());
        for (row, distances) in distances.iter_rows().enumerate() {
            let length = distances.iter().map(|&d| f64::from(d)).sum::<f64>() / count - mean_length;
            lengths.push(length);
            let pairs = distances.iter().zip(&self.lengths);
            let product = pairs.map(|(&to, own)| ((length + own - f64::from(to)) / 2.0) as f32);
            products.row_mut(row).iter_mut().zip(product).for_each(|(place, value)| *place = value);
        }
        let white = factor.whiten(&products);
        let square = |row: &[f32]| row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>();
        lengths.iter().zip(white.iter_rows()).map(|(length, row)| length - square(row)).collect()
    }
}

impl Head {
    /// What strangeness and temperature are measured with; built when first asked for.
    pub(crate) fn background(&self) -> Result<&Background> {
        let set = self.diagram_set()?;
        if let Some(background) = set.background.get() {
            return Ok(background);
        }
        let background = self.build_background(set)?;
        Ok(set.background.get_or_init(|| background))
    }

    fn build_background(&self, set: &DiagramSet) -> Result<Background> {
        let all: Vec<usize> = (0..self.classes.len()).collect();
        self.background_among(set, &all)
    }

    /// The same were only these classes known.
    pub(crate) fn background_among(
        &self,
        set: &DiagramSet,
        classes: &[usize],
    ) -> Result<Background> {
        let count = classes.len().min(MOST);
        let members: Vec<usize> =
            (0..count).map(|at| classes[at * classes.len() / count]).collect();
        let between = match &self.frame {
            Some(frame) if count > 1 => self.between(set, frame, &members)?,
            _ => vec![vec![0.0; count]; count],
        };
        let gap = mean_gap(&between);
        let (spread, uncertain) = (self.spread_of_samples(set)?, self.uncertainty_of_means());
        let known = spread > 0.0;
        let (usual, spread) = if known { (spread * (1.0 + uncertain), spread) } else { (gap, gap) };
        let share = (count as f64 - 1.0) / (count as f64 - 1.0 + DOUBT);
        let (products, lengths) = centred(&between);
        let usable = count > 1 && set.gamma == 1.0 && usual > 0.0 && usual.is_finite();
        let factor = if usable {
            let mut sum = products;
            sum.add_diagonal(count as f64 / WIDTH * self.unit(set, usual));
            sum.factor("distances between class centres", WIDTH).ok()
        } else {
            None
        };
        let share = if factor.is_some() { share } else { 0.0 };
        let gap = self.gap_of_answers(set.pairs().len() as f64, gap);
        Ok(Background { members, lengths, factor, share, usual, spread, gap })
    }

    /// The gap in the unit of the distances that decide. Those of D within a phase are of its probe;
    /// with several phases it is the middle of both units, so that temperatures about either are tried.
    /// Under AC they are means, with votes that outweigh the span of all of them.
    fn gap_of_answers(&self, pairs: f64, gap: f64) -> f64 {
        let has_probe = |learned: &&LearnedPhase| learned.probe.is_some() && learned.size > 1;
        let sum = match self.phases.iter().filter(has_probe).count() {
            0 => gap,
            1 if self.phases.len() == 1 => pairs * PROBE_GAP,
            _ => (pairs * PROBE_GAP * gap).sqrt(),
        };
        if self.variant.views == Views::Consensus { VOTE * sum / pairs } else { sum }
    }

    /// Distances of some centres to each other, without what is the same for all of a row.
    fn between(&self, set: &DiagramSet, frame: &Frame, members: &[usize]) -> Result<Vec<Vec<f64>>> {
        let centres = (0..frame.dims.len()).map(|at| Ok(self.centres(frame, at)?.select(members)));
        let points = Composed {
            views: set.views,
            layers: set.layers,
            blocks: centres.collect::<Result<_>>()?,
        };
        let pairs = set.pair_distances(&points, None, !self.variant.lift)?;
        let sum = super::answer::summed(&pairs);
        let volume = |class: usize| set.volume(class);
        let to = |row: usize, class: usize| f64::from(sum.row(row)[class]) - volume(class);
        let rows = members.iter().enumerate().map(|(row, &own)| {
            members.iter().map(|&other| to(row, other) - to(row, own)).collect()
        });
        Ok(rows.collect())
    }

    /// By what share of the spread a new sample lies further from the mean of a class, on average: a mean of
    /// n samples is off by 1/n of it.
    fn uncertainty_of_means(&self) -> f64 {
        let counts = self.classes.iter().map(|class| 1.0 / class.statistics.count.max(1) as f64);
        counts.sum::<f64>() / self.classes.len().max(1) as f64
    }

    /// Mean distance of samples to their own class, from the sums, were its mean certain.
    fn spread_of_samples(&self, set: &DiagramSet) -> Result<f64> {
        if !self.variant.is_metric() {
            let typical = self.typical_distances()?;
            let several = self.classes.iter().zip(typical);
            let several = several.filter(|(class, _)| class.statistics.count > 1);
            let (sum, count) = several.fold((0.0, 0), |(sum, count), (_, d)| (sum + d, count + 1));
            return Ok(sum.abs() / f64::from(count.max(1)));
        }
        let of_pair = |(_, centre): (usize, usize)| -> f64 {
            let layer = |layer: usize| {
                let usual = set.usual[centre * set.layers + layer];
                f64::from(set.layer_weights[layer]) * usual.powf(f64::from(set.gamma))
            };
            (0..set.layers).map(layer).sum()
        };
        Ok(set.pairs().into_iter().map(of_pair).sum::<f64>())
    }

    /// What a distance of one deviation in one direction counts.
    fn unit(&self, set: &DiagramSet, usual: f64) -> f64 {
        let plain = |metric: &Metric| matches!(metric, Metric::Plain(_));
        let known = set.usual.iter().any(|usual| *usual > 0.0);
        if known && !set.cross.iter().any(plain) {
            return 1.0;
        }
        let dims = self.frame.iter().flat_map(|frame| frame.dims.iter()).sum::<usize>();
        usual / dims.max(1) as f64
    }
}

/// The mean distance to the nearest other one.
fn mean_gap(between: &[Vec<f64>]) -> f64 {
    if between.len() < 2 {
        return 0.0;
    }
    let nearest = between.iter().enumerate().map(|(row, distances)| {
        let others = distances.iter().enumerate().filter(|(at, _)| *at != row);
        others.map(|(_, &distance)| distance).fold(f64::INFINITY, f64::min)
    });
    let mean = nearest.sum::<f64>() / between.len() as f64;
    if mean.is_finite() { mean.max(0.0) } else { 0.0 }
}

/// Products of centres around their mean, and their squared lengths, from distances to each other.
fn centred(between: &[Vec<f64>]) -> (Symmetric, Vec<f64>) {
    let count = between.len();
    let both = |row: usize, col: usize| f64::midpoint(between[row][col], between[col][row]);
    let mean = |row: usize| (0..count).map(|col| both(row, col)).sum::<f64>() / count.max(1) as f64;
    let means: Vec<f64> = (0..count).map(mean).collect();
    let all = means.iter().sum::<f64>() / count.max(1) as f64;
    let product = |row: usize, col: usize| (means[row] + means[col] - all - both(row, col)) / 2.0;
    let mut products = Symmetric::zeros(count);
    products.for_each(|row, col, value| *value = product(row, col));
    (products, (0..count).map(|at| product(at, at)).collect())
}

/// What the usual distance of a metric is made from, before the ridge is added.
pub(crate) struct Spread {
    /// Share of the covariance that is taken for chance.
    chance: f64,
    mean: f64,
    dim: usize,
    ridge: f64,
}

impl Spread {
    /// Of a pooled covariance that so many differences from class means were added up in.
    pub(crate) fn of(covariance: &Symmetric, freedom: u64, ridge: f64) -> Self {
        let (dim, mean) = (covariance.dim(), covariance.mean_diagonal());
        let (d, trace) = (dim as f64, mean * dim as f64);
        let squares = covariance.squares();
        // shrinkage towards the mean variance that is best for normal samples (OAS)
        let excess = (squares - trace * trace / d) * (freedom as f64 + 1.0 - 2.0 / d);
        let chance = ((1.0 - 2.0 / d) * squares + trace * trace) / excess;
        let chance = if excess > 0.0 { chance.clamp(0.0, 1.0) } else { 1.0 };
        Self { chance, mean, dim, ridge: ridge * mean }
    }

    /// Expected distance of a new sample to the mean of its class: tr(A·Σ), Σ the covariance as far
    /// as the samples tell and round beyond, A the inverse of what was factored.
    pub(crate) fn usual(&self, factor: &Factor) -> f64 {
        if self.dim == 0 {
            return 0.0;
        }
        let sign = |at: usize| if mix(7, at as u64) & 1 == 0 { 1.0 } else { -1.0 };
        let mut probes = Matrix::zeros(PROBES, self.dim);
        probes.as_mut_slice().iter_mut().enumerate().for_each(|(at, value)| *value = sign(at));
        let white = factor.whiten(&probes);
        let squares: f64 = white.as_slice().iter().map(|&v| f64::from(v) * f64::from(v)).sum();
        let trace = squares / PROBES as f64;
        let inside = (self.dim as f64 - self.ridge * trace).max(0.0);
        (1.0 - self.chance) * inside + self.chance * self.mean * trace
    }
}
