//! From samples to points: which views and layers are averaged, put side by side, transformed and lifted.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::head::settings::{Lengths, Settings};
use crate::head::variant::Variant;
use crate::lift::{Lift, LiftCache};
use crate::matrix::Matrix;
use crate::samples::{Points, View};

/// What samples become for a variant: one matrix per view and layer that distances are measured in.
///
/// Without W and Q that is each rotation × layer by itself; with them, layers are concatenated, and
/// with W under AI rotations too, so that one joint metric can be learned.
#[derive(Clone, Debug)]
pub(crate) struct Composed {
    /// Views that stay separate.
    pub(crate) views: usize,
    /// Layers that stay separate.
    pub(crate) layers: usize,
    /// View-major: `blocks[view · layers + layer]`.
    pub(crate) blocks: Vec<Matrix>,
}

impl Composed {
    pub(crate) fn block(&self, view: usize, layer: usize) -> &Matrix {
        &self.blocks[view * self.layers + layer]
    }

    pub(crate) fn dims(&self) -> Vec<usize> {
        self.blocks.iter().map(Matrix::cols).collect()
    }
}

/// How far the composition goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Views and layers as they come: what a probe sees in raw space.
    Raw,
    /// After N.
    Transformed,
    /// After N and K: where centres and the metric live.
    Full,
}

impl Variant {
    /// Whether points are the rows of one layer and view, so that none has to be copied.
    pub(super) fn takes_features_as_they_are(self) -> bool {
        let changed = self.normalise || self.lift || self.flip;
        !changed && !self.layered && !self.rotates()
    }

    /// Whether the features have the layers and views that the variant needs; the error says what
    /// is missing.
    pub fn check_features(self, features: &Points) -> Result<()> {
        used_layers(features, self)?;
        if self.views().iter().any(|view| !features.views().contains(view)) {
            return Err(missing_views(features, self));
        }
        Ok(())
    }
}

fn missing_views(features: &Points, variant: Variant) -> Error {
    Error::MissingViews {
        variant: variant.to_string(),
        needed: listed(&variant.views()),
        found: listed(features.views()),
    }
}

/// The points of these features under a variant.
pub(crate) fn compose(
    features: &Points,
    variant: Variant,
    settings: &Settings,
    stage: Stage,
    lifts: &LiftCache,
) -> Result<Composed> {
    let layers = used_layers(features, variant)?;
    let views = variant.separate_views();
    let mut grid = Vec::with_capacity(views.len());
    for &view in views {
        let row = layers.clone().map(|layer| {
            let block = flipped(features, layer, view, variant)?;
            let transformed = stage != Stage::Raw && variant.normalise;
            Ok(if transformed { normalised(&block, variant, settings) } else { block })
        });
        grid.push(row.collect::<Result<Vec<_>>>()?);
    }
    let mut points = arrange(grid, variant)?;
    if variant.lift && stage == Stage::Full {
        for (index, block) in points.blocks.iter_mut().enumerate() {
            let seed = settings.seed.wrapping_add(index as u64);
            *block = lifts.apply(Lift::new(block.cols(), settings.lift, seed), block);
        }
    }
    Ok(points)
}

/// The points after N.
fn normalised(points: &Matrix, variant: Variant, settings: &Settings) -> Matrix {
    let powers = settings.transform.apply(points);
    if variant.is_metric() && settings.lengths == Lengths::Equal {
        return settings.transform.with_equal_lengths(powers);
    }
    powers
}

fn arrange(grid: Vec<Vec<Matrix>>, variant: Variant) -> Result<Composed> {
    let (views, layers) = (grid.len(), grid[0].len());
    if !variant.is_metric() {
        return Ok(Composed { views, layers, blocks: grid.into_iter().flatten().collect() });
    }
    let joined: Vec<Vec<&Matrix>> = if variant.separate().0 == 1 {
        vec![grid.iter().flatten().collect()]
    } else {
        grid.iter().map(|row| row.iter().collect()).collect()
    };
    let blocks = joined.iter().map(|parts| Matrix::concat_columns(parts));
    Ok(Composed { views: joined.len(), layers: 1, blocks: blocks.collect::<Result<_>>()? })
}

/// Indices of the layers a variant uses, if the features have them.
pub(crate) fn used_layers(features: &Points, variant: Variant) -> Result<Range<usize>> {
    let wanted = variant.layers();
    if wanted.end <= features.layers().len() {
        return Ok(wanted);
    }
    Err(Error::MissingLayer {
        variant: variant.to_string(),
        needed: "two layers (the last and the block before it)".to_owned(),
        found: features.layers().join(", "),
    })
}

fn flipped(features: &Points, layer: usize, view: View, variant: Variant) -> Result<Matrix> {
    let missing = || missing_views(features, variant);
    let mut block = features.block(layer, view).ok_or_else(missing)?.clone();
    if variant.flip {
        let mirror = features.block(layer, view.mirror()).ok_or_else(missing)?;
        for (value, mirror) in block.as_mut_slice().iter_mut().zip(mirror.as_slice()) {
            *value = 0.5 * (*value + mirror);
        }
    }
    Ok(block)
}

/// Names of views, as messages list them.
fn listed(views: &[View]) -> String {
    views.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
