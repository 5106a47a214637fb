use ivoro::calibration::softmin;
use ivoro::head::Head;
use ivoro::head::{Forgetting, ScatterKept, Settings};
use ivoro::model::{AskOptions, BurstRule, Prediction};
use ivoro::{Error, Matrix, Model, ModelOptions, Retraction, Samples, View};

use crate::data::{
    CLASSES, Numbers, blobs, every_variant, learned, phase, phases, queries, small, train, variant,
};

fn model(name: &str) -> Model {
    let options = ModelOptions { settings: small(), ..ModelOptions::default() };
    let mut model = Model::new(variant(name), options);
    for at in 0..3 {
        model.learn(&phase(&train(), at)).unwrap();
    }
    model
}

fn in_bursts(model: &Model, queries: &Samples, size: usize, rule: BurstRule) -> Vec<Prediction> {
    let options = AskOptions {
        top: 2,
        false_rejection: Some(0.05),
        burst: Some((size, rule)),
        ..AskOptions::default()
    };
    model.ask(queries, options).unwrap()
}

/// Whatever else is said of a query, its distances are those that decide: D's selection, the votes of AC
/// and what Q pays for a volume are in them.
#[test]
fn answers_have_the_distances_that_decide() {
    let (train, queries) = (phases(&train()), queries());
    for variant in every_variant() {
        let head = learned(variant, &small(), &train);
        let answers = head.ask(&queries, !variant.lift).unwrap();
        assert!(answers.distances == head.distances(&queries).unwrap(), "{variant}");
    }
}

/// Strangeness compares with 256 classes at most; answers are about all of them.
#[test]
fn answers_are_about_all_of_many_classes() {
    let samples = blobs(1, 300, |_| 2);
    let mut model = Model::new(variant("iVoro"), ModelOptions::default());
    model.learn(&samples).unwrap();
    let answers = model.ask(&samples, AskOptions { top: 300, ..AskOptions::default() }).unwrap();
    assert!(answers.iter().all(|answer| answer.top.len() == 300));
    let right = answers.iter().zip(samples.labels());
    let right = right.filter(|(answer, label)| answer.top[0].class == format!("class {label}"));
    assert!(right.count() > samples.len() / 2);
}

#[test]
fn a_burst_of_one_is_a_single_query() {
    let queries = queries();
    for name in ["iVoro", "iVoro-NW", "iVoro-NDAC", "iVoro-NAIL"] {
        let model = model(name);
        let options = AskOptions { top: 2, false_rejection: Some(0.05), ..AskOptions::default() };
        let single = model.ask(&queries, options).unwrap();
        assert_eq!(in_bursts(&model, &queries, 1, BurstRule::Sum), single, "{name}");
        let voted = in_bursts(&model, &queries, 1, BurstRule::Vote);
        let first = |answers: &[Prediction]| -> Vec<String> {
            answers.iter().map(|answer| answer.top[0].class.clone()).collect()
        };
        assert_eq!(first(&voted), first(&single), "{name}");
    }
}

#[test]
fn one_vector_repeated_is_the_same_object() {
    let queries = queries();
    for name in ["iVoro", "iVoro-NWAC"] {
        let model = model(name);
        for row in 0..queries.len() {
            let once = in_bursts(&model, &queries.select(&[row]), 1, BurstRule::Sum);
            for rule in [BurstRule::Sum, BurstRule::Vote] {
                let joined = in_bursts(&model, &queries.select(&[row; 4]), 4, rule);
                assert_eq!(joined.len(), 1);
                assert_eq!(joined[0].top[0].class, once[0].top[0].class);
                assert_eq!((joined[0].burst, joined[0].unknown), (4, once[0].unknown));
            }
        }
    }
}

#[test]
fn the_last_burst_may_be_shorter() {
    let queries = queries();
    let answers = in_bursts(&model("iVoro"), &queries, 5, BurstRule::Sum);
    let sizes: Vec<usize> = answers.iter().map(|answer| answer.burst).collect();
    assert_eq!(sizes, [5, 5, 5, 5, 5, 5, 5, 1]);
}

