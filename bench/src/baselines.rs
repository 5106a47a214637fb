//! A training step of a baseline: the time between one step of its second phase and the next, with
//! the network before and the head in it. Images are read and changed ahead of it, on other threads.

use std::path::Path;
use std::time::Instant;

use ivoro_vision::Error;
use ivoro_vision::baselines::{Baseline, IncrementalTrainer};
use ivoro_vision::dataset::{Broken, Dataset, Fit, How, Split};
use ivoro_vision::engine::cpu::CpuEngine;
use ivoro_vision::network::{Architecture, Stem, Weights};
use ivoro_vision::train::Recipe;
use serde_json::{Value, json};

use crate::vision::{SHAPE, normalisation, pixels};

const OLD: usize = 50;
const NEW: usize = 10;
const ROTATIONS: usize = 4;

/// Images of all classes: so many of each old one and of each new one.
fn split(old: usize, new: usize) -> Result<Split, Error> {
    let each = |class: usize| if class < OLD { old } else { new };
    let of = |class: usize| std::iter::repeat_n(class as u32, each(class));
    let labels: Vec<u32> = (0..OLD + NEW).flat_map(of).collect();
    Split::in_memory(Path::new("bench"), SHAPE, pixels(labels.len()), labels, OLD + NEW)
}

/// The shortest of some steps, of `views` views each, in a phase of ten classes behind fifty.
pub(crate) fn step(method: &str, views: usize, steps: usize) -> Result<Value, Error> {
    let baseline: Baseline = method.parse()?;
    let batch = views / ROTATIONS;
    // enough new images for all steps of the method that has the most images in one
    let dataset = Dataset {
        name: "bench".to_owned(),
        layout: "made here".to_owned(),
        classes: (0..OLD + NEW).map(|class| class.to_string()).collect(),
        train: split(1, ((steps + 2) * views).div_ceil(NEW))?,
        test: split(1, 1)?,
        left_out: Vec::new(),
    };
    let architecture = Architecture::resnet18(Stem::Small, 3, ROTATIONS * OLD);
    let weights = Weights::random(architecture, normalisation(), 1);
    let recipe = Recipe { batch, epochs: 1, ..Recipe::default() };
    let order: Vec<usize> = (0..OLD + NEW).collect();
    let phases = vec![0..OLD, OLD..OLD + NEW];
    let fit = Fit { shape: SHAPE, how: How::Exact };
    let trainer = IncrementalTrainer::new(
        &dataset,
        &order,
        phases,
        &weights,
        recipe,
        fit,
        Broken::Fail,
        &CpuEngine,
    )?;
    let mut begun: Vec<Instant> = Vec::new();
    trainer.run(&[baseline], &mut |_| {
        begun.push(Instant::now());
        // the first step takes memory and does not count
        begun.len() < steps + 2
    })?;
    let times = begun.windows(2).skip(1).map(|pair| (pair[1] - pair[0]).as_secs_f64());
    Ok(json!({"seconds": times.fold(f64::INFINITY, f64::min), "steps": steps}))
}
