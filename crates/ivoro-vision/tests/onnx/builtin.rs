//! The built-in engine gives what a runtime gives, and leaves it what it does not know.

use ivoro_vision::convert::convert;
use ivoro_vision::dataset::Shape;
use ivoro_vision::engine::Backbone;
use ivoro_vision::engine::onnx::{Layout, OnnxError, OnnxNetwork, OnnxOptions, Runtime};
use ivoro_vision::{FrozenNetwork, NetworkOptions};

use super::fixtures::{field, file, node, small, value};
use super::mutated::{Mutations, rounds};
use super::{TINY, open, options, refusal};

pub(crate) const SHAPE: Shape = Shape { height: 37, width: 29, channels: 3 };

/// An attribute of whole numbers, or of one.
pub(crate) fn numbers(name: &str, values: &[u8]) -> Vec<u8> {
    let values: Vec<u8> = values.iter().flat_map(|&value| small(8, value)).collect();
    field(5, &[field(1, name.as_bytes()), values, vec![0xa0, 1, 7]].concat())
}

pub(crate) fn number(name: &str, value: u8) -> Vec<u8> {
    field(5, &[field(1, name.as_bytes()), small(3, value), vec![0xa0, 1, 2]].concat())
}

fn float(name: &str, value: f32) -> Vec<u8> {
    let content = [vec![2 << 3 | 5], value.to_le_bytes().to_vec(), vec![0xa0, 1, 1]].concat();
    field(5, &[field(1, name.as_bytes()), content].concat())
}

fn text(name: &str, value: &str) -> Vec<u8> {
    let content = [field(1, name.as_bytes()), field(4, value.as_bytes()), vec![0xa0, 1, 3]];
    field(5, &content.concat())
}

pub(crate) fn operator(
    kind: &str,
    inputs: &[&str],
    output: &str,
    attributes: &[Vec<u8>],
) -> Vec<u8> {
    let inputs: Vec<u8> = inputs.iter().flat_map(|name| field(1, name.as_bytes())).collect();
    let names = [inputs, field(2, output.as_bytes()), field(4, kind.as_bytes())].concat();
    [names, attributes.concat()].concat()
}

pub(crate) fn window(size: u8, step: u8, padding: u8) -> Vec<Vec<u8>> {
    let strides = numbers("strides", &[step; 2]);
    vec![numbers("kernel_shape", &[size; 2]), strides, numbers("pads", &[padding; 4])]
}

/// Any numbers around `middle`.
fn bytes(name: &str, shape: &[u8], middle: f32) -> Vec<u8> {
    let count = shape.iter().map(|&size| usize::from(size)).product::<usize>();
    let seed = name.bytes().fold(7u32, |seed, byte| seed.wrapping_mul(31) + u32::from(byte));
    let spread = 1.5 / (count as f32 / f32::from(shape[0])).sqrt();
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        middle + ((state >> 8) as f32 / (1 << 24) as f32 - 0.5) * spread
    };
    (0..count).flat_map(|_| next().to_le_bytes()).collect()
}

/// A weight of 32-bit floats; `place` holds its bytes or says where they are.
pub(crate) fn tensor(name: &str, shape: &[u8], place: &[u8]) -> Vec<u8> {
    let dimensions: Vec<u8> = shape.iter().flat_map(|&size| small(1, size)).collect();
    [&dimensions[..], &small(2, 1), &field(8, name.as_bytes()), place].concat()
}

/// A weight of any numbers around `middle`.
pub(crate) fn weight(name: &str, shape: &[u8], middle: f32) -> Vec<u8> {
    tensor(name, shape, &field(9, &bytes(name, shape, middle)))
}

