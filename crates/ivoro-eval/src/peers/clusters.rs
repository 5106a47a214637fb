//! k-means: Lloyd's rounds from centres that k-means++ draws (Arthur and Vassilvitskii 2007).

use rayon::prelude::*;

use super::intake::{members, sums};
use ivoro::Matrix;
use ivoro::linalg::squared_distance;
use ivoro::random::unit;

/// Most rounds.
const ROUNDS: usize = 300;

/// `count` centres of the points, at most as many as there are points.
pub(super) fn centres(points: &Matrix, count: usize, seed: u64) -> Matrix {
    let mut centres = drawn(points, count.min(points.rows()), seed);
    let mut before = Vec::new();
    for _ in 0..ROUNDS {
        let labels: Vec<usize> = nearest(points, &centres).iter().map(|found| found.0).collect();
        if labels == before {
            break;
        }
        let members = members(&labels, centres.rows());
        for (centre, sum) in sums(points, &members).iter().enumerate() {
            // a centre without points stays where it is
            if members[centre].is_empty() {
                continue;
            }
            let number = members[centre].len() as f64;
            let mean = centres.row_mut(centre).iter_mut().zip(sum);
            mean.for_each(|(mean, sum)| *mean = (sum / number) as f32);
        }
        before = labels;
    }
    centres
}

/// Points drawn one after another, each with a chance proportional to its squared distance from the
/// nearest of those before; the first one evenly.
fn drawn(points: &Matrix, count: usize, seed: u64) -> Matrix {
    let last = points.rows().saturating_sub(1);
    let first = (unit(seed, 0) * points.rows() as f64) as usize;
    let mut chosen = vec![first.min(last)];
    let mut squares = vec![f64::INFINITY; points.rows()];
    while chosen.len() < count {
        let newest = points.row(chosen[chosen.len() - 1]);
        squares.par_iter_mut().enumerate().for_each(|(row, square)| {
            *square = square.min(squared_distance(points.row(row), newest).into());
        });
        let target = unit(seed, chosen.len() as u64) * squares.iter().sum::<f64>();
        let mut sum = 0.0;
        let passed = squares.iter().position(|square| {
            sum += square;
            sum > target
        });
        chosen.push(passed.unwrap_or(last));
    }
    points.select(&chosen)
}

/// For every point the nearest centre, and its squared distance; the first one if two are equal.
pub(super) fn nearest(points: &Matrix, centres: &Matrix) -> Vec<(usize, f32)> {
    let of = |row: usize| {
        let distances = centres.iter_rows().map(|centre| squared_distance(points.row(row), centre));
        let nearer = |best: (usize, f32), (at, distance)| {
            if distance < best.1 { (at, distance) } else { best }
        };
        distances.enumerate().fold((0, f32::INFINITY), nearer)
    };
    (0..points.rows()).into_par_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_of_points_are_found() {
        let heap = |at: f32| [at, at + 0.1, at - 0.1].map(|x| vec![x, 2.0 * at]);
        let rows: Vec<Vec<f32>> = [1.0, 9.0, -7.0].into_iter().flat_map(heap).collect();
        let points = Matrix::new(9, 2, rows.concat()).unwrap();
        let mut found: Vec<Vec<f32>> =
            centres(&points, 3, 5).iter_rows().map(<[f32]>::to_vec).collect();
        found.sort_by(|a, b| a[0].total_cmp(&b[0]));
        for (found, expected) in found.concat().iter().zip([-7.0, -14.0, 1.0, 2.0, 9.0, 18.0]) {
            assert!((found - expected).abs() < 1e-5);
        }
        assert_eq!(centres(&points, 20, 5).rows(), 9);
    }
}
