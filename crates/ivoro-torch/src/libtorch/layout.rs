//! Where each weight lies in one flat tensor on the device.
//!
//! Kernels lie as `[out, height, width, in]`, the layout in which GPU convolutions are fastest.
//! They come first, so that one cast turns them all into bfloat16; all other weights are used in 32 bits.

use ivoro_vision::network::{Architecture, Parameter, Role};
use tch::{Device, Tensor};

use super::error::Result;
use super::trainer::values;

/// One learned weight's place.
pub(super) struct Place {
    pub(super) parameter: Parameter,
    /// Where it begins in the flat tensor.
    start: i64,
    /// Where it begins in the order of the architecture.
    origin: usize,
}

/// The places of all learned weights, kernels first.
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
    /// How many numbers belong to kernels.
    pub(super) kernels: i64,
    /// How many numbers there are.
    pub(super) total: i64,
}

fn is_kernel(parameter: &Parameter) -> bool {
    parameter.role == Role::Kernel
}

impl Layout {
    pub(super) fn new(architecture: &Architecture) -> Self {
        let mut origin = 0;
        let mut places = Vec::new();
        for parameter in architecture.parameters().into_iter().filter(Parameter::is_learned) {
            let length = parameter.len();
            places.push(Place { parameter, start: 0, origin });
            origin += length;
        }
        places.sort_by_key(|place| !is_kernel(&place.parameter));
        let (mut start, mut kernels) = (0, 0);
        for place in &mut places {
            place.start = start;
            start += place.parameter.len() as i64;
            if is_kernel(&place.parameter) {
                kernels = start;
            }
        }
        Self { places, kernels, total: start }
    }

    /// Values in the architecture's order, as a flat tensor in this layout.
    pub(super) fn upload(&self, values: &[f32], device: Device) -> Result<Tensor> {
        let mut parts = Vec::with_capacity(self.places.len());
        for Place { parameter, origin, .. } in &self.places {
            let part = Tensor::f_from_slice(&values[*origin..*origin + parameter.len()])?;
            parts.push(match parameter.role {
                Role::Kernel => {
                    let shape = signed(&parameter.shape);
                    part.f_view(shape.as_slice())?.f_permute([0, 2, 3, 1])?.f_reshape(-1)?
                }
                _ => part,
            });
        }
        Ok(Tensor::f_cat(&parts, 0)?.f_to_device(device)?)
    }

    /// A flat tensor in this layout, as values in the architecture's order, which the device
    /// brings them into.
    pub(super) fn download(&self, flat: &Tensor) -> Result<Vec<f32>> {
        let mut places: Vec<&Place> = self.places.iter().collect();
        places.sort_by_key(|place| place.origin);
        let parts: Result<Vec<Tensor>> =
            places.into_iter().map(|place| Ok(place.slice(flat)?.f_reshape(-1)?)).collect();
        values(&Tensor::f_cat(&parts?, 0)?)
    }
}

impl Place {
    /// Whether it belongs to a linear layer, behind the stages.
    pub(super) fn is_linear(&self) -> bool {
        matches!(self.parameter.role, Role::Linear | Role::Bias)
    }

    /// Whether it lies among the kernels.
    pub(super) fn is_kernel(&self, layout: &Layout) -> bool {
        self.start < layout.kernels
    }

    /// This weight as a part of a flat tensor.
    pub(super) fn slice(&self, flat: &Tensor) -> Result<Tensor> {
        let part = flat.f_narrow(0, self.start, self.parameter.len() as i64)?;
        let shape = signed(&self.parameter.shape);
        Ok(match self.parameter.role {
            Role::Kernel => {
                let [outputs, inputs, height, width] = shape[..] else { return Ok(part) };
                part.f_view([outputs, height, width, inputs])?.f_permute([0, 3, 1, 2])?
            }
            _ => part.f_view(shape.as_slice())?,
        })
    }

    /// A gradient of this weight as a flat piece in this layout.
    pub(super) fn flatten(&self, gradient: &Tensor) -> Result<Tensor> {
        Ok(match self.parameter.role {
            Role::Kernel => gradient.f_permute([0, 2, 3, 1])?.f_reshape(-1)?,
            _ => gradient.f_reshape(-1)?,
        })
    }
}

fn signed(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|&size| size as i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_uploaded_comes_back_in_order() {
        let architecture = Architecture::small(3, 8).with_embedding(2);
        let layout = Layout::new(&architecture);
        let values: Vec<f32> = (0..layout.total).map(|at| at as f32).collect();
        let flat = layout.upload(&values, Device::Cpu).unwrap();
        assert_eq!(layout.download(&flat).unwrap(), values);
        // The stem's kernel, seen through its slice, is the one of the architecture's order.
        let stem = layout.places.iter().find(|p| p.parameter.name == "conv1.weight").unwrap();
        let kernel = stem.slice(&flat).unwrap();
        assert_eq!(kernel.double_value(&[1, 2, 0, 1]), f64::from((27 + 2 * 9 + 1) as u8));
    }
}
