//! Training and extraction from a data set in memory: resuming where they were stopped.

use std::path::Path;

use ivoro::View;
use ivoro_io::features::{ReadOptions, read};
use ivoro_vision::dataset::{Broken, Dataset, Fit, How, Shape, Split};
use ivoro_vision::engine::cpu::CpuEngine;
use ivoro_vision::engine::{Device, Engine};
use ivoro_vision::extract::{Extraction, extract};
use ivoro_vision::network::{Architecture, Precision, Stem, Weights};
use ivoro_vision::train::{Augmentation, Plan, Recipe, Training};

const SHAPE: Shape = Shape { height: 8, width: 8, channels: 1 };
const FIT: Fit = Fit { shape: SHAPE, how: How::Exact };

/// Bars: class 0 lies, class 1 stands, class 2 runs along the diagonal; each somewhere else.
fn split(images: usize) -> Split {
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for image in 0..images {
        let (class, place) = (image % 3, 2 + (image / 3) % 4);
        let lit = |y: usize, x: usize| match class {
            0 => y == place || y == place + 1,
            1 => x == place || x == place + 1,
            _ => y.abs_diff(x) <= 1,
        };
        for y in 0..8 {
            for x in 0..8 {
                let noise = (ivoro::random::mix(image as u64, (y * 8 + x) as u64) % 40) as u8;
                pixels.push(if lit(y, x) { 200 + noise } else { noise });
            }
        }
        labels.push(class as u32);
    }
    Split::in_memory(Path::new("bars"), SHAPE, pixels, labels, 3).unwrap()
}

fn dataset() -> Dataset {
    Dataset {
        name: "bars".to_owned(),
        layout: "made by hand".to_owned(),
        classes: ["lying", "standing", "diagonal"].map(str::to_owned).to_vec(),
        train: split(48),
        test: split(24),
        left_out: Vec::new(),
    }
}

fn plan(epochs: usize) -> Plan {
    let architecture = Architecture {
        channels: 1,
        stem: Stem::Small,
        widths: vec![8, 8],
        depth: 1,
        halve_first: true,
        embedding: None,
        outputs: 0,
    };
    let augmentation = Augmentation { shift: 1, mirror: false, ..Augmentation::none() };
    let recipe = Recipe {
        epochs,
        batch: 8,
        // A lying bar turned by 90° is a standing one: sister classes would contradict.
        rotations: false,
        rate: 1e-2,
        average: Some(0.5),
        holdout: 0.25,
        augmentation,
        ..Recipe::default()
    };
    Plan {
        architecture,
        recipe,
        base: vec![2, 0, 1],
        fit: FIT,
        broken: Broken::Fail,
        device: Device::default(),
        identity: "bars".to_owned(),
    }
}

fn train(dataset: &Dataset, plan: Plan, path: &Path, at_most: usize) -> Weights {
    let mut training = Training::begin(dataset, plan, &CpuEngine, path).unwrap();
    for _ in 0..at_most {
        if training.next_epoch(|_, _| true).unwrap().is_none() {
            break;
        }
    }
    training.settle().unwrap();
    training.weights().unwrap()
}

