//! The CPU's engine against PyTorch, against itself on other threads, and on bad input.
//!
//! `data/golden.py` made `data/golden.safetensors`.

use std::collections::BTreeMap;

use ivoro_vision::dataset::Shape;
use ivoro_vision::engine::cpu::{CpuTrainer, Network};
use ivoro_vision::engine::{Backbone, Batch, Normalisation, State, Trainer};
use ivoro_vision::network::{Architecture, Stem, Weights};
use ivoro_vision::train::{Optimiser, Recipe};
use safetensors::SafeTensors;

struct Case {
    name: &'static str,
    shape: Shape,
    architecture: Architecture,
    recipe: Recipe,
}

fn cases() -> Vec<Case> {
    let small = Architecture {
        channels: 3,
        stem: Stem::Small,
        widths: vec![4, 8],
        depth: 1,
        halve_first: false,
        embedding: None,
        outputs: 12,
    };
    let recipe = Recipe { temperature: 0.5, ..Recipe::default() };
    let embedded = Architecture { channels: 1, halve_first: true, ..small.clone() };
    let wide = Architecture {
        stem: Stem::Large,
        widths: vec![4, 6],
        depth: 2,
        outputs: 3,
        ..small.clone()
    };
    vec![
        Case {
            name: "plain",
            shape: Shape { height: 6, width: 6, channels: 3 },
            architecture: small,
            recipe: Recipe { decay: 2e-4, ..recipe.clone() },
        },
        Case {
            name: "embedded",
            shape: Shape { height: 7, width: 7, channels: 1 },
            architecture: embedded.with_embedding(2),
            recipe: Recipe {
                smoothing: 0.1,
                decay: 5e-4,
                optimiser: Optimiser::Momentum,
                ..recipe.clone()
            },
        },
        Case {
            name: "wide_stem",
            shape: Shape { height: 18, width: 23, channels: 3 },
            architecture: wide,
            recipe: Recipe { rotations: false, decay: 0.0, ..recipe },
        },
    ]
}

/// The stored tensors of one case.
struct Golden {
    name: &'static str,
    bytes: &'static [u8],
}

impl Golden {
    fn of(case: &Case) -> Self {
        Self { name: case.name, bytes: include_bytes!("data/golden.safetensors") }
    }

    fn bytes(&self, key: &str) -> Vec<u8> {
        let tensors = SafeTensors::deserialize(self.bytes).unwrap();
        tensors.tensor(&format!("{}.{key}", self.name)).unwrap().data().to_vec()
    }

    fn floats(&self, key: &str) -> Vec<f32> {
        self.bytes(key).as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
    }

    fn labels(&self) -> Vec<u32> {
        self.bytes("labels").as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect()
    }

    fn state(&self) -> State {
        let (learned, measured) = (self.floats("learned"), self.floats("measured"));
        State { learned, measured, ..State::default() }
    }
}

fn normalisation(channels: usize) -> Normalisation {
    let part = |values: [f32; 3]| values[..channels].to_vec();
    Normalisation { mean: part([0.5, 0.4, 0.3]), deviation: part([0.25, 0.2, 0.3]) }
}

fn trainer(case: &Case, recipe: &Recipe, state: State) -> CpuTrainer {
    let normalisation = normalisation(case.shape.channels);
    CpuTrainer::new(case.architecture.clone(), recipe, normalisation, case.shape, state).unwrap()
}

/// Trains for three steps of equal rate.
fn train(case: &Case, trainer: &mut CpuTrainer, steps: usize) {
    let golden = Golden::of(case);
    let (pixels, labels) = (golden.bytes("pixels"), golden.labels());
    for _ in 0..steps {
        trainer.step(Batch { pixels: &pixels, labels: &labels }, 1e-2).unwrap();
    }
}

fn assert_near(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let fine = (found - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(fine, "{what} {at}: {found}, expected {expected}");
    }
}

fn network(case: &Case) -> Network {
    let State { learned, measured, .. } = Golden::of(case).state();
    Network::new(&Weights {
        architecture: case.architecture.clone(),
        learned,
        measured,
        normalisation: normalisation(case.shape.channels),
        metadata: BTreeMap::new(),
    })
    .unwrap()
}

