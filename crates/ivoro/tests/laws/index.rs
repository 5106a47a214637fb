use ivoro::diagram::{Index, PowerDiagram};
use ivoro::head::{INDEXED_FROM, Search};
use ivoro::model::{AskOptions, BurstRule};
use ivoro::{Error, Matrix, Model, ModelOptions, Samples};
use proptest::prelude::*;

use crate::data::{Numbers, phases, queries, small, train, variant};

fn random(seed: u64, rows: usize, cols: usize) -> Matrix {
    let mut numbers = Numbers(seed);
    Matrix::new(rows, cols, (0..rows * cols).map(|_| numbers.next()).collect()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whoever looks at all families has looked at everything.
    #[test]
    fn an_index_that_looks_everywhere_is_exact(
        seed in 0..1000u64, rows in 1..400usize, cols in 1..40usize, families in 1..50usize,
        top in 1..9usize,
    ) {
        let (centres, queries) = (random(seed, rows, cols), random(seed + 1, 37, cols));
        let index = Index::new(&centres, families, seed).unwrap();
        let found = index.search(&queries, index.families(), top).unwrap();
        let distances = PowerDiagram::voronoi(centres).distances(&queries).unwrap();
        for (found, row) in found.chunks_exact(top).zip(distances.iter_rows()) {
            let mut sorted: Vec<f32> = row.to_vec();
            sorted.sort_by(f32::total_cmp);
            sorted.resize(rows.max(top), f32::INFINITY);
            for (nearest, expected) in found.iter().zip(sorted) {
                prop_assert!(
                    nearest.distance == expected || (nearest.distance - expected).abs() < 1e-4
                );
                if expected < f32::INFINITY {
                    prop_assert!((row[nearest.cell as usize] - nearest.distance).abs() < 1e-4);
                }
            }
        }
    }
}

#[test]
fn threads_and_repetition_change_nothing() {
    let (centres, queries) = (random(1, 3000, 24), random(2, 700, 24));
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let search = || Index::new(&centres, 50, 9).unwrap().search(&queries, 4, 3).unwrap();
    let once = pool(1).install(search);
    assert_eq!(pool(3).install(search), once);
    assert_eq!(search(), once);
}

#[test]
fn queries_near_their_centre_find_it() {
    let centres = random(3, 5000, 32);
    let mut queries = centres.select(&(0..500).collect::<Vec<_>>());
    let noise = random(4, 500, 32);
    let values = queries.as_mut_slice().iter_mut().zip(noise.as_slice());
    values.for_each(|(value, noise)| *value += 0.2 * (noise - 0.5));
    let found = Index::new(&centres, 280, 1).unwrap().search(&queries, 16, 1).unwrap();
    let right = found.iter().enumerate().filter(|(row, nearest)| nearest.cell as usize == *row);
    assert!(right.count() >= 475, "recall of at least 0.95");
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    assert!(matches!(Index::new(&Matrix::zeros(0, 3), 2, 1), Err(Error::Size { .. })));
    let index = Index::new(&random(1, 9, 3), 2, 1).unwrap();
    assert!(matches!(index.search(&random(1, 2, 4), 1, 1), Err(Error::Size { .. })));
}

fn model(name: &str) -> Model {
    let options = ModelOptions { settings: small(), ..ModelOptions::default() };
    let mut model = Model::new(variant(name), options);
    phases(&train()).iter().for_each(|phase| model.learn(phase).unwrap());
    model
}

#[test]
fn an_index_answers_like_the_exact_search_and_says_what_it_is() {
    for name in ["iVoro", "iVoro-N", "iVoro3-NF", "iVoro-NR"] {
        let model = model(name);
        let ask = |search| {
            let options = AskOptions { top: 3, false_rejection: Some(0.05), search, burst: None };
            model.ask(&queries(), options).unwrap()
        };
        let (exact, found) = (ask(Search::Exact), ask(Search::Index));
        assert_eq!(ask(Search::Automatic), exact, "few classes are searched exactly");
        for (exact, found) in exact.iter().zip(&found) {
            assert!(found.approximate && !exact.approximate);
            assert_eq!(found.top[0].class, exact.top[0].class, "{name}");
            assert!((found.top[0].distance - exact.top[0].distance).abs() < 1e-3);
            assert_eq!((found.unknown, found.top[0].probability), (exact.unknown, None), "{name}");
        }
    }
}

#[test]
fn variants_and_bursts_without_an_index_say_so() {
    let options = AskOptions { search: Search::Index, ..AskOptions::default() };
    for name in ["iVoro-W", "iVoro-Q", "iVoro-D", "iVoro-AI", "iVoro-AC", "iVoro-L"] {
        let refused = model(name).ask(&queries(), options).unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{name}: {refused}");
    }
    let burst = AskOptions { burst: Some((2, BurstRule::Sum)), ..options };
    let plain = model("iVoro");
    assert!(plain.ask(&queries(), burst).unwrap().iter().all(|answer| !answer.approximate));
    assert!(plain.approximation(burst).unwrap().is_none());
    assert!(plain.approximation(options).unwrap().is_some());
}

#[test]
fn enough_classes_are_searched_by_an_index() {
    let side = 320u32;
    let points = (0..side * side).flat_map(|at| [(at % side) as f32, (at / side) as f32]);
    let count = (side * side) as usize;
    assert!(count >= INDEXED_FROM);
    let points = Matrix::new(count, 2, points.collect()).unwrap();
    let classes = Samples::single("grid", points, (0..side * side).collect(), count).unwrap();
    let mut model = Model::new(variant("iVoro"), ModelOptions::default());
    model.learn(&classes).unwrap();
    let about = model.approximation(AskOptions::default()).unwrap().unwrap();
    assert!(about.agreement >= 0.98 && about.probes * 4 <= about.families, "{about:?}");
    let asked = classes.select(&[7, 77, 777, 77_777]);
    let answers = model.ask(&asked, AskOptions::default()).unwrap();
    let named: Vec<&str> = answers.iter().map(|answer| answer.top[0].class.as_str()).collect();
    assert_eq!(named, ["7", "77", "777", "77777"]);
}
