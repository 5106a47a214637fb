//! Files that are not what they say: one sentence, never a panic.

use ivoro_vision::Error;
use ivoro_vision::dataset::Shape;
use ivoro_vision::engine::Backbone;
use ivoro_vision::engine::onnx::{OnnxError, OnnxOptions, Runtime};

use super::fixtures::{field, file, model, node, single, small, value, weight};
use super::{TINY, open, options, refusal};

#[test]
fn every_truncation_is_refused() {
    for length in 0..TINY.len() {
        let error = refusal(&TINY[..length], &options(&[]));
        assert!(matches!(error, OnnxError::Malformed { .. }), "{length}: {error}");
    }
}

#[test]
fn a_changed_bit_gives_a_network_or_an_error() {
    for runtime in [Runtime::Rten, Runtime::Builtin] {
        let settings = OnnxOptions { runtime, ..options(&["active"]) };
        let mut loaded = 0;
        for at in 0..TINY.len() {
            let mut bytes = TINY.to_vec();
            bytes[at] ^= 1 << (at % 8);
            loaded += usize::from(open(&bytes, &settings).is_ok());
        }
        // Most bits are those of weights.
        assert!(loaded > TINY.len() / 2, "{loaded}");
    }
}

#[test]
fn other_files_are_no_networks() {
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    for bytes in [&b""[..], b"hello", picture, b"RTEN\x02\0\0\0", &[0; 64], &[0xff; 64]] {
        let error = refusal(bytes, &options(&[]));
        assert!(error.to_string().starts_with("net.onnx: not a readable ONNX file: "), "{error}");
    }
}

#[test]
fn a_missing_value_names_those_near_it() {
    let error = refusal(TINY, &options(&["actve"]));
    let OnnxError::NoSuchValue { name, nearest, .. } = &error else { panic!("{error}") };
    assert_eq!((name.as_str(), nearest[0].as_str()), ("actve", "active"));
    assert!(error.to_string().contains("there is no value \"actve\""), "{error}");
    // Weights and the images themselves are no results.
    for name in ["kernel", "images", ""] {
        assert!(
            matches!(refusal(TINY, &options(&[name])), OnnxError::NoSuchValue { .. }),
            "{name}"
        );
    }
}

#[test]
fn a_value_asked_for_twice_is_refused() {
    let error = refusal(TINY, &options(&["flat", "flat"]));
    assert!(matches!(error, OnnxError::Repeated { .. }), "{error}");
}

#[test]
fn an_input_that_is_no_image_is_refused() {
    for (dimensions, words) in [
        (&[1, 3, 4][..], "3 dimensions, expected 4"),
        (&[1, 4, 5, 6], "4 channels, expected 1 or 3"),
        (&[1, 2, 3, 4, 5], "5 dimensions, expected 4"),
    ] {
        let settings = OnnxOptions { normalisation: None, ..options(&[]) };
        let error = refusal(&single("Relu", dimensions), &settings);
        assert!(error.to_string().contains(words), "{error}");
    }
    let whole = [value("in", 7, &[1, 3, 2, 2])];
    let integers = model(&[node("Relu", "in", "out")], &whole, &[field(1, b"out")]);
    let error = refusal(&integers, &options(&[]));
    assert!(error.to_string().contains("element type 7, expected 1"), "{error}");
}

#[test]
fn a_fixed_size_is_not_changed() {
    let error = refusal(TINY, &OnnxOptions { height: Some(6), ..options(&[]) });
    assert!(error.to_string().contains("height is fixed at 5, 6 was asked for"), "{error}");
    let error = refusal(TINY, &OnnxOptions { width: Some(224), ..options(&[]) });
    assert!(error.to_string().contains("width is fixed at 7, 224 was asked for"), "{error}");
    let error = refusal(&single("Relu", &[1, 1, 2, 2]), &options(&[]));
    assert!(error.to_string().contains("channels is fixed at 1, 3 was asked for"), "{error}");
}

#[test]
fn an_unknown_operator_is_named() {
    let error = refusal(&single("Frobnicate", &[1, 3, 2, 2]), &options(&[]));
    assert!(matches!(error, OnnxError::Refused { runtime: "rten", .. }), "{error}");
    assert!(error.to_string().contains("Frobnicate"), "{error}");
}

