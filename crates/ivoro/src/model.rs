//! A model people work with: a head, its settings chosen on the base phase, and what turns its
//! distances into probabilities and rejections.

mod receipt;
mod taking_back;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use crate::calibration::{Calibration, softmin};
use crate::default_variant::{self, Budget};
use crate::diagram::Nearest;
use crate::error::{Error, Result};
pub use crate::head::BurstRule;
use crate::head::{
    Answers, Approximation, Forgetting, Head, Indexed, Merging, Scatter, SealOptions, Sealing,
    Settings, Variant, Views,
};
use crate::journal::{Journal, Verb};
use crate::lesson;
use crate::matrix::Matrix;
use crate::network::NetworkDescription;
pub use crate::prediction::{AskOptions, Candidate, Prediction};
use crate::rehearsal::Rehearsal;
use crate::samples::{Points, Samples};
use crate::tune::{Choice, Given, Tuner};

pub use receipt::Receipt;

/// The largest ridge that is tried where smaller ones leave a metric that can't be inverted.
const MOST_RIDGE: f64 = 100.0;
/// Distances held at once while queries are compared with all classes: 256 MB.
const MOST_DISTANCES: usize = 1 << 26;

/// A classifier that can be taught, asked, corrected, merged and saved.
///
/// ```
/// use ivoro::{Samples, Matrix, Model, Variant};
/// let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// let samples = Samples::single("demo", points, vec![0, 0, 1, 1], 2)?;
/// model.learn(&samples)?;
/// assert_eq!(model.head().predict(&samples)?, [0, 0, 1, 1]);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    head: Head,
    given: Given,
    tuner: Arc<Tuner>,
    /// Where no variant was named: what the one may cost that is chosen with the first classes.
    budget: Option<Budget>,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) network: Option<String>,
    /// How images became features, where that was told.
    pub(crate) description: Option<NetworkDescription>,
    pub(crate) journal: Journal,
    /// On whose arithmetic N and K made points.
    pub(crate) machines: Vec<String>,
    /// What this machine's is, once it was asked for.
    arithmetic: OnceLock<Option<String>>,
    /// The time for the journal, where it was told.
    now: Option<u64>,
}

/// What a learner says of queries, for an evaluation.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// # let query = Points::single("tuesday", Matrix::new(1, 2, vec![4.9, 5.2])?)?;
/// let evaluation = model.evaluate(&query)?;
/// assert!(evaluation.distances.row(0)[1] < evaluation.distances.row(0)[0]);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// One row per query, one column per class, smaller is nearer.
    pub distances: Matrix,
    /// How unlike anything known each query is, where that can be said.
    pub strangeness: Option<Vec<f64>>,
    /// How much the views of each query disagree, where there are several.
    pub uncertainty: Option<Vec<f64>>,
    /// Temperature that turns distances into probabilities, where there is one.
    pub temperature: Option<f64>,
    /// Strangeness above which 5 % of known queries are to be rejected, where that can be said.
    pub threshold: Option<f64>,
}

/// Share of known queries that an evaluation rejects.
const REJECTED: f64 = 0.05;

impl Evaluation {
    /// Distances alone.
    pub fn of(distances: Matrix) -> Self {
        Self { distances, strangeness: None, uncertainty: None, temperature: None, threshold: None }
    }
}

/// How a model is set up.
///
/// ```
/// use ivoro::{Model, ModelOptions, Settings, Variant};
/// let settings = Settings { volume: 1.0, ..Settings::default() };
/// let options = ModelOptions { settings, ..ModelOptions::default() };
/// let model = Model::new("iVoro-Q".parse::<Variant>()?, options);
/// assert_eq!(model.head().settings().volume, 1.0);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// Settings that are not tuned, and defaults of those that are.
    pub settings: Settings,
    /// Settings given; the others are chosen on the base phase.
    pub given: Given,
    /// Shared by models that are compared, so that a choice is made once.
    pub tuner: Arc<Tuner>,
}

