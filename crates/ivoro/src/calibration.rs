//! From distances to probabilities and to "unknown": a temperature and a rejection threshold.
//!
//! What is learned is asked first: of every lesson some samples are held out, asked, and only then
//! counted in. Kept of a lesson are quantiles of how strange these samples were and the log loss at
//! some temperatures, both in units that the sums give at any time. So what was measured with few
//! classes still says something when there are many, and newer lessons say more than older ones.

use serde::{Deserialize, Serialize};

use crate::vectors::least;

/// Share of own samples that may be rejected: the levels thresholds are told apart at, in per mille.
pub const LEVELS: [u32; 12] = [1, 2, 5, 10, 20, 30, 50, 70, 100, 150, 200, 300];

/// Shares of samples at which the quantiles of a lesson are kept: [`LEVELS`], and some below.
const SHARES: [f64; 15] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0];
/// What the strangeness of known queries is at these shares where nothing was measured: the mean of
/// models of 3 to 50 classes, of held-out training samples of two sets of images.
const USUAL: [f64; 15] =
    [1.34, 1.33, 1.31, 1.29, 1.27, 1.25, 1.23, 1.21, 1.2, 1.18, 1.16, 1.13, 1.08, 1.03, 0.86];
/// For how many samples these count.
const USUAL_SAMPLES: f64 = 20.0;
/// How much further a single class's samples spread than [`USUAL`] says: divided by classes².
const ALONE: f64 = 1.7;

/// Temperatures at which the loss of a lesson is kept: 2^(−9), a third of an octave each, to 2.
const TEMPERATURES: usize = 31;
/// The temperature where nothing was measured, in the same unit, and how much it counts.
const RULE_OF_THUMB: f64 = 1.0 / 8.0;
const RULE_WEIGHT: f64 = 1.0;

/// What was measured of one lesson's held-out samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// Names of the classes whose samples were asked.
    pub classes: Vec<String>,
    /// Classes known when they were.
    pub known: usize,
    /// Samples that were asked.
    pub samples: usize,
    /// Quantiles of their strangeness, from the strangest on.
    strangeness: Vec<f64>,
    /// By how much these quantiles were higher than with every other class alone; empty where that was
    /// not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    growth: Vec<f64>,
    /// Mean log loss at each temperature, in units of the gap between classes.
    losses: Vec<f64>,
}

impl Lesson {
    /// From the strangeness of samples, with all classes and with every other one, and their mean loss at
    /// each of [`temperatures`]; none where that can't be kept.
    pub(crate) fn new(
        classes: Vec<String>,
        known: usize,
        (strangeness, halved): (Vec<f64>, Option<Vec<f64>>),
        losses: Vec<f64>,
    ) -> Option<Self> {
        let samples = strangeness.len();
        let strangeness = quantiles(strangeness);
        let halved = halved.map(quantiles).unwrap_or_default();
        let growth = strangeness.iter().zip(halved).map(|(all, half)| all - half).collect();
        let lesson = Self { classes, known, samples, strangeness, growth, losses };
        lesson.is_sensible().then_some(lesson)
    }

    fn is_sensible(&self) -> bool {
        let falls = self.strangeness.windows(2).all(|pair| pair[0] >= pair[1]);
        self.strangeness.len() == SHARES.len()
            && [0, SHARES.len()].contains(&self.growth.len())
            && self.losses.len() == TEMPERATURES
            && self.numbers().all(f64::is_finite)
            && (self.known > 0 && self.samples > 0 && !self.classes.is_empty() && falls)
    }

    fn numbers(&self) -> impl Iterator<Item = f64> {
        self.strangeness.iter().chain(&self.growth).chain(&self.losses).copied()
    }

    /// How much it counts when so many classes are known: one for each class, less the more have
    /// come since.
    fn weight(&self, known: usize) -> f64 {
        let since = (self.known as f64 / known.max(1) as f64).min(1.0);
        self.classes.len() as f64 * since * since
    }
}

