//! Taking back: the same samples subtracted again, samples that get another class, classes that get
//! another name; and what is entered in the journal.

use std::collections::HashSet;

use super::Model;
use crate::error::{Error, NotGiven, Result};
use crate::head::{Forgetting, Head, Merging, Retracted, Retraction};
use crate::journal::{Entry, Journal, Verb};
use crate::samples::Samples;

/// Machines on whose arithmetic points were made, at most; more are as good as unknown.
const MACHINES: usize = 16;

impl Model {
    /// Tells the model the time, in seconds since 1970 began (UTC). What is done from now on is entered in
    /// its [journal](Model::journal); a model that was never told the time enters nothing.
    pub fn set_time(&mut self, seconds: u64) {
        self.now = Some(seconds);
    }

    /// When what was done to the model.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Takes the name of a class out of the journal: who asks to be forgotten may ask for that too.
    pub fn strike_from_journal(&mut self, class: &str) {
        self.journal.strike(class);
    }

    /// Takes samples back that were learned or added; see [`Head::retract`](crate::head::Head::retract).
    /// Settings chosen on the base phase stay as they are; what was measured of a class without any sample
    /// left goes with it.
    ///
    /// The features have to be, bit for bit, those that were learned. Where that is not known – the letters N
    /// and K, or a network, computed them on another machine, or among other images – it is refused
    /// ([`Error::OtherFeatures`]), unless the journal has the very same lesson, or nothing is left of its
    /// classes, or they were [kept](Retraction::kept). A [receipt](crate::Receipt) takes samples back anywhere.
    ///
    /// ```
    /// # use ivoro::{Matrix, Model, Samples, Variant};
    /// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
    /// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
    /// # let mut model = Model::new("iVoro-W".parse::<Variant>()?, Default::default());
    /// # model.learn(&monday)?;
    /// let before = model.head().clone();
    /// let points = Matrix::new(2, 2, vec![0.3, 0.2, 9.0, 9.1])?;
    /// let names = ["0".to_owned(), "new".to_owned()];
    /// let tuesday = Samples::single("tuesday", points, vec![0, 1], 2)?.relabel(&[0, 1], names.into())?;
    /// model.teach(&tuesday)?;
    /// model.retract(&tuesday, Default::default())?;
    /// assert!(*model.head() == before);
    /// # Ok::<(), ivoro::Error>(())
    /// ```
    pub fn retract(&mut self, samples: &Samples, how: Retraction) -> Result<Retracted> {
        let taken = self.head.only(samples)?;
        self.check_features(&taken, how)?;
        let names = taken.classes().iter().map(|class| class.name.clone()).collect();
        self.taking_back(names, |head| head.subtract(&taken, how, &HashSet::new()))
    }

    /// Takes samples back, and enters that.
    pub(super) fn taking_back(
        &mut self,
        names: Vec<String>,
        change: impl FnOnce(&mut Head) -> Result<Retracted>,
    ) -> Result<Retracted> {
        let retracted =
            self.entered(Verb::Retract, names, None, |model| model.changing_the_first(change))?;
        self.drop_measured(&retracted.emptied);
        Ok(retracted)
    }

    /// Gives samples another class, which may be new: they are taken from the class that their label names;
    /// see [`Model::retract`] for when that is refused.
    pub fn relabel(
        &mut self,
        samples: &Samples,
        class: &str,
        how: Retraction,
    ) -> Result<Retracted> {
        let taken = self.head.only(samples)?;
        self.check_features(&taken, how)?;
        let names = taken.classes().iter().map(|class| class.name.clone()).collect();
        let retracted = self.entered(Verb::Relabel, names, Some(class), |model| {
            model.changing_the_first(|head| head.relabel(samples, class, how))
        })?;
        self.drop_measured(&retracted.emptied);
        Ok(retracted)
    }

    /// Makes two classes one, without any sample; see [`Head::join`](crate::head::Head::join).
    pub fn join(&mut self, class: &str, into: &str, how: Forgetting) -> Result<()> {
        let names = vec![class.to_owned()];
        self.entered(Verb::Relabel, names, Some(into), |model| {
            model.changing_the_first(|head| head.join(class, into, how))
        })?;
        self.drop_measured(&[class.to_owned()]);
        Ok(())
    }

