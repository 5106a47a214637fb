//! From the arrays of a file to features: layers in order, views named, classes shared.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use super::array::Array;
use super::keys::{Part, Role, last_layer_first};
use super::labels::{Labels, MAX_CLASSES, Roster};
use super::{FeatureFile, Origin, ReadOptions, Set};
use ivoro::{Error, Matrix, Points, Result, Samples, View};

/// What `format` says in the metadata of a file of ours.
pub(super) const FORMAT: &str = "ivoro-features";
/// The newest `version` of such a file that is understood.
pub(super) const VERSION: u64 = 1;

/// The arrays about one part of a file.
#[derive(Debug, Default)]
struct PartArrays {
    layers: Vec<(String, Vec<Matrix>)>,
    labels: Option<Labels>,
}

impl PartArrays {
    fn is_empty(&self) -> bool {
        self.layers.is_empty() && self.labels.is_none()
    }

    /// Matrices of a layer taken out; `finish` has checked that there is such a layer.
    fn take(&mut self, layer: &str) -> Option<Vec<Matrix>> {
        let at = self.layers.iter().position(|(name, _)| name == layer)?;
        Some(self.layers.swap_remove(at).1)
    }
}

/// Collects what a loader finds.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    path: &'a Path,
    options: &'a ReadOptions,
    train: PartArrays,
    test: PartArrays,
    all: PartArrays,
    /// Names of all layers, read or not.
    seen: BTreeSet<String>,
    pub(super) metadata: BTreeMap<String, String>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(path: &'a Path, options: &'a ReadOptions) -> Self {
        let (train, test, all) = Default::default();
        let (seen, metadata) = Default::default();
        Self { path, options, train, test, all, seen, metadata }
    }

    /// An array whose name says `part` and `role`; layers nobody asked for are not converted.
    pub(super) fn add(&mut self, (part, role): (Part, Role), array: &Array<'_>) -> Result<()> {
        match role {
            Role::Labels => self.add_labels(part, array.labels()?),
            Role::Layer(layer) if self.wants(&layer) => {
                self.add_layer(part, layer, array.matrices()?)
            }
            Role::Layer(_) => Ok(()),
        }
    }

    /// Whether a layer of this name is to be read.
    pub(super) fn wants(&mut self, layer: &str) -> bool {
        self.seen.insert(layer.to_owned());
        self.options.layers.as_ref().is_none_or(|wanted| wanted.iter().any(|name| name == layer))
    }

    pub(super) fn add_layer(
        &mut self,
        part: Part,
        layer: String,
        views: Vec<Matrix>,
    ) -> Result<()> {
        let samples = self.samples(part);
        if samples.layers.iter().any(|(name, _)| *name == layer) {
            let what = format!("two arrays mean layer {layer} of the same part");
            return Err(Error::malformed(self.path, what));
        }
        samples.layers.push((layer, views));
        Ok(())
    }

    pub(super) fn add_labels(&mut self, part: Part, labels: Labels) -> Result<()> {
        if self.samples(part).labels.replace(labels).is_some() {
            return Err(Error::malformed(self.path, "two arrays mean the labels of the same part"));
        }
        Ok(())
    }

    fn samples(&mut self, part: Part) -> &mut PartArrays {
        match part {
            Part::Train => &mut self.train,
            Part::Test => &mut self.test,
            Part::All => &mut self.all,
        }
    }

    /// The file as a whole, once every array has been added.
    pub(super) fn finish(self) -> Result<FeatureFile> {
        check_version(self.path, &self.metadata)?;
        let divided = !self.train.is_empty() || !self.test.is_empty();
        if divided && !self.all.is_empty() {
            let name = self.all.layers.first().map_or("labels", |(name, _)| name.as_str());
            let what = format!("there are train or test arrays, but {name} is of neither part");
            return Err(Error::malformed(self.path, what));
        }
        let Some((base, part)) = [(&self.train, "train"), (&self.test, "test"), (&self.all, "")]
            .into_iter()
            .find(|(samples, _)| !samples.is_empty())
        else {
            return Err(Error::malformed(self.path, "there are no features in this file"));
        };
        let origin = Origin { path: self.path, part };
        let wanted = self.options.layers.iter().flatten();
        if let Some(missing) = wanted.into_iter().find(|layer| !self.seen.contains(*layer))
            && !self.seen.is_empty()
        {
            let mut found: Vec<String> = self.seen.iter().cloned().collect();
            found.sort_by(|left, right| last_layer_first(left, right));
            let found = found.join(", ");
            return Err(origin.malformed(&format!("there is no layer {missing}; there is {found}")));
        }
        let listed = listed_classes(self.path, &self.metadata)?;
        let frame = Frame::new(origin, base, &self.metadata, self.options, listed)?;
        let gap = frame.roster.as_ref().and_then(|roster| roster.gap.clone());
        if !self.train.is_empty() && self.train.labels.is_none() {
            return Err(Error::malformed(self.path, "the train part has no labels"));
        }
        let set = |samples, part| frame.set(Origin { path: self.path, part }, samples);
        Ok(FeatureFile {
            train: set(self.train, "train")?,
            test: set(self.test, "test")?,
            all: set(self.all, "")?,
            metadata: self.metadata,
            path: self.path.to_owned(),
            gap,
        })
    }
}

