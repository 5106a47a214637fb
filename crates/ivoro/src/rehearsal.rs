//! The base phase played again in small, for choosing settings and for calibration.
//!
//! A fifth of every base class's samples is held out. The base classes play the whole protocol
//! again on the other four fifths: half of them first, the rest in up to five phases. What was held
//! out is asked afterwards.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::calibration::Calibration;
use crate::error::Result;
use crate::head::{Head, Settings, Variant};
use crate::matrix::Matrix;
use crate::probe_cache::ProbeCache;
use crate::random;
use crate::samples::Samples;

/// Samples of a class that are looked at.
const SAMPLES: usize = 150;
/// Lifted dimension in a rehearsal.
pub(crate) const LIFT: usize = 2000;

/// Held-out samples that temperature and thresholds are fitted on: a threshold that is to reject 5 %
/// of known queries then rejects 5 % ± 0.35 %. Fewer where there are very many classes, since each
/// sample is compared with all of them.
const EVALUATED: usize = 4096;
const EVALUATED_DISTANCES: usize = 1 << 28;
/// Distances that the temperature, a single number, is fitted on, and those held at a time.
const FITTED_DISTANCES: usize = 1 << 20;
const HELD_DISTANCES: usize = 1 << 22;

/// The base phase, split for choosing.
#[derive(Debug)]
pub struct Rehearsal {
    base: Samples,
    /// Rows of each class, shuffled; the first fifth is held out.
    rows: Vec<Vec<usize>>,
    /// The classes, shuffled: those of one data set arrive in a meaningful order more often than
    /// not.
    order: Vec<usize>,
    /// The classes of each phase, as positions in `order`.
    phases: Vec<Range<usize>>,
    /// Copies of samples, made where something is to be chosen.
    stage: OnceLock<Stage>,
}

/// What candidates are compared on.
#[derive(Debug)]
struct Stage {
    phases: Vec<Samples>,
    held: Samples,
}

