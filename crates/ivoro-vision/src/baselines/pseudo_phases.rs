//! Pseudo-phases for a method that has something to learn before the first phase: the base classes
//! arrive one group after another, in a network that was trained on the first group alone, and a part
//! of each class's images is held out to measure by. No image of a later phase and none that is
//! tested on can be reached from here.

use std::ops::Range;

use ivoro::random::{mix, permutation};

use super::Baseline;
use super::method::Method;
use super::trainer::{IncrementalTrainer, Progress, state_of};
use crate::error::Result;
use crate::network::{Architecture, Weights};
use crate::recipe::Recipe;
use crate::train::{TrainingData, run_epoch};

/// Groups of classes that arrive after the first one, at most.
const LATER: usize = 2;
/// One image of so many is held out.
const HELD_OUT: usize = 5;
/// Shares of the recipe's epochs: for the network, and for each group that arrives later.
const NETWORK_EPOCHS: f64 = 0.5;
const PHASE_EPOCHS: f64 = 0.2;
/// The network is trained without rotations, on batches of as many views.
const ROTATIONS: usize = 4;
/// Mixed into the seed.
const PSEUDO: u64 = 0x7073_6575;

/// Every step asks whether to go on.
pub(super) type EachStep<'f> = &'f mut dyn FnMut(Progress) -> bool;

/// What a method can reach before the first phase. The trainer, and with it the rest of the data set, is
/// private to this file.
pub(super) struct BasePhase<'s, 'a>(&'s IncrementalTrainer<'a>);

impl<'s, 'a> BasePhase<'s, 'a> {
    pub(super) fn new(trainer: &'s IncrementalTrainer<'a>) -> Self {
        Self(trainer)
    }

    /// Whether it has classes enough for pseudo-phases, and others follow.
    pub(super) fn has_pseudo_phases(&self) -> bool {
        groups_of(&self.0.phases).len() > 1
    }

    /// The seed of the training.
    pub(super) fn seed(&self) -> u64 {
        self.0.recipe.seed
    }

    /// Its pseudo-phases, if it has some, with the network of the first group trained; `None` if that
    /// was stopped.
    pub(super) fn pseudo_phases(
        &self,
        each_step: EachStep<'_>,
    ) -> Result<Option<PseudoPhases<'s, 'a>>> {
        PseudoPhases::new(self.0, each_step)
    }
}

/// Pseudo-phases that a method can be trained through as often as it likes.
pub(super) struct PseudoPhases<'s, 'a> {
    trainer: &'s IncrementalTrainer<'a>,
    /// When the class of each training image arrives here; none for those that are held out.
    train_places: Vec<Option<usize>>,
    /// The same of images that are held out.
    held_out: Vec<Option<usize>>,
    phases: Vec<Range<usize>>,
    network: Weights,
    recipe: Recipe,
}

impl<'s, 'a> PseudoPhases<'s, 'a> {
    fn new(trainer: &'s IncrementalTrainer<'a>, each_step: EachStep<'_>) -> Result<Option<Self>> {
        let phases = groups_of(&trainer.phases);
        let (train_places, held_out) = divided(trainer);
        let seed = mix(trainer.recipe.seed, PSEUDO);
        let recipe = Recipe { seed, ..shorter(&trainer.recipe, PHASE_EPOCHS) };
        let architecture =
            Architecture { outputs: phases[0].len(), ..trainer.network.architecture.clone() };
        let network = Weights::random(architecture, trainer.network.normalisation.clone(), seed);
        let mut new = Self { trainer, train_places, held_out, phases, network, recipe };
        Ok(new.train(each_step)?.then_some(new))
    }

    /// Groups that arrive after the first one.
    pub(super) fn arrivals(&self) -> usize {
        self.phases.len() - 1
    }

    /// Trains the network on the first group.
    fn train(&mut self, each_step: EachStep<'_>) -> Result<bool> {
        let IncrementalTrainer { dataset, fit, engine, recipe, .. } = self.trainer;
        let recipe = Recipe {
            rotations: false,
            batch: recipe.batch * ROTATIONS,
            average: None,
            holdout: 0.0,
            seed: self.recipe.seed,
            ..shorter(recipe, NETWORK_EPOCHS)
        };
        let first = self.phases[0].clone();
        let place = |place: &Option<usize>| place.filter(|place| first.contains(place));
        let targets: Vec<Option<u32>> =
            self.train_places.iter().map(|own| place(own).map(|place| place as u32)).collect();
        let rows = (0..targets.len()).filter(|&row| targets[row].is_some()).collect();
        let data =
            TrainingData { images: &dataset.train, rows, held_out: Vec::new(), targets, fit: *fit };
        let Weights { architecture, normalisation, .. } = &self.network;
        let state = state_of(&self.network);
        let mut network =
            engine.trainer(architecture, &recipe, normalisation, fit.shape, &state)?;
        for epoch in 0..recipe.epochs {
            let told =
                |step, steps| each_step(of_base_phase((epoch, recipe.epochs), (step, steps)));
            if run_epoch(&mut *network, &data, &recipe, epoch, told)?.is_none() {
                return Ok(false);
            }
        }
        let state = network.state()?;
        (self.network.learned, self.network.measured) = (state.learned, state.measured);
        Ok(true)
    }

