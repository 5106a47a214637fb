//! `ivoro figure`: scenes in the plane and t-SNE of one model.

use std::path::Path;

use ivoro_eval::picture::{Picture, allowed_perplexity};
use ivoro_eval::{Protocol, Stream};
use serde::Serialize;

use crate::args::figures::PERPLEXITY;
use crate::args::images::class_order;
use crate::args::{FigureArguments, FigureCommand, SceneArguments, TsneArguments};
use crate::failure::Failure;
use crate::{output, progress};

/// The usual perplexity, or what so many samples allow; says so where they are too few.
pub(super) fn perplexity(samples: usize) -> Option<f32> {
    let allowed = allowed_perplexity(PERPLEXITY, samples);
    if allowed.is_none() {
        eprintln!("note: no t-SNE of {samples} test samples");
    }
    allowed
}

/// Computes what a picture is drawn from, once; the report draws it.
pub(crate) fn figure(command: &FigureCommand) -> Result<(), Failure> {
    match command {
        FigureCommand::Scene(arguments) => scene(arguments),
        FigureCommand::Tsne(arguments) => tsne(arguments),
    }
}

/// Phases of a features file, and the name of the data set.
fn stream(arguments: &FigureArguments) -> Result<(Stream, String), Failure> {
    let file = ivoro_io::features::read(&arguments.features, &arguments.split.options())?;
    let (split, _) = arguments.split.divide(file)?;
    let protocol = match &arguments.protocol {
        Some(text) => text.parse()?,
        None => Protocol::default_for(split.train.classes().len())?,
    };
    let order = class_order(&arguments.order, split.train.classes())?;
    let name = arguments.features.file_name().map(|name| name.to_string_lossy().into_owned());
    let data_set = arguments.data_set.clone().or(name).unwrap_or_default();
    Ok((Stream::new(&split, protocol, &order)?, data_set))
}

/// Writes what a picture is drawn from.
pub(super) fn write(path: &Path, kind: &str, content: &impl Serialize) -> Result<(), Failure> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    if !name.is_some_and(|name| name.ends_with(&format!(".{kind}.json"))) {
        let text = format!(
            "{}: the report knows the file by a name that ends in .{kind}.json",
            path.display()
        );
        return Err(Failure::Usage(text));
    }
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    Ok(output::write_whole(path, &(serde_json::to_string(content)? + "\n"))?)
}

/// A diagram in the plane, phase after phase.
fn scene(arguments: &SceneArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let (stream, data_set) = stream(common)?;
    let picture = Picture { stream: &stream, data_set, options: &common.split.settings.options() };
    write(&common.out, "scene", &picture.scene(common.variant, arguments.samples)?)
}

/// Features brought to the plane.
fn tsne(arguments: &TsneArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let (stream, data_set) = stream(common)?;
    let picture = Picture { stream: &stream, data_set, options: &common.split.settings.options() };
    let TsneArguments { samples, perplexity, epochs, .. } = *arguments;
    let spinner = progress::spinner(&format!("t-SNE of {}", common.variant));
    let placed = picture.embedding(common.variant, samples, perplexity, epochs)?;
    spinner.finish_and_clear();
    write(&common.out, "tsne", &placed)
}
