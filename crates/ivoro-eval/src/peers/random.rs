//! Fixed random projections that are never stored: entries are functions of a seed and their place.

use rayon::prelude::*;

use ivoro::Matrix;
use ivoro::lift::normals;
use ivoro::linalg;
use ivoro::random::unit;

/// Random directions, one row each.
#[derive(Clone, Copy, Debug)]
pub(super) enum Directions {
    /// Independent normal entries of this standard deviation.
    Normal(f64),
    /// Independent entries spread evenly over ± this.
    Even(f64),
}

impl Directions {
    /// `z · wᵀ` for every row z of the points and `count` directions w.
    pub(super) fn project(self, points: &Matrix, count: usize, seed: u64) -> Matrix {
        linalg::times_transposed_alike(points, &self.rows(count, points.cols(), seed))
    }

    fn rows(self, count: usize, dim: usize, seed: u64) -> Matrix {
        let mut rows = Matrix::zeros(count, dim);
        let each = rows.as_mut_slice().par_chunks_exact_mut(dim.max(1)).enumerate();
        each.for_each(|(at, row)| match self {
            Self::Normal(deviation) => {
                let values = normals(seed, at, dim);
                row.iter_mut().zip(values).for_each(|(to, value)| *to = (deviation * value) as f32);
            }
            Self::Even(most) => {
                for (to, index) in row.iter_mut().zip((at * dim) as u64..) {
                    *to = (most * (2.0 * unit(seed, index) - 1.0)) as f32;
                }
            }
        });
        rows
    }
}

/// Every entry changed by a function.
pub(super) fn mapped(mut points: Matrix, change: impl Fn(f64) -> f64 + Sync) -> Matrix {
    let to = |value: &mut f32| *value = change(f64::from(*value)) as f32;
    points.as_mut_slice().par_iter_mut().for_each(to);
    points
}
