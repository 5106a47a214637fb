//! Features are those of ONNX Runtime (see data/make_onnx.py), whatever the batches.

use ivoro::Matrix;
use ivoro_vision::dataset::Shape;
use ivoro_vision::engine::onnx::{Layout, OnnxError, OnnxNetwork, OnnxOptions};
use ivoro_vision::engine::{Backbone, Normalisation};

use super::fixtures::{field, file, model, node, single, small, value, weight};
use super::{TINY, TINY_ONE, open, options, refusal};

const SHAPE: Shape = Shape { height: 5, width: 7, channels: 3 };
const FLAT: [[f32; 4]; 3] = [
    [0.633_551_2, 0.140_642, 0.561_172_4, 0.467_276],
    [0.585_917_1, 0.262_806_4, 0.543_249_5, 0.404_837_3],
    [0.402_961_6, 0.466_639_4, 0.532_284_8, 0.301_824_6],
];
const ANSWER: [[f32; 3]; 3] = [
    [-0.685_777_5, -0.232_260_2, 0.666_203_7],
    [-0.706_653_4, -0.119_792_5, 0.640_954_3],
    [-0.668_612_1, 0.001_334_5, 0.609_170_7],
];

fn pixels() -> Vec<u8> {
    (0..3 * SHAPE.len()).map(|at| (at * 31 % 256) as u8).collect()
}

fn assert_near(found: &Matrix, expected: &[f32]) {
    assert_eq!(found.as_slice().len(), expected.len());
    for (found, expected) in found.as_slice().iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} instead of {expected}");
    }
}

#[test]
fn without_names_the_graphs_outputs_are_the_features() {
    let network = open(TINY, &options(&[])).unwrap();
    assert_eq!(network.layers(), [("answer".to_owned(), 3)]);
    assert_eq!((network.shape(), network.runtime()), (Some(SHAPE), "rten"));
    let features = network.features(&pixels(), SHAPE, &[0]).unwrap();
    assert_near(&features[0], ANSWER.as_flattened());
}

#[test]
fn inner_values_are_features_in_the_order_of_their_names() {
    let network = open(TINY, &options(&["flat", "active", "answer"])).unwrap();
    let sizes: Vec<usize> = network.layers().iter().map(|layer| layer.1).collect();
    assert_eq!(sizes, [4, 4, 3]);
    let features = network.features(&pixels(), SHAPE, &[2, 1, 0]).unwrap();
    assert_near(&features[0], ANSWER.as_flattened());
    // The map of four dimensions is averaged over its pixels, as the network itself does.
    assert_near(&features[1], FLAT.as_flattened());
    assert_near(&features[2], FLAT.as_flattened());
    let one = network.features(&pixels(), SHAPE, &[1]).unwrap();
    assert_eq!(one[0], features[1]);
}

#[test]
fn batches_of_any_size_give_the_same_features() {
    for batch in [1, 2, 3, 16] {
        let settings = OnnxOptions { batch, ..options(&["flat"]) };
        let features = open(TINY, &settings).unwrap().features(&pixels(), SHAPE, &[0]).unwrap();
        assert_near(&features[0], FLAT.as_flattened());
    }
    let fixed = open(TINY_ONE, &options(&["flat"])).unwrap().features(&pixels(), SHAPE, &[0]);
    assert_near(&fixed.unwrap()[0], FLAT.as_flattened());
}

