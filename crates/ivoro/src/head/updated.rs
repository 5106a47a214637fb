//! The metric of W after a few samples more, without building it anew: one query is answered where a
//! bound proves that the metric built anew gives the same class.
//!
//! Built from N₀ = n − K degrees of freedom, the metric was M₀ = S₀ + ρ₀·I. Samples that came since change
//! the scatter within classes by U·Uᵀ, one column a sample, and then
//!
//! ```text
//! M = α·M₀ + U·Uᵀ/N + δ·I        α = N₀/N        δ = ε·‖U‖²/(d·N) ≥ 0
//! ```
//!
//! Without δ the distances are known by the formula of Sherman, Morrison and Woodbury, with Y = M₀⁻¹U:
//!
//! ```text
//! D′ = (D₀ − tᵀ(N₀·I + UᵀY)⁻¹t) / α        D₀ = (z − c)ᵀM₀⁻¹(z − c)        t = Yᵀ(z − c)
//! ```
//!
//! and with it D′/(1 + θ) ≤ D ≤ D′, since M₀ ≥ ρ₀·I: θ = δ/(α·ρ₀). N₀·I + UᵀY = L·Lᵀ grows by a row with
//! each column, and L⁻¹Yᵀc is kept for each class. All that rounds (values on the grid, and
//! what the metric built anew computes in `f32`) widens the bound. Nothing here reaches a file or a
//! record, and no query is answered whose nearest class is not further ahead than the bound.

use std::sync::Arc;

use rayon::prelude::*;

use crate::diagram::PowerDiagram;
use crate::error::Result;
use crate::head::diagram_set::{DiagramSet, Metric};
use crate::head::place::are_mixed;
use crate::linalg::Factor;
use crate::matrix::Matrix;

/// Most columns of U: with more, building anew is no dearer.
pub(super) const MOST: usize = 128;
/// Half a unit in the last place of a number of `f32`.
const UNIT: f64 = 1.0 / (1u64 << 24) as f64;

/// What a metric was built from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Variances of S₀.
    pub(crate) diagonal: Vec<f64>,
    /// N₀, and n.
    pub(crate) freedom: f64,
    pub(crate) samples: f64,
    /// ε, and ρ₀ = ε times the mean of the diagonal.
    pub(crate) ridge: f64,
    pub(crate) floor: f64,
    /// Whether a feature's own ridge would be taken where they are of mixed scale.
    pub(crate) auto: bool,
    /// The largest ‖c‖².
    pub(crate) longest: f64,
    /// The unit that values are rounded to before they are multiplied, and Σ ‖z‖² of all samples.
    pub(crate) unit: f64,
    pub(crate) squares: f64,
}

/// A class that is new, or that moved since.
#[derive(Debug)]
struct Moved {
    class: usize,
    centre: Vec<f64>,
    /// M₀⁻¹c and cᵀM₀⁻¹c.
    linear: Vec<f64>,
    offset: f64,
    /// L⁻¹Yᵀc.
    dots: Vec<f64>,
}

/// A metric that was built, and what changed since.
#[derive(Debug)]
pub(crate) struct Updated {
    built: Arc<DiagramSet>,
    /// Columns of Y.
    solved: Vec<Vec<f64>>,
    /// L, row by row.
    inner: Vec<Vec<f64>>,
    /// L⁻¹Yᵀc of the classes that were there, column by column.
    dots: Vec<Vec<f64>>,
    moved: Vec<Moved>,
    /// ‖M₀⁻¹c‖ of the classes that were there, and ‖Y‖².
    lengths: Vec<f64>,
    solution: f64,
    /// Classes and samples now, ‖U‖², and the squares of U feature by feature.
    classes: usize,
    samples: f64,
    added: f64,
    diagonal: Vec<f64>,
    /// Σ ‖z‖·‖e‖, e being what rounding to the grid changes, of the samples that came.
    rounded: f64,
}

/// Mean and number of the samples that a class had before.
pub(crate) type Before = Option<(Vec<f64>, f64)>;

/// Samples of one class that came: their points, and the mean and number of those before and after.
pub(crate) struct Arrival<'a> {
    pub(crate) class: usize,
    pub(crate) points: Vec<&'a [f32]>,
    pub(crate) before: Before,
    pub(crate) mean: Vec<f64>,
}

