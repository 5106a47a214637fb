//! Changes of what was learned: update, forget and merge.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::{Error, MergeRefusal, MixedComponent, Result};
use crate::head::compose::Stage;
use crate::head::learn::Batch;
use crate::head::settings::{SettingInfo, of_variant};
use crate::head::{Frame, Head, LearnedClass, LearnedPhase, Variant};
use crate::matrix::Matrix;
use crate::samples::Samples;
use crate::statistics::{ClassStatistics, Grid, SecondMoments, Sums};

/// What to do with a probe that was trained on the forgotten class and others together.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// use ivoro::Forgetting;
/// model.forget("0", Forgetting::Exact)?;
/// assert_eq!(model.head().classes()[0].name, "1");
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forgetting {
    /// Refuse where the result would not be the model that never saw the class.
    #[default]
    Exact,
    /// Give up the probes of that phase; its classes keep their prototypes.
    DropProbes,
}

/// What a merge did.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// let mut other = model.emptied();
/// let points = Matrix::new(2, 2, vec![0.2, 0.1, 5.2, 5.0])?;
/// other.learn(&Samples::single("tuesday", points, vec![0, 1], 2)?)?;
/// let merging = model.merge(&other, None)?;
/// assert_eq!(merging.combined, ["0", "1"]);
/// assert_eq!(model.head().classes()[0].statistics.count, 3);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merging {
    /// Classes that only the other model knew.
    pub added: Vec<String>,
    /// Classes that both knew and whose statistics were added.
    pub combined: Vec<String>,
    /// Classes of the ancestor that one of the two has forgotten since.
    pub forgotten: Vec<String>,
    /// Settings in which the two differ; they keep the value of the model that was merged into.
    pub settings: Vec<OtherSetting>,
}

/// A setting in which two models differ. It acts when queries are measured or on classes yet to come, so
/// that what both keep can be joined exactly.
///
/// ```
/// # use ivoro::{Matrix, Model, ModelOptions, Samples, Settings};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, -0.1, 0.0, 0.5, -0.4, -0.4, 0.5])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// let with_ridge = |ridge| {
///     let settings = Settings { ridge, ..Settings::default() };
///     Model::new("iVoro-W".parse().unwrap(), ModelOptions { settings, ..Default::default() })
/// };
/// let (mut model, mut other) = (with_ridge(1.0), with_ridge(3.0));
/// model.learn(&monday.of_classes(|label| label == 0))?;
/// other.learn(&monday.of_classes(|label| label == 1))?;
/// let found = &model.merge(&other, None)?.settings[0];
/// assert_eq!((found.name, found.own.as_str(), found.other.as_str()), ("ridge", "1", "3"));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherSetting {
    /// Its name.
    pub name: &'static str,
    /// Its value in the model that was merged into.
    pub own: String,
    /// Its value in the other one.
    pub other: String,
}

/// Whether a setting decides what is kept of a sample. The others act when queries are measured, or on
/// phases yet to come.
fn decides_what_is_kept(info: &SettingInfo, variant: Variant) -> bool {
    match info.name {
        "lambda" | "scale" | "shift" | "lengths" | "lift" | "probe-space" | "probe-views" => true,
        // Q keeps pooled scatter per class
        "scatter" => !variant.per_class_metric,
        "seed" => variant.lift,
        _ => false,
    }
}

/// Refuses to join two parts of a class if one of them lacks its sums.
fn refuse_closed(class: &LearnedClass, other: &LearnedClass) -> Result<()> {
    let name = class.name.clone();
    let reason = if class.is_sealed() || other.is_sealed() {
        MergeRefusal::Sealed { class: name }
    } else if class.is_closed() || other.is_closed() {
        MergeRefusal::Compact { class: name }
    } else {
        return Ok(());
    };
    Err(Error::Merge { reason })
}