/// What was measured, lesson by lesson, or once for all.
///
/// ```
/// # use ivoro::{Matrix, Model, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// model.learn(&Samples::single("monday", points, vec![0, 0, 1, 1], 2)?)?;
/// let calibration = model.calibration().unwrap();
/// assert_eq!(calibration.lessons().len(), 1);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Calibration {
    /// Measured in each lesson.
    Lessons(Lessons),
    /// Fitted on the base phase alone, as versions up to 0.1 did it. A model read from such a file
    /// answers as it did then until it is calibrated again.
    Fixed(Fixed),
}

/// See [`Calibration::Lessons`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lessons {
    lessons: Vec<Lesson>,
}

/// See [`Calibration::Fixed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixed {
    /// T of p_k ∝ exp(−d_k / T).
    pub(crate) temperature: f64,
    /// Threshold on the strangeness of then for each of [`LEVELS`].
    thresholds: Vec<f64>,
    /// Held-out samples it was fitted on.
    samples: usize,
    /// Under W, without D, R and a large lift: how far apart the classes of the base phase were in the
    /// metric of then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reach: Option<f64>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self::Lessons(Lessons::default())
    }
}

impl Calibration {
    /// What was measured of each lesson; nothing of a model that was calibrated once for all.
    pub fn lessons(&self) -> &[Lesson] {
        match self {
            Self::Lessons(measured) => &measured.lessons,
            Self::Fixed(_) => &[],
        }
    }

    /// Samples that were held out and asked.
    pub fn samples(&self) -> usize {
        match self {
            Self::Lessons(measured) => measured.lessons.iter().map(|lesson| lesson.samples).sum(),
            Self::Fixed(fixed) => fixed.samples,
        }
    }

    /// How many numbers are kept for it.
    pub fn numbers(&self) -> usize {
        match self {
            Self::Lessons(measured) => {
                measured.lessons.iter().map(|lesson| lesson.numbers().count() + 2).sum()
            }
            Self::Fixed(fixed) => fixed.thresholds.len() + 2,
        }
    }

    /// Counts one more lesson in.
    pub(crate) fn add(&mut self, lesson: Lesson) {
        if let Self::Lessons(measured) = self {
            measured.lessons.push(lesson);
        }
    }

    /// Counts in what was measured elsewhere; where one of the two is fixed, this one stays.
    pub(crate) fn join(&mut self, other: &Self) {
        if let Self::Lessons(measured) = self {
            let new: Vec<Lesson> = other
                .lessons()
                .iter()
                .filter(|it| !measured.lessons.contains(it))
                .cloned()
                .collect();
            measured.lessons.extend(new);
        }
    }

    /// Drops what was measured of these classes alone.
    pub(crate) fn forget(&mut self, classes: &[String]) {
        if let Self::Lessons(measured) = self {
            for lesson in &mut measured.lessons {
                lesson.classes.retain(|class| !classes.contains(class));
            }
            measured.lessons.retain(|lesson| !lesson.classes.is_empty());
        }
    }

    /// A class has another name.
    pub(crate) fn rename(&mut self, class: &str, name: &str) {
        let Self::Lessons(measured) = self else { return };
        let names = measured.lessons.iter_mut().flat_map(|lesson| &mut lesson.classes);
        names.filter(|known| *known == class).for_each(|known| name.clone_into(known));
    }

    /// Strangeness above which a query is rejected, when so large a share of own samples may be
    /// rejected wrongly and so many classes are known.
    pub fn threshold(&self, false_rejection: f64, known: usize) -> f64 {
        match self {
            Self::Lessons(measured) => measured.threshold(false_rejection, known),
            Self::Fixed(fixed) => fixed.threshold(false_rejection),
        }
    }

    /// Whether every number is one that measuring can give, as a file might hold others.
    pub(crate) fn is_sensible(&self) -> bool {
        match self {
            Self::Lessons(measured) => measured.lessons.iter().all(Lesson::is_sensible),
            Self::Fixed(fixed) => fixed.is_sensible(),
        }
    }
}

impl Lessons {
    /// Weight of all lessons, and how many samples that is.
    fn weights(&self, known: usize) -> (f64, f64) {
        let weights = self.lessons.iter().map(|lesson| {
            let weight = lesson.weight(known);
            (weight, lesson.samples as f64 * weight / lesson.classes.len().max(1) as f64)
        });
        weights.fold((0.0, 0.0), |sum, (weight, samples)| (sum.0 + weight, sum.1 + samples))
    }

