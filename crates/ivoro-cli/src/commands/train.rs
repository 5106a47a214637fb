//! `ivoro train`: trains a network on the base classes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anstream::eprintln;
use fs_err::OpenOptions;
use ivoro_vision::dataset::Dataset;
use ivoro_vision::engine::Device;
use ivoro_vision::network::{Precision, Weights};
use ivoro_vision::train::{Epoch, Plan, Training};

use crate::args::images::TrainArguments;
use crate::failure::Failure;
use crate::{output, progress};

/// Trains a network on the base classes of a data set.
pub(crate) fn train(arguments: &TrainArguments) -> Result<(), Failure> {
    let dataset = arguments.images.open(&arguments.dataset)?;
    let plan = Plan {
        architecture: arguments.training.network.architecture(arguments.training.embedding),
        recipe: arguments.training.recipe()?,
        base: arguments.base.base(&dataset)?,
        fit: arguments.images.fit(&dataset.train, None)?,
        broken: arguments.images.broken(),
        device: arguments.device.clone(),
        identity: dataset.identity()?,
    };
    eprintln!("{}: {}", dataset.name, dataset.layout);
    progress::catch_interrupts();
    let weights = train_to(&dataset, plan, &arguments.out, arguments.precision.into())?;
    let mut text = format!("{}\n", arguments.out.display());
    for key in ["test_accuracy", "test_accuracy_of_four_rotations"] {
        if let Some(value) = weights.metadata.get(key) {
            let _ = writeln!(text, "{} of the base classes: {value} %", key.replace('_', " "));
        }
    }
    Ok(output::print(&text)?)
}

/// Trains as planned and writes the weights, going on from a checkpoint if there is one. The
/// checkpoint is taken away at the end; the log stays.
pub(crate) fn train_to(
    dataset: &Dataset,
    plan: Plan,
    out: &Path,
    precision: Precision,
) -> Result<Weights, Failure> {
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs_err::create_dir_all(folder)?;
    }
    let _lock = super::hold(out, out)?;
    let (checkpoint, log) = (beside(out, "checkpoint"), beside(out, "log.jsonl"));
    let (epochs, device) = (plan.recipe.epochs, plan.device.clone());
    let engine = crate::engine::engine(&device)?;
    let mut training = Training::begin(dataset, plan, &*engine, &checkpoint)?;
    training.left_out().iter().for_each(|sentence| eprintln!("left out: {sentence}"));
    announce(&training, &device, epochs);
    let bar = progress::bar(epochs * 1000);
    bar.set_position(training.epochs().len() as u64 * 1000);
    bar.reset_eta();
    let mut log = OpenOptions::new().create(true).append(true).open(log)?;
    loop {
        let done = training.epochs().len();
        let result = training.next_epoch(|step, steps| {
            bar.set_position((done * 1000 + step * 1000 / steps) as u64);
            !progress::interrupted()
        });
        let epoch = result.inspect_err(|_| bar.finish_and_clear())?;
        let Some(epoch) = epoch else { break };
        writeln!(log, "{}", serde_json::to_string(&epoch)?)?;
        bar.set_message(sentence(&epoch));
        if bar.is_hidden() {
            eprintln!("{}", sentence(&epoch));
        }
    }
    bar.finish_and_clear();
    training.settle()?;
    if training.epochs().len() < epochs {
        return Err(Failure::Interrupted);
    }
    finish(&mut training, out, precision, &checkpoint)
}

fn finish(
    training: &mut Training<'_>,
    out: &Path,
    precision: Precision,
    checkpoint: &Path,
) -> Result<Weights, Failure> {
    let spinner = progress::spinner("measuring accuracy on the base classes' test images");
    let (single, ensemble) = training.test()?;
    let mut weights = training.weights()?;
    let mut note = |key: &str, value: f64| {
        weights.metadata.insert(key.to_owned(), format!("{value:.2}"));
    };
    note("test_accuracy", single);
    if let Some(ensemble) = ensemble {
        note("test_accuracy_of_four_rotations", ensemble);
    }
    weights.write(out, precision)?;
    spinner.finish_and_clear();
    fs_err::remove_file(checkpoint)?;
    Ok(weights)
}

fn announce(training: &Training<'_>, device: &Device, epochs: usize) {
    let (done, images) = (training.epochs().len(), training.images());
    eprintln!("training on {images} images for {epochs} epochs, on {device}");
    if done > 0 {
        eprintln!("going on after epoch {done}");
    }
}

fn sentence(epoch: &Epoch) -> String {
    let held_out = match epoch.held_out_accuracy {
        Some(accuracy) => format!(", held out {accuracy:.1} %"),
        None => String::new(),
    };
    format!(
        "epoch {}/{}: loss {:.3}, training {:.1} %{held_out}, {:.0} images/s",
        epoch.epoch, epoch.epochs, epoch.loss, epoch.train_accuracy, epoch.views_per_second
    )
}

/// `NAME.more`, beside the file.
pub(crate) fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{more}"));
    path.with_file_name(name)
}
