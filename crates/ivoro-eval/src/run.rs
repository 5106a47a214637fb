//! The only loop over phases: an iterator. The caller prints, streams or collects each outcome.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::curves;
use crate::learner::Learner;
use crate::metrics;
use crate::protocol::{ClassOrder, Protocol};
use crate::record::{ClassOutcome, PhaseOutcome, ReliabilityBin};
use ivoro::Samples;
use ivoro::calibration::softmin;
use ivoro::model::Evaluation;
use ivoro::samples::Split;
use ivoro::tune::Tuner;
use ivoro::vectors::least;
use ivoro::{Error, Result};

/// Bins of the calibration error.
const BINS: usize = 15;
/// Share of known queries accepted where false positives are counted.
const ACCEPTED: f64 = 0.95;

/// Training and test samples arranged in phases: labels are positions in the order of arrival.
#[derive(Clone, Debug)]
pub struct Stream {
    protocol: Protocol,
    order: Vec<usize>,
    split: Split,
    /// The training samples of each phase, copied once and shared by all learners.
    phases: OnceLock<Vec<Samples>>,
}

impl Stream {
    /// Arranges a data set. Every class needs training and test samples.
    pub fn new(split: &Split, protocol: Protocol, order: &ClassOrder) -> Result<Self> {
        let classes = split.train.classes().len();
        protocol.check(classes)?;
        if split.test.classes() != split.train.classes() {
            let (what, found) = ("classes of the test part".to_owned(), split.test.classes().len());
            return Err(Error::Size { what, expected: classes, found });
        }
        let order = order.permutation(classes)?;
        let mut place = vec![0u32; classes];
        order.iter().enumerate().for_each(|(at, &class)| place[class] = at as u32);
        let names: Arc<[String]> =
            order.iter().map(|&class| split.train.classes()[class].clone()).collect();
        let arranged = Split {
            train: split.train.relabel(&place, Arc::clone(&names))?,
            test: split.test.relabel(&place, names)?,
        };
        check_filled(&arranged.train, "training")?;
        check_filled(&arranged.test, "test")?;
        Ok(Self { protocol, order, split: arranged, phases: OnceLock::new() })
    }

    /// The protocol.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Class ids in order of arrival.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Class names in order of arrival.
    pub fn classes(&self) -> &[String] {
        self.split.train.classes()
    }

    /// The training samples of each phase.
    pub fn train(&self) -> &[Samples] {
        self.phases.get_or_init(|| {
            let of = |classes: Range<usize>| {
                self.split.train.of_classes(|label| classes.contains(&(label as usize)))
            };
            self.protocol.phases().map(of).collect()
        })
    }

    /// Tells records of other data apart: a hash of all samples and labels.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        self.split.train.add_to_hash(&mut hasher);
        self.split.test.add_to_hash(&mut hasher);
        hasher.finalize().to_hex()[..16].to_owned()
    }

    /// Chooses settings by the accuracy on the test samples of this stream after its last phase, for
    /// learners of another stream.
    pub fn tuner(&self) -> Tuner {
        Tuner::on_samples(self.train().to_vec(), self.test().clone())
    }

    /// All test samples.
    pub fn test(&self) -> &Samples {
        &self.split.test
    }
}

fn check_filled(features: &Samples, split: &'static str) -> Result<()> {
    let mut counts = vec![0usize; features.classes().len()];
    features.labels().iter().for_each(|&label| counts[label as usize] += 1);
    match counts.iter().position(|&count| count == 0) {
        Some(at) => Err(Error::EmptyClass { class: features.classes()[at].clone(), split }),
        None => Ok(()),
    }
}

/// A learner going through a stream: each item is one phase learned and tested.
pub struct Run<'a> {
    stream: &'a Stream,
    learner: &'a mut dyn Learner,
    phases: Vec<Range<usize>>,
    next: usize,
}