/// What the parts of a file share.
struct Frame {
    layers: Vec<String>,
    dims: Vec<usize>,
    views: Vec<View>,
    listed: Option<Vec<String>>,
    roster: Option<Roster>,
}

impl Frame {
    fn new(
        origin: Origin<'_>,
        base: &PartArrays,
        metadata: &BTreeMap<String, String>,
        options: &ReadOptions,
        listed: Option<Vec<String>>,
    ) -> Result<Self> {
        let layers = layer_order(origin, base, metadata, options)?;
        let of = |layer: &String| base.layers.iter().find(|(name, _)| name == layer);
        let shapes: Vec<_> = layers.iter().filter_map(of).map(|(_, views)| views).collect();
        let views = views(origin, shapes.first().map_or(0, |views| views.len()), metadata)?;
        let dims = shapes.iter().map(|views| views.first().map_or(0, Matrix::cols)).collect();
        let roster = match &base.labels {
            Some(labels) => Some(Roster::new(origin, labels, listed.as_deref())?),
            None => None,
        };
        Ok(Self { layers, dims, views, listed, roster })
    }

    fn set(&self, origin: Origin<'_>, mut samples: PartArrays) -> Result<Option<Set>> {
        if samples.is_empty() {
            return Ok(None);
        }
        let mut blocks = Vec::new();
        for (layer, &dim) in self.layers.iter().zip(&self.dims) {
            let views = samples.take(layer).ok_or_else(|| {
                origin.malformed(&format!("there is no layer {layer}, which another part has"))
            })?;
            self.check_layer(origin, layer, dim, &views)?;
            blocks.extend(views);
        }
        if let Some((layer, _)) = samples.layers.first() {
            let what = format!("layer {layer} is missing from another part or from the list");
            return Err(origin.malformed(&what));
        }
        let (layers, views) = (self.layers.clone(), self.views.clone());
        let points = Points::new(&origin.to_string(), layers, views, blocks)?;
        let (Some(labels), Some(roster)) = (&samples.labels, &self.roster) else {
            return Ok(Some(Set::Unlabelled(points)));
        };
        let labels = roster.translate(origin, labels, self.listed.as_deref())?;
        Ok(Some(Set::Labelled(Samples::new(points, labels, roster.classes.clone())?)))
    }

