//! What a method may see before and after a phase: the images of the phase's own classes, those it
//! keeps in a [`Memory`], and the network as it is. No other image can be reached from here, so a
//! method that keeps none can't use an image of an earlier phase.

use ivoro::Matrix;
use ivoro::random::{mix, permutation};

use super::exemplars::{EACH, Memory};
use super::method::Phase;
use super::trainer::IncrementalTrainer;
use crate::dataset::{Broken, Split};
use crate::engine::{Backbone, CustomLossTrainer};
use crate::error::Result;
use crate::network::Weights;
use crate::recipe::Recipe;
use crate::shape::Shape;
use crate::train::augment;

/// Images asked about at once.
const AT_ONCE: usize = 512;
/// Changes of images while something is measured are others than those in training.
const MEASURED: u64 = 0x6D65_6173;

/// Points with the places of their classes.
pub(super) struct Labelled {
    pub(super) points: Matrix,
    pub(super) labels: Vec<usize>,
}

/// The data of one phase, before its epochs or after them.
///
/// The trainer, and with it the rest of the data set, is private to this file. Every function here
/// takes rows that are at hand in the phase or from a [`Memory`], so that the images of earlier
/// phases can't be reached by a method that keeps none.
pub(super) struct PhaseData<'s, 'a> {
    trainer: &'s IncrementalTrainer<'a>,
    phase: &'s Phase,
    pub(super) recipe: &'s Recipe,
    pub(super) weights: &'s Weights,
    pub(super) trained: &'s mut dyn CustomLossTrainer,
    pub(super) backbone: &'s dyn Backbone,
    /// How many images may be kept of each class known; the same number of all if not set.
    pub(super) quotas: Option<Vec<usize>>,
}

impl<'s, 'a> PhaseData<'s, 'a> {
    /// The images of one phase, with the network that is trained and a frozen copy of it.
    pub(super) fn new(
        trainer: &'s IncrementalTrainer<'a>,
        phase: &'s Phase,
        recipe: &'s Recipe,
        weights: &'s Weights,
        trained: &'s mut dyn CustomLossTrainer,
        backbone: &'s dyn Backbone,
    ) -> Self {
        Self { trainer, phase, recipe, weights, trained, backbone, quotas: None }
    }

    /// Points of the phase's training images, as they are.
    pub(super) fn points(&mut self) -> Result<Labelled> {
        let rows = &self.phase.rows;
        let labels = rows.iter().filter_map(|&row| self.trainer.place(row)).collect();
        Ok(Labelled { points: self.points_at(rows)?, labels })
    }

    /// The same, class by class.
    pub(super) fn points_by_class(&mut self) -> Result<Vec<Matrix>> {
        let classes = self.phase.classes.clone();
        classes.map(|class| self.points_at(&self.rows_of(class))).collect()
    }

    /// The images of one class of the phase.
    fn rows_of(&self, class: usize) -> Vec<usize> {
        let rows = self.phase.rows.iter().copied();
        rows.filter(|&row| self.trainer.place(row) == Some(class)).collect()
    }

    /// How many classes the next phase has.
    pub(super) fn classes_to_come(&self) -> usize {
        self.trainer.phases.get(self.phase.index + 1).map_or(0, ExactSizeIterator::len)
    }

    /// Points of kept images, class by class in order of arrival.
    pub(super) fn points_kept(&mut self, memory: &Memory) -> Result<Vec<Matrix>> {
        memory.by_class().map(|rows| self.points_at(rows)).collect()
    }

    fn points_at(&mut self, rows: &[usize]) -> Result<Matrix> {
        let trainer = self.trainer;
        points_of(trainer, self.backbone, &trainer.dataset.train, rows, None)
    }

    /// Points of the phase's images with their quarters exchanged: they show none of the classes.
    pub(super) fn strange_points(&mut self) -> Result<Matrix> {
        let trainer = self.trainer;
        let train = &trainer.dataset.train;
        points_of(trainer, self.backbone, train, &self.phase.rows, Some(exchange_quarters))
    }

