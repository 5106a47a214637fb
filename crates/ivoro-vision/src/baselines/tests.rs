//! Each method's mechanism at work, on a problem of a few small images.

use std::ops::Range;
use std::path::Path;

use ivoro::Matrix;
use ivoro::random::{mix, unit};
use ivoro::vectors::dot;

use super::head::Head;
use super::method::{Before, Step};
use super::{Baseline, IncrementalTrainer};
use crate::dataset::{Broken, Dataset, Fit, How, OpenOptions, Shape, Split};
use crate::engine::cpu::CpuEngine;
use crate::engine::{Anchor, Engine, State};
use crate::network::{Architecture, Weights};
use crate::train::{Augmentation, Optimiser, Recipe, Schedule};

const SHAPE: Shape = Shape { height: 8, width: 8, channels: 1 };
const CLASSES: usize = 6;
const EACH: usize = 24;

/// Classes are bright spots at different places, on noise.
fn split(each: usize, seed: u64) -> Split {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for at in 0..each * CLASSES {
        let class = at % CLASSES;
        let noise = |pixel: usize| (90.0 * unit(mix(seed, at as u64), pixel as u64)) as u8;
        let mut image: Vec<u8> = (0..SHAPE.len()).map(noise).collect();
        let (y, x) = (1 + class / 3 * 4, class % 3 * 2 + 1);
        for (dy, dx) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            image[(y + dy) * SHAPE.width + x + dx] = 250;
        }
        pixels.extend(image);
        labels.push(class as u32);
    }
    Split::in_memory(Path::new("spots"), SHAPE, pixels, labels, CLASSES).unwrap()
}

pub(super) fn dataset() -> Dataset {
    Dataset {
        name: "spots".to_owned(),
        layout: "made here".to_owned(),
        classes: (0..CLASSES).map(|class| format!("spot {class}")).collect(),
        train: split(EACH, 1),
        test: split(8, 2),
        left_out: Vec::new(),
    }
}

fn recipe() -> Recipe {
    Recipe {
        epochs: 20,
        batch: 6,
        optimiser: Optimiser::Adam,
        rate: 5e-3,
        decay: 0.0,
        schedule: Schedule::Steps(Vec::new()),
        augmentation: Augmentation::none(),
        seed: 4,
        ..Recipe::default()
    }
}

fn architecture(outputs: usize) -> Architecture {
    Architecture { widths: vec![8, 16], ..Architecture::small(1, outputs) }
}

fn fit() -> Fit {
    Fit { shape: SHAPE, how: How::Exact }
}

/// A network that was trained on the first four classes and their rotations.
pub(super) fn network(data: &Dataset) -> Weights {
    let normalisation = crate::engine::Normalisation { mean: vec![0.2], deviation: vec![0.2] };
    let mut weights = Weights::random(architecture(16), normalisation, 7);
    let state = State {
        learned: weights.learned.clone(),
        measured: weights.measured.clone(),
        ..State::default()
    };
    let recipe = Recipe { batch: 16, epochs: 12, ..recipe() };
    let mut trainer = CpuEngine
        .trainer(&weights.architecture, &recipe, &weights.normalisation, SHAPE, &state)
        .unwrap();
    let classes: Vec<u32> = (0..4).collect();
    let rows = crate::train::TrainingData::new(&data.train, &classes, fit(), &recipe);
    for epoch in 0..recipe.epochs {
        crate::train::run_epoch(&mut *trainer, &rows, &recipe, epoch, |_, _| true).unwrap();
    }
    let state = trainer.state().unwrap();
    (weights.learned, weights.measured) = (state.learned, state.measured);
    weights
}

fn trainer<'a>(data: &'a Dataset, weights: &'a Weights) -> IncrementalTrainer<'a> {
    trainer_of(data, weights, vec![0..4, 4..6])
}

pub(super) fn trainer_of<'a>(
    data: &'a Dataset,
    weights: &'a Weights,
    phases: Vec<Range<usize>>,
) -> IncrementalTrainer<'a> {
    let order: Vec<usize> = (0..CLASSES).collect();
    IncrementalTrainer::new(
        data,
        &order,
        phases,
        weights,
        recipe(),
        fit(),
        Broken::Fail,
        &CpuEngine,
    )
    .unwrap()
}

/// Accuracies after the last phase: on old classes, on new ones.
fn ends(trainer: &IncrementalTrainer<'_>, baseline: Baseline) -> (f64, f64) {
    let trained = trainer.run(&[baseline], &mut |_| true).unwrap().unwrap();
    assert_eq!(trained.len(), 2, "{baseline}");
    let by_phase = &trained[1].outcomes[0].accuracy_by_phase;
    (by_phase[0], by_phase[1])
}

