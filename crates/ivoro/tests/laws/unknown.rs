//! What is promised of queries that no class is like, and of probabilities, from any start on.

use ivoro::calibration::Calibration;
use ivoro::head::{Head, Lengths, ScatterKept};
use ivoro::transform::Transform;
use ivoro::{
    AskOptions, Error, Forgetting, Matrix, Model, ModelOptions, Points, Samples, Settings,
};

use crate::data::{phase, queries, small, train, variant};

/// Round classes in 24 dimensions whose centres lie as far apart as samples of a class do.
fn clouds(seed: u64, classes: std::ops::Range<u64>, each: usize) -> Samples {
    let mut values = Vec::new();
    for class in classes.clone() {
        let mut centre = ivoro::random::normals(99, class << 20);
        let centre: Vec<f64> = (0..24).filter_map(|_| centre.next()).collect();
        let mut drawn = ivoro::random::normals(seed, class << 20);
        for _ in 0..each {
            let noise = drawn.by_ref().take(24);
            values.extend(centre.iter().zip(noise).map(|(c, n)| (3.0 + c + n) as f32));
        }
    }
    let first = classes.start;
    let labels = classes.clone().flat_map(|c| vec![c as u32; each]).collect::<Vec<u32>>();
    let points = Matrix::new(labels.len(), 24, values).unwrap();
    assert!(first < 100);
    Samples::single("clouds", points, labels, 100).unwrap()
}

fn rejected(model: &Model, queries: &Samples, share: f64) -> f64 {
    let options = AskOptions { false_rejection: Some(share), ..AskOptions::default() };
    let found = model.ask(queries, options).unwrap();
    found.iter().filter(|one| one.unknown == Some(true)).count() as f64 / found.len() as f64
}

fn begun(name: &str) -> Model {
    let settings = Settings { scatter: ScatterKept::PerClass, ..Settings::default() };
    Model::new(variant(name), ModelOptions { settings, ..ModelOptions::default() })
}

#[test]
fn the_promised_share_is_kept_as_classes_arrive() {
    for name in ["iVoro", "iVoro-W", "iVoro-Q"] {
        for (first, step) in [(1, 1), (2, 2), (10, 10)] {
            let (mut model, mut known) = (begun(name), 0);
            while known < 40 {
                let next = known + if known == 0 { first } else { step };
                model.learn(&clouds(1, known..next, 30)).unwrap();
                known = next;
                if known >= 10 && known % 10 == 0 {
                    let share = rejected(&model, &clouds(2, 0..known, 40), 0.05);
                    assert!((0.02..=0.09).contains(&share), "{name} {first}: {share} of {known}");
                }
            }
            let unknown = rejected(&model, &clouds(2, 60..100, 20), 0.05);
            assert!(unknown > 0.3, "{name} {first}: {unknown}");
        }
    }
}

#[test]
fn forgetting_what_was_learned_gives_the_calibration_there_was() {
    for name in ["iVoro-N", "iVoro-W", "iVoro-Q"] {
        let mut model = begun(name);
        model.learn(&clouds(1, 0..5, 20)).unwrap();
        let before = model.calibration().cloned();
        let said = model.temperature().unwrap();
        model.learn(&clouds(1, 5..7, 20)).unwrap();
        assert_ne!(model.calibration(), before.as_ref());
        model.forget("5", Forgetting::Exact).unwrap();
        model.forget("6", Forgetting::Exact).unwrap();
        assert_eq!(model.calibration(), before.as_ref(), "{name}");
        assert_eq!(model.temperature().unwrap(), said, "{name}");
    }
}

#[test]
fn which_samples_are_asked_does_not_depend_on_their_order() {
    let samples = clouds(1, 0..6, 17);
    let backwards: Vec<usize> = (0..samples.len()).rev().collect();
    let learned = |samples: &Samples| {
        let mut model = begun("iVoro-W");
        model.learn(samples).unwrap();
        (model.temperature().unwrap(), model.threshold(0.05).unwrap())
    };
    let (one, other) = (learned(&samples), learned(&samples.select(&backwards)));
    assert!((one.0 / other.0 - 1.0).abs() < 1e-4 && (one.1 / other.1 - 1.0).abs() < 1e-4);
}

#[test]
fn calibrating_on_demand_replaces_what_was_measured() {
    for name in ["iVoro", "iVoro-NW", "iVoro-D", "iVoro-NKW"] {
        let options = ModelOptions { settings: small(), ..ModelOptions::default() };
        let mut model = Model::new(variant(name), options);
        model.learn(&phase(&train(), 0)).unwrap();
        let head = model.head().clone();
        model.calibrate(&phase(&queries(), 0)).unwrap();
        assert!(*model.head() == head, "{name}");
        let calibration = model.calibration().unwrap();
        assert_eq!(calibration.samples(), phase(&queries(), 0).len(), "{name}");
        let shares = [0.3, 0.1, 0.01].map(|share| model.threshold(share).unwrap());
        assert!(shares.is_sorted(), "{name} {shares:?}");
        let (before, nobody) = (model.calibration().cloned(), queries());
        let nobody = Samples::new(
            nobody.points().clone(),
            vec![0; nobody.len()],
            vec!["nobody".to_owned()].into(),
        );
        let refused = model.calibrate(&nobody.unwrap()).unwrap_err();
        assert!(matches!(refused, Error::UnknownClass { .. }));
        assert_eq!(model.calibration(), before.as_ref());
    }
}

