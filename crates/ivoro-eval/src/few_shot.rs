//! How good a method is with few samples of each class, and how much that depends on luck: on which
//! samples were drawn, and on the order in which they came.
//!
//! All classes arrive in one phase. A [`Trial`] is one method on one draw in one order.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::comparison::Method;
use crate::csv::quoted;
use crate::metrics::{self, mean_deviation};
use crate::peers::PeerSettings;
use crate::record::{NamedValues, named_values};
use ivoro::calibration::softmin;
use ivoro::model::{Evaluation, ModelOptions};
use ivoro::samples::Split;
use ivoro::vectors::least;
use ivoro::{Error, Result, Samples, random};

/// Version of the record.
pub const VERSION: u32 = 1;
/// Bins of the calibration error, each with as many queries.
const BINS: usize = 15;

/// How many samples of each class are learned.
///
/// ```
/// use ivoro_eval::few_shot::Shots;
/// assert_eq!("5".parse::<Shots>()?, Shots::Of(5));
/// assert_eq!("all".parse::<Shots>()?.to_string(), "all");
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shots {
    /// So many, or all of a class that has fewer.
    Of(usize),
    /// All there are.
    All,
}

impl fmt::Display for Shots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(count) => write!(f, "{count}"),
            Self::All => f.write_str("all"),
        }
    }
}

impl FromStr for Shots {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::Setting {
            name: "shots",
            value: text.to_owned(),
            reason: "a number of samples of each class, or all",
        };
        match text.parse() {
            Ok(0) => Err(bad()),
            Ok(count) => Ok(Self::Of(count)),
            Err(_) if text == "all" => Ok(Self::All),
            Err(_) => Err(bad()),
        }
    }
}

impl Serialize for Shots {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shots {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What is tried: so many shots, each in several draws, each draw in several orders of its rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Shots.
    pub shots: Vec<Shots>,
    /// Draws; all samples can be drawn in one way alone.
    pub draws: usize,
    /// Orders of the rows of each draw; the first is that of the file.
    pub orders: usize,
    /// Seed of draws and orders.
    pub seed: u64,
}

/// One draw in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Samples of each class.
    pub shots: Shots,
    /// Which draw.
    pub draw: usize,
    /// Which order of its rows.
    pub order: usize,
}

impl Design {
    /// All cells.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &shots in &self.shots {
            let draws = if shots == Shots::All { 1 } else { self.draws };
            for draw in 0..draws {
                cells.extend((0..self.orders).map(|order| Cell { shots, draw, order }));
            }
        }
        cells
    }

    /// The rows that a cell learns. The rows of few shots are among those of more.
    pub fn rows(&self, samples: &Samples, cell: Cell) -> Vec<usize> {
        let mut left = vec![usize::MAX; samples.classes().len()];
        if let Shots::Of(count) = cell.shots {
            left.fill(count);
        }
        let seed = random::mix(self.seed, cell.draw as u64);
        let mut rows = random::permutation(seed, samples.len());
        rows.retain(|&row| {
            let left = &mut left[samples.labels()[row] as usize];
            let taken = *left > 0;
            *left = left.saturating_sub(1);
            taken
        });
        rows.sort_unstable();
        if cell.order == 0 {
            return rows;
        }
        let order = random::permutation(random::mix(seed, cell.order as u64), rows.len());
        order.into_iter().map(|at| rows[at]).collect()
    }
}

/// One method on one draw in one order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The name it was asked for under.
    pub method: String,
    /// Samples of each class.
    pub shots: String,
    /// Which draw.
    pub draw: usize,
    /// Which order of its rows.
    pub order: usize,
    /// Samples learned.
    pub samples: usize,
    /// Accuracy in percent on all test samples.
    pub accuracy: f64,
    /// Expected calibration error over 15 bins of equal mass, where there are probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration_error: Option<f64>,
    /// Mean −ln of the probability of the true class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<f64>,
    /// What was chosen: settings with their values.
    #[serde(default)]
    pub chosen: BTreeMap<String, String>,
    /// Bytes kept, all classes together.
    pub bytes: usize,
    /// Seconds to choose settings and learn.
    pub learn_seconds: f64,
    /// Seconds to measure all test samples.
    pub predict_seconds: f64,
}

