//! The loop over epochs: an iterator, so that the caller prints, logs and keeps checkpoints.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use ivoro::random::{mix, permutation};
use serde::{Deserialize, Serialize};

use super::augment::augment;
use crate::dataset::{Broken, Split};
use crate::engine::{Batch, Trainer};
use crate::error::Result;
use crate::recipe::Recipe;
use crate::shape::Fit;

/// Batches of each thread that may wait for the engine.
const AHEAD: usize = 4;
/// Most threads that prepare batches.
const MOST_THREADS: usize = 8;
/// Images asked about at once when accuracy is measured.
const ASKED_AT_ONCE: usize = 256;
/// Streams of random numbers that must not be the same.
const ORDER: u64 = 0x6F72_6465;
const CHANGES: u64 = 0x6368_616E;
const HOLDOUT: u64 = 0x686F_6C64;

/// What is trained on.
#[derive(Clone, Debug)]
pub struct TrainingData<'a> {
    /// Where the images are.
    pub images: &'a Split,
    /// Rows that are trained on.
    pub rows: Vec<usize>,
    /// Rows that only measure accuracy.
    pub held_out: Vec<usize>,
    /// The base class of each row of the split; rows of other classes have none.
    pub targets: Vec<Option<u32>>,
    /// The shape all images are brought to.
    pub fit: Fit,
}

/// What one epoch gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Which one, counted from 1.
    pub epoch: usize,
    /// Epochs there are.
    pub epochs: usize,
    /// Mean loss over views.
    pub loss: f64,
    /// Share of training views (class and rotation) that were right, in percent.
    pub train_accuracy: f64,
    /// Share of held-out images whose class was right, in percent.
    pub held_out_accuracy: Option<f64>,
    /// The learning rate of its last step.
    pub rate: f32,
    /// Training views per second.
    pub views_per_second: f64,
    /// Seconds it took, measuring included.
    pub seconds: f64,
    /// Share of that time in which the engine waited for images.
    pub waiting: f64,
}

impl<'a> TrainingData<'a> {
    /// The images of the base classes. `classes[i]` is the data set's label of base class `i`;
    /// `holdout` is the share of each class that is kept out of training.
    pub fn new(images: &'a Split, classes: &[u32], fit: Fit, recipe: &Recipe) -> Self {
        let target = |label: u32| classes.iter().position(|&class| class == label);
        let targets: Vec<Option<u32>> =
            images.labels().iter().map(|&label| target(label).map(|at| at as u32)).collect();
        let (mut rows, mut held_out) = (Vec::new(), Vec::new());
        for class in 0..classes.len() as u32 {
            let own: Vec<usize> =
                (0..targets.len()).filter(|&row| targets[row] == Some(class)).collect();
            let kept_out = (recipe.holdout * own.len() as f64).round() as usize;
            let kept_out = kept_out.min(own.len().saturating_sub(1));
            let order = permutation(mix(recipe.seed ^ HOLDOUT, class.into()), own.len());
            held_out.extend(order[..kept_out].iter().map(|&at| own[at]));
            rows.extend(order[kept_out..].iter().map(|&at| own[at]));
        }
        rows.sort_unstable();
        held_out.sort_unstable();
        Self { images, rows, held_out, targets, fit }
    }

    fn labels(&self, rows: &[usize]) -> Vec<u32> {
        rows.iter().filter_map(|&row| self.targets[row]).collect()
    }

    /// Share of these rows whose class is right, in percent: one image, one view, the outputs of
    /// unturned classes.
    pub fn accuracy(
        &self,
        trainer: &mut dyn Trainer,
        rows: &[usize],
        recipe: &Recipe,
    ) -> Result<f64> {
        let mut right = 0;
        let mut asked = 0;
        for rows in rows.chunks(ASKED_AT_ONCE) {
            let images = self.images.read(rows, self.fit, Broken::Fail)?;
            let outputs = trainer.outputs(&images.pixels)?;
            for (row, label) in outputs.iter_rows().zip(self.labels(&images.rows)) {
                let upright: Vec<f32> = row.iter().step_by(recipe.sisters()).copied().collect();
                right += usize::from(largest(&upright) == Some(label as usize));
                asked += 1;
            }
        }
        Ok(100.0 * right as f64 / f64::from(asked.max(1)))
    }

    /// The same, each image seen at its four rotations and the outputs of matching sisters added.
    pub fn ensemble_accuracy(&self, trainer: &mut dyn Trainer, rows: &[usize]) -> Result<f64> {
        let mut right = 0;
        let mut asked = 0;
        for rows in rows.chunks(ASKED_AT_ONCE) {
            let images = self.images.read(rows, self.fit, Broken::Fail)?;
            let mut sums: Vec<Vec<f32>> = Vec::new();
            for (turns, view) in ivoro::View::ROTATIONS.into_iter().enumerate() {
                let turned = crate::view::turned(&images.pixels, images.shape, view)?;
                let outputs = trainer.outputs(&turned)?;
                sums.resize(outputs.rows(), vec![0.0; outputs.cols() / 4]);
                for (sum, row) in sums.iter_mut().zip(outputs.iter_rows()) {
                    let own = row.iter().skip(turns).step_by(4);
                    sum.iter_mut().zip(own).for_each(|(sum, value)| *sum += value);
                }
            }
            for (sum, label) in sums.iter().zip(self.labels(&images.rows)) {
                right += usize::from(largest(sum) == Some(label as usize));
                asked += 1;
            }
        }
        Ok(100.0 * right as f64 / f64::from(asked.max(1)))
    }
}