/// A residual network with everything in it that the engine knows.
fn residual() -> Vec<u8> {
    let nodes = [
        operator("Conv", &["in", "k0"], "c0", &window(7, 2, 3)),
        operator("BatchNormalization", &["c0", "scale", "shift", "mean", "spread"], "n0", &[]),
        operator("Relu", &["n0"], "r0", &[]),
        operator("MaxPool", &["r0"], "p0", &window(3, 2, 1)),
        operator("Conv", &["p0", "k1", "b1"], "c1", &window(3, 1, 1)),
        operator("Relu", &["c1"], "r1", &[]),
        operator("Conv", &["r1", "k2", "b2"], "c2", &window(3, 1, 1)),
        operator("Add", &["c2", "p0"], "s2", &[]),
        operator("Relu", &["s2"], "r2", &[]),
        operator("Conv", &["r2", "k3", "b3"], "c3", &window(3, 2, 1)),
        operator("Relu", &["c3"], "r3", &[]),
        operator("Conv", &["r3", "k4"], "c4", &window(3, 1, 1)),
        operator("Conv", &["r2", "k5", "b5"], "c5", &window(1, 2, 0)),
        operator("Add", &["c4", "c5"], "s5", &[]),
        operator("Relu", &["s5"], "r5", &[]),
        operator("Add", &["r5", "r5"], "twice", &[]),
        operator("GlobalAveragePool", &["twice"], "g", &[]),
        operator("Flatten", &["g"], "flat", &[number("axis", 1)]),
        operator("Gemm", &["flat", "m", "b"], "answer", &[number("transB", 1)]),
        operator("Gemm", &["answer", "m2"], "more", &[]),
        node("Softmax", "more", "softmax"),
    ];
    let weights = [
        weight("k0", &[16, 3, 7, 7], 0.0),
        weight("scale", &[16], 1.0),
        weight("shift", &[16], 0.2),
        weight("mean", &[16], 0.1),
        weight("spread", &[16], 2.0),
        weight("k1", &[16, 16, 3, 3], 0.0),
        weight("b1", &[16], 0.1),
        weight("k2", &[16, 16, 3, 3], 0.0),
        weight("b2", &[16], -0.1),
        weight("k3", &[24, 16, 3, 3], 0.0),
        weight("b3", &[24], 0.0),
        weight("k4", &[24, 24, 3, 3], 0.0),
        weight("k5", &[24, 16, 1, 1], 0.0),
        weight("b5", &[24], 0.3),
        weight("m", &[5, 24], 0.0),
        weight("b", &[5], 0.0),
        weight("m2", &[5, 2], 0.0),
    ];
    network(&nodes, &weights, "softmax")
}

/// A file of operators and weights.
pub(crate) fn network(nodes: &[Vec<u8>], weights: &[Vec<u8>], output: &str) -> Vec<u8> {
    let nodes: Vec<u8> = nodes.iter().flat_map(|node| field(1, node)).collect();
    let weights: Vec<u8> = weights.iter().flat_map(|weight| field(5, weight)).collect();
    let input = field(11, &value("in", 1, &[0, 3, 37, 29]));
    file(&[nodes, weights, input, field(12, &field(1, output.as_bytes()))].concat())
}

/// A weight of whole numbers.
pub(crate) fn integers(name: &str, values: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let start = [small(1, values.len() as u8), small(2, 7)].concat();
    [start, field(8, name.as_bytes()), field(9, &bytes)].concat()
}

pub(crate) fn pixels(images: usize) -> Vec<u8> {
    (0..images * SHAPE.len()).map(|at| ((at * at) % 251) as u8).collect()
}

/// Asserts that features are those of rten.
fn compare(network: &[u8], names: &[&str]) {
    compare_within(network, names, 2e-6);
}

/// Asserts that features are as near those of rten, by the largest of them.
pub(crate) fn compare_within(network: &[u8], names: &[&str], near: f32) {
    let images = pixels(9);
    let layers: Vec<usize> = (0..names.len()).collect();
    let features = |runtime, batch| {
        let settings = OnnxOptions { runtime, batch, ..options(names) };
        let network = open(network, &settings).unwrap();
        (network.runtime(), network.features(&images, SHAPE, &layers).unwrap())
    };
    let (name, expected) = features(Runtime::Rten, 16);
    assert_eq!(name, "rten");
    for batch in [1, 3, 16] {
        let (name, found) = features(Runtime::Builtin, batch);
        assert_eq!(name, "ivoro");
        for ((found, expected), name) in found.iter().zip(&expected).zip(names) {
            assert_eq!((found.rows(), found.cols()), (9, expected.cols()), "{name}");
            let size = expected.as_slice().iter().fold(0f32, |size, value| size.max(value.abs()));
            assert!(size > 0.01, "{name}: nothing to compare");
            for (found, expected) in found.as_slice().iter().zip(expected.as_slice()) {
                let error = (found - expected).abs() / size;
                assert!(error < near, "{name}: {found} instead of {expected}");
            }
        }
    }
}

#[test]
fn features_are_those_of_rten() {
    let network = residual();
    let names = ["more", "answer", "flat", "r5", "s5", "s2", "r2", "c2", "r0", "p0"];
    compare(&network, &names);
    // Alone: what is no output is merged with what comes after it.
    names.iter().for_each(|name| compare(&network, &[name]));
}

