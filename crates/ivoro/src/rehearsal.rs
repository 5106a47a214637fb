//! The base phase played again in small, for choosing settings.
//!
//! Where all that is kept are sums, every sample is asked by the model without it, in closed form.
//! Otherwise a fifth of every base class's samples is held out, in turn, and the base classes play
//! the whole protocol again on the other four fifths: half of them first, the rest in up to five
//! phases. What was held out is asked afterwards.
//!
//! Which samples are held out is decided by their numbers, not by their places: the same rows in any
//! order give the same choice, to the bit.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use rayon::prelude::*;

use crate::error::Result;
use crate::head::{Head, Lengths, Settings, Variant};
use crate::leave_one_out::{LeaveOneOut, Prepared};
use crate::matrix::Matrix;
use crate::probe_cache::ProbeCache;
use crate::random;
use crate::samples::Samples;
use crate::temperature::fit_temperature;
use crate::transform::Transform;
use crate::vectors::least;

/// Samples of a class that are looked at, and of all classes about so many; of each class, at least
/// as many as there are folds.
const SAMPLES: usize = 150;
const SAMPLES_OF_ALL: usize = 30_000;
/// Parts that a class's samples are divided into: one is held out, the others are learned.
const FOLDS: usize = 5;
/// Held-out samples that are enough to compare candidates on: more folds are held out, one after
/// another, until there are as many.
const ENOUGH: usize = 1000;
/// Which candidate is taken.
const RULE: &str = "first within one standard error of the least log loss";
/// Lifted dimension in a rehearsal.
pub(crate) const LIFT: usize = 2000;

/// The base phase, split for choosing.
#[derive(Debug)]
pub struct Rehearsal {
    base: Samples,
    /// Rows of each class, in the order of a hash of their numbers; the first fifth is held out
    /// first. Classes are in the order of their names.
    rows: Vec<Vec<usize>>,
    /// The classes, shuffled: those of one data set arrive in a meaningful order more often than
    /// not.
    order: Vec<usize>,
    /// The classes of each phase, as positions in `order`.
    phases: Vec<Range<usize>>,
    /// Copies of samples, made where something is to be chosen: one for each fold.
    folds: [OnceLock<Stage>; FOLDS],
    left_out: OnceLock<Option<LeaveOneOut>>,
    /// What the last candidate learned without a fold: another one may differ in its metric alone.
    learned: Mutex<Option<(usize, Head)>>,
    /// Whether there is one stage that the caller brought.
    brought: bool,
}

/// What candidates are compared on.
#[derive(Debug)]
struct Stage {
    phases: Vec<Samples>,
    held: Samples,
}

/// How good a candidate is.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Accuracy in percent.
    pub(crate) accuracy: f64,
    /// −ln of the probability of the true class of each sample; empty where accuracy alone decides.
    pub(crate) losses: Vec<f64>,
}

