//! A head: what is learned of the classes, and how queries are measured against it.
//!
//! Composition, in this order: transform → distances per (layer, view, view) → layers added → AI:
//! views added, then D's selection; AC: D's selection per pair, then the vote.

mod answer;
pub mod audit;
mod background;
mod build;
mod change;
mod compact;
mod compose;
mod diagram_set;
mod indexed;
mod learn;
mod lesson;
mod map;
mod measure;
mod pictures;
mod place;
mod quadrics;
mod retract;
mod seal;
pub mod settings;
mod updated;
mod variant;
mod views;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use answer::{Answers, BurstRule};
pub(crate) use build::Scatter;
pub use change::{Forgetting, Merging, OtherSetting};
pub(crate) use compact::SharedMetric;
use compose::used_layers;
pub(crate) use compose::{Composed, Stage, compose};
use diagram_set::{DiagramSet, Metric};
pub(crate) use indexed::Indexed;
pub use indexed::{Approximation, INDEXED_FROM, Search};
pub use map::ClassMap;
pub(crate) use place::{Place, add_ridge, scales_columns};
pub use retract::{Retracted, Retraction};
pub(crate) use seal::{Codes, Frozen, SealedBlock};
pub use seal::{SealOptions, Sealing};
pub use settings::{
    Lengths, Pairs, ProbeSpace, ProbeViews, Rank, RidgePer, Rule, ScatterKept, Settings,
};
use updated::{Arrival, Before, MOST, Updated};
pub use variant::{EXTENDED, GRAMMAR, LETTERS, PAPER, Variant, Views};

use crate::diagram::{ClusterDiagram, PowerDiagram};
use crate::error::{Error, Result};
use crate::lift::LiftCache;
use crate::matrix::Matrix;
use crate::probe_cache::ProbeCache;
pub use crate::regression::Optimiser;
use crate::samples::Points;
use crate::statistics::{ClassStatistics, Grid, SecondMoments};

/// What a head fixes when the first class arrives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    /// Names and dimensions of the layers in use, for error messages and `inspect`.
    pub(crate) layers: Vec<(String, usize)>,
    /// Views that stay separate.
    pub(crate) views: usize,
    /// Dimension of each block, view-major.
    pub(crate) dims: Vec<usize>,
    /// Dimension of each block in the probe's space.
    pub(crate) probe_dims: Vec<usize>,
    /// Fixed-point grid of each block.
    pub(crate) grids: Vec<Grid>,
    /// Where the points of each block are compared.
    pub(crate) places: Vec<Place>,
    /// The same in the probe's space.
    pub(crate) probe_places: Vec<Place>,
}

impl Frame {
    /// Puts points where they are compared.
    fn put(&self, points: &mut Composed, stage: Stage) {
        let places = if stage == Stage::Full { &self.places } else { &self.probe_places };
        points.blocks.iter_mut().zip(places).for_each(|(block, place)| place.put(block));
    }
}

/// One class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedClass {
    /// Its name.
    pub name: String,
    /// What is kept of it; of a sealed class only how many samples it has.
    pub statistics: ClassStatistics,
    /// A sealed class, block by block.
    pub(crate) sealed: Option<Vec<SealedBlock>>,
}

/// Classes learned together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LearnedPhase {
    /// How many; phases follow each other in order of arrival.
    pub(crate) size: usize,
    /// D: probe centres per block.
    pub(crate) probe: Option<Vec<Matrix>>,
    /// R: how far the residual probe moved each centre, per block.
    pub(crate) residual: Option<Vec<Matrix>>,
}

