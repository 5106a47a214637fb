//! The operators of an ONNX file as those of the CPU engine, one after the other. The first one that
//! the engine lacks ends it, and the network is left to a runtime.

mod arithmetic;
mod attention;
mod axes;
mod images;
mod known;
mod linear;
mod scalar;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use self::known::{Known, Tensor};
use self::view::View;
use super::constants::{Array, Constant, fold};
use super::operator::{Files, Node, is_standard};
use super::protobuf::Field;
use crate::engine::cpu::graph::Builder;
use crate::engine::cpu::tokens::Part;

/// How many images there seem to be where a file leaves that open: a prime number, so that a size
/// that is a multiple of it is one of images.
const ANY: usize = 2_147_483_647;

/// What of a file is needed to put it together.
pub(super) struct Parts<'n, 'a> {
    pub(super) nodes: &'n [Node<'a>],
    pub(super) weights: BTreeMap<&'a str, Field<'a>>,
    pub(super) files: &'n Files,
    /// The values wanted.
    pub(super) outputs: &'n [&'a str],
    /// Bytes of weights that may be read: a file that says one weight is many is no bargain.
    pub(super) bytes: usize,
}

/// A network that is being put together.
pub(super) struct Network<'n, 'a> {
    parts: Parts<'n, 'a>,
    /// How often each name is used.
    uses: BTreeMap<&'a str, usize>,
    builder: Builder,
    /// How many images there are.
    images: usize,
    /// Values by name.
    values: BTreeMap<&'a str, Known>,
    /// What operators made of constants.
    constants: BTreeMap<&'a str, Constant>,
    /// Results of batch norms that are part of a convolution.
    merged: BTreeSet<&'a str>,
}

/// Adds all operators to a network for the images of a name; `images`: how many there are, if the file
/// fixes that. With the values that are the outputs.
pub(super) fn lower<'a>(
    parts: Parts<'_, 'a>,
    (input, images): (&'a str, Option<usize>),
    builder: Builder,
) -> Option<(Builder, Vec<usize>)> {
    let (nodes, outputs) = (parts.nodes, parts.outputs);
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    let names = nodes.iter().flat_map(|node| &node.inputs).chain(outputs);
    names.for_each(|name| *uses.entry(name).or_default() += 1);
    let images = images.unwrap_or(ANY);
    let (constants, merged) = Default::default();
    let all = Tensor { value: 0, view: View::of_images(images, builder.shape(0)) };
    let values = BTreeMap::from([(input, Known::Tensor(all))]);
    let mut network = Network { parts, uses, builder, images, values, constants, merged };
    for node in nodes {
        network.add(node)?;
    }
    let outputs = outputs.iter().map(|name| network.output(name)).collect::<Option<_>>()?;
    Some((network.builder, outputs))
}