#[test]
fn more_vectors_of_an_object_are_answered_no_worse() {
    let (model, queries) = (model("iVoro"), queries());
    let right = |size: usize| {
        let answers = in_bursts(&model, &queries, size, BurstRule::Sum);
        let names = answers.iter().enumerate().filter(|(at, answer)| {
            let label = queries.labels()[at * size] as usize;
            answer.top[0].class == queries.classes()[label]
        });
        names.count() as f64 / answers.len() as f64
    };
    assert!(right(4) >= right(1), "{} {}", right(4), right(1));
}

/// Votes are counted over all vectors and rotations; equal votes are decided by the distances.
#[test]
fn a_burst_under_ac_counts_every_rotation_of_every_vector() {
    let (train, queries) = (train(), queries());
    let single = |features: &Samples, view: View| {
        let block = features.block(0, view).unwrap().clone();
        let names = features.classes().len();
        Samples::single("view", block, features.labels().to_vec(), names).unwrap()
    };
    let mut votes = vec![vec![0; CLASSES as usize]; queries.len().div_ceil(3)];
    let mut sums = vec![vec![0f64; CLASSES as usize]; votes.len()];
    for view in View::ROTATIONS {
        let mut head = Head::new(variant("iVoro"), small()).unwrap();
        head.learn(&single(&train, view)).unwrap();
        let asked = single(&queries, view);
        for (row, class) in head.predict(&asked).unwrap().into_iter().enumerate() {
            votes[row / 3][class as usize] += 1;
        }
        for (row, distances) in head.measure(&asked, true).unwrap().iter_rows().enumerate() {
            let pairs = sums[row / 3].iter_mut().zip(distances);
            pairs.for_each(|(sum, distance)| *sum += f64::from(*distance));
        }
    }
    let model = model("iVoro-AC");
    for rule in [BurstRule::Sum, BurstRule::Vote] {
        let answers = in_bursts(&model, &queries, 3, rule);
        for (answer, (votes, sums)) in answers.iter().zip(votes.iter().zip(&sums)) {
            let better =
                |&a: &usize, &b: &usize| votes[b].cmp(&votes[a]).then(sums[a].total_cmp(&sums[b]));
            let winner = (0..votes.len()).min_by(better).unwrap();
            assert_eq!(answer.top[0].class, format!("class {winner}"));
            assert_eq!(answer.top[0].probability, None, "votes are not calibrated distances");
        }
    }
}

