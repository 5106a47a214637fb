//! Which variant a model takes where none is named: the one that a rehearsal finds best among few, as
//! far as a budget of bytes and of time allows.

use std::fmt::Write as _;

use crate::error::{Error, Result};
use crate::head::settings::{Given, ScatterKept, TABLE};
use crate::head::{Settings, Variant, Views};
use crate::linalg::tile_rows;
use crate::rehearsal::{Measured, Rehearsal};
use crate::samples::{Points, Samples, View};
use crate::tune::{Choice, Tuner, winner};

/// What a model may cost whose variant is chosen for it.
///
/// ```
/// use ivoro::{Budget, Matrix, Model, Samples};
/// let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// let mut model = Model::choosing(Default::default(), Budget::default());
/// model.learn(&Samples::single("demo", points, vec![0, 0, 1, 1], 2)?)?;
/// assert_eq!(model.choices()[0].setting, "variant");
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Bytes that a class may add to the model. What classes share, such as the pooled scatter of W, is
    /// not counted.
    pub bytes_per_class: usize,
    /// Seconds that choosing and learning may take on two cores. No clock is read: operations are
    /// counted, at 10¹⁰ in a second on each core, so that the same samples give the same variant.
    pub seconds: f64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes_per_class: 200 << 10, seconds: 60.0 }
    }
}

/// Operations in a second, on two cores.
const RATE: f64 = 2e10;
/// Candidates that are compared with one view and with all, about.
const TRIES: [f64; 2] = [14.0, 6.0];
/// Pairs of settings that are compared for Q.
const PAIRS: f64 = 16.0;

/// What is taken where nothing can be compared, with F and AI where the views are there. On single
/// samples it measures as N does, and it takes the pooled metric in as samples come.
pub(crate) const FIRST: Variant = Variant { normalise: true, whiten: true, ..Variant::PLAIN };

/// Why the first is taken.
const NOTHING_TO_COMPARE: &str = "the first that suits; comparing takes two classes, one of them with \
                                  two samples";

/// What was settled.
pub(crate) struct Chosen {
    pub(crate) variant: Variant,
    /// The settings given, with the scatter that the budget allows.
    pub(crate) settings: Settings,
    pub(crate) choice: Choice,
}

/// Chooses the variant of a model that begins with these samples.
pub(crate) fn choose(
    phase: &Samples,
    (settings, given, tuner): (&Settings, &Given, &Tuner),
    budget: Budget,
    rehearsal: Option<&Rehearsal>,
) -> Result<Chosen> {
    let mut all = offered(phase);
    refuse_idle(&mut all, settings, given)?;
    let cost = |variant: Variant| Cost::of(variant, phase, settings.scatter, rehearsal);
    let (fit, over): (Vec<Variant>, Vec<Variant>) =
        all.iter().copied().partition(|&variant| cost(variant).is_within(budget));
    // what is asked for is done, as cheaply as it can be
    let cheapest = || all.iter().copied().min_by_key(|&variant| cost(variant).bytes);
    let fit = if fit.is_empty() { cheapest().into_iter().collect() } else { fit };
    // more views are better before anything can be compared, more layers are not
    let views = fit.iter().copied().find(|variant| variant.rotates() && !variant.layered);
    let first = views.filter(|_| rehearsal.is_none()).or(fit.first().copied()).unwrap_or(FIRST);
    let mut choice = Choice {
        setting: "variant".to_owned(),
        value: first.to_string(),
        rule: NOTHING_TO_COMPARE.to_owned(),
        ..Choice::default()
    };
    let mut variant = first;
    if let Some(rehearsal) = rehearsal.filter(|_| fit.len() > 1) {
        (variant, choice) = compared(&fit, (settings, given, tuner), rehearsal)?;
    }
    choice.variant = variant.to_string();
    for &dear in over.iter().filter(|&&dear| dear != variant) {
        let Cost { bytes, seconds } = cost(dear);
        let _ = write!(choice.rule, "; over the budget: {dear}, {} KB per class", bytes >> 10);
        if seconds > budget.seconds {
            let _ = write!(choice.rule, " and about {seconds:.0} s");
        }
    }
    let mut settings = settings.clone();
    if variant.whiten && settings.scatter == ScatterKept::Pooled {
        let bytes = Cost::bytes(variant, phase, ScatterKept::PerClass);
        if bytes <= budget.bytes_per_class {
            // a class can then be forgotten without its samples
            settings.scatter = ScatterKept::PerClass;
        } else {
            let _ = write!(
                choice.rule,
                "; the scatter is pooled, so that no class can be forgotten without its samples: one for \
                 each would keep {} KB per class",
                bytes >> 10
            );
        }
    }
    Ok(Chosen { variant, settings, choice })
}

