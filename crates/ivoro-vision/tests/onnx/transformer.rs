//! Transformers in our own engine, as exporters write them: what it gives is what a runtime gives.

use ivoro_vision::engine::Backbone;
use ivoro_vision::engine::onnx::{OnnxOptions, Runtime};

use super::builtin::{
    SHAPE, compare_within, integers, network, number, numbers, operator, pixels, tensor, weight,
    window,
};
use super::fixtures::field;
use super::mutated::{Mutations, rounds};
use super::{open, options, refusal};

/// Numbers of a token, heads, and tokens: 4 × 3 windows of 8 pixels.
const SIZE: u8 = 16;
const HEADS: i64 = 2;
const TOKENS: u8 = 12;
/// How far numbers may be from a runtime's, by the largest: products are summed in another order.
const NEAR: f32 = 1e-5;

/// Operators and weights that are being written.
#[derive(Default)]
struct Writer {
    nodes: Vec<Vec<u8>>,
    weights: Vec<Vec<u8>>,
    count: usize,
}

impl Writer {
    fn name(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }

    fn add(&mut self, kind: &str, inputs: &[&str], attributes: &[Vec<u8>]) -> String {
        let name = self.name();
        self.nodes.push(operator(kind, inputs, &name, attributes));
        name
    }

    fn floats(&mut self, shape: &[u8], middle: f32) -> String {
        let name = self.name();
        self.weights.push(weight(&name, shape, middle));
        name
    }

    fn scalar(&mut self, value: f32) -> String {
        let name = self.name();
        self.weights.push(tensor(&name, &[], &field(9, &value.to_le_bytes())));
        name
    }

    fn sizes(&mut self, values: &[i64]) -> String {
        let name = self.name();
        self.weights.push(integers(&name, values));
        name
    }

    fn reshape(&mut self, x: &str, sizes: &[i64]) -> String {
        let sizes = self.sizes(sizes);
        self.add("Reshape", &[x, &sizes], &[])
    }

    fn transpose(&mut self, x: &str, order: &[u8]) -> String {
        self.add("Transpose", &[x], &[numbers("perm", order)])
    }

    fn with(&mut self, kind: &str, x: &str, number: f32) -> String {
        let number = self.scalar(number);
        self.add(kind, &[x, &number], &[])
    }

    fn linear(&mut self, x: &str, inputs: u8, outputs: u8) -> String {
        let (matrix, bias) = (self.floats(&[inputs, outputs], 0.0), self.floats(&[outputs], 0.1));
        let product = self.add("MatMul", &[x, &matrix], &[]);
        self.add("Add", &[&bias, &product], &[])
    }

    fn norm(&mut self, x: &str) -> String {
        let (factor, shift) = (self.floats(&[SIZE], 1.0), self.floats(&[SIZE], 0.1));
        self.add("LayerNormalization", &[x, &factor, &shift], &[])
    }

    /// A layer norm as it is written for older sets of operators.
    fn written_norm(&mut self, x: &str) -> String {
        let last = [numbers_signed("axes", -1)];
        let mean = self.add("ReduceMean", &[x], &last);
        let distance = self.add("Sub", &[x, &mean], &[]);
        let square = self.with("Pow", &distance, 2.0);
        let variance = self.add("ReduceMean", &[&square], &last);
        let more = self.with("Add", &variance, 1e-5);
        let deviation = self.add("Sqrt", &[&more], &[]);
        let normal = self.add("Div", &[&distance, &deviation], &[]);
        let (factor, shift) = (self.floats(&[SIZE], 1.0), self.floats(&[SIZE], 0.1));
        let scaled = self.add("Mul", &[&normal, &factor], &[]);
        self.add("Add", &[&scaled, &shift], &[])
    }

    /// Windows of the image as tokens.
    fn tokens(&mut self) -> String {
        let (kernel, bias) = (self.floats(&[SIZE, 3, 8, 8], 0.0), self.floats(&[SIZE], 0.1));
        let map = self.add("Conv", &["in", &kernel, &bias], &window(8, 8, 0));
        let rows = self.reshape(&map, &[0, SIZE.into(), -1]);
        self.transpose(&rows, &[0, 2, 1])
    }