#[test]
fn sums_are_right_wherever_their_parts_come_from() {
    let convolve =
        |input, kernel, output| operator("Conv", &[input, kernel], output, &window(3, 1, 1));
    let weights = [weight("k", &[3, 3, 3, 3], 0.0), weight("k2", &[3, 3, 3, 3], 0.1)];
    let add = |one, other, out| operator("Add", &[one, other], out, &[]);
    let relu = |input, output| operator("Relu", &[input], output, &[]);
    // onto the images; onto what is convolved; of two cut off; of one and itself
    let onto_images = [convolve("in", "k", "c"), add("in", "c", "s"), relu("s", "out")];
    let onto_input =
        [relu("in", "r"), convolve("r", "k", "c"), add("c", "r", "s"), relu("s", "out")];
    let rectified = [
        convolve("in", "k", "c"),
        relu("c", "r"),
        convolve("in", "k2", "c2"),
        relu("c2", "r2"),
        add("r", "r2", "out"),
    ];
    let twice = [convolve("in", "k", "c"), add("c", "c", "s"), relu("s", "out")];
    let later = [
        convolve("in", "k", "c"),
        convolve("c", "k2", "c2"),
        add("c2", "c", "s"),
        add("s", "c", "s2"),
        relu("s2", "out"),
    ];
    for nodes in [&onto_images[..], &onto_input, &rectified, &twice, &later] {
        compare(&network(nodes, &weights, "out"), &["out"]);
    }
}

/// A convolution of 37 rows and 29 columns, its shape and attributes written in full.
fn convolution(groups: u8, kernel: [u8; 2], step: [u8; 2], pads: [u8; 4]) -> Vec<Vec<u8>> {
    vec![
        number("group", groups),
        numbers("kernel_shape", &kernel),
        numbers("strides", &step),
        numbers("pads", &pads),
        numbers("dilations", &[1, 1]),
    ]
}

#[test]
fn convolutions_of_all_kinds_are_those_of_rten() {
    // groups, inputs, outputs, kernel, step, pads
    let kinds = [
        (1, 24, 40, [1, 1], [1, 1], [0; 4]),
        (1, 24, 17, [1, 1], [2, 2], [0; 4]),
        (1, 24, 33, [3, 3], [2, 2], [0, 0, 1, 1]),
        (1, 24, 9, [3, 5], [1, 2], [0, 2, 1, 1]),
        (1, 24, 16, [3, 3], [1, 1], [1, 1, 0, 0]),
        (1, 24, 100, [7, 1], [3, 1], [3, 0, 6, 0]),
        (24, 24, 24, [3, 3], [1, 1], [1; 4]),
        (24, 24, 24, [3, 3], [2, 2], [0, 0, 1, 1]),
        (24, 24, 24, [5, 5], [1, 1], [2; 4]),
        (24, 24, 24, [5, 5], [2, 2], [1, 1, 2, 2]),
        (24, 24, 24, [5, 5], [2, 2], [4; 4]),
        (24, 24, 24, [7, 7], [1, 1], [3; 4]),
        (24, 24, 24, [3, 3], [1, 2], [1; 4]),
        (24, 24, 48, [3, 3], [1, 1], [1; 4]),
        (4, 24, 24, [3, 3], [1, 1], [1; 4]),
        (3, 24, 6, [1, 1], [1, 1], [0; 4]),
        (9, 9, 9, [3, 3], [1, 1], [1; 4]),
    ];
    for (groups, inputs, outputs, kernel, step, pads) in kinds {
        let nodes = [
            operator("Conv", &["in", "k0", "b0"], "c0", &window(1, 1, 0)),
            operator("Conv", &["c0", "k", "b"], "c", &convolution(groups, kernel, step, pads)),
            operator("Relu", &["c"], "out", &[]),
        ];
        let weights = [
            weight("k0", &[inputs, 3, 1, 1], 0.0),
            weight("b0", &[inputs], 0.5),
            weight("k", &[outputs, inputs / groups, kernel[0], kernel[1]], 0.0),
            weight("b", &[outputs], 0.2),
        ];
        compare(&network(&nodes, &weights, "out"), &["c", "out"]);
    }
}

#[test]
fn same_padding_is_that_of_rten() {
    for kind in ["SAME_UPPER", "VALID", "NOTSET"] {
        for step in [1, 2, 3] {
            let strides = numbers("strides", &[step; 2]);
            let rest = [numbers("dilations", &[1, 1]), numbers("pads", &[0; 4])];
            let attributes = [vec![text("auto_pad", kind), strides], rest.to_vec()].concat();
            let nodes = [operator("Conv", &["in", "k"], "out", &attributes)];
            compare(&network(&nodes, &[weight("k", &[8, 3, 4, 4], 0.1)], "out"), &["out"]);
        }
    }
}

