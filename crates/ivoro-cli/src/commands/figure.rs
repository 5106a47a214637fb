//! `ivoro figure`: scenes in the plane and t-SNE of one model.

use std::ops::Range;
use std::path::Path;

use ivoro::head::Views;
use ivoro::{Head, Matrix, Model, ModelOptions, Samples, Variant};
use ivoro_eval::picture::{Embedding, Sample, Scene, ScenePhase, Site, VERSION};
use ivoro_eval::{Protocol, Stream};
use serde::Serialize;

use crate::args::figures::PERPLEXITY;
use crate::args::images::class_order;
use crate::args::{FigureArguments, FigureCommand, SceneArguments, TsneArguments};
use crate::failure::Failure;
use crate::{output, progress};

/// Accuracy of the Barnes–Hut approximation: the usual value.
const THETA: f32 = 0.5;

/// The usual perplexity, or what so many samples allow: t-SNE wants three times as many samples as
/// neighbours. `None` where they are too few.
pub(super) fn perplexity(samples: usize) -> Option<f32> {
    let most = PERPLEXITY.min((samples as f32 - 2.0) / 3.0);
    if most >= 1.0 {
        return Some(most);
    }
    eprintln!("note: no t-SNE of {samples} test samples");
    None
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

/// What pictures of a variant are computed from.
pub(super) struct Picture<'a> {
    pub(super) stream: &'a Stream,
    pub(super) data_set: String,
    pub(super) options: &'a ModelOptions,
}

impl Picture<'_> {
    /// Cells and samples in the plane, phase after phase.
    pub(super) fn scene(&self, variant: Variant, most: usize) -> Result<Scene, Failure> {
        if variant.is_metric() || variant.divide || variant.layered {
            let text = format!("{variant}: cells are drawn for variants without W, Q, D and L");
            return Err(Failure::Usage(text));
        }
        let stream = self.stream;
        let mut model = Model::new(variant, self.options.clone());
        let all: Vec<Range<usize>> = stream.protocol().phases().collect();
        let mut phases = Vec::new();
        for (at, phase) in all.iter().enumerate() {
            model.learn(&stream.train()[at])?;
            let test = stream.test().of_classes(|label| (label as usize) < phase.end);
            let found = model.head().predict(&test)?;
            let share = |wanted: &Range<usize>| {
                let judged = test.labels().iter().zip(&found);
                let of = judged.filter(|(label, _)| wanted.contains(&(**label as usize)));
                let (all, right) = of.fold((0usize, 0usize), |(all, right), (label, found)| {
                    (all + 1, right + usize::from(label == found))
                });
                (all > 0).then(|| 100.0 * right as f64 / all as f64)
            };
            phases.push(ScenePhase {
                accuracy: share(&(0..phase.end)),
                accuracy_by_phase: all[..=at].iter().map(share).collect(),
                sites: sites(model.head())?,
                samples: samples(model.head(), &test, most)?,
            });
        }
        let (method, classes) = (variant.to_string(), stream.classes().to_vec());
        Ok(Scene { version: VERSION, data_set: self.data_set.clone(), method, classes, phases })
    }

    /// Features brought to the plane by t-SNE.
    pub(super) fn embedding(
        &self,
        variant: Variant,
        most: usize,
        perplexity: f32,
        epochs: usize,
    ) -> Result<Embedding, Failure> {
        let (points, labels) = self.features(variant, most)?;
        if !(perplexity >= 1.0 && 3.0 * perplexity < points.rows() as f32) {
            let text = format!(
                "perplexity {perplexity}: must be at least 1 and below a third of the {} samples",
                points.rows()
            );
            return Err(Failure::Usage(text));
        }
        let spinner = progress::spinner(&format!("t-SNE of {variant}"));
        let placed = embed(&points, perplexity, epochs);
        spinner.finish_and_clear();
        let place = |(at, label): (&[f32], u32)| (at[0], at[1], label);
        Ok(Embedding {
            version: VERSION,
            data_set: self.data_set.clone(),
            method: variant.to_string(),
            phase: None,
            perplexity: f64::from(perplexity),
            classes: self.stream.classes().to_vec(),
            phases: self.stream.protocol().sizes().to_vec(),
            points: placed.chunks_exact(2).zip(labels).map(place).collect(),
        })
    }

    /// Test samples as the variant sees them after the first phase settled its settings. Under AC
    /// and AI every rotation is a sample of its own.
    fn features(&self, variant: Variant, most: usize) -> Result<(Matrix, Vec<u32>), Failure> {
        let stream = self.stream;
        let mut model = Model::new(variant, self.options.clone());
        if let Some(base) = stream.train().first() {
            model.learn(base)?;
        }
        let views = if variant.views == Views::Single { 1 } else { 4 };
        let rows: Vec<usize> = evenly(stream.test().len(), most.div_ceil(views)).collect();
        let test = stream.test().select(&rows);
        let mut all = Matrix::default();
        let mut labels = Vec::new();
        for block in model.head().block_points(&test)? {
            // a further layer has another dimension, and its own space
            if all.rows() > 0 && block.cols() != all.cols() {
                continue;
            }
            if all.rows() == 0 {
                all = block;
            } else {
                all.append(&block)?;
            }
            labels.extend_from_slice(test.labels());
        }
        Ok((all, labels))
    }
}

