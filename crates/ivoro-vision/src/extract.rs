//! Features of a data set, streamed to a file.

use std::collections::BTreeMap;
use std::path::Path;

use ivoro::{Matrix, View};
use ivoro_io::features::{FeatureWriter, Outline};

use crate::dataset::{Broken, Dataset, Images};
use crate::engine::Backbone;
use crate::error::{Error, Result};
use crate::shape::{Fit, Shape};
use crate::view::turned;

/// Metadata key under which a features file describes its network, as JSON of a
/// [`NetworkDescription`](ivoro::NetworkDescription).
pub const NETWORK: &str = "network";

/// Which features are taken, and how they are stored.
#[derive(Clone, Debug)]
pub struct Extraction {
    /// Views of each image.
    pub views: Vec<View>,
    /// Layers by name, the last one first; empty for all that the network has.
    pub layers: Vec<String>,
    /// Whether numbers are stored in half precision.
    pub half_precision: bool,
    /// Images computed at once.
    pub batch: usize,
    /// The shape all images are brought to.
    pub fit: Fit,
    /// What to do about an image that can't be read.
    pub broken: Broken,
    /// What is known of network and data set, for the file's metadata.
    pub metadata: BTreeMap<String, String>,
}

/// What an extraction did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    /// Images whose features were computed now.
    pub computed: usize,
    /// Images that a stopped extraction had already done.
    pub resumed: usize,
    /// Images that could not be read and were left out, with the reason.
    pub broken: Vec<String>,
}

/// Indices of the layers called so, in the order given; all of them for an empty list.
pub fn layer_indices(backbone: &dyn Backbone, names: &[String]) -> Result<Vec<usize>> {
    let layers = backbone.layers();
    if names.is_empty() {
        return Ok((0..layers.len()).collect());
    }
    let index = |name: &String| {
        layers.iter().position(|(layer, _)| layer == name).ok_or_else(|| Error::NoLayer {
            name: name.clone(),
            found: layers.iter().map(|(layer, _)| layer.as_str()).collect::<Vec<_>>().join(", "),
        })
    };
    names.iter().map(index).collect()
}

/// Features of images at each view: `blocks[l · views + v]`.
pub fn features(
    backbone: &dyn Backbone,
    images: &Images,
    views: &[View],
    layers: &[usize],
) -> Result<Vec<Matrix>> {
    let mut by_view = Vec::with_capacity(views.len());
    for &view in views {
        let pixels = turned(&images.pixels, images.shape, view)?;
        by_view.push(backbone.features(&pixels, images.shape, layers)?.into_iter());
    }
    let mut blocks = Vec::with_capacity(layers.len() * views.len());
    for _ in layers {
        blocks.extend(by_view.iter_mut().filter_map(Iterator::next));
    }
    Ok(blocks)
}

/// Writes the features of both parts of a data set to `path`. `each_batch` is told how many images
/// are done and how many there are; when it says `false`, the work stops, and the next call with
/// the same settings goes on from there: then the result is `None`.
pub fn extract(
    dataset: &Dataset,
    backbone: &dyn Backbone,
    settings: &Extraction,
    path: &Path,
    mut each_batch: impl FnMut(usize, usize) -> bool,
) -> Result<Option<Extracted>> {
    check_shape(backbone, settings.fit.shape)?;
    let layers = layer_indices(backbone, &settings.layers)?;
    let mut broken = Vec::new();
    let parts = [("train", &dataset.train), ("test", &dataset.test)];
    let mut readable = Vec::new();
    for (name, split) in parts.into_iter().filter(|(_, split)| !split.is_empty()) {
        let all = (0..split.len()).collect();
        let rows = split.readable(all, settings.fit, settings.broken, &mut broken)?;
        readable.push((name, split, rows));
    }
    let names = backbone.layers();
    let mut metadata = settings.metadata.clone();
    metadata.insert("fit".to_owned(), settings.fit.to_string());
    let outline = Outline {
        parts: readable
            .iter()
            .map(|(name, split, rows)| {
                let labels = rows.iter().map(|&row| split.labels()[row]).collect();
                ((*name).to_owned(), labels)
            })
            .collect(),
        layers: layers.iter().map(|&layer| names[layer].clone()).collect(),
        views: settings.views.clone(),
        classes: dataset.classes.clone(),
        half_precision: settings.half_precision,
        metadata,
    };
    let mut writer = FeatureWriter::open(path, outline)?;
    let resumed = writer.done();
    let mut skip = resumed;
    for (_, split, rows) in &readable {
        let begin = skip.min(rows.len());
        skip -= begin;
        for rows in rows[begin..].chunks(settings.batch.max(1)) {
            if !each_batch(writer.done(), writer.rows()) {
                return Ok(None);
            }
            let images = split.read(rows, settings.fit, Broken::Fail)?;
            writer.append(&features(backbone, &images, &settings.views, &layers)?)?;
        }
    }
    let computed = writer.done() - resumed;
    writer.finish()?;
    Ok(Some(Extracted { computed, resumed, broken }))
}

fn check_shape(backbone: &dyn Backbone, found: Shape) -> Result<()> {
    match backbone.shape() {
        Some(expected) if expected != found => Err(Error::NetworkShape { expected, found }),
        _ => Ok(()),
    }
}
