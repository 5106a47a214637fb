//! What is kept of a class: a count, sums and second moments – exact, so that the order and the
//! place in which samples were learned leave no trace.
//!
//! Every value is rounded once to a fixed-point [`Grid`]; from then on all sums are integer sums.
//! Integer addition is associative: one sample at a time, in batches, a phase at once, on any
//! number of threads, or at two sites and merged, the result is the same bit for bit. The rounding
//! itself is at most 2⁻⁴¹ of the grid's range for sums and 2⁻²² for second moments; with the
//! range chosen here a mean is off by less than one unit in the last place of `f32`.
//!
//! Values beyond the range, up to 2³² times as large, are added in the same unit: sums that need it
//! become 128 bits wide. So it does not matter which samples came first.

mod class;
mod compact;
mod grid;
mod halves;
mod moments;
mod possible;
mod sums;
mod tally;

pub use class::ClassStatistics;
pub(crate) use compact::CompactNumbers;
pub use compact::CompactScatter;
pub use grid::Grid;
pub(crate) use halves::joined;
pub(crate) use moments::within_scatter;
pub use moments::{SecondMoments, within_covariance};
pub use sums::Sums;
pub use tally::sums_by_class;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::matrix::Matrix;

    fn sample(rows: usize, cols: usize) -> Matrix {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 300.1;
        Matrix::new(rows, cols, (0..rows * cols).map(value).collect()).unwrap()
    }

    fn names(classes: usize) -> Vec<String> {
        (0..classes).map(|class| class.to_string()).collect()
    }

    #[test]
    fn any_order_and_any_batches_give_the_same_bits() {
        let points = sample(97, 37);
        let labels: Vec<u32> = (0..97).map(|row| row % 3).collect();
        let grid = Grid::covering(&points);
        let whole = sums_by_class(&points, &labels, &names(3), grid, "test").unwrap();
        let mut single = vec![Sums::zeros(37); 3];
        for row in (0..97).rev() {
            let one =
                sums_by_class(&points.select(&[row]), &labels[row..=row], &names(3), grid, "test")
                    .unwrap();
            single.iter_mut().zip(&one).for_each(|(sum, one)| sum.combine(one, 1).unwrap());
        }
        assert_eq!(whole, single);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
        assert_eq!(
            pool.install(|| sums_by_class(&points, &labels, &names(3), grid, "test")).unwrap(),
            whole
        );
    }

    #[test]
    fn classes_without_samples_stay_at_zero() {
        // several tasks, a class that comes back in each of them, and classes that never come
        let (rows, classes) = (5000, 600);
        let points = sample(rows, 3);
        let labels: Vec<u32> = (0..rows as u32).map(|row| (row * 7 % 1200) / 4).collect();
        let grid = Grid::covering(&points);
        let found = sums_by_class(&points, &labels, &names(classes), grid, "test").unwrap();
        assert_eq!(found.len(), classes);
        for (class, found) in found.iter().enumerate() {
            let mine: Vec<usize> = (0..rows).filter(|&row| labels[row] as usize == class).collect();
            let alone =
                sums_by_class(&points.select(&mine), &vec![0; mine.len()], &names(1), grid, "test");
            assert_eq!(found, &alone.unwrap()[0], "class {class}");
        }
        let few = sums_by_class(&points.select(&[7]), &[999_999], &names(1_000_000), grid, "test")
            .unwrap();
        assert_eq!((few[0].clone(), few.len()), (Sums::zeros(3), 1_000_000));
        assert_eq!(
            few[999_999],
            sums_by_class(&points.select(&[7]), &[0], &names(1), grid, "test").unwrap()[0]
        );
    }

    #[test]
    fn second_moments_are_exact_in_any_batches() {
        let points = sample(2500, 5);
        let grid = Grid::covering(&points);
        let mut whole = SecondMoments::zeros(5);
        whole.add(&points, grid).unwrap();
        let mut parts = SecondMoments::zeros(5);
        parts.add(&points.select(&(1000..2500).collect::<Vec<_>>()), grid).unwrap();
        parts.add(&points.select(&(0..1000).collect::<Vec<_>>()), grid).unwrap();
        assert_eq!(whole, parts);
    }

    #[test]
    fn second_moments_are_sums_of_integer_products_across_all_borders() {
        let (rows, dim) = (2100, 131);
        let mut points = sample(rows, dim);
        points.as_mut_slice().iter_mut().step_by(3).for_each(|value| *value = -*value);
        let grid = Grid::covering(&points);
        let mut second = SecondMoments::zeros(dim);
        second.add(&points, grid).unwrap();
        let whole = |value: f32| (f64::from(value) / grid.square_unit()).round_ties_even() as i64;
        for (row, col) in [(0, 0), (5, 77), (77, 5), (127, 127), (128, 0), (130, 129), (129, 130)] {
            let products = points.iter_rows().map(|z| whole(z[row]) * whole(z[col]));
            let expected: i64 = products.sum();
            // the second tile row has 3 rows and all columns, the first 128 of both
            let found = match row / 128 {
                0 => second.tiles[0][row * 128 + col],
                _ => second.tiles[1][(row - 128) * dim + col],
            };
            assert_eq!(found, expected, "{row} {col}");
        }
    }

    #[test]
    fn sums_are_those_of_rounded_values_on_every_grid() {
        for (scale, rows) in [(1e-30, 9), (1e-3, 1029), (1.0, 37), (3e4, 4), (1e37, 5)] {
            let mut points = sample(rows, 19);
            let signs = [scale, -scale];
            points.as_mut_slice().iter_mut().zip(signs.iter().cycle()).for_each(|(v, s)| *v *= s);
            let grid = Grid::covering(&points);
            let labels: Vec<u32> = (0..rows as u32).map(|row| row * row % 3).collect();
            let found = sums_by_class(&points, &labels, &names(3), grid, "test").unwrap();
            let mut expected = vec![Sums::zeros(19); 3];
            for (row, &label) in points.iter_rows().zip(&labels) {
                let sums = &mut expected[label as usize];
                for (sum, &value) in sums.sums.iter_mut().zip(row) {
                    *sum += (f64::from(value) / grid.sum_unit()).round_ties_even() as i64;
                    let whole = (f64::from(value) / grid.square_unit()).round_ties_even() as i128;
                    sums.squares += whole * whole;
                }
            }
            assert_eq!(found, expected, "{scale}");
        }
    }

    #[test]
    fn means_and_spread_match_plain_arithmetic() {
        let points = sample(50, 3);
        let grid = Grid::covering(&points);
        let sums = &sums_by_class(&points, &[0; 50], &names(1), grid, "test").unwrap()[0];
        let mean = sums.mean(50, grid);
        let plain: f64 = points.iter_rows().map(|row| f64::from(row[1])).sum::<f64>() / 50.0;
        assert!((mean[1] - plain).abs() < 1e-9);
        let spread: f64 = points
            .iter_rows()
            .map(|row| row.iter().zip(&mean).map(|(v, m)| (f64::from(*v) - m).powi(2)).sum::<f64>())
            .sum::<f64>()
            / 49.0;
        assert!((sums.spread(50, grid) - spread).abs() < 1e-4 * spread);
        let mut second = SecondMoments::zeros(3);
        second.add(&points, grid).unwrap();
        let covariance = within_covariance(&second, [(sums, 50u64)].into_iter(), grid);
        let trace: f64 = covariance.diagonal().iter().sum();
        assert!((trace - spread).abs() < 1e-4 * spread);
    }

    /// Values beyond the range are added in the unit of before, in any order and any batches, and what
    /// is taken away again leaves no trace.
    #[test]
    fn sums_grow_with_the_values_and_shrink_again() {
        let (rows, dim) = (40, 133);
        let mut points = sample(rows, dim);
        let grid = Grid::covering(&points);
        let sizes = [1.0, -40.0, 3e4, -1e6, 3e9];
        for row in 0..rows {
            points.row_mut(row).iter_mut().for_each(|value| *value *= sizes[row % sizes.len()]);
        }
        let labels: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
        let whole = sums_by_class(&points, &labels, &names(3), grid, "test").unwrap();
        let mut second = SecondMoments::zeros(dim);
        second.add(&points, grid).unwrap();
        assert!(second.is_wide() && whole.iter().all(|sums| !sums.high.is_empty()));
        let (mut single, mut moments) = (vec![Sums::zeros(dim); 3], SecondMoments::zeros(dim));
        for row in (0..rows).map(|at| (at * 17 + 5) % rows) {
            let one = points.select(&[row]);
            let sums = sums_by_class(&one, &labels[row..=row], &names(3), grid, "test").unwrap();
            single.iter_mut().zip(&sums).for_each(|(sum, one)| sum.combine(one, 1).unwrap());
            moments.add(&one, grid).unwrap();
        }
        assert_eq!((&single, &moments), (&whole, &second));
        let coarse = |value: f32| (f64::from(value) / grid.square_unit()).round_ties_even() as i128;
        for (row, col) in [(0, 0), (77, 5), (130, 129), (132, 0)] {
            let products = points.iter_rows().map(|z| coarse(z[row]) * coarse(z[col]));
            let (tile, cols) = if row < 128 { (0, 128) } else { (1, dim) };
            let at = (row % 128) * cols + col;
            let found = joined(second.tiles[tile][at], second.high[tile][at]);
            assert_eq!(found, products.sum::<i128>(), "{row} {col}");
        }
        // without the large ones all is narrow again
        let large: Vec<usize> = (0..rows).filter(|row| row % sizes.len() > 0).collect();
        let mut more = SecondMoments::zeros(dim);
        more.add(&points.select(&large), grid).unwrap();
        second.combine(&more, -1).unwrap();
        let mut few = SecondMoments::zeros(dim);
        let small: Vec<usize> = (0..rows).step_by(sizes.len()).collect();
        few.add(&points.select(&small), grid).unwrap();
        assert!(!few.is_wide());
        assert_eq!(second, few);
    }

    #[test]
    fn a_finer_unit_changes_no_value() {
        let points = sample(30, 7);
        let coarse = Grid::covering(&points);
        let fine = Grid::from_exponent(coarse.exponent() - 8).unwrap();
        let sums = &sums_by_class(&points, &[0; 30], &names(1), coarse, "test").unwrap()[0];
        let mut second = SecondMoments::zeros(7);
        second.add(&points, coarse).unwrap();
        let blocks = vec![sums.clone()];
        let mut finer = ClassStatistics { count: 30, blocks, second: None, compact: None };
        finer.second = Some(vec![second.clone()]);
        finer.refine(&[8], "test").unwrap();
        assert_eq!(finer.blocks[0].mean(30, fine), sums.mean(30, coarse));
        let found = finer.second.unwrap()[0].to_symmetric(fine);
        assert_eq!(found, second.to_symmetric(coarse));
    }

    #[test]
    fn values_outside_the_grid_and_nan_are_refused() {
        let grid = Grid::covering(&sample(2, 2));
        let many = Matrix::new(8, 15, vec![1e30; 120]).unwrap();
        assert!(matches!(
            sums_by_class(&many, &[0; 8], &names(1), grid, "test"),
            Err(Error::OutOfRange { value: 1e30, .. })
        ));
        // among the columns that are added side by side, and among those that are left
        let bad = [1e30, f32::NAN, f32::INFINITY];
        for (bad, at) in bad.into_iter().flat_map(|bad| [(bad, 3), (bad, 17)]) {
            let values = (0..18).map(|column| if column == at { bad } else { 0.0 });
            let points = Matrix::new(1, 18, values.collect()).unwrap();
            assert!(matches!(
                sums_by_class(&points, &[0], &names(1), grid, "test"),
                Err(Error::OutOfRange { .. })
            ));
        }
    }
}
