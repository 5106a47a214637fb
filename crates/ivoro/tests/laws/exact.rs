use ivoro::head::Head;
use ivoro::head::{ScatterKept, Settings};
use ivoro::{Samples, Variant};

use crate::data::{every_variant, half, learned, phases, small, train};

/// The first sample of every class, and all others.
fn first_and_rest(features: &Samples) -> (Samples, Vec<usize>) {
    let labels = features.labels();
    let is_first = |&row: &usize| labels[..row].iter().all(|&label| label != labels[row]);
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..labels.len()).partition(is_first);
    (features.select(&first), rest)
}

fn in_halves(variant: Variant, settings: &Settings, phases: &[Samples]) -> Head {
    let firsts: Vec<Samples> = phases.iter().map(|phase| half(phase, 0)).collect();
    let mut head = learned(variant, settings, &firsts);
    for phase in phases.iter().rev() {
        head.update(&half(phase, 1)).unwrap();
    }
    head
}

fn one_at_a_time(variant: Variant, settings: &Settings, phases: &[Samples]) -> Head {
    let mut head = Head::new(variant, settings.clone()).unwrap();
    for phase in phases {
        let (first, rest) = first_and_rest(phase);
        head.learn(&first).unwrap();
        for row in rest.into_iter().rev() {
            head.update(&phase.select(&[row])).unwrap();
        }
    }
    head
}

/// Variants whose head is sums alone: no probe.
fn probeless() -> impl Iterator<Item = Variant> {
    every_variant().into_iter().filter(|variant| !variant.divide && !variant.residual)
}

#[test]
fn how_samples_were_batched_leaves_no_trace() {
    let phases = phases(&train());
    for scatter in [ScatterKept::Pooled, ScatterKept::PerClass] {
        let settings = Settings { scatter, ..small() };
        for variant in probeless() {
            let whole = learned(variant, &settings, &phases);
            assert!(in_halves(variant, &settings, &phases) == whole, "{variant} {scatter}");
        }
    }
}

#[test]
fn one_sample_at_a_time_is_the_same_as_all_at_once() {
    let phases = phases(&train());
    for variant in probeless().filter(|variant| !variant.third && !variant.flip) {
        let settings = Settings { scatter: ScatterKept::PerClass, ..small() };
        let whole = learned(variant, &settings, &phases);
        assert!(one_at_a_time(variant, &settings, &phases) == whole, "{variant}");
        let settings = small();
        let whole = learned(variant, &settings, &phases);
        assert!(one_at_a_time(variant, &settings, &phases) == whole, "{variant}");
    }
}

#[test]
fn one_sample_more_is_another_head() {
    let train = train();
    let phases = phases(&train);
    for variant in probeless().filter(|variant| !variant.flip) {
        let whole = learned(variant, &small(), &phases);
        let mut more = whole.clone();
        let report = more.update(&train.select(&[0])).unwrap();
        assert_eq!(report, [("class 0".to_owned(), 1)]);
        assert!(more != whole, "{variant}");
    }
}

#[test]
fn an_update_leaves_probes_as_they_were_and_moves_means() {
    let train = train();
    let phases = phases(&train);
    for name in ["iVoro-D", "iVoro-R", "iVoro-WDRAC"] {
        let variant: Variant = name.parse().unwrap();
        let before = learned(variant, &small(), &phases);
        let mut after = before.clone();
        after.update(&train.select(&[0, 0, 0])).unwrap();
        assert_eq!(after.bytes(), before.bytes());
        assert_eq!(after.classes()[0].statistics.count, before.classes()[0].statistics.count + 3);
        assert_eq!(after.classes()[1..], before.classes()[1..]);
        assert_ne!(after.classes()[0].statistics.blocks, before.classes()[0].statistics.blocks);
    }
}
