//! Points and samples: what a frozen network says of each image, per layer and per view.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::vectors::too_large;

/// The largest magnitude of a feature: squares of larger ones, and their sums, may not be finite.
const LARGEST: f32 = 1e15;

/// How an image was turned before the network saw it.
///
/// ```
/// use ivoro::View;
/// let mirrored = View::UPRIGHT.mirror();
/// assert!(mirrored != View::UPRIGHT && mirrored.mirror() == View::UPRIGHT);
/// assert_eq!(View::parse(&mirrored.to_string()), Some(mirrored));
/// ```
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

/// Feature vectors without labels, as queries have them: a matrix per layer and view, rows aligned.
///
/// Layers run from the network's last layer backwards: index 0 is the last layer, index 1 the
/// block before it.
///
/// ```
/// use ivoro::{Matrix, Points};
/// let queries = Points::single("tuesday", Matrix::new(1, 2, vec![4.9, 5.2])?)?;
/// assert_eq!((queries.len(), queries.dim(0)), (1, 2));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Points {
    origin: Arc<str>,
    layers: Vec<String>,
    views: Vec<View>,
    blocks: Vec<Arc<Matrix>>,
    rows: usize,
}

impl Points {
    /// Points from their parts. `blocks[l · views + v]` is layer `l` at view `v`; `origin` names the
    /// source in error messages.
    pub fn new(
        origin: &str,
        layers: Vec<String>,
        views: Vec<View>,
        blocks: Vec<Matrix>,
    ) -> Result<Self> {
        let expected = layers.len() * views.len();
        if blocks.len() != expected || expected == 0 {
            let what = format!("{origin}: matrices for {} layers × views", layers.len());
            return Err(Error::Size { what, expected, found: blocks.len() });
        }
        let rows = blocks[0].rows();
        let blocks = blocks.into_iter().map(|block| Arc::new(block.into_shared())).collect();
        let points = Self { origin: origin.into(), layers, views, blocks, rows };
        points.check()?;
        Ok(points)
    }

    /// One layer, one view: what most networks give.
    pub fn single(origin: &str, points: Matrix) -> Result<Self> {
        Self::new(origin, vec!["last".to_owned()], vec![View::UPRIGHT], vec![points])
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
        Ok(())
    }

    fn check_shape(&self, block: &Matrix, layer: usize, dim: usize) -> Result<()> {
        let name = &self.layers[layer];
        if block.rows() != self.rows {
            return Err(self.other_rows(layer, self.rows, block.rows()));
        }
        if block.cols() != dim || dim == 0 {
            let what = format!("{}: dimensions of layer {name}", self.origin);
            return Err(Error::Size { what, expected: dim.max(1), found: block.cols() });
        }
        Ok(())
    }

    fn other_rows(&self, layer: usize, expected: usize, found: usize) -> Error {
        let what = format!("{}: rows of layer {}", self.origin, self.layers[layer]);
        Error::Size { what, expected, found }
    }

    /// Where these points come from, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Layer names, last layer first.
    pub fn layers(&self) -> &[String] {
        &self.layers
    }

    /// The views each image was seen at.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// Layer `layer` as seen at `view`, if there is such a view.
    pub fn block(&self, layer: usize, view: View) -> Option<&Matrix> {
        let at = self.views.iter().position(|&other| other == view)?;
        self.blocks.get(layer * self.views.len() + at).map(AsRef::as_ref)
    }

    /// Dimension of a layer.
    pub fn dim(&self, layer: usize) -> usize {
        self.blocks[layer * self.views.len()].cols()
    }

    /// A copy of the rows named, in the order given.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let blocks = self.blocks.iter().map(|block| Arc::new(block.select(rows).into_shared()));
        Self {
            origin: Arc::clone(&self.origin),
            layers: self.layers.clone(),
            views: self.views.clone(),
            blocks: blocks.collect(),
            rows: rows.len(),
        }
    }
}

