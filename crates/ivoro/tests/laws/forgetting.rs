use ivoro::head::Head;
use ivoro::head::{Forgetting, ScatterKept, Settings};
use ivoro::{Error, Samples, Variant};

use crate::data::{CLASSES, every_variant, learned, phases, queries, small, train, variant};

fn per_class() -> Settings {
    Settings { scatter: ScatterKept::PerClass, ..small() }
}

fn without(phases: &[Samples], class: u32) -> Vec<Samples> {
    let kept = phases.iter().map(|phase| phase.of_classes(|label| label != class));
    kept.filter(|phase| !phase.is_empty()).collect()
}

#[test]
fn a_forgotten_class_was_never_learned() {
    let phases = phases(&train());
    let probeless = every_variant().into_iter().filter(|v| !v.divide && !v.residual && !v.flip);
    for variant in probeless {
        let all = learned(variant, &per_class(), &phases);
        for class in 0..CLASSES {
            let mut head = all.clone();
            // asked before: nothing of the old diagram may stay
            head.predict(&queries()).unwrap();
            head.forget(&format!("class {class}"), Forgetting::Exact).unwrap();
            let never = learned(variant, &per_class(), &without(&phases, class));
            assert!(head == never, "{variant} without class {class}");
            let queries = queries();
            assert_eq!(head.predict(&queries).unwrap(), never.predict(&queries).unwrap());
        }
    }
}

#[test]
fn a_phase_that_is_forgotten_class_by_class_never_came() {
    let phases = phases(&train());
    for name in ["iVoro", "iVoro-W", "iVoro-NWAIL", "iVoro-NQAIL"] {
        let mut head = learned(variant(name), &per_class(), &phases);
        for class in [5, 4] {
            head.forget(&format!("class {class}"), Forgetting::Exact).unwrap();
        }
        let never = [phases[0].clone(), phases[2].clone()];
        assert!(head == learned(variant(name), &per_class(), &never));
    }
}

#[test]
fn a_head_that_forgot_everything_is_new() {
    let mut head = learned(variant("iVoro-NW"), &per_class(), &phases(&train()));
    for class in 0..CLASSES {
        head.forget(&format!("class {class}"), Forgetting::Exact).unwrap();
    }
    assert!(head == Head::new(variant("iVoro-NW"), per_class()).unwrap());
    assert!(matches!(head.predict(&queries()), Err(Error::Size { .. })));
}

#[track_caller]
fn assert_inexact(head: &Head, class: &str) {
    let mut changed = head.clone();
    let refused = changed.forget(class, Forgetting::Exact);
    assert!(matches!(refused, Err(Error::ForgetInexact { .. })), "{refused:?}");
    assert!(changed == *head);
}

#[test]
fn a_pooled_scatter_can_not_be_taken_apart() {
    for name in ["iVoro-W", "iVoro-KW", "iVoro-WAC", "iVoro-NWAIL"] {
        let head = learned(variant(name), &small(), &phases(&train()));
        assert_inexact(&head, "class 1");
        let mut dropping = head.clone();
        let refused = dropping.forget("class 1", Forgetting::DropProbes);
        assert!(matches!(refused, Err(Error::ForgetInexact { .. })), "probes are not the reason");
        assert!(dropping == head);
    }
}

#[test]
fn a_probe_of_several_classes_is_given_up_only_on_request() {
    let phases = phases(&train());
    for name in ["iVoro-D", "iVoro-R", "iVoro-NDRAC", "iVoro-WDRAI"] {
        let variant: Variant = variant(name);
        let mut head = learned(variant, &per_class(), &phases);
        assert_inexact(&head, "class 7");
        let before = head.bytes();
        head.forget("class 7", Forgetting::DropProbes).unwrap();
        assert!(head.bytes() < before);
        assert_eq!(head.phases(), [4, 2, 2]);
        // the rest of that phase keeps its means, other phases keep their probes
        let predicted = head.predict(&queries()).unwrap();
        assert!(predicted.iter().all(|&class| class < CLASSES - 1));
        let plain = Variant { divide: false, residual: false, ..variant };
        let means = learned(plain, &per_class(), &phases);
        assert_eq!(head.classes()[6], means.classes()[6]);
        assert_inexact(&head, "class 0");
    }
}

#[test]
fn the_probe_of_a_single_class_goes_with_it() {
    let train = train();
    let base = train.of_classes(|label| label < 3);
    let lone = train.of_classes(|label| label == 3);
    for name in ["iVoro-D", "iVoro-R", "iVoro-NDR"] {
        let mut head = learned(variant(name), &small(), &[base.clone(), lone.clone()]);
        head.forget("class 3", Forgetting::Exact).unwrap();
        assert!(head == learned(variant(name), &small(), std::slice::from_ref(&base)));
    }
}

#[test]
fn an_unknown_class_can_not_be_forgotten() {
    let head = learned(variant("iVoro"), &small(), &phases(&train()));
    let mut changed = head.clone();
    let refused = changed.forget("class 99", Forgetting::Exact);
    assert!(matches!(refused, Err(Error::UnknownClass { .. })));
    assert!(changed == head);
}
