//! Training and extraction of ResNet-18 for 32×32 images, on all cores.

use std::time::Instant;

use ivoro_vision::Error;
use ivoro_vision::dataset::Shape;
use ivoro_vision::engine::cpu::{CpuTrainer, Network};
use ivoro_vision::engine::{Backbone, Batch, Normalisation, State, Trainer};
use ivoro_vision::network::{Architecture, Stem, Weights};
use ivoro_vision::train::Recipe;
use serde_json::{Value, json};

pub(crate) const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };
const OUTPUTS: usize = 200;

pub(crate) fn normalisation() -> Normalisation {
    Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] }
}

fn weights() -> Weights {
    Weights::random(Architecture::resnet18(Stem::Small, 3, OUTPUTS), normalisation(), 1)
}

pub(crate) fn pixels(images: usize) -> Vec<u8> {
    (0..images * SHAPE.len()).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Shortest time of one step, the first one left out because it takes memory.
fn shortest(repeats: usize, mut step: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    step()?;
    let mut shortest = f64::INFINITY;
    for _ in 0..repeats {
        let started = Instant::now();
        step()?;
        shortest = shortest.min(started.elapsed().as_secs_f64());
    }
    Ok(shortest)
}

/// Steps of `images` images at four rotations.
pub(crate) fn train(images: usize, repeats: usize) -> Result<Value, Error> {
    let Weights { architecture, learned, measured, normalisation, .. } = weights();
    let state = State { learned, measured, ..State::default() };
    let recipe = Recipe::default();
    let mut trainer = CpuTrainer::new(architecture, &recipe, normalisation, SHAPE, state)?;
    let pixels = pixels(images);
    let labels: Vec<u32> = (0..images as u32).map(|image| image % (OUTPUTS / 4) as u32).collect();
    let batch = Batch { pixels: &pixels, labels: &labels };
    let seconds = shortest(repeats, || trainer.step(batch, recipe.rate))?;
    let tally = trainer.tally()?;
    let loss = tally.loss / tally.views as f64;
    Ok(json!({"seconds": seconds, "images": 4 * images, "check": loss}))
}

/// Samples of the last layer.
pub(crate) fn extract(images: usize, repeats: usize) -> Result<Value, Error> {
    let network = Network::new(&weights())?;
    let pixels = pixels(images);
    let mut sum = 0.0;
    let seconds = shortest(repeats, || {
        let features = network.features(&pixels, SHAPE, &[0])?;
        sum = features[0].as_slice().iter().sum::<f32>();
        Ok(())
    })?;
    Ok(json!({"seconds": seconds, "images": images, "check": sum}))
}
