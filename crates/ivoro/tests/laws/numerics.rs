//! Numbers of any size, anywhere: what must not change when features are moved, scaled, asked alone or
//! learned in another order.

use ivoro::head::Head;
use ivoro::head::{RidgePer, ScatterKept, Settings};
use ivoro::random::normals;
use ivoro::transform::Transform;
use ivoro::{Error, Matrix, Model, ModelOptions, Points, Samples, Variant, View, codec};

use crate::data::{Numbers, every_variant, learned, names, small, variant};

const CLASSES: u32 = 10;
const DIMS: [usize; 2] = [60, 40];

/// Features of two layers and eight views: more numbers in all centres than are measured one by one.
fn wide(seed: u64, count: usize) -> Samples {
    let views = View::conventional(8).unwrap();
    let labels: Vec<u32> = (0..CLASSES).flat_map(|c| std::iter::repeat_n(c, count)).collect();
    let (mut fixed, mut numbers) = (Numbers(7), Numbers(seed));
    let mut blocks = Vec::new();
    for dim in DIMS {
        for _ in &views {
            let centres: Vec<f32> = (0..CLASSES as usize * dim).map(|_| fixed.next()).collect();
            let value = |(row, col): (usize, usize)| {
                4.0 * numbers.next() + 2.0 * centres[labels[row] as usize * dim + col]
            };
            let places = (0..labels.len()).flat_map(|row| (0..dim).map(move |col| (row, col)));
            blocks.push(Matrix::new(labels.len(), dim, places.map(value).collect()).unwrap());
        }
    }
    let layers = vec!["last".to_owned(), "third".to_owned()];
    let points = Points::new("wide", layers, views, blocks).unwrap();
    Samples::new(points, labels, names(CLASSES)).unwrap()
}

/// The same samples with every number changed.
fn changed(samples: &Samples, change: impl Fn(usize, f32) -> f32) -> Samples {
    let (layers, views) = (samples.layers().to_vec(), samples.views().to_vec());
    let mut blocks = Vec::new();
    for layer in 0..layers.len() {
        for &view in &views {
            let mut block = samples.block(layer, view).unwrap().clone();
            let cols = block.cols();
            let numbers = block.as_mut_slice().iter_mut().enumerate();
            numbers.for_each(|(at, value)| *value = change(at % cols, *value));
            blocks.push(block);
        }
    }
    let points = Points::new("changed", layers, views, blocks).unwrap();
    Samples::new(points, samples.labels().to_vec(), samples.classes().clone()).unwrap()
}

/// One answer per query: no bit of it depends on the queries beside it.
#[test]
fn every_variant_answers_a_query_alike_in_any_company() {
    let (train, queries) = (wide(1, 6), wide(2, 20));
    for variant in every_variant() {
        let head = learned(variant, &small(), std::slice::from_ref(&train));
        let predicted = head.predict(&queries).unwrap();
        let measured = [true, false].map(|absolute| head.measure(&queries, absolute).unwrap());
        for rows in [vec![17], vec![199, 3], (60..67).collect(), (0..101).rev().collect()] {
            let some = queries.select(&rows);
            let expected: Vec<u32> = rows.iter().map(|&row| predicted[row]).collect();
            assert_eq!(head.predict(&some).unwrap(), expected, "{variant} {rows:?}");
            for (absolute, whole) in [true, false].into_iter().zip(&measured) {
                let part = head.measure(&some, absolute).unwrap();
                assert!(part == whole.select(&rows), "{variant} {absolute} {rows:?}");
            }
        }
    }
}

