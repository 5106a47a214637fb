//! What one lesson added: a head of its own, its hash, and where its arithmetic came from.

use crate::error::{Error, Result};
use crate::head::compose::Stage;
use crate::head::learn::Batch;
use crate::head::settings::of_variant;
use crate::head::{Head, LearnedPhase, ScatterKept};
use crate::lift::Lift;
use crate::matrix::Matrix;
use crate::random::unit;
use crate::samples::Samples;
use crate::statistics::ClassStatistics;

/// Numbers whose transformation tells one arithmetic from another.
const PROBED: (usize, usize) = (8, 512);
/// Columns of the lift that are tried.
const LIFTED: usize = 64;
/// Hexadecimal digits of a hash.
const DIGITS: usize = 16;

impl Head {
    /// A head of the same frame that knows these samples alone, without probes; all of their classes are
    /// known here.
    pub(crate) fn only(&self, samples: &Samples) -> Result<Self> {
        let batch = Batch::of(samples)?;
        let known = self.places();
        if let Some(stranger) = batch.names.iter().find(|name| !known.contains_key(name.as_str())) {
            return Err(Error::UnknownClass { class: stranger.clone() });
        }
        self.emptied().alone(samples)
    }

    /// The same of a head that knows no class yet, only its frame.
    pub(crate) fn alone(mut self, samples: &Samples) -> Result<Self> {
        let batch = Batch::of(samples)?;
        let nothing = || Error::UnknownClass { class: batch.names[0].clone() };
        let frame = self.frame.clone().ok_or_else(nothing)?;
        let points = self.points(samples, Stage::Full)?;
        let frame = self.framed(&frame, &points);
        let (statistics, pooled) = self.gather(&frame, &points, &batch)?;
        let learned = LearnedPhase { size: batch.names.len(), probe: None, residual: None };
        self.commit(frame, batch.names, statistics, pooled, learned)?;
        Ok(self)
    }

    /// The same, and from now on second moments are kept for every class.
    pub(crate) fn with_scatter_per_class(mut self) -> Self {
        self.settings.scatter = ScatterKept::PerClass;
        self
    }

    /// Of a lesson: some of its classes alone.
    pub(crate) fn selected(&self, wanted: &[String]) -> Result<Self> {
        if let Some(class) = wanted.iter().find(|name| self.position(name).is_none()) {
            return Err(Error::UnknownClass { class: class.clone() });
        }
        let mut selected = self.clone();
        selected.classes.retain(|class| wanted.contains(&class.name));
        let size = selected.classes.len();
        selected.phases = vec![LearnedPhase { size, probe: None, residual: None }];
        Ok(selected)
    }

    /// What makes sums of another head mean something else than the same sums here.
    pub(crate) fn unlike(&self, other: &Self) -> Option<(&'static str, String, String)> {
        if self.variant != other.variant {
            return Some(("the variant", self.variant.to_string(), other.variant.to_string()));
        }
        // the others change how points are measured, and not the points
        let (own, theirs, lift) = (&self.settings, &other.settings, self.variant.lift);
        let differing = of_variant(self.variant).find(|info| {
            let of_points = match info.name {
                "lambda" | "scale" | "shift" | "lengths" | "lift" => true,
                "seed" => lift,
                _ => false,
            };
            of_points && info.read(own) != info.read(theirs)
        });
        if let Some(info) = differing {
            return Some((info.name, info.read(own).to_string(), info.read(theirs).to_string()));
        }
        self.other_frame(other)
    }

    /// Whether a class can be forgotten without its samples: W's pooled scatter can't lose one.
    pub fn can_forget_alone(&self) -> bool {
        let pools = self.variant.whiten && self.settings.scatter == ScatterKept::Pooled;
        !pools || self.variant.per_class_metric
    }