#[test]
fn same_padding_begins_above_and_left_where_it_says_lower() {
    // rten takes SAME_LOWER for SAME_UPPER; ONNX Runtime has the numbers of these pads.
    let features = |padding: Vec<u8>| {
        let nodes = [operator("Conv", &["in", "k"], "out", &[padding])];
        let network = network(&nodes, &[weight("k", &[8, 3, 4, 4], 0.1)], "out");
        let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(&[]) };
        open(&network, &settings).unwrap().features(&pixels(2), SHAPE, &[0]).unwrap()
    };
    let (lower, upper) = (numbers("pads", &[2, 2, 1, 1]), numbers("pads", &[1, 1, 2, 2]));
    assert_eq!(features(text("auto_pad", "SAME_LOWER")), features(lower));
    assert_eq!(features(text("auto_pad", "SAME_UPPER")), features(upper));
}

/// The operators of "same" padding as PyTorch writes them: pads of the last axis come first, and
/// ONNX wants them from the first axis on, those before all axes before those after them.
fn padding(input: &str, output: &str) -> Vec<Vec<u8>> {
    let constant = |name: &str, numbers: &[i64]| {
        let value = field(5, &integers(name, numbers));
        let attribute = field(5, &[field(1, b"value"), value, vec![0xa0, 1, 4]].concat());
        [field(2, name.as_bytes()), field(4, b"Constant"), attribute].concat()
    };
    let zero = field(5, &integers("zero", &[0]));
    let zero = field(5, &[field(1, b"value"), zero, vec![0xa0, 1, 4]].concat());
    vec![
        constant("length", &[4]),
        constant("given", &[0, 1, 2, 1]),
        operator("ConstantOfShape", &["length"], "rest", &[zero]),
        operator("Concat", &["given", "rest"], "all", &[number("axis", 0)]),
        constant("pairs", &[-1, 2]),
        operator("Reshape", &["all", "pairs"], "paired", &[]),
        constant("axis", &[0]),
        constant("from", &[-1]),
        constant("to", &[i64::MIN + 1]),
        constant("back", &[-1]),
        operator("Slice", &["paired", "from", "to", "axis", "back"], "turned", &[]),
        operator("Transpose", &["turned"], "columns", &[numbers("perm", &[1, 0])]),
        constant("one", &[-1]),
        operator("Reshape", &["columns", "one"], "list", &[]),
        operator("Cast", &["list"], "pads", &[number("to", 7)]),
        operator("Pad", &[input, "pads"], output, &[text("mode", "constant")]),
    ]
}

#[test]
fn padding_worked_out_by_operators_becomes_that_of_the_convolution() {
    let scalar = |name: &str, value: f32| tensor(name, &[], &field(9, &value.to_le_bytes()));
    let limits = [scalar("most", 0.1), scalar("least", -0.1)];
    let tail = [
        operator("Conv", &["padded", "k"], "c", &convolution(1, [3, 3], [2, 2], [0; 4])),
        operator("Clip", &["c", "least", "most"], "out", &[]),
    ];
    let nodes = [padding("in", "padded"), tail.to_vec()].concat();
    let weights = [vec![weight("k", &[8, 3, 3, 3], 0.1)], limits.to_vec()].concat();
    let file = network(&nodes, &weights, "out");
    compare(&file, &["c"]);
    compare(&file, &["out"]);
}

/// A block as MobileNetV3 and EfficientNet have it: each channel by itself, a gate of some kind for
/// each channel, SiLU written as a product, and no more channels than there were.
fn gated(kind: &str) -> Vec<u8> {
    let nodes = [
        operator("Conv", &["in", "k", "b"], "c0", &window(3, 2, 1)),
        operator("Conv", &["c0", "k3", "b"], "c", &convolution(20, [5, 5], [1, 1], [2; 4])),
        operator("GlobalAveragePool", &["c"], "g", &[]),
        operator("Conv", &["g", "k1", "b1"], "squeezed", &window(1, 1, 0)),
        operator("Relu", &["squeezed"], "less", &[]),
        operator("Conv", &["less", "k2", "b"], "wide", &window(1, 1, 0)),
        operator(kind, &["wide"], "factors", &[]),
        operator("Mul", &["factors", "c"], "scaled", &[]),
        operator("Sigmoid", &["scaled"], "sigmoid", &[]),
        operator("Mul", &["scaled", "sigmoid"], "silu", &[]),
        operator("HardSwish", &["silu"], "swish", &[]),
        operator("HardSigmoid", &["swish"], "hard", &[float("alpha", 1.0 / 6.0)]),
        operator("Mul", &["hard", "swish"], "out", &[]),
    ];
    let weights = [
        weight("k", &[20, 3, 3, 3], 0.1),
        weight("b", &[20], 0.3),
        weight("k3", &[20, 1, 5, 5], 0.05),
        weight("k1", &[4, 20, 1, 1], 0.2),
        weight("b1", &[4], 0.3),
        weight("k2", &[20, 4, 1, 1], 0.1),
    ];
    network(&nodes, &weights, "out")
}

