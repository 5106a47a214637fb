//! Elastic weight consolidation: each weight is held where it was, as strongly as the old classes'
//! loss depends on it.

use ivoro::Matrix;

use super::fine_tuning::FineTuning;
use super::head::Head;
use super::lwf::learn_without_forgetting;
use super::method::{Loss, Method, Phase, Step};
use super::phase_data::PhaseData;
use crate::engine::Anchor;
use crate::error::Result;

/// Weight of the penalty; it belongs to the importance as it is measured here.
const STRENGTH: f32 = 5000.0;
/// Batches that the importance is measured on, at most, and their size.
const BATCHES: usize = 200;
const BATCH: usize = 64;

pub(super) struct Ewc {
    /// Weight of the penalty.
    strength: f32,
    /// Where the network's weights are held, and how strongly.
    network: Option<Anchor>,
    /// The same of the head.
    head: Anchor,
}

impl Default for Ewc {
    fn default() -> Self {
        Self { strength: STRENGTH, network: None, head: Anchor::default() }
    }
}

impl Method for Ewc {
    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        // Old outputs that lose against every new image would be forgotten whatever holds the weights.
        let loss = learn_without_forgetting(step, points, head, (1.0, 0.0));
        let Anchor { at, importance } = &self.head;
        let values = head.values()[..at.len()].to_vec();
        let held = values.iter().zip(at).zip(importance);
        for (gradient, ((value, at), importance)) in head.gradient_mut().iter_mut().zip(held) {
            *gradient += self.strength * importance * (value - at);
        }
        Ok(loss)
    }

    fn begin(&mut self, _: &Phase, data: &mut PhaseData<'_, '_>, _: &mut Head) -> Result<()> {
        let Some(anchor) = &self.network else { return Ok(()) };
        let importance = anchor.importance.iter().map(|value| self.strength * value).collect();
        data.trained.hold(&Anchor { at: anchor.at.clone(), importance })
    }

    fn finish(
        &mut self,
        phase: &Phase,
        data: &mut PhaseData<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        let (network, own) = importance(data, head)?;
        if network.is_empty() {
            // no image of the phase could be read: what mattered still does
            if let Some(anchor) = &mut self.network {
                anchor.at.clone_from(&data.weights.learned);
            }
            self.head.at = head.values().to_vec();
            return Ok(());
        }
        // every class counts alike, so that many phases do not water the base phase down
        let share = share_of(phase);
        let old = self.network.take().map(|anchor| anchor.importance).unwrap_or_default();
        let importance = mix(&old, network, share);
        self.network = Some(Anchor { at: data.weights.learned.clone(), importance });
        let importance = mix(&self.head.importance, own, share);
        self.head = Anchor { at: head.values().to_vec(), importance };
        Ok(())
    }

    fn bytes(&self) -> usize {
        let of = |anchor: &Anchor| 4 * (anchor.at.len() + anchor.importance.len());
        self.network.as_ref().map_or(0, of) + of(&self.head)
    }
}

/// The mean square of the gradients of batches of the phase's images, changed as in training, of the
/// loss over all classes known. It stands for the diagonal of Fisher's matrix, which has the squares
/// of single images' gradients and is larger by up to the size of a batch: public comparisons take
/// such batches too, and their strength is meant for them.
fn importance(data: &mut PhaseData<'_, '_>, head: &Head) -> Result<(Vec<f32>, Vec<f32>)> {
    let (mut network, mut own) = (Vec::new(), Vec::new());
    let mut head = head.clone();
    let recipe = data.recipe;
    data.each_batch((BATCH, BATCHES), |trained, pixels, labels| {
        let points = trained.embed(pixels)?;
        let step = Step { labels, before: None, old: 0, recipe, rate: 0.0, index: 0 };
        let loss = FineTuning.loss(&step, &points, &mut head)?;
        trained.backward(&loss.points, None)?;
        add_squares(&mut network, &trained.gradient()?);
        add_squares(&mut own, head.gradient_mut());
        head.gradient_mut().fill(0.0);
        Ok(())
    })
    .map(|batches| {
        let mean = |sums: Vec<f32>| -> Vec<f32> {
            sums.into_iter().map(|sum| sum / batches.max(1) as f32).collect()
        };
        (mean(network), mean(own))
    })
}

fn add_squares(sums: &mut Vec<f32>, gradient: &[f32]) {
    sums.resize(gradient.len(), 0.0);
    sums.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += value * value);
}

/// Which share of the classes known are those of a phase.
fn share_of(phase: &Phase) -> f32 {
    phase.classes.len() as f32 / phase.classes.end.max(1) as f32
}

/// The mean over classes, those of the new phase having this share; weights that are new have no old part.
fn mix(old: &[f32], new: Vec<f32>, share: f32) -> Vec<f32> {
    let earlier = old.iter().copied().map(Some).chain(std::iter::repeat(None));
    let both = new.into_iter().zip(earlier);
    both.map(|(new, old)| old.map_or(new, |old| (1.0 - share) * old + share * new)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dataset, network, trainer_of};
    use super::*;
    use crate::baselines::Baseline;

    #[test]
    fn the_importance_of_a_phase_counts_by_its_classes() {
        // two classes behind six: a quarter is new, whatever phases there were
        let share = share_of(&Phase { index: 3, classes: 6..8, rows: Vec::new() });
        assert_eq!(mix(&[4.0, 0.0], vec![0.0, 4.0, 5.0], share), [3.0, 1.0, 5.0]);
    }

    #[test]
    fn new_images_leave_old_outputs_alone() {
        let points = Matrix::new(2, 1, vec![1.0, -0.5]).unwrap();
        let mut head = Head::new(1);
        head.grow(4, 3);
        let recipe = crate::recipe::Recipe::default();
        let step =
            Step { labels: &[2, 3], before: None, old: 2, recipe: &recipe, rate: 0.0, index: 0 };
        Ewc::default().loss(&step, &points, &mut head).unwrap();
        let (old, new) = head.gradient_mut().split_at(4);
        assert!(old.iter().all(|&value| value == 0.0) && new.iter().any(|&value| value != 0.0));
    }

    #[test]
    fn what_matters_is_measured_and_held() {
        let data = dataset();
        let weights = network(&data);
        let trained = |strength: f32, phases: usize| {
            let mut ewc = Ewc { strength, ..Ewc::default() };
            let trainer = trainer_of(&data, &weights, [0..4, 4..6][..phases].to_vec());
            trainer.run_method(&mut ewc, &[Baseline::Ewc], &mut |_| true).unwrap();
            ewc.network.unwrap()
        };
        let base = trained(0.0, 1);
        assert_eq!(base.at, weights.learned);
        let most = base.importance.iter().copied().fold(0.0, f32::max);
        assert!(most > 0.0 && base.importance.iter().any(|value| *value < 1e-3 * most));
        // what the penalty is made of: the squared way of each weight, times its importance
        let cost = |strength: f32| -> f32 {
            let after = trained(strength, 2).at;
            let ways = after.iter().zip(&base.at).map(|(now, then)| (now - then).powi(2));
            ways.zip(&base.importance).map(|(way, importance)| way * importance).sum()
        };
        // the small network is sure of its few images, so that little seems to matter
        let costs = [0.0, 20.0, 1000.0].map(|times| cost(times * STRENGTH));
        assert!(costs[1] < 0.9 * costs[0] && costs[2] < 0.3 * costs[0], "{costs:?}");
    }
}
