//! Images a second of training and extraction with ResNet-18 on 32×32 images.
//!
//! ```text
//! cargo run --release -p ivoro-torch --features libtorch --example throughput -- cuda 1024
//! ```

use std::time::Instant;

use ivoro_torch::{TorchEngine, synchronise};
use ivoro_vision::dataset::Shape;
use ivoro_vision::engine::{Batch, Device, Engine, Normalisation, State};
use ivoro_vision::network::{Architecture, Stem, Weights};
use ivoro_vision::train::Recipe;

const SHAPE: Shape = Shape { height: 32, width: 32, channels: 3 };

fn main() -> ivoro_vision::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let device: Device = arguments.next().as_deref().unwrap_or("cpu").parse()?;
    let engine = TorchEngine::open(&device)?;
    let views: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(256);
    let seconds: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10.0);
    let began = Instant::now();
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let weights =
        Weights::random(Architecture::resnet18(Stem::Small, 3, 200), normalisation.clone(), 0);
    let pixels: Vec<u8> =
        (0..views * SHAPE.len()).map(|at| (ivoro::random::mix(1, at as u64) % 256) as u8).collect();
    let recipe = Recipe { batch: views / 4, ..Recipe::default() };
    let state = State {
        learned: weights.learned.clone(),
        measured: weights.measured.clone(),
        first: vec![0.0; weights.learned.len()],
        second: vec![0.0; weights.learned.len()],
        average: None,
        steps: 0,
    };
    let mut trainer =
        engine.trainer(&weights.architecture, &recipe, &normalisation, SHAPE, &state)?;
    let labels: Vec<u32> = (0..views as u32 / 4).map(|at| at % 50).collect();
    let batch = Batch { pixels: &pixels[..pixels.len() / 4], labels: &labels };
    trainer.step(batch, 1e-3)?;
    trainer.tally()?;
    println!("first step done {:.1} s after the start", began.elapsed().as_secs_f64());
    let training = rate(views, seconds, || trainer.step(batch, 1e-3))?;
    let _ = trainer.tally()?;
    println!("training, {views} views a step: {training:.0} images/s");
    let backbone = engine.backbone(&weights)?;
    // A GPU is given enough at once that it never waits for images.
    let images = if device.to_string() == "cpu" { views } else { 4 * views };
    let pixels = pixels.repeat(images / views);
    let extraction = rate(images, seconds, || backbone.features(&pixels, SHAPE, &[0]).map(|_| ()))?;
    println!("extraction, {images} images a call: {extraction:.0} images/s");
    Ok(())
}

/// Images a second over the time given, after a few steps that do not count.
fn rate(
    images: usize,
    seconds: f64,
    mut work: impl FnMut() -> ivoro_vision::Result<()>,
) -> ivoro_vision::Result<f64> {
    for _ in 0..5 {
        work()?;
    }
    synchronise();
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed().as_secs_f64() < seconds {
        for _ in 0..10 {
            work()?;
        }
        synchronise();
        done += 10 * images;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}