impl Rehearsal {
    /// Splits the base phase; `None` where it is too small: fewer than two classes, or a class of
    /// fewer than five samples.
    pub fn of(base: &Samples, seed: u64) -> Option<Self> {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); base.classes().len()];
        for row in random::permutation(seed, base.len()) {
            rows[base.labels()[row] as usize].push(row);
        }
        rows.retain(|rows| !rows.is_empty());
        if rows.len() < 2 || rows.iter().any(|rows| rows.len() < 5) {
            return None;
        }
        rows.iter_mut().for_each(|rows| rows.truncate(SAMPLES));
        let order = random::permutation(seed.wrapping_add(1), rows.len());
        let phases = ends(&usual_phases(rows.len()));
        Some(Self { base: base.clone(), rows, order, phases, stage: OnceLock::new() })
    }

    /// No rehearsal but the performance itself: these phases, evaluated on these samples.
    pub(crate) fn of_samples(phases: Vec<Samples>, held: Samples) -> Self {
        Self {
            base: held.clone(),
            rows: Vec::new(),
            order: Vec::new(),
            phases: Vec::new(),
            stage: OnceLock::from(Stage { phases, held }),
        }
    }

    fn stage(&self) -> &Stage {
        self.stage.get_or_init(|| {
            let held: Vec<usize> =
                self.rows.iter().flat_map(|rows| rows[..held_of(rows)].to_vec()).collect();
            let phases = self.phases.iter().map(|classes| {
                let members = classes.clone().flat_map(|class| {
                    let rows = &self.rows[self.order[class]];
                    rows[held_of(rows)..].to_vec()
                });
                self.base.select(&members.collect::<Vec<_>>())
            });
            Stage { phases: phases.collect(), held: self.base.select(&held) }
        })
    }

    /// Learns the phases with these settings.
    fn learn(
        &self,
        variant: Variant,
        settings: Settings,
        probes: Option<Arc<ProbeCache>>,
    ) -> Result<Head> {
        let mut head = Head::new(variant, settings)?;
        if let Some(probes) = probes {
            head = head.sharing(probes);
        }
        self.stage().phases.iter().try_for_each(|phase| head.learn(phase))?;
        Ok(head)
    }

    /// Held-out accuracy in percent after the last phase; 0 where the settings can't be learned.
    pub(crate) fn score(
        &self,
        variant: Variant,
        settings: Settings,
        probes: Arc<ProbeCache>,
    ) -> Result<f64> {
        let Ok(head) = self.learn(variant, settings, Some(probes)) else { return Ok(0.0) };
        let held = &self.stage().held;
        let labels = labels(held, &head);
        let predicted = head.predict(held)?;
        let right = predicted.iter().zip(&labels).filter(|(a, b)| a == b).count();
        Ok(100.0 * right as f64 / labels.len().max(1) as f64)
    }

    /// Temperature and thresholds of a head that has learned the base phase and nothing else.
    ///
    /// Held-out samples are evaluated by a head that has not seen them. Where all that is kept are
    /// sums, that is the head with those samples taken away again. Probes have to be trained
    /// without them, and a metric in many lifted dimensions is made in fewer.
    pub fn calibrate(&self, head: &Head) -> Result<Calibration> {
        let evaluated = self.evaluated(head.classes().len());
        let lifted = head.variant().lift && head.settings().lift > LIFT;
        if head.is_additive() && !lifted {
            let reduced = head.without(&evaluated)?;
            return Ok(Calibration {
                reach: reduced.reach()?,
                ..calibrate_on(&reduced, &evaluated)?
            });
        }
        let lift = head.settings().lift.min(LIFT);
        let settings = Settings { lift, ..head.settings().clone() };
        calibrate_on(&self.learn(head.variant(), settings, head.probes())?, &evaluated)
    }

    /// Held-out samples to calibrate with: all, or as many of each class where there are too many.
    fn evaluated(&self, classes: usize) -> Samples {
        let held: Vec<usize> = self.rows.iter().map(|rows| held_of(rows)).collect();
        let most = EVALUATED.min(EVALUATED_DISTANCES / classes.max(1)).max(1);
        let mut left = most.min(held.iter().sum());
        let mut taken = vec![0; held.len()];
        while left > 0 {
            for &class in &self.order {
                if left > 0 && taken[class] < held[class] {
                    taken[class] += 1;
                    left -= 1;
                }
            }
        }
        let rows = self.rows.iter().zip(taken);
        let rows: Vec<usize> = rows.flat_map(|(rows, taken)| rows[..taken].to_vec()).collect();
        self.base.select(&rows)
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

/// How many of a class's samples are held out.
fn held_of(rows: &[usize]) -> usize {
    rows.len() / 5
}

/// Labels of samples as positions in the head.
fn labels(samples: &Samples, head: &Head) -> Vec<u32> {
    let known = head.places();
    let place = |name: &String| known.get(name.as_str()).map_or(0, |&at| at as u32);
    let places: Vec<u32> = samples.classes().iter().map(place).collect();
    samples.labels().iter().map(|&label| places[label as usize]).collect()
}

/// Fits on samples that the head has not seen. Of most of them only the strangeness is kept.
fn calibrate_on(head: &Head, samples: &Samples) -> Result<Calibration> {
    let labels = labels(samples, head);
    let classes = head.classes().len().max(1);
    let step = samples.len().div_ceil((FITTED_DISTANCES / classes).max(1)).max(1);
    let (mut distances, mut fitted) = (Matrix::zeros(0, classes), Vec::new());
    let mut strangeness = Vec::with_capacity(samples.len());
    let all: Vec<usize> = (0..samples.len()).collect();
    for rows in all.chunks((HELD_DISTANCES / classes).max(1)) {
        let answers = head.ask(&samples.select(rows), true)?;
        strangeness.extend(answers.strangeness);
        let kept: Vec<usize> = (0..rows.len()).filter(|at| rows[*at] % step == 0).collect();
        distances.append(&answers.distances.select(&kept))?;
        fitted.extend(kept.iter().map(|&at| labels[rows[at]]));
    }
    Ok(Calibration::fit(&distances, &fitted, &strangeness))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn many_held_out_samples_are_evaluated_in_part_and_all_classes_alike() {
        let rehearsal = Rehearsal::of(&base(200, 150), 1).unwrap();
        let evaluated = rehearsal.evaluated(200);
        assert_eq!(evaluated.len(), EVALUATED);
        let mut counts = vec![0; 200];
        evaluated.labels().iter().for_each(|&label| counts[label as usize] += 1);
        assert!(counts.iter().all(|count| [20, 21].contains(count)), "{counts:?}");
        assert_eq!(rehearsal.evaluated(EVALUATED_DISTANCES / 150).len(), 150);
        assert_eq!(Rehearsal::of(&base(20, 150), 1).unwrap().evaluated(20).len(), 20 * 30);
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
    fn taking_samples_away_calibrates_as_learning_without_them_does() {
        let all = base(8, 40);
        let rehearsal = Rehearsal::of(&all, 1).unwrap();
        for name in ["iVoro", "iVoro-N", "iVoro-W"] {
            let head = learned(name, &all);
            let found = rehearsal.calibrate(&head).unwrap();
            let again = rehearsal.learn(head.variant(), head.settings().clone(), None).unwrap();
            let expected = calibrate_on(&again, &rehearsal.stage().held).unwrap();
            assert_eq!(found.samples, expected.samples);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * b.abs();
            assert!(near(found.temperature, expected.temperature), "{found:?} {expected:?}");
            let mut pairs = found.thresholds.iter().zip(&expected.thresholds);
            assert!(pairs.all(|(&a, &b)| near(a, b)), "{found:?} {expected:?}");
        }
    }
}
