use ivoro::head::Head;
use ivoro::head::{Forgetting, Pairs, Rank, RidgePer, ScatterKept, Settings};
use ivoro::{Error, Samples, Variant};

use crate::data::{every_variant, half, learned, phase, phases, queries, small, train, variant};

#[test]
fn two_sites_merged_are_one_that_learned_both_in_turn() {
    let phases = phases(&train());
    for scatter in [ScatterKept::Pooled, ScatterKept::PerClass] {
        let settings = Settings { scatter, ..small() };
        for variant in every_variant().into_iter().filter(|variant| !variant.flip) {
            let mut merged = learned(variant, &settings, &phases[..1]);
            merged.predict(&queries()).unwrap();
            let report = merged.merge(&learned(variant, &settings, &phases[1..]), None).unwrap();
            assert_eq!((report.added.len(), report.combined.len()), (5, 0));
            assert!(merged == learned(variant, &settings, &phases), "{variant} {scatter}");
        }
    }
}

#[test]
fn a_head_that_knows_nothing_adds_nothing_and_takes_everything() {
    let whole = learned(variant("iVoro-NWDR"), &small(), &phases(&train()));
    let empty = Head::new(variant("iVoro-NWDR"), small()).unwrap();
    let mut merged = whole.clone();
    merged.merge(&empty, None).unwrap();
    assert!(merged == whole);
    let mut merged = empty;
    merged.merge(&whole, None).unwrap();
    assert!(merged == whole);
}

#[test]
fn a_class_that_both_know_counts_the_samples_of_both() {
    let train = train();
    let (left, right) = (half(&train, 0), half(&train, 1));
    for name in
        ["iVoro", "iVoro-N", "iVoro-W", "iVoro-KW", "iVoro-NACL", "iVoro-NWAIL", "iVoro-NFQAIL"]
    {
        let mut merged = learned(variant(name), &small(), &phases(&left));
        let other = learned(variant(name), &small(), &phases(&right));
        let report = merged.merge(&other, None).unwrap();
        assert_eq!((report.added.len(), report.combined.len()), (0, 9));
        let mut updated = learned(variant(name), &small(), &phases(&left));
        updated.update(&right).unwrap();
        assert!(merged == updated, "{name}");
    }
}

/// A common start, and what each of two sites went on with.
struct Fork {
    base: Head,
    left: Head,
    right: Head,
    /// Everything learned at one place.
    joint: Head,
}

fn fork(variant: Variant, settings: &Settings) -> Fork {
    let train = train();
    let base_samples = phase(&train, 0);
    let base = learned(variant, settings, &[half(&half(&base_samples, 0), 0)]);
    let (more_left, more_right) = (half(&half(&base_samples, 0), 1), half(&base_samples, 1));
    let grown = |head: &Head, more: &Samples, new: &Samples| {
        let mut head = head.clone();
        head.update(more).unwrap();
        head.learn(new).unwrap();
        head
    };
    let (new_left, new_right) = (phase(&train, 1), phase(&train, 2));
    let left = grown(&base, &more_left, &new_left);
    let joint = grown(&left, &more_right, &new_right);
    Fork { left, right: grown(&base, &more_right, &new_right), joint, base }
}

#[test]
fn what_both_sites_had_before_counts_once() {
    for scatter in [ScatterKept::Pooled, ScatterKept::PerClass] {
        let settings = Settings { scatter, ..small() };
        for name in ["iVoro", "iVoro-W", "iVoro-NKWACL", "iVoro-NAI", "iVoro-D", "iVoro-NWDR"] {
            let fork = fork(variant(name), &settings);
            let mut merged = fork.left.clone();
            let report = merged.merge(&fork.right, Some(&fork.base)).unwrap();
            assert_eq!((report.added.len(), report.combined.len()), (3, 4));
            assert!(merged == fork.joint, "{name} {scatter}");
            let mut twice = fork.left.clone();
            twice.merge(&fork.right, None).unwrap();
            assert!(twice != fork.joint, "without the ancestor its samples count twice");
        }
    }
}

#[test]
fn a_class_that_either_site_forgot_is_forgotten() {
    let settings = Settings { scatter: ScatterKept::PerClass, ..small() };
    for name in ["iVoro", "iVoro-NW", "iVoro-D", "iVoro-NWDR"] {
        let Fork { base, left, mut right, .. } = fork(variant(name), &settings);
        right.forget("class 1", Forgetting::DropProbes).unwrap();
        let merged = |own: &Head, other: &Head| {
            let mut head = own.clone();
            let report = head.merge(other, Some(&base)).unwrap();
            assert_eq!(report.forgotten, ["class 1"], "{name}");
            assert_eq!(
                (report.added.len(), report.combined.len()),
                if own == &left { (3, 3) } else { (2, 3) }
            );
            head
        };
        let (one, two) = (merged(&left, &right), merged(&right, &left));
        let kept = |head: &Head| {
            let mut kept: Vec<_> = head.classes().to_vec();
            kept.sort_by(|a, b| a.name.cmp(&b.name));
            kept
        };
        assert_eq!(kept(&one), kept(&two), "{name}: only the order of arrival differs");
        assert!(one.classes().iter().all(|class| class.name != "class 1"));
        // as if the one site that learned everything had forgotten it
        let mut joint = fork(variant(name), &settings).joint;
        joint.forget("class 1", Forgetting::DropProbes).unwrap();
        assert!(one == joint, "{name}");
    }
}

