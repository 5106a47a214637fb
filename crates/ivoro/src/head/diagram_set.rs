//! All diagrams of a head: that between phases, and those of the phases with probes.

use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::diagram::{PowerDiagram, add_influence, far_origin, less, squared_length};
use crate::error::Result;
use crate::head::background::Background;
use crate::head::compact::Compact;
use crate::head::compose::Composed;
use crate::head::indexed::Indexed;
use crate::head::quadrics::Quadrics;
use crate::head::settings::{Pairs, Rule};
use crate::head::updated::Origin;
use crate::linalg::Factor;
use crate::matrix::Matrix;
use crate::vectors::least;

/// The metric of one block with all centres in it.
pub(crate) enum Metric {
    /// Squared Euclidean distances.
    Plain(PowerDiagram),
    /// Squared Mahalanobis distances: a power diagram in the plain space, the factor that
    /// measures the query itself, and how far apart the first centres are.
    /// Where it can be updated, what it was built from.
    Whitened { diagram: PowerDiagram, factor: Factor, reach: f64, origin: Option<Origin> },
    /// Squared Mahalanobis distances in one metric per class, each a whole matrix.
    PerClass(Quadrics),
    /// The same in few directions per class.
    Compact(Compact),
}

impl Metric {
    /// (z − c)ᵀ S⁻¹ (z − c) from `−2 z·S⁻¹c + cᵀS⁻¹c`, the part that depends on the class; `first`
    /// classes came in the first phase.
    pub(crate) fn whitened(
        centres: &Matrix,
        factor: Factor,
        first: usize,
        built: Option<Origin>,
    ) -> Self {
        let origin = far_origin(centres);
        // distances around a point of the diagram's own are not those that an update starts from
        let built = built.filter(|_| origin.is_none());
        let shifted = origin.as_ref().map(|origin| less(centres, origin));
        let centres = shifted.as_ref().unwrap_or(centres);
        let linear = factor.solve(centres);
        let reach = reach(centres, &linear, first);
        let offsets: Vec<f64> = centres
            .iter_rows()
            .zip(linear.iter_rows())
            .map(|(centre, linear)| {
                centre.iter().zip(linear).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
            })
            .collect();
        let square = |row: &[f32]| f64::from(squared_length(row));
        let size = centres.iter_rows().map(square).fold(0.0, f64::max);
        let diagram = PowerDiagram::linear(origin, linear, &offsets, size);
        let origin = built.map(|built| Origin { longest: size, ..built });
        Self::Whitened { diagram, factor, reach, origin }
    }

    /// The diagram whose nearest cell is the answer; metrics per class have none.
    pub(crate) fn diagram(&self) -> Option<&PowerDiagram> {
        match self {
            Self::Plain(diagram) | Self::Whitened { diagram, .. } => Some(diagram),
            Self::PerClass(_) | Self::Compact(_) => None,
        }
    }

    /// The part of a distance that does not depend on the query.
    fn volume(&self, class: usize) -> f32 {
        match self {
            Self::Plain(_) | Self::Whitened { .. } => 0.0,
            Self::PerClass(quadrics) => quadrics.volume(class),
            Self::Compact(compact) => compact.volume(class),
        }
    }

    /// Distances to every centre. Without `absolute`, whitened distances are short of a number
    /// that is the same for all classes: ranks and probabilities do not need it.
    fn distances(&self, queries: &Matrix, absolute: bool) -> Result<Matrix> {
        let (diagram, factor) = match self {
            Self::Plain(diagram) => return diagram.distances(queries),
            Self::PerClass(quadrics) => return Ok(quadrics.distances(queries)),
            Self::Compact(compact) => return Ok(compact.distances(queries)),
            Self::Whitened { diagram, factor, .. } => (diagram, factor),
        };
        let lengths = absolute.then(|| {
            let white = factor.whiten_alike(&diagram.local(queries));
            white.iter_rows().map(squared_length).collect::<Vec<f32>>()
        });
        diagram.compared(queries, lengths.as_deref())
    }
}

/// Mean of (cᵢ − cⱼ)ᵀ S⁻¹ (cᵢ − cⱼ) over the first centres, of which `linear` has S⁻¹c.
fn reach(centres: &Matrix, linear: &Matrix, first: usize) -> f64 {
    let mut sums = vec![(0.0, 0.0); centres.cols()];
    let mut lengths = 0.0;
    for (centre, linear) in centres.iter_rows().zip(linear.iter_rows()).take(first) {
        for ((&a, &b), sums) in centre.iter().zip(linear).zip(&mut sums) {
            let (a, b) = (f64::from(a), f64::from(b));
            lengths += a * b;
            *sums = (sums.0 + a, sums.1 + b);
        }
    }
    let all: f64 = sums.iter().map(|(a, b)| a * b).sum();
    2.0 * (lengths - all / first as f64) / (first as f64 - 1.0)
}