impl Rehearsal {
    /// Splits the base phase; `None` where it is too small: fewer than two classes, or no class with
    /// two samples.
    pub fn of(base: &Samples, seed: u64) -> Option<Self> {
        let keys = base.row_hashes(seed);
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); base.classes().len()];
        (0..base.len()).for_each(|row| rows[base.labels()[row] as usize].push(row));
        rows.retain(|rows| !rows.is_empty());
        rows.sort_by_key(|rows| &base.classes()[base.labels()[rows[0]] as usize]);
        if rows.len() < 2 || rows.iter().all(|rows| rows.len() < 2) {
            return None;
        }
        let most = (SAMPLES_OF_ALL / rows.len()).clamp(FOLDS, SAMPLES);
        for rows in &mut rows {
            rows.sort_by_key(|&row| keys[row]);
            rows.truncate(most);
        }
        let order = random::permutation(seed.wrapping_add(1), rows.len());
        let phases = ends(&usual_phases(rows.len()));
        Some(Self { base: base.clone(), rows, order, phases, ..Self::empty(base) })
    }

    /// No rehearsal but the performance itself: these phases, evaluated on these samples.
    pub(crate) fn of_samples(phases: Vec<Samples>, held: Samples) -> Self {
        let rehearsal = Self { brought: true, ..Self::empty(&held) };
        rehearsal.folds[0].get_or_init(|| Stage { phases, held });
        rehearsal
    }

    fn empty(base: &Samples) -> Self {
        Self {
            base: base.clone(),
            rows: Vec::new(),
            order: Vec::new(),
            phases: Vec::new(),
            folds: Default::default(),
            left_out: OnceLock::new(),
            learned: Mutex::default(),
            brought: false,
        }
    }

    /// Whether a fifth of every class can be held out.
    pub fn holds_out_of_every_class(&self) -> bool {
        self.rows.iter().all(|rows| rows.len() >= FOLDS)
    }

    fn stage(&self, fold: usize) -> &Stage {
        self.folds[fold].get_or_init(|| {
            let held = |rows: &[usize]| rows[held_of(rows, fold)].to_vec();
            let phases = self.phases.iter().map(|classes| {
                let members = classes.clone().flat_map(|class| {
                    let rows = &self.rows[self.order[class]];
                    let held = held_of(rows, fold);
                    [&rows[..held.start], &rows[held.end..]].concat()
                });
                self.base.select(&members.collect::<Vec<_>>())
            });
            let all: Vec<usize> = self.rows.iter().flat_map(|rows| held(rows)).collect();
            Stage { phases: phases.collect(), held: self.base.select(&all) }
        })
    }

    /// Learns the phases with these settings.
    fn learn(
        &self,
        fold: usize,
        variant: Variant,
        settings: Settings,
        probes: Option<Arc<ProbeCache>>,
    ) -> Result<Head> {
        let mut head = Head::new(variant, settings)?;
        if let Some(probes) = probes {
            head = head.sharing(probes);
        }
        self.stage(fold).phases.iter().try_for_each(|phase| head.learn(phase))?;
        Ok(head)
    }

    /// The same, with the numbers of the last candidate where they would be learned alike; `ask`
    /// asks the head.
    fn asked<T>(
        &self,
        fold: usize,
        (variant, settings): (Variant, &Settings),
        probes: &Arc<ProbeCache>,
        ask: impl FnOnce(&Head, &Samples) -> Option<T>,
    ) -> Option<T> {
        let kept = self.learned.lock().ok().and_then(|mut kept| kept.take());
        let same = kept.filter(|(of, head)| {
            *of == fold && head.variant() == variant && head.learns_alike(settings)
        });
        let head = match same {
            Some((_, head)) => head.measuring_with(settings.clone()),
            None => self.learn(fold, variant, settings.clone(), Some(Arc::clone(probes))).ok()?,
        };
        let answer = ask(&head, &self.stage(fold).held);
        if let Ok(mut kept) = self.learned.lock() {
            *kept = Some((fold, head));
        }
        answer
    }

    /// Samples that the largest class is learned from.
    pub(crate) fn most_samples(&self) -> usize {
        self.stage(0).phases.iter().map(largest_class).max().unwrap_or(0)
    }

    /// How many times as many directions the largest class of the base phase has samples for.
    pub(crate) fn growth(&self) -> f64 {
        let directions = |samples: usize| samples.saturating_sub(1).max(1) as f64;
        (directions(largest_class(&self.base)) / directions(self.most_samples())).max(1.0)
    }

    /// How good each candidate is; `None` where its settings can't be learned or asked. The text
    /// says by what.
    pub(crate) fn measure(
        &self,
        variant: Variant,
        candidates: &[Settings],
        probes: &Arc<ProbeCache>,
    ) -> (Vec<Option<Measured>>, String) {
        if self.brought {
            let one = |settings: &Settings| self.held_out(&[0], variant, settings, probes, false);
            return (candidates.iter().map(one).collect(), String::new());
        }
        if LeaveOneOut::can(variant) {
            let all = self.left_out.get_or_init(|| LeaveOneOut::of(&self.base, &self.rows));
            let Some(all) = all else { return (vec![None; candidates.len()], String::new()) };
            let text = format!("{RULE}, {} samples left out one by one", all.labels().len());
            return (left_out(all, variant, candidates), text);
        }
        let folds = self.folds_of(variant);
        let one = |settings: &Settings| self.held_out(&folds, variant, settings, probes, true);
        (candidates.iter().map(one).collect(), self.rule_of_folds(&folds))
    }

    /// How good each variant is with its settings, on the same samples.
    pub(crate) fn compare(
        &self,
        candidates: &[(Variant, Settings)],
        probes: &Arc<ProbeCache>,
    ) -> (Vec<Option<Measured>>, String) {
        let less =
            |settings: &Settings| Settings { lift: settings.lift.min(LIFT), ..settings.clone() };
        if candidates.iter().all(|(variant, _)| LeaveOneOut::can(*variant)) {
            let one = |(variant, settings): &(Variant, Settings)| {
                self.measure(*variant, &[less(settings)], probes)
            };
            let (measured, rules): (Vec<_>, Vec<_>) = candidates.iter().map(one).unzip();
            let rule = rules.into_iter().next().unwrap_or_default();
            return (measured.into_iter().flatten().collect(), rule);
        }
        let dear = candidates.iter().find(|(variant, _)| variant.per_class_metric);
        let folds = self.folds_of(dear.unwrap_or(&candidates[0]).0);
        let one = |(variant, settings): &(Variant, Settings)| {
            self.held_out(&folds, *variant, &less(settings), probes, true)
        };
        (candidates.iter().map(one).collect(), self.rule_of_folds(&folds))
    }

    /// Samples that are looked at.
    pub(crate) fn samples(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    fn rule_of_folds(&self, folds: &[usize]) -> String {
        let held: usize = folds.iter().map(|&fold| self.stage(fold).held.len()).sum();
        format!("{RULE}, {held} held-out samples in {} of {FOLDS} folds", folds.len())
    }

    /// The folds that candidates are compared on: those with samples, until there are enough. With a
    /// metric per class one fold takes as long as all five with another variant.
    fn folds_of(&self, variant: Variant) -> Vec<usize> {
        let held = |&fold: &usize| -> usize {
            self.rows.iter().map(|rows| held_of(rows, fold).len()).sum()
        };
        let mut folds: Vec<usize> = (0..FOLDS).filter(|fold| held(fold) > 0).collect();
        folds.sort_by_key(|fold| std::cmp::Reverse(held(fold)));
        let (mut samples, mut taken) = (0, 0);
        while taken < folds.len() && samples < ENOUGH {
            samples += held(&folds[taken]);
            taken += 1;
        }
        folds.truncate(if variant.per_class_metric { taken.min(1) } else { taken });
        folds
    }

    /// A candidate learned on all but a fold, and asked about that, for each of some folds.
    fn held_out(
        &self,
        folds: &[usize],
        variant: Variant,
        settings: &Settings,
        probes: &Arc<ProbeCache>,
        with_losses: bool,
    ) -> Option<Measured> {
        let candidate = (variant, settings);
        if !with_losses {
            return self.asked(folds[0], candidate, probes, |head, held| {
                let (found, labels) = (head.predict(held).ok()?, labels(held, head));
                Some(Measured { accuracy: right(&found, &labels), losses: Vec::new() })
            });
        }
        let mut all: Option<(Matrix, Vec<u32>)> = None;
        for &fold in folds {
            let (distances, labels) = self.asked(fold, candidate, probes, |head, held| {
                Some((head.distances(held).ok()?, labels(held, head)))
            })?;
            match &mut all {
                None => all = Some((distances, labels)),
                Some((rows, known)) => {
                    rows.append(&distances).ok()?;
                    known.extend(labels);
                }
            }
        }
        let (distances, labels) = all?;
        Measured::of(&distances, &labels)
    }
}