impl Head {
    /// Adds samples to known classes. Means, spread and metric are exactly those of all samples;
    /// probes of D and displacements of R stay those of their phase, since they can't be refitted
    /// without its samples. Returns the number of samples per class updated.
    pub fn update(&mut self, samples: &Samples) -> Result<Vec<(String, usize)>> {
        let arrived = self.arrived(samples)?;
        let (changed, report) = self.combined(samples, 1)?;
        let updated = self.updating();
        *self = changed;
        self.updated = updated
            .zip(arrived)
            .and_then(|(updated, arrived)| updated.add(&self.arrivals(&arrived)));
        Ok(report)
    }

    /// The head that never saw these samples, which it must have learned; probes stay as they are.
    pub(crate) fn without(&self, samples: &Samples) -> Result<Self> {
        Ok(self.combined(samples, -1)?.0)
    }

    /// The head with samples of known classes added (1) or taken away (−1), and how many those are.
    fn combined(&self, samples: &Samples, sign: i64) -> Result<(Self, Vec<(String, usize)>)> {
        let batch = Batch::of(samples)?;
        let known = self.places();
        let places = batch.names.iter().map(|name| {
            let place = known.get(name.as_str()).copied();
            place.ok_or_else(|| Error::UnknownClass { class: name.clone() })
        });
        let places = places.collect::<Result<Vec<_>>>()?;
        let points = self.points(samples, Stage::Full)?;
        let Some(frame) = &self.frame else {
            return Err(Error::UnknownClass { class: batch.names[0].clone() });
        };
        places.iter().try_for_each(|&at| self.check_open(at))?;
        let frame = self.framed(frame, &points);
        let (statistics, pooled) = self.gather(&frame, &points, &batch)?;
        let mut changed = self.clone();
        changed.frame = Some(frame);
        for (&place, new) in places.iter().zip(&statistics) {
            let class = &mut changed.classes[place];
            class.statistics.combine(new, sign, &class.name)?;
        }
        if let Some(pooled) = pooled {
            changed.combine_pooled(&pooled, sign)?;
        }
        let counts = statistics.iter().map(|new| new.count as usize);
        let report = batch.names.into_iter().zip(counts).collect();
        Ok((changed, report))
    }

    /// Refuses to add samples to a class that keeps too little for it, or to take them away.
    pub(super) fn check_open(&self, class: usize) -> Result<()> {
        let class = &self.classes[class];
        let name = || class.name.clone();
        match (class.is_sealed(), class.is_closed()) {
            (true, _) => Err(Error::Sealed { class: name() }),
            (false, true) => Err(Error::CompactClass { class: name() }),
            (false, false) => Ok(()),
        }
    }

    /// The sums of one block of all classes that are not sealed.
    pub(super) fn sums_of(&self, block: usize) -> impl Iterator<Item = &Sums> {
        let open = self.classes.iter().filter(|class| !class.is_sealed());
        open.map(move |class| &class.statistics.blocks[block])
    }

    /// Forgets a class: afterwards the head is, bit for bit, the one that never saw it.
    pub fn forget(&mut self, name: &str, how: Forgetting) -> Result<()> {
        let inexact = |component| Error::ForgetInexact { class: name.to_owned(), component };
        let at =
            self.position(name).ok_or_else(|| Error::UnknownClass { class: name.to_owned() })?;
        if self.pooled.is_some() {
            return Err(inexact(MixedComponent::PooledScatter));
        }
        let phase = self.phase_of(at);
        let learned = &mut self.phases[phase];
        let probed = learned.probe.is_some() || learned.residual.is_some();
        if probed && learned.size > 1 && how == Forgetting::Exact {
            return Err(inexact(MixedComponent::Probe));
        }
        (learned.probe, learned.residual) = (None, None);
        learned.size -= 1;
        if learned.size == 0 {
            self.phases.remove(phase);
        }
        self.classes.remove(at);
        if self.classes.is_empty() {
            (self.frame, self.frozen) = (None, None);
        }
        self.changed();
        Ok(())
    }

