use std::path::Path;

use ivoro::codec::{decode, encode};
use ivoro::error::NotGiven;
use ivoro::head::{Forgetting, Settings};
use ivoro::journal::Verb;
use ivoro::{Error, Model, ModelOptions, Retraction, Samples, SealOptions};

use crate::data::{PHASES, half, phase, queries, small, train, variant};

fn model(name: &str) -> Model {
    Model::new(variant(name), ModelOptions { settings: small(), ..ModelOptions::default() })
}

fn saved_and_loaded(model: &Model) -> Model {
    decode(Path::new("model.ivoro"), &encode(model).unwrap()).unwrap()
}

/// Time, verb, samples and classes of every entry.
fn entries(model: &Model) -> Vec<(u64, Verb, u64, String)> {
    let entries = model.journal().entries();
    entries.map(|it| (it.when, it.verb, it.samples, it.classes.join(","))).collect()
}

#[test]
fn a_journal_says_what_was_done() {
    let train = train();
    let mut model = model("iVoro-N");
    model.set_time(10);
    model.learn(&phase(&train, 0)).unwrap();
    let more = half(&phase(&train, 0), 0).of_classes(|label| label < 2);
    model.set_time(20);
    model.update(&more).unwrap();
    model.set_time(30);
    model.retract(&more, Retraction::default()).unwrap();
    model.rename("class 3", "yak").unwrap();
    model.forget("yak", Forgetting::Exact).unwrap();
    model.join("class 2", "class 0", Forgetting::Exact).unwrap();
    let expected = [
        (10, Verb::Learn, 33, "class 0,class 1,class 2,class 3"),
        (20, Verb::Update, more.len() as u64, "class 0,class 1"),
        (30, Verb::Retract, more.len() as u64, "class 0,class 1"),
        (30, Verb::Rename, 0, "class 3"),
        (30, Verb::Forget, 7, "yak"),
        (30, Verb::Relabel, 9, "class 2"),
    ]
    .map(|(when, verb, samples, classes)| (when, verb, samples, classes.to_owned()));
    assert_eq!(entries(&model), expected);
    let known: Vec<usize> = model.journal().entries().map(|entry| entry.known).collect();
    assert_eq!(known, [4, 4, 4, 4, 3, 2]);
    let lessons: Vec<_> = model.journal().entries().map(|entry| entry.lesson.clone()).collect();
    assert!(lessons[1].is_some() && lessons[1] == lessons[2] && lessons[0] != lessons[1]);
    assert_eq!(saved_and_loaded(&model).journal(), model.journal());
}

#[test]
fn a_mistake_is_not_entered_and_without_the_time_nothing_is() {
    let train = train();
    let mut model = model("iVoro-W");
    model.learn(&phase(&train, 0)).unwrap();
    assert!(model.journal().is_empty());
    model.set_time(5);
    model.learn(&phase(&train, 0)).unwrap_err();
    model.retract(&phase(&train, 1), Retraction::default()).unwrap_err();
    model.forget("class 1", Forgetting::Exact).unwrap_err();
    model.rename("class 1", "class 2").unwrap_err();
    assert!(model.journal().is_empty());
}

#[test]
fn journals_are_joined_when_models_are_merged() {
    let train = train();
    let mut base = model("iVoro");
    base.set_time(1);
    base.learn(&phase(&train, 0)).unwrap();
    let (mut left, mut right) = (base.clone(), base.clone());
    left.set_time(3);
    left.learn(&phase(&train, 1)).unwrap();
    right.set_time(2);
    right.learn(&phase(&train, 2)).unwrap();
    left.set_time(4);
    left.merge(&right, Some(&base)).unwrap();
    let verbs: Vec<(u64, Verb)> = left.journal().entries().map(|it| (it.when, it.verb)).collect();
    assert_eq!(verbs, [(1, Verb::Learn), (2, Verb::Learn), (3, Verb::Learn), (4, Verb::Merge)]);
    let last = left.journal().entries().last().unwrap();
    assert_eq!((last.samples, last.known), (phase(&train, 2).len() as u64, 9));
    // the head is what it would be without
    assert!(left.head() == saved_and_loaded(&left).head());
}

fn timed(name: &str) -> Model {
    let mut model = model(name);
    model.set_time(1);
    model
}

