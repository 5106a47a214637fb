//! Learning a phase: sums, second moments and probes.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::head::compose::{Composed, Stage};
use crate::head::place::{Place, scales_columns};
use crate::head::settings::{ProbeViews, ScatterKept};
use crate::head::{
    Arrival, Before, Frame, Head, LearnedClass, LearnedPhase, MOST, Updated, Variant,
};
use crate::matrix::Matrix;
use crate::probe_cache::Fit;
use crate::regression::{FitOptions, Objective, Penalty, fit};
use crate::samples::Samples;
use crate::statistics::{
    ClassStatistics, CompactScatter, Grid, SecondMoments, Sums, sums_by_class,
};

/// Bytes of the longest name of a class.
const LONGEST_NAME: usize = 4096;

/// Samples of the classes of one call: names, and labels that index them.
pub(crate) struct Batch {
    /// Where they come from, for messages.
    origin: String,
    pub(crate) names: Vec<String>,
    pub(crate) labels: Vec<u32>,
}

impl Batch {
    /// The classes that occur in the features, in label order.
    pub(crate) fn of(features: &Samples) -> Result<Self> {
        let mut place = vec![u32::MAX; features.classes().len()];
        features.labels().iter().for_each(|&label| place[label as usize] = 0);
        let mut names = Vec::new();
        for (label, place) in place.iter_mut().enumerate().filter(|(_, place)| **place == 0) {
            *place = names.len() as u32;
            names.push(features.classes()[label].clone());
        }
        if names.is_empty() {
            let what = format!("{}: samples to learn from", features.origin());
            return Err(Error::Size { what, expected: 1, found: 0 });
        }
        // a model file could not be read back if a class had no name
        if let Some(place) = names.iter().position(|name| !is_name(name)) {
            return Err(Error::ClassName {
                origin: features.origin().to_owned(),
                place,
                found: names[place].len(),
                most: LONGEST_NAME,
            });
        }
        let labels = features.labels().iter().map(|&label| place[label as usize]).collect();
        Ok(Self { origin: features.origin().to_owned(), names, labels })
    }
}

/// Whether a model file can hold a class of this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
}

/// Points of a few samples, class by class: its place, its mean and number before, and their rows.
pub(crate) struct Arrived {
    points: Matrix,
    classes: Vec<(usize, Before, Vec<usize>)>,
}

impl Arrived {
    fn new(points: &Composed, labels: &[u32], class: impl Fn(u32) -> (usize, Before)) -> Self {
        let mut sorted: Vec<u32> = labels.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let rows = |label: u32| (0..labels.len()).filter(|&row| labels[row] == label).collect();
        let of = |label: u32| {
            let (place, before) = class(label);
            (place, before, rows(label))
        };
        Self { points: points.blocks[0].clone(), classes: sorted.into_iter().map(of).collect() }
    }
}

impl Head {
    /// Learns new classes together as one phase. On an error nothing has changed.
    pub fn learn(&mut self, phase: &Samples) -> Result<()> {
        let batch = Batch::of(phase)?;
        let places = self.places();
        for name in &batch.names {
            if let Some(&at) = places.get(name.as_str()) {
                let phase = self.phase_of(at);
                return Err(Error::ClassReturns { class: name.clone(), phase });
            }
        }
        let mut points = self.points(phase, Stage::Full)?;
        let frame = match &self.frame {
            Some(frame) => self.framed(frame, &points),
            None => self.begin(phase, &mut points)?,
        };
        let (statistics, pooled) = self.gather(&frame, &points, &batch)?;
        let learned = self.fit_phase(phase, &frame, &points, &batch, &statistics)?;
        let classes = self.classes.len();
        let updated = self.updating().filter(|_| batch.labels.len() <= MOST);
        let arrived = updated
            .is_some()
            .then(|| Arrived::new(&points, &batch.labels, |at| (classes + at as usize, None)));
        self.commit(frame, batch.names, statistics, pooled, learned)?;
        self.updated = updated
            .zip(arrived)
            .and_then(|(updated, arrived)| updated.add(&self.arrivals(&arrived)));
        Ok(())
    }