/// The index of the largest value, the first of equals.
fn largest(values: &[f32]) -> Option<usize> {
    let mut best = 0;
    for (at, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = at;
        }
    }
    (!values.is_empty()).then_some(best)
}

/// A batch on its way to the engine.
pub(crate) struct Ready {
    /// Augmented images, one after another.
    pub(crate) pixels: Vec<u8>,
    /// Their targets.
    pub(crate) labels: Vec<u32>,
}

/// What the steps of an epoch had in common.
pub(crate) struct Paced {
    /// Seconds in which the engine waited for images.
    waited: f64,
    /// The learning rate of the last step.
    rate: f32,
}

/// The batches of one epoch in order, each with its learning rate; `index` counts from 0. They are
/// read, changed and made to `views` on other threads while `work` runs. `each_step` is asked
/// before each of them; an epoch that it stops gives `None`.
pub(crate) fn each_batch<V: Send>(
    data: &TrainingData<'_>,
    recipe: &Recipe,
    index: usize,
    each_step: &mut dyn FnMut(usize, usize) -> bool,
    views: impl Fn(Ready) -> Result<V> + Sync,
    mut work: impl FnMut(&V, f32) -> Result<()>,
) -> Result<Option<Paced>> {
    let order = permutation(mix(recipe.seed ^ ORDER, index as u64), data.rows.len());
    let rows: Vec<usize> = order.into_iter().map(|at| data.rows[at]).collect();
    let batch = recipe.batch.min(rows.len()).max(1);
    // A last, smaller batch is left out; the order differs in each epoch.
    let steps = rows.len() / batch;
    let threads = (rayon::current_num_threads() / 2).clamp(1, MOST_THREADS);
    let mut paced = Paced { waited: 0.0, rate: 0.0 };
    let complete = std::thread::scope(|scope| -> Result<bool> {
        // Thread t prepares batches t, t + threads, …; asked in turn, they come in order.
        let views = &views;
        let receivers: Vec<Receiver<Result<V>>> = (0..threads)
            .map(|thread| {
                let (sender, receiver) = sync_channel(AHEAD);
                let batches = rows.chunks_exact(batch).skip(thread).step_by(threads);
                scope.spawn(move || produce(data, recipe, index, batches, views, &sender));
                receiver
            })
            .collect();
        // The receivers live in here: when this closure ends, the threads stop.
        for step in 0..steps {
            if !each_step(step, steps) {
                return Ok(false);
            }
            let asked = Instant::now();
            let Ok(ready) = receivers[step % threads].recv() else { break };
            paced.waited += asked.elapsed().as_secs_f64();
            paced.rate = recipe.rate_at(index as f64 + step as f64 / steps as f64);
            work(&ready?, paced.rate)?;
        }
        Ok(true)
    })?;
    Ok(complete.then_some(paced))
}

/// One epoch: `index` counts from 0. `each_step` is asked before each step; an epoch that it stops
/// gives `None`.
pub fn run_epoch(
    trainer: &mut dyn Trainer,
    data: &TrainingData<'_>,
    recipe: &Recipe,
    index: usize,
    mut each_step: impl FnMut(usize, usize) -> bool,
) -> Result<Option<Epoch>> {
    let start = Instant::now();
    let step = |ready: &Ready, rate: f32| {
        trainer.step(Batch { pixels: &ready.pixels, labels: &ready.labels }, rate)
    };
    let Some(paced) = each_batch(data, recipe, index, &mut each_step, Ok, step)? else {
        return Ok(None);
    };
    let tally = trainer.tally()?;
    let trained = start.elapsed().as_secs_f64();
    let held_out_accuracy = if data.held_out.is_empty() {
        None
    } else {
        Some(data.accuracy(trainer, &data.held_out, recipe)?)
    };
    let views = tally.views.max(1) as f64;
    Ok(Some(Epoch {
        epoch: index + 1,
        epochs: recipe.epochs,
        loss: tally.loss / views,
        train_accuracy: 100.0 * tally.correct as f64 / views,
        held_out_accuracy,
        rate: paced.rate,
        views_per_second: views / trained,
        seconds: start.elapsed().as_secs_f64(),
        waiting: paced.waited / trained,
    }))
}

fn produce<'r, V>(
    data: &TrainingData<'_>,
    recipe: &Recipe,
    index: usize,
    batches: impl Iterator<Item = &'r [usize]>,
    views: impl Fn(Ready) -> Result<V>,
    sender: &SyncSender<Result<V>>,
) {
    let stream = mix(recipe.seed ^ CHANGES, index as u64);
    for rows in batches {
        let read = data.images.read(rows, data.fit, Broken::Fail);
        let ready = read.and_then(|mut images| {
            let settings = &recipe.augmentation;
            augment(&mut images.pixels, images.shape, &images.rows, settings, stream);
            views(Ready { labels: data.labels(&images.rows), pixels: images.pixels })
        });
        let failed = ready.is_err();
        // An engine that has stopped listening wants no more.
        if sender.send(ready).is_err() || failed {
            return;
        }
    }
}