impl Trial {
    /// Learns the rows of a cell and asks about all test samples. Nothing is taken over from other
    /// trials, settings least of all.
    pub fn run(
        split: &Split,
        method: &Method,
        (design, cell): (&Design, Cell),
        options: &ModelOptions,
        peers: &PeerSettings,
    ) -> Result<Self> {
        let train = split.train.select(&design.rows(&split.train, cell));
        let options = ModelOptions { tuner: std::sync::Arc::default(), ..options.clone() };
        let mut learner = method.learner(&options, peers);
        let started = Instant::now();
        learner.learn(&train)?;
        let learn_seconds = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let evaluation = learner.evaluate(&split.test)?;
        let predict_seconds = started.elapsed().as_secs_f64();
        let labels = split.test.labels();
        let (accuracy, calibration_error, log_loss) = assess(&evaluation, labels);
        let chosen = learner.choices().iter();
        Ok(Self {
            method: method.name().to_owned(),
            shots: cell.shots.to_string(),
            draw: cell.draw,
            order: cell.order,
            samples: train.len(),
            accuracy,
            calibration_error,
            log_loss,
            chosen: chosen.map(|choice| (choice.setting.clone(), choice.value.clone())).collect(),
            bytes: learner.bytes(),
            learn_seconds,
            predict_seconds,
        })
    }

    /// Whether it is that of a method in a cell.
    pub fn is_of(&self, method: &str, cell: Cell) -> bool {
        let place = (self.method.as_str(), self.shots.as_str(), self.draw, self.order);
        place == (method, &*cell.shots.to_string(), cell.draw, cell.order)
    }
}

/// Accuracy, calibration error and log loss.
fn assess(evaluation: &Evaluation, labels: &[u32]) -> (f64, Option<f64>, Option<f64>) {
    let rows = || evaluation.distances.iter_rows().zip(labels);
    let correct: Vec<bool> = rows().map(|(row, &label)| least(row) == label as usize).collect();
    let accuracy = share(&correct);
    let Some(temperature) = evaluation.temperature else { return (accuracy, None, None) };
    let (mut confidence, mut loss) = (Vec::with_capacity(labels.len()), 0f64);
    for (row, &label) in rows() {
        let probabilities = softmin(row, temperature);
        confidence.push(probabilities[least(row)]);
        loss -= probabilities[label as usize].max(1e-12).ln();
    }
    let error = metrics::calibration_error_by_mass(&confidence, &correct, BINS);
    (accuracy, Some(error), Some(loss / labels.len().max(1) as f64))
}

fn share(correct: &[bool]) -> f64 {
    100.0 * correct.iter().filter(|right| **right).count() as f64 / correct.len().max(1) as f64
}

/// All trials on one data set, and what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FewShotRecord {
    /// Version of this format.
    pub version: u32,
    /// Version of the program.
    pub program: String,
    /// Name of the features file.
    pub features: String,
    /// Where training and test samples came from.
    pub split: String,
    /// Hash of all samples and labels.
    pub data: String,
    /// Number of classes.
    pub classes: usize,
    /// Number of test samples.
    pub tested: usize,
    /// Seed of draws and orders.
    pub seed: u64,
    /// Settings given; the others are chosen.
    pub given: NamedValues,
    /// Settings that are not chosen, and defaults of those that are.
    pub settings: NamedValues,
    /// Settings of the peers.
    pub peers: NamedValues,
    /// The trials.
    pub trials: Vec<Trial>,
}