    /// The metric in use with what changed since it was built, if a head of this kind has one.
    pub(super) fn updating(&mut self) -> Option<Updated> {
        let classes = self.classes.len();
        match self.diagram_set.get() {
            Some(built) if self.may_update() => Updated::of(Arc::clone(built), classes),
            _ => self.updated.take().filter(|updated| updated.classes() == classes),
        }
    }

    /// W alone, in one block of features in the unit that they came in.
    fn may_update(&self) -> bool {
        let single = self.frame.as_ref().is_some_and(|frame| {
            frame.dims.len() == 1 && frame.places.iter().all(|place| place.exponents.is_empty())
        });
        let single = single && self.settings.scatter != ScatterKept::Compact;
        let Variant { whiten, divide, residual, .. } = self.variant;
        single && whiten && !divide && !residual && self.settings.gamma == 1.0
    }

    /// Samples of known classes, if they are few and the metric may be updated with them.
    pub(super) fn arrived(&self, samples: &Samples) -> Result<Option<Arrived>> {
        if samples.len() > MOST || !self.may_update() {
            return Ok(None);
        }
        let (batch, places) = (Batch::of(samples)?, self.places());
        let grid = self.frame.as_ref().map(|frame| frame.grids[0]);
        let (points, Some(grid)) = (self.points(samples, Stage::Full)?, grid) else {
            return Ok(None);
        };
        let known: Option<Vec<usize>> =
            batch.names.iter().map(|name| places.get(name.as_str()).copied()).collect();
        Ok(known.map(|known| {
            Arrived::new(&points, &batch.labels, |at| {
                let kept = &self.classes[known[at as usize]].statistics;
                let before = (kept.blocks[0].mean(kept.count, grid), kept.count as f64);
                (known[at as usize], Some(before))
            })
        }))
    }