impl Updated {
    /// The start: nothing changed. `None` where a metric can't be updated.
    pub(crate) fn of(built: Arc<DiagramSet>, classes: usize) -> Option<Self> {
        let (origin, diagram, _) = parts(&built)?;
        // what rounding took from the scatter must not reach the ridge
        let (count, dim) = (origin.samples, origin.diagonal.len() as f64);
        let lost = origin.unit * (origin.squares * count * dim).sqrt()
            + count * dim * origin.unit * origin.unit;
        let sound = origin.floor > 0.0 && lost / origin.freedom <= 0.25 * origin.floor;
        let (samples, diagonal) = (origin.samples, vec![0.0; origin.diagonal.len()]);
        let length = |row: &[f32]| crate::vectors::dot(row, row).sqrt();
        let lengths = diagram.centres().iter_rows().map(length).collect();
        sound.then(|| Self {
            built,
            solved: Vec::new(),
            inner: Vec::new(),
            dots: Vec::new(),
            moved: Vec::new(),
            lengths,
            solution: 0.0,
            classes,
            samples,
            added: 0.0,
            diagonal,
            rounded: 0.0,
        })
    }

    /// Takes samples in, unless they are too many.
    pub(crate) fn add(mut self, arrivals: &[Arrival<'_>]) -> Option<Self> {
        let built = Arc::clone(&self.built);
        let (origin, diagram, factor) = parts(&built)?;
        let mut columns = Vec::new();
        for arrival in arrivals {
            let mean = mean_of(&arrival.points);
            let less = |point: &&[f32]| -> Vec<f64> {
                point.iter().zip(&mean).map(|(&value, mean)| f64::from(value) - mean).collect()
            };
            columns.extend(arrival.points.iter().map(less));
            let count = arrival.points.len() as f64;
            if let Some((centre, before)) = &arrival.before {
                let weight = (before * count / (before + count)).sqrt();
                let apart = mean.iter().zip(centre).map(|(mean, c)| weight * (mean - c));
                columns.push(apart.collect());
            }
            self.samples += count;
            for point in &arrival.points {
                self.rounded += lost(point, origin.unit);
            }
        }
        columns.retain(|column| column.iter().any(|&value| value != 0.0));
        if self.solved.len() + columns.len() > MOST || self.moved.len() + arrivals.len() > MOST {
            return None;
        }
        let solved = factor.solve_wide(&columns.concat());
        for (column, solved) in columns.iter().zip(solved.chunks_exact(origin.diagonal.len())) {
            self.push(column, solved, origin.freedom, diagram.centres())?;
        }
        let means: Vec<f64> = arrivals.iter().flat_map(|arrival| arrival.mean.clone()).collect();
        let linear = factor.solve_wide(&means);
        for (arrival, linear) in arrivals.iter().zip(linear.chunks_exact(origin.diagonal.len())) {
            let Arrival { class, mean, .. } = arrival;
            let mut dots: Vec<f64> = self.solved.iter().map(|solved| dot(solved, mean)).collect();
            solve_lower(&self.inner, &mut dots);
            self.moved.retain(|moved| moved.class != *class);
            let (linear, offset) = (linear.to_vec(), dot(mean, linear));
            self.moved.push(Moved { class: *class, centre: mean.clone(), linear, offset, dots });
            self.classes = self.classes.max(class + 1);
        }
        Some(self)
    }

    /// Takes in a column of U; `None` if rounding leaves no factor.
    fn push(
        &mut self,
        column: &[f64],
        solved: &[f64],
        freedom: f64,
        linear: &Matrix,
    ) -> Option<()> {
        let mut row: Vec<f64> = self.solved.iter().map(|other| dot(column, other)).collect();
        solve_lower(&self.inner, &mut row);
        let rest = freedom + dot(column, solved) - dot(&row, &row);
        let root = Some(rest.sqrt()).filter(|root| *root > 0.0)?;
        let (kept, others) = (&self.dots, &row);
        let dots = linear.as_slice().par_chunks_exact(column.len()).enumerate();
        let dots = dots.map(|(class, linear)| {
            let done: f64 = others.iter().zip(kept).map(|(a, dots)| a * dots[class]).sum();
            (crate::vectors::dot(linear, column) - done) / root
        });
        let dots: Vec<f64> = dots.collect();
        for moved in &mut self.moved {
            let done = dot(&row, &moved.dots);
            moved.dots.push((dot(&moved.linear, column) - done) / root);
        }
        row.push(root);
        self.inner.push(row);
        self.dots.push(dots);
        self.added += dot(column, column);
        self.diagonal.iter_mut().zip(column).for_each(|(sum, value)| *sum += value * value);
        self.solution += dot(solved, solved);
        self.solved.push(solved.to_vec());
        Some(())
    }

    /// How many classes there are then.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// The class of a query, if the bound proves it.
    pub(crate) fn predict(&self, query: &[f32]) -> Result<Option<u32>> {
        let Some((origin, diagram, factor)) = parts(&self.built) else { return Ok(None) };
        let freedom = self.samples - self.classes as f64;
        let share = origin.freedom / freedom;
        if freedom < 1.0 || share > 1.0 || self.mixes(origin, freedom) {
            return Ok(None);
        }
        let wide: Vec<f64> = query.iter().map(|&value| f64::from(value)).collect();
        let mut asked: Vec<f64> = self.solved.iter().map(|solved| dot(solved, &wide)).collect();
        solve_lower(&self.inner, &mut asked);
        let length = dot(&wide, &factor.solve_wide(&wide));
        let row = Matrix::new(1, query.len(), query.to_vec())?;
        let relative = diagram.compared(&row, None)?;
        let mut distances = vec![f64::INFINITY; self.classes];
        let mut spans = vec![0.0; self.classes];
        for (distance, &relative) in distances.iter_mut().zip(relative.row(0)) {
            *distance = length + f64::from(relative);
        }
        for (asked, dots) in asked.iter().zip(&self.dots) {
            for ((distance, span), dot) in distances.iter_mut().zip(&mut spans).zip(dots) {
                *distance -= (asked - dot).powi(2);
                *span += dot * dot;
            }
        }
        // ‖P⁻¹c‖ of the longest: what was solved before, and what came on top
        let reach =
            |length: f64, span: f64| length + (self.solution * span / origin.freedom).sqrt();
        let mut linear =
            self.lengths.iter().zip(&spans).map(|(l, s)| reach(*l, *s)).fold(0.0, f64::max);
        let mut longest = origin.longest;
        for moved in &self.moved {
            let apart = asked.iter().zip(&moved.dots).map(|(asked, dot)| (asked - dot).powi(2));
            let whole = length + moved.offset - 2.0 * dot(&wide, &moved.linear);
            distances[moved.class] = whole - apart.sum::<f64>();
            longest = f64::max(longest, dot(&moved.centre, &moved.centre));
            let before = dot(&moved.linear, &moved.linear).sqrt();
            linear = f64::max(linear, reach(before, dot(&moved.dots, &moved.dots)));
        }
        distances.iter_mut().for_each(|distance| *distance /= share);
        let sizes =
            Sizes { query: dot(&wide, &wide).sqrt(), length, linear, centre: longest.sqrt() };
        Ok(proven(&distances, self.bound(origin, (share, freedom), &sizes)))
    }

    /// How far distances may be from those of the metric built anew: parts of a distance, below and
    /// above, and a number.
    fn bound(
        &self,
        origin: &Origin,
        (share, freedom): (f64, f64),
        sizes: &Sizes,
    ) -> (f64, f64, f64) {
        let dim = origin.diagonal.len() as f64;
        // M₀ ≥ ¾·ρ₀·I, whatever the grid took
        let floor = 0.75 * share * origin.floor;
        let grid = 2.0 * self.rounded / freedom * (1.0 + origin.ridge / dim);
        let ridge = origin.ridge * self.added / (dim * freedom);
        // double precision, in factors and solutions: cond M₀ ≤ d/ε + 1, and a part of all that cancels
        let wide = 64.0 * dim * f64::EPSILON * 2.0 * (dim / origin.ridge + 1.0);
        let (below, above) = ((ridge + grid) / floor + wide, grid / floor + wide);
        let linear = sizes.linear / share * (1.0 + below);
        // chains of products, and squares, in `f32`, before and anew
        let products = 8.0 * UNIT * (dim + 64.0) * sizes.query * linear;
        let squares = sizes.query * sizes.query + linear * linear + sizes.centre * linear;
        let cancelled = wide * (sizes.length + sizes.centre * linear);
        (below, above, (products + 2.0 * UNIT * (dim + 64.0) * squares + cancelled) / share)
    }

    /// Whether the metric built anew may take another kind of ridge.
    fn mixes(&self, origin: &Origin, freedom: f64) -> bool {
        let variance = |(old, new): (&f64, &f64)| (origin.freedom * old + new) / freedom;
        let now: Vec<f64> = origin.diagonal.iter().zip(&self.diagonal).map(variance).collect();
        // a little sooner than it would
        let largest = now.iter().copied().fold(0.0, f64::max);
        let sooner: Vec<f64> =
            now.iter().map(|v| v + 0.25 * v * v / largest.max(f64::MIN_POSITIVE)).collect();
        origin.auto && (are_mixed(&now) || are_mixed(&sooner))
    }
}

/// How large the numbers of a query are: ‖z‖, zᵀM₀⁻¹z, ‖P⁻¹c‖ times α and ‖c‖ of the longest centres.
struct Sizes {
    query: f64,
    length: f64,
    linear: f64,
    centre: f64,
}

/// The one metric of a set, what it was built from, and its factor.
fn parts(set: &DiagramSet) -> Option<(&Origin, &PowerDiagram, &Factor)> {
    match &set.cross[..] {
        [Metric::Whitened { diagram, factor, origin: Some(origin), .. }]
            if set.probes.is_none() =>
        {
            Some((origin, diagram, factor))
        }
        _ => None,
    }
}

/// The nearest class, if it stays that whatever the bound allows.
fn proven(distances: &[f64], (below, above, apart): (f64, f64, f64)) -> Option<u32> {
    let least = |skip: Option<usize>| {
        let others = distances.iter().enumerate().filter(|(class, _)| Some(*class) != skip);
        others.min_by(|a, b| a.1.total_cmp(b.1))
    };
    let (best, nearest) = least(None)?;
    let rival = least(Some(best)).map_or(f64::INFINITY, |(_, distance)| *distance);
    let sure = above < 0.5 && nearest * (1.0 + 2.0 * above) + apart < rival / (1.0 + below) - apart;
    sure.then_some(best as u32)
}

/// Σ aᵢ·bᵢ.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (chunks, rest) = a.as_chunks::<8>();
    let (others, others_rest) = b.as_chunks::<8>();
    let mut sums = [0f64; 8];
    for (a, b) in chunks.iter().zip(others) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + rest.iter().zip(others_rest).map(|(a, b)| a * b).sum::<f64>()
}