impl<'a> Network<'_, 'a> {
    /// A value that is wanted: feature maps, or one row of numbers for each image.
    fn output(&mut self, name: &str) -> Option<usize> {
        let known = self.values.get(name).cloned()?;
        let Tensor { value, view } = self.tensor_of(known)?;
        let shape = self.builder.shape(value);
        if view.is_flat(self.images, shape) || view.is_of_maps(self.images, shape) {
            return Some(value);
        }
        // a part of a value, such as the token that stands for its image
        let Tensor { value, view } = self.whole(Tensor { value, view })?;
        view.is_flat(self.images, self.builder.shape(value)).then_some(value)
    }

    /// What an input stands for, if it depends on the images.
    fn known(&self, node: &Node<'a>, at: usize) -> Option<Known> {
        self.values.get(node.inputs.get(at)?).cloned()
    }

    /// An input as a value of the network.
    fn tensor(&mut self, node: &Node<'a>, at: usize) -> Option<Tensor> {
        let known = self.known(node, at)?;
        self.tensor_of(known)
    }

    /// An input as a value of the network whose numbers are all taken.
    fn whole_tensor(&mut self, node: &Node<'a>, at: usize) -> Option<Tensor> {
        let tensor = self.tensor(node, at)?;
        self.whole(tensor)
    }

    /// The same numbers as a value that has no others.
    fn whole(&mut self, tensor: Tensor) -> Option<Tensor> {
        let Tensor { value, view } = tensor;
        let shape = self.builder.shape(value);
        if view.is_whole(shape) {
            return Some(Tensor { value, view });
        }
        let (first, count) = view.tokens(shape.channels)?;
        let value = self.builder.part(value, Part { first, count })?;
        Some(Tensor { value, view: View { first: 0, ..view } })
    }

    /// An input that does not depend on the images.
    fn constant(&mut self, node: &Node<'a>, at: usize) -> Option<Constant> {
        let name = node.inputs.get(at)?;
        if let Some(constant) = self.constants.get(name) {
            return Some(constant.clone());
        }
        let field = self.parts.weights.get(name)?;
        self.parts.bytes = self.parts.bytes.checked_sub(field.whole.len())?;
        let constant = Constant::read(field, self.parts.files)?;
        self.parts.bytes = self.parts.bytes.checked_sub(constant.bytes())?;
        Some(constant)
    }

    fn floats(&mut self, node: &Node<'a>, at: usize) -> Option<Array<f32>> {
        match self.constant(node, at)? {
            Constant::Floats(array) if !array.numbers.is_empty() => Some(array),
            _ => None,
        }
    }

    fn integers(&mut self, node: &Node<'a>, at: usize) -> Option<Vec<i64>> {
        self.constant(node, at)?.integers().map(<[i64]>::to_vec)
    }

    /// A weight for each of `count` outputs.
    fn vector(&mut self, node: &Node<'a>, at: usize, count: usize) -> Option<Vec<f32>> {
        let array = self.floats(node, at)?;
        (array.shape == [count]).then_some(array.numbers)
    }

    /// The axes that an operator is told, as an input or as an attribute.
    fn axes(&mut self, node: &Node<'a>, at: usize) -> Option<Vec<i64>> {
        match node.inputs.get(at) {
            None | Some(&"") => Some(node.numbers("axes").to_vec()),
            Some(_) => self.integers(node, at),
        }
    }

    /// Gives a value a name, if nothing has it.
    fn name(&mut self, name: &'a str, value: Known) -> Option<()> {
        let free = self.is_free(name);
        (free && self.values.insert(name, value).is_none()).then_some(())
    }

    fn name_constant(&mut self, name: &'a str, constant: Constant) -> Option<()> {
        self.parts.bytes = self.parts.bytes.checked_sub(constant.bytes())?;
        let free = self.is_free(name) && !self.values.contains_key(name);
        (free && self.constants.insert(name, constant).is_none()).then_some(())
    }

    fn is_free(&self, name: &str) -> bool {
        !self.parts.weights.contains_key(name) && !self.constants.contains_key(name)
    }

    /// Whether nothing but the operator that takes this input ever takes the value it stands for.
    fn is_alone(&self, node: &Node<'a>, at: usize, value: usize) -> bool {
        let own = node.inputs.get(at).into_iter();
        let others = self.values.iter().filter(|(_, known)| known.takes(value));
        own.chain(others.map(|(name, _)| name)).all(|name| self.uses.get(*name) == Some(&1))
    }

    /// What an operator makes of constants, if all of its inputs are some.
    fn fold(&mut self, node: &Node<'a>, output: &'a str) -> Option<()> {
        if let ("Constant", Some(tensor)) =
            (node.kind, node.attributes.get("value").and_then(|attribute| attribute.tensor))
        {
            // read where it is used: it may be a large weight
            let free = self.is_free(output) && !self.values.contains_key(output);
            return (free && self.parts.weights.insert(output, tensor).is_none()).then_some(());
        }
        if let Some(repeated) = self.repeated(node) {
            return self.name(output, repeated);
        }
        let made = self.folded(node)?;
        self.name_constant(output, made)
    }

    /// What an operator makes of inputs that are the same for each image.
    fn folded(&mut self, node: &Node<'a>) -> Option<Constant> {
        let mut inputs = Vec::new();
        for at in 0..node.inputs.len() {
            inputs.push(match (node.inputs[at], self.known(node, at)) {
                ("", _) => None,
                (_, Some(Known::Repeated(constant))) => Some(constant),
                (_, Some(_)) => return None,
                (_, None) => Some(self.constant(node, at)?),
            });
        }
        let inputs: Vec<Option<&Constant>> = inputs.iter().map(Option::as_ref).collect();
        fold(node, &inputs)
    }

    /// Adds an operator; none if it is not one that the engine has.
    fn add(&mut self, node: &Node<'a>) -> Option<()> {
        let &output = node.outputs.first().filter(|_| is_standard(node.domain))?;
        if self.merged.contains(output) {
            return Some(());
        }
        if node.inputs.iter().all(|name| !self.values.contains_key(name)) {
            return self.fold(node, output);
        }
        match node.kind {
            "Conv" => return self.convolve(node),
            "Split" => return self.split(node),
            "Shape" => {
                let sizes = self.sizes(node)?;
                return self.name_constant(output, sizes);
            }
            _ => {}
        }
        let made = match self.of_repeated(node) {
            Some(made) => made,
            None => self.apply(node)?,
        };
        self.name(output, made)
    }

    /// What an operator makes of each number of inputs that are the same for each image.
    fn of_repeated(&mut self, node: &Node<'a>) -> Option<Known> {
        let of_each = ["Identity", "Cast", "Where", "Equal", "Add", "Sub", "Mul", "Div"];
        let dimensions = (0..node.inputs.len()).find_map(|at| match self.known(node, at)? {
            Known::Repeated(constant) => Some(constant.shape().len()),
            _ => None,
        });
        let dimensions = dimensions.filter(|_| of_each.contains(&node.kind))?;
        let made = self.folded(node)?;
        // the axis of images is still the first one
        (made.shape().len() == dimensions).then_some(Known::Repeated(made))
    }

    /// What an operator makes of values.
    fn apply(&mut self, node: &Node<'a>) -> Option<Known> {
        match node.kind {
            "Pad" | "MaxPool" | "AveragePool" | "GlobalAveragePool" => self.of_images(node),
            "Relu" | "Clip" | "Sigmoid" | "HardSigmoid" | "HardSwish" | "Gelu" => {
                self.activate(node)
            }
            "Add" | "Sub" | "Mul" | "Div" | "Pow" => self.combine(node),
            "Erf" | "Tanh" | "Sqrt" | "Neg" => self.of_each(node),
            "MatMul" => self.multiply(node),
            "Gemm" => self.gemm(node),
            "LayerNormalization" => self.layer_norm(node),
            "ReduceMean" => self.mean(node),
            "Softmax" => self.soften(node),
            "IsNaN" | "Where" => self.without_missing(node),
            "Identity" => self.known(node, 0),
            // beyond its share it may be told to be in training
            "Dropout" if node.has_only(2) => self.known(node, 0),
            "Cast" if node.number("to", 0) == 1 => self.known(node, 0),
            _ => self.of_axes(node),
        }
    }
}
