//! A head: what is learned of the classes, and how queries are measured against it.
//!
//! Composition, in this order: transform → distances per (layer, view, view) → layers added → AI:
//! views added, then D's selection; AC: D's selection per pair, then the vote.

mod answer;
mod cells;
mod change;
mod learn;
mod pictures;
mod points;
mod settings;
mod variant;
mod views;

use std::sync::OnceLock;

pub use answer::Answers;
pub(crate) use cells::least;
use cells::{Cells, Metric};
pub use change::{Forgetting, Merging};
use points::{Points, Stage, compose, used_layers};
pub use settings::{Optimiser, Pairs, ProbeSpace, ProbeViews, Rule, ScatterKept, Settings};
pub use variant::{EXTENDED, LETTERS, PAPER, Variant, Views};

use crate::diagram::{ClusterDiagram, PowerDiagram};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::learner::Learner;
use crate::matrix::Matrix;
use crate::statistics::{ClassStatistics, Grid, SecondMoments, within_covariance};

/// Queries handled at once, so that memory does not grow with their number.
const BATCH: usize = 2048;

/// What a head fixes when the first class arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

/// One class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownClass {
    /// Its name.
    pub name: String,
    /// What is kept of it.
    pub statistics: ClassStatistics,
}

/// Classes learned together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clique {
    /// How many; cliques follow each other in order of arrival.
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
#[derive(Debug)]
pub struct Head {
    variant: Variant,
    settings: Settings,
    frame: Option<Frame>,
    classes: Vec<KnownClass>,
    cliques: Vec<Clique>,
    pooled: Option<Vec<SecondMoments>>,
    cells: OnceLock<Box<Cells>>,
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cells").finish_non_exhaustive()
    }
}

impl Clone for Head {
    fn clone(&self) -> Self {
        Self {
            variant: self.variant,
            settings: self.settings.clone(),
            frame: self.frame.clone(),
            classes: self.classes.clone(),
            cliques: self.cliques.clone(),
            pooled: self.pooled.clone(),
            cells: OnceLock::new(),
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
            && self.cliques == other.cliques
            && self.pooled == other.pooled
    }
}

impl Head {
    /// A head that knows no class.
    pub fn new(variant: Variant, settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self::unchecked(variant, settings))
    }

