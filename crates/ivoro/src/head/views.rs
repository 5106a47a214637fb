use crate::diagram::add_matrix;
use crate::head::cells::{Cells, PairDistances, least};
use crate::head::variant::Views;
use crate::matrix::Matrix;

/// One number per query and class from the distances of all pairs of views.
pub(crate) fn combine(cells: &Cells, mut pairs: Vec<PairDistances>, views: Views) -> Matrix {
    if pairs.len() == 1 {
        return pairs.pop().map(|pair| cells.divide(pair)).unwrap_or_default();
    }
    match views {
        Views::Consensus => {
            let pairs: Vec<Matrix> = pairs.into_iter().map(|pair| cells.divide(pair)).collect();
            consensus(&pairs)
        }
        Views::Single | Views::Integration => {
            let pair = pairs.into_iter().reduce(|mut sum, pair| {
                add_matrix(&mut sum.cross, &pair.cross);
                if let (Some(sum), Some(probe)) = (&mut sum.probe, &pair.probe) {
                    add_matrix(sum, probe);
                }
                sum
            });
            pair.map(|pair| cells.divide(pair)).unwrap_or_default()
        }
    }
}

/// AC: votes first, the smaller summed distance among equal votes.
///
/// Written as a distance: the mean over the pairs, less one span of the row for every vote.
fn consensus(pairs: &[Matrix]) -> Matrix {
    let mut out = Matrix::zeros(pairs[0].rows(), pairs[0].cols());
    for row in 0..out.rows() {
        let target = out.row_mut(row);
        for pair in pairs {
            target.iter_mut().zip(pair.row(row)).for_each(|(sum, value)| *sum += value);
        }
        target.iter_mut().for_each(|sum| *sum /= pairs.len() as f32);
        let vote = vote_weight(target);
        for pair in pairs {
            target[least(pair.row(row))] -= vote;
        }
    }
    out
}

/// What a vote is worth in a row of distances: a little more than their span, so that no distance
/// outweighs a vote.
pub(crate) fn vote_weight(row: &[f32]) -> f32 {
    let high = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let low = row.iter().copied().fold(f32::INFINITY, f32::min);
    (high - low) * 1.01 + f32::EPSILON * high.abs().max(1.0)
}
