//! `.features`: reading, and writing what reads back the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use ivoro::{Error, Matrix, Points, Samples, View};
use ivoro_io::features::{ReadOptions, SplitOrigin, read, read_bytes, write_features};
use serde_json::json;

use super::fixtures::{self, *};

#[test]
fn half_precision_lands_where_it_belongs() {
    let file = fixtures::read("a.features", &small_features()).unwrap();
    let train = file.train.unwrap();
    assert_eq!(train.points().layers(), ["layer4", "layer3"]);
    assert_values(&train, 0);
    assert_eq!(train.labelled().unwrap().labels(), [1, 0, 1]);
    assert_eq!(**train.labelled().unwrap().classes(), ["0", "1"]);
    assert!(train.labelled().is_some() && file.test.is_none() && file.all.is_none());
}

#[test]
fn every_float_type_is_read() {
    let doubles: Vec<u8> = values().iter().flat_map(|&v| f64::from(v).to_le_bytes()).collect();
    let brains: Vec<u8> =
        values().iter().flat_map(|&v| half::bf16::from_f32(v).to_le_bytes()).collect();
    for (dtype, bytes) in [("F32", singles(&values())), ("F64", doubles), ("BF16", brains)] {
        let tensor = ("last", dtype, vec![ROWS, VIEWS, DIM], bytes);
        let file = fixtures::read("a.safetensors", &safetensors(&json!({}), &[tensor])).unwrap();
        let set = file.asking().unwrap();
        assert!(set.labelled().is_none());
        // Every value here is below 256, which bfloat16 holds exactly.
        assert_values(&set, 0);
    }
}

#[test]
fn metadata_names_layers_views_and_classes() {
    let metadata = json!({
        "format": "ivoro-features", "version": "1", "layers": "a,b",
        "views": "180,0m", "classes": "[\"owl\",\"ant\"]", "network": "resnet",
    });
    let ones = || halves(&[1.0; 12]);
    let tensors = [
        ("b", "F16", vec![2, 2, 3], ones()),
        ("a", "F16", vec![2, 2, 3], ones()),
        ("labels", "U8", vec![2], vec![1, 0]),
    ];
    let file = fixtures::read("a.features", &safetensors(&metadata, &tensors)).unwrap();
    assert_eq!(file.metadata["network"], "resnet");
    let features = file.learning().unwrap();
    assert_eq!(features.layers(), ["a", "b"]);
    assert_eq!(features.views(), [View::parse("180").unwrap(), View::parse("0m").unwrap()]);
    assert_eq!(**features.classes(), ["owl", "ant"]);
    assert_eq!(features.labels(), [1, 0]);
}

#[test]
fn only_the_layers_asked_for_are_read() {
    let options = ReadOptions { layers: Some(vec!["layer3".to_owned()]), ..ReadOptions::default() };
    let file = read_bytes("a.features", &small_features(), &options).unwrap();
    assert_eq!(file.learning().unwrap().layers(), ["layer3"]);
    let options = ReadOptions { layers: Some(vec!["layer9".to_owned()]), ..ReadOptions::default() };
    let error = read_bytes("a.features", &small_features(), &options).unwrap_err().to_string();
    assert!(error.contains("there is no layer layer9"), "{error}");
}

#[test]
fn a_newer_version_is_named() {
    let metadata = json!({"format": "ivoro-features", "version": "2"});
    let bytes = safetensors(&metadata, &[("last", "F32", vec![1, 1], singles(&[1.0]))]);
    let error = fixtures::read("a.features", &bytes).unwrap_err();
    assert!(matches!(error, Error::NewerVersion { found: 2, supported: 1, .. }), "{error}");
    // The version of another program's format says nothing.
    let metadata = json!({"format": "pt", "version": "2"});
    let bytes = safetensors(&metadata, &[("last", "F32", vec![1, 1], singles(&[1.0]))]);
    fixtures::read("a.features", &bytes).unwrap();
}

fn part(labels: &[u32], classes: &Arc<[String]>, scale: f32) -> Samples {
    let views = View::conventional(VIEWS).unwrap();
    let layers = vec!["last".to_owned(), "layer3".to_owned()];
    let block = |seed: usize| {
        let data = (0..labels.len() * DIM).map(|at| scale * (at * 7 + seed) as f32).collect();
        Matrix::new(labels.len(), DIM, data).unwrap()
    };
    let blocks = (0..4).map(block).collect();
    let points = Points::new("made", layers, views, blocks).unwrap();
    Samples::new(points, labels.to_vec(), classes.clone()).unwrap()
}

#[test]
fn what_is_written_reads_back_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.features");
    let classes: Arc<[String]> = ["owl", "ant"].map(str::to_owned).into();
    let (train, test) = (part(&[1, 0, 1, 0], &classes, 0.25), part(&[0], &classes, 2.0));
    let metadata = BTreeMap::from([("network".to_owned(), "resnet".to_owned())]);
    for half_precision in [false, true] {
        write_features(&path, Some(&train), Some(&test), half_precision, &metadata).unwrap();
        let file = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!(file.metadata["network"], "resnet");
        let (split, how) = file.into_split(0.2, 0).unwrap();
        assert_eq!(how, SplitOrigin::File);
        for (read, written) in [(&split.train, &train), (&split.test, &test)] {
            assert_eq!(read.labels(), written.labels());
            assert_eq!(read.classes(), written.classes());
            assert_eq!(read.layers(), written.layers());
            for (layer, view) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let view = written.views()[view];
                assert_eq!(read.block(layer, view), written.block(layer, view));
            }
        }
    }
}

#[test]
fn a_number_too_large_for_half_precision_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.features");
    let classes: Arc<[String]> = ["owl".to_owned()].into();
    let features = part(&[0], &classes, 1e5);
    let error = write_features(&path, Some(&features), None, true, &BTreeMap::new()).unwrap_err();
    assert!(error.to_string().contains("does not fit half precision"), "{error}");
    assert!(!path.exists());
}

#[test]
fn an_undivided_set_is_held_out_from_and_says_so() {
    let labels = longs(&[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    let tensors = [
        ("last", "F32", vec![10, 2], singles(&(0..20_u8).map(f32::from).collect::<Vec<_>>())),
        ("labels", "I64", vec![10], labels),
    ];
    let file = fixtures::read("a.features", &safetensors(&json!({}), &tensors)).unwrap();
    let (split, how) = file.into_split(0.2, 3).unwrap();
    assert_eq!((split.train.len(), split.test.len()), (8, 2));
    assert_eq!(how.to_string(), "0.2 of each class held out as test, seed 3");
}

#[test]
fn later_phases_may_hold_later_classes_only() {
    let tensors = [
        ("train.last", "F32", vec![3, 1], singles(&[1.0, 2.0, 3.0])),
        ("train.labels", "I64", vec![3], longs(&[7, 5, 7])),
    ];
    let file = fixtures::read("a.features", &safetensors(&json!({}), &tensors)).unwrap();
    let error = file.clone().into_split(0.2, 0).unwrap_err();
    assert!(matches!(error, Error::EmptyClass { class, .. } if class == "0"));
    let features = file.learning().unwrap();
    assert_eq!(**features.classes(), ["5", "7"]);
    assert_eq!(features.labels(), [1, 0, 1]);
}