    /// The same with settings that are checked later.
    pub(crate) fn unchecked(variant: Variant, settings: Settings) -> Self {
        Self {
            variant,
            settings,
            frame: None,
            classes: Vec::new(),
            cliques: Vec::new(),
            pooled: None,
            cells: OnceLock::new(),
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
    pub fn known(&self) -> &[KnownClass] {
        &self.classes
    }

    /// How many classes each phase brought.
    pub fn phases(&self) -> Vec<usize> {
        self.cliques.iter().map(|clique| clique.size).collect()
    }

    /// Layer names with their dimensions, once something was learned.
    pub fn layers(&self) -> &[(String, usize)] {
        self.frame.as_ref().map_or(&[], |frame| &frame.layers)
    }

    /// The phase in which a class arrived.
    pub(crate) fn phase_of(&self, class: usize) -> usize {
        let mut end = 0;
        let phase = self.cliques.iter().position(|clique| {
            end += clique.size;
            class < end
        });
        phase.unwrap_or(self.cliques.len())
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.classes.iter().position(|class| class.name == name)
    }

    fn points(&self, features: &Features, stage: Stage) -> Result<Points> {
        let used = used_layers(features, self.variant)?;
        for (layer, &(_, expected)) in used.into_iter().zip(self.layers()) {
            // a lift or a concatenation may hide that a layer has changed
            let found = features.dim(layer);
            if expected != found {
                let what = format!("{}: dimension of the features", features.origin());
                return Err(Error::Size { what, expected, found });
            }
        }
        let points = compose(features, self.variant, &self.settings, stage)?;
        if let Some(frame) = &self.frame {
            let expected = if stage == Stage::Full { &frame.dims } else { &frame.probe_dims };
            for (&expected, &found) in expected.iter().zip(&points.dims()) {
                if expected != found {
                    let what = format!("{}: dimension of the features", features.origin());
                    return Err(Error::Size { what, expected, found });
                }
            }
        }
        Ok(points)
    }

    fn probe_stage(&self) -> Stage {
        match self.settings.probe_space {
            ProbeSpace::Raw => Stage::Raw,
            ProbeSpace::Transformed => Stage::Transformed,
        }
    }

    /// The diagram, built when first asked for.
    fn cells(&self) -> Result<&Cells> {
        if let Some(cells) = self.cells.get() {
            return Ok(cells);
        }
        let cells = Box::new(self.build()?);
        Ok(self.cells.get_or_init(|| cells))
    }

    fn build(&self) -> Result<Cells> {
        let frame = self.frame.as_ref().ok_or(Error::Size {
            what: "classes in the model".to_owned(),
            expected: 1,
            found: 0,
        })?;
        let layers = frame.dims.len() / frame.views;
        let cross = (0..frame.dims.len()).map(|block| self.metric(frame, block));
        let weights = self.settings.layer_weights.map(|weight| weight as f32);
        let single = layers == 1;
        Ok(Cells {
            views: frame.views,
            layers,
            cross: cross.collect::<Result<_>>()?,
            probes: self.probe_diagrams(frame)?,
            cliques: self.probed_cliques(),
            layer_weights: if single { vec![1.0] } else { weights.to_vec() },
            gamma: self.settings.gamma as f32,
            pairs: self.settings.pairs,
            rule: self.settings.rule,
        })
    }

    fn metric(&self, frame: &Frame, block: usize) -> Result<Metric> {
        let centres = self.centres(frame, block)?;
        if !self.variant.whiten {
            return Ok(Metric::Plain(PowerDiagram::voronoi(centres)));
        }
        let mut covariance = self.covariance(frame, block)?;
        let ridge = self.settings.ridge;
        covariance.add_diagonal(ridge * covariance.mean_diagonal());
        let factor = covariance.factor("within-class covariance", ridge)?;
        Metric::whitened(&centres, factor)
    }

    /// Cross-phase centres of one block: class means, moved by the residual under R.
    fn centres(&self, frame: &Frame, block: usize) -> Result<Matrix> {
        let mut data = Vec::with_capacity(self.classes.len() * frame.dims[block]);
        for class in &self.classes {
            let statistics = &class.statistics;
            let mean = statistics.blocks[block].mean(statistics.count, frame.grids[block]);
            data.extend(mean.into_iter().map(|value| value as f32));
        }
        let mut row = 0;
        for clique in &self.cliques {
            if let Some(moved) = &clique.residual {
                let start = row * frame.dims[block];
                let target = &mut data[start..start + clique.size * frame.dims[block]];
                target.iter_mut().zip(moved[block].as_slice()).for_each(|(c, m)| *c += m);
            }
            row += clique.size;
        }
        Matrix::new(self.classes.len(), frame.dims[block], data)
    }

    /// Pooled within-class covariance of one block.
    fn covariance(&self, frame: &Frame, block: usize) -> Result<crate::linalg::Symmetric> {
        let classes = || {
            let statistics = self.classes.iter().map(|class| &class.statistics);
            statistics.map(move |kept| (&kept.blocks[block], kept.count))
        };
        if let Some(pooled) = &self.pooled {
            return Ok(within_covariance(&pooled[block], classes(), frame.grids[block]));
        }
        let mut sum = SecondMoments::zeros(frame.dims[block]);
        for class in &self.classes {
            let second = class.statistics.second.as_ref().map(|second| &second[block]);
            let overflow = || Error::CountOverflow {
                class: class.name.clone(),
                count: class.statistics.count,
            };
            second.map_or(Some(()), |second| sum.combine(second, 1)).ok_or_else(overflow)?;
        }
        Ok(within_covariance(&sum, classes(), frame.grids[block]))
    }

    fn probed_cliques(&self) -> Vec<std::ops::Range<usize>> {
        let mut first = 0;
        let ranges = self.cliques.iter().map(|clique| {
            first += clique.size;
            (first - clique.size..first, clique.probe.is_some())
        });
        ranges.filter(|(_, probed)| *probed).map(|(range, _)| range).collect()
    }

    /// Probe centres of all classes, one diagram a block; zero rows where a phase has no probe.
    fn probe_diagrams(&self, frame: &Frame) -> Result<Option<Vec<PowerDiagram>>> {
        if self.cliques.iter().all(|clique| clique.probe.is_none()) {
            return Ok(None);
        }
        let block = |(block, &dim): (usize, &usize)| {
            let mut centres = Matrix::zeros(0, dim);
            for clique in &self.cliques {
                match &clique.probe {
                    Some(probe) => centres.append(&probe[block])?,
                    None => centres.append(&Matrix::zeros(clique.size, dim))?,
                }
            }
            Ok(PowerDiagram::voronoi(centres))
        };
        frame.probe_dims.iter().enumerate().map(block).collect::<Result<_>>().map(Some)
    }

    /// Distances of every query to every class; see [`Learner::distances`]. Without `absolute`,
    /// whitened distances may be short of a number that is the same for all classes of a query.
    pub fn measure(&self, queries: &Features, absolute: bool) -> Result<Matrix> {
        let mut out = Matrix::zeros(0, self.classes.len());
        self.in_batches(queries, absolute, |cells, pairs| {
            out.append(&views::combine(cells, pairs, self.variant.views))
        })?;
        Ok(out)
    }

    fn in_batches(
        &self,
        queries: &Features,
        absolute: bool,
        mut take: impl FnMut(&Cells, Vec<cells::PairDistances>) -> Result<()>,
    ) -> Result<()> {
        let cells = self.cells()?;
        let rows: Vec<usize> = (0..queries.len()).collect();
        for rows in rows.chunks(BATCH) {
            let batch = queries.select(rows);
            let points = self.points(&batch, Stage::Full)?;
            let same = !self.variant.normalise && !self.variant.lift;
            let probed = match &cells.probes {
                Some(_) if !same => Some(self.points(&batch, self.probe_stage())?),
                _ => None,
            };
            let probed = cells.probes.as_ref().map(|_| probed.as_ref().unwrap_or(&points));
            take(cells, cells.pair_distances(&points, probed, absolute)?)?;
        }
        Ok(())
    }

    /// The nearest class of every query.
    pub fn predict(&self, queries: &Features) -> Result<Vec<u32>> {
        let cells = self.cells()?;
        if cells.cross.len() > 1 || cells.probes.is_some() {
            let distances = self.measure(queries, false)?;
            return Ok(distances.iter_rows().map(|row| least(row) as u32).collect());
        }
        let mut out = Vec::with_capacity(queries.len());
        let rows: Vec<usize> = (0..queries.len()).collect();
        for rows in rows.chunks(4 * BATCH) {
            let points = self.points(&queries.select(rows), Stage::Full)?;
            let nearest = cells.cross[0].diagram().nearest(points.block(0, 0))?;
            out.extend(nearest.iter().map(|nearest| nearest.cell));
        }
        Ok(out)
    }

    /// Mean distance of a class's own samples to its centre, from what is kept; the unit in which
    /// a query's distance says whether it belongs to any class.
    pub fn own_distances(&self) -> Result<Vec<f64>> {
        let cells = self.cells()?;
        let Some(frame) = &self.frame else { return Ok(Vec::new()) };
        if self.variant.whiten {
            // the pooled metric makes the expected distance of every class the same
            return Ok(vec![1.0; self.classes.len()]);
        }
        let gamma = f64::from(cells.gamma);
        let own = |class: &KnownClass| {
            let kept = &class.statistics;
            let spread = |block: usize| kept.blocks[block].spread(kept.count, frame.grids[block]);
            let pair = |&(query, centre): &(usize, usize)| -> f64 {
                let layer = |layer: usize| {
                    let (q, c) = (query * cells.layers + layer, centre * cells.layers + layer);
                    let apart = squared_apart(kept, frame, q, c);
                    let distance = (spread(q) + apart).max(f64::MIN_POSITIVE);
                    f64::from(cells.layer_weights[layer]) * gamma.signum() * distance.powf(gamma)
                };
                (0..cells.layers).map(layer).sum()
            };
            cells.pairs().iter().map(pair).sum::<f64>()
        };
        Ok(self.classes.iter().map(own).collect())
    }

    /// Bytes of all numbers kept.
    pub fn bytes(&self) -> usize {
        crate::audit::audit(self).iter().map(|line| line.bytes).sum()
    }

    /// The diagram over layers of the upright view, for pictures and for checks.
    pub fn diagram(&self) -> Result<ClusterDiagram> {
        let cells = self.cells()?;
        let layers = (0..cells.layers).map(|layer| cells.cross[layer].diagram().clone()).collect();
        ClusterDiagram::new(layers, cells.layer_weights.clone(), cells.gamma)
    }

    /// Puts back what a model file holds.
    pub(crate) fn restore(
        &mut self,
        frame: Frame,
        classes: Vec<KnownClass>,
        cliques: Vec<Clique>,
        pooled: Option<Vec<SecondMoments>>,
    ) {
        self.frame = Some(frame);
        (self.classes, self.cliques, self.pooled) = (classes, cliques, pooled);
        self.cells.take();
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts { frame: self.frame.as_ref(), cliques: &self.cliques, pooled: self.pooled.as_deref() }
    }
}

/// What the model file and the audit read of a head.
pub(crate) struct Parts<'a> {
    pub(crate) frame: Option<&'a Frame>,
    pub(crate) cliques: &'a [Clique],
    pub(crate) pooled: Option<&'a [SecondMoments]>,
}

/// Squared distance between a class's means in two blocks of the same layer.
fn squared_apart(kept: &ClassStatistics, frame: &Frame, first: usize, second: usize) -> f64 {
    if first == second {
        return 0.0;
    }
    let mean = |block: usize| kept.blocks[block].mean(kept.count, frame.grids[block]);
    mean(first).iter().zip(mean(second)).map(|(a, b)| (a - b).powi(2)).sum()
}

impl Learner for Head {
    fn name(&self) -> String {
        self.variant.to_string()
    }

    fn learn(&mut self, phase: &Features) -> Result<()> {
        self.learn_phase(phase)
    }

    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn distances(&self, queries: &Features) -> Result<Matrix> {
        // the lifted metric costs a solve in the lifted dimension for each query
        self.measure(queries, !self.variant.lift)
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}
