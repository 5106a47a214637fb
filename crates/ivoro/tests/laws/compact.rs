//! Classes that keep their spread in few whole numbers of their own.

use std::path::Path;

use ivoro::codec::{decode, decode_predictor, encode};
use ivoro::error::MergeRefusal;
use ivoro::head::Head;
use ivoro::head::{Forgetting, ScatterKept, Settings};
use ivoro::{AskOptions, Error, Model, ModelOptions, Retraction, Samples};

use crate::data::{half, learned, phases, queries, small, train, variant};

const VARIANTS: [&str; 7] =
    ["iVoro-W", "iVoro-NW", "iVoro-KW", "iVoro-NWAIL", "iVoro-WAC", "iVoro-Q", "iVoro-NFQAIL"];

fn compact(scatter_rank: usize) -> Settings {
    Settings { scatter: ScatterKept::Compact, scatter_rank, ..small() }
}

fn exact() -> Settings {
    Settings { scatter: ScatterKept::PerClass, ..small() }
}

fn apart(a: &Head, b: &Head, queries: &Samples) -> f64 {
    let (a, b) = (a.measure(queries, true).unwrap(), b.measure(queries, true).unwrap());
    let pairs = a.as_slice().iter().zip(b.as_slice());
    pairs.map(|(a, b)| f64::from((a - b).abs() / b.abs().max(1.0))).fold(0.0, f64::max)
}

