//! Methods that train the network on in every phase.

use std::path::Path;

use anstream::eprintln;
use ivoro::comparison::{self, Provenance};
use ivoro::picture::{Embedding, Sample, Scene, ScenePhase, Site, VERSION};
use ivoro::record::{Kind, MethodRecord, RunRecord, Summary};
use ivoro::{ClassOrder, Protocol};
use ivoro_vision::baselines::{Baseline, School, TaughtPhase};
use ivoro_vision::train::{Recipe, Schedule};
use serde_json::json;

use super::figure::{embed, evenly};
use super::ledger::Ledger;
use super::source::Trained;
use crate::args::RunArguments;
use crate::failure::Failure;
use crate::{output, progress};

/// Most samples in a picture of a phase.
const MOST_SAMPLES: usize = 3_000;
/// Perplexity and steps of t-SNE.
const PERPLEXITY: f32 = 30.0;
const STEPS: usize = 1_000;

/// The baselines that the arguments name, each once.
pub(super) fn named(arguments: &RunArguments) -> Result<Vec<Baseline>, Failure> {
    let mut found = Vec::new();
    for name in &arguments.baselines.baselines {
        let these = match name.as_str() {
            "all" => Baseline::ALL.to_vec(),
            "none" | "" => Vec::new(),
            name => vec![name.parse()?],
        };
        found.extend(
            these.into_iter().filter(|baseline| !found.contains(baseline)).collect::<Vec<_>>(),
        );
    }
    Ok(found)
}

