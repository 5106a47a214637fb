//! What a head says of queries: distances, strangeness and disagreement; and bursts of queries.

use crate::diagram::Nearest;
use crate::error::{Error, Result};
use crate::head::Head;
use crate::head::compose::Stage;
use crate::head::diagram_set::{DiagramSet, PairDistances};
use crate::head::variant::Views;
use crate::head::views::{Ballots, Combined, add_row, combine, subtract_votes};
use crate::matrix::Matrix;
use crate::samples::Points;
use crate::uncertainty::geometric_variance;
use crate::vectors::least;

/// Queries of an index measured at once.
const MEASURED: usize = 16_384;

/// How vectors of one object are taken together.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// use ivoro::{AskOptions, BurstRule};
/// // four images of two objects, two of each
/// let burst = Some((2, BurstRule::Vote));
/// let found = model.ask(&monday, AskOptions { burst, ..AskOptions::default() })?;
/// assert_eq!(found[0].top[0].class, "0");
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BurstRule {
    /// Distances are added.
    #[default]
    Sum,
    /// Each vector votes; summed distances break ties.
    Vote,
}

/// Everything a head says of queries.
#[derive(Clone, Debug)]
pub struct Answers {
    /// One row per query, one column per class, smaller is nearer.
    pub distances: Matrix,
    /// Distance to the nearest class, less what the query is further from everything than usual, in
    /// units of the usual distance to the own class: 1 is usual, more is stranger.
    pub strangeness: Vec<f64>,
    /// Distance to the nearest class in units of that class's own mean distance: what thresholds in
    /// models of versions up to 0.1 are compared with.
    pub(crate) plain: Vec<f64>,
    /// HV over the views; 0 with one view, and under W with AI, which makes one of all.
    pub uncertainty: Vec<f64>,
    /// Vectors behind each row: more than 1 for a burst.
    pub burst: Vec<usize>,
    /// Under AC, what the distances are made of: votes are joined as votes.
    ballots: Option<Ballots>,
}

impl Head {
    /// Distances, strangeness and uncertainty of every query. Strangeness is only meaningful with
    /// `absolute` distances; see [`Head::measure`].
    pub fn ask(&self, queries: &Points, absolute: bool) -> Result<Answers> {
        let typical = self.typical_distances()?;
        let background = self.background()?;
        let mut answers = Answers {
            distances: Matrix::zeros(0, self.classes.len()),
            strangeness: Vec::with_capacity(queries.len()),
            plain: Vec::with_capacity(queries.len()),
            uncertainty: Vec::with_capacity(queries.len()),
            burst: vec![1; queries.len()],
            ballots: None,
        };
        self.in_batches(queries, absolute, |set, pairs| {
            let summed = summed(&pairs);
            answers.uncertainty.extend(disagreement(&pairs));
            let Combined { distances, ballots } = combine(set, pairs, self.variant.views);
            let nearest: Vec<usize> = distances.iter_rows().map(least).collect();
            let own = nearest
                .iter()
                .enumerate()
                .map(|(row, &class)| f64::from(summed.row(row)[class]) - set.volume(class));
            let own: Vec<f64> = own.collect();
            let plain = nearest.iter().enumerate();
            let plain = plain.map(|(row, &class)| in_units(own[row], typical[class]));
            answers.plain.extend(plain);
            let members = background.of_members(&less_volume(set, summed));
            answers.strangeness.extend(background.strangeness(&members, |row| own[row]));
            match (&mut answers.ballots, ballots) {
                (Some(kept), Some(more)) => kept.append(&more)?,
                (kept, more) => *kept = more,
            }
            answers.distances.append(&distances)
        })?;
        Ok(answers)
    }
}

impl Head {
    /// How strange samples of known classes would be if only every other class were known, their own
    /// among them, from their distances to all; none where distances to centres do not decide alone.
    pub(crate) fn strangeness_in_halves(
        &self,
        distances: &Matrix,
        labels: &[usize],
    ) -> Result<Option<Vec<f64>>> {
        let (set, classes) = (self.diagram_set()?, distances.cols());
        let decide = self.is_additive() && self.variant.views != Views::Consensus;
        if !decide || classes < 4 || set.gamma != 1.0 {
            return Ok(None);
        }
        let less = less_volume(set, distances.clone());
        let mut out = vec![0.0; labels.len()];
        for half in 0..2 {
            let known: Vec<usize> = (half..classes).step_by(2).collect();
            let rows: Vec<usize> =
                (0..labels.len()).filter(|&row| labels[row] % 2 == half).collect();
            let background = self.background_among(set, &known)?;
            if background.usual <= 0.0 {
                return Ok(None);
            }
            let members = background.of_members(&less.select(&rows));
            let own = |at: usize| {
                let to = |class: &&usize| distances.row(rows[at])[**class];
                let nearest = known.iter().min_by(|a, b| to(a).total_cmp(&to(b)));
                nearest.map_or(0.0, |&class| f64::from(less.row(rows[at])[class]))
            };
            let found = background.strangeness(&members, own);
            rows.iter().zip(found).for_each(|(&row, strangeness)| out[row] = strangeness);
        }
        Ok(Some(out))
    }
}

