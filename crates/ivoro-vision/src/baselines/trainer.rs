//! The loop over phases that all methods share.

use std::ops::Range;
use std::time::Instant;

use ivoro::Matrix;
use ivoro::model::Evaluation;
use ivoro::random::mix;
use ivoro::tune::Choice;
use ivoro_eval::record::PhaseOutcome;
use ivoro_eval::run::assess;

use super::Baseline;
use super::epoch_loop::EpochLoop;
use super::exemplars::{self, Memory, admitted};
use super::head::{Head, fit};
use super::method::{Method, Phase, Step};
use super::phase_data::{PhaseData, points_of};
use super::pseudo_phases::BasePhase;
use crate::dataset::{Broken, Dataset, Split};
use crate::engine::{Backbone, CustomLossTrainer, Engine, State};
use crate::error::{Error, Result};
use crate::network::Weights;
use crate::recipe::Recipe;
use crate::shape::Fit;

/// Epochs in which a method's head is brought to its own loss, before the first phase.
const FIRST_EPOCHS: usize = 10;
/// Views in a step of a method without rotations are as many as in one with them.
const ROTATIONS: usize = 4;
/// Factor of the learning rate where kept images alone are trained on.
const GENTLER: f32 = 0.1;
/// Mixed into the seed there.
const BALANCE: u64 = 0x6261_6c61;

/// Trains and tests baselines phase by phase, all on the same images, order of classes and network
/// trained on the base classes.
#[derive(Clone, Debug)]
pub struct IncrementalTrainer<'a> {
    /// When the class of each training image arrives; nothing for images that can't be read.
    pub(super) train_places: Vec<Option<usize>>,
    /// The same of the images that are tested on.
    pub(super) test_places: Vec<Option<usize>>,
    pub(super) left_out: Vec<String>,
    pub(super) dataset: &'a Dataset,
    /// The images that are tested on.
    pub(super) tested: &'a Split,
    pub(super) phases: Vec<Range<usize>>,
    pub(super) network: &'a Weights,
    pub(super) recipe: Recipe,
    pub(super) fit: Fit,
    pub(super) engine: &'a dyn Engine,
}

/// Where a training stands.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Which phase, from 1.
    pub phase: usize,
    /// Which epoch of it, from 0, and how many it has.
    pub epoch: (usize, usize),
    /// Which step of it, from 0, and how many it has.
    pub step: (usize, usize),
}

/// A phase that was trained and tested.
#[derive(Clone, Debug)]
pub struct TrainedPhase {
    /// What was measured, one for each way to answer that was asked for.
    pub outcomes: Vec<PhaseOutcome>,
    /// What the network makes of all test images now.
    pub points: Matrix,
    /// Their classes: places in the order of arrival.
    pub labels: Vec<u32>,
    /// Centre and weight of each class known, where its regions are a power diagram.
    pub sites: Option<Vec<(Vec<f32>, f32)>>,
    /// Images that the method keeps now.
    pub kept: usize,
    /// What the method has settled by itself on the base phase.
    pub choices: Vec<Choice>,
}

/// A network and head that are trained on.
pub(super) struct TrainedModel {
    weights: Weights,
    pub(super) head: Head,
}

impl<'a> IncrementalTrainer<'a> {
    /// `order` are the data set's class ids in order of arrival, `phases` places in it. `recipe`
    /// is that of the phases after the base phase.
    #[allow(clippy::too_many_arguments, reason = "each is one fact that a run has anyway")]
    pub fn new(
        dataset: &'a Dataset,
        order: &[usize],
        phases: Vec<Range<usize>>,
        network: &'a Weights,
        recipe: Recipe,
        fit: Fit,
        broken: Broken,
        engine: &'a dyn Engine,
    ) -> Result<Self> {
        recipe.check()?;
        let mut dataset_places = vec![None; dataset.classes.len()];
        for (place, &class) in order.iter().enumerate() {
            dataset_places[class] = Some(place);
        }
        let base = phases.first().map_or(0, ExactSizeIterator::len);
        let outputs = network.architecture.outputs;
        if base == 0 || (outputs != base && outputs != ROTATIONS * base) {
            return Err(Error::BaseClasses { expected: base, found: outputs });
        }
        let mut left_out = Vec::new();
        let mut places = |split: &Split| -> Result<Vec<Option<usize>>> {
            let of_class = |row: usize| dataset_places[split.labels()[row] as usize];
            let rows = (0..split.len()).filter(|&row| of_class(row).is_some()).collect();
            let mut places = vec![None; split.len()];
            for row in split.readable(rows, fit, broken, &mut left_out)? {
                places[row] = of_class(row);
            }
            Ok(places)
        };
        let (train_places, test_places) = (places(&dataset.train)?, places(&dataset.test)?);
        Ok(Self {
            train_places,
            test_places,
            left_out,
            dataset,
            tested: &dataset.test,
            phases,
            network,
            recipe,
            fit,
            engine,
        })
    }