/// One comparison's baselines: images, network and what they are trained by.
pub(super) struct Baselines<'a> {
    arguments: &'a RunArguments,
    trained: Trained<'a>,
    protocol: &'a Protocol,
    order: &'a ClassOrder,
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
        Ok(Self { arguments, trained, protocol, order, recipe })
    }

    /// The record where there is no other method.
    pub(super) fn outline(&self) -> Result<RunRecord, Failure> {
        let Trained { dataset, identity, fingerprint, .. } = &self.trained;
        let order = self.order.permutation(dataset.classes.len())?;
        let classes = order.iter().map(|&class| dataset.classes[class].clone()).collect();
        let provenance =
            Provenance { features: dataset.name.clone(), split: "the data set's own".to_owned() };
        let options = json!({
            "data": identity,
            "network": fingerprint,
            "phases": self.recipe,
        });
        Ok(comparison::outline(self.protocol, self.order, classes, &provenance, options))
    }

    /// Trains what is not finished; two ways to answer that share a training share it.
    pub(super) fn train(&self, wanted: &[Baseline], ledger: &mut Ledger) -> Result<(), Failure> {
        let missing: Vec<Baseline> =
            wanted.iter().copied().filter(|one| !ledger.take_up(&one.to_string())).collect();
        let mut done = Vec::new();
        for &baseline in &missing {
            if done.contains(&baseline.training()) {
                continue;
            }
            done.push(baseline.training());
            let same = |other: &&Baseline| other.training() == baseline.training();
            let readings: Vec<Baseline> = missing.iter().filter(same).copied().collect();
            self.train_one(&readings, ledger)?;
        }
        Ok(())
    }

    fn train_one(&self, readings: &[Baseline], ledger: &mut Ledger) -> Result<(), Failure> {
        let Trained { dataset, weights, fit, .. } = &self.trained;
        let order = self.order.permutation(dataset.classes.len())?;
        let phases: Vec<_> = self.protocol.phases().collect();
        let pipeline = &self.arguments.pipeline;
        let school = School::new(
            dataset,
            &order,
            phases.clone(),
            weights,
            self.recipe.clone(),
            *fit,
            pipeline.images.broken(),
            pipeline.device.clone(),
        )?;
        let later = phases.len().saturating_sub(1).max(1);
        let bar = progress::bar(later * self.recipe.epochs);
        let name = readings[0].training().to_string();
        let taught = school.teach(readings, &mut |at| {
            bar.set_message(format!(
                "{name}, phase {} of {}, epoch {} of {}",
                at.phase,
                phases.len(),
                at.epoch.0 + 1,
                at.epoch.1
            ));
            if at.step.0 + 1 == at.step.1 {
                bar.inc(1);
            }
            !progress::interrupted()
        });
        bar.finish_and_clear();
        let taught = taught?.ok_or(Failure::Interrupted)?;
        for (at, &reading) in readings.iter().enumerate() {
            ledger.push(self.record(reading, &taught, at))?;
            if let Some(folder) =
                self.arguments.out.as_ref().filter(|_| self.arguments.baselines.pictures)
            {
                self.pictures(folder, reading, &taught, &school, at)?;
            }
        }
        Ok(())
    }

    fn record(&self, reading: Baseline, taught: &[TaughtPhase], at: usize) -> MethodRecord {
        let phases: Vec<_> = taught.iter().map(|phase| phase.outcomes[at].clone()).collect();
        MethodRecord {
            name: reading.to_string(),
            kind: Kind::Baseline,
            exemplar_free: reading.is_exemplar_free(),
            exemplars: reading.exemplars(),
            settings: json!({
                "recipe": self.recipe,
                "device": self.arguments.pipeline.device.to_string(),
            }),
            summary: Summary::of(&phases),
            phases,
            ..MethodRecord::default()
        }
    }

    fn pictures(
        &self,
        folder: &Path,
        reading: Baseline,
        taught: &[TaughtPhase],
        school: &School<'_>,
        at: usize,
    ) -> Result<(), Failure> {
        let dataset = self.trained.dataset;
        let order = self.order.permutation(dataset.classes.len())?;
        let classes: Vec<String> =
            order.iter().map(|&class| dataset.classes[class].clone()).collect();
        let data_set = self.arguments.data_set.clone().unwrap_or_else(|| dataset.name.clone());
        let labels = school.test_labels();
        let stem = reading.to_string().to_lowercase();
        if taught.iter().all(|phase| phase.points.cols() == 2) {
            if taught.iter().any(|phase| phase.sites.is_none()) {
                eprintln!("note: no picture of {reading}: its regions are not those of a diagram");
                return Ok(());
            }
            let phases = taught.iter().map(|phase| scene_phase(phase, &labels, at)).collect();
            let method = reading.to_string();
            let scene = Scene { version: VERSION, data_set, method, classes, phases };
            let text = serde_json::to_string(&scene)? + "\n";
            return Ok(output::write_whole(&folder.join(format!("{stem}.scene.json")), &text)?);
        }
        for (index, phase) in taught.iter().enumerate() {
            let spinner = progress::spinner(&format!("t-SNE of phase {}", index + 1));
            let rows: Vec<usize> = evenly(labels.len(), MOST_SAMPLES).collect();
            // t-SNE wants three times as many samples as neighbours
            let perplexity = PERPLEXITY.min((rows.len() as f32 - 2.0) / 3.0);
            if perplexity < 1.0 {
                eprintln!("note: no t-SNE of {} test images", rows.len());
                return Ok(());
            }
            let placed = embed(&phase.points.select(&rows), perplexity, STEPS);
            let place = |(at, &row): (&[f32], &usize)| (at[0], at[1], labels[row]);
            let embedding = Embedding {
                version: VERSION,
                data_set: data_set.clone(),
                method: reading.to_string(),
                phase: Some(index),
                perplexity: f64::from(perplexity),
                classes: classes.clone(),
                phases: self.protocol.sizes().to_vec(),
                points: placed.chunks_exact(2).zip(&rows).map(place).collect(),
            };
            spinner.finish_and_clear();
            let name = format!("{stem}-{}.tsne.json", index + 1);
            output::write_whole(&folder.join(name), &(serde_json::to_string(&embedding)? + "\n"))?;
        }
        Ok(())
    }
}

/// One phase in the plane: centres and samples of the classes known.
fn scene_phase(phase: &TaughtPhase, labels: &[u32], reading: usize) -> ScenePhase {
    let outcome = &phase.outcomes[reading];
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
        samples: evenly(known.len(), MOST_SAMPLES).map(sample).collect(),
    }
}

/// How phases after the base phase are trained: its own recipe, shortened where that was asked for.
fn phase_recipe(arguments: &RunArguments) -> Result<Recipe, Failure> {
    let mut recipe = arguments.pipeline.training.recipe()?;
    if let Some(epochs) = arguments.baselines.phase_epochs {
        if let Schedule::Steps(steps) = &mut recipe.schedule {
            steps.iter_mut().for_each(|step| *step = *step * epochs / recipe.epochs.max(1));
        }
        recipe.epochs = epochs;
        recipe.check()?;
    }
    Ok(recipe)
}