impl FewShotRecord {
    /// A record without a trial.
    pub fn begin(
        split: &Split,
        (features, origin): (&str, &str),
        seed: u64,
        options: &ModelOptions,
        peers: &PeerSettings,
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        split.train.add_to_hash(&mut hasher);
        split.test.add_to_hash(&mut hasher);
        Self {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            features: features.to_owned(),
            split: origin.to_owned(),
            data: hasher.finalize().to_hex()[..16].to_owned(),
            classes: split.train.classes().len(),
            tested: split.test.len(),
            seed,
            // these structs have named fields alone, which are always an object of JSON
            given: named_values(&options.given).unwrap_or_default(),
            settings: named_values(&options.settings).unwrap_or_default(),
            peers: named_values(peers).unwrap_or_default(),
            trials: Vec::new(),
        }
    }

    /// Whether trials of the other may stand beside those of this one.
    pub fn is_alike(&self, other: &Self) -> bool {
        Self { trials: Vec::new(), ..self.clone() } == Self { trials: Vec::new(), ..other.clone() }
    }

    /// One line for each method and number of shots, in the order of the trials.
    pub fn summaries(&self) -> Vec<Summary> {
        let mut groups: Vec<((&str, &str), Vec<&Trial>)> = Vec::new();
        for trial in &self.trials {
            let key = (trial.method.as_str(), trial.shots.as_str());
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, trials)) => trials.push(trial),
                None => groups.push((key, vec![trial])),
            }
        }
        groups.iter().map(|(_, trials)| Summary::of(trials, self.classes)).collect()
    }

    /// All trials as CSV.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "method,shots,draw,order,samples,accuracy,calibration_error,log_loss,bytes,\
             learn_seconds,predict_seconds,chosen\n",
        );
        let number = |value: Option<f64>| value.map_or(String::new(), |it| format!("{it:.4}"));
        for trial in &self.trials {
            let chosen: Vec<String> =
                trial.chosen.iter().map(|(setting, value)| format!("{setting}={value}")).collect();
            let _ = writeln!(
                text,
                "{},{},{},{},{},{:.2},{},{},{},{:.3},{:.3},{}",
                quoted(&trial.method),
                trial.shots,
                trial.draw,
                trial.order,
                trial.samples,
                trial.accuracy,
                number(trial.calibration_error),
                number(trial.log_loss),
                trial.bytes,
                trial.learn_seconds,
                trial.predict_seconds,
                quoted(&chosen.join(" ")),
            );
        }
        text
    }
}

/// All trials of one method with so many shots.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The method.
    pub method: String,
    /// Samples of each class.
    pub shots: String,
    /// Draws.
    pub draws: usize,
    /// Accuracy in percent of each draw: the mean over its orders.
    pub accuracies: Vec<f64>,
    /// Of each draw, how far apart the accuracies of its orders lie: the largest less the smallest.
    pub spreads: Vec<f64>,
    /// Calibration error of each trial that has one.
    pub calibration_errors: Vec<f64>,
    /// Each setting chosen with its commonest value and the share of trials that took it.
    pub chosen: Vec<(String, String, f64)>,
    /// Mean bytes kept per class.
    pub bytes_per_class: f64,
    /// Mean seconds to choose, learn and measure the test samples.
    pub seconds: f64,
}