#[test]
fn what_holds_the_network_forgets_less_than_fine_tuning() {
    let data = dataset();
    let weights = network(&data);
    let trainer = trainer(&data, &weights);
    let (old, new) = ends(&trainer, Baseline::FineTuning);
    assert!(new > 90.0, "new classes are learned: {new}");
    assert!(old < 50.0, "nothing holds the old ones: {old}");
    for baseline in [
        Baseline::Pass,
        Baseline::Eeil,
        Baseline::Ucir,
        Baseline::IcarlNme,
        Baseline::RmmIcarlNme,
        Baseline::RmmUcir,
    ] {
        let (held, learned) = ends(&trainer, baseline);
        assert!(held > old + 15.0, "{baseline}: {held} on old classes, fine-tuning {old}");
        assert!(learned > 30.0, "{baseline}: {learned} on new classes");
    }
    let (all_old, all_new) = ends(&trainer, Baseline::JointTraining);
    assert!(all_old > 80.0 && all_new > 80.0, "joint training: {all_old}, {all_new}");
}

#[test]
fn every_method_runs_and_measures() {
    let data = dataset();
    let weights = network(&data);
    let trainer = trainer(&data, &weights);
    for baseline in [Baseline::Ewc, Baseline::Lwf, Baseline::LwfMc, Baseline::Lwm, Baseline::Muc] {
        let trained = trainer.run(&[baseline], &mut |_| true).unwrap().unwrap();
        let first = &trained[0].outcomes[0];
        assert!(first.accuracy > 70.0, "{baseline} begins at {}", first.accuracy);
        let last = &trained[1].outcomes[0];
        assert_eq!((last.classes, last.accuracy_by_phase.len()), (6, 2), "{baseline}");
        assert!(last.bytes > 0 && last.learn_seconds > 0.0, "{baseline}");
        assert_eq!(trained[1].sites.as_ref().map(Vec::len), Some(6), "{baseline}");
    }
}

#[test]
fn one_training_serves_both_ways_to_answer() {
    let data = dataset();
    let weights = network(&data);
    let trainer = trainer(&data, &weights);
    let both = [Baseline::IcarlCnn, Baseline::IcarlNme];
    let trained = trainer.run(&both, &mut |_| true).unwrap().unwrap();
    assert_eq!(trained[1].outcomes.len(), 2);
    assert_eq!(both.map(Baseline::exemplars), [Some(20); 2]);
    let alone = trainer.run(&both[1..], &mut |_| true).unwrap().unwrap();
    assert_eq!(alone[1].outcomes[0].confusion, trained[1].outcomes[1].confusion);
    // kept images are counted: 20 a class, as pixels
    assert!(trained[1].outcomes[0].bytes >= 20 * 6 * SHAPE.len());
}

#[test]
fn eeil_ends_a_phase_with_as_many_images_of_every_class() {
    let data = dataset();
    let weights = network(&data);
    let trainer = trainer(&data, &weights);
    let mut stages = Vec::new();
    let mut note = |progress: super::Progress| {
        let stage = (progress.epoch.1, progress.step.1);
        if stages.last() != Some(&stage) {
            stages.push(stage);
        }
        true
    };
    trainer.run(&[Baseline::Eeil], &mut note).unwrap();
    // 20 epochs of two new classes and four times 20 kept images, then 6 of six times 20
    assert_eq!(stages, [(20, (2 * EACH + 80) / 24), (6, 120 / 24)]);
}

#[test]
fn a_name_that_keeps_no_image_has_no_memory() {
    let data = dataset();
    let weights = network(&data);
    for baseline in Baseline::ALL {
        let keeps = baseline.exemplars().is_some();
        assert_eq!(baseline.method().memory().is_some(), keeps, "{baseline}");
    }
    let mut keeps = Baseline::Eeil.method();
    let refused = trainer(&data, &weights).run_method(&mut *keeps, &[Baseline::Lwf], &mut |_| true);
    assert!(refused.unwrap_err().to_string().contains("LwF keeps no images"));
}

#[test]
fn the_head_has_the_temperature_of_the_networks_own_recipe() {
    let data = dataset();
    let mut weights = network(&data);
    let points = Matrix::new(1, 16, vec![0.5; 16]).unwrap();
    let first = |weights: &Weights| {
        let model =
            trainer(&data, weights).first_model(&mut *Baseline::Pass.method(), false).unwrap();
        model.head.outputs(&points).row(0)[0]
    };
    let without = first(&weights);
    let own = Recipe { temperature: 4.0 * recipe().temperature, ..recipe() };
    weights.metadata.insert("recipe".to_owned(), serde_json::to_string(&own).unwrap());
    assert!((4.0 * first(&weights) - without).abs() < 1e-5 * without.abs());
    // one that can't be is not believed
    let own = Recipe { temperature: 0.0, ..recipe() };
    weights.metadata.insert("recipe".to_owned(), serde_json::to_string(&own).unwrap());
    assert!((first(&weights) - without).abs() < 1e-9);
}

