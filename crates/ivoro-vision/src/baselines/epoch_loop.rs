//! The epochs of a phase: batch, points, the method's loss, and the backward pass.

use ivoro::random::mix;
use ivoro::{Matrix, View};

use super::head::Head;
use super::method::{Before, Method, Phase, Step};
use super::trainer::{IncrementalTrainer, Progress};
use crate::engine::{Backbone, CustomLossTrainer};
use crate::error::{Error, Result};
use crate::recipe::Recipe;
use crate::shape::Shape;
use crate::train::{Ready, TrainingData, each_batch};
use crate::view::turned;

/// The epochs of one phase.
pub(super) struct EpochLoop<'s, 'a> {
    pub(super) trainer: &'s IncrementalTrainer<'a>,
    pub(super) phase: &'s Phase,
    pub(super) recipe: &'s Recipe,
    pub(super) before: Option<Box<dyn Backbone>>,
    pub(super) old_head: &'s Head,
    /// Steps of the phase that are done, over all its epochs.
    pub(super) steps_done: u64,
}

impl EpochLoop<'_, '_> {
    /// Trains on some rows; `false` if it was stopped.
    pub(super) fn train_epochs(
        &mut self,
        rows: Vec<usize>,
        network: &mut dyn CustomLossTrainer,
        method: &mut dyn Method,
        head: &mut Head,
        each_step: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<bool> {
        let IncrementalTrainer { dataset, fit, .. } = self.trainer;
        let places = (0..dataset.train.len()).map(|row| self.trainer.place(row));
        let targets = places.map(|place| place.map(|place| place as u32)).collect();
        let data =
            TrainingData { images: &dataset.train, rows, held_out: Vec::new(), targets, fit: *fit };
        // Another order of images and other changes of them in every phase.
        let seed = mix(self.recipe.seed, 1 + self.phase.index as u64);
        let recipe = Recipe { seed, ..self.recipe.clone() };
        for epoch in 0..recipe.epochs {
            let mut told = |step, steps| {
                let phase = self.phase.index + 1;
                each_step(Progress { phase, epoch: (epoch, recipe.epochs), step: (step, steps) })
            };
            let (before, old_head, count) =
                (self.before.as_deref(), self.old_head, &mut self.steps_done);
            let (shape, sisters) = (fit.shape, method.sisters());
            let views = |ready: Ready| views(&ready, shape, sisters);
            let work = |(pixels, labels): &(Vec<u8>, Vec<usize>), rate: f32| -> Result<()> {
                let (points, old_maps) =
                    asked_before(before, pixels, shape, method.looks_at_maps())?;
                let before = points.map(|points| Before { points, head: old_head });
                let old = if self.phase.index == 0 { 0 } else { old_head.len() };
                let step = Step {
                    labels,
                    before: before.as_ref(),
                    old,
                    recipe: &recipe,
                    rate,
                    index: *count,
                };
                let points = network.embed(pixels)?;
                let mut loss = method.loss(&step, &points, head)?;
                let of_maps = match old_maps {
                    Some(old_maps) => {
                        let maps = network.maps()?;
                        let (value, gradient) = method.map_loss(&step, (&maps, &old_maps), head)?;
                        loss.value += value;
                        Some(gradient)
                    }
                    None => None,
                };
                if !loss.value.is_finite() {
                    return Err(Error::Diverged { epoch: epoch + 1, loss: loss.value });
                }
                network.backward(&loss.points, of_maps.as_ref())?;
                network.apply_gradient(rate)?;
                head.change(&recipe, rate);
                *count += 1;
                Ok(())
            };
            if each_batch(&data, &recipe, epoch, &mut told, views, work)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What the frozen network makes of a batch, where there is one: points, and maps if they are wanted.
fn asked_before(
    network: Option<&dyn Backbone>,
    pixels: &[u8],
    shape: Shape,
    with_maps: bool,
) -> Result<(Option<Matrix>, Option<Matrix>)> {
    let Some(network) = network else { return Ok((None, None)) };
    if with_maps {
        let (points, maps) = network.points_and_maps(pixels, shape)?;
        return Ok((Some(points), Some(maps)));
    }
    Ok((network.features(pixels, shape, &[0])?.pop(), None))
}

/// A batch at all rotations that are classes of their own, with the outputs wanted.
fn views(ready: &Ready, shape: Shape, sisters: usize) -> Result<(Vec<u8>, Vec<usize>)> {
    let (mut pixels, mut labels) = (Vec::with_capacity(sisters * ready.pixels.len()), Vec::new());
    for (turns, view) in View::ROTATIONS.into_iter().enumerate().take(sisters) {
        pixels.extend_from_slice(&turned(&ready.pixels, shape, view)?);
        labels.extend(ready.labels.iter().map(|&label| label as usize * sisters + turns));
    }
    Ok((pixels, labels))
}