    /// The same with the means that their classes have now.
    pub(super) fn arrivals<'a>(&self, arrived: &'a Arrived) -> Vec<Arrival<'a>> {
        let Some(grid) = self.frame.as_ref().map(|frame| frame.grids[0]) else { return Vec::new() };
        let arrival = |(class, before, rows): &'a (usize, Before, Vec<usize>)| {
            let kept = &self.classes[*class].statistics;
            Arrival {
                class: *class,
                points: rows.iter().map(|&row| arrived.points.row(row)).collect(),
                before: before.clone(),
                mean: kept.blocks[0].mean(kept.count, grid),
            }
        };
        arrived.classes.iter().map(arrival).collect()
    }

    /// Takes over what was gathered of new classes.
    pub(crate) fn commit(
        &mut self,
        frame: Frame,
        names: Vec<String>,
        statistics: Vec<ClassStatistics>,
        pooled: Option<Vec<SecondMoments>>,
        learned: LearnedPhase,
    ) -> Result<()> {
        if let (Some(kept), Some(new)) = (&mut self.pooled, &pooled) {
            let mut sum = kept.clone();
            for (sum, new) in sum.iter_mut().zip(new) {
                let overflow = || Error::CountOverflow { class: "all".to_owned(), count: 0 };
                sum.combine(new, 1).ok_or_else(overflow)?;
            }
            *kept = sum;
        } else {
            self.pooled = pooled;
        }
        self.frame = Some(frame);
        let classes = names.into_iter().zip(statistics);
        self.classes.extend(classes.map(|(name, statistics)| LearnedClass {
            name,
            statistics,
            sealed: None,
        }));
        self.phases.push(learned);
        self.changed();
        Ok(())
    }

    /// Fixes layers, dimensions and grids with the first samples.
    fn begin(&self, phase: &Samples, points: &mut Composed) -> Result<Frame> {
        let used = match (self.variant.third, self.variant.layered) {
            (true, _) => 1..2,
            (false, true) => 0..2,
            (false, false) => 0..1,
        };
        let layers = used.map(|layer| (phase.layers()[layer].clone(), phase.dim(layer)));
        let columns = scales_columns(self.variant, &self.settings);
        let place = |block: &Matrix| Place::of(block, columns);
        let places: Vec<Place> = points.blocks.iter().map(place).collect();
        let (mut probe_dims, mut probe_places) = (points.dims(), places.clone());
        if self.variant.divide && (self.variant.normalise || self.variant.lift) {
            let probed = self.points(phase, self.probe_stage())?;
            probe_dims = probed.dims();
            probe_places = probed.blocks.iter().map(|block| Place::of(block, false)).collect();
        }
        let (views, dims) = (points.views, points.dims());
        let layers = layers.collect();
        let mut frame =
            Frame { layers, views, dims, probe_dims, grids: Vec::new(), places, probe_places };
        frame.put(points, Stage::Full);
        frame.grids = points.blocks.iter().map(Grid::covering).collect();
        Ok(frame)
    }

    /// The frame in which to learn further points: where all samples so far were zero, no unit of
    /// theirs was ever used, and these points choose it.
    pub(crate) fn framed(&self, frame: &Frame, points: &Composed) -> Frame {
        let mut frame = frame.clone();
        for (block, grid) in frame.grids.iter_mut().enumerate() {
            if !self.classes.is_empty() && self.sums_of(block).all(Sums::are_zero) {
                *grid = Grid::covering(&points.blocks[block]);
            }
        }
        frame
    }

    /// Statistics of a batch per class, and pooled second moments where those are kept.
    pub(crate) fn gather(
        &self,
        frame: &Frame,
        points: &Composed,
        batch: &Batch,
    ) -> Result<(Vec<ClassStatistics>, Option<Vec<SecondMoments>>)> {
        let classes = batch.names.len();
        let per_class = self.variant.keeps_second_per_class(self.settings.scatter);
        let compact = self.variant.keeps_compact(self.settings.scatter);
        let mut statistics = vec![ClassStatistics::empty(&frame.dims, per_class); classes];
        for &label in &batch.labels {
            statistics[label as usize].count += 1;
        }
        let mut pooled = Vec::new();
        for (index, block) in points.blocks.iter().enumerate() {
            let grid = frame.grids[index];
            let sums = sums_by_class(block, &batch.labels, &batch.names, grid, &batch.origin)?;
            for (class, sums) in statistics.iter_mut().zip(sums) {
                class.blocks[index] = sums;
            }
            if compact {
                let rank = self.settings.scatter_rank;
                add_compact(&mut statistics, block, &batch.labels, index, (grid, rank))?;
            } else if per_class {
                add_second(&mut statistics, block, &batch.labels, index, grid)?;
            } else if self.variant.whiten {
                let mut moments = SecondMoments::zeros(block.cols());
                moments.add(block, grid)?;
                pooled.push(moments);
            }
        }
        Ok((statistics, (!pooled.is_empty()).then_some(pooled)))
    }

    /// Probes of a phase: centres for D, displacements for R.
    fn fit_phase(
        &self,
        phase: &Samples,
        frame: &Frame,
        points: &Composed,
        batch: &Batch,
        statistics: &[ClassStatistics],
    ) -> Result<LearnedPhase> {
        let size = batch.names.len();
        let mut learned = LearnedPhase { size, probe: None, residual: None };
        let prototypes = |block: usize| {
            let mean =
                |kept: &ClassStatistics| kept.blocks[block].mean(kept.count, frame.grids[block]);
            let data = statistics.iter().flat_map(mean).map(|value| value as f32).collect();
            Matrix::new(size, frame.dims[block], data)
        };
        if self.variant.residual {
            let start = (0..frame.dims.len()).map(prototypes).collect::<Result<Vec<_>>>()?;
            let mut moved =
                self.fit(points, batch, &start, Penalty::Residual(self.settings.beta))?;
            for (moved, start) in moved.iter_mut().zip(&start) {
                moved.as_mut_slice().iter_mut().zip(start.as_slice()).for_each(|(m, s)| *m -= s);
            }
            learned.residual = Some(moved);
        }
        if self.variant.divide {
            let mut probed = self.points(phase, self.probe_stage())?;
            if self.frame.is_none() {
                frame.put(&mut probed, self.probe_stage());
            }
            let start = probed.blocks.iter().map(|block| class_means(block, batch));
            let start = start.collect::<Result<Vec<_>>>()?;
            let penalty = Penalty::Decay(self.settings.weight_decay);
            learned.probe = Some(self.fit(&probed, batch, &start, penalty)?);
        }
        Ok(learned)
    }

    /// Fits probes on every block: one per rotation, or one over all rotated sister classes.
    fn fit(
        &self,
        points: &Composed,
        batch: &Batch,
        start: &[Matrix],
        penalty: Penalty,
    ) -> Result<Vec<Matrix>> {
        let options = FitOptions {
            optimiser: self.settings.optimiser,
            iterations: self.settings.iterations,
            seed: self.settings.seed,
        };
        let sisters = self.settings.probe_views == ProbeViews::Sisters && points.views > 1;
        if !sisters {
            let blocks = points.blocks.iter().zip(start);
            let fitted = blocks.map(|(points, start)| {
                self.fitted(&Fit { points, labels: &batch.labels, start, penalty, options })
            });
            return fitted.collect();
        }
        let mut centres: Vec<Option<Matrix>> = vec![None; start.len()];
        for layer in 0..points.layers {
            let (block, labels, joint) = stack_sisters(points, batch, start, layer)?;
            let fit = Fit { points: &block, labels: &labels, start: &joint, penalty, options };
            let fitted = self.fitted(&fit)?;
            let size = batch.names.len();
            for view in 0..points.views {
                let rows: Vec<usize> = (view * size..(view + 1) * size).collect();
                centres[view * points.layers + layer] = Some(fitted.select(&rows));
            }
        }
        Ok(centres.into_iter().flatten().collect())
    }

    /// Fits, unless another head of the comparison has done so.
    fn fitted(&self, one: &Fit<'_>) -> Result<Matrix> {
        let compute = || {
            let objective = Objective::new(one.points, one.labels, one.start, one.penalty)?;
            Ok(fit(&objective, one.options)?.centres)
        };
        match &self.probes {
            Some(probes) => probes.get(one, compute),
            None => compute(),
        }
    }
}