    /// The quantiles of each lesson's strangeness as they are when so many classes are known, with its
    /// weight. Whenever the number of classes doubles, they rise by what they rose from half of them.
    fn grown(&self, known: usize) -> Vec<(f64, Vec<f64>)> {
        let mut growth = vec![0.0; SHARES.len()];
        let mut total = 0.0;
        for lesson in self.lessons.iter().filter(|lesson| !lesson.growth.is_empty()) {
            let weight = lesson.weight(known);
            total += weight;
            growth.iter_mut().zip(&lesson.growth).for_each(|(sum, rise)| *sum += weight * rise);
        }
        growth.iter_mut().for_each(|sum| *sum /= total.max(f64::MIN_POSITIVE));
        let now = |lesson: &Lesson| {
            let doublings = (known as f64 / lesson.known as f64).log2().max(0.0);
            let mut least = f64::INFINITY;
            let quantiles = lesson.strangeness.iter().zip(&growth).map(|(then, rise)| {
                // quantiles fall, whatever their rises say
                least = least.min(then + doublings * rise);
                least
            });
            (lesson.weight(known), quantiles.collect())
        };
        self.lessons.iter().map(now).collect()
    }

    fn threshold(&self, share: f64, known: usize) -> f64 {
        let (total, samples) = self.weights(known);
        let lessons = self.grown(known);
        let measured = |at: f64| {
            let above =
                lessons.iter().map(|(weight, quantiles)| weight * share_above(quantiles, at));
            above.sum::<f64>() / total.max(f64::MIN_POSITIVE)
        };
        let ends =
            lessons.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, it)| {
                (low.min(it[SHARES.len() - 1]), high.max(it[0]))
            });
        let alone = 1.0 + ALONE / (known.max(1) as f64).powi(2);
        let middle = match lessons.len() {
            0 => 1.0 + (USUAL[12] - 1.0) * alone,
            _ => bisected(ends, 0.5, measured),
        };
        let usual: Vec<f64> =
            USUAL.iter().map(|value| middle + (value - USUAL[12]) * alone).collect();
        let believed = samples / (samples + USUAL_SAMPLES);
        let above = |at: f64| believed * measured(at) + (1.0 - believed) * share_above(&usual, at);
        bisected((ends.0.min(usual[14]), ends.1.max(usual[0])), share, above)
    }

    /// The temperature of least loss, in units of the gap between classes.
    pub(crate) fn temperature(&self, known: usize) -> f64 {
        let (total, samples) = self.weights(known);
        let loss = |at: usize| {
            let rule = (temperature(at) / RULE_OF_THUMB).ln();
            let losses = self.lessons.iter().map(|it| it.weight(known) * it.losses[at]);
            let measured = losses.sum::<f64>() / total.max(f64::MIN_POSITIVE);
            samples * measured + RULE_WEIGHT * rule * rule
        };
        let losses: Vec<f64> = (0..TEMPERATURES).map(loss).collect();
        let best = (0..TEMPERATURES).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
        // the vertex of the parabola through the best and its neighbours
        let middle = best.clamp(1, TEMPERATURES - 2);
        let (low, mid, high) = (losses[middle - 1], losses[middle], losses[middle + 1]);
        let bend = low - 2.0 * mid + high;
        let shift = if bend > 0.0 { (0.5 * (low - high) / bend).clamp(-1.0, 1.0) } else { 0.0 };
        if middle == best { octave(middle as f64 + shift) } else { temperature(best) }
    }
}

fn octave(at: f64) -> f64 {
    (at / 3.0 - 9.0).exp2()
}

/// One of the temperatures at which losses are kept, in units of the gap between classes.
fn temperature(at: usize) -> f64 {
    octave(at as f64)
}

/// All of them.
pub(crate) fn temperatures() -> impl Iterator<Item = f64> {
    (0..TEMPERATURES).map(temperature)
}