fn mean_of(points: &[&[f32]]) -> Vec<f64> {
    let mut mean = vec![0f64; points.first().map_or(0, |point| point.len())];
    for point in points {
        mean.iter_mut().zip(*point).for_each(|(mean, &value)| *mean += f64::from(value));
    }
    mean.iter_mut().for_each(|mean| *mean /= points.len() as f64);
    mean
}

/// ‖z‖·‖e‖ + ‖e‖², e being what rounding to a unit changes.
fn lost(point: &[f32], unit: f64) -> f64 {
    let (mut square, mut change) = (0f64, 0f64);
    for value in point.iter().map(|&value| f64::from(value)) {
        square += value * value;
        change += (value - (value / unit).round_ties_even() * unit).powi(2);
    }
    (square * change).sqrt() + change
}

/// L⁻¹t in place of t, L row by row.
fn solve_lower(rows: &[Vec<f64>], t: &mut [f64]) {
    for (at, row) in rows.iter().enumerate() {
        t[at] = (t[at] - dot(&row[..at], &t[..at])) / row[at];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{Head, Settings};
    use crate::random::unit;
    use crate::samples::{Points, Samples, View};

    #[test]
    fn rows_of_a_factor_solve() {
        let mut t = [2.0, 7.0];
        solve_lower(&[vec![2.0], vec![3.0, 4.0]], &mut t);
        assert_eq!(t, [1.0, 1.0]);
    }

    fn some(classes: std::ops::Range<u32>, each: usize, seed: u64) -> Samples {
        let dim = 30;
        let value = |class: u32, row: usize, at: usize| {
            let centre = unit(1, u64::from(class) * 100 + at as u64);
            let noise = unit(seed, (u64::from(class) * 1000 + row as u64) * 100 + at as u64);
            (2.0 + centre + 1.5 * noise) as f32
        };
        let rows = classes.clone().flat_map(|class| (0..each).map(move |row| (class, row)));
        let data = rows.flat_map(|(class, row)| (0..dim).map(move |at| value(class, row, at)));
        let points = Matrix::new(classes.len() * each, dim, data.collect()).unwrap();
        let labels = (0..classes.len() as u32).flat_map(|c| std::iter::repeat_n(c, each)).collect();
        let names = classes.map(|class| class.to_string()).collect();
        Samples::new(Points::single("some", points).unwrap(), labels, names).unwrap()
    }

    /// What is proven is what the metric built anew says, also of queries between two classes, and
    /// most queries of a usual kind are proven.
    #[test]
    fn an_updated_metric_answers_as_one_that_is_built_anew() {
        for ridge in [1.0, 0.5] {
            let settings = Settings { ridge, ..Settings::default() };
            let mut head = Head::new("iVoro-W".parse().unwrap(), settings).unwrap();
            head.learn(&some(0..40, 60, 2)).unwrap();
            head.predict(&some(0..1, 1, 3)).unwrap();
            let (mut asked, mut proven) = (0, 0);
            for step in 0..12 {
                match step % 3 {
                    0 => head.learn(&some(40 + step..42 + step, 3, 4)).unwrap(),
                    1 => drop(head.update(&some(step..step + 2, 2, 5)).unwrap()),
                    _ => drop(head.update(&some(40 + step - 2..40 + step, 1, 6)).unwrap()),
                }
                let anew = head.clone();
                let updated = head.updated.as_ref().unwrap();
                let queries = some(0..head.classes().len() as u32, 2, 7);
                let block = queries.block(0, View::UPRIGHT).unwrap().clone();
                let expected = anew.predict(&queries).unwrap();
                for (query, expected) in block.iter_rows().zip(&expected) {
                    let found = updated.predict(query).unwrap();
                    assert!(found.is_none_or(|found| found == *expected), "{ridge} {step}");
                    (asked, proven) = (asked + 1, proven + usize::from(found.is_some()));
                }
                // nearer and nearer to the middle between two centres
                let centres = &anew.centroids().unwrap()[0];
                for at in 0..20 {
                    let share = 0.5 + 0.3f32.powi(at) * if at % 2 == 0 { 0.2 } else { -0.2 };
                    let (a, b) = (centres.row(at as usize), centres.row(at as usize + 1));
                    let between = a.iter().zip(b).map(|(a, b)| share * a + (1.0 - share) * b);
                    let query = Matrix::new(1, a.len(), between.collect()).unwrap();
                    let found = updated.predict(query.row(0)).unwrap();
                    let expected = anew.predict(&Points::single("q", query).unwrap()).unwrap()[0];
                    assert!(found.is_none_or(|found| found == expected), "{ridge} {step} {at}");
                }
                // asking for one query builds nothing; asking for distances does
                let one = queries.select(&[5]);
                let found = head.predict(&one).unwrap();
                assert_eq!(found, anew.predict(&one).unwrap());
                assert_eq!(head.measure(&one, true).unwrap(), anew.measure(&one, true).unwrap());
                assert!(head.diagram_set.take().is_some());
            }
            assert!(10 * proven > 6 * asked, "{ridge}: {proven} of {asked}");
        }
    }

    #[test]
    fn only_what_is_ahead_of_the_bound_is_proven() {
        assert_eq!(proven(&[5.0, 3.0, 4.0], (0.1, 0.0, 0.1)), Some(1));
        assert_eq!(proven(&[5.0, 3.0, 3.2], (0.1, 0.0, 0.1)), None);
        assert_eq!(proven(&[5.0, 3.0, 4.0], (0.0, 0.6, 0.0)), None);
        assert_eq!(proven(&[f64::NAN], (0.0, 0.0, 0.0)), None);
    }
}