/// Distances without what a class pays for its volume.
fn less_volume(set: &DiagramSet, mut distances: Matrix) -> Matrix {
    let volumes: Vec<f32> = (0..distances.cols()).map(|class| set.volume(class) as f32).collect();
    if volumes.iter().any(|&volume| volume != 0.0) {
        for row in 0..distances.rows() {
            let pairs = distances.row_mut(row).iter_mut().zip(&volumes);
            pairs.for_each(|(distance, volume)| *distance -= volume);
        }
    }
    distances
}

/// A distance in units of what is usual in a class.
fn in_units(distance: f64, typical: f64) -> f64 {
    // a class without spread: thresholds and files hold finite numbers only
    (distance / typical.abs().max(f64::MIN_POSITIVE)).min(f64::MAX)
}

impl Head {
    /// How strange queries are whose nearest class an index has found: as compared with all classes,
    /// and in the way of versions up to 0.1.
    pub(crate) fn strangeness_of_nearest(
        &self,
        queries: &Points,
        nearest: &[Nearest],
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let (background, typical) = (self.background()?, self.typical_distances()?);
        let own = |row: usize| f64::from(nearest[row].distance);
        let plain = nearest.iter().enumerate();
        let plain = plain.map(|(row, found)| in_units(own(row), typical[found.cell as usize]));
        let plain = plain.collect();
        let mut strangeness = Vec::with_capacity(queries.len());
        let rows: Vec<usize> = (0..queries.len()).collect();
        for rows in rows.chunks(MEASURED) {
            let points = self.points(&queries.select(rows), Stage::Full)?;
            let members = background.to_members(&self.diagram_set()?.cross, &points)?;
            strangeness.extend(background.strangeness(&members, |row| own(rows[row])));
        }
        Ok((strangeness, plain))
    }
}

impl Head {
    /// The centres that queries are compared with between phases: one matrix a block (view and
    /// layer), one row per class, in the space after N and K.
    pub fn centroids(&self) -> Result<Vec<Matrix>> {
        let Some(frame) = &self.frame else { return Ok(Vec::new()) };
        let back = |block: usize| {
            self.centres(frame, block).map(|centres| frame.places[block].back(centres))
        };
        (0..frame.dims.len()).map(back).collect()
    }
}

pub(super) fn summed(pairs: &[PairDistances]) -> Matrix {
    let mut sum = pairs[0].cross.clone();
    for pair in &pairs[1..] {
        crate::diagram::add_matrix(&mut sum, &pair.cross);
    }
    sum
}

fn disagreement(pairs: &[PairDistances]) -> impl Iterator<Item = f64> {
    (0..pairs[0].cross.rows()).map(|row| {
        let vectors: Vec<&[f32]> = pairs.iter().map(|pair| pair.cross.row(row)).collect();
        geometric_variance(&vectors)
    })
}

impl Answers {
    /// The same with the strangeness that models of versions up to 0.1 have thresholds for.
    pub(crate) fn with_plain_strangeness(self) -> Self {
        Self { strangeness: self.plain.clone(), ..self }
    }

    /// Whether the distances of bursts contain votes.
    pub(crate) fn votes_in_bursts(&self, rule: BurstRule) -> bool {
        rule == BurstRule::Vote || self.ballots.is_some()
    }

    /// Consecutive rows taken together as one object of `size` vectors (the last may have fewer).
    /// Under AC either rule counts the votes of all rotations of all vectors; summed distances
    /// decide among equal votes.
    pub fn in_bursts(self, size: usize, rule: BurstRule) -> Result<Self> {
        if size == 0 {
            let reason = "must be at least 1";
            return Err(Error::Setting { name: "burst", value: "0".to_owned(), reason });
        }
        let rows: Vec<usize> = (0..self.distances.rows()).collect();
        let groups: Vec<&[usize]> = rows.chunks(size).collect();
        self.in_groups(&groups, rule)
    }

    /// The rows of each group taken together as one object; every group needs at least one row.
    pub fn in_groups(self, groups: &[&[usize]], rule: BurstRule) -> Result<Self> {
        let mut out = Self {
            distances: Matrix::zeros(0, self.distances.cols()),
            strangeness: Vec::new(),
            plain: Vec::new(),
            uncertainty: Vec::new(),
            burst: Vec::new(),
            ballots: None,
        };
        for &members in groups {
            let count = members.len();
            let joined = match &self.ballots {
                Some(ballots) => ballots.join(members),
                None => join(&self.distances, members, rule),
            };
            out.distances.append(&joined)?;
            let mean =
                |values: &[f64]| members.iter().map(|&row| values[row]).sum::<f64>() / count as f64;
            out.strangeness.push(mean(&self.strangeness));
            out.plain.push(mean(&self.plain));
            let vectors: Vec<&[f32]> = members.iter().map(|&row| self.distances.row(row)).collect();
            let between = if count > 1 { geometric_variance(&vectors) } else { 0.0 };
            out.uncertainty.push(between + mean(&self.uncertainty));
            out.burst.push(count);
        }
        Ok(out)
    }
}

/// One row from several: distances added, and under a vote one vote for each row's nearest.
fn join(distances: &Matrix, members: &[usize], rule: BurstRule) -> Matrix {
    let mut sum = Matrix::zeros(1, distances.cols());
    let mut votes = vec![0.0; distances.cols()];
    for &row in members {
        add_row(sum.row_mut(0), distances.row(row));
        votes[least(distances.row(row))] += 1.0;
    }
    if rule == BurstRule::Vote {
        subtract_votes(sum.row_mut(0), &votes);
    }
    sum
}