    /// Samples learned of all classes.
    pub(crate) fn samples(&self) -> u64 {
        let counts = self.classes.iter().map(|class| class.statistics.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Samples learned of a class.
    pub(crate) fn samples_of(&self, class: &str) -> Option<u64> {
        self.position(class).map(|at| self.classes[at].statistics.count)
    }

    /// Whether a class has these very sums, for every class of a lesson.
    pub(crate) fn is_all_of(&self, lesson: &Self) -> bool {
        let places = self.places();
        lesson.classes.iter().all(|class| {
            let own = places.get(class.name.as_str()).map(|&at| &self.classes[at].statistics);
            own.is_some_and(|own| {
                own.count == class.statistics.count && own.blocks == class.statistics.blocks
            })
        })
    }

    /// Counts and sums of those of the classes that are known.
    pub(crate) fn tallies(&self, names: &[String]) -> Vec<Option<ClassStatistics>> {
        let places = self.places();
        let kept =
            |name: &String| places.get(name.as_str()).map(|&at| &self.classes[at].statistics);
        names.iter().map(|name| kept(name).map(tally)).collect()
    }

    /// How many samples of these classes came or went since, and a hash of their sums.
    pub(crate) fn lesson_since(
        &self,
        names: &[String],
        before: Vec<Option<ClassStatistics>>,
    ) -> Result<(u64, String)> {
        let places = self.places();
        let (mut samples, mut hashes) = (0u64, Vec::with_capacity(names.len()));
        for (name, before) in names.iter().zip(before) {
            let after = places.get(name.as_str()).map(|&at| &self.classes[at].statistics);
            let change = match (before, after) {
                (None, None) => continue,
                (None, Some(after)) => {
                    samples = after.count.saturating_add(samples);
                    hashes.push(hash_of(name, after));
                    continue;
                }
                (Some(before), None) => before,
                (Some(before), Some(after)) if before.count > after.count => {
                    difference(before, after, name)?
                }
                (Some(before), Some(after)) => difference(tally(after), &before, name)?,
            };
            samples = change.count.saturating_add(samples);
            hashes.push(hash_of(name, &change));
        }
        Ok((samples, joined(hashes)))
    }

    /// A hash of all sums: the same lesson has the same.
    pub(crate) fn lesson(&self) -> String {
        let hashes = self.classes.iter().map(|class| hash_of(&class.name, &class.statistics));
        joined(hashes.collect())
    }

    /// What the arithmetic of this machine makes of fixed numbers under N and K. Where it is the same, points
    /// are the same, as far as that shows. None where points are features as they are, or their mean: all
    /// machines add and halve alike.
    pub(crate) fn arithmetic(&self) -> Option<String> {
        let (variant, settings) = (self.variant, &self.settings);
        if !variant.normalise && !variant.lift {
            return None;
        }
        let mut hasher = blake3::Hasher::new();
        let mut add = |numbers: &Matrix| {
            numbers.as_slice().iter().for_each(|value| {
                hasher.update(&value.to_bits().to_le_bytes());
            });
        };
        let numbers = |cols: usize| {
            let numbers = (0..PROBED.0 * cols).map(|at| 4.0 * unit(1, at as u64) as f32 - 0.5);
            Matrix::new(PROBED.0, cols, numbers.collect())
        };
        if variant.normalise {
            add(&settings.transform.apply(&numbers(PROBED.1).ok()?));
        }
        if variant.lift {
            let input = self.layers().iter().map(|(_, dim)| dim).sum();
            let lift = Lift::new(input, settings.lift.min(LIFTED), settings.seed);
            add(&lift.apply(&numbers(input).ok()?));
        }
        let hash = hasher.finalize().to_hex();
        Some(format!("{} {}", processor(), hash.get(..DIGITS).unwrap_or_default()))
    }
}

/// What decides how a processor computes, as far as it can be asked.
fn processor() -> String {
    let mut name = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    #[cfg(target_arch = "x86_64")]
    for (feature, there) in [
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ] {
        if there {
            name.push('+');
            name.push_str(feature);
        }
    }
    name
}

/// Count and sums alone.
fn tally(kept: &ClassStatistics) -> ClassStatistics {
    let (count, blocks) = (kept.count, kept.blocks.clone());
    ClassStatistics { count, blocks, second: None, compact: None }
}

fn difference(
    mut all: ClassStatistics,
    part: &ClassStatistics,
    name: &str,
) -> Result<ClassStatistics> {
    all.combine(part, -1, name)?;
    Ok(all)
}

fn hash_of(name: &str, kept: &ClassStatistics) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
    hasher.update(&kept.count.to_le_bytes());
    for block in &kept.blocks {
        block.numbers().for_each(|sum| {
            hasher.update(&sum.to_le_bytes());
        });
        hasher.update(&block.squares.to_le_bytes());
    }
    hasher.finalize()
}

/// Of all classes of a lesson, in whatever order they came.
fn joined(mut hashes: Vec<blake3::Hash>) -> String {
    hashes.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let mut hasher = blake3::Hasher::new();
    hashes.iter().for_each(|hash| {
        hasher.update(hash.as_bytes());
    });
    hasher.finalize().to_hex().get(..DIGITS).unwrap_or_default().to_owned()
}