#[test]
fn features_of_a_network_are_taken_back_only_where_they_are_known_to_be_the_same() {
    let train = train();
    let (first, more) = (phase(&train, 0), half(&phase(&train, 0), 0));
    let networks = |error: &Error| matches!(error, Error::OtherFeatures { networks: true });
    for name in ["iVoro", "iVoro-NW"] {
        for journal in [true, false] {
            let mut model = if journal { timed(name) } else { model(name) };
            model.use_network("a network").unwrap();
            model.learn(&first).unwrap();
            let before = model.head().clone();
            model.update(&more).unwrap();
            // some of a lesson: another batch, and other last digits for all that is known
            let some = more.select(&[0, 1, 2]);
            assert!(networks(&model.retract(&some, Retraction::default()).unwrap_err()));
            // the whole lesson again, with the very same sums
            let whole = model.retract(&more, Retraction::default());
            assert_eq!(whole.is_ok(), journal, "{whole:?}");
            if journal {
                assert!(*model.head() == before);
            } else {
                assert!(networks(&whole.unwrap_err()));
                let inexact = Retraction { inexact: true, ..Retraction::default() };
                model.retract(&more, inexact).unwrap();
                assert!(*model.head() == before, "here they were the same");
            }
            // all that there is of a class leaves nothing behind, which proves it
            let class = first.of_classes(|label| label == 2);
            model.retract(&class, Retraction::default()).unwrap();
        }
    }
}