/// The sites of all views; the report draws the sisters of a class in one colour.
fn sites(head: &Head) -> Result<Vec<Site>, Failure> {
    let mut sites = Vec::new();
    for (sister, diagram) in head.block_diagrams()?.iter().enumerate() {
        if diagram.centres().cols() != 2 {
            let (what, found) =
                ("dimension of features that are drawn".to_owned(), diagram.centres().cols());
            return Err(ivoro::Error::Size { what, expected: 2, found }.into());
        }
        for (class, (centre, &weight)) in
            diagram.centres().iter_rows().zip(diagram.weights()).enumerate()
        {
            let at = [centre[0], centre[1]];
            sites.push(Site { at, weight, class: class as u32, sister: sister as u32 });
        }
    }
    Ok(sites)
}

/// Upright samples as the head sees them, at most so many.
fn samples(head: &Head, test: &Samples, most: usize) -> Result<Vec<Sample>, Failure> {
    let points = head.block_points(test)?;
    let upright = points.first().cloned().unwrap_or_default();
    let rows = evenly(test.len(), most);
    let sample = |row: usize| (upright.row(row)[0], upright.row(row)[1], test.labels()[row]);
    Ok(rows.map(sample).collect())
}

/// At most `most` of `count` places, evenly spread.
pub(super) fn evenly(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |at| at * count / taken.max(1))
}

/// Features brought to the plane.
fn tsne(arguments: &TsneArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let (stream, data_set) = stream(common)?;
    let picture = Picture { stream: &stream, data_set, options: &common.split.settings.options() };
    let TsneArguments { samples, perplexity, epochs, .. } = *arguments;
    write(&common.out, "tsne", &picture.embedding(common.variant, samples, perplexity, epochs)?)
}

/// Points brought to the plane by t-SNE.
pub(super) fn embed(points: &Matrix, perplexity: f32, epochs: usize) -> Vec<f32> {
    let rows: Vec<&[f32]> = points.iter_rows().collect();
    let mut tsne: bhtsne::tSNE<f32, &[f32]> = bhtsne::tSNE::new(&rows);
    tsne.perplexity(perplexity).epochs(epochs).initial_embedding(start(points));
    tsne.barnes_hut(THETA, |a, b| {
        a.iter().zip(b.iter()).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt()
    });
    tsne.embedding()
}

/// The two dimensions that vary most, made small: the same start in every run.
fn start(points: &Matrix) -> Vec<f32> {
    let rows = points.rows().max(1) as f64;
    let mut spread: Vec<(f64, f64, usize)> = (0..points.cols())
        .map(|col| {
            let values = || points.iter_rows().map(|row| f64::from(row[col]));
            let mean = values().sum::<f64>() / rows;
            (values().map(|value| (value - mean).powi(2)).sum::<f64>() / rows, mean, col)
        })
        .collect();
    spread.sort_by(|a, b| b.0.total_cmp(&a.0));
    let axes = [spread[0], spread[spread.len().min(2) - 1]];
    let place = |row: &[f32]| {
        axes.map(|(variance, mean, col)| {
            (1e-4 * (f64::from(row[col]) - mean) / variance.sqrt().max(1e-12)) as f32
        })
    };
    points.iter_rows().flat_map(place).collect()
}
