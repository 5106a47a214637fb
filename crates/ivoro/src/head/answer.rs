use crate::error::{Error, Result};
use crate::features::Features;
use crate::head::cells::{PairDistances, least};
use crate::head::{Head, views};
use crate::matrix::Matrix;
use crate::model::BurstRule;
use crate::uncertainty::geometric_variance;

/// Everything a head says of queries.
#[derive(Clone, Debug)]
pub struct Answers {
    /// One row a query, one column a class, smaller is nearer.
    pub distances: Matrix,
    /// Distance to the nearest class in units of that class's own mean distance.
    pub strangeness: Vec<f64>,
    /// HV over the views; 0 with one view.
    pub uncertainty: Vec<f64>,
    /// Vectors behind each row: more than 1 for a burst.
    pub burst: Vec<usize>,
}

impl Head {
    /// Distances, strangeness and uncertainty of every query. Strangeness is only meaningful with
    /// `absolute` distances; see [`Head::measure`].
    pub fn ask(&self, queries: &Features, absolute: bool) -> Result<Answers> {
        let own = self.own_distances()?;
        let mut answers = Answers {
            distances: Matrix::zeros(0, self.classes.len()),
            strangeness: Vec::with_capacity(queries.len()),
            uncertainty: Vec::with_capacity(queries.len()),
            burst: vec![1; queries.len()],
        };
        self.in_batches(queries, absolute, |cells, pairs| {
            let summed = summed(&pairs);
            answers.uncertainty.extend(disagreement(&pairs));
            let distances = views::combine(cells, pairs, self.variant.views);
            for (row, distances) in distances.iter_rows().enumerate() {
                let class = least(distances);
                let total = f64::from(summed.row(row)[class]);
                let strangeness = total / own[class].abs().max(f64::MIN_POSITIVE);
                // a class without spread: thresholds and files hold finite numbers only
                answers.strangeness.push(strangeness.min(f64::MAX));
            }
            answers.distances.append(&distances)
        })?;
        Ok(answers)
    }
}

impl Head {
    /// The centres that queries are compared with between phases: one matrix a block (view and
    /// layer), one row a class, in the space after N and K.
    pub fn centroids(&self) -> Result<Vec<Matrix>> {
        let Some(frame) = &self.frame else { return Ok(Vec::new()) };
        (0..frame.dims.len()).map(|block| self.centres(frame, block)).collect()
    }
}

fn summed(pairs: &[PairDistances]) -> Matrix {
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
    /// Consecutive rows taken together as one object of `size` vectors (the last may have fewer).
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
            uncertainty: Vec::new(),
            burst: Vec::new(),
        };
        for &members in groups {
            let count = members.len();
            let joined = join(&self.distances, members, rule);
            out.distances.append(&joined)?;
            let mean =
                |values: &[f64]| members.iter().map(|&row| values[row]).sum::<f64>() / count as f64;
            out.strangeness.push(mean(&self.strangeness));
            let vectors: Vec<&[f32]> = members.iter().map(|&row| self.distances.row(row)).collect();
            let between = if count > 1 { geometric_variance(&vectors) } else { 0.0 };
            out.uncertainty.push(between + mean(&self.uncertainty));
            out.burst.push(count);
        }
        Ok(out)
    }
}

/// One row from several: distances added, and under a vote a span less for every vote.
fn join(distances: &Matrix, members: &[usize], rule: BurstRule) -> Matrix {
    let mut sum = Matrix::zeros(1, distances.cols());
    for &row in members {
        sum.row_mut(0).iter_mut().zip(distances.row(row)).for_each(|(sum, value)| *sum += value);
    }
    if rule == BurstRule::Vote {
        let vote = views::vote_weight(sum.row(0));
        for &row in members {
            sum.row_mut(0)[least(distances.row(row))] -= vote;
        }
    }
    sum
}