#[test]
fn a_value_that_is_no_feature_is_refused() {
    let error = refusal(&single("Shape", &[1, 3, 2, 2]), &options(&[]));
    assert!(matches!(error, OnnxError::Run { .. }), "{error}");
    // A column of one number for each of no dimensions.
    let error = refusal(&single("Size", &[1, 3, 2, 2]), &options(&[]));
    assert!(matches!(error, OnnxError::Run { .. }), "{error}");
    // All axes in reverse: the first is no longer the images.
    let error = refusal(&single("Transpose", &[1, 3, 2, 2]), &options(&[]));
    assert!(error.to_string().contains("is [2, 2, 3, 1]; expected [1, features]"), "{error}");
}

#[test]
fn graphs_nested_without_end_are_refused() {
    let mut inner = field(1, &node("Relu", "in", "out"));
    for _ in 0..2_000 {
        let attribute = field(5, &field(6, &inner));
        inner = field(1, &[node("If", "in", "out"), attribute].concat());
    }
    let error = refusal(&file(&inner), &options(&[]));
    assert!(error.to_string().contains("nested more than 16 levels deep"), "{error}");
}

#[test]
fn types_nested_without_end_are_refused() {
    let mut kind = field(1, &small(1, 1));
    for _ in 0..2_000 {
        kind = field(4, &field(1, &kind));
    }
    let strange = [field(1, b"in"), field(2, &kind)].concat();
    let file = model(&[node("Relu", "in", "out")], &[strange], &[field(1, b"out")]);
    let error = refusal(&file, &options(&[]));
    assert!(error.to_string().contains("nested more than 16 levels deep"), "{error}");
}

#[test]
fn sizes_beyond_memory_are_refused() {
    let open_sizes = single("Relu", &[0, 3, 0, 0]);
    let (height, width) = (Some(1 << 40), Some(1 << 40));
    let error = refusal(&open_sizes, &OnnxOptions { height, width, ..options(&[]) });
    assert!(error.to_string().contains("can't be computed at once"), "{error}");
    let nothing = OnnxOptions { height: Some(0), width: Some(2), ..options(&[]) };
    assert!(matches!(refusal(&open_sizes, &nothing), OnnxError::Input { .. }));
    let nothing = OnnxOptions { batch: 0, ..options(&[]) };
    assert!(matches!(refusal(TINY, &nothing), OnnxError::Input { .. }));
}

#[test]
fn weights_outside_the_folder_are_not_opened() {
    for place in ["../secret", "/etc/passwd", "absent.data"] {
        let location = [field(1, b"location"), field(2, place.as_bytes())].concat();
        let weight = weight("weight", &[field(13, &location), small(14, 1)].concat());
        let graph = [
            field(1, &node("Relu", "in", "out")),
            field(5, &weight),
            field(11, &value("in", 1, &[1, 3, 2, 2])),
            field(12, &field(1, b"out")),
        ];
        let error = refusal(&file(&graph.concat()), &options(&[]));
        assert!(matches!(error, OnnxError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(place), "{error}");
    }
}

#[test]
fn a_normalisation_that_divides_by_zero_is_refused() {
    let mut settings = options(&[]);
    settings.normalisation.as_mut().unwrap().deviation[1] = 0.0;
    assert!(matches!(open(TINY, &settings), Err(Error::Setting { name: "normalisation", .. })));
    settings.normalisation.as_mut().unwrap().deviation.pop();
    assert!(matches!(open(TINY, &settings), Err(Error::Setting { .. })));
}

#[test]
fn images_and_layers_that_do_not_fit_are_refused() {
    let network = open(TINY, &options(&[])).unwrap();
    let shape = network.shape().unwrap();
    let turned = Shape { height: 7, width: 5, channels: 3 };
    assert!(network.features(&[0; 105], turned, &[0]).is_err());
    assert!(network.features(&[0; 104], shape, &[0]).is_err());
    let error = network.features(&[0; 105], shape, &[1]).unwrap_err();
    assert_eq!(error.to_string(), "layer 1 was asked for, the network gives 1");
}