    /// Keeps images of each class of the phase, and of earlier ones no more than their quota.
    pub(super) fn keep(&mut self, memory: &mut Memory) -> Result<()> {
        if let Some(quotas) = &self.quotas {
            memory.limit(quotas);
        }
        for class in self.phase.classes.clone() {
            let rows = self.rows_of(class);
            let most = self.quotas.as_ref().and_then(|quotas| quotas.get(class).copied());
            memory.keep(&rows, &self.points_at(&rows)?, most.unwrap_or(EACH));
        }
        Ok(())
    }

    /// Batches of the phase's training images, changed as in training, with the network in training:
    /// so many images each, and at most so many; returns how many there were.
    pub(super) fn each_batch(
        &mut self,
        (batch, most): (usize, usize),
        mut work: impl FnMut(&mut dyn CustomLossTrainer, &[u8], &[usize]) -> Result<()>,
    ) -> Result<usize> {
        let rows = &self.phase.rows;
        let order = permutation(mix(self.recipe.seed, most as u64), rows.len());
        let rows: Vec<usize> = order.into_iter().map(|at| rows[at]).collect();
        let batch = batch.min(rows.len()).max(1);
        let stream = mix(self.recipe.seed ^ MEASURED, self.phase.index as u64);
        let mut done = 0;
        for rows in rows.chunks_exact(batch).take(most) {
            let IncrementalTrainer { dataset, fit, .. } = self.trainer;
            let mut images = dataset.train.read(rows, *fit, Broken::Fail)?;
            augment(&mut images.pixels, images.shape, rows, &self.recipe.augmentation, stream);
            let labels: Vec<usize> =
                rows.iter().filter_map(|&row| self.trainer.place(row)).collect();
            work(self.trained, &images.pixels, &labels)?;
            done += 1;
        }
        Ok(done)
    }
}

/// What is done to the pixels of images of one shape.
type Change = fn(&[u8], Shape) -> Vec<u8>;

/// What a frozen network makes of images, each changed first where that is asked for. A trainer has
/// rows of images that can be read alone.
pub(super) fn points_of(
    trainer: &IncrementalTrainer<'_>,
    backbone: &dyn Backbone,
    split: &Split,
    rows: &[usize],
    change: Option<Change>,
) -> Result<Matrix> {
    let mut points: Option<Matrix> = None;
    for rows in rows.chunks(AT_ONCE) {
        let images = split.read(rows, trainer.fit, Broken::Fail)?;
        let changed = change.map(|change| change(&images.pixels, images.shape));
        let pixels = changed.as_ref().unwrap_or(&images.pixels);
        let mut found = backbone.features(pixels, images.shape, &[0])?;
        match &mut points {
            Some(points) => points.append(&found.swap_remove(0))?,
            None => points = Some(found.swap_remove(0)),
        }
    }
    Ok(points.unwrap_or_default())
}

/// Each image with opposite quarters exchanged.
fn exchange_quarters(pixels: &[u8], shape: Shape) -> Vec<u8> {
    let Shape { height, width, channels } = shape;
    let mut out = pixels.to_vec();
    for (to, from) in out.chunks_exact_mut(shape.len()).zip(pixels.chunks_exact(shape.len())) {
        for (at, pixel) in to.chunks_exact_mut(channels).enumerate() {
            let (y, x) = ((at / width + height / 2) % height, (at % width + width / 2) % width);
            pixel.copy_from_slice(&from[(y * width + x) * channels..][..channels]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_are_exchanged_crosswise() {
        let shape = Shape { height: 2, width: 4, channels: 1 };
        let strange = exchange_quarters(&[1, 2, 3, 4, 5, 6, 7, 8], shape);
        assert_eq!(strange, [7, 8, 5, 6, 3, 4, 1, 2]);
    }
}
