use ivoro::error::NotGiven;
use ivoro::head::Head;
use ivoro::head::{Forgetting, ScatterKept, Settings};
use ivoro::{Error, Matrix, Retraction, Samples, Variant};

use crate::data::{
    blobs, every_variant, half, learned, phase, phases, queries, small, train, unequal, variant,
};

const EXACT: Retraction =
    Retraction { probes: Forgetting::Exact, inexact: false, recomputed: false, kept: false };
const DROPPING: Retraction =
    Retraction { probes: Forgetting::DropProbes, inexact: false, recomputed: false, kept: false };

/// Both ways to keep the scatter of W.
fn both() -> [Settings; 2] {
    [ScatterKept::Pooled, ScatterKept::PerClass].map(|scatter| Settings { scatter, ..small() })
}

/// Other samples of the classes of the first two phases.
fn more() -> Samples {
    blobs(5, crate::data::CLASSES, unequal).of_classes(|label| label < 6)
}

fn is_probed(variant: Variant) -> bool {
    variant.divide || variant.residual
}

#[test]
fn a_lesson_that_is_taken_back_was_never_given() {
    let phases = phases(&train());
    for settings in both() {
        for variant in every_variant() {
            let before = learned(variant, &settings, &phases[..2]);
            let mut head = before.clone();
            head.learn(&phases[2]).unwrap();
            head.predict(&queries()).unwrap();
            let retracted = head.retract(&phases[2], EXACT).unwrap();
            assert_eq!(retracted.emptied, ["class 6", "class 7", "class 8"], "{variant}");
            assert!(head == before, "{variant}");
            assert_eq!(head.predict(&queries()).unwrap(), before.predict(&queries()).unwrap());
        }
    }
}

#[test]
fn samples_that_were_added_can_be_taken_back() {
    let (phases, more) = (phases(&train()), more());
    for settings in both() {
        for variant in every_variant() {
            let before = learned(variant, &settings, &phases);
            let mut head = before.clone();
            head.update(&more).unwrap();
            let after = head.clone();
            let retracted = head.retract(&more, EXACT);
            if is_probed(variant) {
                // the probes may have seen them, for all that is known
                assert!(matches!(retracted, Err(Error::RetractInexact { .. })), "{variant}");
                assert!(head == after, "{variant}");
                head.retract(&more, DROPPING).unwrap();
                assert_eq!(head.classes(), before.classes(), "{variant}");
                assert!(head.bytes() < before.bytes(), "{variant}");
            } else {
                let counts = retracted.unwrap().samples;
                assert_eq!(counts[1], ("class 1".to_owned(), unequal(1) as u64));
                assert!(head == before, "{variant}");
            }
        }
    }
}

#[test]
fn single_samples_are_taken_back_in_any_order() {
    let phases = phases(&train());
    for settings in both() {
        for variant in every_variant().into_iter().filter(|it| !is_probed(*it) && !it.third) {
            let before = learned(variant, &settings, &phases[..2]);
            let mut head = before.clone();
            head.learn(&phases[2]).unwrap();
            for row in (0..phases[2].len()).rev() {
                head.retract(&phases[2].select(&[row]), EXACT).unwrap();
            }
            assert!(head == before, "{variant}");
        }
    }
}

#[test]
fn a_lesson_in_the_midst_leaves_no_trace() {
    let phases = phases(&train());
    let sums = every_variant().into_iter().filter(|it| !is_probed(*it) && !it.flip);
    for variant in sums {
        let mut head = learned(variant, &small(), &phases);
        head.retract(&phases[1], EXACT).unwrap();
        let never = learned(variant, &small(), &[phases[0].clone(), phases[2].clone()]);
        assert!(head == never, "{variant}");
        // half of a class
        let some = half(&phases[0], 0);
        head.retract(&some, EXACT).unwrap();
        let never = learned(variant, &small(), &[half(&phases[0], 1), phases[2].clone()]);
        assert!(head == never, "{variant}");
    }
}

#[test]
fn a_head_that_gave_everything_back_is_new() {
    let train = train();
    for variant in every_variant() {
        let mut head = learned(variant, &small(), &phases(&train));
        head.retract(&train, EXACT).unwrap();
        assert!(head == Head::new(variant, small()).unwrap(), "{variant}");
    }
}

#[track_caller]
fn assert_refused(head: &Head, samples: &Samples, how: Retraction, expected: fn(&Error) -> bool) {
    let mut changed = head.clone();
    let error = changed.retract(samples, how).unwrap_err();
    assert!(expected(&error), "{error:?}");
    assert!(changed == *head, "{error}");
}