#[test]
fn gates_and_squeezed_channels_are_those_of_rten() {
    for kind in ["Sigmoid", "HardSigmoid"] {
        let names = ["out", "hard", "swish", "silu", "scaled", "factors"];
        compare(&gated(kind), &names);
        names.iter().for_each(|name| compare(&gated(kind), &[name]));
    }
}

#[test]
fn means_of_windows_are_those_of_rten() {
    for padded in [0, 1] {
        let attributes = [window(3, 2, 1), vec![number("count_include_pad", padded)]].concat();
        let pool = operator("AveragePool", &["in"], "out", &attributes);
        compare(&network(&[pool], &[], "out"), &["out"]);
    }
}

/// A network whose padding these nodes work out.
fn padded_by(nodes: &[Vec<u8>], weights: &[Vec<u8>]) -> Vec<u8> {
    let pad = operator("Pad", &["in", "pads"], "padded", &[text("mode", "constant")]);
    let tail = [pad, operator("Conv", &["padded", "k"], "out", &[])];
    let weights = [weights, &[weight("k", &[3, 3, 3, 3], 0.0)]].concat();
    network(&[nodes, &tail].concat(), &weights, "out")
}

#[test]
fn programs_of_constants_without_end_or_sense_are_refused() {
    let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(&[]) };
    let good = [integers("pads", &[0, 0, 1, 0, 0, 0, 1, 2])];
    assert!(open(&padded_by(&[], &good), &settings).is_ok());
    for pads in [
        &[0, 0, 3, 0, 0, 0, 1, 1][..],
        &[0, 0, -1, 0, 0, 0, 0, 0],
        &[0, 0, i64::MAX, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 1, 1],
    ] {
        assert!(open(&padded_by(&[], &[integers("pads", pads)]), &settings).is_err(), "{pads:?}");
    }
    let one = |kind: &str, inputs: &[&str], attributes: &[Vec<u8>]| {
        [operator(kind, inputs, "pads", attributes)]
    };
    let weights = [
        integers("huge", &[1 << 40, 1 << 40]),
        integers("many", &[1 << 30]),
        integers("eight", &[0, 0, 1, 1, 0, 0, 1, 1]),
        integers("zero", &[0]),
        integers("far", &[8]),
        integers("open", &[-1, -1]),
        integers("minus", &[i64::MIN]),
    ];
    let nodes = [
        one("ConstantOfShape", &["huge"], &[]),
        one("ConstantOfShape", &["many"], &[]),
        one("Gather", &["eight", "far"], &[]),
        one("Gather", &["eight", "minus"], &[]),
        one("Reshape", &["eight", "open"], &[]),
        one("Reshape", &["eight", "minus"], &[]),
        one("Slice", &["eight", "zero", "far", "zero", "zero"], &[]),
        one("Slice", &["eight", "zero", "far", "far"], &[]),
        one("Slice", &["eight", "zero", "open"], &[]),
        one("Transpose", &["eight"], &[numbers("perm", &[0, 0])]),
        one("Transpose", &["eight"], &[numbers("perm", &[3])]),
        one("Unsqueeze", &["eight", "far"], &[]),
        one("Concat", &["eight", "zero"], &[number("axis", 1)]),
        one("Concat", &[], &[]),
        one("Div", &["eight", "zero"], &[]),
        one("Cast", &["eight"], &[number("to", 9)]),
    ];
    // Nothing, 2⁴² times over: the places of no numbers are not counted one by one.
    let empty = [
        [vec![1 << 3, 128, 128, 128, 128, 128, 128, 1], small(1, 0), small(2, 7)].concat(),
        field(8, b"nothing"),
    ];
    let weights = [&weights[..], &[empty.concat(), integers("none", &[])]].concat();
    let nodes = nodes.into_iter().chain([
        one("Gather", &["nothing", "none"], &[number("axis", 1)]),
        one("Concat", &["nothing", "nothing"], &[number("axis", 1)]),
    ]);
    for node in nodes {
        let name = String::from_utf8_lossy(&node[0]).into_owned();
        assert!(open(&padded_by(&node, &weights), &settings).is_err(), "{name}");
    }
}

