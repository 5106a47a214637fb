//! Whether numbers can be sums of samples at all. Who takes back samples that were never given leaves
//! numbers that often can't.

use rayon::prelude::*;

use super::class::ClassStatistics;
use super::grid::Grid;
use super::halves::number;
use super::moments::SecondMoments;
use super::sums::Sums;
use crate::linalg::tile_rows;

/// What the rounding of this check may be, as a share of a length.
const SLACK: f64 = 1e-9;

impl ClassStatistics {
    /// Whether `count` samples can have these sums. Samples that were rounded to the grids always do.
    pub(crate) fn is_possible(&self, grids: &[Grid]) -> bool {
        if self.count == 0 {
            let mut second = self.second.iter().flatten();
            return self.blocks.iter().all(Sums::are_zero) && second.all(SecondMoments::is_zero);
        }
        let mut blocks = self.blocks.iter().zip(grids);
        blocks.all(|(sums, &grid)| sums.is_possible(self.count, grid))
            && self.second.iter().flatten().all(SecondMoments::is_possible)
    }

    /// Whether at least no sum of squares is negative.
    pub(crate) fn has_squares(&self) -> bool {
        self.blocks.iter().all(|sums| sums.squares >= 0)
    }
}

impl Sums {
    /// Cauchy and Schwarz: the mean is no longer than the root of the mean square. Sums and squares are
    /// rounded to different units, by half of one at most.
    fn is_possible(&self, count: u64, grid: Grid) -> bool {
        let mean = self.mean(count, grid);
        let length = mean.iter().map(|value| value * value).sum::<f64>().sqrt();
        let rounding =
            f64::midpoint(grid.sum_unit(), grid.square_unit()) * (mean.len() as f64).sqrt();
        let square = self.squares as f64 * grid.product_unit() / count as f64;
        self.squares >= 0 && length <= (square.sqrt() + rounding) * (1.0 + SLACK)
    }
}

impl SecondMoments {
    /// Whether these are those of no sample.
    pub(crate) fn is_zero(&self) -> bool {
        let zero = |halves: &Vec<Vec<i64>>| halves.par_iter().flatten().all(|&value| value == 0);
        zero(&self.tiles) && zero(&self.high)
    }

    /// Whether no entry of the diagonal is negative, and none beside it larger than the two on the
    /// diagonal allow: (Σ zᵢzⱼ)² ≤ Σ zᵢ² · Σ zⱼ², in whole numbers.
    pub(crate) fn is_possible(&self) -> bool {
        let places: Vec<_> = tile_rows(self.dim()).collect();
        let mut diagonal = Vec::with_capacity(self.dim());
        for (tile, &(first, rows, cols)) in places.iter().enumerate() {
            diagonal.extend((0..rows).map(|row| self.number(tile, row * cols + first + row)));
        }
        diagonal.iter().all(|&square| square >= 0)
            && places.par_iter().enumerate().all(|(tile, &(first, rows, cols))| {
                (0..rows * cols).all(|at| {
                    let (row, col) = (first + at / cols, at % cols);
                    is_within(self.number(tile, at), diagonal[row], diagonal[col])
                })
            })
    }

    fn number(&self, tile: usize, at: usize) -> i128 {
        number(&self.tiles[tile], self.high.get(tile).map_or(&[][..], |high| high), at)
    }
}

/// Whether value² ≤ one · other; where that needs more than 128 bits, up to rounding.
fn is_within(value: i128, one: i128, other: i128) -> bool {
    match (value.checked_mul(value), one.checked_mul(other)) {
        (Some(square), Some(allowed)) => square <= allowed,
        _ => (value as f64).abs() <= (one as f64).sqrt() * (other as f64).sqrt() * (1.0 + SLACK),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::statistics::sums_by_class;

    fn points(rows: usize, dim: usize, far: f32) -> Matrix {
        let value = |at: usize| far + ((at * 7919 + 13) % 1009) as f32 / 300.1;
        Matrix::new(rows, dim, (0..rows * dim).map(value).collect()).unwrap()
    }

    fn statistics(points: &Matrix, grid: Grid) -> ClassStatistics {
        let names = ["one".to_owned()];
        let labels = vec![0; points.rows()];
        let blocks = sums_by_class(points, &labels, &names, grid, "test").unwrap();
        let mut second = SecondMoments::zeros(points.cols());
        second.add(points, grid).unwrap();
        let (count, second) = (points.rows() as u64, Some(vec![second]));
        ClassStatistics { count, blocks, second, compact: None }
    }

    #[test]
    fn sums_of_samples_are_possible_on_every_grid() {
        for (rows, dim, far) in [(1, 1, 0.0), (1, 9, 1e4), (2, 3, -1e-20), (50, 140, 3.0)] {
            let points = points(rows, dim, far);
            for factor in [1.0, 1e6, 1e15] {
                let mut wide = points.clone();
                wide.as_mut_slice()[0] *= factor;
                // all but one value may lie below the unit of squares
                assert!(
                    statistics(&points, Grid::covering(&wide))
                        .is_possible(&[Grid::covering(&wide)])
                );
            }
        }
        assert!(
            ClassStatistics::empty(&[3], true).is_possible(&[Grid::covering(&points(1, 3, 0.0))])
        );
    }

    #[test]
    fn what_no_samples_sum_up_to_is_impossible() {
        let points = points(5, 3, 2.0);
        let grid = Grid::covering(&points);
        let good = statistics(&points, grid);
        let changed = |change: fn(&mut ClassStatistics)| {
            let mut bad = good.clone();
            change(&mut bad);
            !bad.is_possible(&[grid])
        };
        assert!(changed(|it| it.count = 0), "sums of no samples");
        assert!(changed(|it| it.count = 1), "too long a mean");
        assert!(changed(|it| it.blocks[0].squares = -1));
        assert!(changed(|it| it.blocks[0].sums[1] *= 100));
        let tile = |it: &mut ClassStatistics, at: usize, value: i64| {
            it.second.as_mut().unwrap()[0].tiles[0][at] = value;
        };
        let mut bad = good.clone();
        tile(&mut bad, 4, -1);
        assert!(!bad.is_possible(&[grid]), "a negative square");
        let mut bad = good.clone();
        tile(&mut bad, 3, i64::MAX);
        assert!(!bad.is_possible(&[grid]), "a product larger than its squares");
    }
}