#[test]
fn a_pooled_scatter_does_not_lose_a_class_in_a_merge() {
    let phases = phases(&train());
    let both = learned(variant("iVoro-W"), &small(), &phases[..2]);
    let first = learned(variant("iVoro-W"), &small(), &phases[..1]);
    assert_refused(&both, &first, Some(&both), "is missing in one of the two");
    assert_refused(&first, &both, Some(&both), "is missing in one of the two");
}

#[track_caller]
fn assert_refused(own: &Head, other: &Head, ancestor: Option<&Head>, part: &str) {
    let mut merged = own.clone();
    let refused = merged.merge(other, ancestor);
    let Err(Error::Merge { reason }) = refused else { panic!("{refused:?}") };
    assert!(reason.to_string().contains(part), "{reason}");
    assert!(merged == *own);
}

#[test]
fn the_same_samples_are_not_counted_twice() {
    let head = learned(variant("iVoro-W"), &small(), &phases(&train()));
    assert_refused(&head, &head, None, "class 0 has the same statistics in both");
    let mut merged = head.clone();
    merged.merge(&head, Some(&head)).unwrap();
    assert!(merged == head);
}

#[test]
fn blocks_learned_from_an_emptied_head_add_up_to_the_whole() {
    let train = train();
    for name in ["iVoro", "iVoro-N", "iVoro-W", "iVoro-Q", "iVoro-NKWACL"] {
        let whole = learned(variant(name), &small(), std::slice::from_ref(&train));
        let empty = whole.emptied();
        assert!(empty.classes().is_empty() && empty.layers() == whole.layers());
        let mut sum = empty.clone();
        for first in 0..3 {
            let mut block = empty.clone();
            let rows: Vec<usize> = (first..train.len()).step_by(3).collect();
            block.learn(&train.select(&rows)).unwrap();
            sum.merge(&block, Some(&empty)).unwrap();
        }
        assert!(sum == whole, "{name}");
    }
}

#[test]
fn equal_samples_at_two_sites_count_twice_where_the_start_is_named() {
    let head = learned(variant("iVoro"), &small(), &[train()]);
    let mut twice = head.clone();
    twice.merge(&head, Some(&head.emptied())).unwrap();
    assert_eq!(twice.classes()[0].statistics.count, 2 * head.classes()[0].statistics.count);
}

#[test]
fn heads_of_another_kind_are_refused() {
    let phases = phases(&train());
    let head = learned(variant("iVoro-N"), &small(), &phases[..1]);
    let other = learned(variant("iVoro"), &small(), &phases[1..]);
    assert_refused(&head, &other, None, "the variant differs: iVoro-N and iVoro");
    let mut settings = small();
    settings.transform.lambda = 0.5;
    let other = learned(variant("iVoro-N"), &settings, &phases[1..]);
    assert_refused(
        &head,
        &other,
        None,
        "depends on lambda, which is 0.7 in one and 0.5 in the other",
    );
    let other = learned(variant("iVoro-N"), &small(), &phases[1..]);
    assert_refused(&head, &other, Some(&learned(variant("iVoro"), &small(), &phases)), "variant");
}

/// Settings that act when a query is asked, or on phases yet to come, do not stand in the way.
#[test]
fn other_settings_of_the_metric_merge_exactly() {
    let phases = phases(&train());
    for (name, other) in [
        ("iVoro-NW", Settings { ridge: 3.0, ridge_per: RidgePer::Mean, ..small() }),
        ("iVoro-Q", Settings { prior: 7.0, volume: 1.0, rank: Rank::Full, ..small() }),
        ("iVoro-L", Settings { gamma: 2.0, layer_weights: [0.3, 0.7], seed: 7, ..small() }),
        ("iVoro-NAC", Settings { pairs: Pairs::All, ..small() }),
    ] {
        let (variant, own) = (variant(name), small());
        let mut merged = learned(variant, &own, &phases[..1]);
        let report = merged.merge(&learned(variant, &other, &phases[1..]), None).unwrap();
        assert!(!report.settings.is_empty(), "{name}");
        assert!(merged == learned(variant, &own, &phases), "{name}");
    }
}

#[test]
fn an_ancestor_that_knew_more_is_refused() {
    let train = train();
    let left = learned(variant("iVoro"), &small(), &[half(&train, 0)]);
    let right = learned(variant("iVoro"), &small(), &[half(&train, 1)]);
    let later = learned(variant("iVoro"), &small(), &[train]);
    assert_refused(&left, &right, Some(&later), "not the model both started from");
}