#[test]
fn features_that_were_kept_are_taken_back_from_any_lesson() {
    let train = train();
    let (first, more) = (phase(&train, 0), half(&phase(&train, 0), 0));
    let kept = Retraction { kept: true, ..Retraction::default() };
    for name in ["iVoro", "iVoro-NW", "iVoro-Q"] {
        let mut model = timed(name);
        model.use_network("a network").unwrap();
        model.learn(&first).unwrap();
        let before = model.head().clone();
        model.update(&more).unwrap();
        // one by one, in another order than they came
        for row in (0..more.len()).rev() {
            model.retract(&more.select(&[row]), kept).unwrap();
        }
        assert!(*model.head() == before);
        if name == "iVoro-NW" {
            // where N computed points, the machine still counts
            let refused = from_elsewhere(&model).retract(&first.select(&[0, 1]), kept);
            assert!(
                matches!(refused, Err(Error::OtherFeatures { networks: false })),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn a_network_may_not_compute_again_what_came_as_features() {
    let train = train();
    let mut model = model("iVoro");
    model.learn(&phase(&train, 0)).unwrap();
    let some = half(&phase(&train, 0), 0);
    let again = Retraction { recomputed: true, ..Retraction::default() };
    let refused = model.retract(&some, again);
    assert!(matches!(refused, Err(Error::OtherFeatures { networks: true })));
    model.retract(&some, Retraction::default()).unwrap();
}

/// A model file of before machines were written down, or one that came from elsewhere.
fn from_elsewhere(model: &Model) -> Model {
    let bytes = encode(model).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let metadata = header["__metadata__"].as_object_mut().unwrap();
    let mut description: serde_json::Value =
        serde_json::from_str(metadata["model"].as_str().unwrap()).unwrap();
    description.as_object_mut().unwrap().remove("machines").unwrap();
    let text = serde_json::to_string(&description).unwrap();
    let mut hasher = blake3::Hasher::new();
    hasher.update(text.as_bytes());
    let data = &bytes[8 + length..];
    let mut names: Vec<String> =
        header.as_object().unwrap().keys().filter(|key| *key != "__metadata__").cloned().collect();
    names.sort();
    for name in names {
        let at = |place: usize| header[&name]["data_offsets"][place].as_u64().unwrap() as usize;
        let tensor = &data[at(0)..at(1)];
        hasher.update(name.as_bytes()).update(&(tensor.len() as u64).to_le_bytes());
        hasher.update(tensor);
    }
    let metadata = header["__metadata__"].as_object_mut().unwrap();
    metadata.insert("checksum".into(), hasher.finalize().to_hex().to_string().into());
    metadata.insert("model".into(), text.into());
    let mut text = serde_json::to_vec(&header).unwrap();
    text.resize(text.len().next_multiple_of(8), b' ');
    let bytes = [&(text.len() as u64).to_le_bytes()[..], &text, data].concat();
    decode(Path::new("elsewhere.ivoro"), &bytes).unwrap()
}

#[test]
fn where_n_and_k_were_computed_is_known() {
    let (first, some) = (phase(&train(), 0), half(&phase(&train(), 0), 0));
    let retracted = |mut model: Model, samples: &Samples| {
        model.retract(samples, Retraction::default()).map(|_| model)
    };
    for name in ["iVoro-N", "iVoro-NKW", "iVoro-KW"] {
        let mut here = model(name);
        here.learn(&first).unwrap();
        retracted(saved_and_loaded(&here), &some).unwrap();
        let elsewhere = from_elsewhere(&here);
        let refused = retracted(elsewhere.clone(), &some);
        assert!(matches!(refused, Err(Error::OtherFeatures { networks: false })), "{name}");
        let mut later = elsewhere;
        later.update(&some).unwrap();
        let refused = retracted(saved_and_loaded(&later), &some);
        assert!(
            matches!(refused, Err(Error::OtherFeatures { .. })),
            "{name}: partly from elsewhere"
        );
    }
    // plain features are the same everywhere
    let settings = Settings {
        transform: ivoro::transform::Transform::new(0.5, 60.0, 0.0).unwrap(),
        ..small()
    };
    let mut plain =
        Model::new(variant("iVoro-FW"), ModelOptions { settings, ..ModelOptions::default() });
    plain.learn(&first).unwrap();
    assert!(!String::from_utf8_lossy(&encode(&plain).unwrap()).contains("machines"));
    retracted(saved_and_loaded(&plain), &some).unwrap();
}

#[test]
fn a_name_can_be_struck_from_the_journal() {
    let mut model = timed("iVoro");
    model.learn(&phase(&train(), 0)).unwrap();
    model.forget("class 1", Forgetting::Exact).unwrap();
    model.strike_from_journal("class 1");
    assert!(!String::from_utf8_lossy(&encode(&model).unwrap()).contains("class 1"));
    assert_eq!(model.journal().entries().count(), 2);
}

/// The journal knows a lesson by its sums: taken back as often as it was given, it is refused.
#[test]
fn a_lesson_is_taken_back_as_often_as_it_was_given() {
    let train = train();
    let first = phase(&train, 0);
    let more = half(&first, 0);
    let mut model = timed("iVoro");
    model.learn(&first).unwrap();
    model.update(&more).unwrap();
    model.retract(&more, Retraction::default()).unwrap();
    let before = model.head().clone();
    let again = model.retract(&more, Retraction::default()).unwrap_err();
    assert!(matches!(again, Error::NotGiven { reason: NotGiven::Again, .. }), "{again}");
    assert!(*model.head() == before);
    // given twice more, it can be taken twice more
    (0..2).for_each(|_| drop(model.update(&more).unwrap()));
    (0..2).for_each(|_| drop(model.retract(&more, Retraction::default()).unwrap()));
    assert!(*model.head() == before);
    assert!(model.retract(&more, Retraction::default()).is_err());
}

/// New and known classes taught together are one lesson, known again as a whole.
#[test]
fn a_lesson_of_new_and_known_classes_is_one_entry() {
    let train = train();
    let mut model = timed("iVoro");
    model.use_network("a network").unwrap();
    model.learn(&phase(&train, 0)).unwrap();
    let before = model.head().clone();
    let mixed = half(&train, 0)
        .of_classes(|label| PHASES[0].contains(&label) || PHASES[1].contains(&label));
    model.teach(&mixed).unwrap();
    assert_eq!(model.journal().entries().count(), 2);
    model.retract(&mixed, Retraction::default()).unwrap();
    assert!(*model.head() == before);
}

#[test]
fn what_changes_no_sum_is_entered_too() {
    let train = train();
    let mut model = Model::new(variant("iVoro-Q"), ModelOptions::default());
    model.set_time(5);
    model.learn(&phase(&train, 0)).unwrap();
    model.calibrate(&phase(&queries(), 0)).unwrap();
    model.seal(None, SealOptions::default()).unwrap();
    let verbs: Vec<Verb> = model.journal().entries().map(|entry| entry.verb).collect();
    assert_eq!(verbs, [Verb::Learn, Verb::Calibrate, Verb::Seal]);
}
