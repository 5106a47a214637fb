//! Training on the CPU.

use std::collections::BTreeMap;

use ivoro::Matrix;

use super::input::Lookup;
use super::loss::cross_entropy;
use super::network::Network;
use super::optimiser;
use super::plan::{Linear, Plan};
use super::tape::Tape;
use super::{check_size, count_images};
use crate::engine::{
    Anchor, Batch, CustomLossTrainer, Normalisation, State, Tally, Trainer, begin,
};
use crate::error::Result;
use crate::network::{Architecture, Weights};
use crate::recipe::Recipe;
use crate::shape::Shape;

/// A network in training on the CPU's cores.
///
/// The same state, batches and rates give the same weights, bit for bit, on any number of threads.
pub struct CpuTrainer {
    architecture: Architecture,
    recipe: Recipe,
    normalisation: Normalisation,
    shape: Shape,
    plan: Plan,
    lookup: Lookup,
    /// Learned weights and all that goes with them lie as the engine has them.
    state: State,
    gradient: Vec<f32>,
    tape: Tape,
    tally: Tally,
    /// The network that the weights to be kept make, until the next step.
    kept: Option<Network>,
    /// What holds the weights, as the engine has them.
    anchor: Option<Anchor>,
}

impl CpuTrainer {
    /// Resumes from `state`. A state without the optimiser's memory begins with none.
    pub fn new(
        architecture: Architecture,
        recipe: &Recipe,
        normalisation: Normalisation,
        shape: Shape,
        state: State,
    ) -> Result<Self> {
        let plan = Plan::new(&architecture, shape)?;
        let state = begin(&architecture, recipe, shape, state)?;
        let lookup = Lookup::new(&normalisation, shape.channels)?;
        let state = laid_out(&plan, state);
        let gradient = vec![0.0; plan.learned];
        Ok(Self {
            architecture,
            recipe: recipe.clone(),
            normalisation,
            shape,
            plan,
            lookup,
            state,
            gradient,
            tape: Tape::default(),
            tally: Tally::default(),
            kept: None,
            anchor: None,
        })
    }

    /// The label of each view, in the order of [`Lookup::views`].
    fn labels(&self, labels: &[u32]) -> Result<Vec<usize>> {
        let sisters = self.recipe.sisters();
        let classes = self.architecture.outputs / sisters;
        let outside = labels.iter().enumerate().find(|&(_, &label)| label as usize >= classes);
        if let Some((row, &label)) = outside {
            let origin = "training batch".into();
            let label = i64::from(label);
            return Err(ivoro::Error::LabelRange { origin, row, label, classes }.into());
        }
        let rotated = |rotation| labels.iter().map(move |&y| sisters * y as usize + rotation);
        Ok((0..sisters).flat_map(rotated).collect())
    }

    /// Every batch norm measures a variance, which takes two values.
    fn check_values(&self, views: usize) -> Result<()> {
        let fewest = views * self.plan.last_geometry().out_pixels();
        if fewest > 1 {
            return Ok(());
        }
        let what = "values a channel that the last layer normalises (at least)";
        check_size(what, 2, fewest)
    }
}

impl Trainer for CpuTrainer {
    fn step(&mut self, batch: Batch<'_>, rate: f32) -> Result<()> {
        let images = batch.labels.len();
        let expected = images * self.shape.len();
        check_size("pixel values of a training batch", expected, batch.pixels.len())?;
        let labels = self.labels(batch.labels)?;
        self.check_values(labels.len())?;
        let sisters = self.recipe.sisters();
        self.tape.input.resize(sisters * expected, 0.0);
        self.lookup.views(batch.pixels, self.shape, &mut self.tape.input);
        self.tape.forward(&self.plan, &self.state.learned, &mut self.state.measured);
        let Recipe { temperature, smoothing, .. } = self.recipe;
        let tally = cross_entropy(&mut self.tape.outputs, &labels, temperature, smoothing);
        self.tally.loss += tally.loss;
        self.tally.correct += tally.correct;
        self.tally.views += tally.views;
        self.tape.backward(&self.plan, &self.state.learned, &mut self.gradient);
        self.apply_gradient(rate)
    }

    fn tally(&mut self) -> Result<Tally> {
        Ok(std::mem::take(&mut self.tally))
    }