/// The share of a lesson's samples that is stranger, from its quantiles.
fn share_above(quantiles: &[f64], at: f64) -> f64 {
    if at >= quantiles[0] {
        return 0.0;
    }
    let Some(below) = quantiles.iter().position(|&value| value <= at) else { return 1.0 };
    let (high, low) = (quantiles[below - 1], quantiles[below]);
    let part = if high > low { (high - at) / (high - low) } else { 1.0 };
    SHARES[below - 1] + part * (SHARES[below] - SHARES[below - 1])
}

/// Where a falling function has this value.
fn bisected((mut low, mut high): (f64, f64), value: f64, at: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at(middle) > value { low = middle } else { high = middle }
    }
    high
}

impl Fixed {
    /// With this temperature from now on, whatever the metric will be.
    pub(crate) fn settled(self, temperature: f64) -> Self {
        Self { temperature, reach: None, ..self }
    }

    /// The temperature where the classes of the base phase are so far apart now.
    pub(crate) fn temperature_at(&self, reach: Option<f64>) -> f64 {
        match (reach, self.reach) {
            (Some(now), Some(then)) => self.temperature * now / then,
            _ => self.temperature,
        }
    }

    /// Between the levels kept, interpolated.
    fn threshold(&self, false_rejection: f64) -> f64 {
        let level = |at: usize| f64::from(LEVELS[at]) / 1e3;
        let above = (0..LEVELS.len()).find(|&at| level(at) >= false_rejection);
        match above {
            Some(0) => self.thresholds[0],
            None => self.thresholds[LEVELS.len() - 1],
            Some(at) => {
                let share = (false_rejection - level(at - 1)) / (level(at) - level(at - 1));
                self.thresholds[at - 1] + share * (self.thresholds[at] - self.thresholds[at - 1])
            }
        }
    }

    fn is_sensible(&self) -> bool {
        self.temperature > 0.0
            && self.thresholds.len() == LEVELS.len()
            && self.thresholds.iter().chain([&self.temperature]).all(|number| number.is_finite())
            && self.reach.is_none_or(|reach| reach.is_finite() && reach > 0.0)
    }
}