/// A class-incremental classifier of one variant.
///
/// No field can hold a sample: per class there are sums, per phase probe centres, and with W one
/// matrix of second moments.
///
/// ```
/// use ivoro::head::Head;
/// use ivoro::{Matrix, Samples, Settings, Variant};
/// let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// let mut head = Head::new("iVoro".parse::<Variant>()?, Settings::default())?;
/// head.learn(&Samples::single("monday", points, vec![0, 0, 1, 1], 2)?)?;
/// assert_eq!((head.classes().len(), head.phases()), (2, vec![2]));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Debug)]
pub struct Head {
    variant: Variant,
    settings: Settings,
    frame: Option<Frame>,
    classes: Vec<LearnedClass>,
    phases: Vec<LearnedPhase>,
    pooled: Option<Vec<SecondMoments>>,
    /// The metric that sealed classes were sealed in, which is from then on that of all classes.
    frozen: Option<Frozen>,
    diagram_set: OnceLock<Arc<DiagramSet>>,
    /// W: the metric of before, with what changed since; never saved.
    updated: Option<Updated>,
    /// Probes that other heads of a comparison fitted.
    probes: Option<Arc<ProbeCache>>,
    /// K: directions kept between queries.
    lifts: Arc<LiftCache>,
}

impl std::fmt::Debug for DiagramSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiagramSet").finish_non_exhaustive()
    }
}

impl Clone for Head {
    fn clone(&self) -> Self {
        Self {
            variant: self.variant,
            settings: self.settings.clone(),
            frame: self.frame.clone(),
            classes: self.classes.clone(),
            phases: self.phases.clone(),
            pooled: self.pooled.clone(),
            frozen: self.frozen.clone(),
            diagram_set: OnceLock::new(),
            updated: None,
            probes: self.probes.clone(),
            lifts: Arc::clone(&self.lifts),
        }
    }
}

impl PartialEq for Head {
    /// Equal in every number kept, bit for bit.
    fn eq(&self, other: &Self) -> bool {
        self.variant == other.variant
            && self.settings == other.settings
            && self.frame == other.frame
            && self.classes == other.classes
            && self.phases == other.phases
            && self.pooled == other.pooled
            && self.frozen == other.frozen
    }
}