impl<'a> Run<'a> {
    /// A run of a fresh learner.
    pub fn new(stream: &'a Stream, learner: &'a mut dyn Learner) -> Self {
        let phases = stream.protocol.phases().collect();
        Self { stream, learner, phases, next: 0 }
    }

    fn phase(&mut self, phase: usize) -> Result<PhaseOutcome> {
        go_through(self.stream, self.learner, &self.phases[..=phase])
    }
}

/// Learns the last of these phases and tests on all of them; for callers that keep the learner
/// between phases, others take a [`Run`].
pub fn go_through(
    stream: &Stream,
    learner: &mut dyn Learner,
    phases: &[Range<usize>],
) -> Result<PhaseOutcome> {
    let started = Instant::now();
    if let Some(newest) = phases.len().checked_sub(1).and_then(|at| stream.train().get(at)) {
        learner.learn(newest)?;
    }
    let learn_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let evaluation = learner.evaluate(stream.test())?;
    let predict_seconds = started.elapsed().as_secs_f64();
    let mut outcome = assess(&evaluation, stream.test().labels(), phases);
    (outcome.learn_seconds, outcome.predict_seconds) = (learn_seconds, predict_seconds);
    outcome.bytes = learner.bytes();
    Ok(outcome)
}

impl Iterator for Run<'_> {
    type Item = Result<PhaseOutcome>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.phases.len() {
            return None;
        }
        let outcome = self.phase(self.next);
        self.next = if outcome.is_ok() { self.next + 1 } else { self.phases.len() };
        Some(outcome)
    }
}

/// Everything reported of one phase. Test samples of classes that have not arrived yet only serve
/// to measure rejection.
pub fn assess(evaluation: &Evaluation, labels: &[u32], phases: &[Range<usize>]) -> PhaseOutcome {
    let seen = phases.last().map_or(0, |phase| phase.end);
    let old = phases.len().checked_sub(2).map_or(0, |at| phases[at].end);
    let rows: Vec<usize> = (0..labels.len()).filter(|&row| (labels[row] as usize) < seen).collect();
    let predicted: Vec<usize> =
        rows.iter().map(|&row| least(evaluation.distances.row(row))).collect();
    let truth: Vec<usize> = rows.iter().map(|&row| labels[row] as usize).collect();
    let share = |wanted: &dyn Fn(usize) -> bool| {
        let picked = truth.iter().zip(&predicted).filter(|(label, _)| wanted(**label));
        let (mut right, mut all) = (0usize, 0usize);
        picked.for_each(|(label, found)| {
            all += 1;
            right += usize::from(label == found);
        });
        (all > 0).then(|| 100.0 * right as f64 / all as f64)
    };
    let trust = Trust::of(evaluation, &rows, &truth, &predicted);
    let rejection = Rejection::of(evaluation, labels, seen);
    PhaseOutcome {
        phase: phases.len() - 1,
        classes: seen,
        accuracy: share(&|_| true).unwrap_or(0.0),
        accuracy_by_phase: phases
            .iter()
            .map(|p| share(&|l| p.contains(&l)).unwrap_or(0.0))
            .collect(),
        accuracy_old: (old > 0).then(|| share(&|label| label < old)).flatten(),
        accuracy_new: share(&|label| label >= old),
        by_class: by_class(evaluation, &rows, &truth, &predicted, seen),
        confusion: confusion(&truth, &predicted, seen),
        calibration_error: trust.calibration_error,
        log_loss: trust.log_loss,
        calibration_error_by_mass: trust.by_mass,
        rejection_auroc: rejection.auroc,
        false_positive_rate: rejection.false_positive_rate,
        rejected: rejection.shares,
        reliability: trust.bins,
        risk_coverage: trust.risk_coverage,
        rejection_roc: rejection.roc,
        burst: curves::bursts(&evaluation.distances, &rows, &truth),
        ..PhaseOutcome::default()
    }
}