/// Screening, tiles and products of any number of queries find the same class, also where several are
/// as good as equally near.
#[test]
fn many_queries_get_the_answer_that_each_gets_alone() {
    let mut numbers = Numbers(3);
    let (dim, classes) = (40, 300);
    let mut centres: Vec<f32> = (0..classes * dim).map(|_| numbers.next() + 3.0).collect();
    // pairs of classes that differ in last digits only
    for at in 0..classes / 2 * dim {
        centres[classes / 2 * dim + at] = centres[at] * (1.0 + 2e-7 * (at % 3) as f32);
    }
    let labels = (0..classes as u32).collect();
    let points = Matrix::new(classes, dim, centres).unwrap();
    let train = Samples::single("pairs", points, labels, classes).unwrap();
    let values = (0..2500 * dim).map(|_| numbers.next() + 3.0).collect();
    let queries = Points::single("queries", Matrix::new(2500, dim, values).unwrap()).unwrap();
    for name in ["iVoro", "iVoro-N", "iVoro-W"] {
        let head = learned(variant(name), &Settings::default(), std::slice::from_ref(&train));
        let together = head.predict(&queries).unwrap();
        let rows: Vec<usize> = (0..2500).collect();
        for rows in rows.chunks(1250) {
            let apart = head.predict(&queries.select(rows)).unwrap();
            assert_eq!(apart, together[rows[0]..=rows[rows.len() - 1]], "{name}");
        }
        for row in (0..2500).step_by(50) {
            assert_eq!(head.predict(&queries.select(&[row])).unwrap(), [together[row]], "{name}");
        }
    }
}

fn right(head: &Head, queries: &Samples) -> usize {
    let found = head.predict(queries).unwrap();
    found.iter().zip(queries.labels()).filter(|(found, label)| found == label).count()
}

/// Whole numbers, so that a constant is added exactly. N and K are other functions of moved features.
#[test]
fn a_constant_added_to_all_features_changes_no_answer() {
    let whole = |samples: Samples| changed(&samples, |_, value| (4.0 * value).round());
    let (train, queries) = (whole(wide(1, 12)), whole(wide(2, 12)));
    for name in ["iVoro", "iVoro-F", "iVoro-W", "iVoro-WAI", "iVoro-Q", "iVoro-AC", "iVoro-L"] {
        let head = learned(variant(name), &small(), std::slice::from_ref(&train));
        for constant in [1e3, 1e4, 1e5] {
            let far = |samples: &Samples| changed(samples, |_, value| value + constant);
            let moved = learned(variant(name), &small(), &[far(&train)]);
            let found = moved.predict(&far(&queries)).unwrap();
            assert_eq!(found, head.predict(&queries).unwrap(), "{name} {constant}");
            let distances = head.distances(&queries).unwrap();
            let elsewhere = moved.distances(&far(&queries)).unwrap();
            for (a, b) in distances.as_slice().iter().zip(elsewhere.as_slice()) {
                assert!((a - b).abs() <= 2e-3 * a.abs().max(1.0), "{name} {constant}: {a} {b}");
            }
        }
    }
    // probes and the letters that are not indifferent to a constant still tell classes apart
    for name in ["iVoro-D", "iVoro-R", "iVoro-NW", "iVoro-KW", "iVoro-WD", "iVoro-WR"] {
        let far = |samples: &Samples| changed(samples, |_, value| value + 1e4);
        let settings = Settings { lift: 300, ..small() };
        let near = learned(variant(name), &settings, std::slice::from_ref(&train));
        let moved = learned(variant(name), &settings, &[far(&train)]);
        let (here, there) = (right(&near, &queries), right(&moved, &far(&queries)));
        assert!(5 * there >= 4 * here, "{name}: {there} of {here}");
    }
}

#[test]
fn a_factor_of_all_features_changes_no_answer() {
    let (train, queries) = (wide(1, 12), wide(2, 12));
    let names = [
        "iVoro",
        "iVoro-N",
        "iVoro-W",
        "iVoro-NW",
        "iVoro-Q",
        "iVoro-NQ",
        "iVoro-KW",
        "iVoro-AC",
        "iVoro-WAI",
        "iVoro-WAC",
        "iVoro-L",
        "iVoro-NFQAIL",
    ];
    for name in names {
        let settings = Settings { lift: 100, ..small() };
        let head = learned(variant(name), &settings, std::slice::from_ref(&train));
        let expected = head.predict(&queries).unwrap();
        for factor in [1e-30, 3e-20, 1e-9, 1e-4, 1e4, 1e9, 1e14] {
            let scaled = |samples: &Samples| changed(samples, |_, value| value * factor);
            let other = learned(variant(name), &settings, &[scaled(&train)]);
            let found = other.predict(&scaled(&queries)).unwrap();
            assert_eq!(found, expected, "{name} {factor}");
            let distances = other.measure(&scaled(&queries), true).unwrap();
            assert!(distances.as_slice().iter().all(|d| d.is_finite()), "{name} {factor}");
        }
    }
}