#[test]
fn a_fixed_batch_is_filled_up() {
    let network = single("Flatten", &[2, 1, 1, 2]);
    let normalisation = Some(Normalisation { mean: vec![0.0], deviation: vec![1.0] });
    let settings = OnnxOptions { normalisation, scale: 255.0, ..options(&[]) };
    let network = open(&network, &settings).unwrap();
    let shape = Shape { height: 1, width: 2, channels: 1 };
    let features = network.features(&[1, 2, 3, 4, 5, 6], shape, &[0]).unwrap();
    assert_eq!((features[0].rows(), features[0].cols()), (3, 2));
    assert_near(&features[0], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn no_image_gives_no_row() {
    let features = open(TINY, &options(&[])).unwrap().features(&[], SHAPE, &[0]).unwrap();
    assert_eq!((features[0].rows(), features[0].cols()), (0, 3));
}

#[test]
fn channels_are_found_at_the_end() {
    let network = single("Relu", &[0, 2, 5, 3]);
    let network = open(&network, &options(&[])).unwrap();
    let shape = Shape { height: 2, width: 5, channels: 3 };
    assert_eq!(network.shape(), Some(shape));
    let pixels: Vec<u8> = (0..10).flat_map(|_| [255, 0, 153]).collect();
    let features = network.features(&pixels, shape, &[0]).unwrap();
    assert_near(&features[0], &[3.0, 0.0, 0.0]);
}

#[test]
fn open_axes_take_the_order_and_size_given() {
    let network = single("Relu", &[0, 0, 0, 0]);
    let layout = Some(Layout::ChannelsLast);
    let settings = OnnxOptions { height: Some(2), width: Some(3), layout, ..options(&[]) };
    let shape = open(&network, &settings).unwrap().shape();
    assert_eq!(shape, Some(Shape { height: 2, width: 3, channels: 3 }));
    let error = refusal(&network, &options(&[]));
    assert!(matches!(error, OnnxError::SizeOpen { side: "height and width", .. }), "{error}");
    let error = refusal(&network, &OnnxOptions { height: Some(2), ..options(&[]) });
    assert!(matches!(error, OnnxError::SizeOpen { side: "the width", .. }), "{error}");
}

#[test]
fn values_may_have_another_order_than_the_input() {
    let network = single("Relu", &[1, 2, 5, 3]);
    let value_layout = Some(Layout::ChannelsFirst);
    let network = open(&network, &OnnxOptions { value_layout, ..options(&[]) }).unwrap();
    assert_eq!(network.layers()[0].1, 2);
}

#[test]
fn grey_images_follow_the_usual_normalisation() {
    let network = single("Flatten", &[0, 1, 1, 1]);
    let settings = OnnxOptions { normalisation: None, ..options(&[]) };
    let shape = Shape { height: 1, width: 1, channels: 1 };
    let features = open(&network, &settings).unwrap().features(&[255], shape, &[0]).unwrap();
    assert_near(&features[0], &[(1.0 - 0.485) / 0.229]);
}

/// The images plus one number, whose bytes are at `place`.
fn addition(place: &[u8]) -> Vec<u8> {
    let node = [field(1, b"in"), field(1, b"number"), field(2, b"out"), field(4, b"Add")].concat();
    // Old exporters list weights among the inputs too.
    let graph = [
        field(1, &node),
        field(5, &weight("number", place)),
        field(11, &value("in", 1, &[1, 3, 1, 2])),
        field(11, &value("number", 1, &[1])),
        field(12, &field(1, b"out")),
    ];
    file(&graph.concat())
}

#[test]
fn a_weight_listed_as_input_need_not_be_given() {
    let network = addition(&field(9, &2.0f32.to_le_bytes()));
    let network = open(&network, &options(&[])).unwrap();
    let shape = network.shape().unwrap();
    let features = network.features(&[255, 0, 153, 255, 0, 153], shape, &[0]).unwrap();
    assert_near(&features[0], &[5.0, 0.0, 2.0]);
}

#[test]
fn weights_may_lie_in_a_file_beside_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |key: &str, text: &str| {
        field(13, &[field(1, key.as_bytes()), field(2, text.as_bytes())].concat())
    };
    let place = [entry("location", "net.data"), entry("offset", "4"), entry("length", "4")];
    let place = [place.concat(), small(14, 1)].concat();
    std::fs::write(folder.path().join("net.data"), [7, 7, 7, 7, 0, 0, 0, 0x40]).unwrap();
    std::fs::write(folder.path().join("net.onnx"), addition(&place)).unwrap();
    let path = folder.path().join("net.onnx");
    let network = OnnxNetwork::open(&path, &options(&[])).unwrap();
    let shape = network.shape().unwrap();
    let features = network.features(&[255, 0, 153, 255, 0, 153], shape, &[0]).unwrap();
    assert_near(&features[0], &[5.0, 0.0, 2.0]);
}

#[test]
fn two_inputs_are_refused() {
    let inputs = [value("in", 1, &[1, 3, 2, 2]), value("more", 1, &[1])];
    let two = model(&[node("Relu", "in", "out")], &inputs, &[field(1, b"out")]);
    let error = refusal(&two, &options(&[]));
    assert!(error.to_string().contains("2 inputs (in, more)"), "{error}");
}

#[cfg(feature = "onnxruntime")]
#[test]
fn both_runtimes_give_the_same_features() {
    use ivoro_vision::Error;
    use ivoro_vision::engine::onnx::Runtime;

    let outputs = ["flat", "active", "answer"];
    let settings = OnnxOptions { runtime: Runtime::OnnxRuntime, ..options(&outputs) };
    let network = match open(TINY, &settings) {
        // Without the library there is nothing to compare; the error says how to get it.
        Err(Error::Onnx(error @ OnnxError::Library { .. })) => {
            assert!(error.to_string().contains("hint: `pip install onnxruntime`"), "{error}");
            return;
        }
        other => other.unwrap(),
    };
    assert_eq!(network.runtime(), "ONNX Runtime");
    let features = network.features(&pixels(), SHAPE, &[0, 1, 2]).unwrap();
    assert_near(&features[0], FLAT.as_flattened());
    assert_near(&features[1], FLAT.as_flattened());
    assert_near(&features[2], ANSWER.as_flattened());
    let fixed = open(TINY_ONE, &settings).unwrap().features(&pixels(), SHAPE, &[0]).unwrap();
    assert_near(&fixed[0], FLAT.as_flattened());
}

#[cfg(not(feature = "onnxruntime"))]
#[test]
fn a_build_without_onnx_runtime_says_so() {
    use ivoro_vision::engine::onnx::Runtime;
    let settings = OnnxOptions { runtime: Runtime::OnnxRuntime, ..options(&[]) };
    assert!(matches!(refusal(TINY, &settings), OnnxError::NotBuilt));
}