#[test]
fn a_training_that_was_stopped_ends_where_one_in_one_go_ends() {
    let (folder, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let whole = train(&dataset, plan(4), &folder.path().join("whole"), 9);
    let path = folder.path().join("halved");
    train(&dataset, plan(4), &path, 1);
    // The second epoch is stopped in its midst and lost.
    let mut training = Training::begin(&dataset, plan(4), &CpuEngine, &path).unwrap();
    assert_eq!(training.next_epoch(|step, _| step < 2).unwrap(), None);
    drop(training);
    let halved = train(&dataset, plan(4), &path, 9);
    assert_eq!(whole.learned, halved.learned);
    assert_eq!(whole.measured, halved.measured);
    // The same training resumes after a stop without what the lost epoch had learned.
    let mut training =
        Training::begin(&dataset, plan(4), &CpuEngine, &folder.path().join("again")).unwrap();
    assert_eq!(training.next_epoch(|step, _| step < 2).unwrap(), None);
    while training.next_epoch(|_, _| true).unwrap().is_some() {}
    assert_eq!(whole.learned, training.weights().unwrap().learned);
}

#[test]
fn a_network_learns_what_can_be_learned() {
    let (folder, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let mut training =
        Training::begin(&dataset, plan(12), &CpuEngine, &folder.path().join("checkpoint")).unwrap();
    let mut last = None;
    while let Some(epoch) = training.next_epoch(|_, _| true).unwrap() {
        last = Some(epoch);
    }
    let last = last.unwrap();
    assert!(last.held_out_accuracy.unwrap() > 90.0, "{last:?}");
    let (single, ensemble) = training.test().unwrap();
    assert!(single > 90.0, "{single}");
    assert_eq!(ensemble, None);
    let classes = &training.weights().unwrap().metadata["base_classes"];
    assert_eq!(classes, r#"["diagonal","lying","standing"]"#);
}

#[test]
fn the_checkpoint_of_another_training_is_not_written_over() {
    let (folder, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let path = folder.path().join("checkpoint");
    train(&dataset, plan(4), &path, 1);
    let before = std::fs::read(&path).unwrap();
    let mut other = plan(4);
    other.recipe.seed = 1;
    let Err(error) = Training::begin(&dataset, other, &CpuEngine, &path) else {
        panic!("it resumed")
    };
    assert!(error.to_string().contains("recipe"), "{error}");
    let mut other = plan(4);
    other.fit.how = How::Resize;
    let Err(error) = Training::begin(&dataset, other, &CpuEngine, &path) else {
        panic!("it resumed")
    };
    assert!(error.to_string().contains("how images are fitted"), "{error}");
    let mut other = plan(4);
    other.base = vec![0, 1];
    let Err(error) = Training::begin(&dataset, other, &CpuEngine, &path) else {
        panic!("it resumed")
    };
    assert!(error.to_string().contains("network"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    std::fs::write(&path, &before[..before.len() / 2]).unwrap();
    assert!(Training::begin(&dataset, plan(4), &CpuEngine, &path).is_err());
}

fn extraction() -> Extraction {
    Extraction {
        views: View::ROTATIONS.to_vec(),
        layers: vec!["last".to_owned(), "block1".to_owned()],
        half_precision: false,
        batch: 7,
        fit: FIT,
        broken: Broken::Fail,
        metadata: [("weights".to_owned(), "abc".to_owned())].into(),
    }
}

#[test]
fn an_extraction_that_was_stopped_gives_the_same_file() {
    let (folder, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let weights = train(&dataset, plan(1), &folder.path().join("checkpoint"), 1);
    weights.write(&folder.path().join("w.safetensors"), Precision::Full).unwrap();
    let weights = Weights::read(&folder.path().join("w.safetensors")).unwrap();
    let backbone = CpuEngine.backbone(&weights).unwrap();
    let (whole, halved) = (folder.path().join("a.features"), folder.path().join("b.features"));
    let done = extract(&dataset, &*backbone, &extraction(), &whole, |_, _| true).unwrap();
    assert_eq!(done.unwrap().computed, 72);
    let stop = extract(&dataset, &*backbone, &extraction(), &halved, |done, _| done < 50);
    assert_eq!(stop.unwrap(), None);
    let done = extract(&dataset, &*backbone, &extraction(), &halved, |_, _| true).unwrap();
    let done = done.unwrap();
    assert!(done.resumed >= 48 && done.resumed + done.computed == 72, "{done:?}");
    assert_eq!(std::fs::read(&whole).unwrap(), std::fs::read(&halved).unwrap());
    // Images brought to their shape in another way are not mixed with those that are there.
    let other = folder.path().join("c.features");
    extract(&dataset, &*backbone, &extraction(), &other, |done, _| done < 50).unwrap();
    let mut stretched = extraction();
    stretched.fit.how = How::Resize;
    let result = extract(&dataset, &*backbone, &stretched, &other, |_, _| true);
    assert!(!matches!(result, Ok(Some(ref done)) if done.resumed > 0), "{result:?}");
    let (found, _) = read(&whole, &ReadOptions::default()).unwrap().into_split(0.2, 0).unwrap();
    assert_eq!(found.train.classes()[2], "diagonal");
    assert_eq!(found.test.len(), 24);
    assert_eq!((found.train.dim(0), found.train.dim(1)), (8, 8));
    // A standing bar turned by 90° is seen as the lying one that it then is.
    let upright = found.train.block(0, View::UPRIGHT).unwrap().row(0);
    let turned = found.train.block(0, View::ROTATIONS[1]).unwrap().row(0);
    assert_ne!(upright, turned);
}

#[test]
fn a_layer_that_is_not_there_is_named() {
    let (folder, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let weights = train(&dataset, plan(1), &folder.path().join("checkpoint"), 1);
    let backbone = CpuEngine.backbone(&weights).unwrap();
    let settings = Extraction { layers: vec!["block9".to_owned()], ..extraction() };
    let path = folder.path().join("a.features");
    let error = extract(&dataset, &*backbone, &settings, &path, |_, _| true).unwrap_err();
    assert!(
        error.to_string().contains("block9") && error.to_string().contains("block1"),
        "{error}"
    );
    assert!(!path.exists());
}
