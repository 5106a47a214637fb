//! From sums to diagrams: centres, covariances and the metric of each block.

use std::sync::{Arc, OnceLock};

use crate::diagram::{PowerDiagram, squared_length};
use crate::error::{Error, Result};
use crate::head::background::Spread;
use crate::head::compact::{Arrived, Base, Compact, CompactClass};
use crate::head::diagram_set::{DiagramSet, Metric};
use crate::head::place::add_ridge;
use crate::head::quadrics::Quadrics;
use crate::head::settings::RidgePer;
use crate::head::updated::Origin;
use crate::head::{Frame, Head, LearnedClass, Rank};
use crate::linalg::{Factor, Symmetric};
use crate::matrix::Matrix;
use crate::statistics::{
    ClassStatistics, CompactScatter, Grid, SecondMoments, Sums, within_scatter,
};

/// Σ z zᵀ of a block, of one class or of all together, wherever it is kept.
pub(crate) type Scatter<'a> = dyn FnMut(usize, Option<usize>) -> Result<Symmetric> + 'a;

/// What is factored.
const WITHIN: &str = "within-class covariance";

impl Head {
    /// The diagram, built when first asked for.
    pub(super) fn diagram_set(&self) -> Result<&DiagramSet> {
        if let Some(set) = self.diagram_set.get() {
            return Ok(set);
        }
        let set = Arc::new(self.build(&mut |block, class| self.scatter(block, class))?);
        Ok(self.diagram_set.get_or_init(|| set))
    }

    /// Builds the diagram with second moments that are kept elsewhere, and then lets go of all
    /// sums: the head can be asked, and nothing else.
    pub(crate) fn reduce_to_predictor(&mut self, scatter: &mut Scatter<'_>) -> Result<()> {
        let set = Arc::new(self.build(scatter)?);
        self.diagram_set = set.into();
        self.typical_distances()?;
        self.background()?;
        for class in &mut self.classes {
            let statistics = &mut class.statistics;
            (statistics.blocks, statistics.second, statistics.compact) = (Vec::new(), None, None);
        }
        self.phases.iter_mut().for_each(|learned| (learned.probe, learned.residual) = (None, None));
        Ok(())
    }

    fn build(&self, scatter: &mut Scatter<'_>) -> Result<DiagramSet> {
        let frame = self.frame.as_ref().ok_or(Error::Size {
            what: "classes in the model".to_owned(),
            expected: 1,
            found: 0,
        })?;
        let layers = frame.dims.len() / frame.views;
        let blocks = (0..frame.dims.len()).map(|block| self.metric(frame, block, scatter));
        let (cross, usual) = blocks.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let weights = self.settings.layer_weights.map(|weight| weight as f32);
        let single = layers == 1;
        Ok(DiagramSet {
            views: frame.views,
            layers,
            cross,
            usual,
            background: OnceLock::new(),
            probes: self.probe_diagrams(frame)?,
            phases: self.probed_phases(),
            layer_weights: if single { vec![1.0] } else { weights.to_vec() },
            // γ joins layers, of which Q has one, and its term for the volume is no distance
            gamma: if self.variant.per_class_metric { 1.0 } else { self.settings.gamma as f32 },
            pairs: self.settings.pairs,
            rule: self.settings.rule,
            typical_distances: OnceLock::new(),
            index: OnceLock::new(),
        })
    }

    /// All classes of Q in few directions: sealed ones as they are kept, the others from their sums.
    fn compact(
        &self,
        frame: &Frame,
        block: usize,
        (base, centres, rank): (&Base, &Matrix, usize),
        scatter: &mut Scatter<'_>,
    ) -> Result<Metric> {
        let open: Vec<usize> =
            (0..self.classes.len()).filter(|&at| self.classes[at].sealed.is_none()).collect();
        let open = self.describe(frame, block, (base, centres, rank), &open, scatter)?;
        let mut open = open.into_iter();
        let classes: Vec<CompactClass> = self
            .classes
            .iter()
            .filter_map(|class| match &class.sealed {
                Some(blocks) => Some(blocks[block].opened()),
                None => open.next(),
            })
            .collect();
        let shared = base.shared().clone();
        Ok(Metric::Compact(Compact::assemble(shared, &classes, self.settings.volume)))
    }