    fn state(&mut self) -> Result<State> {
        let State { learned, measured, first, second, average, steps } = &self.state;
        let average = average.as_ref();
        Ok(State {
            learned: self.plan.to_file(learned),
            measured: measured.clone(),
            first: self.plan.to_file(first),
            second: self.plan.to_file(second),
            average: average
                .map(|(learned, measured)| (self.plan.to_file(learned), measured.clone())),
            steps: *steps,
        })
    }

    fn outputs(&mut self, pixels: &[u8]) -> Result<Matrix> {
        count_images(pixels, self.shape)?;
        let network = if let Some(network) = self.kept.take() {
            network
        } else {
            let (learned, measured) = self.state.result();
            Network::new(&Weights {
                architecture: self.architecture.clone(),
                learned: self.plan.to_file(learned),
                measured: measured.to_vec(),
                normalisation: self.normalisation.clone(),
                metadata: BTreeMap::new(),
            })?
        };
        self.kept.insert(network).outputs(pixels, self.shape)
    }
}

impl CustomLossTrainer for CpuTrainer {
    fn embed(&mut self, pixels: &[u8]) -> Result<Matrix> {
        let images = count_images(pixels, self.shape)?;
        self.check_values(images)?;
        self.tape.input.resize(pixels.len(), 0.0);
        self.lookup.views(pixels, self.shape, &mut self.tape.input);
        self.tape.forward(&self.plan, &self.state.learned, &mut self.state.measured);
        let points = self.tape.points(&self.plan).to_vec();
        Ok(Matrix::new(images, self.plan.classifier.inputs, points)?)
    }

    fn maps(&mut self) -> Result<Matrix> {
        let points = self.tape.points(&self.plan).len();
        let maps = self.tape.maps(&self.plan, &self.state.learned);
        let rows = points / self.plan.classifier.inputs;
        Ok(Matrix::new(rows, maps.len() / rows.max(1), maps)?)
    }

    fn backward(&mut self, points: &Matrix, maps: Option<&Matrix>) -> Result<()> {
        let expected = self.tape.points(&self.plan).len();
        check_size("gradients of points", expected, points.as_slice().len())?;
        if let Some(maps) = maps {
            let expected = expected * self.plan.last_geometry().out_pixels();
            check_size("gradients of maps", expected, maps.as_slice().len())?;
        }
        let (points, maps) = (points.as_slice().to_vec(), maps.map(Matrix::as_slice));
        // the classifier's may be of a step before
        let Linear { matrix, bias, .. } = &self.plan.classifier;
        self.gradient[matrix.clone()].fill(0.0);
        self.gradient[bias.clone()].fill(0.0);
        let learned = &self.state.learned;
        self.tape.backward_points(&self.plan, points, maps, learned, &mut self.gradient);
        Ok(())
    }

    fn gradient(&mut self) -> Result<Vec<f32>> {
        Ok(self.plan.to_file(&self.gradient))
    }

    fn apply_gradient(&mut self, rate: f32) -> Result<()> {
        let Recipe { decay, optimiser, average, .. } = self.recipe;
        if let Some(Anchor { at, importance }) = &self.anchor {
            let held = self.state.learned.iter().zip(at).zip(importance);
            for (gradient, ((weight, at), importance)) in self.gradient.iter_mut().zip(held) {
                *gradient += importance * (weight - at);
            }
        }
        self.state.steps += 1;
        optimiser::change(&mut self.state, &self.gradient, optimiser, rate, decay);
        optimiser::follow(&mut self.state, average.unwrap_or(0.0));
        self.kept = None;
        Ok(())
    }

    fn hold(&mut self, anchor: &Anchor) -> Result<()> {
        check_size("weights to be held at", self.plan.learned, anchor.at.len())?;
        check_size("importances of weights", self.plan.learned, anchor.importance.len())?;
        let at = self.plan.to_engine(&anchor.at);
        self.anchor = Some(Anchor { at, importance: self.plan.to_engine(&anchor.importance) });
        Ok(())
    }
}

/// A state laid out as the engine needs it.
fn laid_out(plan: &Plan, state: State) -> State {
    let State { learned, measured, first, second, average, steps } = state;
    State {
        learned: plan.to_engine(&learned),
        measured,
        first: plan.to_engine(&first),
        second: plan.to_engine(&second),
        average: average.map(|(learned, measured)| (plan.to_engine(&learned), measured)),
        steps,
    }
}