impl Model {
    /// A model that knows no class.
    ///
    /// Settings are checked when the first classes are learned.
    pub fn new(variant: Variant, options: ModelOptions) -> Self {
        let ModelOptions { settings, given, tuner } = options;
        let head = Head::unchecked(variant, settings);
        let model = Self::from_parts(head, None, Vec::new(), None);
        Self { given, tuner, ..model }
    }

    /// A model that knows no class and takes, with the first ones, the variant that suits them best
    /// within a budget. From then on it keeps to it.
    ///
    /// Until then its head is one of `iVoro-NFW`, which says what images should be looked at.
    pub fn choosing(options: ModelOptions, budget: Budget) -> Self {
        let variant = Variant { flip: true, ..default_variant::FIRST };
        Self { budget: Some(budget), ..Self::new(variant, options) }
    }

    pub(crate) fn from_parts(
        head: Head,
        calibration: Option<Calibration>,
        choices: Vec<Choice>,
        network: Option<String>,
    ) -> Self {
        Self {
            head,
            given: Given::default(),
            tuner: Arc::default(),
            budget: None,
            calibration,
            choices,
            network,
            description: None,
            journal: Journal::default(),
            machines: Vec::new(),
            arithmetic: OnceLock::new(),
            now: None,
        }
    }

    pub(crate) fn reduce_to_predictor(&mut self, scatter: &mut Scatter<'_>) -> Result<()> {
        self.head.reduce_to_predictor(scatter)
    }

    /// Hash of the network whose features the model was taught with, where that was told.
    pub fn network(&self) -> Option<&str> {
        self.network.as_deref()
    }

    /// Says which network the features come from; a model keeps to its first one.
    pub fn use_network(&mut self, fingerprint: &str) -> Result<()> {
        self.check_network(fingerprint)?;
        if self.head.classes().is_empty() {
            self.network = Some(fingerprint.to_owned());
        }
        Ok(())
    }

