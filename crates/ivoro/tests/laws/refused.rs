use ivoro::head::Head;
use ivoro::{Error, Matrix, Samples, View};

use crate::data::{learned, phase, phases, rearranged, small, train, variant};

/// The head refuses with the error expected, both to learn and where `asked` to answer, and is
/// afterwards what it was.
#[track_caller]
fn assert_refused(head: &Head, bad: &Samples, expected: fn(&Error) -> bool) {
    let mut changed = head.clone();
    let error = changed.learn(bad).unwrap_err();
    assert!(expected(&error), "{error:?}");
    assert!(changed == *head, "{error}");
}

#[test]
fn a_class_that_returns() {
    let train = train();
    for name in ["iVoro", "iVoro-NKW", "iVoro-DRAC"] {
        let head = learned(variant(name), &small(), &phases(&train)[..2]);
        let mixed = train.of_classes(|label| label == 4 || label == 7);
        let returns = |error: &Error| matches!(error, Error::ClassReturns { class, phase: 1 } if class == "class 4");
        assert_refused(&head, &mixed, returns);
    }
}

#[test]
fn an_update_of_a_class_that_is_not_known() {
    let train = train();
    let head = learned(variant("iVoro-W"), &small(), &phases(&train)[..1]);
    let mut changed = head.clone();
    let error = changed.update(&train.of_classes(|label| label == 0 || label == 7)).unwrap_err();
    assert!(matches!(error, Error::UnknownClass { class } if class == "class 7"));
    assert!(changed == head);
}

/// The layers swapped: 5 and 7 dimensions where there were 7 and 5.
fn swapped(features: &Samples) -> Samples {
    rearranged(features, 2, features.views().to_vec(), |layer, view| (1 - layer, view))
}

#[test]
fn a_changed_dimension() {
    let train = train();
    // K and W must not hide it: a lifted or concatenated point has the dimension it always had
    for name in ["iVoro", "iVoro3", "iVoro-NKW", "iVoro-WL", "iVoro-NKWAIL", "iVoro-NDACL"] {
        let head = learned(variant(name), &small(), &phases(&train)[..1]);
        let bad = swapped(&phase(&train, 1));
        assert_refused(&head, &bad, |error| matches!(error, Error::Size { .. }));
        assert!(matches!(head.predict(&bad), Err(Error::Size { .. })), "{name}");
        let mut updated = head.clone();
        assert!(matches!(updated.update(&swapped(&phase(&train, 0))), Err(Error::Size { .. })));
        assert!(updated == head, "{name}");
    }
}

#[test]
fn missing_views() {
    let train = train();
    let upright = |f: &Samples| rearranged(f, 2, vec![View::UPRIGHT], |l, v| (l, v));
    let unmirrored = |f: &Samples| rearranged(f, 2, View::ROTATIONS.to_vec(), |l, v| (l, v));
    for name in ["iVoro-AC", "iVoro-NAI", "iVoro-F", "iVoro-WAIL"] {
        let head = learned(variant(name), &small(), &phases(&train)[..1]);
        let missing = |error: &Error| matches!(error, Error::MissingViews { .. });
        assert_refused(&head, &upright(&phase(&train, 1)), missing);
        let new = Head::new(variant(name), small()).unwrap();
        assert_refused(&new, &upright(&train), missing);
    }
    for name in ["iVoro-F", "iVoro-NFAC"] {
        let new = Head::new(variant(name), small()).unwrap();
        assert_refused(
            &new,
            &unmirrored(&train),
            |error| matches!(error, Error::MissingViews { found, .. } if found == "0,90,180,270"),
        );
    }
}

#[test]
fn a_missing_layer() {
    let train = train();
    let one_layer = |f: &Samples| rearranged(f, 1, f.views().to_vec(), |l, v| (l, v));
    for name in ["iVoro-L", "iVoro3", "iVoro3-NKW", "iVoro-NDAIL"] {
        let missing = |error: &Error| matches!(error, Error::MissingLayer { .. });
        let head = learned(variant(name), &small(), &phases(&train)[..1]);
        assert_refused(&head, &one_layer(&phase(&train, 1)), missing);
        assert_refused(&Head::new(variant(name), small()).unwrap(), &one_layer(&train), missing);
    }
}

#[test]
fn an_empty_phase() {
    let train = train();
    for name in ["iVoro", "iVoro-WDR"] {
        let none = train.select(&[]);
        let empty = |error: &Error| matches!(error, Error::Size { found: 0, .. });
        assert_refused(&Head::new(variant(name), small()).unwrap(), &none, empty);
        assert_refused(&learned(variant(name), &small(), &phases(&train)), &none, empty);
    }
}

#[test]
fn values_far_beyond_those_of_the_first_phase() {
    let features = |value: f32, class: u32| {
        let points = Matrix::new(2, 3, vec![1.0, 0.5, 0.0, value, 0.1, 0.2]).unwrap();
        Samples::single("values", points, vec![class; 2], 2).unwrap()
    };
    for name in ["iVoro", "iVoro-W", "iVoro-DR"] {
        let head = learned(variant(name), &small(), &[features(1.0, 0)]);
        let outside = |error: &Error| matches!(error, Error::OutOfRange { .. });
        assert_refused(&head, &features(1e14, 1), outside);
        // the largest numbers there are must not end the program either
        let _ = Head::new(variant(name), small()).unwrap().learn(&features(1e15, 0));
    }
    let points = Matrix::new(1, 2, vec![1.0, -1.1e15]).unwrap();
    let refused = Samples::single("values", points, vec![0], 1);
    assert!(matches!(refused, Err(Error::NotFinite { row: 0, .. })));
}

#[test]
fn samples_without_spread_are_no_reason_to_refuse() {
    // one sample per class; and three alike, off the grid
    for (rows, far) in [(3, 0.0), (9, 1000.1)] {
        let value = |at: usize| far + if at % 4 == (at / 4) % 3 { 1.3 } else { 0.1 };
        let points = Matrix::new(rows, 4, (0..4 * rows).map(value).collect()).unwrap();
        let labels: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
        let samples = Samples::single("alike", points, labels.clone(), 3).unwrap();
        for name in ["iVoro-W", "iVoro-Q", "iVoro-NW", "iVoro-WR"] {
            let head = learned(variant(name), &small(), std::slice::from_ref(&samples));
            assert_eq!(head.predict(&samples).unwrap(), labels, "{name} {far}");
        }
    }
}

#[test]
fn a_question_to_a_head_that_knows_nothing() {
    let head = Head::new(variant("iVoro-NW"), small()).unwrap();
    assert!(matches!(head.predict(&train()), Err(Error::Size { .. })));
    assert!(matches!(head.ask(&train(), true), Err(Error::Size { .. })));
}