/// With a ridge per feature, no feature's unit matters.
#[test]
fn a_factor_of_each_feature_changes_no_answer_of_w() {
    let (train, queries) = (wide(1, 12), wide(2, 12));
    let factor = |col: usize| [1e-3, 1.0, 1e4, 20.0, 3e-6][col % 5];
    let scaled = |samples: &Samples| changed(samples, |col, value| value * factor(col));
    for ridge_per in [RidgePer::Feature, RidgePer::Auto] {
        let settings = Settings { ridge: 0.3, ridge_per, ..small() };
        let even = Settings { ridge_per: RidgePer::Feature, ..settings.clone() };
        let head = learned(variant("iVoro-W"), &even, std::slice::from_ref(&train));
        let mixed = learned(variant("iVoro-W"), &settings, &[scaled(&train)]);
        let found = mixed.predict(&scaled(&queries)).unwrap();
        assert_eq!(found, head.predict(&queries).unwrap(), "{ridge_per}");
    }
    // where features are alike in scale, the choice is the mean
    let auto = learned(variant("iVoro-W"), &small(), std::slice::from_ref(&train));
    let settings = Settings { ridge_per: RidgePer::Mean, ..small() };
    let mean = learned(variant("iVoro-W"), &settings, std::slice::from_ref(&train));
    assert_eq!(auto.distances(&queries).unwrap(), mean.distances(&queries).unwrap());
}

/// A sample of class 0 or 1, as a stream brings it.
fn one(class: u32, size: f32, seed: u64) -> Samples {
    let mut numbers = Numbers(seed);
    let values = (0..6).map(|_| size * (1.0 + numbers.next())).collect();
    let points = Matrix::new(1, 6, values).unwrap();
    Samples::single("stream", points, vec![class], 2).unwrap()
}

fn begun(variant: Variant, settings: &Settings) -> Model {
    Model::new(variant, ModelOptions { settings: settings.clone(), ..ModelOptions::default() })
}

fn streamed(variant: Variant, settings: &Settings, stream: &[&Samples]) -> Model {
    let mut model = begun(variant, settings);
    stream.iter().for_each(|sample| model.teach(sample).unwrap());
    model
}

/// Kept numbers, class by class: the order of arrival is part of a head, sums are not.
fn kept(model: &Model) -> Vec<(String, ivoro::statistics::ClassStatistics)> {
    let classes =
        model.head().classes().iter().map(|class| (class.name.clone(), class.statistics.clone()));
    let mut classes: Vec<_> = classes.collect();
    classes.sort_by(|a, b| a.0.cmp(&b.0));
    classes
}

#[test]
fn a_stream_in_any_order_gives_the_same_sums_however_they_grow() {
    let samples = [one(0, 0.0, 1), one(0, 1.0, 2), one(1, 1.1, 3), one(1, 3e4, 4), one(0, 2e7, 5)];
    for (name, scatter) in [
        ("iVoro", ScatterKept::Pooled),
        ("iVoro-W", ScatterKept::PerClass),
        ("iVoro-Q", ScatterKept::Pooled),
    ] {
        let settings = Settings { scatter, ..Settings::default() };
        let stream = |order: &[usize]| {
            let samples: Vec<&Samples> = order.iter().map(|&at| &samples[at]).collect();
            streamed(variant(name), &settings, &samples)
        };
        let expected = stream(&[0, 1, 2, 3, 4]);
        // zeros may come first; the unit is that of the samples of usual size
        for order in [[1, 0, 2, 3, 4], [0, 2, 4, 3, 1], [2, 4, 3, 0, 1], [1, 4, 0, 2, 3]] {
            let found = stream(&order);
            assert_eq!(kept(&found), kept(&expected), "{name} {order:?}");
            assert_eq!(found.head().predict(&samples[4]).unwrap().len(), 1);
        }
        // two sites, of which one has seen the large ones
        let mut merged = stream(&[0, 1, 2]);
        let mut other = merged.emptied();
        for at in [3, 4] {
            other.learn(&samples[at]).unwrap();
        }
        merged.merge(&other, None).unwrap();
        assert_eq!(kept(&merged), kept(&expected), "{name}");
        // the file keeps them
        let file = codec::encode(&expected).unwrap();
        let read = codec::decode("grown".as_ref(), &file).unwrap();
        assert!(read.head() == expected.head(), "{name}");
    }
}