#[test]
fn the_ways_to_write_a_mean_are_known() {
    let mean = |attributes: &[Vec<u8>]| operator("ReduceMean", &["in"], "m", attributes);
    let (axes, drop_axes) = (numbers("axes", &[2, 3]), number("keepdims", 0));
    let pool = operator("GlobalAveragePool", &["in"], "m", &[]);
    let value = field(5, &weight("w", &[3, 2], 0.2));
    let matrix = field(5, &[field(1, b"value"), value, vec![0xa0, 1, 4]].concat());
    let tail = |input| {
        [
            operator("Identity", &[input], "i", &[]),
            [field(2, b"w"), field(4, b"Constant"), matrix.clone()].concat(),
            operator("Gemm", &["i", "w"], "out", &[]),
        ]
    };
    let ways = [
        vec![mean(&[axes.clone(), drop_axes]), operator("Identity", &["m"], "f", &[])],
        vec![mean(&[axes]), operator("Flatten", &["m"], "f", &[])],
        vec![pool.clone(), operator("Squeeze", &["m", "pixels"], "f", &[])],
        vec![pool.clone(), operator("Reshape", &["m", "any"], "f", &[])],
        vec![pool, operator("Reshape", &["m", "three"], "f", &[number("allowzero", 1)])],
    ];
    let weights =
        [integers("pixels", &[-1, 2]), integers("any", &[0, -1]), integers("three", &[-1, 3])];
    for way in ways {
        compare(&network(&[way, tail("f").to_vec()].concat(), &weights, "out"), &["out"]);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_features() {
    let images = pixels(9);
    let cases = [(residual(), ["answer", "s2"]), (gated("Sigmoid"), ["out", "scaled"])];
    // One image is shared by all threads; nine are parts, a thread for each.
    for ((network, outputs), count) in cases.iter().flat_map(|case| [(case, 1), (case, 9)]) {
        let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(outputs) };
        let network = open(network, &settings).unwrap();
        let images = &images[..count * SHAPE.len()];
        let features = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| network.features(images, SHAPE, &[0, 1]).unwrap())
        };
        let one = features(1);
        assert_eq!(one[0].rows(), count);
        assert_eq!(features(3), one);
        assert_eq!(features(4), one);
    }
}

#[test]
fn what_it_does_not_know_is_left_to_a_runtime() {
    let settings = |runtime, outputs: &[&str]| OnnxOptions { runtime, ..options(outputs) };
    let whole = residual();
    let error = refusal(&whole, &settings(Runtime::Builtin, &[]));
    assert!(matches!(error, OnnxError::Refused { runtime: "ivoro", .. }), "{error}");
    let rten = open(&whole, &settings(Runtime::Automatic, &[])).unwrap();
    assert_ne!(rten.runtime(), "ivoro");
    // The mean and what else is needed are known; the rest of the network is not looked at.
    let own = open(&whole, &settings(Runtime::Builtin, &["flat"])).unwrap();
    assert_eq!((own.runtime(), own.layers()), ("ivoro", &[("flat".to_owned(), 24)][..]));
    assert_eq!(open(TINY, &settings(Runtime::Builtin, &["flat"])).unwrap().runtime(), "ivoro");
    let one = |kind: &str, inputs: &[&str], attributes: &[Vec<u8>], weights: &[Vec<u8>]| {
        network(&[operator(kind, inputs, "out", attributes)], weights, "out")
    };
    let refused = |network: &[u8]| {
        let error = refusal(network, &settings(Runtime::Builtin, &[]));
        assert!(matches!(error, OnnxError::Refused { runtime: "ivoro", .. }), "{error}");
    };
    let kernel = [weight("k", &[3, 3, 3, 3], 0.0)];
    let convolve = |attributes: &[Vec<u8>]| one("Conv", &["in", "k"], attributes, &kernel);
    assert!(open(&convolve(&[]), &settings(Runtime::Builtin, &[])).is_ok());
    for attributes in [
        numbers("dilations", &[2, 2]),
        numbers("pads", &[1, 1]),
        numbers("pads", &[9, 9, 9, 9]),
        numbers("strides", &[0, 0]),
        numbers("strides", &[1, 0]),
        numbers("kernel_shape", &[3]),
        text("auto_pad", "SAME"),
    ] {
        refused(&convolve(&[attributes]));
    }
    for (groups, shape) in [(3, [3, 3, 3, 3]), (2, [3, 1, 3, 3]), (3, [4, 1, 3, 3]), (0, [3; 4])] {
        let kernel = weight("k", &shape, 0.0);
        refused(&one("Conv", &["in", "k"], &[number("group", groups)], &[kernel]));
    }
    refused(&one(
        "MaxPool",
        &["in"],
        &[window(2, 2, 0), vec![number("ceil_mode", 1)]].concat(),
        &[],
    ));
    refused(&one("Flatten", &["in"], &[], &[]));
    refused(&one("ReduceMean", &["in"], &[numbers("axes", &[1, 2])], &[]));
    let dropout = |inputs: &[&str]| one("Dropout", inputs, &[], &[]);
    assert!(open(&dropout(&["in"]), &settings(Runtime::Builtin, &[])).is_ok());
    refused(&dropout(&["in", "", "training"]));
    // A name for two values, which changes what it stands for.
    let twice = [operator("Relu", &["in"], "x", &[]), operator("Relu", &["x"], "x", &[])];
    refused(&network(&twice, &[], "x"));
}