/// All views of one layer under each other, with sister labels view · K + class.
fn stack_sisters(
    points: &Composed,
    batch: &Batch,
    start: &[Matrix],
    layer: usize,
) -> Result<(Matrix, Vec<u32>, Matrix)> {
    let mut block = points.block(0, layer).clone();
    let mut joint = start[layer].clone();
    let mut labels = batch.labels.clone();
    for view in 1..points.views {
        block.append(points.block(view, layer))?;
        joint.append(&start[view * points.layers + layer])?;
        let shift = (view * batch.names.len()) as u32;
        labels.extend(batch.labels.iter().map(|label| label + shift));
    }
    Ok((block, labels, joint))
}

fn add_second(
    statistics: &mut [ClassStatistics],
    block: &Matrix,
    labels: &[u32],
    index: usize,
    grid: Grid,
) -> Result<()> {
    for (class, kept) in statistics.iter_mut().enumerate() {
        let rows: Vec<usize> = (0..labels.len()).filter(|&r| labels[r] as usize == class).collect();
        if let Some(second) = &mut kept.second {
            second[index].add(&block.select(&rows), grid)?;
        }
    }
    Ok(())
}

/// Describes how each class spreads.
fn add_compact(
    statistics: &mut [ClassStatistics],
    block: &Matrix,
    labels: &[u32],
    index: usize,
    (grid, rank): (Grid, usize),
) -> Result<()> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); statistics.len()];
    labels.iter().enumerate().for_each(|(row, &label)| rows[label as usize].push(row));
    statistics.par_iter_mut().zip(rows).try_for_each(|(kept, rows)| {
        let mean = kept.blocks[index].mean(kept.count, grid);
        let compact = CompactScatter::of(&block.select(&rows), &mean, rank, grid)?;
        kept.compact.get_or_insert_default().push(compact);
        Ok(())
    })
}

/// Class means of a block that is not kept: where a probe of D starts.
fn class_means(block: &Matrix, batch: &Batch) -> Result<Matrix> {
    let grid = Grid::covering(block);
    let sums = sums_by_class(block, &batch.labels, &batch.names, grid, &batch.origin)?;
    let mut counts = vec![0u64; batch.names.len()];
    batch.labels.iter().for_each(|&label| counts[label as usize] += 1);
    let means = sums.iter().zip(counts).flat_map(|(sums, count)| sums.mean(count, grid));
    Matrix::new(batch.names.len(), block.cols(), means.map(|value| value as f32).collect())
}
