//! Runs: phases, what they report, and streams that are refused.

use ivoro::head::Head;
use ivoro::samples::Split;
use ivoro::{Error, Model, ModelOptions, Samples};
use ivoro_eval::record::{PhaseOutcome, Summary};
use ivoro_eval::{ClassOrder, Learner, Protocol, Run, Stream};

#[path = "../../ivoro/tests/laws/data.rs"]
#[allow(dead_code, reason = "shared with the laws of the library")]
mod data;

use data::{CLASSES, blobs, queries, small, train, variant};

fn outcomes(stream: &Stream, learner: &mut dyn Learner) -> Vec<PhaseOutcome> {
    Run::new(stream, learner).collect::<Result<_, _>>().unwrap()
}

#[test]
fn two_hundred_classes_in_unequal_phases() {
    let split = Split { train: blobs(1, 200, |c| 2 + c as usize % 3), test: blobs(2, 200, |_| 3) };
    let protocol: Protocol = "50,1,7,42,100".parse().unwrap();
    let stream = Stream::new(&split, protocol.clone(), &ClassOrder::Seed(3)).unwrap();
    let mut head = Head::new(variant("iVoro-AI"), small()).unwrap();
    let outcomes = outcomes(&stream, &mut head);
    assert_eq!(head.phases(), protocol.sizes());
    let ends: Vec<usize> = outcomes.iter().map(|outcome| outcome.classes).collect();
    assert_eq!(ends, [50, 51, 58, 100, 200]);
    let phases: Vec<_> = protocol.phases().collect();
    for (at, outcome) in outcomes.iter().enumerate() {
        assert_consistent(outcome, &phases[..=at]);
    }
    // the same answers, computed beside the run
    let predicted = head.predict(stream.test()).unwrap();
    let labels = stream.test().labels();
    let right = predicted.iter().zip(labels).filter(|(a, b)| a == b).count();
    let summary = Summary::of(&outcomes);
    assert!((summary.last - 100.0 * right as f64 / labels.len() as f64).abs() < 1e-9);
    let mean = outcomes.iter().map(|outcome| outcome.accuracy).sum::<f64>() / 5.0;
    assert!((summary.average - mean).abs() < 1e-9);
    assert!((summary.bytes_per_class - head.bytes() as f64 / 200.0).abs() < 1e-9);
}

/// Every accuracy of a phase follows from its confusion matrix.
fn assert_consistent(outcome: &PhaseOutcome, phases: &[std::ops::Range<usize>]) {
    let accuracy = |wanted: &dyn Fn(usize) -> bool| {
        let (mut right, mut all) = (0, 0);
        for &[label, found, count] in outcome.confusion.iter().filter(|[l, ..]| wanted(*l)) {
            assert!(label < outcome.classes && found < outcome.classes && count > 0);
            all += count;
            right += if label == found { count } else { 0 };
        }
        100.0 * right as f64 / all as f64
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(outcome.accuracy, accuracy(&|_| true));
    let last = phases.last().unwrap();
    close(outcome.accuracy_new.unwrap(), accuracy(&|label| last.contains(&label)));
    assert_eq!(outcome.accuracy_old.is_some(), phases.len() > 1);
    if let Some(old) = outcome.accuracy_old {
        close(old, accuracy(&|label| label < last.start));
    }
    assert_eq!(outcome.accuracy_by_phase.len(), phases.len());
    for (phase, &found) in phases.iter().zip(&outcome.accuracy_by_phase) {
        close(found, accuracy(&|label| phase.contains(&label)));
    }
    assert_eq!(outcome.by_class.len(), outcome.classes);
    let tested: usize = outcome.by_class.iter().map(|class| class.tested).sum();
    assert_eq!(tested, 3 * outcome.classes);
    for (label, class) in outcome.by_class.iter().enumerate() {
        let correct = outcome.confusion.iter().find(|[l, f, _]| *l == label && *f == label);
        assert_eq!(class.correct, correct.map_or(0, |[.., count]| *count));
    }
}

#[test]
fn the_order_of_arrival_does_not_change_what_means_know_in_the_end() {
    let split = Split { train: train(), test: queries() };
    let last = |order: &ClassOrder, protocol: &str| {
        let stream = Stream::new(&split, protocol.parse().unwrap(), order).unwrap();
        let options = ModelOptions { settings: small(), ..ModelOptions::default() };
        let mut model = Model::new(variant("iVoro"), options);
        Summary::of(&outcomes(&stream, &mut model)).last
    };
    let expected = last(&ClassOrder::Identity, "9");
    for protocol in ["5,2,2", "1,1,1,1,1,1,1,1,1", "3+2x3"] {
        for order in [ClassOrder::Identity, ClassOrder::Seed(8), ClassOrder::Numpy(1993)] {
            let found = last(&order, protocol);
            assert!((found - expected).abs() < 1e-9, "{protocol} {order}: {found} {expected}");
        }
    }
}

fn stream(train: Samples, test: Samples, protocol: &str) -> Result<Stream, Error> {
    Stream::new(&Split { train, test }, protocol.parse()?, &ClassOrder::Identity)
}

#[test]
fn a_stream_refuses_a_protocol_for_other_classes() {
    for protocol in ["4,4", "4,3,3", "10"] {
        let refused = stream(train(), queries(), protocol);
        assert!(matches!(refused, Err(Error::Protocol { .. })), "{protocol}");
    }
}

#[test]
fn a_stream_refuses_a_class_without_samples() {
    let without = |features: Samples| features.of_classes(|label| label != 3);
    let refused = stream(without(train()), queries(), "9");
    assert!(
        matches!(refused, Err(Error::EmptyClass { class, split: "training" }) if class == "class 3")
    );
    let refused = stream(train(), without(queries()), "9");
    assert!(
        matches!(refused, Err(Error::EmptyClass { class, split: "test" }) if class == "class 3")
    );
}

#[test]
fn a_stream_refuses_a_test_part_of_other_classes() {
    let refused = stream(train(), blobs(2, CLASSES + 2, |_| 4), "9");
    assert!(matches!(refused, Err(Error::Size { expected: 9, found: 11, .. })));
}