    /// Some classes with sums, in few directions.
    pub(super) fn describe(
        &self,
        frame: &Frame,
        block: usize,
        (base, centres, rank): (&Base, &Matrix, usize),
        places: &[usize],
        scatter: &mut Scatter<'_>,
    ) -> Result<Vec<CompactClass>> {
        let arrived = places.iter().map(|&at| {
            let count = self.classes[at].statistics.count;
            Arrived { at, count, centre: centres.row(at) }
        });
        let mut covariance = |at: usize| self.covariance(frame, block, at, scatter);
        base.describe(&arrived.collect::<Vec<_>>(), &mut covariance, &self.settings, rank)
    }

    /// The metric that all classes share, before the ridge, and whether nothing is known of it: one
    /// sample per class, or all of them alike.
    pub(super) fn pooled_covariance(
        &self,
        frame: &Frame,
        block: usize,
        centres: &Matrix,
        scatter: &mut Scatter<'_>,
    ) -> Result<(Symmetric, bool)> {
        let grid = frame.grids[block];
        let compact = self.classes.iter().map(|class| {
            let kept = &class.statistics;
            Some((&kept.compact.as_ref()?[block], kept.count))
        });
        let mut covariance = if let Some(compact) = compact.collect::<Option<Vec<_>>>() {
            let overflow = || Error::CountOverflow { class: "all".to_owned(), count: 0 };
            CompactScatter::pooled(&compact, frame.dims[block]).ok_or_else(overflow)?
        } else {
            let classes = self.classes.iter().map(|class| &class.statistics);
            let sums = classes.map(|kept| (&kept.blocks[block], kept.count));
            within_scatter(scatter(block, None)?, sums, grid)
        };
        let flat = covariance.mean_diagonal() <= grid.noise(typical_size(centres));
        if flat {
            // no direction is known to vary more than another
            covariance = Symmetric::zeros(frame.dims[block]);
            covariance.add_diagonal(1.0);
        }
        Ok((covariance, flat))
    }

    /// The covariance of one class.
    fn covariance(
        &self,
        frame: &Frame,
        block: usize,
        class: usize,
        scatter: &mut Scatter<'_>,
    ) -> Result<Symmetric> {
        let kept = &self.classes[class].statistics;
        if let Some(compact) = &kept.compact {
            return Ok(compact[block].covariance());
        }
        let sums = [(&kept.blocks[block], kept.count)].into_iter();
        Ok(within_scatter(scatter(block, Some(class))?, sums, frame.grids[block]))
    }

    /// The metric of a block and, under W and Q, the usual distance to the own class in it.
    fn metric(
        &self,
        frame: &Frame,
        block: usize,
        scatter: &mut Scatter<'_>,
    ) -> Result<(Metric, f64)> {
        let centres = self.centres(frame, block)?;
        if let (Some(frozen), Rank::Directions(rank)) = (&self.frozen, self.settings.rank) {
            let base = Base::of(frozen.blocks[block].clone());
            let metric = self.compact(frame, block, (&base, &centres, rank), scatter)?;
            return Ok((metric, frozen.usual[block]));
        }
        if !self.variant.is_metric() {
            return Ok((Metric::Plain(PowerDiagram::voronoi(centres)), 0.0));
        }
        let classes = self.classes.iter().map(|class| &class.statistics);
        let sums: Vec<_> = classes.map(|kept| (&kept.blocks[block], kept.count)).collect();
        let grid = frame.grids[block];
        let (mut covariance, flat) = self.pooled_covariance(frame, block, &centres, scatter)?;
        let free = sums.iter().map(|(_, count)| count.saturating_sub(1));
        let freedom = free.fold(0, u64::saturating_add);
        let ridge = self.settings.ridge;
        let spread = Spread::of(&covariance, freedom, ridge);
        let usual = |factor: &Factor| if flat { 0.0 } else { spread.usual(factor) };
        if self.variant.per_class_metric {
            let usual = ridged(covariance.clone(), ridge).as_ref().map_or(0.0, usual);
            if let Rank::Directions(rank) = self.settings.rank {
                let counts: Vec<u64> = sums.iter().map(|&(_, count)| count).collect();
                let base = Base::new(covariance, &centres, &counts, &self.settings, rank)?;
                return Ok((self.compact(frame, block, (&base, &centres, rank), scatter)?, usual));
            }
            let covariances = sums.iter().enumerate().map(|(class, &(_, count))| {
                Ok((self.covariance(frame, block, class, scatter)?, count))
            });
            let covariances = covariances.collect::<Result<Vec<_>>>()?;
            let quadrics = Quadrics::new(&covariance, &centres, covariances, &self.settings)?;
            return Ok((Metric::PerClass(quadrics), usual));
        }
        let diagonal = covariance.diagonal();
        let per_mean = add_ridge(&mut covariance, &frame.places[block], &self.settings);
        let (factor, exact) = match covariance.factor(WITHIN, ridge) {
            Err(Error::NotPositiveDefinite { .. }) if ridge > 0.0 && !flat => {
                (self.factor_rounded(frame, block, &centres, scatter)?, false)
            }
            factor => (factor?, true),
        };
        let usual = usual(&factor);
        let first = self.phases.first().map_or(0, |learned| learned.size);
        let origin = (per_mean && !flat && exact).then(|| self.origin(&sums, diagonal, grid));
        Ok((Metric::whitened(&centres, factor, first, origin), usual))
    }

