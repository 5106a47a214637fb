use ivoro::Matrix;
use ivoro::diagram::{Bisector, ClusterDiagram, PowerDiagram};
use proptest::prelude::*;

const DIM: usize = 4;

fn matrix(rows: std::ops::Range<usize>) -> impl Strategy<Value = Matrix> {
    let row = proptest::collection::vec(-8f32..8.0, DIM);
    proptest::collection::vec(row, rows)
        .prop_map(|rows| Matrix::new(rows.len(), DIM, rows.concat()).unwrap())
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
}

/// Rounding may decide between two cells only where they are as good as equal.
fn assert_best(values: &[f64], chosen: usize) -> Result<(), TestCaseError> {
    let best = values.iter().copied().fold(f64::INFINITY, f64::min);
    prop_assert!(values[chosen] - best < 1e-3, "{} {best}", values[chosen]);
    Ok(())
}

proptest! {
    #[test]
    fn a_linear_classifier_is_a_power_diagram(
        weight in matrix(1..20), queries in matrix(1..20), seed in 0u64..1000,
    ) {
        let bias: Vec<f32> =
            (0..weight.rows() as u64).map(|k| ((k + seed) * 7919 % 101) as f32 / 10.0 - 5.0).collect();
        let diagram = PowerDiagram::from_linear(&weight, &bias).unwrap();
        for (query, nearest) in queries.iter_rows().zip(diagram.nearest(&queries).unwrap()) {
            let scores: Vec<f64> = weight.iter_rows().zip(&bias)
                .map(|(row, &bias)| -(dot(row, query) + f64::from(bias))).collect();
            assert_best(&scores, nearest.cell as usize)?;
        }
        let (back, bias_back) = diagram.to_linear();
        prop_assert_eq!(back, weight);
        prop_assert!(bias.iter().zip(&bias_back).all(|(a, b)| (a - b).abs() < 1e-3));
    }

    #[test]
    fn the_sign_of_a_bisector_tells_the_nearer_centre(
        centres in matrix(2..3), queries in matrix(1..20),
    ) {
        let (first, second) = (centres.row(0), centres.row(1));
        prop_assume!(squared_distance(first, second) > 1e-3);
        let bisector = Bisector::between(first, second).unwrap();
        prop_assert!((bisector.normal.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-9);
        for query in queries.iter_rows() {
            let gap = squared_distance(second, query) - squared_distance(first, query);
            prop_assert!(gap.abs() < 1e-6 || (bisector.side(query) > 0.0) == (gap > 0.0));
        }
    }

    #[test]
    fn the_nearest_cell_has_the_least_distance(
        centres in matrix(1..40), queries in matrix(1..20), seed in 0u64..1000,
    ) {
        let weights: Vec<f32> =
            (0..centres.rows() as u64).map(|k| ((k + seed) * 31 % 17) as f32).collect();
        let diagram = PowerDiagram::new(centres.clone(), weights.clone()).unwrap();
        let distances = diagram.distances(&queries).unwrap();
        for (row, nearest) in diagram.nearest(&queries).unwrap().iter().enumerate() {
            let exact: Vec<f64> = centres.iter_rows().zip(&weights)
                .map(|(c, &w)| squared_distance(c, queries.row(row)) - f64::from(w)).collect();
            assert_best(&exact, nearest.cell as usize)?;
            let measured = distances.row(row);
            prop_assert!((measured[nearest.cell as usize] - nearest.distance).abs() < 1e-2);
            prop_assert!(measured.iter().zip(&exact).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-2));
        }
    }

    #[test]
    fn any_exponent_ranks_one_layer_alike(centres in matrix(2..10), queries in matrix(1..10)) {
        let plain = PowerDiagram::voronoi(centres);
        let expected = plain.distances(&queries).unwrap();
        for gamma in [0.5, 1.0, 2.0, -0.5, -1.0] {
            let cluster = ClusterDiagram::new(vec![plain.clone()], vec![1.0], gamma).unwrap();
            let found = cluster.distances(&[&queries]).unwrap();
            for (found, expected) in found.iter_rows().zip(expected.iter_rows()) {
                for (a, b) in (0..found.len()).zip(1..found.len()) {
                    // far enough apart that a power does not round the difference away
                    if (expected[a] - expected[b]).abs() > 1e-2 * expected[a].max(expected[b]) {
                        prop_assert_eq!(found[a] < found[b], expected[a] < expected[b]);
                    }
                }
            }
        }
    }
}

#[test]
fn many_centres_are_searched_to_the_last_tile() {
    let rows = 1300;
    let data = (0..rows).flat_map(|row| [row as f32, 0.0]).collect();
    let diagram = PowerDiagram::voronoi(Matrix::new(rows, 2, data).unwrap());
    let cells = [0, 511, 512, 1023, 1024, 1299];
    let queries = cells.iter().flat_map(|&cell| [cell as f32 + 0.25, 1.0]).collect();
    let queries = Matrix::new(cells.len(), 2, queries).unwrap();
    let nearest = diagram.nearest(&queries).unwrap();
    assert_eq!(nearest.iter().map(|nearest| nearest.cell).collect::<Vec<_>>(), cells);
}

