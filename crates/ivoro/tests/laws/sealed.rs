//! Few directions per class, and classes that keep nothing else.

use std::path::Path;

use ivoro::codec::{decode, decode_predictor, encode};
use ivoro::error::MergeRefusal;
use ivoro::head::Head;
use ivoro::head::{Forgetting, Rank, Settings};
use ivoro::{AskOptions, Error, Model, ModelOptions, Samples, SealOptions};

use crate::data::{learned, phases, queries, small, train, variant};

const VARIANTS: [&str; 4] = ["iVoro-Q", "iVoro-NQ", "iVoro-QAC", "iVoro-NFQAIL"];

fn few(rank: usize) -> Settings {
    Settings { rank: Rank::Directions(rank), ..small() }
}

fn sealed(mut head: Head, bits: u8) -> Head {
    head.seal(None, SealOptions { rank: None, bits: Some(bits) }).unwrap();
    head
}

fn apart(a: &Head, b: &Head, queries: &Samples) -> f64 {
    let (a, b) = (a.measure(queries, true).unwrap(), b.measure(queries, true).unwrap());
    let pairs = a.as_slice().iter().zip(b.as_slice());
    pairs.map(|(a, b)| f64::from((a - b).abs() / b.abs().max(1.0))).fold(0.0, f64::max)
}

#[test]
fn all_directions_measure_as_a_whole_matrix_does() {
    let (phases, queries) = (phases(&train()), queries());
    for name in VARIANTS {
        let whole = Settings { rank: Rank::Full, ..small() };
        let whole = learned(variant(name), &whole, &phases);
        let all = learned(variant(name), &few(64), &phases);
        assert!(apart(&all, &whole, &queries) < 1e-3, "{name}");
    }
}

#[test]
fn more_directions_come_nearer_to_a_whole_matrix() {
    let (phases, queries) = (phases(&train()), queries());
    let settings = |rank| Settings { rank, prior: 5.0, ..small() };
    let whole = learned(variant("iVoro-Q"), &settings(Rank::Full), &phases);
    let total = |rank| {
        let head = learned(variant("iVoro-Q"), &settings(Rank::Directions(rank)), &phases);
        let (a, b) =
            (head.measure(&queries, true).unwrap(), whole.measure(&queries, true).unwrap());
        let pairs = a.as_slice().iter().zip(b.as_slice());
        pairs.map(|(a, b)| f64::from((a - b).abs())).sum::<f64>()
    };
    let errors: Vec<f64> = [3, 5, 7].into_iter().map(total).collect();
    assert!(errors.is_sorted_by(|a, b| a > b), "{errors:?}");
}

#[test]
fn an_answer_does_not_depend_on_what_is_asked_beside_it() {
    let (phases, queries) = (phases(&train()), queries());
    for name in VARIANTS {
        let head = learned(variant(name), &few(3), &phases);
        let together = head.measure(&queries, true).unwrap();
        for row in 0..queries.len() {
            let alone = head.measure(&queries.points().select(&[row]), true).unwrap();
            assert_eq!(alone.row(0), together.row(row), "{name}");
        }
        // so many that they are several tasks, the last one with fewer
        let many: Vec<usize> = (0..250).map(|at| at * 7 % queries.len()).collect();
        let found = head.measure(&queries.points().select(&many), true).unwrap();
        assert_eq!(found, together.select(&many), "{name}");
    }
}

#[test]
fn sealing_changes_answers_by_little() {
    let (phases, queries) = (phases(&train()), queries());
    for name in VARIANTS {
        for rank in [2, 4] {
            let open = learned(variant(name), &few(rank), &phases);
            for (bits, bound) in [(8, 0.05), (16, 2e-4)] {
                let sealed = sealed(open.clone(), bits);
                let found = apart(&sealed, &open, &queries);
                assert!(found < bound, "{name} rank {rank}, {bits} bits: {found}");
                assert!(sealed.bytes() < open.bytes());
            }
        }
    }
}

#[test]
fn a_sealed_model_comes_back_from_its_file() {
    let (train, queries) = (train(), queries());
    for name in VARIANTS {
        for classes in [None, Some(["class 1".to_owned(), "class 7".to_owned()])] {
            let options = ModelOptions { settings: few(3), ..ModelOptions::default() };
            let mut model = Model::new(variant(name), options);
            phases(&train).iter().for_each(|phase| model.learn(phase).unwrap());
            let classes = classes.as_ref().map(|classes| &classes[..]);
            let sealing = model.seal(classes, SealOptions::default()).unwrap();
            assert_eq!(sealing.classes.len(), classes.map_or(9, <[String]>::len));
            let file = encode(&model).unwrap();
            let loaded = decode(Path::new("m.ivoro"), &file).unwrap();
            assert!(loaded.head() == model.head(), "{name}");
            assert_eq!(encode(&loaded).unwrap(), file, "{name}");
            let expected = model.ask(&queries, AskOptions::default()).unwrap();
            assert_eq!(loaded.ask(&queries, AskOptions::default()).unwrap(), expected);
            let predictor = decode_predictor(Path::new("m.ivoro"), &file).unwrap();
            assert_eq!(predictor.ask(&queries, AskOptions::default()).unwrap(), expected);
        }
    }
}

