//! Choosing settings on the base phase: no later phase and no test sample is looked at, unless the
//! caller brings other samples with [`Tuner::on_samples`].
//!
//! Each candidate is scored by the accuracy of a rehearsal. Each setting is chosen on the simplest
//! variant in which it acts, one after another, and kept for all variants of the run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::error::Result;
pub use crate::head::settings::Given;
use crate::head::{ProbeSpace, Settings, Variant, Views};
use crate::probe_cache::ProbeCache;
use crate::rehearsal::LIFT;
pub use crate::rehearsal::Rehearsal;
use crate::samples::Samples;

/// One choice made on the base phase, or on the samples of [`Tuner::on_samples`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Which setting.
    pub setting: String,
    /// The value chosen.
    pub value: String,
    /// The variant it was chosen with.
    pub variant: String,
    /// Candidates with their accuracy in percent on the tuning samples.
    pub candidates: Vec<(String, f64)>,
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
        for plan in PLAN {
            let Some(mut step) = plan(variant, &settings, given) else { continue };
            let lift = settings.lift;
            let mut most_lift = lift.min(LIFT);
            if self.whole {
                (step.variant, most_lift) = (variant, lift);
            }
            let (chosen, choice) = self.choose(&step, tuning_set, most_lift)?;
            settings = Settings { lift, ..chosen };
            choices.extend(choice);
        }
        Ok(Tuned { settings, choices })
    }

    fn choose(
        &self,
        step: &Step,
        rehearsal: &Rehearsal,
        lift: usize,
    ) -> Result<(Settings, Option<Choice>)> {
        let key = format!("{}|{}|{:?}", step.setting, step.variant, step.candidates);
        let known = self.memory.lock().ok().and_then(|memory| memory.get(&key).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let mut best: Option<(f64, usize)> = None;
        let mut scores = Vec::new();
        for (at, (label, settings)) in step.candidates.iter().enumerate() {
            let settings = Settings { lift, ..settings.clone() };
            let score = rehearsal.score(step.variant, settings, self.probes())?;
            scores.push((label.clone(), score));
            if best.is_none_or(|(top, _)| score > top) {
                best = Some((score, at));
            }
        }
        let (value, settings) = step.candidates[best.map_or(0, |(_, at)| at)].clone();
        let choice = Choice {
            setting: step.setting.to_owned(),
            value,
            variant: step.variant.to_string(),
            candidates: scores,
        };
        let result = (settings, Some(choice));
        if let Ok(mut memory) = self.memory.lock() {
            memory.insert(key, result.clone());
        }
        Ok(result)
    }
}

type Plan = fn(Variant, &Settings, &Given) -> Option<Step>;

/// In this order, each setting on the simplest variant in which it acts.
const PLAN: [Plan; 8] =
    [ridge_and_prior, lambda, ridge, layer_weights, shift, residual, decay, probe_space];

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
    let values = [0.5, 0.6, 0.7, 0.4, 0.8, 0.3, 0.9, 1.0];
    Some(step(
        "lambda",
        simple,
        settings,
        &values,
        |v| v.to_string(),
        |s, v| s.transform.lambda = v,
    ))
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
    let values = [1.0, 0.3, 3.0, 0.1, 10.0, 0.03];
    Some(step("ridge", simple, settings, &values, |v| v.to_string(), |s, v| s.ridge = v))
}

/// Both say how little a class's own covariance is trusted, so they are chosen together, and before
/// λ, whose best value depends on them.
fn ridge_and_prior(variant: Variant, settings: &Settings, given: &Given) -> Option<Step> {
    if !variant.per_class_metric || (given.ridge.is_some() && given.prior.is_some()) {
        return None;
    }
    let simple = Variant { views: Views::Single, ..variant };
    let ridges = given.ridge.map_or(vec![0.1, 0.03, 0.3, 1.0], |ridge| vec![ridge]);
    let priors = given.prior.map_or(vec![500.0, 1000.0, 250.0, 2000.0], |prior| vec![prior]);
    let pairs: Vec<(f64, f64)> =
        ridges.iter().flat_map(|&ridge| priors.iter().map(move |&prior| (ridge, prior))).collect();
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