    /// See [`Model::gather_phase`](crate::Model::gather_phase).
    pub(crate) fn gather_phase(&mut self, after: usize, order: &[String]) -> Result<()> {
        let later = self.phases.get(after..).unwrap_or_default();
        if later.iter().any(|learned| learned.probe.is_some() || learned.residual.is_some()) {
            return Err(Error::Merge { reason: MergeRefusal::Probes });
        }
        let size = later.iter().map(|learned| learned.size).sum();
        if size > 0 {
            self.phases.truncate(after);
            self.phases.push(LearnedPhase { size, probe: None, residual: None });
            let places: HashMap<&str, usize> =
                order.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
            let first = self.classes.len() - size;
            let place = |class: &LearnedClass| places.get(class.name.as_str()).copied();
            self.classes[first..].sort_by_key(|class| place(class).unwrap_or(usize::MAX));
            self.changed();
        }
        Ok(())
    }

    /// A head of the same variant, settings, dimensions and value range that knows no class: what
    /// sites that will be merged start from.
    #[must_use]
    pub fn emptied(&self) -> Self {
        let mut head = Self::unchecked(self.variant, self.settings.clone());
        head.frame.clone_from(&self.frame);
        head.frozen.clone_from(&self.frozen);
        head
    }

    /// Merges what another head of the same kind learned. With `ancestor`, the head both started
    /// from, samples that both learned there count once: self + other − ancestor, exactly. A class
    /// of the ancestor that either has forgotten since is forgotten, whatever the other did with
    /// it; the probes of its phase go with it. Settings that decide what is kept of a sample have to be
    /// the same; of the others, those of this head stay.
    pub fn merge(&mut self, other: &Self, ancestor: Option<&Self>) -> Result<Merging> {
        self.check_kin(other)?;
        ancestor.map_or(Ok(()), |ancestor| self.check_kin(ancestor))?;
        let finest = self.finest_grids(other, ancestor);
        let mut merged = self.refined(&finest)?.into_owned();
        let (refined, before) =
            (other.refined(&finest)?, ancestor.map(|head| head.refined(&finest)).transpose()?);
        let (other, ancestor) = (&*refined, before.as_deref());
        merged.frame = merged.frame.or_else(|| other.frame.clone());
        let mut report = Merging { settings: self.other_settings(other), ..Merging::default() };
        let (places, earlier) = (self.places(), ancestor.map(Self::places).unwrap_or_default());
        // who names a start without any class says that no sample is at both places
        let apart = ancestor.is_some_and(|head| head.classes.is_empty());
        let mut first = 0;
        for learned in &other.phases {
            let range = first..first + learned.size;
            first = range.end;
            let mut fresh = Vec::new();
            for at in range.clone() {
                let class = &other.classes[at];
                let name = class.name.as_str();
                let before = ancestor.zip(earlier.get(name));
                let before = before.map(|(head, &at)| &head.classes[at].statistics);
                match places.get(name) {
                    // closed, and from the same samples: it is the same class
                    Some(&place) if class.is_closed_as(&self.classes[place]) => {}
                    Some(&place) => {
                        refuse_closed(class, &self.classes[place])?;
                        merged.combine_class(place, &class.statistics, before, apart)?;
                        report.combined.push(class.name.clone());
                    }
                    None if before.is_some() => {}
                    None => fresh.push(at),
                }
            }
            merged.append_phase(other, learned, range.start, &fresh);
            report.added.extend(fresh.iter().map(|&at| other.classes[at].name.clone()));
        }
        report.forgotten = merged.drop_forgotten(self, other, ancestor)?;
        report.combined.retain(|name| !report.forgotten.contains(name));
        merged.merge_pooled(other, ancestor)?;
        *self = merged;
        Ok(report)
    }

    /// Of each block the finest grid of several heads.
    pub(crate) fn finest_grids(&self, other: &Self, ancestor: Option<&Self>) -> Vec<Grid> {
        let heads = [Some(self), Some(other), ancestor];
        let frames: Vec<&Frame> =
            heads.into_iter().flatten().filter_map(|head| head.frame.as_ref()).collect();
        let blocks = frames.first().map_or(0, |frame| frame.grids.len());
        let finest = |block: usize| {
            // what is all zero has no unit: it fits any
            let used = heads.into_iter().flatten().filter(|head| !head.is_zero(block));
            let grids = used.filter_map(|head| head.frame.as_ref().map(|f| f.grids[block]));
            grids.min_by_key(|grid| grid.exponent()).unwrap_or(frames[0].grids[block])
        };
        (0..blocks).map(finest).collect()
    }