/// Sites that start from one sealed model go on in its metric.
fn site(base: &Head, phase: &Samples) -> Head {
    let mut site = base.emptied();
    site.learn(phase).unwrap();
    site
}

#[test]
fn sealed_classes_are_forgotten_and_merged_exactly() {
    let phases = phases(&train());
    for name in VARIANTS {
        let base = sealed(learned(variant(name), &few(3), &phases[..1]), 8);
        // open classes in the sealed metric, and sealed ones
        for seals in [false, true] {
            let made = |phase: &Samples| {
                let site = site(&base, phase);
                if seals { sealed(site, 8) } else { site }
            };
            let mut merged = base.clone();
            for phase in &phases[1..] {
                merged.merge(&made(phase), None).unwrap();
            }
            let mut joint = base.clone();
            phases[1..].iter().for_each(|phase| joint.learn(phase).unwrap());
            let joint = if seals { sealed(joint, 8) } else { joint };
            assert!(merged == joint, "{name}");
            for class in ["class 1", "class 4", "class 8"] {
                merged.predict(&queries()).unwrap();
                merged.forget(class, Forgetting::Exact).unwrap();
            }
            let left = |classes: &[&str]| {
                let mut head = joint.clone();
                classes.iter().for_each(|class| head.forget(class, Forgetting::Exact).unwrap());
                head
            };
            assert!(merged == left(&["class 8", "class 1", "class 4"]), "{name}");
            let (kept, all) = (merged.measure(&queries(), true).unwrap(), joint.clone());
            let all = all.measure(&queries(), true).unwrap();
            assert_eq!(kept.cols() + 3, all.cols());
        }
    }
}

#[test]
fn what_needs_sums_is_refused_and_changes_nothing() {
    let phases = phases(&train());
    let open = learned(variant("iVoro-Q"), &few(3), &phases);
    let mut head = open.clone();
    let one = ["class 2".to_owned()];
    head.seal(Some(&one), SealOptions::default()).unwrap();
    assert!(head.classes()[2].is_sealed() && !head.classes()[0].is_sealed());
    let before = head.clone();
    assert!(matches!(head.update(&phases[0]), Err(Error::Sealed { class }) if class == "class 2"));
    let again = head.seal(Some(&one), SealOptions::default());
    assert!(matches!(again, Err(Error::Sealed { .. })));
    let other_bits = SealOptions { bits: Some(16), ..SealOptions::default() };
    assert!(matches!(head.seal(None, other_bits), Err(Error::Unsupported { .. })));
    let odd_bits = SealOptions { bits: Some(12), ..SealOptions::default() };
    assert!(matches!(open.clone().seal(None, odd_bits), Err(Error::Setting { .. })));
    let nobody = head.seal(Some(&["nobody".to_owned()]), SealOptions::default());
    assert!(matches!(nobody, Err(Error::UnknownClass { .. })));
    let differs = |result| {
        matches!(
            result,
            Err(Error::Merge { reason: MergeRefusal::Differs { what: "the metric", .. } })
        )
    };
    assert!(differs(head.merge(&open, None)) && differs(open.clone().merge(&head, None)));
    // the same class sealed here and open there
    let mut site = head.emptied();
    site.learn(&phases[0].of_classes(|label| label == 2)).unwrap();
    let refused = head.merge(&site, None);
    assert!(matches!(refused, Err(Error::Merge { reason: MergeRefusal::Sealed { .. } })));
    assert!(head == before);
    // open classes go on learning
    head.update(&phases[1]).unwrap();
    head.learn(&phases[0].of_classes(|label| label == 2)).unwrap_err();
    for name in ["iVoro", "iVoro-W"] {
        let mut plain = learned(variant(name), &small(), &phases);
        let refused = plain.seal(None, SealOptions::default());
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{name}");
    }
    let mut whole = learned(variant("iVoro-Q"), &Settings { rank: Rank::Full, ..small() }, &phases);
    assert!(matches!(whole.seal(None, SealOptions::default()), Err(Error::Unsupported { .. })));
    whole.seal(None, SealOptions { rank: Some(3), bits: None }).unwrap();
    assert_eq!(whole.settings().rank, Rank::Directions(3));
}

#[test]
fn a_model_that_forgot_its_sealed_classes_is_new() {
    let mut head = sealed(learned(variant("iVoro-Q"), &few(3), &phases(&train())), 8);
    for class in 0..9 {
        head.forget(&format!("class {class}"), Forgetting::Exact).unwrap();
    }
    assert!(head == Head::new(variant("iVoro-Q"), few(3)).unwrap());
}
