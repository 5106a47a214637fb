//! Teaching and asking with images: what a network sees in them, as features.

use std::path::{Path, PathBuf};

use anstream::eprintln;
use ivoro::{Matrix, Points, Samples, Variant, View};
use ivoro_vision::dataset::{Dataset, Fit, ImageInput, Images, OpenOptions, decode_all};
use ivoro_vision::extract::features;

use super::extract::{Loaded, load};
use crate::failure::Failure;
use crate::image_args::LookArguments;
use crate::progress;

/// A network that looks at images the way a variant needs it.
pub(super) struct Looker<'a> {
    arguments: &'a LookArguments,
    loaded: Loaded,
    views: Vec<View>,
    layers: Vec<usize>,
    names: Vec<String>,
}

impl<'a> Looker<'a> {
    /// Opens the network and finds out which views and layers are needed.
    pub(super) fn open(arguments: &'a LookArguments, variant: Variant) -> Result<Self, Failure> {
        let loaded = load(&arguments.network, arguments.fitting.size)?;
        let mut views =
            if variant.rotates() { View::ROTATIONS.to_vec() } else { vec![View::UPRIGHT] };
        if variant.flip {
            let mirrored: Vec<View> = views.iter().map(|view| view.mirror()).collect();
            views.extend(mirrored);
        }
        let wanted = if variant.third || variant.layered { 2 } else { 1 };
        let layers: Vec<usize> = (0..loaded.backbone.layers().len().min(wanted)).collect();
        let all = loaded.backbone.layers();
        let names = layers.iter().map(|&layer| all[layer].0.clone()).collect();
        Ok(Self { arguments, loaded, views, layers, names })
    }

    /// Hash of the network's file.
    pub(super) fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    fn look(&self, images: &Images) -> Result<Vec<Matrix>, Failure> {
        Ok(features(&*self.loaded.backbone, images, &self.views, &self.layers)?)
    }

    fn points(&self, origin: &str, blocks: Vec<Matrix>) -> Result<Points, Failure> {
        Ok(Points::new(origin, self.names.clone(), self.views.clone(), blocks)?)
    }

    /// Labelled features of a folder of images by class, or of the train part of a data set; of
    /// the classes named, if any are.
    pub(super) fn samples(
        &self,
        path: &Path,
        classes: Option<&Vec<String>>,
    ) -> Result<Samples, Failure> {
        let broken = self.arguments.fitting.broken();
        let options = OpenOptions { test_share: 0.0, broken, ..OpenOptions::default() };
        let dataset = Dataset::open(path, &options)?;
        let rows = wanted_rows(&dataset, path, classes)?;
        let own = match dataset.train.shape() {
            Some(shape) => shape,
            None => dataset.train.measure(rows[0])?,
        };
        let fit = self.arguments.fitting.fit(own, Some(self.loaded.fit));
        let bar = progress::bar(rows.len());
        bar.set_message("images");
        let mut blocks: Vec<Matrix> = Vec::new();
        let mut labels = Vec::new();
        for rows in rows.chunks(self.arguments.network.batch()) {
            let images = dataset.train.read(rows, fit, broken)?;
            images.broken.iter().for_each(|(_, reason)| eprintln!("left out: {reason}"));
            labels.extend(images.rows.iter().map(|&row| dataset.train.labels()[row]));
            append(&mut blocks, self.look(&images)?)?;
            bar.inc(rows.len() as u64);
        }
        bar.finish_and_clear();
        let points = self.points(&path.display().to_string(), blocks)?;
        Ok(Samples::new(points, labels, dataset.classes.into())?)
    }

    /// Features of images in files, with the paths of those that could be read.
    pub(super) fn queries(
        &self,
        paths: &[PathBuf],
    ) -> Result<Option<(Vec<PathBuf>, Points)>, Failure> {
        let fit = self.query_fit(paths)?;
        let inputs: Vec<ImageInput<'_>> = paths.iter().map(|path| ImageInput::Path(path)).collect();
        let images = decode_all(&inputs, fit, self.arguments.fitting.broken())?;
        images.broken.iter().for_each(|(_, reason)| eprintln!("left out: {reason}"));
        let read: Vec<PathBuf> = images.rows.iter().map(|&at| paths[at].clone()).collect();
        if read.is_empty() {
            return Ok(None);
        }
        let blocks = self.look(&images)?;
        Ok(Some((read, self.points("images", blocks)?)))
    }

    fn query_fit(&self, paths: &[PathBuf]) -> Result<Fit, Failure> {
        let network = self.loaded.fit;
        if self.arguments.fitting.size.is_none() && network.shape.height == 0 {
            let text = format!(
                "{}: the network does not say which size of images it takes; name it with --size",
                paths.first().map_or(String::new(), |path| path.display().to_string())
            );
            return Err(Failure::Usage(text));
        }
        Ok(self.arguments.fitting.fit(network.shape, Some(network)))
    }
}

fn append(blocks: &mut Vec<Matrix>, more: Vec<Matrix>) -> Result<(), Failure> {
    if blocks.is_empty() {
        *blocks = more;
        return Ok(());
    }
    for (block, more) in blocks.iter_mut().zip(&more) {
        block.append(more)?;
    }
    Ok(())
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