#[test]
fn a_class_that_is_forgotten_leaves_no_trace() {
    let phases = phases(&train());
    for name in VARIANTS {
        let before = learned(variant(name), &compact(3), &phases[..2]);
        let mut head = learned(variant(name), &compact(3), &phases);
        assert!(head.can_forget_alone());
        for class in 6..9 {
            head.forget(&format!("class {class}"), Forgetting::Exact).unwrap();
        }
        assert!(head == before, "{name}");
        assert_eq!(
            head.measure(&queries(), true).unwrap(),
            before.measure(&queries(), true).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn models_of_other_classes_merge_into_the_one_that_learned_all() {
    let phases = phases(&train());
    for name in VARIANTS {
        let mut merged = learned(variant(name), &compact(3), &phases[..1]);
        merged.merge(&learned(variant(name), &compact(3), &phases[1..]), None).unwrap();
        let whole = learned(variant(name), &compact(3), &phases);
        assert!(merged == whole, "{name}");
        // and the metric of all is the same in whatever order the classes came
        let mut other = learned(variant(name), &compact(3), &phases[1..]);
        other.merge(&learned(variant(name), &compact(3), &phases[..1]), None).unwrap();
        let (found, expected) =
            (other.measure(&queries(), true).unwrap(), whole.measure(&queries(), true).unwrap());
        for (found, expected) in found.iter_rows().zip(expected.iter_rows()) {
            let turned: Vec<f32> = found[5..].iter().chain(&found[..5]).copied().collect();
            assert!(turned == expected || name.contains('Q'), "{name}");
        }
    }
}

#[test]
fn samples_in_any_order_on_any_number_of_threads_give_the_same_numbers() {
    let train = train();
    let turned = train.select(&(0..train.len()).rev().collect::<Vec<_>>());
    for name in VARIANTS {
        let one = learned(variant(name), &compact(3), std::slice::from_ref(&train));
        assert!(
            one == learned(variant(name), &compact(3), std::slice::from_ref(&turned)),
            "{name}"
        );
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let other =
            pool.install(|| learned(variant(name), &compact(3), std::slice::from_ref(&train)));
        assert!(one == other, "{name}");
    }
}

#[test]
fn with_all_directions_little_is_lost_and_with_fewer_more() {
    let (phases, queries) = (phases(&train()), queries());
    for name in VARIANTS {
        let whole = learned(variant(name), &exact(), &phases);
        let all = learned(variant(name), &compact(64), &phases);
        assert!(apart(&all, &whole, &queries) < 0.1, "{name}");
        let few = learned(variant(name), &compact(1), &phases);
        assert!(apart(&few, &whole, &queries) > apart(&all, &whole, &queries), "{name}");
    }
}

#[test]
fn a_class_gets_no_more_samples_and_loses_none() {
    let (train, phases) = (train(), phases(&train()));
    for name in VARIANTS {
        let head = learned(variant(name), &compact(3), &phases);
        let refused = |error: Error| match error {
            Error::CompactClass { class } => assert!(class.starts_with("class "), "{name}"),
            other => panic!("{name}: {other}"),
        };
        let mut changed = head.clone();
        refused(changed.update(&half(&train, 0)).unwrap_err());
        refused(changed.retract(&half(&train, 0), Retraction::default()).unwrap_err());
        refused(changed.join("class 0", "class 1", Forgetting::Exact).unwrap_err());
        let relabelled = changed.relabel(&half(&train, 0), "class 1", Retraction::default());
        refused(relabelled.unwrap_err());
        let other = learned(variant(name), &compact(3), &[half(&train, 0)]);
        match changed.merge(&other, None).unwrap_err() {
            Error::Merge { reason: MergeRefusal::Compact { class } } => {
                assert_eq!(class, "class 0");
            }
            other => panic!("{name}: {other}"),
        }
        assert!(changed == head, "{name}");
        // the same class from the same samples is one class
        let base = learned(variant(name), &compact(3), &phases[..1]);
        let mut left = learned(variant(name), &compact(3), &phases[..2]);
        left.merge(&base, Some(&base)).unwrap();
        assert!(left == learned(variant(name), &compact(3), &phases[..2]), "{name}");
    }
}

#[test]
fn what_is_kept_otherwise_is_not_merged() {
    let phases = phases(&train());
    for name in ["iVoro-W", "iVoro-Q"] {
        let mut head = learned(variant(name), &compact(3), &phases[..1]);
        for settings in [small(), exact()] {
            let other = learned(variant(name), &settings, &phases[1..]);
            let error = head.merge(&other, None).unwrap_err().to_string();
            assert!(error.contains("scatter, which is compact in one"), "{error}");
        }
        // how many directions a class has is its own affair
        head.merge(&learned(variant(name), &compact(2), &phases[1..]), None).unwrap();
        assert_eq!(head.classes().len(), 9);
    }
}

#[test]
fn a_file_gives_back_the_same_model() {
    for name in VARIANTS {
        let options = ModelOptions { settings: compact(3), ..ModelOptions::default() };
        let mut model = Model::new(variant(name), options);
        phases(&train()).iter().for_each(|phase| model.learn(phase).unwrap());
        let file = encode(&model).unwrap();
        let read = decode(Path::new("model"), &file).unwrap();
        assert!(read.head() == model.head(), "{name}");
        assert_eq!(encode(&read).unwrap(), file, "{name}");
        let predictor = decode_predictor(Path::new("model"), &file).unwrap();
        assert_eq!(
            predictor.ask(&queries(), AskOptions::default()).unwrap(),
            model.ask(&queries(), AskOptions::default()).unwrap(),
            "{name}"
        );
        // no receipt is written that could never be used
        let mut begun = model.emptied();
        let error = begun.learn_with_receipt(&phases(&train())[0]).unwrap_err().to_string();
        assert!(error.contains("forget takes a class out"), "{error}");
    }
}

#[test]
fn one_sample_and_samples_that_are_alike_have_no_spread() {
    let train = train();
    for name in VARIANTS {
        let single = train.select(&[0]);
        let mut head = learned(variant(name), &compact(3), &[single]);
        head.learn(&train.of_classes(|label| label > 0)).unwrap();
        assert_eq!(head.predict(&queries()).unwrap().len(), queries().len(), "{name}");
        let one = train.of_classes(|label| label == 1);
        let alike = one.select(&[0; 12]);
        let mut head = learned(variant(name), &compact(3), &[alike]);
        head.learn(&train.of_classes(|label| label > 1)).unwrap();
        assert_eq!(head.predict(&queries()).unwrap().len(), queries().len(), "{name}");
    }
}