    /// Whether there are samples, and all of them are zero in a block.
    fn is_zero(&self, block: usize) -> bool {
        !self.classes.is_empty() && self.sums_of(block).all(Sums::are_zero)
    }

    /// The same head with sums in finer units: no value changes.
    pub(crate) fn refined(&self, grids: &[Grid]) -> Result<Cow<'_, Self>> {
        if self.frame.as_ref().is_none_or(|frame| frame.grids == grids) {
            return Ok(Cow::Borrowed(self));
        }
        let mut head = self.clone();
        let Some(frame) = &mut head.frame else { return Ok(Cow::Owned(head)) };
        let apart = |(own, finest): (&Grid, &Grid)| own.exponent() - finest.exponent();
        let bits: Vec<i32> = frame.grids.iter().zip(grids).map(apart).collect();
        frame.grids = grids.to_vec();
        // below zero where there was no unit
        let bits: Vec<u32> = bits.into_iter().map(|bits| bits.max(0).unsigned_abs()).collect();
        for class in &mut head.classes {
            class.statistics.refine(&bits, &class.name)?;
        }
        let overflow = || Error::CountOverflow { class: "all".to_owned(), count: 0 };
        for (moments, &bits) in head.pooled.iter_mut().flatten().zip(&bits) {
            moments.refine(bits).ok_or_else(overflow)?;
        }
        Ok(Cow::Owned(head))
    }

    /// Forgets the classes of the ancestor that one of the two no longer knows.
    fn drop_forgotten(
        &mut self,
        first: &Self,
        second: &Self,
        ancestor: Option<&Self>,
    ) -> Result<Vec<String>> {
        let (first, second) = (first.places(), second.places());
        let known = ancestor.map_or(&[][..], |head| &head.classes).iter().map(|class| &class.name);
        let both = |name: &str| first.contains_key(name) && second.contains_key(name);
        let gone: Vec<String> = known.filter(|name| !both(name)).cloned().collect();
        for name in &gone {
            if self.pooled.is_some() {
                let reason = MergeRefusal::PooledScatter { class: name.clone() };
                return Err(Error::Merge { reason });
            }
            if self.position(name).is_some() {
                self.forget(name, Forgetting::DropProbes)?;
            }
        }
        Ok(gone)
    }

    fn check_kin(&self, other: &Self) -> Result<()> {
        let differ =
            |what, own, other| Error::Merge { reason: MergeRefusal::Differs { what, own, other } };
        if self.variant != other.variant {
            return Err(differ("the variant", self.variant.to_string(), other.variant.to_string()));
        }
        if let Some(info) =
            self.differing(other).find(|info| decides_what_is_kept(info, self.variant))
        {
            let [own, other] = [self, other].map(|head| info.read(&head.settings).to_string());
            let reason = MergeRefusal::Setting { name: info.name, own, other };
            return Err(Error::Merge { reason });
        }
        let [own, theirs] = [self, other].map(|head| head.settings.scatter);
        if self.variant.keeps_compact(own) != self.variant.keeps_compact(theirs) {
            let (own, other) = (own.to_string(), theirs.to_string());
            return Err(Error::Merge {
                reason: MergeRefusal::Setting { name: "scatter", own, other },
            });
        }
        if self.frozen != other.frozen {
            let text = |head: &Self| match &head.frozen {
                Some(frozen) => format!("one sealed as {}", frozen.fingerprint()),
                None => "one that is not sealed".to_owned(),
            };
            return Err(differ("the metric", text(self), text(other)));
        }
        let unlike = self.other_frame(other);
        unlike.map_or(Ok(()), |(what, own, other)| Err(differ(what, own, other)))
    }

    /// How the frame of another head differs, if both have one, in more than the unit of sums: these
    /// are brought to the finer one.
    pub(crate) fn other_frame(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let (own, theirs) = (self.frame.as_ref()?, other.frame.as_ref()?);
        if *own == (Frame { grids: own.grids.clone(), ..theirs.clone() }) {
            return None;
        }
        let layers = |frame: &Frame| {
            let layer = |(name, dim): &(String, usize)| format!("{name} ({dim})");
            let layers: Vec<String> = frame.layers.iter().map(layer).collect();
            let dims: Vec<String> = frame.dims.iter().map(ToString::to_string).collect();
            format!("{} in blocks of {}", layers.join(", "), dims.join(", "))
        };
        let (what, text): (_, &dyn Fn(&Frame) -> String) = if layers(own) == layers(theirs) {
            ("the origin or unit of features, which the first samples fix,", &|frame| {
                let places = frame.places.iter().chain(&frame.probe_places);
                places.map(ToString::to_string).collect::<Vec<_>>().join("; ")
            })
        } else {
            ("the list of layers", &layers)
        };
        Some((what, text(own), text(theirs)))
    }

    /// The settings that act under this variant and differ in another head of it.
    fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'static SettingInfo> + 'a {
        let differs =
            |info: &&'static SettingInfo| info.read(&self.settings) != info.read(&other.settings);
        of_variant(self.variant).filter(differs)
    }

    fn other_settings(&self, other: &Self) -> Vec<OtherSetting> {
        let text = |head: &Self, info: &SettingInfo| info.read(&head.settings).to_string();
        let both = |info: &'static SettingInfo| OtherSetting {
            name: info.name,
            own: text(self, info),
            other: text(other, info),
        };
        self.differing(other).map(both).collect()
    }

    /// Takes over the settings of a head that could be merged: what is kept stays, and is measured as
    /// that head measures.
    pub(crate) fn take_settings(&mut self, other: &Self) -> Result<()> {
        self.check_kin(other)?;
        self.settings.clone_from(&other.settings);
        self.changed();
        Ok(())
    }

    fn combine_class(
        &mut self,
        at: usize,
        other: &ClassStatistics,
        before: Option<&ClassStatistics>,
        apart: bool,
    ) -> Result<()> {
        let class = &mut self.classes[at];
        if before.is_none() && !apart && class.statistics == *other {
            let reason = MergeRefusal::SameSamples { class: class.name.clone() };
            return Err(Error::Merge { reason });
        }
        let least = class.statistics.count.min(other.count);
        if before.is_some_and(|before| before.count > least) {
            let reason = MergeRefusal::OtherAncestor { class: class.name.clone() };
            return Err(Error::Merge { reason });
        }
        class.statistics.combine(other, 1, &class.name)?;
        before.map_or(Ok(()), |before| class.statistics.combine(before, -1, &class.name))
    }

    /// Appends the classes of `fresh` as a phase, with their rows of the phase's probes.
    fn append_phase(
        &mut self,
        other: &Self,
        learned: &LearnedPhase,
        first: usize,
        fresh: &[usize],
    ) {
        if fresh.is_empty() {
            return;
        }
        let rows: Vec<usize> = fresh.iter().map(|at| at - first).collect();
        let select = |blocks: &Option<Vec<Matrix>>| {
            blocks.as_ref().map(|blocks| blocks.iter().map(|block| block.select(&rows)).collect())
        };
        self.phases.push(LearnedPhase {
            size: fresh.len(),
            probe: select(&learned.probe),
            residual: select(&learned.residual),
        });
        self.classes.extend(fresh.iter().map(|&at| other.classes[at].clone()));
    }

    fn merge_pooled(&mut self, other: &Self, ancestor: Option<&Self>) -> Result<()> {
        match &other.pooled {
            Some(pooled) if self.pooled.is_some() => self.combine_pooled(pooled, 1)?,
            Some(pooled) => self.pooled = Some(pooled.clone()),
            None => {}
        }
        match ancestor.and_then(|head| head.pooled.as_ref()) {
            Some(pooled) => self.combine_pooled(pooled, -1),
            None => Ok(()),
        }
    }

    pub(crate) fn combine_pooled(&mut self, other: &[SecondMoments], sign: i64) -> Result<()> {
        let overflow = || Error::CountOverflow { class: "all".to_owned(), count: 0 };
        for (moments, other) in self.pooled.iter_mut().flatten().zip(other) {
            moments.combine(other, sign).ok_or_else(overflow)?;
        }
        Ok(())
    }
}