    fn check_layer(
        &self,
        origin: Origin<'_>,
        layer: &str,
        dim: usize,
        views: &[Matrix],
    ) -> Result<()> {
        if views.len() != self.views.len() {
            let what = format!("{origin}: views of layer {layer}");
            return Err(Error::Size { what, expected: self.views.len(), found: views.len() });
        }
        let found = views.first().map_or(0, Matrix::cols);
        if found != dim {
            let what = format!("{origin}: dimensions of layer {layer}");
            return Err(Error::Size { what, expected: dim, found });
        }
        Ok(())
    }
}

/// The layers from the last backwards: as asked for, else as listed, else by their names.
fn layer_order(
    origin: Origin<'_>,
    base: &PartArrays,
    metadata: &BTreeMap<String, String>,
    options: &ReadOptions,
) -> Result<Vec<String>> {
    let mut found: Vec<String> = base.layers.iter().map(|(name, _)| name.clone()).collect();
    found.sort_by(|left, right| last_layer_first(left, right));
    let listed = metadata.get("layers").map(|list| split_list(list));
    let wanted = options.layers.clone().or(listed).unwrap_or_else(|| found.clone());
    if let Some(missing) = wanted.iter().find(|layer| !found.contains(layer)) {
        let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
        return Err(origin.malformed(&format!("there is no layer {missing}; there is {found}")));
    }
    if let Some(twice) = first_repeated(&wanted) {
        return Err(origin.malformed(&format!("layer {twice} is listed twice")));
    }
    if wanted.is_empty() {
        return Err(origin.malformed("there are labels but no features"));
    }
    Ok(wanted)
}

/// The views an axis of `count` entries stands for.
fn views(
    origin: Origin<'_>,
    count: usize,
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<View>> {
    let Some(list) = metadata.get("views") else {
        return View::conventional(count).ok_or_else(|| {
            origin.malformed(&format!(
                "{count} views without a list of them; 1, 2, 4 and 8 are understood without one"
            ))
        });
    };
    let parse = |text: &String| {
        let what = || format!("view {text}: expected 0, 90, 180 or 270, with an m if mirrored");
        View::parse(text).ok_or_else(|| origin.malformed(&what()))
    };
    let names = split_list(list);
    let views = names.iter().map(parse).collect::<Result<Vec<_>>>()?;
    if let Some(twice) = first_repeated(&names) {
        return Err(origin.malformed(&format!("view {twice} is listed twice")));
    }
    if views.len() != count {
        let what = format!("{origin}: views (the file lists {list})");
        return Err(Error::Size { what, expected: views.len(), found: count });
    }
    Ok(views)
}

fn split_list(list: &str) -> Vec<String> {
    list.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

fn first_repeated(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

fn listed_classes(path: &Path, metadata: &BTreeMap<String, String>) -> Result<Option<Vec<String>>> {
    let Some(text) = metadata.get("classes") else { return Ok(None) };
    let names: Vec<String> = serde_json::from_str(text).map_err(|error| {
        Error::malformed(path, format!("classes must be a JSON array of strings: {error}"))
    })?;
    if let Some(twice) = first_repeated(&names) {
        return Err(Error::malformed(path, format!("class {twice} is listed twice")));
    }
    if names.len() > MAX_CLASSES {
        let what = format!("{} classes, at most {MAX_CLASSES} are read", names.len());
        return Err(Error::malformed(path, what));
    }
    Ok(Some(names))
}

/// Other programs write a `format` of their own, whose versions mean nothing here.
fn check_version(path: &Path, metadata: &BTreeMap<String, String>) -> Result<()> {
    if metadata.get("format").is_none_or(|format| format != FORMAT) {
        return Ok(());
    }
    let Some(version) = metadata.get("version") else { return Ok(()) };
    match version.parse::<u64>() {
        Ok(found) if found > VERSION => {
            Err(Error::NewerVersion { path: path.to_owned(), found, supported: VERSION })
        }
        Ok(_) => Ok(()),
        Err(_) => Err(Error::malformed(path, format!("version {version} is not a number"))),
    }
}