#[test]
fn weights_may_lie_in_a_file_beside_the_network() {
    let nodes = [operator("Conv", &["in", "k", "b"], "out", &window(3, 1, 1))];
    let (kernel, bias) = (bytes("k", &[4, 3, 3, 3], 0.0), bytes("b", &[4], 0.5));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.onnx");
    std::fs::write(folder.path().join("net.data"), [&[7; 8], &kernel[..], &bias].concat()).unwrap();
    let outside = |start: usize, length: Option<usize>| {
        let entry = |key: &str, text: &str| {
            field(13, &[field(1, key.as_bytes()), field(2, text.as_bytes())].concat())
        };
        let length = length.map(|length| entry("length", &length.to_string()));
        let place = [entry("location", "net.data"), entry("offset", &start.to_string())];
        [place.concat(), length.unwrap_or_default(), small(14, 1)].concat()
    };
    let features = |kernel: &[u8], bias: &[u8]| {
        let weights = [tensor("k", &[4, 3, 3, 3], kernel), tensor("b", &[4], bias)];
        std::fs::write(&path, network(&nodes, &weights, "out")).unwrap();
        let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(&[]) };
        let network = OnnxNetwork::open(&path, &settings)?;
        network.features(&pixels(2), SHAPE, &[0])
    };
    let inside = features(&field(9, &kernel), &field(9, &bias)).unwrap();
    let (first, second) = (outside(8, Some(kernel.len())), outside(8 + kernel.len(), None));
    assert_eq!(features(&first, &second).unwrap(), inside);
    // beyond the end of the file, and numbers of a list instead of bytes
    assert!(features(&first, &outside(9 + kernel.len(), Some(16))).is_err());
    assert_eq!(features(&first, &field(4, &bias)).unwrap(), inside);
}

#[test]
fn the_order_of_axes_of_values_is_heeded() {
    let relu = network(&[operator("Relu", &["in"], "out", &[])], &[], "out");
    let sizes = |value_layout| {
        let settings = OnnxOptions { runtime: Runtime::Automatic, value_layout, ..options(&[]) };
        open(&relu, &settings).unwrap().layers()[0].1
    };
    assert_eq!(sizes(None), SHAPE.channels);
    assert_eq!(sizes(Some(Layout::ChannelsLast)), SHAPE.width);
}

