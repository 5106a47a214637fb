//! Training from a data set to a weights file, resumable: the epochs done lie in a checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::checkpoint::Checkpoint;
use super::epochs::{Epoch, TrainingData, run_epoch};
use crate::dataset::{Broken, Dataset};
use crate::engine::{Device, Engine, Normalisation, State, Trainer};
use crate::error::{Error, Result};
use crate::network::{Architecture, Weights};
use crate::recipe::Recipe;
use crate::shape::Fit;

/// Images that are looked at to measure mean and deviation of the channels.
const MEASURED_IMAGES: usize = 10_000;

/// What is to be trained.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The network; `outputs` is set from the number of base classes.
    pub architecture: Architecture,
    /// How it is trained.
    pub recipe: Recipe,
    /// The data set's labels of the base classes, in order.
    pub base: Vec<u32>,
    /// The shape all images are brought to.
    pub fit: Fit,
    /// What to do about an image that can't be read.
    pub broken: Broken,
    /// Where it is computed, as the weights' file will say.
    pub device: Device,
    /// A hash of the data set.
    pub identity: String,
}

/// A training that is under way.
pub struct Training<'a> {
    plan: Plan,
    data: TrainingData<'a>,
    dataset: &'a Dataset,
    engine: &'a dyn Engine,
    left_out: Vec<String>,
    trainer: Box<dyn Trainer>,
    /// Whether it has learned in an epoch that has not come to its end.
    stopped: bool,
    /// Shared with the thread that writes it.
    checkpoint: Arc<Checkpoint>,
    path: PathBuf,
    /// The last checkpoint on its way to the disk, while the next epoch is trained.
    writing: Option<JoinHandle<Result<()>>>,
}

impl<'a> Training<'a> {
    /// Begins, or resumes from the checkpoint at `path`. A checkpoint of another training is an
    /// error: it is never written over. `engine` is that of the plan's device.
    pub fn begin(
        dataset: &'a Dataset,
        mut plan: Plan,
        engine: &'a dyn Engine,
        path: &Path,
    ) -> Result<Self> {
        plan.recipe.check()?;
        plan.architecture.channels = plan.fit.shape.channels;
        plan.architecture.outputs = plan.base.len() * plan.recipe.sisters();
        let mut data = TrainingData::new(&dataset.train, &plan.base, plan.fit, &plan.recipe);
        let mut left_out = Vec::new();
        for rows in [&mut data.rows, &mut data.held_out] {
            let all = std::mem::take(rows);
            *rows = dataset.train.readable(all, plan.fit, plan.broken, &mut left_out)?;
        }
        if data.rows.is_empty() {
            return Err(Error::NothingToTrain { classes: plan.base.len() });
        }
        let identity = plan.data_identity();
        let checkpoint = if path.exists() {
            let found = Checkpoint::read(path)?;
            plan.check_same(path, &found, &identity)?;
            found
        } else {
            first_checkpoint(&plan, &data, identity)?
        };
        let trainer = plan.trainer(engine, &checkpoint)?;
        let (checkpoint, path) = (Arc::new(checkpoint), path.to_owned());
        let (stopped, writing) = (false, None);
        Ok(Self {
            plan,
            data,
            dataset,
            engine,
            left_out,
            trainer,
            stopped,
            checkpoint,
            path,
            writing,
        })
    }

    /// Why images of the base classes were left out, a sentence each.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Back to the last checkpoint: a stopped epoch has no part in what follows.
    fn restore(&mut self) -> Result<()> {
        if std::mem::take(&mut self.stopped) {
            self.trainer = self.plan.trainer(self.engine, &self.checkpoint)?;
        }
        Ok(())
    }

    /// Epochs that are done.
    pub fn epochs(&self) -> &[Epoch] {
        &self.checkpoint.epochs
    }

    /// How many images are trained on.
    pub fn images(&self) -> usize {
        self.data.rows.len()
    }

    /// Does the next epoch and keeps a checkpoint. `None` when all are done, or when `each_step`
    /// said `false`: then the epoch begun is lost and the last checkpoint stands.
    pub fn next_epoch(
        &mut self,
        each_step: impl FnMut(usize, usize) -> bool,
    ) -> Result<Option<Epoch>> {
        let index = self.checkpoint.epochs.len();
        if index >= self.plan.recipe.epochs {
            return Ok(None);
        }
        self.restore()?;
        self.stopped = true;
        let trainer = &mut *self.trainer;
        let epoch = run_epoch(trainer, &self.data, &self.plan.recipe, index, each_step)?;
        if let Some(epoch) = &epoch {
            if !epoch.loss.is_finite() {
                return Err(Error::Diverged { epoch: index + 1, loss: epoch.loss });
            }
            let state = self.trainer.state()?;
            self.settle()?;
            let checkpoint = Arc::make_mut(&mut self.checkpoint);
            checkpoint.epochs.push(epoch.clone());
            checkpoint.state = state;
            self.stopped = false;
            let (checkpoint, path) = (Arc::clone(&self.checkpoint), self.path.clone());
            self.writing = Some(std::thread::spawn(move || checkpoint.write(&path)));
        }
        Ok(epoch)
    }