/// p_k ∝ exp(−d_k / T).
pub fn softmin(distances: &[f32], temperature: f64) -> Vec<f64> {
    let low = distances.get(least(distances)).copied().map_or(0.0, f64::from);
    let weights: Vec<f64> =
        distances.iter().map(|&d| ((low - f64::from(d)) / temperature).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// −log p of the true class at a temperature.
pub(crate) fn log_loss(distances: &[f32], label: usize, temperature: f64) -> f64 {
    let low = f64::from(distances[least(distances)]);
    let further = |distance: f32| (f64::from(distance) - low) / temperature;
    let sum: f64 = distances.iter().map(|&distance| (-further(distance)).exp()).sum();
    further(distances[label]) + sum.ln()
}

/// The quantiles that are kept, from the largest on.
fn quantiles(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    SHARES.map(|share| quantile(&values, share)).to_vec()
}

/// The (1 − share) quantile: so large a share of the values lies above.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::INFINITY };
    let place = (1.0 - share).clamp(0.0, 1.0) * last as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(last);
    sorted[low] + part * (sorted[high] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;

    fn lesson(strangeness: Vec<f64>, losses: Vec<f64>, known: usize) -> Lesson {
        Lesson::new(vec!["a".to_owned()], known, (strangeness, None), losses).unwrap()
    }

    fn flat() -> Vec<f64> {
        vec![1.0; TEMPERATURES]
    }

    /// Labels drawn by a known softmin: the losses must find its temperature again.
    #[test]
    fn finds_the_temperature_that_made_the_labels() {
        for true_temperature in [0.02, 0.1, 0.7] {
            let mut losses = vec![0.0; TEMPERATURES];
            let rows = 4000;
            for row in 0..rows {
                let distances = [0, 1, 2].map(|at| unit(7, row * 4 + at) as f32);
                let draw = unit(7, row * 4 + 3);
                let p = softmin(&distances, true_temperature);
                let label = usize::from(draw > p[0]) + usize::from(draw > p[0] + p[1]);
                for (sum, at) in losses.iter_mut().zip(temperatures()) {
                    *sum += log_loss(&distances, label, at) / rows as f64;
                }
            }
            let strangeness = vec![1.0; rows as usize];
            let lessons = Lessons { lessons: vec![lesson(strangeness, losses, 3)] };
            let found = lessons.temperature(3);
            assert!((found / true_temperature).ln().abs() < 0.15, "{found} {true_temperature}");
        }
    }

    #[test]
    fn without_lessons_there_is_a_rule_of_thumb() {
        let nothing = Calibration::default();
        let Calibration::Lessons(lessons) = &nothing else { panic!("fixed") };
        assert!((lessons.temperature(5) / RULE_OF_THUMB - 1.0).abs() < 1e-9);
        let thresholds = [0.3, 0.1, 0.05, 0.01].map(|share| nothing.threshold(share, 5));
        assert!(thresholds.is_sorted() && thresholds[0] > 1.0 && thresholds[3] < 2.0);
        assert!(nothing.threshold(0.05, 1) > thresholds[2]);
    }

    #[test]
    fn thresholds_reject_the_share_asked_for() {
        let strangeness: Vec<f64> = (0..4000).map(|at| f64::from(at) / 4000.0).collect();
        let mut calibration = Calibration::default();
        calibration.add(lesson(strangeness.clone(), flat(), 10));
        for share in [0.01, 0.05, 0.06, 0.2] {
            let threshold = calibration.threshold(share, 10);
            let above = strangeness.iter().filter(|&&s| s > threshold).count() as f64 / 4000.0;
            assert!((above - share).abs() < 0.1 * share + 0.001, "{share} {above}");
        }
    }

    #[test]
    fn newer_lessons_say_more() {
        let near = |at: f64| (0..400).map(|row| at + f64::from(row) / 4000.0).collect::<Vec<_>>();
        let mut calibration = Calibration::default();
        calibration.add(lesson(near(1.0), flat(), 10));
        calibration.add(lesson(near(2.0), flat(), 10));
        // both alike: half of the samples lie above 1.1
        let alike = calibration.threshold(0.5, 10);
        assert!((1.0..=2.0).contains(&alike), "{alike}");
        let Calibration::Lessons(lessons) = &mut calibration else { panic!("fixed") };
        lessons.lessons[1].known = 100;
        assert!(calibration.threshold(0.5, 100) > 2.0);
        // what is forgotten goes, and what is known twice counts once
        let other = calibration.clone();
        calibration.join(&other);
        assert_eq!(calibration, other);
        calibration.forget(&["a".to_owned()]);
        assert_eq!(calibration, Calibration::default());
    }

    #[test]
    fn thresholds_follow_what_strangeness_does_when_classes_double() {
        let strangeness: Vec<f64> = (0..4000).map(|at| 1.0 + f64::from(at) / 4000.0).collect();
        let halved: Vec<f64> = strangeness.iter().map(|value| value + 0.1).collect();
        let of = |halved| {
            let names = vec!["a".to_owned()];
            let mut calibration = Calibration::default();
            calibration.add(Lesson::new(names, 10, (strangeness.clone(), halved), flat()).unwrap());
            calibration
        };
        let (still, moving) = (of(None), of(Some(halved)));
        assert!((still.threshold(0.05, 40) - still.threshold(0.05, 10)).abs() < 0.01);
        // where the lesson was asked, nothing is added; 40 classes are two doublings more
        assert_eq!(still.threshold(0.05, 10), moving.threshold(0.05, 10));
        let fallen = still.threshold(0.05, 40) - moving.threshold(0.05, 40);
        assert!((fallen - 0.2).abs() < 0.01, "{fallen}");
        // a class less is no reason to reject less
        assert_eq!(moving.threshold(0.05, 9), still.threshold(0.05, 9));
        let text = serde_json::to_string(&moving).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), moving);
        assert!(!serde_json::to_string(&still).unwrap().contains("growth"));
    }

    #[test]
    fn extreme_distances_do_not_overflow() {
        let p = softmin(&[1e30, 0.0, f32::MAX], 1e-3);
        assert_eq!(p, [0.0, 1.0, 0.0]);
        assert!(log_loss(&[1e30, 0.0, f32::MAX], 1, 1e-3).abs() < 1e-9);
        assert!(
            Lesson::new(vec!["a".to_owned()], 1, (vec![f64::INFINITY], None), flat()).is_none()
        );
    }
}
