use std::path::Path;

use ivoro::codec::{decode, decode_receipt, encode, encode_receipt};
use ivoro::error::ReceiptRefusal;
use ivoro::head::{Forgetting, ScatterKept, Settings};
use ivoro::{Error, Model, ModelOptions, Receipt, Retraction, Samples, Variant};

use crate::data::{every_variant, half, learned, phase, phases, queries, small, train, variant};

const DROPPING: Retraction =
    Retraction { probes: Forgetting::DropProbes, inexact: false, recomputed: false, kept: false };

fn exact() -> Retraction {
    Retraction::default()
}

fn both() -> [Settings; 2] {
    [ScatterKept::Pooled, ScatterKept::PerClass].map(|scatter| Settings { scatter, ..small() })
}

/// A model with the settings as they are: nothing is chosen.
fn model(variant: Variant, settings: &Settings, phases: &[Samples]) -> Model {
    let mut model =
        Model::new(variant, ModelOptions { settings: settings.clone(), ..ModelOptions::default() });
    // too few samples of each class to choose anything on
    if let Some(first) = phases.first() {
        model.learn(&few(first)).unwrap();
        model.update(&rest(first)).unwrap();
    }
    phases[1.min(phases.len())..].iter().for_each(|phase| model.learn(phase).unwrap());
    model
}

/// The first sample of every class.
fn few(samples: &Samples) -> Samples {
    samples.select(&split(samples).0)
}

fn rest(samples: &Samples) -> Samples {
    samples.select(&split(samples).1)
}

fn split(samples: &Samples) -> (Vec<usize>, Vec<usize>) {
    let labels = samples.labels();
    (0..labels.len()).partition(|&row| !labels[..row].contains(&labels[row]))
}

/// As if it had been sent by mail.
fn sent(receipt: &Receipt) -> Receipt {
    let bytes = encode_receipt(receipt).unwrap();
    decode_receipt(Path::new("lesson.receipt"), &bytes).unwrap()
}

#[test]
fn a_receipt_takes_a_lesson_back() {
    let phases = phases(&train());
    for settings in both() {
        for variant in every_variant().into_iter().filter(|it| !it.third) {
            let before = model(variant, &settings, &phases[..2]);
            let mut taught = before.clone();
            let receipt = taught.learn_with_receipt(&phases[2]).unwrap();
            assert_eq!(receipt.samples(), phases[2].len() as u64);
            assert!(taught.head() == model(variant, &settings, &phases).head(), "{variant}");
            taught.head().predict(&queries()).unwrap();
            let retracted = taught.retract_receipt(&sent(&receipt), exact()).unwrap();
            assert_eq!(retracted.emptied.len(), 3);
            assert!(taught.head() == before.head(), "{variant}");
        }
    }
}

#[test]
fn a_receipt_of_added_samples_leaves_probes_alone() {
    let phases = phases(&train());
    let more = half(&phases[1], 0);
    for settings in both() {
        for variant in every_variant().into_iter().filter(|it| !it.third) {
            let before = model(variant, &settings, &phases);
            let mut updated = before.clone();
            let receipt = updated.update_with_receipt(&more).unwrap();
            assert!(updated.head() != before.head());
            updated.retract_receipt(&sent(&receipt), exact()).unwrap();
            assert!(updated.head() == before.head(), "{variant}");
            // both at once: new classes and known ones
            let mut taught = model(variant, &settings, &phases[..2]);
            let before = taught.clone();
            let lesson = train().of_classes(|label| label == 1 || label == 7);
            let receipt = taught.teach_with_receipt(&lesson).unwrap();
            taught.retract_receipt(&sent(&receipt), exact()).unwrap();
            assert!(taught.head() == before.head(), "{variant}");
        }
    }
}

#[test]
fn a_class_is_forgotten_with_the_receipts_of_its_samples() {
    let phases = phases(&train());
    let (first, second) = (half(&phases[2], 0), half(&phases[2], 1));
    for settings in both() {
        for name in ["iVoro", "iVoro-W", "iVoro-NKW", "iVoro-NWAIL", "iVoro-NFW", "iVoro-NQ"] {
            let mut taught = model(variant(name), &settings, &phases[..2]);
            let receipts = [
                taught.learn_with_receipt(&first).unwrap(),
                taught.update_with_receipt(&second).unwrap(),
            ];
            let all = taught.clone();
            let refused = taught.forget_with_receipts("class 7", &receipts[..1], exact());
            let Err(Error::Receipt { reason: ReceiptRefusal::Incomplete { left, all: count, .. } }) =
                refused
            else {
                panic!("{refused:?}")
            };
            assert!(left > 0 && left < count);
            assert!(taught.head() == all.head());
            taught.forget_with_receipts("class 7", &receipts, exact()).unwrap();
            let mut never = model(variant(name), &settings, &phases[..2]);
            let without = phases[2].of_classes(|label| label != 7);
            never.learn(&without).unwrap();
            assert!(taught.head() == never.head(), "{name}");
        }
    }
}

