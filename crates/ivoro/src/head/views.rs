//! How distances of several views become one: added, or voted on.

use crate::diagram::add_matrix;
use crate::error::Result;
use crate::head::diagram_set::{DiagramSet, PairDistances};
use crate::head::variant::Views;
use crate::matrix::Matrix;
use crate::vectors::least;

/// Distances below which a vote is measured by them alone, and the least that it is measured by.
const TINY: f32 = 1e-3;
const LEAST: f32 = 1e-30;

/// One number per query and class, and under AC what it is made of.
pub(crate) struct Combined {
    pub(crate) distances: Matrix,
    pub(crate) ballots: Option<Ballots>,
}

/// AC: the votes of the pairs for each class, and the mean of their distances.
#[derive(Clone, Debug)]
pub(crate) struct Ballots {
    pub(crate) votes: Matrix,
    pub(crate) means: Matrix,
}

/// One number per query and class from the distances of all pairs of views.
pub(crate) fn combine(set: &DiagramSet, mut pairs: Vec<PairDistances>, views: Views) -> Combined {
    let plain = |distances| Combined { distances, ballots: None };
    if pairs.len() == 1 {
        return plain(pairs.pop().map(|pair| set.divide(pair)).unwrap_or_default());
    }
    match views {
        Views::Consensus => {
            let pairs: Vec<Matrix> = pairs.into_iter().map(|pair| set.divide(pair)).collect();
            let ballots = Ballots::of(&pairs);
            Combined { distances: ballots.distances(), ballots: Some(ballots) }
        }
        Views::Single | Views::Integration => {
            let pair = pairs.into_iter().reduce(|mut sum, pair| {
                add_matrix(&mut sum.cross, &pair.cross);
                if let (Some(sum), Some(probe)) = (&mut sum.probe, &pair.probe) {
                    add_matrix(sum, probe);
                }
                sum
            });
            plain(pair.map(|pair| set.divide(pair)).unwrap_or_default())
        }
    }
}

impl Ballots {
    fn of(pairs: &[Matrix]) -> Self {
        let mut votes = Matrix::zeros(pairs[0].rows(), pairs[0].cols());
        let mut means = votes.clone();
        for pair in pairs {
            add_matrix(&mut means, pair);
            for (row, distances) in pair.iter_rows().enumerate() {
                votes.row_mut(row)[least(distances)] += 1.0;
            }
        }
        means.as_mut_slice().iter_mut().for_each(|sum| *sum /= pairs.len() as f32);
        Self { votes, means }
    }

    /// Votes first, the smaller mean distance among equal votes.
    fn distances(&self) -> Matrix {
        let mut out = self.means.clone();
        for row in 0..out.rows() {
            subtract_votes(out.row_mut(row), self.votes.row(row));
        }
        out
    }

    /// Some rows together: all their votes count, summed distances decide among equal votes.
    pub(crate) fn join(&self, rows: &[usize]) -> Matrix {
        let sum = |matrix: &Matrix| {
            let mut sum = Matrix::zeros(1, matrix.cols());
            rows.iter().for_each(|&row| add_row(sum.row_mut(0), matrix.row(row)));
            sum
        };
        let (mut joined, votes) = (sum(&self.means), sum(&self.votes));
        subtract_votes(joined.row_mut(0), votes.row(0));
        joined
    }

    pub(crate) fn append(&mut self, other: &Self) -> Result<()> {
        self.votes.append(&other.votes)?;
        self.means.append(&other.means)
    }
}

/// Adds one row to another.
pub(crate) fn add_row(sum: &mut [f32], row: &[f32]) {
    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
}

/// Writes votes as distances: a little more than the span of the row less for every vote, so that
/// no distance outweighs a vote.
pub(crate) fn subtract_votes(distances: &mut [f32], votes: &[f32]) {
    let high = distances.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let low = distances.iter().copied().fold(f32::INFINITY, f32::min);
    // beside tiny distances a vote of fixed size would leave none of their digits
    let size = if high.abs() < TINY { high.abs().max(LEAST) } else { high.abs().max(1.0) };
    let vote = (high - low) * 1.01 + f32::EPSILON * size;
    distances.iter_mut().zip(votes).for_each(|(distance, votes)| *distance -= votes * vote);
}