fn by_class(
    evaluation: &Evaluation,
    rows: &[usize],
    truth: &[usize],
    predicted: &[usize],
    seen: usize,
) -> Vec<ClassOutcome> {
    let mut classes = vec![ClassOutcome::default(); seen];
    let mut views: Vec<Vec<f64>> = vec![Vec::new(); seen];
    for ((&row, &label), &found) in rows.iter().zip(truth).zip(predicted) {
        let class = &mut classes[label];
        class.tested += 1;
        class.correct += usize::from(label == found);
        if let Some(uncertainty) = &evaluation.uncertainty {
            views[label].push(uncertainty[row]);
        }
    }
    for (class, values) in classes.iter_mut().zip(views) {
        class.uncertainty = (!values.is_empty()).then(|| metrics::average(&values));
        class.hv = curves::five_numbers(&values).map(|five| five.map(curves::rounded));
    }
    classes
}

/// [true, predicted, count] of every pair that occurs.
fn confusion(truth: &[usize], predicted: &[usize], seen: usize) -> Vec<[usize; 3]> {
    let mut counts = vec![0usize; seen * seen];
    truth.iter().zip(predicted).for_each(|(&label, &found)| counts[label * seen + found] += 1);
    let pairs = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
    pairs.map(|(at, count)| [at / seen, at % seen, count]).collect()
}

/// How far the probabilities of a phase can be trusted; nothing without a temperature.
#[derive(Default)]
struct Trust {
    calibration_error: Option<f64>,
    by_mass: Option<f64>,
    log_loss: Option<f64>,
    bins: Vec<ReliabilityBin>,
    risk_coverage: Vec<[f64; 2]>,
}

impl Trust {
    fn of(evaluation: &Evaluation, rows: &[usize], truth: &[usize], predicted: &[usize]) -> Self {
        let Some(temperature) = evaluation.temperature else { return Self::default() };
        let (mut confidence, mut loss) = (Vec::with_capacity(rows.len()), 0f64);
        for ((&row, &label), &found) in rows.iter().zip(truth).zip(predicted) {
            let probabilities = softmin(evaluation.distances.row(row), temperature);
            confidence.push(probabilities[found]);
            loss -= probabilities[label].max(1e-12).ln();
        }
        let correct: Vec<bool> = truth.iter().zip(predicted).map(|(a, b)| a == b).collect();
        Self {
            calibration_error: Some(metrics::calibration_error(&confidence, &correct, BINS)),
            by_mass: Some(metrics::calibration_error_by_mass(&confidence, &correct, BINS)),
            log_loss: Some(loss / rows.len().max(1) as f64),
            bins: curves::reliability(&confidence, &correct, BINS),
            risk_coverage: curves::risk_coverage(&confidence, &correct),
        }
    }
}

/// How well classes that have not arrived are told from known ones.
#[derive(Default)]
struct Rejection {
    auroc: Option<f64>,
    false_positive_rate: Option<f64>,
    shares: Option<[f64; 2]>,
    roc: Vec<[f64; 2]>,
}

impl Rejection {
    fn of(evaluation: &Evaluation, labels: &[u32], seen: usize) -> Self {
        let Some(strangeness) = &evaluation.strangeness else { return Self::default() };
        let of = |wanted: &dyn Fn(usize) -> bool| -> Vec<f64> {
            let rows = labels.iter().zip(strangeness);
            rows.filter(|(label, _)| wanted(**label as usize)).map(|(_, &score)| score).collect()
        };
        let (known, unknown) = (of(&|label| label < seen), of(&|label| label >= seen));
        let share = |threshold: f64| {
            [&known, &unknown].map(|strangeness| metrics::rejected_share(strangeness, threshold))
        };
        Self {
            auroc: metrics::area_under_roc(&known, &unknown),
            false_positive_rate: metrics::false_positive_rate(&known, &unknown, ACCEPTED),
            shares: evaluation.threshold.map(share),
            roc: curves::rejection_roc(&known, &unknown),
        }
    }
}