#[test]
fn weights_without_numbers_are_refused() {
    // Dimensions of which one is 0 say nothing of the others.
    let empty = |name: &str, shape: &[u64]| {
        let size = |&size: &u64| {
            let mut out = vec![1 << 3];
            let mut rest = size;
            while rest >= 0x80 {
                out.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
            out
        };
        let dimensions: Vec<u8> = shape.iter().flat_map(size).collect();
        [dimensions, small(2, 1), field(8, name.as_bytes())].concat()
    };
    let convolve = operator("Conv", &["in", "k"], "c", &[]);
    let normalise = operator("BatchNormalization", &["c", "s", "s2", "s3", "s4"], "out", &[]);
    let scales = ["s", "s2", "s3", "s4"].map(|name| weight(name, &[4], 1.0));
    let pool = operator("GlobalAveragePool", &["in"], "m", &[]);
    let linear =
        [pool, operator("Flatten", &["m"], "f", &[]), operator("Gemm", &["f", "k"], "out", &[])];
    let networks = [
        network(std::slice::from_ref(&convolve), &[empty("k", &[1 << 62, 3, 0, 0])], "c"),
        network(
            &[convolve, normalise],
            &[&[empty("k", &[4, 3, 0, 0])], &scales[..]].concat(),
            "out",
        ),
        network(&linear, &[empty("k", &[0, 1 << 62])], "out"),
    ];
    for network in networks {
        for runtime in [Runtime::Builtin, Runtime::Automatic] {
            let settings = OnnxOptions { runtime, ..options(&[]) };
            assert!(open(&network, &settings).is_err());
        }
    }
}

/// Opens lists of operations with changed bytes.
fn changed_lists_give_a_network_or_an_error(list: &[u8]) {
    let (mut mutations, mut loaded) = (Mutations::new(22), 0);
    for _ in 0..rounds(300) {
        let bytes = mutations.of(list);
        let opened =
            FrozenNetwork::from_bytes("n.safetensors".as_ref(), bytes, &NetworkOptions::default());
        if let Ok(network) = opened
            && network.backbone().shape() == Some(SHAPE)
        {
            network.backbone().features(&pixels(1), SHAPE, &[0]).unwrap();
            loaded += 1;
        }
    }
    assert!(loaded > 0);
}

#[test]
fn a_network_becomes_a_list_of_operations_in_half_the_bytes() {
    let padded = padding("in", "padded");
    let nodes = [
        operator("Conv", &["padded", "k", "b"], "c", &[numbers("strides", &[2; 2])]),
        operator("Clip", &["c", "zero0", "six"], "r", &[]),
        operator("Conv", &["r", "k1"], "d", &convolution(8, [3, 3], [1, 1], [1; 4])),
        operator("Add", &["d", "r"], "s", &[]),
        operator("Relu", &["s"], "t", &[]),
        operator("GlobalAveragePool", &["t"], "g", &[]),
        operator("Flatten", &["g"], "out", &[number("axis", 1)]),
    ];
    let nodes = [padded, nodes.to_vec()].concat();
    let weights = [
        weight("k", &[8, 3, 3, 3], 0.1),
        weight("b", &[8], 0.1),
        weight("k1", &[8, 1, 3, 3], 0.1),
        weight("six", &[1], 6.0),
        weight("zero0", &[1], -0.1),
    ];
    let onnx = network(&nodes, &weights, "out");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.onnx");
    std::fs::write(&path, &onnx).unwrap();
    let names = ["out", "r"];
    let networks = NetworkOptions {
        onnx_outputs: names.map(str::to_owned).into(),
        normalisation: options(&[]).normalisation,
        ..NetworkOptions::default()
    };
    let made = convert(&path, "net", &[], &networks).unwrap();
    changed_lists_give_a_network_or_an_error(&made.bytes);
    assert_eq!(convert(&path, "net", &[], &networks).unwrap().bytes, made.bytes);
    let opened =
        FrozenNetwork::from_bytes("n.safetensors".as_ref(), made.bytes, &NetworkOptions::default());
    let opened = opened.unwrap();
    assert_eq!(opened.fingerprint(), made.hash);
    let backbone = opened.backbone();
    assert_eq!(backbone.shape(), Some(SHAPE));
    assert_eq!(backbone.layers(), [("last".to_owned(), 8), ("r".to_owned(), 8)]);
    let images = pixels(5);
    let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(&names) };
    let expected = open(&onnx, &settings).unwrap();
    let expected = expected.features(&images, SHAPE, &[0, 1]).unwrap();
    let found = backbone.features(&images, SHAPE, &[0, 1]).unwrap();
    for (found, expected) in found.iter().zip(&expected) {
        let size = expected.as_slice().iter().fold(0f32, |size, value| size.max(value.abs()));
        assert!(size > 0.01, "nothing to compare");
        for (found, expected) in found.as_slice().iter().zip(expected.as_slice()) {
            // kernels have 11 bits
            assert!((found - expected).abs() < 2e-3 * size, "{found} instead of {expected}");
        }
    }
    // images of another size are not for it
    let wide = Shape { width: 30, ..SHAPE };
    assert!(backbone.features(&vec![0; wide.len()], wide, &[0]).is_err());
    // what is no list of these operations is refused
    std::fs::write(&path, residual()).unwrap();
    let refused = convert(&path, "net", &[], &NetworkOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("convolutions, sums and limits"), "{refused}");
}