impl Head {
    /// A head that knows no class.
    pub fn new(variant: Variant, settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self::unchecked(variant, settings))
    }

    /// The same, sharing probes with other heads.
    #[must_use]
    pub fn sharing(mut self, probes: Arc<ProbeCache>) -> Self {
        self.probes = Some(probes);
        self
    }

    /// The same with settings that are checked later.
    pub(crate) fn unchecked(variant: Variant, settings: Settings) -> Self {
        Self {
            variant,
            settings,
            frame: None,
            classes: Vec::new(),
            phases: Vec::new(),
            pooled: None,
            frozen: None,
            diagram_set: OnceLock::new(),
            updated: None,
            probes: None,
            lifts: Arc::default(),
        }
    }

    /// The variant.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The classes in order of arrival.
    pub fn classes(&self) -> &[LearnedClass] {
        &self.classes
    }

    /// How many classes each phase brought.
    pub fn phases(&self) -> Vec<usize> {
        self.phases.iter().map(|learned| learned.size).collect()
    }

    /// Layer names with their dimensions, once something was learned.
    pub fn layers(&self) -> &[(String, usize)] {
        self.frame.as_ref().map_or(&[], |frame| &frame.layers)
    }

    /// Whether a head with these settings would learn the same numbers: where nothing is trained, the
    /// settings of the metric act only when queries are measured.
    pub(crate) fn learns_alike(&self, settings: &Settings) -> bool {
        let Settings { ridge, prior, volume, rank, .. } = self.settings;
        let theirs = Settings { ridge, prior, volume, rank, ..settings.clone() };
        let trained = self.variant.divide || self.variant.residual;
        !trained && self.variant.is_metric() && theirs == self.settings
    }

    /// The same numbers, measured with other settings.
    pub(crate) fn measuring_with(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self.changed();
        self
    }

    /// The phase in which a class arrived.
    pub(crate) fn phase_of(&self, class: usize) -> usize {
        let mut end = 0;
        let phase = self.phases.iter().position(|learned| {
            end += learned.size;
            class < end
        });
        phase.unwrap_or(self.phases.len())
    }

    /// Whether all that is kept are sums, so that samples can be taken away again.
    pub(crate) fn is_additive(&self) -> bool {
        let compact = self.variant.keeps_compact(self.settings.scatter);
        !self.variant.divide && !self.variant.residual && !compact
    }

    /// Dimension of each block.
    pub(crate) fn block_dims(&self) -> &[usize] {
        self.frame.as_ref().map_or(&[], |frame| &frame.dims)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| class.name == name)
    }

    /// The place of every class: one look-up each where many are sought.
    pub(crate) fn places(&self) -> HashMap<&str, usize> {
        let names = self.classes.iter().map(|class| class.name.as_str());
        names.enumerate().map(|(at, name)| (name, at)).collect()
    }

    fn points(&self, features: &Points, stage: Stage) -> Result<Composed> {
        let used = used_layers(features, self.variant)?;
        for (layer, &(_, expected)) in used.into_iter().zip(self.layers()) {
            // a lift or a concatenation may hide that a layer has changed
            let found = features.dim(layer);
            if expected != found {
                let what = format!("{}: dimension of the features", features.origin());
                return Err(Error::Size { what, expected, found });
            }
        }
        let mut points = compose(features, self.variant, &self.settings, stage, &self.lifts)?;
        if let Some(frame) = &self.frame {
            let expected = if stage == Stage::Full { &frame.dims } else { &frame.probe_dims };
            for (&expected, &found) in expected.iter().zip(&points.dims()) {
                if expected != found {
                    let what = format!("{}: dimension of the features", features.origin());
                    return Err(Error::Size { what, expected, found });
                }
            }
            frame.put(&mut points, stage);
        }
        Ok(points)
    }

    fn probe_stage(&self) -> Stage {
        match self.settings.probe_space {
            ProbeSpace::Raw => Stage::Raw,
            ProbeSpace::Transformed => Stage::Transformed,
        }
    }

    /// One row per query, one column per class, smaller is nearer.
    pub fn distances(&self, queries: &Points) -> Result<Matrix> {
        // the lifted metric costs a solve in the lifted dimension for each query
        self.measure(queries, !self.variant.lift)
    }

    /// Bytes of all numbers kept.
    pub fn bytes(&self) -> usize {
        audit::audit(self).iter().map(|line| line.bytes).sum()
    }

    /// The diagram over layers of the upright view, for pictures and for checks.
    pub fn diagram(&self) -> Result<ClusterDiagram> {
        let set = self.diagram_set()?;
        let layers = self.block_diagrams()?.into_iter().take(set.layers).collect();
        ClusterDiagram::new(layers, set.layer_weights.clone(), set.gamma)
    }

    /// The power diagram of every block.
    fn diagrams(&self) -> Result<Vec<&PowerDiagram>> {
        let diagrams: Option<Vec<_>> =
            self.diagram_set()?.cross.iter().map(Metric::diagram).collect();
        let what = "classes with metrics of their own (Q) have no power diagram".to_owned();
        diagrams.ok_or(Error::Unsupported { what })
    }

    /// Puts back what a model file holds.
    pub(crate) fn restore(
        &mut self,
        frame: Frame,
        classes: Vec<LearnedClass>,
        phases: Vec<LearnedPhase>,
        pooled: Option<Vec<SecondMoments>>,
    ) {
        self.frame = Some(frame);
        (self.classes, self.phases, self.pooled) = (classes, phases, pooled);
        self.changed();
    }

    /// Gives up the diagram, and what answers in its place: classes or their sums have changed.
    fn changed(&mut self) {
        self.diagram_set.take();
        self.updated = None;
    }

    /// Puts back the metric that sealed classes of a file were sealed in.
    pub(crate) fn freeze(&mut self, frozen: Option<Frozen>) {
        self.frozen = frozen;
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts {
            frame: self.frame.as_ref(),
            phases: &self.phases,
            pooled: self.pooled.as_deref(),
            frozen: self.frozen.as_ref(),
        }
    }
}

/// What the model file and the audit read of a head.
pub(crate) struct Parts<'a> {
    pub(crate) frame: Option<&'a Frame>,
    pub(crate) phases: &'a [LearnedPhase],
    pub(crate) pooled: Option<&'a [SecondMoments]>,
    pub(crate) frozen: Option<&'a Frozen>,
}