/// Classes per phase where nobody says: half of them first, the rest in about five phases.
pub fn usual_phases(classes: usize) -> Vec<usize> {
    let base = classes.div_ceil(2);
    let rest = classes - base;
    let phases = rest.clamp(1, 5);
    let mut sizes = vec![base];
    sizes.extend((0..phases).map(|i| rest * (i + 1) / phases - rest * i / phases));
    sizes.retain(|&size| size > 0);
    sizes
}

/// The classes of each phase, from their numbers.
fn ends(sizes: &[usize]) -> Vec<Range<usize>> {
    let range = |next: &mut usize, &size: &usize| {
        let first = *next;
        *next += size;
        Some(first..*next)
    };
    sizes.iter().scan(0, range).collect()
}

/// Places of a class's samples that are held out in a fold; none of a lone sample.
fn held_of(rows: &[usize], fold: usize) -> Range<usize> {
    let end = |fold: usize| rows.len() * fold / FOLDS;
    if rows.len() < 2 { 0..0 } else { end(fold)..end(fold + 1) }
}

/// Candidates measured on samples that are left out one by one.
fn left_out(all: &LeaveOneOut, variant: Variant, candidates: &[Settings]) -> Vec<Option<Measured>> {
    let labels = all.labels();
    // candidates for the ridge and for weights follow each other in one transformation
    let key = |it: &Settings| (it.transform, it.lengths, it.lift, it.seed);
    let mut last: Option<((Transform, Lengths, usize, u64), Prepared<'_>)> = None;
    let measured = candidates.iter().map(|settings| {
        let prepared = match last.take().filter(|(known, _)| *known == key(settings)) {
            Some((_, prepared)) => prepared,
            None => all.prepare(variant, settings).ok()?,
        };
        let distances = prepared.fair_distances(settings);
        last = Some((key(settings), prepared));
        Measured::of(&distances.ok()?, &labels)
    });
    measured.collect()
}

impl Measured {
    /// From distances and labels, with the temperature that suits these best; `None` where a number
    /// is none.
    fn of(distances: &Matrix, labels: &[u32]) -> Option<Self> {
        if distances.as_slice().iter().any(|distance| !distance.is_finite()) {
            return None;
        }
        // in an order of their own, so that no bit depends on that of the samples
        let bits = |row: usize| distances.row(row).iter().map(|distance| distance.to_bits());
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by(|&a, &b| bits(a).cmp(bits(b)).then(labels[a].cmp(&labels[b])));
        let sorted: Vec<u32> = order.iter().map(|&row| labels[row]).collect();
        let temperature = fit_temperature(&distances.select(&order), &sorted);
        let rows = distances.as_slice().par_chunks(distances.cols().max(1)).zip(labels);
        let loss = |(row, &label): (&[f32], &u32)| {
            let low = f64::from(row[least(row)]);
            let power = |distance: f32| (low - f64::from(distance)) / temperature;
            let sum: f64 = row.iter().map(|&distance| power(distance).exp()).sum();
            sum.ln() - power(row[label as usize])
        };
        let losses: Vec<f64> = rows.map(loss).collect();
        let found: Vec<u32> = distances.iter_rows().map(|row| least(row) as u32).collect();
        let finite = losses.iter().all(|loss| loss.is_finite());
        finite.then(|| Self { accuracy: right(&found, labels), losses })
    }

    /// Mean log loss.
    pub(crate) fn loss(&self) -> f64 {
        sum_of(self.losses.iter().copied()) / self.losses.len().max(1) as f64
    }

    /// Whether it is worse by no more than the standard error of the difference, sample by sample.
    pub(crate) fn is_as_good_as(&self, best: &Self) -> bool {
        let count = self.losses.len().max(2) as f64;
        let differences = || self.losses.iter().zip(&best.losses).map(|(own, best)| own - best);
        let mean = sum_of(differences()) / count;
        let squares = sum_of(differences().map(|difference| (difference - mean).powi(2)));
        mean <= (squares / (count - 1.0) / count).sqrt()
    }
}

/// A sum with the same bits whatever the order of what is added.
fn sum_of(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.iter().sum()
}

/// The share of right answers in percent.
fn right(found: &[u32], labels: &[u32]) -> f64 {
    let right = found.iter().zip(labels).filter(|(a, b)| a == b).count();
    100.0 * right as f64 / labels.len().max(1) as f64
}

/// Samples of the class that has most.
fn largest_class(samples: &Samples) -> usize {
    let mut counts = vec![0; samples.classes().len()];
    samples.labels().iter().for_each(|&label| counts[label as usize] += 1);
    counts.into_iter().max().unwrap_or(0)
}

/// Labels of samples as positions in the head.
fn labels(samples: &Samples, head: &Head) -> Vec<u32> {
    let known = head.places();
    let place = |name: &String| known.get(name.as_str()).map_or(0, |&at| at as u32);
    let places: Vec<u32> = samples.classes().iter().map(place).collect();
    samples.labels().iter().map(|&label| places[label as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;

    /// Classes around corners of a cube, `each` samples of every one.
    fn base(classes: usize, each: usize) -> Samples {
        let number = |at: usize| {
            let (row, col) = (at / 3, at % 3);
            let corner = (row / each) >> col & 1;
            (corner as f64 * 2.0 + random::unit(5, at as u64)) as f32
        };
        let rows = classes * each;
        let points = Matrix::new(rows, 3, (0..rows * 3).map(number).collect()).unwrap();
        let labels = (0..rows).map(|row| (row / each) as u32).collect();
        Samples::single("test", points, labels, classes).unwrap()
    }

    fn learned(variant: &str, samples: &Samples) -> Head {
        let mut head = Head::new(variant.parse().unwrap(), Settings::default()).unwrap();
        head.learn(samples).unwrap();
        head
    }

    #[test]
    fn a_head_without_samples_is_the_one_that_never_saw_them() {
        let all = base(8, 40);
        let rows = |seen: bool| (0..all.len()).filter(|row| (row % 5 > 0) == seen).collect();
        let (seen, unseen): (Vec<usize>, Vec<usize>) = (rows(true), rows(false));
        for name in ["iVoro", "iVoro-N", "iVoro-W", "iVoro-NW"] {
            let left = learned(name, &all).without(&all.select(&unseen)).unwrap();
            assert_eq!(left, learned(name, &all.select(&seen)), "{name}");
        }
    }

    #[test]
    fn rows_in_another_order_are_held_out_all_the_same() {
        let all = base(7, 12);
        let order = random::permutation(3, all.len());
        let (one, other) = (Rehearsal::of(&all, 1).unwrap(), all.select(&order));
        let other = Rehearsal::of(&other, 1).unwrap();
        for fold in 0..FOLDS {
            let (a, b) = (one.stage(fold), other.stage(fold));
            let numbers = |samples: &Samples| samples.row_hashes(0);
            assert_eq!(numbers(&a.held), numbers(&b.held));
            assert_eq!(a.held.labels(), b.held.labels());
            for (a, b) in a.phases.iter().zip(&b.phases) {
                assert_eq!(numbers(a), numbers(b));
            }
        }
        // another seed holds out others
        let seeded = Rehearsal::of(&all, 2).unwrap();
        assert_ne!(seeded.stage(0).held.row_hashes(0), one.stage(0).held.row_hashes(0));
    }

    #[test]
    fn every_sample_is_held_out_once_and_a_lone_one_never() {
        for count in [2, 4, 5, 12] {
            let rows: Vec<usize> = (0..count).collect();
            let all: Vec<usize> = (0..FOLDS).flat_map(|fold| held_of(&rows, fold)).collect();
            assert_eq!(all, rows);
        }
        assert!((0..FOLDS).all(|fold| held_of(&[0], fold).is_empty()));
    }
}