/// Labelled points: what a model learns from. Wherever points are wanted, samples will do.
///
/// ```
/// use ivoro::{Matrix, Samples};
/// let points = Matrix::new(3, 2, vec![0.0, 0.1, 5.0, 5.1, 5.2, 5.0])?;
/// let samples = Samples::single("monday", points, vec![0, 1, 1], 2)?;
/// assert_eq!((samples.len(), samples.classes().len()), (3, 2));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Samples {
    points: Points,
    labels: Vec<u32>,
    classes: Arc<[String]>,
}

impl std::ops::Deref for Samples {
    type Target = Points;

    fn deref(&self) -> &Points {
        &self.points
    }
}

impl Samples {
    /// Points with a label for each row; `labels` index `classes`.
    pub fn new(points: Points, labels: Vec<u32>, classes: Arc<[String]>) -> Result<Self> {
        if points.rows != labels.len() {
            return Err(points.other_rows(0, labels.len(), points.rows));
        }
        let samples = Self { points, labels, classes };
        samples.check_labels()?;
        Ok(samples)
    }

    /// One layer, one view: what most networks give. Classes are called `0`, `1`, …
    pub fn single(origin: &str, points: Matrix, labels: Vec<u32>, classes: usize) -> Result<Self> {
        let names = (0..classes).map(|class| class.to_string()).collect();
        Self::new(Points::single(origin, points)?, labels, names)
    }

    fn check_labels(&self) -> Result<()> {
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

    /// The points alone.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// The points alone.
    pub fn into_points(self) -> Points {
        self.points
    }

    /// Class names; labels index them.
    pub fn classes(&self) -> &Arc<[String]> {
        &self.classes
    }

    /// One label per row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Puts all numbers and labels, and what they are called, into a hash.
    #[doc(hidden)] // `ivoro-eval` tells records of other data apart by it
    pub fn add_to_hash(&self, hasher: &mut blake3::Hasher) {
        let Points { layers, views, blocks, .. } = &self.points;
        let labels = &self.labels;
        hasher.update(format!("{layers:?} {views:?} {}", labels.len()).as_bytes());
        hasher.update(bytemuck::cast_slice(labels));
        for block in blocks {
            hasher.update_rayon(bytemuck::cast_slice(block.as_slice()));
        }
    }

    /// A hash of each row's numbers and the seed: sorted by it, rows are in the same random order
    /// wherever they stood.
    pub(crate) fn row_hashes(&self, seed: u64) -> Vec<[u8; 32]> {
        let hash = |row: usize| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&seed.to_le_bytes());
            for block in &self.points.blocks {
                hasher.update(bytemuck::cast_slice(block.row(row)));
            }
            *hasher.finalize().as_bytes()
        };
        (0..self.len()).into_par_iter().map(hash).collect()
    }

    /// A copy of the rows named, in the order given.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            points: self.points.select(rows),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
            classes: Arc::clone(&self.classes),
        }
    }

    /// A copy of the rows of the classes for which `wanted` holds.
    #[must_use]
    pub fn of_classes(&self, wanted: impl Fn(u32) -> bool) -> Self {
        let rows: Vec<usize> = (0..self.len()).filter(|&row| wanted(self.labels[row])).collect();
        self.select(&rows)
    }

    /// The same points under other class names: label `l` becomes `to[l]`, which indexes `classes`.
    /// Nothing is copied but the labels.
    pub fn relabel(&self, to: &[u32], classes: Arc<[String]>) -> Result<Self> {
        let labels = self.labels.iter().map(|&label| to[label as usize]).collect();
        Self::new(self.points.clone(), labels, classes)
    }
}

/// A training and a test part with the same layers, views and classes.
///
/// ```
/// use ivoro::samples::Split;
/// use ivoro::{Matrix, Samples};
/// let points = Matrix::new(4, 1, vec![0.0, 0.1, 5.0, 5.1])?;
/// let all = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// let split = Split { train: all.select(&[0, 2]), test: all.select(&[1, 3]) };
/// assert_eq!(split.train.labels(), split.test.labels());
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Split {
    /// What is learned from.
    pub train: Samples,
    /// What is asked about.
    pub test: Samples,
}