    /// A token put before all others, with its size worked out from that of the value.
    fn with_class(&mut self, x: &str) -> String {
        let shape = self.add("Shape", &[x], &[]);
        let (zero, one) = (self.sizes(&[0]), self.sizes(&[1]));
        let images = self.add("Gather", &[&shape, &zero], &[number("axis", 0)]);
        let rest = self.sizes(&[1, SIZE.into()]);
        let sizes = self.add("Concat", &[&images, &rest], &[number("axis", 0)]);
        let open = self.add("Mul", &[&one, &one], &[]);
        let told = self.add("Mul", &[&sizes, &open], &[]);
        let token = self.floats(&[1, 1, SIZE], 0.3);
        let tokens = self.add("Expand", &[&token, &told], &[]);
        let all = self.add("Concat", &[&tokens, x], &[number("axis", 1)]);
        let places = self.floats(&[1, TOKENS + 1, SIZE], 0.0);
        self.add("Add", &[&all, &places], &[])
    }

    /// Weights of similarities times values.
    fn mix(&mut self, [queries, keys, values]: [&str; 3], order: &[u8], factor: f32) -> String {
        let root = factor.sqrt();
        let queries = self.with("Mul", queries, root);
        let keys = self.transpose(keys, order);
        let keys = self.with("Mul", &keys, root);
        let scores = self.add("MatMul", &[&queries, &keys], &[]);
        let weights = self.add("Softmax", &[&scores], &[]);
        self.add("MatMul", &[&weights, values], &[])
    }

    /// Attention with one linear map for queries, keys and values.
    fn joined_attention(&mut self, x: &str, tokens: i64) -> String {
        let all = self.linear(x, SIZE, 3 * SIZE);
        let heads = self.reshape(&all, &[-1, tokens, 3, HEADS, i64::from(SIZE) / HEADS]);
        let heads = self.transpose(&heads, &[2, 0, 3, 1, 4]);
        let parts = [self.name(), self.name(), self.name()];
        let split = operator("Split", &[&heads], &parts[0], &[number("axis", 0)]);
        let more = [field(2, parts[1].as_bytes()), field(2, parts[2].as_bytes())].concat();
        self.nodes.push([split, more].concat());
        let axis = self.sizes(&[0]);
        let [queries, keys, values] = parts.map(|part| self.add("Squeeze", &[&part, &axis], &[]));
        let mixed = self.mix([&queries, &keys, &values], &[0, 1, 3, 2], 0.4);
        let mixed = self.transpose(&mixed, &[0, 2, 1, 3]);
        let mixed = self.reshape(&mixed, &[-1, tokens, SIZE.into()]);
        self.linear(&mixed, SIZE, SIZE)
    }

    /// Attention with three linear maps and a number after the product.
    fn parted_attention(&mut self, x: &str, tokens: i64) -> String {
        let [queries, keys, values] = [0, 1, 2].map(|_| {
            let part = self.linear(x, SIZE, SIZE);
            self.reshape(&part, &[-1, tokens, HEADS, i64::from(SIZE) / HEADS])
        });
        let queries = self.transpose(&queries, &[0, 2, 1, 3]);
        let keys = self.transpose(&keys, &[0, 2, 3, 1]);
        let values = self.transpose(&values, &[0, 2, 1, 3]);
        let scores = self.add("MatMul", &[&queries, &keys], &[]);
        let scores = self.with("Div", &scores, 2.5);
        let weights = self.add("Softmax", &[&scores], &[]);
        let mixed = self.add("MatMul", &[&weights, &values], &[]);
        let mixed = self.transpose(&mixed, &[0, 2, 1, 3]);
        let mixed = self.reshape(&mixed, &[-1, tokens, SIZE.into()]);
        self.linear(&mixed, SIZE, SIZE)
    }

    /// Attention with images in the second axis and heads beside them, as PyTorch's own module has it.
    fn turned_attention(&mut self, x: &str, tokens: i64) -> String {
        let x = self.transpose(x, &[1, 0, 2]);
        let all = self.linear(&x, SIZE, 3 * SIZE);
        let all = self.reshape(&all, &[tokens, -1, 3, SIZE.into()]);
        let all = self.transpose(&all, &[2, 0, 1, 3]);
        let parts = [0, 1, 2].map(|at| {
            let place = self.name();
            self.weights.push(tensor_of_integer(&place, at));
            let part = self.add("Gather", &[&all, &place], &[number("axis", 0)]);
            let heads = self.reshape(&part, &[tokens, -1, i64::from(SIZE) / HEADS]);
            self.transpose(&heads, &[1, 0, 2])
        });
        let parts = [&parts[0][..], &parts[1], &parts[2]];
        let mixed = self.mix(parts, &[0, 2, 1], 0.4);
        let mixed = self.transpose(&mixed, &[1, 0, 2]);
        let rows = self.reshape(&mixed, &[-1, SIZE.into()]);
        let (matrix, bias) = (self.floats(&[SIZE, SIZE], 0.0), self.floats(&[SIZE], 0.1));
        let rows = self.add("Gemm", &[&rows, &matrix, &bias], &[number("transB", 1)]);
        let back = self.reshape(&rows, &[tokens, -1, SIZE.into()]);
        self.transpose(&back, &[1, 0, 2])
    }

