//! Operators of feature maps: convolutions, padding and pools.

use super::super::operator::{Node, is_standard};
use super::Network;
use super::known::{Known, Tensor};
use super::view::View;
use crate::engine::cpu::window::Window;
use crate::network::affine;
use crate::shape::Shape;

impl<'a> Network<'_, 'a> {
    /// A value that has the axes of feature maps.
    pub(super) fn maps(&mut self, node: &Node<'a>, at: usize) -> Option<usize> {
        let Tensor { value, view } = self.tensor(node, at)?;
        view.is_of_maps(self.images, self.builder.shape(value)).then_some(value)
    }

    /// A value as feature maps.
    pub(super) fn as_maps(&self, value: usize) -> Known {
        let view = View::of_images(self.images, self.builder.shape(value));
        Known::Tensor(Tensor { value, view })
    }

    /// What an operator makes of feature maps.
    pub(super) fn of_images(&mut self, node: &Node<'a>) -> Option<Known> {
        let value = self.maps(node, 0)?;
        let made = match node.kind {
            "Pad" => {
                let pads = self.pads(node)?;
                let view = View::of_images(self.images, self.builder.shape(value));
                return Some(Known::Padded(Tensor { value, view }, pads));
            }
            "GlobalAveragePool" => self.builder.mean(value)?,
            _ => self.pool(node, value)?,
        };
        Some(self.as_maps(made))
    }

    fn pool(&mut self, node: &Node<'a>, value: usize) -> Option<usize> {
        let &[rows, columns] = node.numbers("kernel_shape") else { return None };
        let size = (rows.try_into().ok()?, columns.try_into().ok()?);
        let window = self.window(node, value, size)?;
        if !node.has_only(1) || node.number("ceil_mode", 0) != 0 {
            return None;
        }
        if node.kind == "MaxPool" {
            return self.builder.maximum(value, window);
        }
        self.builder.average(value, window, node.number("count_include_pad", 0) != 0)
    }

    /// The window of an operator over a value.
    fn window(&self, node: &Node<'a>, value: usize, size: (usize, usize)) -> Option<Window> {
        let Shape { height, width, .. } = self.builder.shape(value);
        node.window(size, (height, width))
    }

    /// The zeros that an operator puts around images.
    fn pads(&mut self, node: &Node<'a>) -> Option<[usize; 4]> {
        let zero = match node.inputs.get(2) {
            None | Some(&"") => node.float("value", 0.0) == 0.0,
            Some(_) => self.constant(node, 2)?.float()? == 0.0,
        };
        let constant = matches!(node.text("mode"), b"" | b"constant");
        let pads = if node.inputs.len() > 1 {
            self.integers(node, 1)?
        } else {
            node.numbers("pads").to_vec()
        };
        let &[0, 0, top, left, 0, 0, bottom, right] = &pads[..] else { return None };
        if !zero || !constant || !node.has_only(3) {
            return None;
        }
        let pads = [top, left, bottom, right].map(usize::try_from);
        pads.iter().all(Result::is_ok).then(|| pads.map(Result::unwrap_or_default))
    }

    /// A convolution, with the batch norm after it if nothing else takes its result.
    pub(super) fn convolve(&mut self, node: &Node<'a>) -> Option<()> {
        let (value, pads) = match self.known(node, 0)? {
            Known::Padded(of, pads) => (of.value, pads),
            _ => (self.maps(node, 0)?, [0; 4]),
        };
        let kernel = self.floats(node, 1)?;
        let &[outputs, inputs, height, width] = &kernel.shape[..] else { return None };
        let mut kernel = kernel.numbers;
        let groups = usize::try_from(node.number("group", 1)).ok()?;
        if inputs.checked_mul(groups)? != self.builder.shape(value).channels {
            return None;
        }
        let mut window = self.window(node, value, (height, width))?;
        if pads != [0; 4] {
            // padding that depends on the size would be another after it
            let plain = matches!(node.text("auto_pad"), b"" | b"NOTSET" | b"VALID");
            let [top, left, bottom, right] = plain.then_some(pads)?;
            let add = |side: &mut usize, more: usize| side.checked_add(more).map(|sum| *side = sum);
            add(&mut window.before.0, top)?;
            add(&mut window.before.1, left)?;
            add(&mut window.after.0, bottom)?;
            add(&mut window.after.1, right)?;
        }
        let mut bias = match node.inputs.get(2) {
            None | Some(&"") => vec![0.0; outputs],
            Some(_) => self.vector(node, 2, outputs)?,
        };
        let mut name = *node.outputs.first()?;
        let alone = self.uses.get(name) == Some(&1);
        let follows = |next: &&Node| next.inputs.first() == Some(&name);
        let next = self.parts.nodes.iter().find(follows).filter(|_| alone);
        if let Some(next) = next.filter(|next| next.kind == "BatchNormalization") {
            self.normalise(next, &mut kernel, &mut bias)?;
            name = next.outputs.first()?;
            self.merged.insert(name);
        }
        let value = self.builder.convolve(value, window, groups, &kernel, bias)?;
        self.name(name, self.as_maps(value))
    }

    /// Makes a batch norm part of the convolution before it.
    fn normalise(&mut self, node: &Node<'a>, kernel: &mut [f32], bias: &mut [f32]) -> Option<()> {
        let outputs = bias.len();
        let plain = is_standard(node.domain) && node.has_only(5);
        if !plain || node.number("training_mode", 0) != 0 {
            return None;
        }
        let mut weights = |at| self.vector(node, at, outputs);
        let (scale, shift, means, variance) = (weights(1)?, weights(2)?, weights(3)?, weights(4)?);
        let epsilon = f64::from(node.float("epsilon", 1e-5));
        let kernels = kernel.chunks_exact_mut(kernel.len() / outputs).zip(bias);
        let affine = affine([&scale[..], &shift, &means, &variance], epsilon);
        for ((kernel, bias), (factor, shift)) in kernels.zip(affine) {
            kernel.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32);
            *bias = (f64::from(*bias) * factor + shift) as f32;
        }
        Some(())
    }
}