#[test]
fn features_and_outputs_are_those_of_pytorch() {
    for case in cases() {
        let golden = Golden::of(&case);
        let network = network(&case);
        let pixels = golden.bytes("pixels");
        let outputs = network.outputs(&pixels, case.shape).unwrap();
        assert_near(outputs.as_slice(), &golden.floats("outputs"), 1e-5, case.name);
        let all: Vec<usize> = (0..network.layers().len()).collect();
        let features = network.features(&pixels, case.shape, &all).unwrap();
        for (layer, features) in features.iter().enumerate() {
            let expected = golden.floats(&format!("layer{layer}"));
            assert_near(features.as_slice(), &expected, 1e-5, case.name);
            assert_eq!(features.cols(), network.layers()[layer].1);
            let alone = network.features(&pixels, case.shape, &[layer]).unwrap();
            assert_eq!(&alone[0], features, "{} layer {layer} alone", case.name);
        }
    }
}

#[test]
fn many_threads_can_ask_one_network() {
    for case in cases() {
        let (network, pixels) = (network(&case), Golden::of(&case).bytes("pixels"));
        let all: Vec<usize> = (0..network.layers().len()).collect();
        let alone = network.features(&pixels, case.shape, &all).unwrap();
        std::thread::scope(|scope| {
            let ask = || network.features(&pixels, case.shape, &all).unwrap();
            let asked: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            for thread in asked {
                assert_eq!(thread.join().unwrap(), alone, "{}", case.name);
            }
        });
    }
}

#[test]
fn one_network_takes_images_of_any_size() {
    let cases = cases();
    let network = network(&cases[2]);
    let grey = |height, width| {
        let shape = Shape { height, width, channels: 3 };
        network.features(&vec![100; 5 * shape.len()], shape, &[0, 1]).unwrap()
    };
    let before = grey(18, 23);
    // smaller than any window, far larger, and not square: nothing of it is left behind
    for (height, width) in [(1, 1), (2, 70), (65, 40)] {
        let found = grey(height, width);
        assert_eq!((found[0].rows(), found[0].cols(), found[1].cols()), (5, 6, 4));
        assert_eq!(found, grey(height, width));
    }
    assert_eq!(grey(18, 23), before);
}

#[test]
fn the_first_gradient_is_that_of_pytorch() {
    for case in cases() {
        let golden = Golden::of(&case);
        let recipe = Recipe { optimiser: Optimiser::Momentum, decay: 0.0, ..case.recipe.clone() };
        let before = golden.state();
        let mut trainer = trainer(&case, &recipe, before.clone());
        train(&case, &mut trainer, 1);
        // The first step's momentum is the gradient itself.
        let gradient = trainer.state().unwrap().first;
        assert_near(&gradient, &golden.floats("gradient"), 1e-5, case.name);
        assert!(gradient.iter().any(|value| value.abs() > 0.1), "a gradient worth comparing");
    }
}

#[test]
fn three_steps_end_where_pytorch_ends() {
    for case in cases() {
        let golden = Golden::of(&case);
        let mut trainer = trainer(&case, &case.recipe, golden.state());
        let losses = golden.floats("losses");
        for loss in &losses {
            train(&case, &mut trainer, 1);
            let tally = trainer.tally().unwrap();
            let mean = (tally.loss / tally.views as f64) as f32;
            assert_near(&[mean], &[*loss], 2e-4, case.name);
        }
        let state = trainer.state().unwrap();
        assert_near(&state.learned, &golden.floats("learned_after"), 2e-4, case.name);
        assert_near(&state.measured, &golden.floats("measured_after"), 2e-4, case.name);
        let moved =
            state.learned.iter().zip(&golden.floats("learned")).filter(|(a, b)| a != b).count();
        assert!(moved * 2 > state.learned.len(), "{}: {moved} moved", case.name);
    }
}

#[test]
fn the_loss_falls_as_the_gradient_says() {
    for case in cases() {
        let before = Golden::of(&case).state();
        let loss = |learned: Vec<f32>| {
            let state = State { learned, ..before.clone() };
            let mut trainer = trainer(&case, &case.recipe, state);
            train(&case, &mut trainer, 1);
            let tally = trainer.tally().unwrap();
            tally.loss / tally.views as f64
        };
        let recipe = Recipe { optimiser: Optimiser::Momentum, decay: 0.0, ..case.recipe.clone() };
        let mut trainer = trainer(&case, &recipe, before.clone());
        train(&case, &mut trainer, 1);
        let gradient = trainer.state().unwrap().first;
        let square: f64 = gradient.iter().map(|&value| f64::from(value).powi(2)).sum();
        let length = 1e-3 / square.sqrt() as f32;
        let moved = |by: f32| {
            let pairs = before.learned.iter().zip(&gradient);
            loss(pairs.map(|(weight, gradient)| weight + by * length * gradient).collect())
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(length));
        assert!((slope / square - 1.0).abs() < 0.02, "{}: {slope} {square}", case.name);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for case in cases() {
        let recipe = Recipe { average: Some(0.9), ..case.recipe.clone() };
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut trainer = trainer(&case, &recipe, Golden::of(&case).state());
                train(&case, &mut trainer, 3);
                let pixels = Golden::of(&case).bytes("pixels");
                (trainer.outputs(&pixels).unwrap(), trainer.state().unwrap())
            })
        };
        let one = run(1);
        assert_eq!(one, run(2), "{}", case.name);
        assert_eq!(one, run(5), "{}", case.name);
    }
}