    fn gelu(&mut self, x: &str, kind: &str) -> String {
        match kind {
            "erf" => {
                let root = self.with("Div", x, 2f32.sqrt());
                let error = self.add("Erf", &[&root], &[]);
                let more = self.with("Add", &error, 1.0);
                let product = self.add("Mul", &[x, &more], &[]);
                self.with("Mul", &product, 0.5)
            }
            "tanh" => {
                let cube = self.with("Pow", x, 3.0);
                let part = self.with("Mul", &cube, 0.044_715);
                let sum = self.add("Add", &[x, &part], &[]);
                let inner = self.with("Mul", &sum, 0.797_884_6);
                let tanh = self.add("Tanh", &[&inner], &[]);
                let more = self.with("Add", &tanh, 1.0);
                let half = self.with("Mul", x, 0.5);
                self.add("Mul", &[&half, &more], &[])
            }
            _ => {
                let wide = self.with("Mul", x, 1.702);
                let gate = self.add("Sigmoid", &[&wide], &[]);
                self.add("Mul", &[x, &gate], &[])
            }
        }
    }

    /// What is added to the tokens, times a factor for each number.
    fn scaled(&mut self, x: &str) -> String {
        let factors = self.floats(&[SIZE], 0.5);
        self.add("Mul", &[x, &factors], &[])
    }

    fn hidden(&mut self, x: &str, kind: &str) -> String {
        let inside = self.linear(x, SIZE, 4 * SIZE);
        let inside = self.gelu(&inside, kind);
        self.linear(&inside, 4 * SIZE, SIZE)
    }

    fn network(self, output: &str) -> Vec<u8> {
        network(&self.nodes, &self.weights, output)
    }
}

/// An attribute of one number that may be below 0.
fn numbers_signed(name: &str, value: i64) -> Vec<u8> {
    let mut bytes = vec![8 << 3];
    let mut rest = value.cast_unsigned();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    field(5, &[field(1, name.as_bytes()), bytes, vec![0xa0, 1, 7]].concat())
}

/// A weight of no dimensions: one whole number.
fn tensor_of_integer(name: &str, value: i64) -> Vec<u8> {
    [&[2 << 3, 7][..], &field(8, name.as_bytes()), &field(9, &value.to_le_bytes())].concat()
}

/// As timm and DINOv2 have it: one map for all three, a class token, a factor for each number.
pub(crate) fn joined() -> (Vec<u8>, String) {
    let mut writer = Writer::default();
    let x = writer.tokens();
    let x = writer.with_class(&x);
    let inside = writer.norm(&x);
    let inside = writer.joined_attention(&inside, i64::from(TOKENS) + 1);
    let inside = writer.scaled(&inside);
    let x = writer.add("Add", &[&x, &inside], &[]);
    let inside = writer.norm(&x);
    let inside = writer.hidden(&inside, "erf");
    let inside = writer.scaled(&inside);
    let x = writer.add("Add", &[&x, &inside], &[]);
    let x = writer.norm(&x);
    let place = writer.name();
    writer.weights.push(tensor_of_integer(&place, 0));
    let token = writer.add("Gather", &[&x, &place], &[number("axis", 1)]);
    (writer.network(&token), token)
}

/// As CLIP has it: three maps, a norm before and after, the class token through a norm of its own and a map
/// without a shift.
fn parted() -> (Vec<u8>, String) {
    let mut writer = Writer::default();
    let x = writer.tokens();
    let x = writer.with_class(&x);
    let x = writer.written_norm(&x);
    let inside = writer.written_norm(&x);
    let inside = writer.parted_attention(&inside, i64::from(TOKENS) + 1);
    let x = writer.add("Add", &[&inside, &x], &[]);
    let inside = writer.written_norm(&x);
    let inside = writer.hidden(&inside, "quick");
    let x = writer.add("Add", &[&x, &inside], &[]);
    let (from, to, axis) = (writer.sizes(&[0]), writer.sizes(&[1]), writer.sizes(&[1]));
    let token = writer.add("Slice", &[&x, &from, &to, &axis], &[]);
    let token = writer.add("Squeeze", &[&token, &axis], &[]);
    let token = writer.written_norm(&token);
    let matrix = writer.floats(&[SIZE, 7], 0.0);
    let answer = writer.add("MatMul", &[&token, &matrix], &[]);
    (writer.network(&answer), answer)
}