    /// Trains a method through the pseudo-phases: the mean accuracy on held-out images after those
    /// that arrived later; `None` if it was stopped.
    pub(super) fn accuracy(
        &self,
        method: &mut dyn Method,
        reading: Baseline,
        each_step: EachStep<'_>,
    ) -> Result<Option<f64>> {
        let pseudo = IncrementalTrainer {
            train_places: self.train_places.clone(),
            test_places: self.held_out.clone(),
            left_out: Vec::new(),
            tested: &self.trainer.dataset.train,
            phases: self.phases.clone(),
            network: &self.network,
            recipe: self.recipe.clone(),
            ..self.trainer.clone()
        };
        let mut told = |at: Progress| each_step(of_base_phase(at.epoch, at.step));
        let Some(phases) = pseudo.run_method(method, &[reading], &mut told)? else {
            return Ok(None);
        };
        let later = &phases[1..];
        let sum: f64 = later.iter().map(|phase| phase.outcomes[0].accuracy).sum();
        Ok(Some(sum / later.len().max(1) as f64))
    }
}

/// Groups of base classes, as many in each later one as arrive later in truth, if at least half of the
/// classes stay for the first.
fn groups_of(phases: &[Range<usize>]) -> Vec<Range<usize>> {
    let base = phases.first().map_or(0, ExactSizeIterator::len);
    let most = base / 2;
    let increment = phases.get(1).map_or(0, ExactSizeIterator::len).min(most);
    let later = most.checked_div(increment).map_or(0, |count| count.min(LATER));
    let first = base - later * increment;
    let group = |at: usize| first + at * increment..first + (at + 1) * increment;
    std::iter::once(0..first).chain((0..later).map(group)).collect()
}

/// The place of each training image of a base class in an order of its own: of those trained on, and
/// of those held out.
fn divided(trainer: &IncrementalTrainer<'_>) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let base = trainer.phases.first().map_or(0, ExactSizeIterator::len);
    let seed = mix(trainer.recipe.seed, PSEUDO);
    let count = trainer.dataset.train.len();
    let (mut trained, mut held_out) = (vec![None; count], vec![None; count]);
    for (place, class) in permutation(seed, base).into_iter().enumerate() {
        let rows = trainer.rows(&(class..class + 1));
        let order = permutation(mix(seed, class as u64), rows.len());
        for (at, row) in order.into_iter().map(|at| rows[at]).enumerate() {
            let to = if at % HELD_OUT == HELD_OUT - 1 { &mut held_out } else { &mut trained };
            to[row] = Some(place);
        }
    }
    (trained, held_out)
}

/// The recipe in a share of its epochs.
fn shorter(recipe: &Recipe, share: f64) -> Recipe {
    let epochs = (recipe.epochs as f64 * share).ceil() as usize;
    recipe.clone().in_epochs(epochs.max(1))
}

/// A step here belongs to the base phase, and none of them ends an epoch of a real phase.
fn of_base_phase(epoch: (usize, usize), (step, steps): (usize, usize)) -> Progress {
    Progress { phase: 1, epoch, step: (step, steps + 1) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dataset, network, trainer_of};
    use super::*;

    #[test]
    fn half_of_the_base_classes_at_least_are_there_from_the_start() {
        let groups = |sizes: &[usize]| {
            let mut end = 0;
            let phases: Vec<Range<usize>> = sizes
                .iter()
                .map(|size| {
                    end += size;
                    end - size..end
                })
                .collect();
            groups_of(&phases).iter().map(ExactSizeIterator::len).collect::<Vec<_>>()
        };
        assert_eq!(groups(&[50, 5, 5]), [40, 5, 5]);
        assert_eq!(groups(&[50, 10]), [30, 10, 10]);
        assert_eq!(groups(&[40, 20, 20, 20]), [20, 20]);
        assert_eq!(groups(&[4, 3]), [2, 2]);
        assert_eq!(groups(&[1, 3]), [1]);
        assert_eq!(groups(&[10]), [10]);
    }

    #[test]
    fn only_images_of_the_base_phase_are_seen_and_none_of_them_twice() {
        let data = dataset();
        let weights = network(&data);
        let trainer = trainer_of(&data, &weights, vec![0..4, 4..6]);
        let (trained, held_out) = divided(&trainer);
        for row in 0..data.train.len() {
            let base = trainer.place(row).is_some_and(|place| place < 4);
            let seen = usize::from(trained[row].is_some()) + usize::from(held_out[row].is_some());
            assert_eq!(seen, usize::from(base), "image {row}");
        }
        let count = |places: &[Option<usize>]| places.iter().flatten().count();
        // a fifth of 24 images of each class
        assert_eq!((count(&trained), count(&held_out)), (4 * 20, 4 * 4));
    }
}