#[test]
fn labels_stay_with_their_images_behind_a_broken_one() {
    let whole = dataset();
    let weights = network(&whole);
    let folder = tempfile::tempdir().unwrap();
    for (part, split) in [("train", &whole.train), ("test", &whole.test)] {
        for row in 0..split.len() {
            let class = folder.path().join(part).join(format!("spot {}", split.labels()[row]));
            std::fs::create_dir_all(&class).unwrap();
            let pixels = split.read(&[row], fit(), Broken::Fail).unwrap().pixels;
            let picture = image::GrayImage::from_raw(8, 8, pixels).unwrap();
            let file = class.join(format!("{row:03}.png"));
            picture.save(&file).unwrap();
            if row == 0 {
                let bytes = std::fs::read(&file).unwrap();
                std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
            }
        }
    }
    let options = OpenOptions { broken: Broken::Skip, ..OpenOptions::default() };
    let data = Dataset::open(folder.path(), &options).unwrap();
    let order: Vec<usize> = (0..CLASSES).collect();
    let phases = vec![0..4, 4..6];
    let trainer = IncrementalTrainer::new(
        &data,
        &order,
        phases,
        &weights,
        recipe(),
        fit(),
        Broken::Skip,
        &CpuEngine,
    )
    .unwrap();
    // one of the training and one of the test images
    assert_eq!(trainer.left_out().len(), 2, "{:?}", trainer.left_out());
    for baseline in [Baseline::Muc, Baseline::IcarlNme] {
        let trained = trainer.run(&[baseline], &mut |_| true).unwrap().unwrap();
        let (points, labels) = (&trained[0].points, &trained[0].labels);
        assert_eq!((points.rows(), labels.len()), (whole.test.len() - 1, whole.test.len() - 1));
        let accuracy = trained[0].outcomes[0].accuracy;
        assert!(accuracy > 80.0, "{baseline}: {accuracy}");
    }
}

#[test]
fn the_penalty_holds_weights_that_matter() {
    let data = dataset();
    let weights = network(&data);
    let state = State {
        learned: weights.learned.clone(),
        measured: weights.measured.clone(),
        ..State::default()
    };
    let rows: Vec<usize> = (0..12).collect();
    let images = data.train.read(&rows, fit(), Broken::Fail).unwrap();
    let moved = |importance: f32| -> f32 {
        let recipe = Recipe { optimiser: Optimiser::Momentum, rotations: false, ..recipe() };
        let mut trained = CpuEngine
            .trainer(&weights.architecture, &recipe, &weights.normalisation, SHAPE, &state)
            .unwrap();
        let count = weights.learned.len();
        let anchor = Anchor { at: weights.learned.clone(), importance: vec![importance; count] };
        trained.hold(&anchor).unwrap();
        for _ in 0..20 {
            let points = trained.embed(&images.pixels).unwrap();
            let push = Matrix::new(12, points.cols(), vec![0.1; 12 * points.cols()]).unwrap();
            trained.backward(&push, None).unwrap();
            trained.apply_gradient(1e-3).unwrap();
        }
        let after = trained.state().unwrap().learned;
        after.iter().zip(&weights.learned).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt()
    };
    let (free, held) = (moved(0.0), moved(30.0));
    assert!(held < 0.8 * free, "{held} held, {free} free");
}

/// The gradient that a backward pass from points, and from maps where asked for, finds for weights
/// is the one that small changes of them show; returns how many weights that was seen of.
fn check_backward(architecture: Architecture, with_maps: bool) -> usize {
    let normalisation = crate::engine::Normalisation { mean: vec![0.3], deviation: vec![0.3] };
    let weights = Weights::random(architecture, normalisation, 11);
    let pixels = dataset().train.read(&[0, 1, 2, 3, 4, 5], fit(), Broken::Fail).unwrap().pixels;
    let recipe = Recipe { rotations: false, ..recipe() };
    let trained = |learned: Vec<f32>| {
        let state = State { learned, measured: weights.measured.clone(), ..State::default() };
        CpuEngine
            .trainer(&weights.architecture, &recipe, &weights.normalisation, SHAPE, &state)
            .unwrap()
    };
    let push = |at: usize, seed: u64| (unit(seed, at as u64) - 0.5) as f32;
    let pushed = |found: &Matrix, seed: u64| {
        let values = (0..found.as_slice().len()).map(|at| push(at, seed)).collect();
        Matrix::new(found.rows(), found.cols(), values).unwrap()
    };
    let loss = |mut network: Box<dyn crate::engine::CustomLossTrainer>| -> f64 {
        let points = network.embed(&pixels).unwrap();
        let along = |found: &Matrix, seed| dot(found.as_slice(), pushed(found, seed).as_slice());
        let of_points = along(&points, 5);
        if with_maps { of_points + along(&network.maps().unwrap(), 6) } else { of_points }
    };
    let mut first = trained(weights.learned.clone());
    let points = pushed(&first.embed(&pixels).unwrap(), 5);
    let maps = with_maps.then(|| pushed(&first.maps().unwrap(), 6));
    first.backward(&points, maps.as_ref()).unwrap();
    let found = first.gradient().unwrap();
    let mut checked = 0;
    for at in (0..weights.learned.len()).step_by(97).filter(|&at| found[at].abs() > 1e-2) {
        let moved = |step: f32| {
            let mut learned = weights.learned.clone();
            learned[at] += step;
            loss(trained(learned))
        };
        let slope = (moved(1e-3) - moved(-1e-3)) / 2e-3;
        let close = (slope - f64::from(found[at])).abs() < 0.05 * slope.abs() + 5e-3;
        assert!(close, "weight {at}: {slope} and {}", found[at]);
        checked += 1;
    }
    checked
}

