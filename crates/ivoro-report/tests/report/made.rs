//! Records made by hand.

use ivoro_eval::record::{
    BurstOutcome, ClassOutcome, Kind, MethodRecord, PhaseOutcome, ReliabilityBin, RunRecord,
    Summary, VERSION,
};
use ivoro_report::{Inputs, Report, build};

/// A record of these phases, every method a little better than the one before.
pub(crate) fn record(data_set: &str, phases: &[usize], methods: &[&str]) -> RunRecord {
    let classes: usize = phases.iter().sum();
    let protocol = ivoro_eval::Protocol::new(phases.to_vec()).unwrap();
    let methods = methods.iter().enumerate();
    RunRecord {
        version: VERSION,
        program: "0.1.0".to_owned(),
        features: "made.features".to_owned(),
        data_set: Some(data_set.to_owned()),
        split: "made by hand".to_owned(),
        protocol: protocol.to_string(),
        phases: phases.to_vec(),
        order: "identity".to_owned(),
        classes: (0..classes).map(|class| format!("class {class}")).collect(),
        methods: methods.map(|(at, name)| method(name, phases, 50.0 + at as f64)).collect(),
        ..RunRecord::default()
    }
}

pub(crate) fn method(name: &str, phases: &[usize], accuracy: f64) -> MethodRecord {
    let peers = ["ncm", "fecam", "joint"];
    let kind = match name {
        name if peers.contains(&name) => Kind::Peer,
        name if name.starts_with("iVoro") => Kind::Variant,
        _ => Kind::Baseline,
    };
    let exemplar_free = !["joint", "iCaRL-CNN"].contains(&name);
    let phases: Vec<PhaseOutcome> =
        (0..phases.len()).map(|at| phase(at, phases, accuracy)).collect();
    let exemplars = (name == "iCaRL-CNN").then_some(20);
    let summary = Summary::of(&phases);
    MethodRecord {
        name: name.to_owned(),
        kind,
        exemplar_free,
        exemplars,
        phases,
        summary,
        ..MethodRecord::default()
    }
}

fn phase(at: usize, sizes: &[usize], accuracy: f64) -> PhaseOutcome {
    let classes: usize = sizes[..=at].iter().sum();
    let falling = accuracy - 3.0 * at as f64;
    let class = |class: usize| ClassOutcome {
        tested: 20,
        correct: 8 + class % 9,
        uncertainty: Some(1.0 + class as f64),
        hv: Some([0.5, 0.8, 1.0, 1.2, 2.0].map(|value| value * (1.0 + class as f64))),
    };
    let bin = |at: usize| ReliabilityBin {
        count: 10,
        confidence: at as f64 / 10.0,
        accuracy: at as f64 / 12.0,
    };
    let pairs =
        (0..classes).flat_map(|class| [[class, class, 15], [class, (class + 1) % classes, 5]]);
    PhaseOutcome {
        phase: at,
        classes,
        accuracy: falling,
        accuracy_by_phase: (0..=at).map(|phase| falling + phase as f64).collect(),
        by_class: (0..classes).map(class).collect(),
        confusion: pairs.collect(),
        calibration_error: Some(0.08),
        rejection_auroc: Some(0.7),
        reliability: (1..10).map(bin).collect(),
        risk_coverage: (1..=20)
            .map(|step| [f64::from(step) / 20.0, f64::from(step) / 60.0])
            .collect(),
        rejection_roc: vec![[0.0, 0.0], [0.2, 0.6], [1.0, 1.0]],
        burst: Some(BurstOutcome { size: 4, queries: 5 * classes, sum: 86.0, vote: 80.0 }),
        learn_seconds: 0.5,
        predict_seconds: 0.1,
        bytes: 4000 * classes,
        ..PhaseOutcome::default()
    }
}

/// The report of records as they come from files.
pub(crate) fn report(records: &[RunRecord]) -> Report {
    report_with(Inputs::default(), records)
}

/// The same beside what a report knows already.
pub(crate) fn report_with(mut inputs: Inputs, records: &[RunRecord]) -> Report {
    for (at, record) in records.iter().enumerate() {
        let text = serde_json::to_vec(record).unwrap();
        inputs.add(&format!("{at}/run.json"), &text);
    }
    assert!(inputs.problems.is_empty(), "{:?}", inputs.problems);
    build(&inputs)
}

/// Every figure of a report as SVG and PNG, to see that none fails.
pub(crate) fn drawn(report: &Report) {
    for figure in &report.figures {
        let svg = figure.svg();
        assert!(!svg.contains("NaN") && !svg.contains("\"inf"), "{}", figure.name());
        assert!(figure.png(0.5).unwrap().starts_with(b"\x89PNG"), "{}", figure.name());
    }
}
