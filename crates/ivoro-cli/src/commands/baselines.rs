//! Methods that train the network on in every phase.

use std::collections::BTreeMap;
use std::path::Path;

use anstream::eprintln;
use ivoro_eval::comparison::{self, Provenance};
use ivoro_eval::picture::{Embedding, Sample, Scene, ScenePhase, Site, VERSION, embed, evenly};
use ivoro_eval::record::{
    Kind, MethodRecord, NamedValues, RunOptions, RunRecord, Summary, named_values,
};
use ivoro_eval::{ClassOrder, Protocol};
use ivoro_vision::baselines::{Baseline, IncrementalTrainer, TrainedPhase};
use ivoro_vision::train::Recipe;
use serde_json::json;

use super::figure::perplexity;
use super::ledger::Ledger;
use super::source::{Trained, training_of};
use crate::args::RunArguments;
use crate::args::figures::{SAMPLES, STEPS};
use crate::failure::Failure;
use crate::{output, progress};

/// The revision that each baseline has now, by name: records may be of an earlier one.
pub(super) fn revisions() -> BTreeMap<String, u64> {
    Baseline::ALL.map(|baseline| (baseline.to_string(), baseline.revision())).into()
}

/// The baselines that the arguments name, each once.
pub(super) fn named(arguments: &RunArguments) -> Result<Vec<Baseline>, Failure> {
    let mut found = Vec::new();
    for name in &arguments.baselines.baselines {
        let these = match name.as_str() {
            "all" => Baseline::ALL.to_vec(),
            "none" | "" => Vec::new(),
            name => vec![name.parse()?],
        };
        for baseline in these {
            if !found.contains(&baseline) {
                found.push(baseline);
            }
        }
    }
    Ok(found)
}

/// One comparison's baselines: images, network and what they are trained by.
pub(super) struct Baselines<'a> {
    arguments: &'a RunArguments,
    trained: Trained<'a>,
    protocol: &'a Protocol,
    order: &'a ClassOrder,
    /// The data set's class ids in order of arrival, and their names.
    arrival: Vec<usize>,
    classes: Vec<String>,
    recipe: Recipe,
}

impl<'a> Baselines<'a> {
    pub(super) fn new(
        arguments: &'a RunArguments,
        trained: Trained<'a>,
        protocol: &'a Protocol,
        order: &'a ClassOrder,
    ) -> Result<Self, Failure> {
        let recipe = phase_recipe(arguments)?;
        let names = &trained.dataset.classes;
        let arrival = order.permutation(names.len())?;
        let classes = arrival.iter().map(|&class| names[class].clone()).collect();
        Ok(Self { arguments, trained, protocol, order, arrival, classes, recipe })
    }

    /// The record where there is no other method.
    pub(super) fn outline(&self) -> Result<RunRecord, Failure> {
        let Trained { dataset, identity, fingerprint, .. } = &self.trained;
        let provenance =
            Provenance { features: dataset.name.clone(), split: "the data set's own".to_owned() };
        let options = RunOptions {
            data: Some((*identity).into()),
            network: Some(fingerprint.clone()),
            phases: Some(named_values(&self.recipe)?),
            ..RunOptions::default()
        };
        let classes = self.classes.clone();
        Ok(comparison::outline(self.protocol, self.order, classes, &provenance, options))
    }

    /// How the network that all begin with was trained.
    pub(super) fn training(&self) -> Option<NamedValues> {
        training_of(&self.trained.weights)
    }