#[test]
fn probabilities_of_all_classes_add_up_to_one() {
    for name in ["iVoro", "iVoro-NKW", "iVoro-NDAC"] {
        let options = AskOptions { top: CLASSES as usize, ..AskOptions::default() };
        for answer in model(name).ask(&queries(), options).unwrap() {
            let sum: f64 = answer.top.iter().map(|top| top.probability.unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{name} {sum}");
            let sorted = answer.top.is_sorted_by(|a, b| a.distance <= b.distance);
            assert!(sorted && answer.unknown.is_none());
        }
    }
}

#[test]
fn groups_of_rows_are_bursts_in_any_order() {
    let (model, queries) = (model("iVoro-NAI"), queries());
    let rows: Vec<usize> = (0..queries.len()).collect();
    let groups: Vec<&[usize]> = rows.chunks(3).collect();
    let backwards: Vec<usize> = rows.iter().rev().copied().collect();
    let turned: Vec<Vec<usize>> =
        groups.iter().map(|group| group.iter().map(|row| rows.len() - 1 - row).collect()).collect();
    let turned: Vec<&[usize]> = turned.iter().map(Vec::as_slice).collect();
    for rule in [BurstRule::Sum, BurstRule::Vote] {
        let ask = |features: &Samples| model.head().ask(features, true).unwrap();
        let bursts = ask(&queries).in_bursts(3, rule).unwrap();
        let grouped = ask(&queries.select(&backwards)).in_groups(&turned, rule).unwrap();
        assert_eq!((&grouped.burst, grouped.distances.rows()), (&bursts.burst, groups.len()));
        assert_eq!(grouped.distances, bursts.distances);
        assert_eq!(grouped.uncertainty, bursts.uncertainty);
    }
}

#[test]
fn a_model_of_single_samples_has_a_temperature_too() {
    for name in ["iVoro", "iVoro-N", "iVoro-W", "iVoro-Q", "iVoro-AIL"] {
        let mut small_base = Model::new(variant(name), ModelOptions::default());
        // the first sample and the first of another class
        let labels = train().labels().to_vec();
        let other = labels.iter().position(|label| *label != labels[0]).unwrap();
        small_base.learn(&train().select(&[0, other])).unwrap();
        assert_eq!(small_base.calibration().unwrap().samples(), 0);
        let temperature = small_base.temperature().unwrap();
        assert!(temperature.is_finite() && temperature > 0.0, "{name} {temperature}");
        let found = model(name).temperature().unwrap();
        assert!(found.is_finite() && found > 0.0, "{name} {found}");
    }
}

/// Inside a phase D answers with differences of its probe, which have a unit of their own.
#[test]
fn under_d_probabilities_are_about_as_high_as_answers_are_right() {
    for scale in [0.1, 1.0] {
        let scaled = |samples: Samples| {
            let numbers = samples.block(0, View::UPRIGHT).unwrap();
            let data = numbers.as_slice().iter().map(|value| value * scale).collect();
            let points = Matrix::new(numbers.rows(), numbers.cols(), data).unwrap();
            Samples::single("scaled", points, samples.labels().to_vec(), 9).unwrap()
        };
        let queries = scaled(blobs(3, 9, |_| 40));
        let whole = std::iter::once(0..9).collect::<Vec<_>>();
        for sizes in [&whole[..], &[0..5, 5..9], &[0..3, 3..6, 6..9]] {
            let mut model = Model::new(variant("iVoro-D"), ModelOptions::default());
            let train = scaled(blobs(2, 9, |_| 20));
            for phase in sizes {
                model.learn(&train.of_classes(|label| phase.contains(&label))).unwrap();
            }
            let answers = model.ask(&queries, AskOptions::default()).unwrap();
            let names = answers.iter().zip(queries.labels());
            let right = names.filter(|(answer, label)| answer.top[0].class == label.to_string());
            let right = right.count() as f64 / queries.len() as f64;
            let sure = answers.iter().filter_map(|answer| answer.top[0].probability).sum::<f64>();
            let sure = sure / queries.len() as f64;
            assert!((sure - right).abs() < 0.15, "{scale} {sizes:?}: {sure} sure, {right} right");
        }
    }
}

/// Round classes on a line, `spread(class)` wide.
fn on_a_line(seed: u64, classes: std::ops::Range<u32>, spread: impl Fn(u32) -> f32) -> Samples {
    let mut numbers = Numbers(seed);
    let labels: Vec<u32> = classes.flat_map(|class| std::iter::repeat_n(class, 60)).collect();
    let mut value = |&label: &u32| {
        let bell = (0..6).map(|_| numbers.next() - 0.5).sum::<f32>();
        [label as f32 / 2.0 + spread(label) * bell, spread(label) * (numbers.next() - 0.5)]
    };
    let values: Vec<f32> = labels.iter().flat_map(&mut value).collect();
    let points = Matrix::new(labels.len(), 2, values).unwrap();
    Samples::single("line", points, labels, 20).unwrap()
}

// later classes spread further, as those do that a network was not trained on: all distances of W
// become smaller, and the temperature with them
#[test]
fn under_w_the_temperature_follows_the_metric() {
    let spread = |class: u32| if class < 4 { 0.2 } else { 1.0 };
    let settings = Settings { scatter: ScatterKept::PerClass, ..Settings::default() };
    let options = ModelOptions { settings, ..ModelOptions::default() };
    let mut model = Model::new(variant("iVoro-W"), options);
    model.learn(&on_a_line(1, 0..4, spread)).unwrap();
    let fitted = model.temperature().unwrap();
    model.learn(&on_a_line(2, 8..20, spread)).unwrap();
    let now = model.temperature().unwrap();
    assert!(now < fitted, "{now} {fitted}");
    // of what is asked now the model is as sure as it is right
    let queries = on_a_line(3, 0..20, spread).of_classes(|class| !(4..8).contains(&class));
    let mean = |temperature: f64| {
        let distances = model.head().ask(&queries, true).unwrap().distances;
        let rows = distances.iter_rows().map(|row| softmin(row, temperature));
        rows.map(|p| p.into_iter().fold(0.0, f64::max)).sum::<f64>() / queries.len() as f64
    };
    let right = {
        let found = model.ask(&queries, AskOptions::default()).unwrap();
        let name = |row: usize| &queries.classes()[queries.labels()[row] as usize];
        let right = found.iter().enumerate().filter(|(row, one)| one.top[0].class == *name(*row));
        right.count() as f64 / queries.len() as f64
    };
    assert!((mean(now) - right).abs() < 0.05, "{} {right}", mean(now));
    assert!((mean(now) - right).abs() < (mean(fitted) - right).abs(), "{} {right}", mean(fitted));
    let asked = model.ask(&queries, AskOptions::default()).unwrap();
    let mut less = model.clone();
    less.forget("19", Forgetting::Exact).unwrap();
    let less = less.temperature().unwrap();
    assert!(less != now && (less / now - 1.0).abs() < 0.2, "{less} {now}");
    let said: f64 = asked.iter().filter_map(|one| one.top[0].probability).sum();
    assert!((said / queries.len() as f64 - mean(now)).abs() < 1e-6);
}

#[test]
fn teaching_is_learning_what_is_new_and_updating_the_rest() {
    let (train, options) = (train(), ModelOptions { settings: small(), ..ModelOptions::default() });
    for name in ["iVoro-N", "iVoro-NWD"] {
        let mut taught = Model::new(variant(name), options.clone());
        taught.teach(&phase(&train, 0)).unwrap();
        let mut apart = taught.clone();
        let mixed = train.of_classes(|label| label < 6);
        taught.teach(&mixed).unwrap();
        apart.update(&phase(&train, 0)).unwrap();
        apart.learn(&phase(&train, 1)).unwrap();
        assert!(taught.head() == apart.head(), "{name}");
        taught.teach(&phase(&train, 1)).unwrap();
        apart.update(&phase(&train, 1)).unwrap();
        assert!(taught.head() == apart.head(), "{name}");
        // a class without a name can't be learned: the others have not got more either
        let mut names = mixed.classes().to_vec();
        names[0].clear();
        let labels: Vec<u32> = (0..names.len() as u32).collect();
        let nameless = mixed.relabel(&labels, names.into()).unwrap();
        assert!(taught.teach(&nameless).is_err(), "{name}");
        assert!(taught.head() == apart.head(), "{name}");
    }
}

#[test]
fn what_was_taught_is_one_lesson_in_the_journal() {
    let (train, options) = (train(), ModelOptions { settings: small(), ..ModelOptions::default() });
    let mut model = Model::new(variant("iVoro-N"), options);
    model.set_time(1);
    model.teach(&phase(&train, 0)).unwrap();
    let before = model.head().clone();
    let mixed = train.of_classes(|label| label < 6);
    model.teach(&mixed).unwrap();
    let entries: Vec<u64> = model.journal().entries().map(|entry| entry.samples).collect();
    assert_eq!(entries, [phase(&train, 0).len() as u64, mixed.len() as u64]);
    // a network may compute otherwise next time: only what the journal has is believed
    let how = Retraction { recomputed: true, ..Retraction::default() };
    assert!(model.retract(&mixed.select(&[0, 1]), how).is_err());
    model.retract(&mixed, how).unwrap();
    assert!(*model.head() == before);
}

#[test]
fn what_can_not_be_asked() {
    let (model, queries) = (model("iVoro"), queries());
    let ask = |options| model.ask(&queries, options).unwrap_err();
    let burst = Some((0, BurstRule::Sum));
    let error = ask(AskOptions { burst, ..AskOptions::default() });
    assert!(matches!(error, Error::Setting { name: "burst", .. }));
    for share in [0.0, 0.0009, 1.0, -0.5, f64::NAN] {
        let error = ask(AskOptions { false_rejection: Some(share), ..AskOptions::default() });
        assert!(matches!(error, Error::Setting { name: "false-rejection", .. }), "{share}");
    }
}
