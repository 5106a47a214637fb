//! Choosing settings on the base phase: no later phase and no test sample is looked at, unless the
//! caller brings other samples with [`Tuner::on_samples`].
//!
//! Each candidate is measured in a rehearsal, by the log loss at the temperature that suits it best.
//! The first candidate listed, which is the default, stays unless another one is better by more than
//! the standard error of the difference: a few samples do not outweigh it. Each setting is chosen on
//! the simplest variant in which it acts, one after another, and kept for all variants of the run.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::error::Result;
pub use crate::head::settings::Given;
use crate::head::{Lengths, ProbeSpace, Rank, Settings, Variant, Views};
use crate::probe_cache::ProbeCache;
use crate::rehearsal::LIFT;
use crate::rehearsal::Measured;
pub use crate::rehearsal::Rehearsal;
use crate::samples::Samples;

/// One choice made on the base phase, or on the samples of [`Tuner::on_samples`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Which setting.
    pub setting: String,
    /// The value chosen.
    pub value: String,
    /// The variant it was chosen with.
    pub variant: String,
    /// Candidates with their accuracy in percent on the tuning samples; 0 where one failed.
    pub candidates: Vec<(String, f64)>,
    /// Their mean log loss, where that decided; the largest number where one failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<f64>,
    /// By which rule, where it was not the best accuracy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
}

/// What tuning settled.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// All settings.
    pub settings: Settings,
    /// How each was chosen.
    pub choices: Vec<Choice>,
}

/// Chooses settings and remembers choices, so that variants of one run share them.
#[derive(Debug, Default)]
pub struct Tuner {
    memory: Mutex<HashMap<String, (Settings, Option<Choice>)>>,
    probes: Arc<ProbeCache>,
    /// What settings are chosen on in place of the base phase's own held-out samples.
    tuning_set: Option<Rehearsal>,
    /// Whether each setting is chosen with the variant itself, not with the simplest.
    whole: bool,
    watcher: Watcher,
}

/// Who is told what is being done, in words.
#[derive(Default)]
struct Watcher(Option<Told>);

/// Who is told a step.
type Told = Box<dyn Fn(&str) + Send + Sync>;

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Watcher" } else { "no Watcher" })
    }
}

/// A setting to choose: its candidates as changes of the settings.
struct Step {
    setting: &'static str,
    variant: Variant,
    candidates: Vec<(String, Settings)>,
}

impl Tuner {
    /// Probes that variants of one run share.
    pub fn probes(&self) -> Arc<ProbeCache> {
        Arc::clone(&self.probes)
    }

    /// Chooses by the accuracy on these held-out samples after all of these phases, instead of on
    /// the base phase's own: where a network was trained on the base classes' samples, these look
    /// better than those of any later class.
    pub fn on_samples(phases: Vec<Samples>, held: Samples) -> Self {
        Self { tuning_set: Some(Rehearsal::of_samples(phases, held)), ..Self::default() }
    }