#[test]
fn more_than_was_given_is_refused() {
    let train = train();
    let twice: Vec<usize> = (0..train.len()).flat_map(|row| [row, row]).collect();
    for settings in both() {
        for variant in every_variant() {
            let head = learned(variant, &settings, &phases(&train));
            let count = |error: &Error| matches!(error, Error::NotGiven { class, reason: NotGiven::Count { kept: 6, taken: 12 } } if class == "class 0");
            assert_refused(&head, &train.select(&twice), EXACT, count);
        }
    }
}

#[test]
fn other_samples_than_were_given_are_refused_where_that_shows() {
    let train = train();
    let others = blobs(8, crate::data::CLASSES, unequal);
    let sums =
        |error: &Error| matches!(error, Error::NotGiven { reason: NotGiven::Sums { .. }, .. });
    for settings in both() {
        for variant in every_variant() {
            let head = learned(variant, &settings, &phases(&train));
            // as many as the class has, but not its own
            assert_refused(&head, &others.of_classes(|label| label == 7), DROPPING, sums);
            assert_refused(&head, &others, DROPPING, sums);
            let unknown = |error: &Error| matches!(error, Error::UnknownClass { class } if class == "class 8");
            let some = learned(variant, &settings, &phases(&train)[..2]);
            assert_refused(
                &some,
                &train.of_classes(|label| label == 1 || label == 8),
                EXACT,
                unknown,
            );
        }
    }
    // one of many, far from all of them
    let points =
        |value: f32| Matrix::new(4, 2, vec![1.0, 1.1, value, 1.2, 1.0, 1.3, 1.1, 1.0]).unwrap();
    let near = Samples::single("near", points(1.2), vec![0; 4], 1).unwrap();
    let far = Samples::single("far", points(4.0), vec![0; 4], 1).unwrap();
    for name in ["iVoro", "iVoro-W", "iVoro-Q"] {
        let head = learned(variant(name), &small(), std::slice::from_ref(&near));
        assert_refused(&head, &far.select(&[1]), EXACT, sums);
    }
}

#[test]
fn features_of_another_engine_are_taken_only_on_request() {
    let mut points = phase(&train(), 2);
    let digits = |value: &mut f32| *value += *value * 1e-6;
    let (labels, classes) = (points.labels().to_vec(), points.classes().clone());
    let blocks = points.layers().len() * points.views().len();
    let moved = (0..blocks).map(|at| {
        let (layer, view) = (at / points.views().len(), at % points.views().len());
        let mut block = points.block(layer, points.views()[view]).unwrap().clone();
        block.as_mut_slice().iter_mut().for_each(digits);
        block
    });
    let moved = ivoro::Points::new(
        "moved",
        points.layers().to_vec(),
        points.views().to_vec(),
        moved.collect(),
    );
    points = Samples::new(moved.unwrap(), labels, classes).unwrap();
    for name in ["iVoro", "iVoro-NW", "iVoro-Q", "iVoro-NKWAIL"] {
        let before = learned(variant(name), &small(), &phases(&train())[..2]);
        let mut head = before.clone();
        head.learn(&phase(&train(), 2)).unwrap();
        let sums = |error: &Error| {
            matches!(error, Error::NotGiven { reason: NotGiven::Sums { left: 0 }, .. })
        };
        assert_refused(&head, &points, EXACT, sums);
        head.retract(&points, Retraction { inexact: true, ..EXACT }).unwrap();
        assert_eq!(head.classes(), before.classes(), "{name}");
        assert_eq!(
            head.predict(&queries()).unwrap(),
            before.predict(&queries()).unwrap(),
            "{name}"
        );
        // all but one of a class, which a trace of last digits alone would make impossible
        let others: Vec<usize> = (1..points.len()).collect();
        let mut head = before.clone();
        head.learn(&phase(&train(), 2)).unwrap();
        head.retract(&points.select(&others), Retraction { inexact: true, ..EXACT }).unwrap();
        assert_eq!(head.phases(), [4, 2, 1], "{name}");
        head.predict(&queries()).unwrap();
    }
}

#[test]
fn a_name_is_all_that_a_new_name_changes() {
    for variant in every_variant() {
        let head = learned(variant, &small(), &phases(&train()));
        let mut renamed = head.clone();
        renamed.rename("class 5", "five").unwrap();
        assert!(renamed != head);
        for (new, old) in renamed.classes().iter().zip(head.classes()) {
            assert_eq!(new.statistics, old.statistics);
            assert_eq!(new.name == old.name, old.name != "class 5");
        }
        assert_eq!(renamed.distances(&queries()).unwrap(), head.distances(&queries()).unwrap());
        let mut taken = renamed.clone();
        let refused = taken.rename("five", "class 1");
        assert!(matches!(refused, Err(Error::NameTaken { class }) if class == "class 1"));
        assert!(matches!(taken.rename("five", ""), Err(Error::Setting { .. })));
        assert!(matches!(taken.rename("class 5", "six"), Err(Error::UnknownClass { .. })));
        assert!(taken == renamed);
        renamed.rename("five", "class 5").unwrap();
        assert!(renamed == head, "{variant}");
    }
}