impl Summary {
    fn of(trials: &[&Trial], classes: usize) -> Self {
        let mut draws: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut values: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for trial in trials {
            draws.entry(trial.draw).or_default().push(trial.accuracy);
            for (setting, value) in &trial.chosen {
                *values.entry(setting).or_default().entry(value).or_default() += 1;
            }
        }
        let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let chosen = values.into_iter().filter_map(|(setting, values)| {
            let (value, count) = values.into_iter().max_by_key(|(_, count)| *count)?;
            Some((setting.to_owned(), value.to_owned(), count as f64 / trials.len() as f64))
        });
        let mean = |pick: &dyn Fn(&Trial) -> f64| {
            mean_deviation(&trials.iter().map(|trial| pick(trial)).collect::<Vec<_>>()).0
        };
        Self {
            method: trials[0].method.clone(),
            shots: trials[0].shots.clone(),
            draws: draws.len(),
            accuracies: draws.values().map(|orders| mean_deviation(orders).0).collect(),
            spreads: draws.values().map(|orders| most(orders) - least(orders)).collect(),
            calibration_errors: trials.iter().filter_map(|it| it.calibration_error).collect(),
            chosen: chosen.collect(),
            bytes_per_class: mean(&|trial| trial.bytes as f64) / classes.max(1) as f64,
            seconds: mean(&|trial| trial.learn_seconds + trial.predict_seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ivoro::Matrix;

    /// Classes of unequal size, the number of a row as its only feature.
    fn samples(sizes: &[usize]) -> Samples {
        let labels: Vec<u32> =
            (0u32..).zip(sizes).flat_map(|(class, &size)| vec![class; size]).collect();
        let numbers = (0..labels.len()).map(|row| row as f32).collect();
        let points = Matrix::new(labels.len(), 1, numbers).unwrap();
        Samples::single("test", points, labels, sizes.len()).unwrap()
    }

    fn design() -> Design {
        let shots = vec![Shots::Of(1), Shots::Of(3), Shots::All];
        Design { shots, draws: 4, orders: 3, seed: 7 }
    }

    #[test]
    fn a_draw_has_as_many_of_each_class_as_there_are_and_holds_the_smaller_draws() {
        let (samples, design) = (samples(&[5, 2, 9]), design());
        assert_eq!(design.cells().len(), (4 + 4 + 1) * 3);
        let mut seen = std::collections::HashSet::new();
        for draw in 0..4 {
            let cell = Cell { shots: Shots::Of(3), draw, order: 0 };
            let rows = design.rows(&samples, cell);
            let of = |class| rows.iter().filter(|&&row| samples.labels()[row] == class).count();
            assert_eq!([of(0), of(1), of(2)], [3, 2, 3]);
            let fewer = design.rows(&samples, Cell { shots: Shots::Of(1), ..cell });
            assert!(fewer.iter().all(|row| rows.contains(row)));
            let mut other = design.rows(&samples, Cell { order: 2, ..cell });
            assert_ne!(rows, other);
            other.sort_unstable();
            assert_eq!(rows, other);
            seen.insert(rows);
        }
        assert!(seen.len() > 1);
        let all = design.rows(&samples, Cell { shots: Shots::All, draw: 0, order: 0 });
        assert!(all.into_iter().eq(0..16));
    }

    #[test]
    fn a_summary_tells_the_spread_of_orders_from_that_of_draws() {
        let trial = |draw, order, accuracy| Trial {
            method: "iVoro".to_owned(),
            shots: "5".to_owned(),
            draw,
            order,
            accuracy,
            bytes: 200,
            chosen: BTreeMap::from([("ridge".to_owned(), format!("{}", 1 + order / 2))]),
            ..Trial::default()
        };
        let trials = vec![
            trial(0, 0, 70.0),
            trial(0, 1, 71.0),
            trial(0, 2, 72.0),
            trial(1, 0, 60.0),
            trial(1, 1, 60.0),
            trial(1, 2, 60.0),
        ];
        let record = FewShotRecord { classes: 2, trials, ..FewShotRecord::default() };
        let [summary] = &record.summaries()[..] else { panic!("one method") };
        assert_eq!((summary.draws, summary.accuracies.clone()), (2, vec![71.0, 60.0]));
        assert_eq!(summary.spreads, [2.0, 0.0]);
        let (setting, value, share) = &summary.chosen[0];
        assert_eq!((setting.as_str(), value.as_str()), ("ridge", "1"));
        assert!((share - 4.0 / 6.0).abs() < 1e-12 && summary.bytes_per_class == 100.0);
        let back: FewShotRecord =
            serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(back, record);
        assert_eq!(record.csv().lines().count(), 7);
    }

    #[test]
    fn no_shot_and_nonsense_are_refused() {
        for text in ["0", "-1", "some", ""] {
            assert!(text.parse::<Shots>().is_err(), "{text}");
        }
    }
}
