//! Elastic weight consolidation: each weight is held where it was, as strongly as the old classes'
//! loss depends on it.

use ivoro::Matrix;

use super::classroom::Classroom;
use super::fine_tuning::FineTuning;
use super::head::Head;
use super::method::{Lesson, Loss, Method, Phase};
use crate::engine::{Anchor, Student};
use crate::error::Result;

/// Weight of the penalty.
const STRENGTH: f32 = 1000.0;
/// No weight is held more strongly than by this.
const MOST: f32 = 1e-4;
/// Batches that the importance is measured on.
const BATCHES: usize = 50;

#[derive(Default)]
pub(super) struct Ewc {
    /// Where the network's weights are held, and how strongly.
    network: Option<Anchor>,
    /// The same of the head.
    head: Anchor,
    /// Phases that the importance is the mean of.
    phases: usize,
}

impl Method for Ewc {
    fn teach(&mut self, lesson: &Lesson<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let loss = FineTuning.teach(lesson, points, head)?;
        let Anchor { at, importance } = &self.head;
        let values = head.values()[..at.len()].to_vec();
        let held = values.iter().zip(at).zip(importance);
        for (gradient, ((value, at), importance)) in head.gradient_mut().iter_mut().zip(held) {
            *gradient += STRENGTH * importance * (value - at);
        }
        Ok(loss)
    }

    fn begin(&mut self, _: &Phase, student: &mut dyn Student, _: &mut Head) -> Result<()> {
        let Some(anchor) = &self.network else { return Ok(()) };
        let importance = anchor.importance.iter().map(|value| STRENGTH * value).collect();
        student.hold(&Anchor { at: anchor.at.clone(), importance })
    }

    fn finish(
        &mut self,
        phase: &Phase,
        room: &mut Classroom<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        let (network, own) = importance(phase, room, head)?;
        let share = 1.0 / (self.phases + 1) as f32;
        let old = self.network.take().map(|anchor| anchor.importance).unwrap_or_default();
        let importance = mix(&old, network, share);
        self.network = Some(Anchor { at: room.weights.learned.clone(), importance });
        let importance = mix(&self.head.importance, own, share);
        self.head = Anchor { at: head.values().to_vec(), importance };
        self.phases += 1;
        Ok(())
    }

    fn bytes(&self) -> usize {
        let of = |anchor: &Anchor| 4 * (anchor.at.len() + anchor.importance.len());
        self.network.as_ref().map_or(0, of) + of(&self.head)
    }
}

/// Mean squared gradient of batches of the phase's images: the diagonal of Fisher's matrix.
fn importance(
    phase: &Phase,
    room: &mut Classroom<'_, '_>,
    head: &Head,
) -> Result<(Vec<f32>, Vec<f32>)> {
    let (mut network, mut own) = (Vec::new(), Vec::new());
    let mut head = head.clone();
    let recipe = room.recipe;
    room.each_batch(&phase.classes, BATCHES, |student, pixels, labels| {
        let points = student.look(pixels)?;
        let lesson = Lesson { labels, before: None, old: 0, recipe, rate: 0.0, step: 0 };
        let loss = FineTuning.teach(&lesson, &points, &mut head)?;
        student.backward(&loss.points)?;
        add_squares(&mut network, &student.gradient()?);
        add_squares(&mut own, head.gradient_mut());
        head.gradient_mut().fill(0.0);
        Ok(())
    })
    .map(|batches| {
        let limit = |sums: Vec<f32>| -> Vec<f32> {
            sums.into_iter().map(|sum| (sum / batches.max(1) as f32).min(MOST)).collect()
        };
        (limit(network), limit(own))
    })
}

fn add_squares(sums: &mut Vec<f32>, gradient: &[f32]) {
    sums.resize(gradient.len(), 0.0);
    sums.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += value * value);
}

/// The mean over phases, the new one having this share; weights that are new have no old part.
fn mix(old: &[f32], new: Vec<f32>, share: f32) -> Vec<f32> {
    let earlier = old.iter().copied().map(Some).chain(std::iter::repeat(None));
    let both = new.into_iter().zip(earlier);
    both.map(|(new, old)| old.map_or(new, |old| (1.0 - share) * old + share * new)).collect()
}
