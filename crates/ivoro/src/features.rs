//! Features: what a frozen network says of each sample, per layer and per view.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::vectors::too_large;

/// The largest magnitude of a feature: squares of larger ones, and their sums, may not be finite.
const LARGEST: f32 = 1e15;

/// How an image was turned before the network saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View {
    /// Quarter turns counter-clockwise, 0..4.
    pub quarter_turns: u8,
    /// Whether the image was mirrored left to right first.
    pub mirrored: bool,
}

impl View {
    /// The image as it is.
    pub const UPRIGHT: Self = Self { quarter_turns: 0, mirrored: false };

    /// The four rotations, unmirrored.
    pub const ROTATIONS: [Self; 4] = [
        Self { quarter_turns: 0, mirrored: false },
        Self { quarter_turns: 1, mirrored: false },
        Self { quarter_turns: 2, mirrored: false },
        Self { quarter_turns: 3, mirrored: false },
    ];

    /// The views an axis of `count` entries stands for when a file does not name them: 1 upright,
    /// 4 rotations, 8 rotations and then the rotations of the mirror image.
    pub fn conventional(count: usize) -> Option<Vec<Self>> {
        let mirrored = Self::ROTATIONS.map(Self::mirror);
        match count {
            1 => Some(vec![Self::UPRIGHT]),
            2 => Some(vec![Self::UPRIGHT, Self::UPRIGHT.mirror()]),
            4 => Some(Self::ROTATIONS.to_vec()),
            8 => Some(Self::ROTATIONS.into_iter().chain(mirrored).collect()),
            _ => None,
        }
    }

    /// The same rotation of the mirror image.
    #[must_use]
    pub fn mirror(self) -> Self {
        Self { mirrored: !self.mirrored, ..self }
    }

    /// Reads `0`, `90`, `180`, `270`, with an `m` behind for the mirror image.
    pub fn parse(text: &str) -> Option<Self> {
        let (degrees, mirrored) = text.strip_suffix('m').map_or((text, false), |rest| (rest, true));
        let quarter_turns = match degrees {
            "0" => 0,
            "90" => 1,
            "180" => 2,
            "270" => 3,
            _ => return None,
        };
        Some(Self { quarter_turns, mirrored })
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mirror = if self.mirrored { "m" } else { "" };
        write!(f, "{}{mirror}", u16::from(self.quarter_turns) * 90)
    }
}

/// Feature vectors of labelled samples: a matrix per layer and view, rows aligned.
///
/// Layers run from the network's last layer backwards: index 0 is the last layer, index 1 the
/// block before it.
#[derive(Clone, Debug)]
pub struct Features {
    origin: Arc<str>,
    layers: Vec<String>,
    views: Vec<View>,
    blocks: Vec<Arc<Matrix>>,
    labels: Vec<u32>,
    classes: Arc<[String]>,
}

impl Features {
    /// Features from their parts. `blocks[l · views + v]` is layer `l` at view `v`; `labels` index
    /// `classes`; `origin` names the source in error messages.
    pub fn new(
        origin: &str,
        layers: Vec<String>,
        views: Vec<View>,
        blocks: Vec<Matrix>,
        labels: Vec<u32>,
        classes: Arc<[String]>,
    ) -> Result<Self> {
        let expected = layers.len() * views.len();
        if blocks.len() != expected || expected == 0 {
            let what = format!("{origin}: matrices for {} layers × views", layers.len());
            return Err(Error::Size { what, expected, found: blocks.len() });
        }
        let blocks = blocks.into_iter().map(|block| Arc::new(block.into_shared())).collect();
        let origin = origin.into();
        let features = Self { origin, layers, views, blocks, labels, classes };
        features.check()?;
        Ok(features)
    }

    /// One layer, one view: what most networks give.
    pub fn single(origin: &str, points: Matrix, labels: Vec<u32>, classes: usize) -> Result<Self> {
        let names = (0..classes).map(|class| class.to_string()).collect();
        let layers = vec!["last".to_owned()];
        Self::new(origin, layers, vec![View::UPRIGHT], vec![points], labels, names)
    }

