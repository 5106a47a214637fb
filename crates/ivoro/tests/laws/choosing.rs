use std::sync::{Arc, Mutex};

use ivoro::head::Head;
use ivoro::random::normals;
use ivoro::tune::{Choice, Given, Tuner};
use ivoro::{Budget, Error, Forgetting, Matrix, Model, ModelOptions, Samples, Variant};

use crate::data::{blobs, small};

/// A model that has chosen its settings, and the variant too where none is named.
fn begun(name: Option<&str>, samples: &Samples) -> Model {
    let options = ModelOptions { settings: small(), ..ModelOptions::default() };
    let mut model = match name {
        Some(name) => Model::new(name.parse::<Variant>().unwrap(), options),
        None => Model::choosing(ModelOptions::default(), Budget::default()),
    };
    model.learn(samples).unwrap();
    assert!(!model.choices().is_empty(), "{name:?}");
    model
}

fn choices(name: Option<&str>, samples: &Samples) -> Vec<Choice> {
    begun(name, samples).choices().to_vec()
}

const NAMES: [Option<&str>; 8] = [
    None,
    Some("iVoro-N"),
    Some("iVoro-NW"),
    Some("iVoro-NFWAIL"),
    Some("iVoro-NQ"),
    Some("iVoro-ND"),
    Some("iVoro-R"),
    Some("iVoro-NKW"),
];

#[test]
fn rows_in_any_order_choose_the_same_to_the_bit() {
    let samples = blobs(5, 6, |class| 7 + 3 * class as usize);
    // 53 has no factor in common with the number of rows
    let order: Vec<usize> = (0..samples.len()).map(|row| row * 53 % samples.len()).collect();
    let mut seen = order.clone();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..samples.len()));
    let other = samples.select(&order);
    for name in NAMES {
        assert_eq!(choices(name, &samples), choices(name, &other), "{name:?}");
    }
}

#[test]
fn the_number_of_threads_chooses_nothing() {
    let samples = blobs(5, 6, |class| 20 + 10 * class as usize);
    let on = |threads, name| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| choices(name, &samples))
    };
    for name in NAMES {
        assert_eq!(on(1, name), on(3, name), "{name:?}");
    }
}

#[test]
fn few_samples_do_not_outweigh_the_defaults() {
    // two of each class: whatever wins, wins by luck
    let samples = blobs(9, 4, |_| 2);
    for name in [Some("iVoro-N"), Some("iVoro-NW"), Some("iVoro-D")] {
        let model = begun(name, &samples);
        for choice in model.choices() {
            assert_eq!(choice.candidates.len(), choice.losses.len(), "{choice:?}");
            let best = choice.losses.iter().copied().fold(f64::INFINITY, f64::min);
            let taken = choice.candidates.iter().position(|(it, _)| *it == choice.value).unwrap();
            assert!(
                choice.losses[taken] >= best && choice.losses[taken] < best + 1.0,
                "{choice:?}"
            );
        }
    }
}

/// Six classes in 12 dimensions, `each` samples of every one: the `place` of the centre of a class
/// and the `spread` of its samples, dimension by dimension.
fn drawn(
    each: usize,
    place: impl Fn(usize, usize) -> f64,
    spread: impl Fn(usize, usize) -> f64,
) -> Samples {
    let mut numbers = normals(11, 0);
    let mut number = |at: usize| {
        let (class, col) = (at / 12 / each, at % 12);
        (place(class, col) + spread(class, col) * numbers.next().unwrap()) as f32
    };
    let points = Matrix::new(6 * each, 12, (0..6 * each * 12).map(&mut number).collect()).unwrap();
    let labels = (0..6 * each).map(|row| (row / each) as u32).collect();
    Samples::single("drawn", points, labels, 6).unwrap()
}

fn by_default(samples: &Samples, budget: Budget) -> Model {
    let mut model = Model::choosing(ModelOptions::default(), budget);
    model.learn(samples).unwrap();
    assert_eq!(model.choices()[0].value, model.head().variant().to_string());
    model
}

#[test]
fn classes_that_differ_in_length_alone_are_not_normalised() {
    let samples = drawn(30, |class, _| 2.0 + class as f64, |_, _| 0.3);
    let variant = by_default(&samples, Budget::default()).head().variant();
    assert!(!variant.normalise, "{variant}");
}

#[test]
fn noise_in_few_directions_asks_for_the_pooled_metric() {
    // what tells classes apart is small beside what all of them vary in
    let place = |class: usize, col: usize| if col == class { 21.0 } else { 20.0 };
    let samples = drawn(40, place, |_, col| if col > 8 { 6.0 } else { 0.2 });
    let variant = by_default(&samples, Budget::default()).head().variant();
    assert!(variant.whiten, "{variant}");
}

#[test]
fn classes_that_differ_in_shape_alone_ask_for_a_metric_of_each() {
    let spread = |class: usize, col: usize| if col % 6 == class { 8.0 } else { 0.5 };
    let samples = drawn(120, |_, _| 10.0, spread);
    let variant = by_default(&samples, Budget::default()).head().variant();
    assert!(variant.per_class_metric, "{variant}");
    // unless a class may not keep as much
    let small = Budget { bytes_per_class: 500, ..Budget::default() };
    let model = by_default(&samples, small);
    assert!(!model.head().variant().per_class_metric);
    assert!(model.choices()[0].rule.contains("over the budget: iVoro-NQ"));
}

#[test]
fn the_default_can_forget_where_the_budget_lets_it() {
    let samples = drawn(20, |class, col| if class == col { 9.0 } else { 1.0 }, |_, _| 1.0);
    let mut model = by_default(&samples, Budget::default());
    model.forget("3", Forgetting::Exact).unwrap();
    let some = samples.of_classes(|label| label != 3);
    let mut never = Head::new(model.head().variant(), model.head().settings().clone()).unwrap();
    never.learn(&some).unwrap();
    assert_eq!(model.head().classes(), never.classes());
}

#[test]
fn single_samples_begin_with_the_first_and_idle_settings_are_refused() {
    let one = drawn(1, |class, _| class as f64, |_, _| 1.0);
    assert_eq!(by_default(&one, Budget::default()).head().variant().to_string(), "iVoro-NW");
    let given = Given { weight_decay: Some(0.5), ..Given::default() };
    let options = ModelOptions { given, ..ModelOptions::default() };
    let refused = Model::choosing(options, Budget::default()).learn(&one).unwrap_err();
    assert!(matches!(refused, Error::Setting { name: "weight-decay", .. }), "{refused}");
}

/// Whoever waits is told what for.
#[test]
fn every_step_of_choosing_is_said() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let of_watcher = Arc::clone(&said);
    let watcher = move |step: &str| of_watcher.lock().unwrap().push(step.to_owned());
    let tuner = Arc::new(Tuner::default().watched(watcher));
    let options = ModelOptions { settings: small(), tuner, ..ModelOptions::default() };
    let mut model = Model::new("iVoro-NW".parse().unwrap(), options);
    model.learn(&blobs(5, 6, |_| 10)).unwrap();
    let expected = [
        "choosing lambda with iVoro-NW",
        "choosing ridge with iVoro-NW",
        "choosing shift with iVoro-NW",
        "learning",
    ];
    assert_eq!(*said.lock().unwrap(), expected);
}
