//! What pictures are drawn from: diagrams in the plane, and features brought to the plane.

mod tsne;
mod variant;

use serde::{Deserialize, Serialize};

pub use tsne::{allowed_perplexity, embed};
pub use variant::Picture;

/// Version of the files; raised when a field changes its meaning.
pub const VERSION: u32 = 1;

/// x, y and class of a sample.
pub type Sample = (f32, f32, u32);

/// A diagram in the plane, phase after phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// Version of this format.
    pub version: u32,
    /// Name of the data set.
    pub data_set: String,
    /// Name of the method.
    pub method: String,
    /// Class names in order of arrival.
    pub classes: Vec<String>,
    /// One entry a phase.
    pub phases: Vec<ScenePhase>,
}

/// One phase of a [`Scene`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenePhase {
    /// Accuracy in percent on all classes known.
    pub accuracy: Option<f64>,
    /// Accuracy in percent on the classes of each phase so far.
    #[serde(default)]
    pub accuracy_by_phase: Vec<Option<f64>>,
    /// The sites of the diagram.
    pub sites: Vec<Site>,
    /// Samples of the classes known.
    pub samples: Vec<Sample>,
}

/// One site of a diagram in the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Where it is.
    pub at: [f32; 2],
    /// Weight ν of a power diagram; 0 in a Voronoi diagram.
    #[serde(default)]
    pub weight: f32,
    /// Its class.
    pub class: u32,
    /// Which of the class's sisters it is: quarter turns of the image, 0 to 3.
    #[serde(default)]
    pub sister: u32,
}

/// Features brought to the plane by t-SNE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Embedding {
    /// Version of this format.
    pub version: u32,
    /// Name of the data set.
    pub data_set: String,
    /// Name of the method whose features these are.
    pub method: String,
    /// The phase whose network made the features; none where the network is frozen, so that one
    /// picture serves all phases.
    #[serde(default)]
    pub phase: Option<usize>,
    /// Perplexity.
    pub perplexity: f64,
    /// Class names in order of arrival.
    pub classes: Vec<String>,
    /// Classes per phase.
    pub phases: Vec<usize>,
    /// The samples.
    pub points: Vec<Sample>,
}

/// At most `most` of `count` places, evenly spread.
pub fn evenly(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most);
    (0..taken).map(move |at| at * count / taken.max(1))
}