/// The training samples with the labels that `to` gives.
fn relabelled(samples: &Samples, to: impl Fn(u32) -> u32) -> Samples {
    let to: Vec<u32> = (0..crate::data::CLASSES).map(to).collect();
    samples.relabel(&to, samples.classes().clone()).unwrap()
}

#[test]
fn classes_that_are_joined_were_learned_as_one() {
    let phases = phases(&train());
    for settings in both() {
        for variant in every_variant() {
            let mut head = learned(variant, &settings, &phases);
            head.predict(&queries()).unwrap();
            let before = head.clone();
            // the first from its own phase, the other from a later one
            for (class, into) in [(1, 0), (7, 0)] {
                let refused = head.join(
                    &format!("class {class}"),
                    &format!("class {into}"),
                    Forgetting::Exact,
                );
                assert_eq!(refused.is_err(), is_probed(variant), "{variant}");
            }
            if is_probed(variant) {
                assert!(head == before, "{variant}");
                continue;
            }
            let one = |samples: &Samples| {
                relabelled(samples, |l| if [1, 7].contains(&l) { 0 } else { l })
            };
            let mut joined = learned(variant, &settings, &[one(&phases[0]), one(&phases[1])]);
            let last = one(&phases[2]);
            joined.update(&last.of_classes(|label| label == 0)).unwrap();
            joined.learn(&last.of_classes(|label| label != 0)).unwrap();
            assert!(head == joined, "{variant}");
            assert_eq!(head.predict(&queries()).unwrap(), joined.predict(&queries()).unwrap());
        }
    }
}

#[test]
fn joining_refuses_what_makes_no_sense() {
    let mut head = learned(variant("iVoro-NW"), &small(), &phases(&train()));
    let before = head.clone();
    let same = head.join("class 1", "class 1", Forgetting::Exact);
    assert!(matches!(same, Err(Error::NameTaken { .. })));
    for (class, into) in [("class 1", "yak"), ("yak", "class 1")] {
        let unknown = head.join(class, into, Forgetting::Exact);
        assert!(matches!(unknown, Err(Error::UnknownClass { class }) if class == "yak"));
    }
    assert!(head == before);
    let mut probed = learned(variant("iVoro-NDR"), &small(), &phases(&train()));
    probed.join("class 4", "class 1", Forgetting::DropProbes).unwrap();
    assert_eq!(probed.phases(), [4, 1, 3]);
    probed.predict(&queries()).unwrap();
}

#[test]
fn samples_with_a_wrong_label_get_the_right_one() {
    let phases = phases(&train());
    for settings in both() {
        for variant in every_variant().into_iter().filter(|it| !is_probed(*it)) {
            // every other sample of class 2 was of class 4
            let mistaken = phases[0].of_classes(|label| label == 2);
            let mistaken = half(&mistaken, 0);
            let mut head = learned(variant, &settings, &phases);
            let retracted = head.relabel(&mistaken, "class 4", EXACT).unwrap();
            assert_eq!(retracted.samples, [("class 2".to_owned(), 5)]);
            let mut right = learned(variant, &settings, &phases);
            right.retract(&mistaken, EXACT).unwrap();
            right.update(&relabelled(&mistaken, |_| 4)).unwrap();
            assert!(head == right, "{variant}");
            // back again
            head.relabel(&relabelled(&mistaken, |_| 4), "class 2", EXACT).unwrap();
            assert!(head == learned(variant, &settings, &phases), "{variant}");
        }
    }
}

#[test]
fn samples_can_get_a_class_of_their_own() {
    let phases = phases(&train());
    for variant in every_variant().into_iter().filter(|it| !is_probed(*it)) {
        let mut head = learned(variant, &small(), &phases[..2]);
        let all = phases[1].of_classes(|label| label == 5);
        let retracted = head.relabel(&all, "yak", EXACT).unwrap();
        assert_eq!(retracted.emptied, ["class 5"]);
        assert_eq!(head.phases(), [4, 1, 1]);
        assert_eq!(head.classes()[5].name, "yak");
        let whole = learned(variant, &small(), &phases[..2]);
        assert_eq!(head.classes()[5].statistics, whole.classes()[5].statistics, "{variant}");
        // what was not given can't be relabelled
        let before = head.clone();
        assert!(matches!(head.relabel(&all, "gnu", EXACT), Err(Error::UnknownClass { .. })));
        assert!(head == before, "{variant}");
    }
}
