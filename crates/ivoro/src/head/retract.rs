//! Taking samples back, giving them another class, and classes another name.

use std::collections::HashSet;

use crate::error::{Error, MixedComponent, NotGiven, Result};
use crate::head::Head;
use crate::head::change::Forgetting;
use crate::head::learn::is_name;
use crate::samples::Samples;

/// What a retraction may give up.
///
/// ```
/// use ivoro::{Forgetting, Retraction};
/// let how = Retraction::default();
/// assert_eq!((how.probes, how.inexact, how.recomputed), (Forgetting::Exact, false, false));
/// assert!(!how.kept);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retraction {
    /// What to do with a probe that was trained on the samples.
    pub probes: Forgetting,
    /// Whether the features may differ in their last digits from those that were learned, as those of
    /// another machine or engine do. What they leave behind is then of that size.
    pub inexact: bool,
    /// Whether a network computed the features once more: their last digits then depend on what else it
    /// computed together with them.
    pub recomputed: bool,
    /// Whether these are the very numbers that were learned, kept by whoever gave them. Then the journal
    /// need not know the lesson: they may be any part of it.
    pub kept: bool,
}

/// What a retraction took.
///
/// ```
/// # use ivoro::{Matrix, Model, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// let retracted = model.retract(&monday.select(&[0, 2, 3]), Default::default())?;
/// assert_eq!(retracted.samples, [("0".to_owned(), 1), ("1".to_owned(), 2)]);
/// assert_eq!(retracted.emptied, ["1"]);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retracted {
    /// How many samples of each class.
    pub samples: Vec<(String, u64)>,
    /// Classes without any sample left: they are gone.
    pub emptied: Vec<String>,
}

impl Head {
    /// Takes samples back that were learned or added: afterwards the head is, bit for bit, the one that
    /// never saw them, and a class without any sample left is gone. Their labels are the names of the
    /// classes that they were learned as.
    ///
    /// No list of samples is kept, so that samples which were never given are found out only where more
    /// would be taken than there is, or where what would remain can't be sums of samples. Then, and on any
    /// other error, nothing has changed.
    pub fn retract(&mut self, samples: &Samples, how: Retraction) -> Result<Retracted> {
        let taken = self.only(samples)?;
        self.subtract(&taken, how, &HashSet::new())
    }

    /// Takes away what another head of the same frame knows. Classes of `updated` were known before those
    /// samples came, so that no probe saw them.
    pub(crate) fn subtract(
        &mut self,
        taken: &Self,
        how: Retraction,
        updated: &HashSet<String>,
    ) -> Result<Retracted> {
        let grids = self.finest_grids(taken, None);
        let mut changed = self.refined(&grids)?.into_owned();
        let taken = &*taken.refined(&grids)?;
        let known = self.places();
        let mut retracted = Retracted::default();
        let mut probed = vec![false; self.classes.len()];
        for class in &taken.classes {
            let name = &class.name;
            let place = known.get(name.as_str()).copied();
            let place = place.ok_or_else(|| Error::UnknownClass { class: name.clone() })?;
            self.check_open(place)?;
            let kept = &mut changed.classes[place].statistics;
            let refused = |reason| Error::NotGiven { class: name.clone(), reason };
            let count = class.statistics.count;
            if kept.count < count {
                return Err(refused(NotGiven::Count { kept: kept.count, taken: count }));
            }
            kept.combine(&class.statistics, -1, name)?;
            let emptied = kept.count == 0;
            // last digits alone make sums of few samples impossible
            if !(kept.is_possible(&grids) || how.inexact && (emptied || kept.has_squares())) {
                return Err(refused(NotGiven::Sums { left: kept.count }));
            }
            probed[place] = emptied || !updated.contains(name);
            retracted.samples.push((name.clone(), count));
            if emptied {
                retracted.emptied.push(name.clone());
            }
        }
        changed.take_pooled(taken, how)?;
        changed.settle_probes(&probed, how.probes)?;
        changed.drop_empty();
        *self = changed;
        Ok(retracted)
    }

