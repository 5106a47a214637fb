//! Asking what is being learned before it is counted in.
//!
//! Some samples of every class of a lesson are held out, the head that never saw them is asked, and
//! what it says is kept as a few quantiles and losses: [`Lesson`]. No sample and no distance stays.

use crate::calibration::{Lesson, log_loss, temperatures};
use crate::error::{Error, Result};
use crate::head::Head;
use crate::samples::Samples;

/// Parts that the samples of a class are divided into; one part is held out at a time.
const PARTS: usize = 5;
/// Samples that are asked of a lesson, if one part has fewer: more parts are asked then.
const WANTED: usize = 1000;
/// Samples that are asked at most, and fewer where there are very many classes, since each is
/// compared with all of them: a threshold that is to reject 5 % then rejects 5 % ± 0.35 %.
const MOST: usize = 4096;
const MOST_DISTANCES: usize = 1 << 28;
/// Work, in products of numbers, from which on building a head once more is felt.
const CHEAP: f64 = 1e10;
/// By how much the number of classes has to grow until a lesson is asked again, where that is cheap
/// and where it is not.
const GROWTH: f64 = 1.02;
const DEAR_GROWTH: f64 = 1.5;
/// Samples of an update that are worth asking, and asked samples from which on no more are: they are then
/// worth less than the time that it takes.
const FEW: usize = 10;
const ENOUGH: usize = 200;
/// Seed of the order in which samples are held out.
const SEED: u64 = 1993;

/// Whether a lesson of so many new classes is worth asking, when the last one asked left `last`
/// classes.
pub(crate) fn is_due(head: &Head, fresh: usize, last: Option<usize>) -> bool {
    let growth = if work(head) > CHEAP { DEAR_GROWTH } else { GROWTH };
    let classes = head.classes().len() + fresh;
    last.is_none_or(|last| classes as f64 >= last as f64 * growth)
}

/// Whether samples of known classes are worth asking before they count, when so many have been asked.
pub(crate) fn is_wanting(fresh: usize, asked: usize) -> bool {
    fresh >= FEW && asked < ENOUGH
}

/// About what it costs to build a head.
fn work(head: &Head) -> f64 {
    let variant = head.variant();
    if !head.is_additive() {
        return f64::from(u8::from(head.phases().len() > 1)) * 2.0 * CHEAP;
    }
    let each = if variant.per_class_metric { head.classes().len() as f64 } else { 1.0 };
    let cubes = head.block_dims().iter().map(|&dim| (dim as f64).powi(3) / 3.0).sum::<f64>();
    if variant.is_metric() { cubes * each } else { 0.0 }
}

/// About what it costs to learn a lesson once more where probes are fitted to it.
fn refitting(head: &Head, lesson: &Samples) -> f64 {
    let outputs = (lesson.classes().len() * head.settings().iterations) as f64;
    let numbers = head.block_dims().iter().sum::<usize>() * lesson.len();
    2.0 * outputs * numbers as f64
}

/// Measures a lesson of new classes that `after` has just learned; nothing where no class has two
/// samples. `before` is the head that had not, where samples can't be taken away from `after`.
pub(crate) fn measure(
    before: Option<&Head>,
    after: &Head,
    lesson: &Samples,
) -> Result<Option<Lesson>> {
    let parts = parts(lesson, after);
    let mut answers = Asked::default();
    for held in parts {
        let samples = lesson.select(&held);
        let head = if let Some(before) = before {
            let mut rest = vec![true; lesson.len()];
            held.iter().for_each(|&row| rest[row] = false);
            let rest: Vec<usize> = (0..lesson.len()).filter(|&row| rest[row]).collect();
            let mut head = before.clone();
            head.learn(&lesson.select(&rest))?;
            head
        } else {
            after.without(&samples)?
        };
        answers.ask(&head, &samples)?;
    }
    Ok(answers.lesson(names(lesson), after.classes().len()))
}