    /// Refuses features of another network than the model was taught with.
    pub fn check_network(&self, fingerprint: &str) -> Result<()> {
        let described = self.description.as_ref().map(|described| &described.hash);
        match described.or(self.network.as_ref()) {
            Some(expected) if expected != fingerprint => Err(Error::OtherNetwork {
                expected: expected.clone(),
                found: fingerprint.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// How images became the features that the model was taught with, where that was told.
    pub fn network_description(&self) -> Option<&NetworkDescription> {
        self.description.as_ref()
    }

    /// Says which network computes features of images now, and how they are brought to it; a model keeps to
    /// the first. A model that knows the hash alone, as those of version 0.1, takes over the rest; one that
    /// was taught features of unknown origin does not, since nothing says that they are of this one.
    pub fn use_described_network(&mut self, description: &NetworkDescription) -> Result<()> {
        self.use_described_features(description)?;
        if self.description.is_some() {
            self.network = Some(description.hash.clone());
        }
        Ok(())
    }

    /// The same of features that a file holds: they can be had again to the last bit, which those of images
    /// can't.
    pub fn use_described_features(&mut self, description: &NetworkDescription) -> Result<()> {
        self.check_described_network(description)?;
        if self.head.classes().is_empty() || self.network.is_some() {
            self.description.get_or_insert_with(|| description.clone());
        }
        Ok(())
    }

    /// Refuses another network than the model was taught with, and other ways to bring images to it.
    pub fn check_described_network(&self, description: &NetworkDescription) -> Result<()> {
        match &self.description {
            Some(own) => own.check_same(description),
            None => self.check_network(&description.hash),
        }
    }

    /// The head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What temperature and thresholds come from; none of a model of version 0.1 whose
    /// base phase was too small.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// How each setting was chosen.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// Learns new classes as one phase; the first one also settles what was not given.
    pub fn learn(&mut self, phase: &Samples) -> Result<()> {
        let classes = self.named(phase);
        self.entered(Verb::Learn, classes, None, |model| model.learn_phase(phase))?;
        self.note_machine();
        Ok(())
    }

    fn learn_phase(&mut self, phase: &Samples) -> Result<()> {
        if !self.head.layers().is_empty() {
            return self.learn_later(phase);
        }
        let (mut variant, mut defaults) = (self.head.variant(), self.head.settings().clone());
        let rehearsal = Rehearsal::of(phase, defaults.seed);
        let mut choices = Vec::new();
        if let Some(budget) = self.budget {
            defaults.check()?;
            let asked = (&defaults, &self.given, &*self.tuner);
            let chosen = default_variant::choose(phase, asked, budget, rehearsal.as_ref())?;
            (variant, defaults) = (chosen.variant, chosen.settings);
            choices.push(chosen.choice);
        }
        let tuned = self.tuner.tune(variant, &defaults, &self.given, rehearsal.as_ref())?;
        choices.extend(tuned.choices);
        let mut settings = tuned.settings;
        self.tuner.say("learning");
        let (head, calibration) = loop {
            match self.begun(variant, settings.clone(), phase) {
                // what was chosen for fewer samples must not stop the learning of all
                Err(Error::NotPositiveDefinite { .. })
                    if self.given.ridge.is_none() && settings.ridge < MOST_RIDGE =>
                {
                    settings.ridge = 10.0 * settings.ridge.max(MOST_RIDGE / 1e4);
                    choices.push(Choice {
                        setting: "ridge".to_owned(),
                        value: settings.ridge.to_string(),
                        variant: variant.to_string(),
                        rule: "a smaller one could not be inverted".to_owned(),
                        ..Choice::default()
                    });
                }
                begun => break begun?,
            }
        };
        (self.head, self.calibration, self.choices) = (head, Some(calibration), choices);
        (self.budget, self.arithmetic) = (None, OnceLock::new());
        Ok(())
    }

    /// A head that has learned the first phase with these settings, and its calibration.
    fn begun(
        &self,
        variant: Variant,
        settings: Settings,
        phase: &Samples,
    ) -> Result<(Head, Calibration)> {
        let mut head = Head::new(variant, settings)?.sharing(self.tuner.probes());
        let before = (!head.is_additive()).then(|| head.clone());
        head.learn(phase)?;
        let mut calibration = Calibration::default();
        if let Some(measured) = lesson::measure(before.as_ref(), &head, phase)? {
            calibration.add(measured);
        }
        Ok((head, calibration))
    }

    /// Learns a phase that is not the first, and asks it before it counts.
    fn learn_later(&mut self, phase: &Samples) -> Result<()> {
        let Some(calibration @ Calibration::Lessons(_)) = &mut self.calibration else {
            return self.head.learn(phase);
        };
        let last = calibration.lessons().iter().map(|lesson| lesson.known).max();
        if !lesson::is_due(&self.head, lesson::names(phase).len(), last) {
            return self.head.learn(phase);
        }
        // asking takes long and may be stopped: until then nothing has changed
        let mut head = self.head.clone();
        head.learn(phase)?;
        let before = (!self.head.is_additive()).then_some(&self.head);
        if let Some(measured) = lesson::measure(before, &head, phase)? {
            calibration.add(measured);
        }
        self.head = head;
        Ok(())
    }

    /// Calibrates on samples of known classes that the model has not learned: from now on they alone,
    /// and lessons yet to come, say how strange known queries are and how sure answers may be.
    /// Samples that were learned look better than queries will.
    ///
    /// ```
    /// # use ivoro::{Matrix, Model, Samples, Variant};
    /// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
    /// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
    /// # model.learn(&Samples::single("monday", points, vec![0, 0, 1, 1], 2)?)?;
    /// let points = Matrix::new(2, 2, vec![0.1, 0.2, 5.2, 5.0])?;
    /// model.calibrate(&Samples::single("held out", points, vec![0, 1], 2)?)?;
    /// assert_eq!(model.calibration().unwrap().samples(), 2);
    /// # Ok::<(), ivoro::Error>(())
    /// ```
    pub fn calibrate(&mut self, samples: &Samples) -> Result<()> {
        let measured = lesson::measure_fresh(&self.head, samples)?;
        let mut calibration = Calibration::default();
        calibration.add(measured.ok_or_else(|| Error::Unsupported {
            what: format!("{}: distances to these samples can't be calibrated", samples.origin()),
        })?);
        self.calibration = Some(calibration);
        self.note(Verb::Calibrate, self.named(samples), samples.len() as u64);
        Ok(())
    }

    /// Learns whatever the samples are of: new classes together as one phase, and more samples of
    /// known ones. On an error nothing has changed.
    pub fn teach(&mut self, samples: &Samples) -> Result<()> {
        let known: HashSet<&str> =
            self.head.classes().iter().map(|class| class.name.as_str()).collect();
        let fresh: Vec<bool> =
            samples.classes().iter().map(|name| !known.contains(name.as_str())).collect();
        let is_fresh = |label: u32| fresh[label as usize];
        if samples.labels().iter().all(|&label| is_fresh(label)) {
            return self.learn(samples);
        }
        if !samples.labels().iter().any(|&label| is_fresh(label)) {
            return self.update(samples).map(drop);
        }
        let mut changed = self.clone();
        // one entry for all: as one lesson they can be taken back
        let classes = self.named(samples);
        changed.entered(Verb::Learn, classes, None, |model| {
            model.head.update(&samples.of_classes(|label| !is_fresh(label)))?;
            model.learn_phase(&samples.of_classes(is_fresh))
        })?;
        changed.note_machine();
        *self = changed;
        Ok(())
    }

    /// Adds samples to known classes; see [`Head::update`]. Where little was measured before, as of a model
    /// begun with single samples, they are asked before they count.
    pub fn update(&mut self, samples: &Samples) -> Result<Vec<(String, usize)>> {
        let classes = self.named(samples);
        let measured = match &self.calibration {
            Some(known @ Calibration::Lessons(_))
                if lesson::is_wanting(samples.len(), known.samples()) =>
            {
                lesson::measure_fresh(&self.head, samples)?
            }
            _ => None,
        };
        let report =
            self.entered(Verb::Update, classes, None, |model| model.head.update(samples))?;
        self.calibration.iter_mut().zip(measured).for_each(|(known, it)| known.add(it));
        self.note_machine();
        Ok(report)
    }

    /// Forgets a class; see [`Head::forget`]. Settings chosen on the base phase stay as they are. What
    /// was measured of the class alone for probabilities and rejection goes with it.
    pub fn forget(&mut self, class: &str, how: Forgetting) -> Result<()> {
        self.entered(Verb::Forget, vec![class.to_owned()], None, |model| {
            model.changing_the_first(|head| head.forget(class, how))
        })?;
        self.drop_measured(&[class.to_owned()]);
        Ok(())
    }

    /// What was measured of classes that are forgotten goes with them.
    fn drop_measured(&mut self, classes: &[String]) {
        if let Some(calibration) = &mut self.calibration {
            calibration.forget(classes);
        }
    }

    /// Seals classes of Q, those named or all: afterwards they keep a centre and few directions and no
    /// sums. They can be asked, forgotten, and merged exactly with models of other classes
    /// that share the sealed metric: those that started from this one. No sample can be added to them
    /// or taken away any more.
    ///
    /// The first sealing fixes the metric, from all classes that the model knows then; classes that are
    /// learned later are measured in it. Forgetting a sealed class takes all that is kept of it alone.
    /// What it gave to the metric stays: forget before sealing what must leave no trace.
    /// See [`SealOptions`].
    pub fn seal(&mut self, classes: Option<&[String]>, options: SealOptions) -> Result<Sealing> {
        let sealing = self.head.seal(classes, options)?;
        self.note(Verb::Seal, sealing.classes.clone(), 0);
        Ok(sealing)
    }

    /// Changes the head. Where classes of the first phase go with it, the temperature is from now on
    /// the one that it has now.
    fn changing_the_first<T>(&mut self, change: impl FnOnce(&mut Head) -> Result<T>) -> Result<T> {
        let fitted = self.settled_calibration();
        let before = first_phase(&self.head);
        let outcome = change(&mut self.head)?;
        if first_phase(&self.head) != before {
            self.calibration = fitted;
        }
        Ok(outcome)
    }

    /// The calibration with the temperature of now, whatever the first phase will be.
    fn settled_calibration(&self) -> Option<Calibration> {
        let fitted = self.calibration.clone()?;
        let Calibration::Fixed(fixed) = fitted else { return Some(fitted) };
        let now = self.fitted_temperature().ok().flatten().unwrap_or(fixed.temperature);
        Some(Calibration::Fixed(fixed.settled(now)))
    }

    /// A model of the same variant, settings, calibration and value range that knows no class; see
    /// [`Head::emptied`].
    #[must_use]
    pub fn emptied(&self) -> Self {
        let (calibration, choices) = (self.settled_calibration(), self.choices.clone());
        let emptied =
            Self::from_parts(self.head.emptied(), calibration, choices, self.network.clone());
        Self { description: self.description.clone(), ..emptied }
    }

    /// Makes one phase, in this order, of the classes that came after so many phases, which may have
    /// been learned in parts at several places; a class that is not named comes last. Without phases
    /// before, and if the first phase of `begun` is the same, its calibration is taken over. Probes belong
    /// to a phase of their own: models that have them are refused.
    pub fn gather_phase(&mut self, after: usize, order: &[String], begun: &Self) -> Result<()> {
        self.head.gather_phase(after, order)?;
        if after == 0 && first_phase(&self.head) == first_phase(&begun.head) {
            self.calibration.clone_from(&begun.calibration);
        }
        Ok(())
    }

    /// T of p_k ∝ exp(−d_k / T): measured on samples before they were learned, in units of the gap
    /// between classes; or, in an older model without calibration, that of round Gaussian classes
    /// whose spread is the mean one.
    pub fn temperature(&self) -> Result<f64> {
        if let Some(fitted) = self.fitted_temperature()? {
            return Ok(fitted);
        }
        if self.head.variant().is_metric() {
            return Ok(2.0);
        }
        let typical = self.head.typical_distances()?;
        let centroids = self.head.centroids()?;
        let dims: usize = centroids.iter().map(Matrix::cols).sum();
        let mean = typical.iter().sum::<f64>() / typical.len().max(1) as f64;
        Ok((2.0 * mean / dims.max(1) as f64).abs().max(f64::MIN_POSITIVE))
    }

    /// The fitted one, in the metric of now.
    fn fitted_temperature(&self) -> Result<Option<f64>> {
        let known = self.head.classes().len();
        Ok(match &self.calibration {
            None => None,
            Some(Calibration::Fixed(fixed)) => {
                let reach = if fixed.reach.is_some() { self.head.reach()? } else { None };
                Some(fixed.temperature_at(reach))
            }
            Some(Calibration::Lessons(_)) if known == 0 => None,
            Some(Calibration::Lessons(measured)) => {
                let gap = Some(self.head.background()?.gap).filter(|gap| *gap > 0.0);
                // a single class, or classes at the same place: any temperature says the same
                Some(gap.map_or(1.0, |gap| gap * measured.temperature(known)))
            }
        })
    }

    /// The temperature of probabilities that are told; none where probes or votes decide and nothing was
    /// measured: then nothing says how sure their answers are.
    fn temperature_of_answers(&self) -> Result<Option<f64>> {
        let variant = self.head.variant();
        let probes = variant.divide || variant.residual;
        match &self.calibration {
            Some(known @ Calibration::Lessons(_))
                if known.samples() == 0 && (probes || variant.views == Views::Consensus) =>
            {
                Ok(None)
            }
            _ => self.fitted_temperature(),
        }
    }

    /// Merges another model; see [`Head::merge`].
    pub fn merge(&mut self, other: &Self, ancestor: Option<&Self>) -> Result<Merging> {
        self.check_network_of(other)?;
        let before = self.head.samples();
        let ancestor = ancestor.map(|model| &model.head);
        let report = self.changing_the_first(|head| head.merge(&other.head, ancestor))?;
        match (&mut self.calibration, other.settled_calibration()) {
            (Some(own), Some(theirs)) => own.join(&theirs),
            (own @ None, theirs) => *own = theirs,
            (Some(_), None) => {}
        }
        self.drop_measured(&report.forgotten);
        if self.network.is_none() {
            self.network.clone_from(&other.network);
        }
        if self.description.is_none() {
            self.description.clone_from(&other.description);
        }
        self.join_history(other, &report, before);
        Ok(report)
    }

    /// Refuses a model that was taught with another network, or with images brought to it otherwise.
    fn check_network_of(&self, other: &Self) -> Result<()> {
        match (&other.description, &other.network) {
            (Some(theirs), _) => self.check_described_network(theirs),
            (None, Some(theirs)) => self.check_network(theirs),
            (None, None) => Ok(()),
        }
    }

    /// Takes over the settings of a model that could be merged into this one; what is kept of samples
    /// stays as it is.
    ///
    /// ```
    /// # use ivoro::{Matrix, Model, ModelOptions, Samples, Settings};
    /// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
    /// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
    /// let with_ridge = |ridge| {
    ///     let settings = Settings { ridge, ..Settings::default() };
    ///     let mut model =
    ///         Model::new("iVoro-W".parse()?, ModelOptions { settings, ..Default::default() });
    ///     model.learn(&monday).map(|()| model)
    /// };
    /// let (mut model, other) = (with_ridge(1.0)?, with_ridge(3.0)?);
    /// model.take_settings(&other)?;
    /// assert!(model.head() == other.head());
    /// # Ok::<(), ivoro::Error>(())
    /// ```
    pub fn take_settings(&mut self, other: &Self) -> Result<()> {
        self.head.take_settings(&other.head)?;
        self.choices.clone_from(&other.choices);
        Ok(())
    }

    /// Classes, distances, probabilities, uncertainty and rejection of every query.
    pub fn ask(&self, queries: &Points, options: AskOptions) -> Result<Vec<Prediction>> {
        let threshold = options.false_rejection.map(|share| self.threshold(share)).transpose()?;
        if options.burst.is_none()
            && let Some(indexed) = self.head.indexed(options.search)?
        {
            return self.ask_index(indexed, queries, threshold, options);
        }
        let size = options.burst.map_or(1, |(size, _)| size.max(1));
        let rows = MOST_DISTANCES / self.head.classes().len().max(1);
        let rows = rows.max(1).next_multiple_of(size);
        if queries.len() <= rows {
            return self.ask_all(queries, threshold, options);
        }
        let mut out = Vec::with_capacity(queries.len().div_ceil(size));
        let all: Vec<usize> = (0..queries.len()).collect();
        for rows in all.chunks(rows) {
            out.extend(self.ask_all(&queries.select(rows), threshold, options)?);
        }
        Ok(out)
    }

    /// How [`Model::ask`] finds classes, where it does not compare a query with all of them.
    pub fn approximation(&self, options: AskOptions) -> Result<Option<Approximation>> {
        if options.burst.is_some() {
            return Ok(None);
        }
        Ok(self.head.indexed(options.search)?.map(Indexed::about))
    }

    fn ask_index(
        &self,
        indexed: &Indexed,
        queries: &Points,
        threshold: Option<f64>,
        options: AskOptions,
    ) -> Result<Vec<Prediction>> {
        let top = options.top.clamp(1, self.head.classes().len().max(1));
        let found = self.head.ask_index(indexed, queries, top)?;
        let nearest: Vec<Nearest> = found.chunks_exact(top).map(|found| found[0]).collect();
        let strangeness = self.head.strangeness_of_nearest(queries, &nearest)?;
        let strangeness = if self.is_fixed() { strangeness.1 } else { strangeness.0 };
        let prediction = |(found, strangeness): (&[Nearest], f64)| {
            let reached = found.iter().filter(|nearest| nearest.distance.is_finite());
            let candidate = |nearest: &Nearest| Candidate {
                class: self.head.classes()[nearest.cell as usize].name.clone(),
                distance: nearest.distance,
                probability: None,
            };
            Prediction {
                top: reached.map(candidate).collect(),
                uncertainty: 0.0,
                strangeness: Some(strangeness),
                unknown: threshold.map(|threshold| strangeness > threshold),
                burst: 1,
                approximate: true,
            }
        };
        Ok(found.chunks_exact(top).zip(strangeness).map(prediction).collect())
    }

    /// Compares every query with every class.
    fn ask_all(
        &self,
        queries: &Points,
        threshold: Option<f64>,
        options: AskOptions,
    ) -> Result<Vec<Prediction>> {
        let absolute = threshold.is_some() || !self.head.variant().lift;
        let answers = self.answers(queries, absolute)?;
        let voted = options.burst.is_some_and(|(_, rule)| answers.votes_in_bursts(rule));
        let answers = match options.burst {
            Some((size, rule)) => answers.in_bursts(size, rule)?,
            None => answers,
        };
        let temperature = self.temperature_of_answers()?;
        let rows = 0..answers.distances.rows();
        Ok(rows
            .map(|row| {
                // under AC a single vector is voted on too, and calibrated as that
                let alone = matches!(options.burst, Some((_, BurstRule::Vote)));
                let voted = voted && (answers.burst[row] > 1 || alone);
                let temperature = temperature.filter(|_| !voted);
                let mut prediction = self.prediction(&answers, row, options.top, temperature);
                prediction.unknown = threshold.map(|most| answers.strangeness[row] > most);
                prediction.strangeness = prediction.strangeness.filter(|_| absolute);
                prediction
            })
            .collect())
    }

    /// What the head says of queries, with the strangeness that thresholds are about.
    pub fn answers(&self, queries: &Points, absolute: bool) -> Result<Answers> {
        let answers = self.head.ask(queries, absolute)?;
        Ok(if self.is_fixed() { answers.with_plain_strangeness() } else { answers })
    }

    /// Whether thresholds are those of an older model.
    fn is_fixed(&self) -> bool {
        !matches!(self.calibration, Some(Calibration::Lessons(_)))
    }

    fn prediction(
        &self,
        answers: &Answers,
        row: usize,
        top: usize,
        temperature: Option<f64>,
    ) -> Prediction {
        let distances = answers.distances.row(row);
        let mut order: Vec<usize> = (0..distances.len()).collect();
        let top = top.clamp(1, order.len().max(1));
        let nearer = |&a: &usize, &b: &usize| distances[a].total_cmp(&distances[b]).then(a.cmp(&b));
        if top < order.len() {
            order.select_nth_unstable_by(top - 1, nearer);
            order.truncate(top);
        }
        order.sort_unstable_by(nearer);
        let burst = answers.burst[row];
        let scale = 1.0 / burst.max(1) as f32;
        let mean: Vec<f32> = distances.iter().map(|d| d * scale).collect();
        let probabilities = temperature.map(|temperature| softmin(&mean, temperature));
        let candidate = |&at: &usize| Candidate {
            class: self.head.classes()[at].name.clone(),
            distance: distances[at],
            probability: probabilities.as_ref().map(|p| p[at]),
        };
        Prediction {
            top: order.iter().map(candidate).collect(),
            uncertainty: answers.uncertainty[row],
            strangeness: Some(answers.strangeness[row]),
            unknown: None,
            burst,
            approximate: false,
        }
    }

    /// Distances to all classes and whatever else the model can say of queries.
    pub fn evaluate(&self, queries: &Points) -> Result<Evaluation> {
        let answers = self.answers(queries, !self.head.variant().lift)?;
        let (views, _) = self.head.variant().separate();
        Ok(Evaluation {
            strangeness: (!self.head.variant().lift).then_some(answers.strangeness),
            uncertainty: (views > 1).then_some(answers.uncertainty),
            temperature: self.temperature_of_answers()?,
            threshold: self.threshold(REJECTED).ok(),
            distances: answers.distances,
        })
    }

    /// Whether the model can say that a query is unknown.
    pub fn can_reject(&self) -> bool {
        self.threshold(REJECTED).is_ok()
    }

    /// Strangeness above which a query is rejected, if this share of known queries may be rejected
    /// wrongly.
    pub fn threshold(&self, share: f64) -> Result<f64> {
        let fixed = matches!(self.calibration, Some(Calibration::Fixed(_)));
        let (most, reason) = if fixed {
            (
                0.3,
                "expected a share from 0.001 to 0.3: a model of an earlier version knows no other until it is calibrated",
            )
        } else {
            (
                0.999,
                "expected a share of known queries from 0.001 to 0.999; nothing was measured beyond",
            )
        };
        if !(0.001..=most).contains(&share) {
            let value = share.to_string();
            return Err(Error::Setting { name: "false-rejection", value, reason });
        }
        let refused = |what: &str| Error::Unsupported { what: what.to_owned() };
        let Some(calibration) = &self.calibration else {
            return Err(refused(
                "rejection needs a threshold, and this model of an earlier version has none; \
                 calibrate it on samples it has not learned",
            ));
        };
        let classes = self.head.classes().len();
        let is_fixed = matches!(calibration, Calibration::Fixed(_));
        if !is_fixed && classes > 0 && self.head.background()?.usual <= 0.0 {
            return Err(refused(
                "rejection needs to know how far samples lie from their class: a second class, or \
                 a second sample that differs",
            ));
        }
        Ok(calibration.threshold(share, classes))
    }
}

/// The names of the classes that came first.
fn first_phase(head: &Head) -> Vec<String> {
    let classes = head.phases().first().copied().unwrap_or(0);
    head.classes().iter().take(classes).map(|class| class.name.clone()).collect()
}

/// A model that can be asked and nothing else: it holds no sums and no second moments, only the
/// diagram made of them. See [`decode_predictor`](crate::codec::decode_predictor).
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// # let query = Points::single("tuesday", Matrix::new(1, 2, vec![4.9, 5.2])?)?;
/// use ivoro::{AskOptions, codec};
/// let file = codec::encode(&model)?;
/// let predictor = codec::decode_predictor("model.ivoro".as_ref(), &file)?;
/// let found = predictor.ask(&query, AskOptions::default())?;
/// assert_eq!(found, model.ask(&query, AskOptions::default())?);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Debug)]
pub struct Predictor {
    model: Model,
}

impl Predictor {
    pub(crate) fn new(model: Model) -> Self {
        Self { model }
    }

    /// The variant.
    pub fn variant(&self) -> Variant {
        self.model.head().variant()
    }

    /// The names of the classes, in the order of arrival.
    pub fn classes(&self) -> impl Iterator<Item = &str> {
        self.model.head().classes().iter().map(|class| class.name.as_str())
    }

    /// See [`Model::check_network`].
    pub fn check_network(&self, fingerprint: &str) -> Result<()> {
        self.model.check_network(fingerprint)
    }

    /// See [`Model::check_described_network`].
    pub fn check_described_network(&self, description: &NetworkDescription) -> Result<()> {
        self.model.check_described_network(description)
    }

    /// See [`Model::network`].
    pub fn network(&self) -> Option<&str> {
        self.model.network()
    }

    /// See [`Model::network_description`].
    pub fn network_description(&self) -> Option<&NetworkDescription> {
        self.model.network_description()
    }

    /// See [`Model::can_reject`].
    pub fn can_reject(&self) -> bool {
        self.model.can_reject()
    }

    /// See [`Model::ask`].
    pub fn ask(&self, queries: &Points, options: AskOptions) -> Result<Vec<Prediction>> {
        self.model.ask(queries, options)
    }

    /// See [`Model::approximation`].
    pub fn approximation(&self, options: AskOptions) -> Result<Option<Approximation>> {
        self.model.approximation(options)
    }
}