/// The variants that these samples allow, the plainest with a metric first.
fn offered(samples: &Points) -> Vec<Variant> {
    let views = samples.views();
    let has = |wanted: &[View]| wanted.iter().all(|view| views.contains(view));
    let mirrored = |wanted: &[View]| wanted.iter().all(|view| views.contains(&view.mirror()));
    let (upright, rotations) = ([View::UPRIGHT], View::ROTATIONS);
    let mut all = Vec::new();
    let mut offer = |variant: Variant| {
        let views = if variant.rotates() { &rotations[..] } else { &upright[..] };
        let layers = variant.layers().end <= samples.layers().len();
        if layers && has(views) {
            all.push(Variant { flip: mirrored(views), ..variant });
        }
    };
    let joined = Variant { views: Views::Integration, ..FIRST };
    let q = Variant { whiten: false, per_class_metric: true, ..FIRST };
    offer(FIRST);
    offer(Variant { whiten: false, ..FIRST });
    offer(Variant { normalise: false, ..FIRST });
    offer(Variant::PLAIN);
    offer(Variant { layered: true, ..FIRST });
    offer(joined);
    offer(Variant { layered: true, ..joined });
    offer(q);
    offer(Variant { layered: true, ..q });
    all
}

/// Leaves out variants in which a setting that was given has no effect; an error where none is left.
fn refuse_idle(all: &mut Vec<Variant>, settings: &Settings, given: &Given) -> Result<()> {
    let (mut asked, usual) = (settings.clone(), Settings::default());
    given.apply(&mut asked);
    let changed = TABLE.iter().filter(|info| info.read(&asked) != info.read(&usual));
    for info in changed.filter(|info| !["seed", "scatter"].contains(&info.name)) {
        all.retain(|&variant| info.applies(variant));
        if all.is_empty() {
            return Err(Error::Setting {
                name: info.name,
                value: info.read(&asked).to_string(),
                reason: "acts under none of the variants that are chosen among; name a variant",
            });
        }
    }
    Ok(())
}

/// The best of several variants: in closed form where that can be, with the settings that suit the
/// first; then against those whose samples have to be held out, which bring their own.
fn compared(
    fit: &[Variant],
    (settings, given, tuner): (&Settings, &Given, &Tuner),
    rehearsal: &Rehearsal,
) -> Result<(Variant, Choice)> {
    let tuned = |variant: Variant| -> Result<Settings> {
        Ok(tuner.tune(variant, settings, given, Some(rehearsal))?.settings)
    };
    let (held, closed): (Vec<Variant>, Vec<Variant>) =
        fit.iter().copied().partition(|variant| variant.per_class_metric);
    let base = tuned(fit[0])?;
    let closed = closed.into_iter().map(|variant| (variant, base.clone())).collect();
    let held = held.into_iter().map(|variant| Ok((variant, tuned(variant)?)));
    let rounds: [Vec<(Variant, Settings)>; 2] = [closed, held.collect::<Result<_>>()?];
    let mut first: Option<(Variant, Settings)> = None;
    let mut choice = Choice { setting: "variant".to_owned(), ..Choice::default() };
    for round in rounds.into_iter().filter(|round| !round.is_empty()) {
        let candidates: Vec<_> = first.take().into_iter().chain(round).collect();
        tuner.say(&format!("comparing {} variants", candidates.len()));
        let (measured, rule) = rehearsal.compare(&candidates, &tuner.probes());
        let loss = |found: &Option<Measured>| found.as_ref().map_or(f64::MAX, Measured::loss);
        let scores = candidates.iter().zip(&measured).map(|((variant, _), found)| {
            (variant.to_string(), found.as_ref().map_or(0.0, |found| found.accuracy))
        });
        choice.candidates.extend(scores);
        choice.losses.extend(measured.iter().map(loss));
        let then = if choice.rule.is_empty() { "" } else { "; then " };
        let _ = write!(choice.rule, "{then}{rule}");
        first = candidates.into_iter().nth(winner(&measured));
    }
    let variant = first.map_or(fit[0], |(variant, _)| variant);
    choice.value = variant.to_string();
    Ok((variant, choice))
}

/// What a variant costs.
struct Cost {
    bytes: usize,
    seconds: f64,
}

impl Cost {
    fn is_within(&self, budget: Budget) -> bool {
        self.bytes <= budget.bytes_per_class && self.seconds <= budget.seconds
    }

