//! Calibrating a model, and what that is worth, measured on samples it was not calibrated on.

use ivoro::random::permutation;
use ivoro::{AskOptions, Error, Model, Result, Samples};
use serde::Serialize;

use super::BINS;
use super::reliability::Reliability;

/// Parts that the samples of each class are divided into; each is asked by the model that the others
/// calibrated.
const FOLDS: usize = 5;
/// Seed of that division.
const SEED: u64 = 1993;
/// Shares that thresholds are told for.
const SHARES: [f64; 3] = [0.01, 0.05, 0.1];
/// The share that is rejected to see how many are.
const REJECTED: f64 = 0.05;

/// A threshold before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Threshold {
    /// Share of known queries that may be rejected wrongly.
    pub share: f64,
    /// Before, where the model had one.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
}

/// How well a calibration fits samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fitness {
    /// Expected calibration error, where there are probabilities.
    pub error: Option<f64>,
    /// Mean probability of the class that was given.
    pub confidence: Option<f64>,
    /// Share rejected where 5 % may be.
    pub rejected: Option<f64>,
}

/// What a calibration changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibrated {
    /// Samples it rests on.
    pub samples: usize,
    /// Share of them that is given the right class; calibration does not change it.
    pub accuracy: f64,
    /// Temperature before, where the model had one.
    pub temperature_before: Option<f64>,
    /// Temperature after.
    pub temperature_after: Option<f64>,
    /// Thresholds.
    pub thresholds: Vec<Threshold>,
    /// On these samples, the model as it was.
    pub before: Fitness,
    /// On these samples, each asked by the model that the samples of other folds calibrated. None where
    /// a class is left out of every fold, as with a single sample.
    pub after: Option<Fitness>,
}

/// What was answered about samples.
#[derive(Default)]
struct Answered {
    confidence: Vec<Option<f64>>,
    right: Vec<bool>,
    rejected: Vec<Option<bool>>,
}

impl Answered {
    /// Asks about some rows.
    fn add(&mut self, model: &Model, samples: &Samples) -> Result<()> {
        let reject = model.threshold(REJECTED).is_ok().then_some(REJECTED);
        let options = AskOptions { false_rejection: reject, ..AskOptions::default() };
        for (prediction, &label) in model.ask(samples, options)?.iter().zip(samples.labels()) {
            let first = prediction.top.first();
            let name = &samples.classes()[label as usize];
            self.confidence.push(first.and_then(|it| it.probability));
            self.right.push(first.is_some_and(|it| it.class == *name));
            self.rejected.push(prediction.unknown);
        }
        Ok(())
    }

    fn fitness(&self) -> Fitness {
        let confidence: Option<Vec<f64>> = self.confidence.iter().copied().collect();
        let found = confidence.and_then(|it| Reliability::from_parts(&it, &self.right, BINS));
        let rejected: Option<Vec<bool>> = self.rejected.iter().copied().collect();
        let share = |rejected: Vec<bool>| {
            let count = rejected.iter().filter(|&&rejected| rejected).count();
            count as f64 / rejected.len().max(1) as f64
        };
        Fitness {
            error: found.as_ref().map(|it| it.error),
            confidence: found.as_ref().map(|it| it.confidence),
            rejected: rejected.map(share),
        }
    }

    fn accuracy(&self) -> f64 {
        let right = self.right.iter().filter(|&&right| right).count();
        right as f64 / self.right.len().max(1) as f64
    }
}

/// Calibrates a model on samples that it has not learned, and says what that changed.
pub fn calibrate(model: &mut Model, samples: &Samples) -> Result<Calibrated> {
    if samples.is_empty() {
        let what = format!("{}: there is no sample to calibrate on", samples.origin());
        return Err(Error::Unsupported { what });
    }
    let temperature = |model: &Model| model.calibration().and_then(|_| model.temperature().ok());
    let thresholds = |model: &Model| SHARES.map(|share| model.threshold(share).ok());
    let (temperature_before, before) = (temperature(model), thresholds(model));
    let mut as_it_was = Answered::default();
    // a class that the model does not know is refused before anything is asked
    let mut calibrated = model.clone();
    calibrated.calibrate(samples)?;
    as_it_was.add(model, samples)?;
    let after = held_out(&mut calibrated, samples)?;
    calibrated.calibrate(samples)?;
    *model = calibrated;
    let thresholds = SHARES.iter().zip(before).zip(thresholds(model));
    Ok(Calibrated {
        samples: samples.len(),
        accuracy: as_it_was.accuracy(),
        temperature_before,
        temperature_after: temperature(model),
        thresholds: thresholds
            .map(|((&share, before), after)| Threshold { share, before, after })
            .collect(),
        before: as_it_was.fitness(),
        after,
    })
}

/// Every sample asked by the model that the other folds calibrated; the model is left with the last one.
fn held_out(model: &mut Model, samples: &Samples) -> Result<Option<Fitness>> {
    let mut seen = vec![0; samples.classes().len()];
    let mut fold = vec![0; samples.len()];
    for row in permutation(SEED, samples.len()) {
        let count = &mut seen[samples.labels()[row] as usize];
        fold[row] = *count % FOLDS;
        *count += 1;
    }
    let folds = fold.iter().max().map_or(0, |&last| last + 1);
    if folds < 2 {
        return Ok(None);
    }
    let mut asked = Answered::default();
    for held in 0..folds {
        let of = |inside: bool| -> Vec<usize> {
            (0..samples.len()).filter(|&row| (fold[row] == held) == inside).collect()
        };
        model.calibrate(&samples.select(&of(false)))?;
        asked.add(model, &samples.select(&of(true)))?;
    }
    Ok(Some(asked.fitness()))
}