#[test]
fn the_gradient_of_points_and_maps_reaches_every_weight_as_finite_differences_say() {
    for architecture in [architecture(4), architecture(4).with_embedding(3)] {
        for with_maps in [false, true] {
            let checked = check_backward(architecture.clone(), with_maps);
            assert!(checked > 10, "{checked}");
        }
    }
}

#[test]
fn the_mean_of_maps_is_the_point_and_a_frozen_network_has_them_too() {
    let data = dataset();
    let plain = network(&data);
    let plane = Weights::random(architecture(16).with_embedding(3), plain.normalisation.clone(), 5);
    let images = data.test.read(&[0, 1, 2, 3, 4], fit(), Broken::Fail).unwrap();
    for weights in [plain, plane] {
        let (points, maps) =
            CpuEngine.backbone(&weights).unwrap().points_and_maps(&images.pixels, SHAPE).unwrap();
        let (width, none) = (points.cols(), vec![0.0; points.cols()]);
        let biases = weights.get("embedding.bias").unwrap_or(&none);
        // two halvings of 8 by 8 pixels
        assert_eq!(maps.cols(), 4 * width);
        for (point, row) in points.iter_rows().zip(maps.iter_rows()) {
            for (at, (value, bias)) in point.iter().zip(biases).enumerate() {
                let mean = row.iter().skip(at).step_by(width).sum::<f32>() / 4.0;
                assert!((mean + bias - value).abs() < 1e-4, "{mean}, {bias}, {value}");
            }
        }
    }
}

#[test]
fn distillation_keeps_what_old_outputs_say() {
    let points = Matrix::new(8, 3, (0..24).map(|at| unit(3, at) as f32).collect()).unwrap();
    let mut old_head = Head::new(3);
    old_head.grow(2, 1);
    let labels = [2, 3, 2, 3, 2, 3, 2, 3];
    let recipe = recipe();
    let mut off = Vec::new();
    for baseline in [Baseline::FineTuning, Baseline::Lwf, Baseline::LwfMc] {
        let mut method = baseline.method();
        let mut head = old_head.clone();
        head.grow(2, 2);
        for index in 0..200 {
            let before = Before { points: points.clone(), head: &old_head };
            let step = Step {
                labels: &labels,
                before: Some(&before),
                old: 2,
                recipe: &recipe,
                rate: 2e-2,
                index,
            };
            method.loss(&step, &points, &mut head).unwrap();
            head.change(&recipe, 2e-2);
        }
        let (now, then) = (head.outputs(&points), old_head.outputs(&points));
        let gap = |row: usize| {
            let spread = |values: &[f32]| values[0] - values[1];
            (spread(&now.row(row)[..2]) - spread(then.row(row))).abs()
        };
        off.push((0..8).map(gap).sum::<f32>());
    }
    assert!(off[1] < 0.3 * off[0] && off[2] < 0.3 * off[0], "{off:?}");
}

#[test]
fn names_are_read_as_they_are_written() {
    for baseline in Baseline::ALL {
        assert_eq!(baseline.to_string().to_lowercase().parse::<Baseline>().unwrap(), baseline);
    }
    let error = "ewk".parse::<Baseline>().unwrap_err().to_string();
    assert!(error.contains("fine-tuning, EWC"), "{error}");
}

#[test]
fn a_network_of_other_classes_is_refused() {
    let data = dataset();
    let weights = network(&data);
    let order: Vec<usize> = (0..CLASSES).collect();
    let new = |phases| {
        IncrementalTrainer::new(
            &data,
            &order,
            phases,
            &weights,
            recipe(),
            fit(),
            Broken::Fail,
            &CpuEngine,
        )
    };
    let error = new(vec![0..3, 3..6]).unwrap_err().to_string();
    assert!(error.contains("16 outputs"), "{error}");
    assert!(new(vec![0..4, 4..6]).is_ok());
}