/// A head's diagram, ready to be asked.
pub(crate) struct DiagramSet {
    pub(crate) views: usize,
    pub(crate) layers: usize,
    /// Cross-phase metric, view-major as in [`Composed`].
    pub(crate) cross: Vec<Metric>,
    /// Probe centres of all classes, view-major, under D.
    pub(crate) probes: Option<Vec<PowerDiagram>>,
    /// Classes of each phase that has a probe of its own; others compare by `cross` alone.
    pub(crate) phases: Vec<Range<usize>>,
    pub(crate) layer_weights: Vec<f32>,
    pub(crate) gamma: f32,
    pub(crate) pairs: Pairs,
    pub(crate) rule: Rule,
    /// See [`Head::typical_distances`](crate::head::Head::typical_distances); measured when first needed.
    pub(crate) typical_distances: OnceLock<Vec<f64>>,
    /// Usual distance to the own class of each block under W and Q; 0 where it is not known.
    pub(crate) usual: Vec<f64>,
    /// See [`Head::background`](crate::head::Head::background); built when first needed.
    pub(crate) background: OnceLock<Background>,
    /// The index, if there is to be one; built when first asked.
    pub(crate) index: OnceLock<Option<Indexed>>,
}

/// Distances of one pair (query view, centre view).
pub(crate) struct PairDistances {
    pub(crate) cross: Matrix,
    pub(crate) probe: Option<Matrix>,
}

impl DiagramSet {
    /// (query view, centre view) pairs that are compared.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let all = self.pairs == Pairs::All;
        let views = 0..self.views;
        let pairs = views.flat_map(|query| (0..self.views).map(move |centre| (query, centre)));
        pairs.filter(|(query, centre)| all || query == centre).collect()
    }

    /// How far apart the classes of the first phase are, where that changes with all that is learned:
    /// under W, whose metric is that of all classes.
    pub(crate) fn reach(&self) -> Option<f64> {
        let blocks = self.cross.iter().zip(self.layer_weights.iter().cycle());
        let reach = blocks.map(|(metric, &weight)| match metric {
            Metric::Whitened { reach, .. } => Some(f64::from(weight) * reach),
            Metric::Plain(_) | Metric::PerClass(_) | Metric::Compact(_) => None,
        });
        let reach = reach.sum::<Option<f64>>();
        reach.filter(|reach| self.gamma == 1.0 && reach.is_finite() && *reach > 0.0)
    }

    /// What of a class's distance, all pairs added, does not depend on the query. Under Q there is
    /// one layer, and γ is 1.
    pub(crate) fn volume(&self, class: usize) -> f64 {
        let of = |(_, centre): (usize, usize)| self.cross[centre * self.layers].volume(class);
        self.pairs().into_iter().map(|pair| f64::from(of(pair))).sum()
    }

    /// Distances of every pair; `probed` are the points in the probe's space.
    pub(crate) fn pair_distances(
        &self,
        points: &Composed,
        probed: Option<&Composed>,
        absolute: bool,
    ) -> Result<Vec<PairDistances>> {
        // a power needs the whole distance, which is never negative
        let absolute = absolute || self.gamma != 1.0;
        self.pairs()
            .into_iter()
            .map(|(query, centre)| {
                let cross = self.layer_sum(|layer| {
                    let metric = &self.cross[centre * self.layers + layer];
                    metric.distances(points.block(query, layer), absolute)
                })?;
                let probe = match (&self.probes, probed) {
                    (Some(probes), Some(probed)) => Some(self.layer_sum(|layer| {
                        let diagram = &probes[centre * self.layers + layer];
                        diagram.distances(probed.block(query, layer))
                    })?),
                    _ => None,
                };
                Ok(PairDistances { cross, probe })
            })
            .collect()
    }

    /// Layers added: Σ_l sign(γ) w_l d^γ.
    fn layer_sum(&self, distances: impl Fn(usize) -> Result<Matrix>) -> Result<Matrix> {
        let mut total = None;
        for layer in 0..self.layers {
            add_influence(&mut total, distances(layer)?, self.layer_weights[layer], self.gamma);
        }
        Ok(total.unwrap_or_default())
    }

    /// D: inside a phase the probe decides, between phases the cross-phase distance.
    ///
    /// The result is one number per class whose least is D's answer: the winner of a phase keeps its
    /// cross-phase distance, the others of its phase follow it by as much as the probe prefers it.
    pub(crate) fn divide(&self, mut distances: PairDistances) -> Matrix {
        let Some(probe) = distances.probe else { return distances.cross };
        let cols = distances.cross.cols().max(1);
        let rows = distances.cross.as_mut_slice().par_chunks_mut(cols);
        rows.zip(probe.as_slice().par_chunks(cols)).for_each(|(cross, probe)| match self.rule {
            Rule::Tournament => self.tournament(cross, probe),
            Rule::Elimination => self.eliminate(cross, probe),
        });
        distances.cross
    }

    fn tournament(&self, cross: &mut [f32], probe: &[f32]) {
        for learned in &self.phases {
            let winner = learned.start + least(&probe[learned.clone()]);
            for class in learned.clone().filter(|&class| class != winner) {
                cross[class] = cross[winner] + (probe[class] - probe[winner]);
            }
        }
    }

    /// Candidates meet in order of arrival; each meeting deletes one.
    fn eliminate(&self, cross: &mut [f32], probe: &[f32]) {
        let phase_of =
            |class: usize| self.phases.iter().position(|learned| learned.contains(&class));
        let mut champion = 0;
        for rival in 1..cross.len() {
            let (phase, other) = (phase_of(champion), phase_of(rival));
            let distance = if phase.is_some() && phase == other { probe } else { &*cross };
            if distance[rival] < distance[champion] {
                champion = rival;
            }
        }
        let first = least(cross);
        if first != champion {
            cross[champion] = cross[first].next_down();
        }
    }
}