    /// Why images were left out, a sentence each.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Trains and tests one method phase by phase. `readings` are the ways to answer that are
    /// wanted, all of one [`training`](Baseline::training). `each_step` says whether to continue;
    /// a stopped training gives `None`.
    pub fn run(
        &self,
        readings: &[Baseline],
        each_step: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Vec<TrainedPhase>>> {
        let Some(training) = readings.first().map(|reading| reading.training()) else {
            return Ok(Some(Vec::new()));
        };
        self.run_method(&mut *training.method(), readings, each_step)
    }

    /// The same by a method that is given.
    pub(super) fn run_method(
        &self,
        method: &mut dyn Method,
        readings: &[Baseline],
        each_step: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Option<Vec<TrainedPhase>>> {
        let free = readings.iter().find(|reading| reading.is_exemplar_free());
        if let Some(free) = free.filter(|_| method.memory().is_some()) {
            return Err(Error::Engine { what: format!("{free} keeps no images") });
        }
        let joint = readings.contains(&Baseline::JointTraining);
        let begun = Instant::now();
        if !method.prepare(&BasePhase::new(self), each_step)? {
            return Ok(None);
        }
        let mut prepared = begun.elapsed().as_secs_f64();
        let mut model = self.first_model(method, joint)?;
        let mut done = Vec::new();
        for (index, classes) in self.phases.iter().enumerate() {
            let started = Instant::now();
            let phase = self.phase_of(index, classes.clone(), method);
            let trained = match (index, joint) {
                (0, true) => {
                    let all = self.phase_of(index, 0..self.dataset.classes.len(), method);
                    self.phase(&all, method, &mut model, each_step)?
                }
                (0, false) => self.base_phase(&phase, method, &mut model).map(|()| true)?,
                (_, true) => true,
                (_, false) => self.phase(&phase, method, &mut model, each_step)?,
            };
            if !trained {
                return Ok(None);
            }
            let seconds = started.elapsed().as_secs_f64() + std::mem::take(&mut prepared);
            done.push(self.test(&phase, readings, method, &model, seconds)?);
        }
        Ok(Some(done))
    }

    /// The network and the head that a method begins with.
    pub(super) fn first_model(&self, method: &mut dyn Method, joint: bool) -> Result<TrainedModel> {
        let base = self.phases[0].len();
        let outputs = self.network.architecture.outputs;
        let mut weights = self.network.clone();
        if joint {
            let (architecture, normalisation) =
                (weights.architecture.clone(), weights.normalisation.clone());
            weights = Weights::random(architecture, normalisation, self.recipe.seed);
            let mut head = Head::new(weights.architecture.dimensions());
            head.grow(self.dataset.classes.len(), self.recipe.seed);
            return Ok(TrainedModel { weights, head });
        }
        if method.sisters() > outputs / base {
            return Err(Error::NoRotations { outputs, classes: base });
        }
        let step = outputs / base / method.sisters();
        let head = Head::of_network(&weights, step, self.temperature());
        Ok(TrainedModel { weights, head })
    }

    /// The temperature that the network was trained at, as its file says; else the recipe's.
    fn temperature(&self) -> f32 {
        let own = self.network.metadata.get("recipe");
        let own = own.and_then(|text| serde_json::from_str::<Recipe>(text).ok());
        let own = own.filter(|recipe| recipe.check().is_ok());
        own.map_or(self.recipe.temperature, |recipe| recipe.temperature)
    }

    /// The network stays as it is; a head of another loss is brought to it.
    fn base_phase(
        &self,
        phase: &Phase,
        method: &mut dyn Method,
        model: &mut TrainedModel,
    ) -> Result<()> {
        let recipe = self.recipe_for(method);
        let mut trained = self.trained(&recipe, &model.weights)?;
        let backbone = self.engine.backbone(&model.weights)?;
        let weights = &model.weights;
        let mut data = PhaseData::new(self, phase, &recipe, weights, &mut *trained, &*backbone);
        if method.sisters() == 1 {
            let own = data.points()?;
            fit(&mut model.head, &own.points, &recipe, FIRST_EPOCHS, |head, points, rows| {
                let labels: Vec<usize> = rows.iter().map(|&row| own.labels[row]).collect();
                let step = Step {
                    labels: &labels,
                    before: None,
                    old: 0,
                    recipe: &recipe,
                    rate: recipe.rate,
                    index: 0,
                };
                method.loss(&step, points, head).map(|_| ())
            })?;
        }
        method.finish(phase, &mut data, &mut model.head)
    }

    /// One phase of training; `false` if it was stopped.
    fn phase(
        &self,
        phase: &Phase,
        method: &mut dyn Method,
        model: &mut TrainedModel,
        each_step: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<bool> {
        let recipe = self.recipe_for(method);
        let old_head = model.head.clone();
        let mut before: Option<Box<dyn Backbone>> = None;
        let mut trained = self.trained(&recipe, &model.weights)?;
        if phase.index > 0 {
            let outputs = phase.classes.len() * method.sisters();
            model.head.grow(outputs, mix(recipe.seed, phase.index as u64));
            let backbone = self.engine.backbone(&model.weights)?;
            let weights = &model.weights;
            let mut data = PhaseData::new(self, phase, &recipe, weights, &mut *trained, &*backbone);
            method.begin(phase, &mut data, &mut model.head)?;
            before = method.needs_before().then_some(backbone);
        }
        let mut rows = phase.rows.clone();
        rows.extend_from_slice(method.memory().map_or(&[], Memory::rows));
        let mut epoch_loop = EpochLoop {
            trainer: self,
            phase,
            recipe: &recipe,
            before,
            old_head: &old_head,
            steps_done: 0,
        };
        if !epoch_loop.train_epochs(rows, &mut *trained, method, &mut model.head, each_step)? {
            return Ok(false);
        }
        self.finish(phase, &recipe, &mut *trained, method, model)?;
        let Some(share) = method.balanced().filter(|_| phase.index > 0) else { return Ok(true) };
        let epochs = ((recipe.epochs as f64 * share).ceil() as usize).max(1);
        let seed = mix(recipe.seed, BALANCE);
        let shorter = recipe.clone().in_epochs(epochs);
        let gentler = Recipe { rate: GENTLER * recipe.rate, seed, ..shorter };
        // all outputs, new ones too, are distilled from the network as the phase has left it
        let mut trained = self.trained(&gentler, &model.weights)?;
        let left = model.head.clone();
        let before = Some(self.engine.backbone(&model.weights)?);
        let mut epoch_loop = EpochLoop {
            trainer: self,
            phase,
            recipe: &gentler,
            before,
            old_head: &left,
            steps_done: 0,
        };
        model.head.begin();
        let rows = method.memory().map_or(Vec::new(), |memory| memory.rows().to_vec());
        if !epoch_loop.train_epochs(rows, &mut *trained, method, &mut model.head, each_step)? {
            return Ok(false);
        }
        self.finish(phase, &recipe, &mut *trained, method, model)?;
        Ok(true)
    }

    /// Takes the weights over and lets the method look back at the phase.
    fn finish(
        &self,
        phase: &Phase,
        recipe: &Recipe,
        trained: &mut dyn CustomLossTrainer,
        method: &mut dyn Method,
        model: &mut TrainedModel,
    ) -> Result<()> {
        let state = trained.state()?;
        let (learned, measured) = state.result();
        model.weights.learned = learned.to_vec();
        model.weights.measured = measured.to_vec();
        let backbone = self.engine.backbone(&model.weights)?;
        let weights = &model.weights;
        let mut data = PhaseData::new(self, phase, recipe, weights, trained, &*backbone);
        method.finish(phase, &mut data, &mut model.head)
    }

    fn test(
        &self,
        phase: &Phase,
        readings: &[Baseline],
        method: &dyn Method,
        model: &TrainedModel,
        learn_seconds: f64,
    ) -> Result<TrainedPhase> {
        let started = Instant::now();
        let backbone = self.engine.backbone(&model.weights)?;
        let test = self.tested;
        let rows: Vec<usize> =
            (0..test.len()).filter(|&row| self.test_place(row).is_some()).collect();
        let points = points_of(self, &*backbone, test, &rows, None)?;
        let labels: Vec<u32> =
            rows.iter().filter_map(|&row| self.test_place(row)).map(|place| place as u32).collect();
        let known = phase.classes.end;
        let phases = &self.phases[..=phase.index];
        let kept = method.memory().map_or(0, |memory| memory.rows().len());
        let mut outcomes = Vec::new();
        for &reading in readings {
            let all = method.distances(reading, &points, &model.head);
            let distances = first_columns(&all, known)?;
            let evaluation = Evaluation::of(distances);
            let mut outcome = assess(&evaluation, &labels, phases);
            outcome.learn_seconds = learn_seconds;
            outcome.predict_seconds = started.elapsed().as_secs_f64();
            let images = match reading {
                Baseline::JointTraining => self.dataset.train.len(),
                _ => kept,
            };
            outcome.bytes = model.head.bytes() + method.bytes() + images * self.fit.shape.len();
            outcomes.push(outcome);
        }
        let sites = method.is_linear().then(|| {
            let rows = || model.head.rows().step_by(method.sisters()).take(known);
            let factor = mean_length(points.iter_rows()) / mean_length(rows().map(|(row, _)| row));
            rows().map(|(row, bias)| power_site(row, bias, 2.0 * factor)).collect()
        });
        let choices = method.choices().to_vec();
        Ok(TrainedPhase { outcomes, points, labels, sites, kept, choices })
    }

    /// The recipe, with as many views in a step whatever the method.
    fn recipe_for(&self, method: &dyn Method) -> Recipe {
        let batch = self.recipe.batch * ROTATIONS / method.sisters();
        Recipe { batch, rotations: false, average: None, ..self.recipe.clone() }
    }

    fn trained(&self, recipe: &Recipe, weights: &Weights) -> Result<Box<dyn CustomLossTrainer>> {
        let (architecture, shape) = (&weights.architecture, self.fit.shape);
        let state = state_of(weights);
        self.engine.trainer(architecture, recipe, &weights.normalisation, shape, &state)
    }

    /// A phase with the images that there is room for beside those that a method keeps.
    fn phase_of(&self, index: usize, classes: Range<usize>, method: &dyn Method) -> Phase {
        let all = self.rows(&classes);
        let room = method.memory().map_or(usize::MAX, |memory| {
            let budget = exemplars::EACH * classes.start + all.len();
            budget.saturating_sub(memory.rows().len())
        });
        let by_class = |class: usize| -> Vec<usize> {
            all.iter().copied().filter(|&row| self.place(row) == Some(class)).collect()
        };
        let rows = if room >= all.len() {
            all
        } else {
            let by_class: Vec<Vec<usize>> = classes.clone().map(by_class).collect();
            admitted(&by_class, room, mix(self.recipe.seed, index as u64))
        };
        Phase { index, classes, rows }
    }

    /// Rows of the training images of some classes.
    pub(super) fn rows(&self, classes: &Range<usize>) -> Vec<usize> {
        let rows = 0..self.dataset.train.len();
        rows.filter(|&row| self.place(row).is_some_and(|place| classes.contains(&place))).collect()
    }

    /// When the class of a training image arrives.
    pub(super) fn place(&self, row: usize) -> Option<usize> {
        self.train_places[row]
    }

    fn test_place(&self, row: usize) -> Option<usize> {
        self.test_places[row]
    }
}

fn first_columns(matrix: &Matrix, columns: usize) -> Result<Matrix> {
    let columns = columns.min(matrix.cols());
    let values = matrix.iter_rows().flat_map(|row| row[..columns].iter().copied()).collect();
    Ok(Matrix::new(matrix.rows(), columns, values)?)
}

/// Centre w / 2 and weight b + ‖w‖² / 4: the cell where this output is the largest. All outputs
/// times one factor have the same cells; it brings the centres to where the points are.
fn power_site(row: &[f32], bias: f32, factor: f32) -> (Vec<f32>, f32) {
    let centre: Vec<f32> = row.iter().map(|value| factor * value / 2.0).collect();
    let square: f32 = centre.iter().map(|value| value * value).sum();
    (centre, factor * bias + square)
}

/// Where training of a network begins.
pub(super) fn state_of(weights: &Weights) -> State {
    let (learned, measured) = (weights.learned.clone(), weights.measured.clone());
    State { learned, measured, ..State::default() }
}

pub(super) fn mean_length<'r>(rows: impl Iterator<Item = &'r [f32]>) -> f32 {
    let lengths = rows.map(|row| row.iter().map(|value| value * value).sum::<f32>().sqrt());
    let (sum, count) = lengths.fold((0.0, 0.0), |(sum, count), length| (sum + length, count + 1.0));
    f32::max(sum / f32::max(count, 1.0), f32::MIN_POSITIVE)
}