/// Measures samples that the head has not learned, of classes that it knows.
pub(crate) fn measure_fresh(head: &Head, samples: &Samples) -> Result<Option<Lesson>> {
    let known = head.places();
    let names = names(samples);
    if let Some(class) = names.iter().find(|name| !known.contains_key(name.as_str())) {
        return Err(Error::UnknownClass { class: class.clone() });
    }
    let mut answers = Asked::default();
    answers.ask(head, samples)?;
    Ok(answers.lesson(names, head.classes().len()))
}

/// Names of the classes that occur.
pub(crate) fn names(samples: &Samples) -> Vec<String> {
    let mut seen = vec![false; samples.classes().len()];
    samples.labels().iter().for_each(|&label| seen[label as usize] = true);
    let names = samples.classes().iter().zip(seen);
    names.filter(|(_, seen)| *seen).map(|(name, _)| name.clone()).collect()
}

/// Rows that are held out together, part by part, until there are enough. Which rows those are does
/// not depend on where they stand.
fn parts(lesson: &Samples, head: &Head) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); lesson.classes().len()];
    let keys = lesson.row_hashes(SEED);
    lesson.labels().iter().enumerate().for_each(|(row, &label)| rows[label as usize].push(row));
    rows.retain(|rows| rows.len() > 1);
    rows.iter_mut().for_each(|rows| rows.sort_by_key(|&row| keys[row]));
    let most = MOST.min(MOST_DISTANCES / head.classes().len().max(1)).max(1);
    let each = (most / rows.len().max(1)).max(1);
    let again = if head.is_additive() { work(head) } else { refitting(head, lesson) };
    let several = again <= CHEAP;
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for part in 0..PARTS {
        let enough = parts.iter().map(Vec::len).sum::<usize>() >= WANTED;
        if part > 0 && (enough || !several) {
            break;
        }
        let held = rows.iter().flat_map(|rows| {
            let size = rows.len().div_ceil(PARTS);
            let start = (part * size).min(rows.len());
            let end = (start + size.min(each)).min(rows.len());
            rows[start..end].iter().copied()
        });
        parts.push(held.take(most).collect());
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// What heads said of samples that they had not seen.
#[derive(Default)]
struct Asked {
    strangeness: Vec<f64>,
    /// The same with every other class alone, as far as that was asked.
    halved: Vec<f64>,
    /// Summed over the samples.
    losses: Vec<f64>,
}

impl Asked {
    /// Asks a head that has not seen the samples.
    fn ask(&mut self, head: &Head, samples: &Samples) -> Result<()> {
        let known = head.places();
        let place = |name: &String| known.get(name.as_str()).copied().unwrap_or(0);
        let places: Vec<usize> = samples.classes().iter().map(place).collect();
        let gap = head.background()?.gap;
        self.losses.resize(temperatures().count(), 0.0);
        let all: Vec<usize> = (0..samples.len()).collect();
        let rows = (MOST_DISTANCES / 64 / head.classes().len().max(1)).max(1);
        for rows in all.chunks(rows) {
            let labels: Vec<usize> =
                rows.iter().map(|&row| places[samples.labels()[row] as usize]).collect();
            let answers = head.ask(&samples.select(rows), true)?;
            self.strangeness.extend(answers.strangeness);
            self.halved.extend(
                head.strangeness_in_halves(&answers.distances, &labels)?.unwrap_or_default(),
            );
            if gap <= 0.0 {
                continue;
            }
            for (distances, label) in answers.distances.iter_rows().zip(labels) {
                let losses = self.losses.iter_mut().zip(temperatures());
                losses.for_each(|(sum, at)| *sum += log_loss(distances, label, gap * at));
            }
        }
        Ok(())
    }

    /// What is kept of it; nothing where no sample was asked.
    fn lesson(self, classes: Vec<String>, known: usize) -> Option<Lesson> {
        let count = self.strangeness.len() as f64;
        let mean = self.losses.iter().map(|sum| sum / count).collect();
        let halved = Some(self.halved).filter(|halved| halved.len() == self.strangeness.len());
        if self.strangeness.is_empty() {
            return None;
        }
        Lesson::new(classes, known, (self.strangeness, halved), mean)
    }
}
