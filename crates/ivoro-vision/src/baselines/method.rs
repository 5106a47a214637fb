//! What a baseline does besides the loop that all share.

use std::ops::Range;

use ivoro::Matrix;
use ivoro::tune::Choice;

use super::Baseline;
use super::exemplars::Memory;
use super::fine_tuning::FineTuning;
use super::head::Head;
use super::phase_data::PhaseData;
use super::pseudo_phases::{BasePhase, EachStep};
use crate::error::Result;
use crate::recipe::Recipe;

/// One training step: a batch, as a method sees it.
pub(super) struct Step<'a> {
    /// The output that each view should have: its class, or class · 4 + rotation.
    pub(super) labels: &'a [usize],
    /// Points that a frozen network makes of the same views, that of the phase before or, while kept
    /// images alone are trained on, that of this phase; none in the base phase.
    pub(super) before: Option<&'a Before<'a>>,
    /// Outputs that the frozen network's head has.
    pub(super) old: usize,
    /// How the phase is trained.
    pub(super) recipe: &'a Recipe,
    /// The learning rate of the step.
    pub(super) rate: f32,
    /// Which step of the phase it is, for random numbers.
    pub(super) index: u64,
}

/// A network as it was before.
pub(super) struct Before<'a> {
    /// What it makes of the views.
    pub(super) points: Matrix,
    /// Its head.
    pub(super) head: &'a Head,
}

/// A loss, with the gradient that is passed backward through the network.
pub(super) struct Loss {
    /// Its value.
    pub(super) value: f64,
    /// The gradient of the points.
    pub(super) points: Matrix,
}

/// Classes of a phase, by place in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// Which one, from 0.
    pub(super) index: usize,
    /// Its classes.
    pub(super) classes: Range<usize>,
    /// Its training images that are at hand.
    pub(super) rows: Vec<usize>,
}

/// A way to learn class after class by training the network on.
pub(super) trait Method {
    /// Outputs per class: 1, or 4 where its rotations are classes of their own.
    fn sisters(&self) -> usize {
        1
    }

    /// The images of earlier phases that are trained on again. A method of a name that keeps none
    /// is refused with one.
    fn memory(&self) -> Option<&Memory> {
        None
    }

    /// Before the first phase, a method may go through pseudo-phases made of base classes; `false` if
    /// it was stopped.
    fn prepare(&mut self, _base: &BasePhase<'_, '_>, _each_step: EachStep<'_>) -> Result<bool> {
        Ok(true)
    }

    /// What it has settled in them.
    fn choices(&self) -> &[Choice] {
        &[]
    }

    /// Whether the network of the phase before is asked about every batch.
    fn needs_before(&self) -> bool {
        false
    }

    /// The loss of a batch whose points the network gives. The head's gradient is added to.
    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss>;

    /// Whether both networks are asked for the maps that their points are means of, in every phase
    /// after the base phase.
    fn looks_at_maps(&self) -> bool {
        false
    }

    /// The part that maps have in the loss of a batch, those of the network and of the one before,
    /// with the gradient of the network's. The head's gradient is added to.
    fn map_loss(
        &mut self,
        _step: &Step<'_>,
        (maps, _): (&Matrix, &Matrix),
        _head: &mut Head,
    ) -> Result<(f64, Matrix)> {
        Ok((0.0, Matrix::zeros(maps.rows(), maps.cols())))
    }

    /// Before a phase after the base phase: the head has its new outputs already, the network is
    /// as it was.
    fn begin(
        &mut self,
        _phase: &Phase,
        _data: &mut PhaseData<'_, '_>,
        _head: &mut Head,
    ) -> Result<()> {
        Ok(())
    }

    /// After a phase's epochs. `data` has its images and the network as it is now.
    fn finish(
        &mut self,
        _phase: &Phase,
        _data: &mut PhaseData<'_, '_>,
        _head: &mut Head,
    ) -> Result<()> {
        Ok(())
    }

    /// Share of the epochs in which, after a phase, the kept images alone are trained on.
    fn balanced(&self) -> Option<f64> {
        None
    }

    /// One row per query, one column per class; smaller is nearer.
    fn distances(&self, _reading: Baseline, points: &Matrix, head: &Head) -> Matrix {
        by_outputs(points, head, self.sisters())
    }

    /// Whether the classes' regions are those of the head's outputs, unturned ones where there are
    /// sisters: then they are a power diagram.
    fn is_linear(&self) -> bool {
        true
    }

    /// Bytes kept besides network and head.
    fn bytes(&self) -> usize {
        0
    }
}

impl Baseline {
    /// The method behind a name.
    pub(super) fn method(self) -> Box<dyn Method> {
        match self {
            Self::FineTuning | Self::JointTraining => Box::new(FineTuning),
            Self::Pass => Box::<super::pass::Pass>::default(),
            Self::Ewc => Box::<super::ewc::Ewc>::default(),
            Self::Lwf => Box::new(super::lwf::Lwf),
            Self::LwfMc => Box::new(super::lwf_mc::LwfMc),
            Self::Lwm => Box::<super::lwm::Lwm>::default(),
            Self::Muc => Box::<super::muc::Muc>::default(),
            Self::IcarlCnn | Self::IcarlNme => Box::<super::icarl::Icarl>::default(),
            Self::Eeil => Box::<super::eeil::Eeil>::default(),
            Self::Ucir => Box::<super::ucir::Ucir>::default(),
            Self::RmmIcarlCnn | Self::RmmIcarlNme => Box::new(super::rmm::Rmm::icarl()),
            Self::RmmUcir => Box::new(super::rmm::Rmm::ucir()),
        }
    }
}

/// Distances that are least where the output of an unturned class is largest.
pub(super) fn by_outputs(points: &Matrix, head: &Head, sisters: usize) -> Matrix {
    let outputs = head.outputs(points);
    let mut distances = Matrix::zeros(points.rows(), outputs.cols() / sisters);
    for row in 0..points.rows() {
        let values = outputs.row(row).iter().step_by(sisters);
        distances.row_mut(row).iter_mut().zip(values).for_each(|(to, value)| *to = -value);
    }
    distances
}

/// A loss on outputs alone: what `add` puts into the outputs' gradient is passed backward through the head.
pub(super) fn on_outputs(
    points: &Matrix,
    head: &mut Head,
    add: impl FnOnce(&Matrix, &mut Matrix) -> f64,
) -> Loss {
    let outputs = head.outputs(points);
    let mut gradient = Matrix::zeros(outputs.rows(), outputs.cols());
    let value = add(&outputs, &mut gradient);
    Loss { value, points: head.backward(points, &gradient) }
}