#[test]
fn a_state_goes_on_as_if_nothing_had_happened() {
    for case in cases() {
        let recipe = Recipe { average: Some(0.9), ..case.recipe.clone() };
        let mut through = trainer(&case, &recipe, Golden::of(&case).state());
        train(&case, &mut through, 2);
        let mut resumed = trainer(&case, &recipe, through.state().unwrap());
        assert_eq!(through.state().unwrap(), resumed.state().unwrap());
        train(&case, &mut through, 2);
        train(&case, &mut resumed, 2);
        assert_eq!(through.state().unwrap(), resumed.state().unwrap(), "{}", case.name);
        let state = through.state().unwrap();
        assert_eq!(state.steps, 4);
        assert_ne!(state.average.unwrap().0, state.learned);
    }
}

#[test]
fn outputs_come_from_the_weights_that_are_kept() {
    let case = &cases()[0];
    let golden = Golden::of(case);
    let pixels = golden.bytes("pixels");
    let mut plain = trainer(case, &case.recipe, golden.state());
    let first = plain.outputs(&pixels).unwrap();
    assert_near(first.as_slice(), &golden.floats("outputs"), 1e-5, "outputs");
    train(case, &mut plain, 1);
    assert_ne!(plain.outputs(&pixels).unwrap(), first);
    let recipe = Recipe { average: Some(0.999_999), ..case.recipe.clone() };
    let mut averaged = trainer(case, &recipe, golden.state());
    train(case, &mut averaged, 1);
    assert_near(averaged.outputs(&pixels).unwrap().as_slice(), first.as_slice(), 1e-3, "average");
}

#[test]
fn wrong_sizes_are_named() {
    let case = &cases()[0];
    let golden = Golden::of(case);
    let mut trainer = trainer(case, &case.recipe, golden.state());
    let pixels = golden.bytes("pixels");
    let before = trainer.state().unwrap();
    let mut refuse = |pixels: &[u8], labels: &[u32]| {
        trainer.step(Batch { pixels, labels }, 1e-3).unwrap_err().to_string()
    };
    let message = refuse(&pixels[1..], &golden.labels());
    assert_eq!(message, "pixel values of a training batch: expected 540, found 539");
    assert!(refuse(&pixels, &[0, 1, 2, 3, 0]).contains("label 3 is outside 0..3"));
    assert!(refuse(&[], &[]).contains("expected 2, found 0"));
    assert_eq!(trainer.state().unwrap(), before);
    assert!(trainer.outputs(&pixels[2..]).unwrap_err().to_string().contains("found 538"));
    let network = network(case);
    assert!(network.features(&pixels, case.shape, &[2]).is_err());
    let grey = Shape { channels: 1, ..case.shape };
    let message = network.outputs(&pixels, grey).unwrap_err().to_string();
    assert_eq!(message, "channels of the images: expected 3, found 1");
}

#[test]
fn what_can_not_be_trained_is_refused() {
    let case = &cases()[0];
    let new = |shape: Shape, architecture: &Architecture, state: State| {
        let normalisation = normalisation(3);
        let trainer =
            CpuTrainer::new(architecture.clone(), &case.recipe, normalisation, shape, state);
        trainer.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let state = || Golden::of(case).state();
    let oblong = Shape { width: 7, ..case.shape };
    assert!(new(oblong, &case.architecture, state()).contains("must be equal"));
    let odd = Architecture { outputs: 11, ..case.architecture.clone() };
    assert!(new(case.shape, &odd, state()).contains("outputs = 11"));
    let empty = Architecture { widths: Vec::new(), ..case.architecture.clone() };
    assert!(new(case.shape, &empty, state()).contains("must be above 0"));
    let short = State { learned: vec![0.0; 3], ..state() };
    assert!(new(case.shape, &case.architecture, short).contains("learned weights: expected"));
    let forgetful = State { second: vec![0.0; 3], ..state() };
    assert!(new(case.shape, &case.architecture, forgetful).contains("squared gradients"));
}
