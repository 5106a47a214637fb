//! For tests: what a method is given and does, phase by phase.

use ivoro::Matrix;

use super::Baseline;
use super::exemplars::Memory;
use super::head::Head;
use super::losses::direction;
use super::method::{Loss, Method, Phase, Step};
use super::phase_data::PhaseData;
use crate::error::Result;

/// Passes every call to a method and records what it is given and what becomes of the head.
pub(super) struct TestRecorder {
    inner: Box<dyn Method>,
    /// Outputs of the network before and of the head, in each step that asks that network.
    pub(super) distilled: Vec<(usize, usize)>,
    /// The head when a phase has begun, and when it has ended.
    pub(super) begun: Vec<Vec<f32>>,
    pub(super) ended: Vec<Vec<f32>>,
    /// The mean direction of each class of the last phase that has begun.
    pub(super) wanted: Vec<Vec<f32>>,
    /// New images at hand in each phase, and images kept when it began.
    pub(super) at_hand: Vec<(usize, usize)>,
}

impl TestRecorder {
    pub(super) fn new(baseline: Baseline) -> Self {
        Self::of(baseline.method())
    }

    pub(super) fn of(inner: Box<dyn Method>) -> Self {
        let (distilled, begun, ended) = (Vec::new(), Vec::new(), Vec::new());
        Self { inner, distilled, begun, ended, wanted: Vec::new(), at_hand: Vec::new() }
    }
}

impl Method for TestRecorder {
    fn memory(&self) -> Option<&Memory> {
        self.inner.memory()
    }

    fn needs_before(&self) -> bool {
        self.inner.needs_before()
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        if let Some(before) = step.before {
            assert_eq!(before.head.len(), step.old);
            self.distilled.push((step.old, head.len()));
        }
        self.inner.loss(step, points, head)
    }

    fn begin(
        &mut self,
        phase: &Phase,
        data: &mut PhaseData<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        self.at_hand.push((phase.rows.len(), self.memory().map_or(0, |it| it.rows().len())));
        self.inner.begin(phase, data, head)?;
        self.begun.push(head.values().to_vec());
        self.wanted = data.points_by_class()?.iter().map(direction).collect::<Result<_>>()?;
        Ok(())
    }

    fn finish(
        &mut self,
        phase: &Phase,
        data: &mut PhaseData<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        self.ended.push(head.values().to_vec());
        self.inner.finish(phase, data, head)
    }

    fn balanced(&self) -> Option<f64> {
        self.inner.balanced()
    }

    fn distances(&self, reading: Baseline, points: &Matrix, head: &Head) -> Matrix {
        self.inner.distances(reading, points, head)
    }
}