/// As PyTorch's own module has it, without a class token: the mean of all tokens.
fn turned() -> (Vec<u8>, String) {
    let mut writer = Writer::default();
    let x = writer.tokens();
    let places = writer.floats(&[1, TOKENS, SIZE], 0.0);
    let x = writer.add("Add", &[&x, &places], &[]);
    let inside = writer.norm(&x);
    let inside = writer.turned_attention(&inside, TOKENS.into());
    let x = writer.add("Add", &[&x, &inside], &[]);
    let inside = writer.norm(&x);
    let inside = writer.hidden(&inside, "tanh");
    let x = writer.add("Add", &[&inside, &x], &[]);
    let mean = [numbers("axes", &[1]), number("keepdims", 0)];
    let x = writer.add("ReduceMean", &[&x], &mean);
    let answer = writer.norm(&x);
    (writer.network(&answer), answer)
}

#[test]
fn transformers_of_all_kinds_are_those_of_rten() {
    for (file, answer) in [joined(), parted(), turned()] {
        compare_within(&file, &[&answer], NEAR);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_transformer() {
    let (file, answer) = joined();
    let features = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(&[&answer]) };
            open(&file, &settings).unwrap().features(&pixels(5), SHAPE, &[0]).unwrap()
        })
    };
    let one = features(1);
    for threads in [2, 3, 16] {
        assert_eq!(features(threads), one, "{threads} threads");
    }
}

#[test]
fn what_a_transformer_here_has_not_is_left_to_a_runtime() {
    // a mask that leaves something out; a softmax over queries; tokens of all images in one row
    let mut masked = Writer::default();
    let x = masked.tokens();
    let scores = {
        let keys = masked.transpose(&x, &[0, 2, 1]);
        masked.add("MatMul", &[&x, &keys], &[])
    };
    let mask = masked.floats(&[1, TOKENS, TOKENS], -1.0);
    let scores = masked.add("Add", &[&scores, &mask], &[]);
    let weights = masked.add("Softmax", &[&scores], &[]);
    let x = masked.add("MatMul", &[&weights, &x], &[]);
    let masked_answer = masked.add("ReduceMean", &[&x], &[numbers("axes", &[1])]);
    let mut queries = Writer::default();
    let x = queries.tokens();
    let keys = queries.transpose(&x, &[0, 2, 1]);
    let scores = queries.add("MatMul", &[&x, &keys], &[]);
    let weights = queries.add("Softmax", &[&scores], &[number("axis", 1)]);
    let x = queries.add("MatMul", &[&weights, &x], &[]);
    let queries_answer = queries.add("ReduceMean", &[&x], &[numbers("axes", &[1])]);
    let mut tokens = Writer::default();
    let x = tokens.tokens();
    let tokens_answer = tokens.reshape(&x, &[-1, SIZE.into()]);
    for (writer, answer) in
        [(masked, masked_answer), (queries, queries_answer), (tokens, tokens_answer)]
    {
        let file = writer.network(&answer);
        let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(&[&answer]) };
        let error = refusal(&file, &settings);
        assert!(error.to_string().contains("operators or an order of axes"), "{error}");
    }
}

#[test]
fn changed_bytes_of_a_transformer_give_a_network_or_an_error() {
    let files = [joined().0, parted().0, turned().0];
    let (mut mutations, mut loaded) = (Mutations::new(21), 0);
    for round in 0..rounds(300) {
        let bytes = mutations.of(&files[round % files.len()]);
        let settings = OnnxOptions { runtime: Runtime::Builtin, ..options(&[]) };
        if let Ok(network) = open(&bytes, &settings)
            && network.shape() == Some(SHAPE)
        {
            let features = network.features(&pixels(2), SHAPE, &[0]).unwrap();
            assert_eq!(features[0].rows(), 2);
            loaded += 1;
        }
    }
    assert!(loaded > 0);
}
