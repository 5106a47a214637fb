//! A peer behind the checks that all peers share: phases, settings, views and layers.

use super::intake::{Intake, Phase};
use super::{Look, Peer, PeerSettings};
use crate::learner::Learner;
use ivoro::Matrix;
use ivoro::Points;
use ivoro::Result;
use ivoro::Samples;

/// What tells one method from another.
pub(super) trait Method: Send {
    /// Learns a phase that was checked; `known` classes came before its own.
    fn absorb(&mut self, phase: &Phase<'_>, known: usize) -> Result<()>;

    /// One row a point, one column a class, smaller is nearer. At least one class is known.
    fn measure(&self, points: &Matrix) -> Result<Matrix>;

    /// Bytes that must be kept to go on learning.
    fn bytes(&self) -> usize;
}

/// What all methods share: settings are checked, then a phase, then the method learns it.
#[derive(Debug)]
pub(super) struct CheckedPeer<M> {
    settings: PeerSettings,
    intake: Intake,
    method: M,
}

impl<M: Method> CheckedPeer<M> {
    pub(super) fn new(peer: Peer, look: Look, settings: PeerSettings, method: M) -> Self {
        Self { settings, intake: Intake::new(peer, look), method }
    }
}

impl<M: Method> Learner for CheckedPeer<M> {
    fn name(&self) -> String {
        self.intake.name()
    }

    fn learn(&mut self, phase: &Samples) -> Result<()> {
        self.settings.check()?;
        let points = self.intake.points(phase)?;
        let phase = self.intake.phase(phase, &points)?;
        self.method.absorb(&phase, self.intake.classes())?;
        self.intake.admit(&phase);
        Ok(())
    }

    fn class_count(&self) -> usize {
        self.intake.classes()
    }

    fn distances(&self, queries: &Points) -> Result<Matrix> {
        let points = self.intake.points(queries)?;
        match self.class_count() {
            0 => Ok(Matrix::zeros(points.rows(), 0)),
            _ => self.method.measure(&points),
        }
    }

    fn bytes(&self) -> usize {
        self.method.bytes()
    }
}
