//! Engines: what computes a network and its gradient.

pub mod cpu;
mod device;
pub mod onnx;

pub use device::Device;

use std::fmt;

use ivoro::Matrix;

use crate::error::{Error, Result};
pub use crate::network::Normalisation;
use crate::network::{Architecture, Weights};
use crate::recipe::Recipe;
use crate::shape::Shape;

/// An engine on an opened device.
pub trait Engine: fmt::Debug + Send + Sync {
    /// A frozen network.
    fn backbone(&self, weights: &Weights) -> Result<Box<dyn Backbone>>;

    /// A network in training, resumed from `state`.
    fn trainer(
        &self,
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
    ) -> Result<Box<dyn CustomLossTrainer>>;
}

/// A frozen network that turns images into features. Many threads can ask one network.
pub trait Backbone: Send + Sync {
    /// The layers that features can be taken from, the last one first, with their sizes.
    fn layers(&self) -> &[(String, usize)];

    /// The shape images must have, where the network fixes it.
    fn shape(&self) -> Option<Shape>;

    /// What computes it, in a word.
    fn engine(&self) -> &'static str {
        "ivoro"
    }

    /// Features of images (`pixels` in NHWC order, each of `shape`): a matrix for each index into
    /// [`layers`](Self::layers) asked for.
    fn features(&self, pixels: &[u8], shape: Shape, layers: &[usize]) -> Result<Vec<Matrix>>;

    /// The last layer's points with the [`maps`](CustomLossTrainer::maps) that they are means of.
    fn points_and_maps(&self, _pixels: &[u8], _shape: Shape) -> Result<(Matrix, Matrix)> {
        Err(Error::Engine { what: format!("{} gives no maps of the last layer", self.engine()) })
    }
}

/// What training resumes from: all that changes in a step.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct State {
    /// Learned weights, in the order of the architecture's parameters.
    pub learned: Vec<f32>,
    /// Measured weights.
    pub measured: Vec<f32>,
    /// Adam's running mean of gradients, or the momentum.
    pub first: Vec<f32>,
    /// Adam's running mean of squared gradients.
    pub second: Vec<f32>,
    /// Running average of learned and of measured weights, if the recipe keeps one.
    pub average: Option<(Vec<f32>, Vec<f32>)>,
    /// Steps done.
    pub steps: u64,
}

impl State {
    /// The weights that are kept: the average where there is one.
    pub fn result(&self) -> (&[f32], &[f32]) {
        match &self.average {
            Some((learned, measured)) => (learned, measured),
            None => (&self.learned, &self.measured),
        }
    }
}

/// Checks what a training is given, whatever engine resumes it, and fills in what the state
/// lacks: the optimiser's memory, and an average where the recipe keeps one.
///
/// Hidden, since it is for engines in other crates alone: `ivoro-torch` calls it.
#[doc(hidden)]
pub fn begin(
    architecture: &Architecture,
    recipe: &Recipe,
    shape: Shape,
    state: State,
) -> Result<State> {
    recipe.check()?;
    if recipe.rotations && shape.height != shape.width {
        return Err(Error::NotSquare { found: shape });
    }
    let outputs = architecture.outputs;
    if outputs == 0 || !outputs.is_multiple_of(recipe.sisters()) {
        let reason = "must be above 0, and a multiple of 4 with rotations";
        return Err(Error::Setting { name: "outputs", value: outputs.to_string(), reason });
    }
    let (all_learned, all_measured) = architecture.counts();
    let State { learned, measured, first, second, average, steps } = state;
    check_size("learned weights", all_learned, learned.len())?;
    check_size("measured weights", all_measured, measured.len())?;
    let moments = |what: &str, values: Vec<f32>| -> Result<Vec<f32>> {
        if values.is_empty() {
            return Ok(vec![0.0; all_learned]);
        }
        check_size(what, all_learned, values.len())?;
        Ok(values)
    };
    let average = match (recipe.average, average) {
        (None, _) => None,
        (Some(_), None) => Some((learned.clone(), measured.clone())),
        (Some(_), Some((learned, measured))) => {
            check_size("averaged learned weights", all_learned, learned.len())?;
            check_size("averaged measured weights", all_measured, measured.len())?;
            Some((learned, measured))
        }
    };
    let first = moments("running means of gradients", first)?;
    let second = moments("running means of squared gradients", second)?;
    Ok(State { learned, measured, first, second, average, steps })
}

/// Two sizes must agree.
fn check_size(what: &str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Method(ivoro::Error::Size { what: what.to_owned(), expected, found }))
}

/// Images of one training step.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Pixels in NHWC order, already augmented.
    pub pixels: &'a [u8],
    /// Their classes, 0 to the number of base classes.
    pub labels: &'a [u32],
}

/// What was measured during training steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Sum of the loss over views.
    pub loss: f64,
    /// Views whose own output (class and rotation) was the largest.
    pub correct: u64,
    /// Views seen: images times rotations.
    pub views: u64,
}

/// A network in training.
pub trait Trainer {
    /// One step at the learning rate `rate`: rotations, loss, gradient, change of the weights.
    fn step(&mut self, batch: Batch<'_>, rate: f32) -> Result<()>;

    /// What the steps since the last call measured.
    fn tally(&mut self) -> Result<Tally>;

    /// A copy of all that changes in a step.
    fn state(&mut self) -> Result<State>;

    /// The outputs for images as they are, with running statistics, from the weights that
    /// [`State::result`] would keep.
    fn outputs(&mut self, pixels: &[u8]) -> Result<Matrix>;
}

/// Weights that others are held at: the gradient of `Σ importance · (weight − at)² / 2` is added to
/// that of the loss. Both lie in the order of the architecture's parameters.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Anchor {
    /// Where the weights are held.
    pub at: Vec<f32>,
    /// How strongly each of them is.
    pub importance: Vec<f32>,
}

/// A network in training whose loss is the caller's: it gives points and takes their gradient.
pub trait CustomLossTrainer: Trainer {
    /// Points of the last layer, with the batch's own statistics; kept for the backward pass.
    fn embed(&mut self, pixels: &[u8]) -> Result<Matrix>;

    /// What each pixel of the last stage adds to the points last looked at: a row for each image, in
    /// it pixel after pixel the values of a point. The mean over pixels is the point, less the bias
    /// of an embedding. They are kept for the backward pass.
    fn maps(&mut self) -> Result<Matrix>;

    /// The gradient of all weights from that of the points last looked at, and from that of their
    /// maps where the loss has a part in them. The network's own classifier has no part in it.
    fn backward(&mut self, points: &Matrix, maps: Option<&Matrix>) -> Result<()>;

    /// The gradient of the last backward pass, in the order of the architecture's parameters.
    fn gradient(&mut self) -> Result<Vec<f32>>;

    /// Moves the weights along the gradient at the learning rate `rate`.
    fn apply_gradient(&mut self, rate: f32) -> Result<()>;

    /// Holds the weights from now on.
    fn hold(&mut self, anchor: &Anchor) -> Result<()>;
}
