//! What a network sees in the images that a verb was given.

use std::path::Path;

use anstream::eprintln;
use ivoro::{Model, Samples};
use ivoro_vision::FrozenNetwork;
use ivoro_vision::dataset::{Dataset, OpenOptions};
use ivoro_vision::recogniser::Seen;

use crate::args::images::FitArguments;
use crate::failure::Failure;
use crate::progress;
use crate::table::visible;

/// Labelled samples of a folder of images by class, or of the train part of a data set; of the
/// classes named, if any are. The model takes note of how they were looked at.
pub(super) fn samples(
    network: &FrozenNetwork,
    model: &mut Model,
    fitting: &FitArguments,
    path: &Path,
    classes: Option<&Vec<String>>,
) -> Result<Samples, Failure> {
    let broken = fitting.broken();
    let options = OpenOptions { test_share: 0.0, broken, ..OpenOptions::default() };
    let dataset = Dataset::open(path, &options)?;
    let rows = wanted_rows(&dataset, path, classes)?;
    match network.fit_of(&dataset.train, &rows)? {
        Some(fit) => model.use_described_network(&network.describe(fit))?,
        None => model.use_network(network.fingerprint())?,
    }
    let bar = progress::bar(rows.len());
    bar.set_message("images");
    let mut done = |count: usize| bar.set_position(count as u64);
    let seen = network.samples(model.head().variant(), &dataset, &rows, broken, &mut done)?;
    bar.finish_and_clear();
    say_left_out(&seen);
    let none = || Failure::Usage(format!("{}: there is no image to learn from", path.display()));
    seen.of.ok_or_else(none)
}

/// Names the images that could not be read.
pub(super) fn say_left_out<T>(seen: &Seen<T>) {
    seen.broken
        .iter()
        .for_each(|(_, reason)| eprintln!("left out: {}", visible(&reason.to_string())));
}

fn wanted_rows(
    dataset: &Dataset,
    path: &Path,
    classes: Option<&Vec<String>>,
) -> Result<Vec<usize>, Failure> {
    let all = 0..dataset.train.len();
    let Some(wanted) = classes else { return Ok(all.collect()) };
    for name in wanted {
        if !dataset.classes.contains(name) {
            let class = format!("{name} of {}", path.display());
            return Err(ivoro::Error::EmptyClass { class, split: "training" }.into());
        }
    }
    let class = |row: usize| &dataset.classes[dataset.train.labels()[row] as usize];
    Ok(all.filter(|&row| wanted.contains(class(row))).collect())
}