#[test]
fn a_single_sample_can_not_say_what_is_unknown() {
    let mut model = Model::new(variant("iVoro-W"), ModelOptions::default());
    model.learn(&clouds(1, 0..1, 1)).unwrap();
    assert!(matches!(model.threshold(0.05), Err(Error::Unsupported { .. })));
    assert_eq!(
        model.ask(&clouds(2, 0..1, 1), AskOptions::default()).unwrap()[0].top[0].probability,
        Some(1.0)
    );
    model.learn(&clouds(1, 1..2, 1)).unwrap();
    assert!(model.threshold(0.05).unwrap() > 0.0);
    assert!(matches!(model.calibration(), Some(Calibration::Lessons(_))));
}

/// More than 256 classes are represented by 256 of them where strangeness is measured, and only there.
#[test]
fn many_classes_are_all_compared() {
    let count = 300;
    let values = (0..2 * count * 2).map(|at| if at % 2 == 0 { (at / 4) as f32 } else { 0.5 });
    let points = Matrix::new(2 * count, 2, values.collect()).unwrap();
    let labels = (0..2 * count).map(|row| row as u32 / 2).collect::<Vec<u32>>();
    let line = Samples::single("line", points, labels, count).unwrap();
    let mut model = begun("iVoro");
    model.learn(&line).unwrap();
    let found = model.ask(&line, AskOptions { top: count, ..AskOptions::default() }).unwrap();
    for (row, answer) in found.iter().enumerate() {
        assert_eq!(answer.top[0].class, (row / 2).to_string());
        assert_eq!(answer.top.len(), count);
    }
}

/// A model begun with single samples knows nothing of how far samples lie from their class until it is
/// updated: what is added then is asked before it counts.
#[test]
fn an_update_measures_a_model_of_single_samples() {
    let classes = 12;
    let mut model = begun("iVoro");
    model.learn(&clouds(1, 0..classes, 1)).unwrap();
    assert_eq!(model.calibration().unwrap().samples(), 0);
    model.update(&clouds(3, 0..classes, 1)).unwrap();
    assert_eq!(model.calibration().unwrap().samples(), classes as usize);
    // a few samples are not worth the time
    model.update(&clouds(4, 0..1, 9)).unwrap();
    assert_eq!(model.calibration().unwrap().samples(), classes as usize);
    model.update(&clouds(5, 0..classes, 20)).unwrap();
    let asked = model.calibration().unwrap().samples();
    model.update(&clouds(6, 0..classes, 20)).unwrap();
    assert_eq!(model.calibration().unwrap().samples(), asked);
    let share = rejected(&model, &clouds(2, 0..classes, 40), 0.05);
    assert!((0.01..=0.1).contains(&share), "{share}");
}

/// Under N with W, points of equal lengths are those of N brought to length w; without a metric, N is the
/// paper's, whatever is said of lengths.
#[test]
fn equal_lengths_act_where_a_metric_compares_points() {
    let (samples, asked) = (train(), queries());
    let with = |lengths| Settings { lengths, ..small() };
    let answers = |name: &str, settings: Settings, samples: &Samples, asked: &Samples| {
        let mut head = Head::new(variant(name), settings).unwrap();
        head.learn(samples).unwrap();
        head.ask(asked, true).unwrap().distances
    };
    for name in ["iVoro-N", "iVoro-NAIL", "iVoro-NDAC"] {
        let free = answers(name, with(Lengths::Free), &samples, &asked);
        assert_eq!(answers(name, with(Lengths::Equal), &samples, &asked), free, "{name}");
    }
    let transform = small().transform;
    let again = Transform::new(1.0, transform.scale, 0.0).unwrap();
    let even = |samples: &Samples| {
        let (layers, views) = (samples.layers().to_vec(), samples.views().to_vec());
        let points = (0..layers.len()).flat_map(|layer| {
            let blocks = views.iter().map(move |&view| samples.block(layer, view).unwrap());
            blocks.map(|block| again.apply(&transform.apply(block)))
        });
        let points = Points::new("even", layers.clone(), views.clone(), points.collect()).unwrap();
        Samples::new(points, samples.labels().to_vec(), samples.classes().clone()).unwrap()
    };
    for (name, plain) in
        [("iVoro-NW", "iVoro-W"), ("iVoro-NWAIL", "iVoro-WAIL"), ("iVoro-NQL", "iVoro-QL")]
    {
        let found = answers(name, with(Lengths::Equal), &samples, &asked);
        let expected = answers(plain, small(), &even(&samples), &even(&asked));
        assert_eq!(found, expected, "{name}");
        assert_ne!(found, answers(name, with(Lengths::Free), &samples, &asked), "{name}");
    }
}