    /// Trains what is not finished; two ways to answer that share a training share it.
    pub(super) fn train(&self, wanted: &[Baseline], ledger: &mut Ledger) -> Result<(), Failure> {
        // on another device it is the same training
        let finished = |one: &Baseline, ledger: &mut Ledger| {
            let settings = self.settings(*one);
            ledger.take_up(&one.to_string(), |method| {
                let same = |part: &&str| method.settings.get(part) == settings.get(part);
                ["recipe", "network"].iter().all(same) && method.revision() >= one.revision()
            })
        };
        let missing: Vec<Baseline> =
            wanted.iter().copied().filter(|one| !finished(one, ledger)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let Trained { dataset, weights, fit, .. } = &self.trained;
        let pipeline = &self.arguments.pipeline;
        let engine = crate::engine::engine(&pipeline.device)?;
        let trainer = IncrementalTrainer::new(
            dataset,
            &self.arrival,
            self.protocol.phases().collect(),
            weights,
            self.recipe.clone(),
            *fit,
            pipeline.images.broken(),
            &*engine,
        )?;
        trainer.left_out().iter().for_each(|sentence| eprintln!("left out: {sentence}"));
        let mut done = Vec::new();
        for &baseline in &missing {
            if done.contains(&baseline.training()) {
                continue;
            }
            done.push(baseline.training());
            if baseline.learns_among_new() && self.protocol.sizes().iter().skip(1).any(|&n| n == 1)
            {
                eprintln!(
                    "note: {baseline} tells new classes from each other alone; a phase of one teaches it nothing"
                );
            }
            let same = |other: &&Baseline| other.training() == baseline.training();
            let readings: Vec<Baseline> = missing.iter().filter(same).copied().collect();
            self.train_one(&trainer, &readings, ledger)?;
        }
        Ok(())
    }

    fn train_one(
        &self,
        trainer: &IncrementalTrainer<'_>,
        readings: &[Baseline],
        ledger: &mut Ledger,
    ) -> Result<(), Failure> {
        let phases = self.protocol.sizes().len();
        let later = phases.saturating_sub(1).max(1);
        let bar = progress::bar(later * self.recipe.epochs);
        let name = readings[0].training().to_string();
        let outcome = trainer.run(readings, &mut |at| {
            bar.set_message(format!(
                "{name}, phase {} of {}, epoch {} of {}",
                at.phase,
                phases,
                at.epoch.0 + 1,
                at.epoch.1
            ));
            if at.step.0 + 1 == at.step.1 {
                bar.inc(1);
            }
            !progress::interrupted()
        });
        bar.finish_and_clear();
        let phases = outcome?.ok_or(Failure::Interrupted)?;
        // pictures first: what is in the record is not trained again, so they could not be made later
        if let Some(folder) =
            self.arguments.out.as_ref().filter(|_| self.arguments.baselines.pictures)
        {
            self.pictures(folder, readings, &phases)?;
        }
        for (at, &reading) in readings.iter().enumerate() {
            ledger.push(self.record(reading, &phases, at))?;
        }
        Ok(())
    }

    /// What a training was done with.
    fn settings(&self, reading: Baseline) -> serde_json::Value {
        json!({
            "recipe": self.recipe,
            "device": self.arguments.pipeline.device.to_string(),
            "network": self.trained.fingerprint,
            "revision": reading.revision(),
        })
    }

    fn record(
        &self,
        reading: Baseline,
        trained_phases: &[TrainedPhase],
        at: usize,
    ) -> MethodRecord {
        let phases: Vec<_> =
            trained_phases.iter().map(|phase| phase.outcomes[at].clone()).collect();
        MethodRecord {
            name: reading.to_string(),
            kind: Kind::Baseline,
            exemplar_free: reading.is_exemplar_free(),
            exemplars: reading.exemplars().map(|each| each.max(kept_per_class(trained_phases))),
            views: Some(1),
            layers: Some(1),
            settings: self.settings(reading),
            choices: trained_phases.last().map_or(Vec::new(), |phase| phase.choices.clone()),
            summary: Summary::of(&phases),
            phases,
            ..MethodRecord::default()
        }
    }

    fn pictures(
        &self,
        folder: &Path,
        readings: &[Baseline],
        trained_phases: &[TrainedPhase],
    ) -> Result<(), Failure> {
        let dataset = self.trained.dataset;
        let data_set = self.arguments.data_set.clone().unwrap_or_else(|| dataset.name.clone());
        if trained_phases.iter().any(|phase| phase.points.cols() != 2) {
            return self.embeddings(folder, readings, trained_phases, &data_set);
        }
        for (at, reading) in readings.iter().enumerate() {
            if trained_phases.iter().any(|phase| phase.sites.is_none()) {
                eprintln!("note: no picture of {reading}: its regions are not those of a diagram");
                continue;
            }
            let scene = Scene {
                version: VERSION,
                data_set: data_set.clone(),
                method: reading.to_string(),
                classes: self.classes.clone(),
                phases: trained_phases.iter().map(|phase| scene_phase(phase, at)).collect(),
            };
            let name = format!("{}.scene.json", stem(*reading));
            output::write_whole(&folder.join(name), &(serde_json::to_string(&scene)? + "\n"))?;
        }
        Ok(())
    }

    /// Each phase's features brought to the plane, once for all ways to answer from them.
    fn embeddings(
        &self,
        folder: &Path,
        readings: &[Baseline],
        trained_phases: &[TrainedPhase],
        data_set: &str,
    ) -> Result<(), Failure> {
        for (index, phase) in trained_phases.iter().enumerate() {
            let labels = &phase.labels;
            let rows: Vec<usize> = evenly(labels.len(), SAMPLES).collect();
            let Some(perplexity) = perplexity(rows.len()) else { return Ok(()) };
            let spinner = progress::spinner(&format!("t-SNE of phase {}", index + 1));
            let placed = embed(&phase.points.select(&rows), perplexity, STEPS)?;
            spinner.finish_and_clear();
            let place = |([x, y], &row): ([f32; 2], &usize)| (x, y, labels[row]);
            let points: Vec<Sample> = placed.into_iter().zip(&rows).map(place).collect();
            for &reading in readings {
                let embedding = Embedding {
                    version: VERSION,
                    data_set: data_set.to_owned(),
                    method: reading.to_string(),
                    phase: Some(index),
                    perplexity: f64::from(perplexity),
                    classes: self.classes.clone(),
                    phases: self.protocol.sizes().to_vec(),
                    points: points.clone(),
                };
                let text = serde_json::to_string(&embedding)? + "\n";
                let name = format!("{}-{}.tsne.json", stem(reading), index + 1);
                output::write_whole(&folder.join(name), &text)?;
            }
        }
        Ok(())
    }
}

/// The most images kept for each class known, rounded up.
fn kept_per_class(phases: &[TrainedPhase]) -> usize {
    let each = |phase: &TrainedPhase| {
        let known = phase.outcomes.first().map_or(0, |outcome| outcome.classes);
        phase.kept.div_ceil(known.max(1))
    };
    phases.iter().map(each).max().unwrap_or(0)
}

/// What the names of a method's pictures begin with.
fn stem(reading: Baseline) -> String {
    reading.to_string().to_lowercase()
}

/// One phase in the plane: centres and samples of the classes known.
fn scene_phase(phase: &TrainedPhase, reading: usize) -> ScenePhase {
    let (outcome, labels) = (&phase.outcomes[reading], &phase.labels);
    let sites = phase.sites.iter().flatten().enumerate().map(|(class, (centre, weight))| Site {
        at: [centre[0], centre[1]],
        weight: *weight,
        class: class as u32,
        sister: 0,
    });
    let known: Vec<usize> =
        (0..labels.len()).filter(|&row| (labels[row] as usize) < outcome.classes).collect();
    let sample = |at: usize| -> Sample {
        let row = known[at];
        (phase.points.row(row)[0], phase.points.row(row)[1], labels[row])
    };
    ScenePhase {
        accuracy: Some(outcome.accuracy),
        accuracy_by_phase: outcome.accuracy_by_phase.iter().copied().map(Some).collect(),
        sites: sites.collect(),
        samples: evenly(known.len(), SAMPLES).map(sample).collect(),
    }
}

/// How phases after the base phase are trained: its own recipe, shortened where that was asked for.
fn phase_recipe(arguments: &RunArguments) -> Result<Recipe, Failure> {
    let recipe = arguments.pipeline.training.recipe()?;
    let Some(epochs) = arguments.baselines.phase_epochs else { return Ok(recipe) };
    let recipe = recipe.in_epochs(epochs);
    recipe.check()?;
    Ok(recipe)
}