    /// Gives a class another name. Nothing else changes.
    pub fn rename(&mut self, class: &str, name: &str) -> Result<()> {
        let names = vec![class.to_owned()];
        self.entered(Verb::Rename, names, Some(name), |model| model.head.rename(class, name))?;
        if let Some(calibration) = &mut self.calibration {
            calibration.rename(class, name);
        }
        Ok(())
    }

    /// Refuses features that may not be those that were learned.
    fn check_features(&self, taken: &Head, how: Retraction) -> Result<()> {
        if how.inexact {
            return Ok(());
        }
        let kept = how.kept;
        let (learned, back) = if kept { (0, 0) } else { self.journal.lesson(&taken.lesson()) };
        if learned > 0 && back >= learned {
            let class = taken.classes().first().map_or_else(String::new, |it| it.name.clone());
            return Err(Error::NotGiven { class, reason: NotGiven::Again });
        }
        if learned > 0 || self.head.is_all_of(taken) {
            return Ok(());
        }
        let networks = !kept && (how.recomputed || self.network.is_some());
        let here = self.arithmetic();
        let elsewhere = here.is_some_and(|here| self.machines.iter().ne([here]));
        if networks || elsewhere { Err(Error::OtherFeatures { networks }) } else { Ok(()) }
    }

    /// What this machine makes of numbers under N and K.
    fn arithmetic(&self) -> Option<&String> {
        self.arithmetic.get_or_init(|| self.head.arithmetic()).as_ref()
    }

    /// Remembers on what arithmetic points were made.
    pub(super) fn note_machine(&mut self) {
        let Some(here) = self.arithmetic().cloned() else { return };
        self.note_machines(&[here]);
    }

    fn note_machines(&mut self, others: &[String]) {
        for machine in others {
            if self.machines.len() < MACHINES && !self.machines.contains(machine) {
                self.machines.push(machine.clone());
            }
        }
    }

    /// What a merged model knows of the past of both.
    pub(super) fn join_history(&mut self, other: &Self, report: &Merging, before: u64) {
        self.note_machines(&other.machines);
        self.journal.join(&other.journal);
        let Some(when) = self.now else { return };
        let Merging { added, combined, forgotten, .. } = report;
        let classes = [added.as_slice(), combined, forgotten].concat();
        let samples = self.head.samples().abs_diff(before);
        self.enter(Entry { samples, ..Entry::new(when, Verb::Merge, classes) });
    }

    /// The classes that occur among samples, where that is to be entered.
    pub(super) fn named(&self, samples: &Samples) -> Vec<String> {
        if self.now.is_none() {
            return Vec::new();
        }
        let mut there = vec![false; samples.classes().len()];
        samples.labels().iter().for_each(|&label| there[label as usize] = true);
        let names = samples.classes().iter().zip(there).filter(|(_, there)| *there);
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Does something to classes and enters it, where the time is known.
    pub(super) fn entered<T>(
        &mut self,
        verb: Verb,
        classes: Vec<String>,
        into: Option<&str>,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let Some(when) = self.now else { return change(self) };
        let before = self.head.tallies(&classes);
        let outcome = change(self)?;
        let (samples, lesson) = self.head.lesson_since(&classes, before)?;
        let is_lesson = matches!(verb, Verb::Learn | Verb::Update | Verb::Retract);
        self.enter(Entry {
            samples: if verb == Verb::Rename { 0 } else { samples },
            into: into.map(str::to_owned),
            lesson: is_lesson.then_some(lesson),
            ..Entry::new(when, verb, classes)
        });
        Ok(outcome)
    }

    /// Enters what changed no sum, where the time is known.
    pub(super) fn note(&mut self, verb: Verb, classes: Vec<String>, samples: u64) {
        let Some(when) = self.now else { return };
        self.enter(Entry { samples, ..Entry::new(when, verb, classes) });
    }

    fn enter(&mut self, entry: Entry) {
        let known = self.head.classes().len();
        self.journal.enter(Entry { known, ..entry });
    }
}