#[test]
fn models_begun_with_other_units_merge_without_losing_a_bit() {
    let (small, large) = (one(0, 1e-3, 1), one(1, 5e3, 2));
    for name in ["iVoro", "iVoro-W", "iVoro-Q"] {
        let settings = Settings::default();
        let (first, second) = (
            streamed(variant(name), &settings, &[&small]),
            streamed(variant(name), &settings, &[&large]),
        );
        let (mut left, mut right) = (first.clone(), second.clone());
        left.merge(&second, None).unwrap();
        right.merge(&first, None).unwrap();
        assert_eq!(kept(&left), kept(&right), "{name}");
        let centre = |model: &Model, class: &str| {
            let head = model.head();
            let at = head.classes().iter().position(|known| known.name == class).unwrap();
            head.centroids().unwrap()[0].row(at).to_vec()
        };
        assert_eq!(centre(&left, "0"), centre(&first, "0"));
        assert_eq!(centre(&left, "1"), centre(&second, "1"));
    }
}

/// An origin and units are kept in the file.
#[test]
fn models_of_moved_and_scaled_features_are_read_back() {
    // too few samples to choose settings on
    let (train, queries) = (wide(1, 4), wide(2, 3));
    for (factor, constant) in [(1.0, 1e4), (1e-30, 0.0), (1e14, 0.0)] {
        let moved = |samples: &Samples| changed(samples, |_, value| value * factor + constant);
        for name in ["iVoro", "iVoro-NW", "iVoro-WD", "iVoro-ND"] {
            let model = streamed(variant(name), &small(), &[&moved(&train)]);
            let file = codec::encode(&model).unwrap();
            let read = codec::decode("moved".as_ref(), &file).unwrap();
            assert!(read.head() == model.head(), "{name}");
            let predictor = codec::decode_predictor("moved".as_ref(), &file).unwrap();
            let queries = moved(&queries);
            let options = ivoro::AskOptions::default();
            let found = predictor.ask(&queries, options).unwrap();
            assert_eq!(found, read.ask(&queries, options).unwrap(), "{name}");
        }
    }
}

#[test]
fn a_class_without_a_name_is_refused() {
    let points = Matrix::new(2, 2, vec![0.0, 1.0, 1.0, 0.0]).unwrap();
    let points = Points::single("labels", points).unwrap();
    for name in [String::new(), "x".repeat(5000)] {
        let classes = ["a".to_owned(), name].into_iter().collect();
        let samples = Samples::new(points.clone(), vec![0, 1], classes).unwrap();
        let refused = Head::new(variant("iVoro"), small()).unwrap().learn(&samples);
        assert!(matches!(refused, Err(Error::ClassName { place: 1, most: 4096, .. })));
    }
}

/// Features that are zero for all samples become one and the same number under N with a shift. Second
/// moments round it to fewer bits than sums do: a small ridge must not be what fails then.
#[test]
fn many_constant_features_do_not_defeat_a_small_ridge() {
    let (rows, dims, constant) = (60, 700, 600);
    let numbers: Vec<f64> = normals(5, 0).take(rows * dims).collect();
    let feature = |at: usize| {
        let (row, col) = (at / dims, at % dims);
        let centre = 4.0 * (row % 3 * col % 7) as f64;
        if col < constant { 0.0 } else { (centre + numbers[at]).abs() as f32 }
    };
    let points = Matrix::new(rows, dims, (0..rows * dims).map(feature).collect()).unwrap();
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
    let samples = Samples::single("test", points, labels.clone(), 3).unwrap();
    for shift in [0.3, 0.37, 3.1] {
        let transform = Transform { lambda: 0.8, scale: 10.0, shift };
        let settings = Settings { transform, ridge: 1e-3, ..Settings::default() };
        let head = learned(variant("iVoro-NW"), &settings, std::slice::from_ref(&samples));
        assert_eq!(head.predict(&samples).unwrap(), labels, "{shift}");
    }
}