    fn take_pooled(&mut self, taken: &Self, how: Retraction) -> Result<()> {
        if self.pooled.is_none() {
            return Ok(());
        }
        match &taken.pooled {
            Some(pooled) => self.combine_pooled(pooled, -1)?,
            // a receipt has them class by class
            None => taken
                .classes
                .iter()
                .filter_map(|class| class.statistics.second.as_ref())
                .try_for_each(|second| self.combine_pooled(second, -1))?,
        }
        let left = self.samples();
        let possible = self.pooled.iter().flatten().all(|moments| match left {
            _ if how.inexact => true,
            0 => moments.is_zero(),
            _ => moments.is_possible(),
        });
        let refused =
            || Error::NotGiven { class: "all".to_owned(), reason: NotGiven::Sums { left } };
        if possible { Ok(()) } else { Err(refused()) }
    }

    /// A probe that saw the samples of these classes is not the one that never saw them, unless all
    /// classes of its phase are gone.
    fn settle_probes(&mut self, changed: &[bool], how: Forgetting) -> Result<()> {
        let mut first = 0;
        for learned in &mut self.phases {
            let range = first..first + learned.size;
            first = range.end;
            let gone = |class: usize| self.classes[class].statistics.count == 0;
            if learned.probe.is_none() && learned.residual.is_none() || range.clone().all(gone) {
                continue;
            }
            let Some(seen) = range.clone().find(|&class| changed[class]) else { continue };
            if how == Forgetting::Exact {
                let class = self.classes[seen].name.clone();
                return Err(Error::RetractInexact { class, component: MixedComponent::Probe });
            }
            (learned.probe, learned.residual) = (None, None);
        }
        Ok(())
    }

    /// Classes without samples go, and with the last of them phases and the frame.
    fn drop_empty(&mut self) {
        let mut first = 0;
        for learned in &mut self.phases {
            let classes = &self.classes[first..first + learned.size];
            first += learned.size;
            learned.size = classes.iter().filter(|class| class.statistics.count > 0).count();
        }
        self.phases.retain(|learned| learned.size > 0);
        self.classes.retain(|class| class.statistics.count > 0);
        if self.classes.is_empty() {
            (self.frame, self.pooled, self.frozen) = (None, None, None);
        }
        self.changed();
    }

    /// Gives samples another class: they are taken from the one that their label names and given to
    /// `class`, which is a phase of its own if it is new. On an error nothing has changed.
    pub fn relabel(
        &mut self,
        samples: &Samples,
        class: &str,
        how: Retraction,
    ) -> Result<Retracted> {
        let given = vec![0; samples.classes().len()];
        let given = samples.relabel(&given, [class.to_owned()].into())?;
        let mut changed = self.clone();
        // given first: the class they come from may be the last one
        match changed.position(class) {
            Some(_) => changed.update(&given).map(drop)?,
            None => changed.learn(&given)?,
        }
        let retracted = changed.retract(samples, how)?;
        *self = changed;
        Ok(retracted)
    }

    /// Makes two classes one: all samples of the first are from now on samples of the second. Needs no
    /// sample, and afterwards the head is the one that learned them as such, bit for bit.
    pub fn join(&mut self, class: &str, into: &str, how: Forgetting) -> Result<()> {
        let place = |name: &str| {
            let unknown = || Error::UnknownClass { class: name.to_owned() };
            self.position(name).ok_or_else(unknown)
        };
        let (from, to) = (place(class)?, place(into)?);
        if from == to {
            return Err(Error::NameTaken { class: into.to_owned() });
        }
        self.check_open(from)?;
        self.check_open(to)?;
        let mut changed = self.clone();
        let moved = self.classes[from].statistics.clone();
        changed.classes[to].statistics.combine(&moved, 1, into)?;
        changed.classes[from].statistics.count = 0;
        let probed: Vec<bool> = (0..self.classes.len()).map(|at| at == from || at == to).collect();
        changed.settle_probes(&probed, how)?;
        changed.drop_empty();
        *self = changed;
        Ok(())
    }

    /// Gives a class another name. Nothing else changes.
    pub fn rename(&mut self, class: &str, name: &str) -> Result<()> {
        let unknown = || Error::UnknownClass { class: class.to_owned() };
        let at = self.position(class).ok_or_else(unknown)?;
        if !is_name(name) {
            let value = format!("{} bytes", name.len());
            let reason = "a class name has 1 to 4096 bytes";
            return Err(Error::Setting { name: "name", value, reason });
        }
        if self.position(name).is_some() {
            return Err(Error::NameTaken { class: name.to_owned() });
        }
        name.clone_into(&mut self.classes[at].name);
        Ok(())
    }
}