    /// The same, each setting chosen with the variant itself and all samples, so that a choice costs
    /// a whole run for each candidate.
    #[must_use]
    pub fn with_the_variant_itself(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Tells `watcher` of every step that takes its time, in words: "choosing ridge with iVoro-W".
    #[must_use]
    pub fn watched(self, watcher: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { watcher: Watcher(Some(Box::new(watcher))), ..self }
    }

    /// Says what is done from now on.
    pub(crate) fn say(&self, step: &str) {
        self.watcher.0.iter().for_each(|watcher| watcher(step));
    }

    /// All settings of a variant: given ones as they are, the others chosen by rehearsal, or the
    /// defaults where there is none.
    pub fn tune(
        &self,
        variant: Variant,
        defaults: &Settings,
        given: &Given,
        rehearsal: Option<&Rehearsal>,
    ) -> Result<Tuned> {
        let mut settings = defaults.clone();
        given.apply(&mut settings);
        settings.check()?;
        let mut choices = Vec::new();
        let Some(tuning_set) = self.tuning_set.as_ref().or(rehearsal) else {
            return Ok(Tuned { settings, choices });
        };
        // the caller's own samples have chosen so since the first records, which can so be made again
        let plans = if self.tuning_set.is_some() { PLAN } else { PLAN_OF_REHEARSAL };
        for plan in plans {
            let Some(mut step) = plan(variant, &settings, given) else { continue };
            let lift = settings.lift;
            let mut most_lift = lift.min(LIFT);
            if self.whole {
                (step.variant, most_lift) = (variant, lift);
            }
            let (chosen, choice) = self.choose(&step, tuning_set, most_lift);
            settings = Settings { lift, ..chosen };
            choices.extend(choice);
        }
        if variant.per_class_metric && given.rank.is_none() {
            let simple = Variant { views: Views::Single, ..variant };
            let simple = if self.whole { variant } else { simple };
            let choice = self.fewest_directions(simple, &settings, tuning_set);
            settings.rank = choice.value.parse()?;
            choices.push(choice);
        }
        Ok(Tuned { settings, choices })
    }

    fn choose(
        &self,
        step: &Step,
        rehearsal: &Rehearsal,
        lift: usize,
    ) -> (Settings, Option<Choice>) {
        let key = format!("{}|{}|{:?}", step.setting, step.variant, step.candidates);
        let known = self.memory.lock().ok().and_then(|memory| memory.get(&key).cloned());
        if let Some(known) = known {
            return known;
        }
        self.say(&format!("choosing {} with {}", step.setting, step.variant));
        let with_lift = |(_, settings): &(String, Settings)| Settings { lift, ..settings.clone() };
        let candidates: Vec<Settings> = step.candidates.iter().map(with_lift).collect();
        let (measured, rule) = rehearsal.measure(step.variant, &candidates, &self.probes);
        let (value, settings) = step.candidates[winner(&measured)].clone();
        let scores = step.candidates.iter().zip(&measured).map(|((label, _), measured)| {
            (label.clone(), measured.as_ref().map_or(0.0, |found| found.accuracy))
        });
        let loss = |found: &Option<Measured>| found.as_ref().map_or(f64::MAX, Measured::loss);
        let losses = if rule.is_empty() { Vec::new() } else { measured.iter().map(loss).collect() };
        let choice = Choice {
            setting: step.setting.to_owned(),
            value,
            variant: step.variant.to_string(),
            candidates: scores.collect(),
            losses,
            rule,
        };
        let result = (settings, Some(choice));
        if let Ok(mut memory) = self.memory.lock() {
            memory.insert(key, result.clone());
        }
        result
    }
}

/// Numbers of directions that are tried for Q.
const RANKS: [usize; 5] = [8, 16, 32, 64, 128];
/// Percentage points that may be lost by leaving directions out.
const LOSS: f64 = 0.2;

impl Tuner {
    /// The fewest directions of Q that lose no more than [`LOSS`] against all of them in the
    /// rehearsal, and more of them in proportion where there will be more samples than there.
    fn fewest_directions(
        &self,
        variant: Variant,
        settings: &Settings,
        rehearsal: &Rehearsal,
    ) -> Choice {
        let key = format!("rank|{variant}|{settings:?}");
        let known = self.memory.lock().ok().and_then(|memory| memory.get(&key).cloned());
        if let Some((_, Some(choice))) = known {
            return choice;
        }
        self.say(&format!("choosing rank with {variant}"));
        let accuracy = |rank| {
            let candidate = [Settings { rank, ..settings.clone() }];
            let (measured, _) = rehearsal.measure(variant, &candidate, &self.probes);
            measured[0].as_ref().map_or(0.0, |found| found.accuracy)
        };
        // a class of n samples spreads in n − 1 directions and no more
        let most = rehearsal.most_samples().saturating_sub(1);
        let enough = RANKS.iter().position(|&rank| rank >= most).unwrap_or(RANKS.len());
        let all = RANKS.get(enough).map_or(Rank::Full, |&rank| Rank::Directions(rank));
        let mut candidates = vec![(all.to_string(), accuracy(all))];
        let mut value = all;
        for rank in RANKS[..enough].iter().map(|&rank| Rank::Directions(rank)) {
            candidates.push((rank.to_string(), accuracy(rank)));
            if candidates.last().is_some_and(|(_, found)| *found >= candidates[0].1 - LOSS) {
                value = rank;
                break;
            }
        }
        if let Rank::Directions(count) = value {
            // the more samples, the more directions stand out from chance
            let grown = (count as f64 * rehearsal.growth()).ceil() as usize;
            let most = RANKS[RANKS.len() - 1];
            let fitting = RANKS.into_iter().find(|&rank| rank >= grown);
            value = Rank::Directions(fitting.unwrap_or(most));
        }
        let (value, variant) = (value.to_string(), variant.to_string());
        let rule = format!("the fewest that lose no more than {LOSS} points");
        let choice = Choice {
            setting: "rank".to_owned(),
            value,
            variant,
            candidates,
            rule,
            ..Choice::default()
        };
        if let Ok(mut memory) = self.memory.lock() {
            memory.insert(key, (settings.clone(), Some(choice.clone())));
        }
        choice
    }
}

/// The candidate that is taken: the first one that is not worse than the best by more than the
/// standard error of the difference. A candidate that failed is passed over.
pub(crate) fn winner(measured: &[Option<Measured>]) -> usize {
    let Some((at, best)) = best(measured) else { return 0 };
    if best.losses.is_empty() {
        return at;
    }
    let as_good =
        |found: &Option<Measured>| found.as_ref().is_some_and(|found| found.is_as_good_as(best));
    measured.iter().position(as_good).unwrap_or(at)
}

/// The first candidate of the least log loss, or without losses of the best accuracy.
fn best(measured: &[Option<Measured>]) -> Option<(usize, &Measured)> {
    let found = measured.iter().enumerate().filter_map(|(at, it)| Some((at, it.as_ref()?)));
    let better = |a: &Measured, b: &Measured| {
        a.loss() < b.loss() || a.losses.is_empty() && a.accuracy > b.accuracy
    };
    found.reduce(|best, next| if better(next.1, best.1) { next } else { best })
}

type Plan = fn(Variant, &Settings, &Given) -> Option<Step>;

/// In this order, each setting on the simplest variant in which it acts.
const PLAN: [Plan; 9] =
    [lengths, ridge_and_prior, lambda, ridge, layer_weights, shift, residual, decay, probe_space];

/// The same with λ and η of Q chosen under W, with its default ridge: there every sample can be left
/// out in closed form, and a metric per class takes a hundred times as long.
const PLAN_OF_REHEARSAL: [Plan; 9] = [
    lengths,
    |variant, settings, given| lambda(pooled(variant), settings, given),
    ridge,
    layer_weights,
    |variant, settings, given| shift(pooled(variant), settings, given),
    ridge_and_prior,
    residual,
    decay,
    probe_space,
];

/// W in the place of Q.
fn pooled(variant: Variant) -> Variant {
    let whiten = variant.whiten || variant.per_class_metric;
    Variant { whiten, per_class_metric: false, ..variant }
}

fn step<T: Copy>(
    setting: &'static str,
    variant: Variant,
    settings: &Settings,
    values: &[T],
    label: impl Fn(T) -> String,
    set: impl Fn(&mut Settings, T),
) -> Step {
    let candidate = |&value: &T| {
        let mut changed = settings.clone();
        set(&mut changed, value);
        (label(value), changed)
    };
    Step { setting, variant, candidates: values.iter().map(candidate).collect() }
}

/// A variant without probes, views and layers.
fn plain(variant: Variant) -> Variant {
    Variant { divide: false, residual: false, views: Views::Single, layered: false, ..variant }
}

fn lambda(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !variant.normalise || given.lambda.is_some() {
        return None;
    }
    let simple = Variant { lift: false, ..plain(variant) };
    let values = [0.7, 0.6, 0.8, 0.5, 0.9, 0.4, 1.0, 0.3];
    Some(step(
        "lambda",
        simple,
        settings,
        &values,
        |v| v.to_string(),
        |s, v| s.transform.lambda = v,
    ))
}

fn lengths(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !(variant.normalise && variant.is_metric()) || given.lengths.is_some() {
        return None;
    }
    let simple = Variant { lift: false, ..plain(pooled(variant)) };
    let values = [Lengths::Equal, Lengths::Free];
    Some(step("lengths", simple, settings, &values, |v| v.to_string(), |s, v| s.lengths = v))
}

fn shift(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    // whoever gives λ means the transformation h_λ ∘ f and no other
    if !variant.normalise || given.shift.is_some() || given.lambda.is_some() {
        return None;
    }
    let simple = Variant { lift: false, ..plain(variant) };
    // in units of w: the shift is added after the scaling
    let values = [0.0, 0.003, 0.01, 0.03].map(|share| share * settings.transform.scale);
    Some(step("shift", simple, settings, &values, |v| v.to_string(), |s, v| s.transform.shift = v))
}

fn ridge(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !variant.whiten || given.ridge.is_some() {
        return None;
    }
    let simple = Variant { divide: false, residual: false, ..variant };
    let values = [1.0, 3.0, 0.3, 10.0, 0.1, 0.03];
    Some(step("ridge", simple, settings, &values, |v| v.to_string(), |s, v| s.ridge = v))
}

/// Both say how little a class's own covariance is trusted, so they are chosen together, and before
/// λ, whose best value depends on them.
fn ridge_and_prior(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !variant.per_class_metric || (given.ridge.is_some() && given.prior.is_some()) {
        return None;
    }
    let simple = Variant { views: Views::Single, ..variant };
    let ridges = given.ridge.map_or(vec![1.0, 0.3, 0.1, 0.03], |ridge| vec![ridge]);
    let priors = given.prior.map_or(vec![500.0, 1000.0, 250.0, 2000.0], |prior| vec![prior]);
    let places = (0..ridges.len()).flat_map(|r| (0..priors.len()).map(move |p| (r, p)));
    let mut places: Vec<(usize, usize)> = places.collect();
    places.sort_by_key(|(r, p)| r + p);
    let pairs: Vec<(f64, f64)> = places.into_iter().map(|(r, p)| (ridges[r], priors[p])).collect();
    let label = |(ridge, prior)| format!("{ridge},{prior}");
    Some(step("ridge,prior", simple, settings, &pairs, label, |s, (r, p)| {
        (s.ridge, s.prior) = (r, p);
    }))
}

fn layer_weights(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !variant.layered || variant.is_metric() || given.layer_weights.is_some() {
        return None;
    }
    let simple = Variant { layered: true, ..plain(variant) };
    let values = [[1.0, 1.0], [0.7, 0.3], [0.6, 0.4], [0.8, 0.2], [0.9, 0.1], [0.4, 0.6]];
    let label = |[a, b]: [f64; 2]| format!("{a},{b}");
    Some(step("layer-weights", simple, settings, &values, label, |s, v| s.layer_weights = v))
}

fn residual(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !variant.residual || (given.beta.is_some() && given.scale.is_some()) {
        return None;
    }
    let simple = Variant { residual: true, lift: false, ..plain(variant) };
    let scales = match (variant.normalise, given.scale) {
        (true, None) => vec![10.0, 1.0, 30.0],
        _ => vec![settings.transform.scale],
    };
    let betas = given.beta.map_or(vec![1e-2, 1e-1, 1e-3, 1.0], |beta| vec![beta]);
    let pairs: Vec<(f64, f64)> =
        scales.iter().flat_map(|&scale| betas.iter().map(move |&beta| (scale, beta))).collect();
    Some(step(
        "scale,beta",
        simple,
        settings,
        &pairs,
        |(w, b)| format!("{w},{b}"),
        |s, (w, b)| {
            s.transform.shift *= w / s.transform.scale;
            s.transform.scale = w;
            s.beta = b;
        },
    ))
}

fn decay(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !variant.divide || given.weight_decay.is_some() {
        return None;
    }
    let simple = Variant { divide: true, lift: false, ..plain(variant) };
    let values = [1e-4, 1e-3, 1e-2, 3e-2, 1e-1];
    Some(step(
        "weight-decay",
        simple,
        settings,
        &values,
        |v| v.to_string(),
        |s, v| s.weight_decay = v,
    ))
}

fn probe_space(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !(variant.divide && variant.normalise) || given.probe_space.is_some() {
        return None;
    }
    let simple = Variant { divide: true, lift: false, ..plain(variant) };
    let values = [ProbeSpace::Transformed, ProbeSpace::Raw];
    Some(step(
        "probe-space",
        simple,
        settings,
        &values,
        |v| v.to_string(),
        |s, v| s.probe_space = v,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(accuracy: f64, losses: &[f64]) -> Measured {
        Measured { accuracy, losses: losses.to_vec() }
    }

    #[test]
    fn the_first_stays_unless_another_is_better_by_more_than_chance() {
        let first = Some(measured(50.0, &[1.0, 2.0, 3.0, 2.0]));
        let by_luck = Some(measured(75.0, &[1.1, 2.1, 1.0, 2.1]));
        let surely = Some(measured(50.0, &[0.9, 1.8, 2.9, 1.9]));
        assert_eq!(winner(&[first.clone(), by_luck.clone()]), 0);
        assert_eq!(winner(&[first.clone(), surely.clone()]), 1);
        // between two that are as good, the one listed first
        assert_eq!(winner(&[surely, by_luck]), 0);
    }

    #[test]
    fn a_candidate_that_failed_is_passed_over() {
        let good = Some(measured(50.0, &[1.0, 2.0]));
        let bad = Some(measured(40.0, &[3.0, 4.0]));
        assert_eq!(winner(&[None, bad, good.clone()]), 2);
        assert_eq!(winner(&[None, good]), 1);
        assert_eq!(winner(&[None, None]), 0);
    }

    #[test]
    fn without_losses_the_first_of_the_best_accuracy_is_taken() {
        let [low, high] = [40.0, 60.0].map(|accuracy| Some(measured(accuracy, &[])));
        assert_eq!(winner(&[low, high.clone(), high, None]), 1);
    }

    #[test]
    fn the_first_candidates_are_the_defaults() {
        let settings = Settings::default();
        for name in ["iVoro-NW", "iVoro-NQ", "iVoro-NDR", "iVoro-NAIL", "iVoro-KW"] {
            for plan in PLAN_OF_REHEARSAL {
                let step = plan(name.parse().unwrap(), &settings, &Given::default());
                let first = step.map(|step| step.candidates[0].1.clone());
                assert!(first.is_none_or(|first| first == settings), "{name}");
            }
        }
    }
}