    /// The factor of a covariance that rounding has made indefinite. Values in second moments have fewer
    /// bits than those in sums, and where features are far from zero beside their spread, what the
    /// products of means lack then outweighs a small ridge. The least of that bound is added with which
    /// there is a factor.
    fn factor_rounded(
        &self,
        frame: &Frame,
        block: usize,
        centres: &Matrix,
        scatter: &mut Scatter<'_>,
    ) -> Result<Factor> {
        let counts = self.classes.iter().map(|class| class.statistics.count as f64);
        let (samples, classes) = (counts.sum::<f64>(), self.classes.len() as f64);
        let dims = frame.dims[block] as f64;
        // |λ| ≤ ‖mean‖ · √dim · unit, in units of the degrees of freedom
        let lost = frame.grids[block].noise(typical_size(centres)) * dims * samples
            / (samples - classes).max(1.0);
        let mut tried =
            Err(Error::NotPositiveDefinite { what: WITHIN, ridge: self.settings.ridge });
        for share in [0.01, 0.1, 1.0] {
            let (mut covariance, _) = self.pooled_covariance(frame, block, centres, scatter)?;
            add_ridge(&mut covariance, &frame.places[block], &self.settings);
            covariance.add_diagonal(share * lost);
            tried = covariance.factor(WITHIN, self.settings.ridge);
            if tried.is_ok() {
                break;
            }
        }
        tried
    }

    /// What a metric with one ridge is built from.
    fn origin(&self, sums: &[(&Sums, u64)], diagonal: Vec<f64>, grid: Grid) -> Origin {
        let samples = sums.iter().map(|(_, count)| *count as f64).sum::<f64>();
        let squares: f64 = sums.iter().map(|(sums, _)| sums.squares as f64).sum();
        let mean = diagonal.iter().sum::<f64>() / diagonal.len().max(1) as f64;
        Origin {
            diagonal,
            freedom: (samples - sums.len() as f64).max(1.0),
            samples,
            ridge: self.settings.ridge,
            floor: self.settings.ridge * mean,
            auto: self.settings.ridge_per == RidgePer::Auto,
            longest: 0.0,
            unit: grid.noise(1.0),
            squares: squares * grid.product_unit(),
        }
    }

    /// Cross-phase centres of one block: class means, moved by the residual under R.
    pub(super) fn centres(&self, frame: &Frame, block: usize) -> Result<Matrix> {
        let mut data = Vec::with_capacity(self.classes.len() * frame.dims[block]);
        for class in &self.classes {
            if let (Some(sealed), Some(frozen)) = (&class.sealed, &self.frozen) {
                data.extend(frozen.blocks[block].unwhitened(&sealed[block].opened().centre));
                continue;
            }
            let statistics = &class.statistics;
            let mean = statistics.blocks[block].mean(statistics.count, frame.grids[block]);
            data.extend(mean.into_iter().map(|value| value as f32));
        }
        let mut row = 0;
        for learned in &self.phases {
            if let Some(moved) = &learned.residual {
                let start = row * frame.dims[block];
                let target = &mut data[start..start + learned.size * frame.dims[block]];
                target.iter_mut().zip(moved[block].as_slice()).for_each(|(c, m)| *c += m);
            }
            row += learned.size;
        }
        Matrix::new(self.classes.len(), frame.dims[block], data)
    }

