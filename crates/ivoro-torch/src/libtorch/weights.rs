//! Everything a training step changes, on the device.

use ivoro_vision::engine::State;
use ivoro_vision::network::{Architecture, Parameter};
use tch::{Device, Kind, Tensor};

use super::Arithmetic;
use super::error::Result;
use super::forward::Named;
use super::layout::Layout;
use super::trainer::{BETAS, EPSILON};

/// Everything a step changes.
pub(super) struct DeviceWeights {
    /// All learned weights in 32 bits.
    pub(super) learned: Tensor,
    /// The kernels as they are multiplied; the same tensor under full arithmetic.
    pub(super) kernels: Tensor,
    pub(super) measured: Tensor,
    pub(super) first: Tensor,
    pub(super) second: Tensor,
    pub(super) gradient: Tensor,
    /// Steps done, as libtorch's Adam wants it.
    pub(super) steps: Tensor,
    pub(super) rate: Tensor,
    /// Sums of loss and of right answers since the last tally.
    pub(super) tally: Tensor,
    /// What gradients are asked for, in the order of the layout's places.
    pub(super) leaves: Vec<Tensor>,
    pub(super) named: Named,
}

pub(super) struct DeviceAverage {
    pub(super) learned: Tensor,
    pub(super) measured: Tensor,
    pub(super) kernels: Tensor,
    pub(super) named: Named,
}

impl DeviceWeights {
    pub(super) fn upload(
        architecture: &Architecture,
        layout: &Layout,
        state: &State,
        device: Device,
        arithmetic: Arithmetic,
    ) -> Result<Self> {
        let learned = layout.upload(&state.learned, device)?;
        let kernels = learned.f_narrow(0, 0, layout.kernels)?.f_to_kind(arithmetic.kind())?;
        let measured = Tensor::f_from_slice(&state.measured)?.f_to_device(device)?;
        let mut leaves = Vec::new();
        let mut named = measured_parts(architecture, &measured)?;
        for place in &layout.places {
            let part = if place.is_kernel(layout) {
                place.slice(&kernels)?
            } else {
                place.slice(&learned)?
            };
            let leaf = part.f_detach()?.f_set_requires_grad(true)?;
            named.insert(place.parameter.name.clone(), leaf.shallow_clone());
            leaves.push(leaf);
        }
        Ok(Self {
            first: layout.upload(&state.first, device)?,
            second: layout.upload(&state.second, device)?,
            gradient: Tensor::f_zeros([layout.total], (Kind::Float, device))?,
            steps: Tensor::f_from_slice(&[state.steps as f32])?.f_to_device(device)?.f_squeeze()?,
            rate: Tensor::f_zeros([1], (Kind::Float, device))?,
            tally: Tensor::f_zeros([2], (Kind::Double, device))?,
            learned,
            kernels,
            measured,
            leaves,
            named,
        })
    }

    /// Gradients by weight into the flat gradient.
    pub(super) fn collect(&mut self, layout: &Layout, gradients: &[Tensor]) -> Result<()> {
        let mut parts = (Vec::new(), Vec::new());
        for (place, gradient) in layout.places.iter().zip(gradients) {
            let part = place.flatten(gradient)?;
            let list = if place.is_kernel(layout) { &mut parts.0 } else { &mut parts.1 };
            list.push(part);
        }
        let rest = layout.total - layout.kernels;
        let mut head = self.gradient.f_narrow(0, 0, layout.kernels)?;
        head.f_copy_(&Tensor::f_cat(&parts.0, 0)?)?;
        let mut tail = self.gradient.f_narrow(0, layout.kernels, rest)?;
        tail.f_copy_(&Tensor::f_cat(&parts.1, 0)?)?;
        Ok(())
    }

    /// Adam, operation by operation: the weights' decay is a part of the gradient.
    pub(super) fn adam(&mut self, decay: f64) -> Result<()> {
        let _ = self.gradient.f_add_(&self.learned.f_mul_scalar(decay)?)?;
        let _ = self.first.f_lerp_(&self.gradient, 1.0 - BETAS.0)?;
        let _ = self.second.f_lerp_(&self.gradient.f_square()?, 1.0 - BETAS.1)?;
        let correction = |beta: f64| self.steps.f_mul_scalar(beta.ln())?.f_expm1()?.f_neg();
        let (first, second) = (correction(BETAS.0)?, correction(BETAS.1)?);
        let spread = self.second.f_div(&second)?.f_sqrt()?.f_add_scalar(EPSILON)?;
        let rate = self.rate.f_div(&first)?;
        let _ = self.learned.f_sub_(&self.first.f_div(&spread)?.f_mul(&rate)?)?;
        Ok(())
    }

    /// Descent with momentum.
    pub(super) fn descend(&mut self, decay: f64) -> Result<()> {
        let _ = self.gradient.f_add_(&self.learned.f_mul_scalar(decay)?)?;
        let _ = self.first.f_mul_scalar_(BETAS.0)?;
        let _ = self.first.f_add_(&self.gradient)?;
        let _ = self.learned.f_sub_(&self.first.f_mul(&self.rate)?)?;
        Ok(())
    }

    /// Adds the gradient of what holds the weights: importance · (weight − anchor).
    pub(super) fn hold(&mut self, (at, importance): &(Tensor, Tensor)) -> Result<()> {
        let pull = self.learned.f_sub(at)?.f_mul(importance)?;
        let _ = self.gradient.f_add_(&pull)?;
        Ok(())
    }
}

impl DeviceAverage {
    pub(super) fn upload(
        architecture: &Architecture,
        layout: &Layout,
        learned: &[f32],
        measured: &[f32],
        weights: &DeviceWeights,
    ) -> Result<Self> {
        let device = weights.learned.device();
        let learned = layout.upload(learned, device)?;
        let measured = Tensor::f_from_slice(measured)?.f_to_device(device)?;
        let kind = weights.kernels.kind();
        let kernels = learned.f_narrow(0, 0, layout.kernels)?.f_to_kind(kind)?;
        let mut named = measured_parts(architecture, &measured)?;
        for place in &layout.places {
            let flat = if place.is_kernel(layout) { &kernels } else { &learned };
            named.insert(place.parameter.name.clone(), place.slice(flat)?);
        }
        Ok(Self { learned, measured, kernels, named })
    }
}

/// Running means and variances by name, as parts of one tensor.
fn measured_parts(architecture: &Architecture, flat: &Tensor) -> Result<Named> {
    let mut start = 0;
    let mut named = Named::new();
    for parameter in architecture.parameters() {
        if !Parameter::is_learned(&parameter) {
            let length = parameter.len() as i64;
            named.insert(parameter.name, flat.f_narrow(0, start, length)?);
            start += length;
        }
    }
    Ok(named)
}

/// Brings the kernels up to date with the learned weights.
pub(super) fn refresh(kernels: &mut Tensor, learned: &Tensor, layout: &Layout) -> Result<()> {
    // Under full arithmetic they are one and the same memory.
    if kernels.kind() != Kind::Float {
        kernels.f_copy_(&learned.f_narrow(0, 0, layout.kernels)?)?;
    }
    Ok(())
}