    /// Waits until the last checkpoint is on the disk.
    pub fn settle(&mut self) -> Result<()> {
        match self.writing.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(Error::Engine { what: "a checkpoint's writer died".to_owned() }),
            None => Ok(()),
        }
    }

    /// Accuracy on the base classes' test images in percent: one view, and with rotations the
    /// ensemble of four.
    pub fn test(&mut self) -> Result<(f64, Option<f64>)> {
        self.restore()?;
        let Plan { recipe, base, fit, .. } = &self.plan;
        let everything = Recipe { holdout: 0.0, ..recipe.clone() };
        let mut data = TrainingData::new(&self.dataset.test, base, *fit, &everything);
        let all = std::mem::take(&mut data.rows);
        data.rows = self.dataset.test.readable(all, *fit, self.plan.broken, &mut Vec::new())?;
        let single = data.accuracy(&mut *self.trainer, &data.rows, recipe)?;
        let ensemble = if recipe.rotations {
            Some(data.ensemble_accuracy(&mut *self.trainer, &data.rows)?)
        } else {
            None
        };
        Ok((single, ensemble))
    }

    /// The weights as they are now, with all that is known of them.
    pub fn weights(&self) -> Result<Weights> {
        let (learned, measured) = self.checkpoint.state.result();
        let classes: Vec<&String> =
            self.plan.base.iter().map(|&label| &self.dataset.classes[label as usize]).collect();
        let mut metadata = BTreeMap::from([
            ("data_set".to_owned(), self.dataset.name.clone()),
            ("data_set_identity".to_owned(), self.plan.identity.clone()),
            ("image".to_owned(), self.plan.fit.shape.to_string()),
            ("fit".to_owned(), self.plan.fit.to_string()),
        ]);
        metadata.insert("recipe".to_owned(), json(&self.plan.recipe)?);
        metadata.insert("base_classes".to_owned(), json(&classes)?);
        metadata.insert("device".to_owned(), self.plan.device.to_string());
        if let Some(last) = self.checkpoint.epochs.last() {
            // without its seconds: the same training leaves the same file
            let Epoch { epoch, epochs, loss, train_accuracy, held_out_accuracy, rate, .. } = last;
            let told = serde_json::json!({
                "epoch": epoch,
                "epochs": epochs,
                "loss": loss,
                "train_accuracy": train_accuracy,
                "held_out_accuracy": held_out_accuracy,
                "rate": rate,
            });
            metadata.insert("last_epoch".to_owned(), told.to_string());
        }
        let mut weights = Weights {
            architecture: self.plan.architecture.clone(),
            learned: learned.to_vec(),
            measured: measured.to_vec(),
            normalisation: self.checkpoint.normalisation.clone(),
            metadata,
        };
        weights.set_fit(self.plan.fit);
        Ok(weights)
    }
}

impl Drop for Training<'_> {
    fn drop(&mut self) {
        // An error was reported by `settle`, or nobody is left to hear it.
        let _ = self.settle();
    }
}

/// JSON of anything that can be written as such.
fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Engine { what: error.to_string() })
}

impl Plan {
    /// A hash of what is trained on: data set, base classes, shape and how it is reached.
    fn data_identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.identity.as_bytes());
        hasher.update(self.fit.to_string().as_bytes());
        for &label in &self.base {
            hasher.update(&label.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// A network that resumes from a checkpoint.
    fn trainer(&self, engine: &dyn Engine, from: &Checkpoint) -> Result<Box<dyn Trainer>> {
        let Self { architecture, recipe, fit, .. } = self;
        let Checkpoint { normalisation, state, .. } = from;
        Ok(engine.trainer(architecture, recipe, normalisation, fit.shape, state)?)
    }

    fn check_same(&self, path: &Path, found: &Checkpoint, identity: &str) -> Result<()> {
        let differs = [
            ("network", found.architecture != self.architecture),
            ("recipe", found.recipe != self.recipe),
            ("data set, base classes, or how images are fitted", found.data != identity),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            Some((what, _)) => {
                Err(Error::OtherTraining { path: path.to_owned(), what: (*what).to_owned() })
            }
            None => Ok(()),
        }
    }
}

fn first_checkpoint(plan: &Plan, data: &TrainingData<'_>, identity: String) -> Result<Checkpoint> {
    let step = data.rows.len().div_ceil(MEASURED_IMAGES);
    let some: Vec<usize> = data.rows.iter().copied().step_by(step).collect();
    let images = data.images.read(&some, data.fit, Broken::Fail)?;
    let normalisation = Normalisation::measure(&images.pixels, images.shape.channels);
    let Plan { architecture, recipe, .. } = plan;
    let weights = Weights::random(architecture.clone(), normalisation.clone(), recipe.seed);
    let moments = vec![0.0; weights.learned.len()];
    let average = recipe.average.map(|_| (weights.learned.clone(), weights.measured.clone()));
    let state = State {
        learned: weights.learned,
        measured: weights.measured,
        first: moments.clone(),
        second: moments,
        average,
        steps: 0,
    };
    Ok(Checkpoint {
        architecture: architecture.clone(),
        recipe: recipe.clone(),
        normalisation,
        data: identity,
        epochs: Vec::new(),
        state,
    })
}