    /// Σ z zᵀ of one block, of one class or of all together.
    pub(super) fn scatter(&self, block: usize, class: Option<usize>) -> Result<Symmetric> {
        let Some(frame) = &self.frame else { return Ok(Symmetric::zeros(0)) };
        let grid = frame.grids[block];
        if let Some(pooled) = &self.pooled {
            return Ok(pooled[block].to_symmetric(grid));
        }
        let kept = class.and_then(|class| self.classes[class].statistics.second.as_ref());
        if let Some(second) = kept {
            return Ok(second[block].to_symmetric(grid));
        }
        let mut sum = SecondMoments::zeros(frame.dims[block]);
        let classes = class.map_or(0..self.classes.len(), |class| class..class + 1);
        for class in &self.classes[classes] {
            let second = class.statistics.second.as_ref().map(|second| &second[block]);
            let overflow = || Error::CountOverflow {
                class: class.name.clone(),
                count: class.statistics.count,
            };
            second.map_or(Some(()), |second| sum.combine(second, 1)).ok_or_else(overflow)?;
        }
        Ok(sum.to_symmetric(grid))
    }

    fn probed_phases(&self) -> Vec<std::ops::Range<usize>> {
        let mut first = 0;
        let ranges = self.phases.iter().map(|learned| {
            first += learned.size;
            (first - learned.size..first, learned.probe.is_some())
        });
        ranges.filter(|(_, probed)| *probed).map(|(range, _)| range).collect()
    }

    /// Probe centres of all classes, one diagram per block; zero rows where a phase has no probe.
    fn probe_diagrams(&self, frame: &Frame) -> Result<Option<Vec<PowerDiagram>>> {
        if self.phases.iter().all(|learned| learned.probe.is_none()) {
            return Ok(None);
        }
        let block = |(block, &dim): (usize, &usize)| {
            let mut centres = Matrix::zeros(0, dim);
            for learned in &self.phases {
                match &learned.probe {
                    Some(probe) => centres.append(&probe[block])?,
                    None => centres.append(&Matrix::zeros(learned.size, dim))?,
                }
            }
            Ok(PowerDiagram::voronoi(centres))
        };
        frame.probe_dims.iter().enumerate().map(block).collect::<Result<_>>().map(Some)
    }

    /// How far apart the classes of the first phase are, where that changes with all that is learned.
    pub(crate) fn reach(&self) -> Result<Option<f64>> {
        Ok(self.diagram_set()?.reach())
    }

    /// Mean distance of a class's own samples to its centre, from what is kept; the unit in which
    /// a query's distance says whether it belongs to any class.
    pub fn typical_distances(&self) -> Result<&[f64]> {
        let set = self.diagram_set()?;
        Ok(set.typical_distances.get_or_init(|| self.measure_typical_distances(set)))
    }

    fn measure_typical_distances(&self, set: &DiagramSet) -> Vec<f64> {
        let Some(frame) = &self.frame else { return Vec::new() };
        if self.variant.is_metric() {
            // the metric makes the expected distance of every class the same
            return vec![1.0; self.classes.len()];
        }
        let gamma = f64::from(set.gamma);
        let typical = |class: &LearnedClass| {
            let kept = &class.statistics;
            let spread = |block: usize| kept.blocks[block].spread(kept.count, frame.grids[block]);
            let pair = |&(query, centre): &(usize, usize)| -> f64 {
                let layer = |layer: usize| {
                    let (q, c) = (query * set.layers + layer, centre * set.layers + layer);
                    let apart = squared_apart(kept, frame, q, c);
                    let distance = (spread(q) + apart).max(f64::MIN_POSITIVE);
                    f64::from(set.layer_weights[layer]) * gamma.signum() * distance.powf(gamma)
                };
                (0..set.layers).map(layer).sum()
            };
            set.pairs().iter().map(pair).sum::<f64>()
        };
        self.classes.iter().map(typical).collect()
    }
}

/// The factor of a covariance with a ridge.
fn ridged(mut covariance: Symmetric, ridge: f64) -> Result<Factor> {
    covariance.add_diagonal(ridge * covariance.mean_diagonal());
    covariance.factor(WITHIN, ridge)
}

/// Squared distance between a class's means in two blocks of the same layer.
fn squared_apart(kept: &ClassStatistics, frame: &Frame, first: usize, second: usize) -> f64 {
    if first == second {
        return 0.0;
    }
    let mean = |block: usize| kept.blocks[block].mean(kept.count, frame.grids[block]);
    mean(first).iter().zip(mean(second)).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The root of the mean square of all numbers.
fn typical_size(matrix: &Matrix) -> f64 {
    let squares: f64 = matrix.iter_rows().map(|row| f64::from(squared_length(row))).sum();
    (squares / (matrix.rows() * matrix.cols()).max(1) as f64).sqrt()
}