#[test]
fn a_receipt_is_used_once() {
    let phases = phases(&train());
    for name in ["iVoro", "iVoro-NW", "iVoro-Q"] {
        let mut taught = model(variant(name), &small(), &phases);
        let lesson = half(&phases[0], 0);
        // the same sums would still fit in: more samples like these came with another lesson
        let receipt = taught.update_with_receipt(&lesson).unwrap();
        taught.update(&lesson).unwrap();
        let mut timed = taught.clone();
        timed.set_time(1);
        timed.retract_receipt(&receipt, exact()).unwrap();
        let once = timed.clone();
        let again = timed.retract_receipt(&receipt, exact());
        assert!(
            matches!(again, Err(Error::Receipt { reason: ReceiptRefusal::Used })),
            "{name}: {again:?}"
        );
        assert!(timed.head() == once.head());
        // without a journal: taken more often than given
        let mut count = 0;
        while taught.retract_receipt(&receipt, exact()).is_ok() {
            count += 1;
            assert!(count < 9);
        }
        let Err(Error::NotGiven { .. }) = taught.retract_receipt(&receipt, exact()) else {
            panic!()
        };
    }
}

#[test]
fn a_receipt_of_another_kind_of_model_is_refused() {
    let phases = phases(&train());
    let receipt = |name: &str, settings: &Settings| {
        model(variant(name), settings, &phases[..2]).learn_with_receipt(&phases[2]).unwrap()
    };
    let other = Settings { lift: 21, ..small() };
    for (name, settings) in [("iVoro-W", small()), ("iVoro-NKW", other)] {
        let mut taught = model(variant("iVoro-NKW"), &small(), &phases);
        let before = taught.clone();
        let refused = taught.retract_receipt(&receipt(name, &settings), exact());
        assert!(
            matches!(refused, Err(Error::Receipt { reason: ReceiptRefusal::Differs { .. } })),
            "{refused:?}"
        );
        assert!(taught.head() == before.head());
    }
    // how the scatter is kept changes no sum
    let mut taught =
        model(variant("iVoro-W"), &Settings { ridge: 3.0, ..both()[0].clone() }, &phases);
    taught.retract_receipt(&receipt("iVoro-W", &both()[1]), exact()).unwrap();
    let mut networks = model(variant("iVoro"), &small(), &[]);
    networks.use_network("one").unwrap();
    let receipt = networks.learn_with_receipt(&phases[0]).unwrap();
    let mut others = model(variant("iVoro"), &small(), &[]);
    others.use_network("two").unwrap();
    others.learn(&phases[0]).unwrap();
    let refused = others.retract_receipt(&receipt, exact());
    assert!(matches!(refused, Err(Error::OtherNetwork { .. })));
}

#[test]
fn probes_that_saw_the_samples_are_given_up_only_on_request() {
    let phases = phases(&train());
    for name in ["iVoro-D", "iVoro-R", "iVoro-NWDR"] {
        let mut taught = model(variant(name), &small(), &phases[..2]);
        let receipt = taught.learn_with_receipt(&phases[2]).unwrap();
        let one = receipt.of_classes(&["class 7".to_owned()]).unwrap();
        let before = taught.clone();
        let refused = taught.retract_receipt(&one, exact());
        assert!(matches!(refused, Err(Error::RetractInexact { .. })), "{refused:?}");
        assert!(taught.head() == before.head());
        taught.retract_receipt(&one, DROPPING).unwrap();
        assert_eq!(taught.head().phases(), [4, 2, 2]);
        taught.head().predict(&queries()).unwrap();
    }
}

#[test]
fn a_class_that_was_renamed_is_found_by_its_new_name() {
    let phases = phases(&train());
    let mut taught = model(variant("iVoro-NW"), &small(), &phases[..2]);
    let before = taught.clone();
    let mut receipt = taught.learn_with_receipt(&phases[2]).unwrap();
    taught.rename("class 8", "yak").unwrap();
    let unknown = taught.retract_receipt(&receipt, exact());
    assert!(matches!(unknown, Err(Error::UnknownClass { class }) if class == "class 8"));
    receipt.rename("class 8", "yak").unwrap();
    taught.retract_receipt(&receipt, exact()).unwrap();
    assert!(taught.head() == before.head());
}

#[test]
fn a_model_is_no_receipt_and_a_receipt_no_model() {
    let mut taught = model(variant("iVoro-W"), &small(), &[]);
    let receipt = taught.learn_with_receipt(&phase(&train(), 0)).unwrap();
    let (file, model) = (encode_receipt(&receipt).unwrap(), encode(&taught).unwrap());
    let refused =
        [decode(Path::new("a"), &file).map(drop), decode_receipt(Path::new("b"), &model).map(drop)];
    for refused in refused {
        let Err(Error::Malformed { what, .. }) = refused else { panic!("{refused:?}") };
        assert!(what.contains("ivoro-receipt") && what.contains("ivoro-model"), "{what}");
    }
    for at in (0..file.len()).step_by(7) {
        let mut bad = file.clone();
        bad[at] ^= 0x20;
        // what the program is called that wrote it is all that the checksum leaves out
        let read = decode_receipt(Path::new("bad"), &bad);
        assert!(read.is_err() || encode_receipt(&read.unwrap()).unwrap() == file, "{at}");
        assert!(decode_receipt(Path::new("cut"), &file[..at]).is_err());
    }
}

#[test]
fn a_model_has_nothing_of_a_receipt() {
    let phases = phases(&train());
    let mut with = model(variant("iVoro-NW"), &small(), &phases[..2]);
    let mut without = with.clone();
    with.learn_with_receipt(&phases[2]).unwrap();
    without.learn(&phases[2]).unwrap();
    assert_eq!(encode(&with).unwrap(), encode(&without).unwrap());
    assert!(*with.head() == learned(variant("iVoro-NW"), &small(), &phases));
}