#[test]
fn of_two_equal_centres_the_first_wins() {
    let centres = Matrix::new(3, 1, vec![5.0, 1.0, 1.0]).unwrap();
    let nearest = PowerDiagram::voronoi(centres).nearest(&Matrix::new(1, 1, vec![1.0]).unwrap());
    assert_eq!(nearest.unwrap()[0].cell, 1);
    assert!(Bisector::between(&[1.0], &[1.0]).is_err());
}

proptest! {
    /// Few centres are measured one by one, many by products of matrices.
    #[test]
    fn many_centres_are_measured_as_few_are(
        centres in matrix(130..200), queries in matrix(1..20), first in 0usize..100,
    ) {
        let many = PowerDiagram::voronoi(centres.clone());
        let few = PowerDiagram::voronoi(centres.select(&(first..first + 30).collect::<Vec<_>>()));
        let (whole, part) = (many.distances(&queries).unwrap(), few.distances(&queries).unwrap());
        for (row, query) in queries.iter_rows().enumerate() {
            for (at, part) in part.row(row).iter().enumerate() {
                let exact = squared_distance(query, centres.row(first + at));
                prop_assert!((f64::from(*part) - exact).abs() <= 1e-6 * exact);
                prop_assert!((f64::from(whole.row(row)[first + at]) - exact).abs() < 1e-3);
            }
        }
        for (query, nearest) in queries.iter_rows().zip(many.nearest(&queries).unwrap()) {
            let exact: Vec<f64> =
                centres.iter_rows().map(|centre| squared_distance(query, centre)).collect();
            assert_best(&exact, nearest.cell as usize)?;
        }
    }

    #[test]
    fn few_centres_answer_a_query_alike_in_any_company(
        centres in matrix(1..20), queries in matrix(2..40),
    ) {
        let diagram = PowerDiagram::voronoi(centres);
        let together = diagram.distances(&queries).unwrap();
        for row in 0..queries.rows() {
            let alone = diagram.distances(&queries.select(&[row])).unwrap();
            prop_assert_eq!(alone.row(0), together.row(row));
        }
    }
}

/// With so many queries most centres are ruled out in bytes, unless they lie too close together.
#[test]
fn many_queries_find_the_nearest_of_all_centres() {
    let value = |seed, at: usize| ivoro::random::unit(seed, at as u64) as f32;
    let (rows, dim) = (2_500, 48);
    for (spread, allowed) in [(1.0f32, 1e-5), (1e-6, 1e-5)] {
        let number = |seed, at| 2.0 + spread * value(seed, at);
        let centres = (0..200 * dim).map(|at| number(1, at)).collect();
        let queries = (0..rows * dim).map(|at| 2.0 + value(2, at)).collect();
        let centres = Matrix::new(200, dim, centres).unwrap();
        let queries = Matrix::new(rows, dim, queries).unwrap();
        let weights: Vec<f32> = (0..200).map(|at| 0.2 * spread * value(3, at)).collect();
        let diagram = PowerDiagram::new(centres.clone(), weights.clone()).unwrap();
        for (query, nearest) in queries.iter_rows().zip(diagram.nearest(&queries).unwrap()) {
            let exact: Vec<f64> = centres
                .iter_rows()
                .zip(&weights)
                .map(|(centre, &weight)| squared_distance(query, centre) - f64::from(weight))
                .collect();
            let best = exact.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(exact[nearest.cell as usize] - best <= allowed * best, "{spread}");
            assert!((f64::from(nearest.distance) - best).abs() <= allowed * best, "{spread}");
        }
    }
}

/// A constant added to all numbers changes no distance: products are taken around the mean of the
/// centres, so that nothing is lost where all numbers are large and nearly alike.
#[test]
fn a_constant_added_to_everything_changes_no_answer() {
    let (dim, classes, asked) = (64, 40, 300);
    let number = |seed: u64, at: usize| (ivoro::random::mix(seed, at as u64) % 17) as f32;
    let matrix = |seed: u64, rows: usize, plus: f32| {
        let data = (0..rows * dim).map(|at| plus + number(seed, at)).collect();
        Matrix::new(rows, dim, data).unwrap()
    };
    let near = PowerDiagram::voronoi(matrix(1, classes, 0.0));
    let far = PowerDiagram::voronoi(matrix(1, classes, 1e4));
    let (here, there) = (matrix(2, asked, 0.0), matrix(2, asked, 1e4));
    let expected = near.nearest(&here).unwrap();
    let found = far.nearest(&there).unwrap();
    for (expected, found) in expected.iter().zip(&found) {
        let apart = (expected.distance - found.distance).abs();
        assert!(apart <= 1e-4 * expected.distance, "{expected:?} {found:?}");
    }
    let (expected, found) = (near.distances(&here).unwrap(), far.distances(&there).unwrap());
    for (expected, found) in expected.as_slice().iter().zip(found.as_slice()) {
        assert!((expected - found).abs() <= 1e-3 * expected, "{expected} {found}");
    }
}