    fn check(&self) -> Result<()> {
        for (index, block) in self.blocks.iter().enumerate() {
            let (layer, view) = (index / self.views.len(), index % self.views.len());
            let dim = self.blocks[layer * self.views.len()].cols();
            self.check_shape(block, layer, dim)?;
            if let Some(at) = too_large(block.as_slice(), LARGEST) {
                return Err(Error::NotFinite {
                    origin: self.origin.to_string(),
                    row: at / block.cols(),
                    layer: self.layers[layer].clone(),
                    view: self.views[view].to_string(),
                    value: block.as_slice()[at],
                });
            }
        }
        let classes = self.classes.len();
        match self.labels.iter().position(|&label| label as usize >= classes) {
            Some(row) => Err(Error::LabelRange {
                origin: self.origin.to_string(),
                row,
                label: self.labels[row].into(),
                classes,
            }),
            None => Ok(()),
        }
    }

    fn check_shape(&self, block: &Matrix, layer: usize, dim: usize) -> Result<()> {
        let name = &self.layers[layer];
        if block.rows() != self.labels.len() {
            let what = format!("{}: rows of layer {name}", self.origin);
            return Err(Error::Size { what, expected: self.labels.len(), found: block.rows() });
        }
        if block.cols() != dim || dim == 0 {
            let what = format!("{}: dimensions of layer {name}", self.origin);
            return Err(Error::Size { what, expected: dim.max(1), found: block.cols() });
        }
        Ok(())
    }

    /// Where these features come from, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Layer names, last layer first.
    pub fn layers(&self) -> &[String] {
        &self.layers
    }

    /// The views each sample was seen at.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// Class names; labels index them.
    pub fn classes(&self) -> &Arc<[String]> {
        &self.classes
    }

    /// One label a row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Layer `layer` as seen at `view`, if there is such a view.
    pub fn block(&self, layer: usize, view: View) -> Option<&Matrix> {
        let at = self.views.iter().position(|&other| other == view)?;
        self.blocks.get(layer * self.views.len() + at).map(AsRef::as_ref)
    }

    /// Puts all numbers and labels, and what they are called, into a hash.
    #[doc(hidden)] // `ivoro-eval` tells records of other data apart by it
    pub fn hash(&self, hasher: &mut blake3::Hasher) {
        let Self { layers, views, labels, blocks, .. } = self;
        hasher.update(format!("{layers:?} {views:?} {}", labels.len()).as_bytes());
        hasher.update(bytemuck::cast_slice(labels));
        for block in blocks {
            hasher.update_rayon(bytemuck::cast_slice(block.as_slice()));
        }
    }

    /// Dimension of a layer.
    pub fn dim(&self, layer: usize) -> usize {
        self.blocks[layer * self.views.len()].cols()
    }

    /// The rows named, in the order given.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let blocks = self.blocks.iter().map(|block| Arc::new(block.select(rows).into_shared()));
        Self {
            blocks: blocks.collect(),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
            ..self.clone_frame()
        }
    }

    /// The rows of the classes for which `wanted` holds.
    #[must_use]
    pub fn of_classes(&self, wanted: impl Fn(u32) -> bool) -> Self {
        let rows: Vec<usize> = (0..self.len()).filter(|&row| wanted(self.labels[row])).collect();
        self.select(&rows)
    }

    /// The same samples under other class names: label `l` becomes `to[l]`, which indexes `classes`.
    pub fn relabel(&self, to: &[u32], classes: Arc<[String]>) -> Result<Self> {
        let labels = self.labels.iter().map(|&label| to[label as usize]).collect();
        let features = Self { blocks: self.blocks.clone(), labels, classes, ..self.clone_frame() };
        features.check()?;
        Ok(features)
    }

    fn clone_frame(&self) -> Self {
        Self {
            origin: Arc::clone(&self.origin),
            layers: self.layers.clone(),
            views: self.views.clone(),
            blocks: Vec::new(),
            labels: Vec::new(),
            classes: Arc::clone(&self.classes),
        }
    }
}

/// A training and a test part with the same layers, views and classes.
#[derive(Clone, Debug)]
pub struct Split {
    /// What is learned from.
    pub train: Features,
    /// What is asked about.
    pub test: Features,
}