    fn of(
        variant: Variant,
        phase: &Samples,
        scatter: ScatterKept,
        rehearsal: Option<&Rehearsal>,
    ) -> Self {
        let bytes = Self::bytes(variant, phase, scatter);
        if !variant.is_metric() {
            return Self { bytes, seconds: 0.0 };
        }
        let square = |dim: f64| dim * dim;
        let (samples, classes) = (phase.len() as f64, phase.classes().len() as f64);
        let looked = rehearsal.map_or(0, Rehearsal::samples) as f64;
        let one = phase.dim(0) as f64;
        let dims: Vec<f64> = dims(variant, phase).into_iter().map(|dim| dim as f64).collect();
        let pass = |dim: f64| 2.0 * looked * square(dim) + dim.powi(3) / 3.0;
        let learn: f64 = dims.iter().map(|&dim| samples * square(dim)).sum();
        let choose: f64 = if rehearsal.is_none() {
            0.0
        } else if variant.per_class_metric {
            let fold = looked / 5.0;
            let of = |&dim: &f64| classes * (1.5 * dim.powi(3) + 2.0 * fold * square(dim));
            TRIES[0] * pass(one) + PAIRS * dims.iter().map(of).sum::<f64>()
        } else {
            TRIES[0] * pass(one) + TRIES[1] * dims.iter().map(|&dim| pass(dim)).sum::<f64>()
        };
        Self { bytes, seconds: (learn + choose) / RATE }
    }

    /// Bytes that each class adds.
    fn bytes(variant: Variant, phase: &Points, scatter: ScatterKept) -> usize {
        let second =
            |dim: usize| tile_rows(dim).map(|(_, rows, cols)| 8 * rows * cols).sum::<usize>();
        let per_class = variant.keeps_second_per_class(scatter);
        let of = |dim: usize| 8 * dim + 16 + if per_class { second(dim) } else { 0 };
        8 + dims(variant, phase).into_iter().map(of).sum::<usize>()
    }
}

/// The dimension of each block.
fn dims(variant: Variant, phase: &Points) -> Vec<usize> {
    let (views, layers) = variant.separate();
    let of_layers: Vec<usize> = variant.layers().map(|layer| phase.dim(layer)).collect();
    let joined = variant.separate_views().len() / views;
    let of_view = match layers {
        1 => vec![joined * of_layers.iter().sum::<usize>()],
        _ => of_layers,
    };
    of_view.repeat(views)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;
    use crate::matrix::Matrix;

    #[test]
    fn bytes_are_those_that_an_audit_finds() {
        let views = View::ROTATIONS.to_vec();
        let layers = vec!["last".to_owned(), "third".to_owned()];
        let blocks = [150, 150, 150, 150, 9, 9, 9, 9].map(|dim| {
            let number = |at: usize| (at % 7) as f32;
            Matrix::new(4, dim, (0..4 * dim).map(number).collect()).unwrap()
        });
        let points = Points::new("test", layers, views, blocks.into()).unwrap();
        let names = ["a".to_owned(), "b".to_owned()];
        let samples = Samples::new(points, vec![0, 0, 1, 1], names.into()).unwrap();
        for name in ["iVoro", "iVoro-NQ", "iVoro-W", "iVoro-NWAIL", "iVoro-NQL", "iVoro-NAIL"] {
            let settings = Settings { scatter: ScatterKept::PerClass, ..Settings::default() };
            let variant: Variant = name.parse().unwrap();
            let mut head = Head::new(variant, settings).unwrap();
            head.learn(&samples).unwrap();
            let found = Cost::bytes(variant, &samples, ScatterKept::PerClass);
            assert_eq!(2 * found, head.bytes(), "{name}");
        }
    }

    #[test]
    fn offered_is_what_views_and_layers_allow() {
        let offers = |views: usize, layers: usize| {
            let views = View::conventional(views).unwrap();
            let blocks = vec![Matrix::zeros(1, 3); views.len() * layers];
            let names = (0..layers).map(|layer| layer.to_string()).collect();
            let points = Points::new("test", names, views, blocks).unwrap();
            let names = offered(&points).iter().map(ToString::to_string).collect::<Vec<_>>();
            names.join(" ").replace("iVoro", "").replace('-', "")
        };
        assert_eq!(offers(1, 1), "NW N W  NQ");
        assert_eq!(offers(2, 1), "NFW NF FW F NFQ");
        assert_eq!(offers(2, 2), "NFW NF FW F NFWL NFQ NFQL");
        assert_eq!(offers(4, 1), "NW N W  NWAI NQ");
        assert_eq!(offers(8, 2), "NFW NF FW F NFWL NFWAI NFWAIL NFQ NFQL");
    }
}
