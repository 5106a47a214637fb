//! A training step on libtorch: everything from pixels to new weights stays on the device, and on
//! a GPU the step is recorded once and then replayed.

use ivoro::Matrix;
use tch::{Device, Kind, Reduction, Tensor};

use super::Arithmetic;
use super::forward::{Named, Network};
use super::layout::Layout;
use super::library::{Adam, Graph};
use crate::dataset::Shape;
use crate::engine::{Batch, Normalisation, State, Tally, Trainer};
use crate::error::{Error, Result};
use crate::network::{Architecture, Parameter};
use crate::train::{Optimiser, Recipe};

/// Adam's β₁ and β₂; β₁ is also the momentum of plain descent.
pub(super) const BETAS: (f64, f64) = (0.9, 0.999);
pub(super) const EPSILON: f64 = 1e-8;
/// Steps before recording, in which cuDNN chooses its kernels and memory is taken.
const WARM_UP: usize = 3;

/// A network in training on libtorch.
pub struct TorchTrainer {
    network: Network,
    layout: Layout,
    recipe: Recipe,
    shape: Shape,
    device: Device,
    classes: usize,
    weights: DeviceWeights,
    average: Option<DeviceAverage>,
    inputs: Inputs,
    affine: (Tensor, Tensor),
    adam: Option<Adam>,
    steps: u64,
    /// Views seen since the last tally.
    views: u64,
    recorded: Option<Graph>,
}

/// Everything a step changes.
struct DeviceWeights {
    /// All learned weights in 32 bits.
    learned: Tensor,
    /// The multiplied ones as they are multiplied; the same tensor under full arithmetic.
    multiplied: Tensor,
    measured: Tensor,
    first: Tensor,
    second: Tensor,
    gradient: Tensor,
    /// Steps done, as libtorch's Adam wants it.
    steps: Tensor,
    rate: Tensor,
    /// Sums of loss and of right answers since the last tally.
    tally: Tensor,
    /// What gradients are asked for, in the order of the layout's places.
    leaves: Vec<Tensor>,
    named: Named,
}

struct DeviceAverage {
    learned: Tensor,
    measured: Tensor,
    multiplied: Tensor,
    named: Named,
}

/// Where a step finds its images.
struct Inputs {
    pixels: Tensor,
    labels: Tensor,
}

impl TorchTrainer {
    /// Goes on from `state`.
    pub fn new(
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
        (device, arithmetic): (Device, Arithmetic),
    ) -> Result<Self> {
        recipe.check()?;
        if recipe.rotations && shape.height != shape.width {
            return Err(Error::NotSquare { found: shape });
        }
        let layout = Layout::new(architecture);
        let weights = DeviceWeights::upload(architecture, &layout, state, device, arithmetic)?;
        let average = match (&state.average, recipe.average) {
            (Some((learned, measured)), Some(_)) => {
                Some(DeviceAverage::upload(architecture, &layout, learned, measured, &weights)?)
            }
            _ => None,
        };
        let (factors, shifts): (Vec<f32>, Vec<f32>) = normalisation.affine().into_iter().unzip();
        let on_device = |values: &[f32]| Tensor::f_from_slice(values)?.f_to_device(device);
        let affine = (on_device(&factors)?, on_device(&shifts)?);
        let inputs = Inputs::new(recipe.batch, shape, device)?;
        let adam = match (recipe.optimiser, device) {
            (Optimiser::Adam, Device::Cuda(_)) => Adam::find().ok(),
            _ => None,
        };
        Ok(Self {
            network: Network::new(architecture),
            classes: architecture.outputs / recipe.sisters(),
            recipe: recipe.clone(),
            steps: state.steps,
            layout,
            shape,
            device,
            weights,
            average,
            inputs,
            affine,
            adam,
            views: 0,
            recorded: None,
        })
    }

    /// Everything a step does on the device.
    fn compute(&mut self) -> Result<()> {
        let sisters = self.recipe.sisters() as i64;
        let (images, labels) = tch::no_grad(|| -> Result<_> {
            let images = self.prepare(&self.inputs.pixels, sisters)?;
            let turns = Tensor::f_arange(sisters, (Kind::Int64, self.device))?.f_unsqueeze(1)?;
            let labels = self.inputs.labels.f_mul_scalar(sisters)?.f_unsqueeze(0)?.f_add(&turns)?;
            Ok((images, labels.f_reshape(-1)?))
        })?;
        let outputs = self.network.outputs(&self.weights.named, &images, true)?;
        let logits = outputs.f_to_kind(Kind::Float)?;
        let scaled = logits.f_div_scalar(f64::from(self.recipe.temperature))?;
        let smoothing = f64::from(self.recipe.smoothing);
        let loss = scaled.f_cross_entropy_loss(
            &labels,
            None::<&Tensor>,
            Reduction::Mean,
            -100,
            smoothing,
        )?;
        let gradients = Tensor::f_run_backward(&[&loss], &self.weights.leaves, false, false)?;
        tch::no_grad(|| {
            self.count(&loss, &logits, &labels)?;
            self.weights.collect(&self.layout, &gradients)?;
            self.change()
        })
    }

    /// Normalised images in `[n · sisters, channels, height, width]`, rotation after rotation.
    fn prepare(&self, pixels: &Tensor, sisters: i64) -> Result<Tensor> {
        let kind = self.weights.multiplied.kind();
        let images = pixels.f_to_kind(Kind::Float)?.f_mul(&self.affine.0)?.f_add(&self.affine.1)?;
        let images = images.f_to_kind(kind)?;
        let all = if sisters == 1 {
            images
        } else {
            let turned: std::result::Result<Vec<_>, _> =
                (0..sisters).map(|turns| images.f_rot90(turns, [1, 2])).collect();
            Tensor::f_cat(&turned?, 0)?
        };
        // Memory stays as it is: channels last.
        Ok(all.f_permute([0, 3, 1, 2])?)
    }

    fn count(&mut self, loss: &Tensor, logits: &Tensor, labels: &Tensor) -> Result<()> {
        let views = labels.size()[0];
        let correct = logits.f_argmax(1, false)?.f_eq_tensor(labels)?.f_sum(Kind::Float)?;
        let seen = Tensor::f_stack(&[&loss.f_mul_scalar(views)?, &correct], 0)?;
        let _ = self.weights.tally.f_add_(&seen.f_to_kind(Kind::Double)?)?;
        Ok(())
    }

    /// Moves the weights along the gradient.
    fn change(&mut self) -> Result<()> {
        let weights = &mut self.weights;
        let decay = f64::from(self.recipe.decay);
        let _ = weights.steps.f_add_scalar_(1)?;
        match (&self.adam, self.recipe.optimiser) {
            (Some(adam), _) => adam.step(
                &weights.learned,
                &weights.gradient,
                (&weights.first, &weights.second),
                &weights.steps,
                &weights.rate,
                decay,
            ),
            (None, Optimiser::Adam) => weights.adam(decay)?,
            (None, Optimiser::Momentum) => weights.descend(decay)?,
        }
        weights.refresh(&self.layout)?;
        if let (Some(average), Some(keep)) = (&mut self.average, self.recipe.average) {
            let share = 1.0 - f64::from(keep);
            let _ = average.learned.f_lerp_(&weights.learned, share)?;
            let _ = average.measured.f_lerp_(&weights.measured, share)?;
        }
        Ok(())
    }

    fn check(&self, pixels: &[u8], images: usize) -> Result<()> {
        let expected = images * self.shape.len();
        if pixels.len() == expected {
            return Ok(());
        }
        Err(Error::Pixels { expected, found: pixels.len() })
    }
}

impl Trainer for TorchTrainer {
    fn step(&mut self, batch: Batch<'_>, rate: f32) -> Result<()> {
        self.check(batch.pixels, batch.labels.len())?;
        if let Some(&label) = batch.labels.iter().find(|&&label| label as usize >= self.classes) {
            return Err(Error::Label { label, classes: self.classes });
        }
        let fits = batch.labels.len() as i64 == self.inputs.labels.size()[0];
        if !fits {
            // Another batch size: what was recorded no longer fits.
            self.recorded = None;
            self.inputs = Inputs::new(batch.labels.len(), self.shape, self.device)?;
        }
        self.inputs.fill(batch)?;
        let _ = self.weights.rate.f_fill_(f64::from(rate))?;
        match (&mut self.recorded, self.device) {
            (Some(graph), _) => graph.replay(),
            (None, Device::Cuda(index)) if self.steps >= WARM_UP as u64 && fits => {
                // Recording does the step only in part: it is replayed for its effect.
                let mut graph = Graph::record(index as i8, 0, || self.compute())?;
                graph.replay();
                self.recorded = Some(graph);
            }
            _ => self.compute()?,
        }
        self.steps += 1;
        self.views += (batch.labels.len() * self.recipe.sisters()) as u64;
        Ok(())
    }

    fn tally(&mut self) -> Result<Tally> {
        let sums: Vec<f64> = Vec::try_from(self.weights.tally.f_to_device(Device::Cpu)?)?;
        let _ = tch::no_grad(|| self.weights.tally.f_zero_())?;
        Ok(Tally { loss: sums[0], correct: sums[1] as u64, views: std::mem::take(&mut self.views) })
    }

    fn state(&mut self) -> Result<State> {
        let weights = &self.weights;
        let download = |flat: &Tensor| self.layout.download(flat);
        let average = match &self.average {
            Some(average) => Some((download(&average.learned)?, values(&average.measured)?)),
            None => None,
        };
        Ok(State {
            learned: download(&weights.learned)?,
            measured: values(&weights.measured)?,
            first: download(&weights.first)?,
            second: download(&weights.second)?,
            average,
            steps: self.steps,
        })
    }

    fn outputs(&mut self, pixels: &[u8]) -> Result<Matrix> {
        let images = pixels.len() / self.shape.len().max(1);
        self.check(pixels, images)?;
        let Shape { height, width, channels } = self.shape;
        let size = [images, height, width, channels].map(|size| size as i64);
        tch::no_grad(|| {
            let raw = Tensor::f_from_slice(pixels)?.f_view(size)?.f_to_device(self.device)?;
            let images = self.prepare(&raw, 1)?;
            let named = match &mut self.average {
                Some(average) => {
                    average.refresh(&self.layout)?;
                    &average.named
                }
                None => &self.weights.named,
            };
            let outputs = self.network.outputs(named, &images, false)?;
            matrix(&outputs)
        })
    }
}

/// A tensor of rank 2 as a matrix on the host.
pub(super) fn matrix(tensor: &Tensor) -> Result<Matrix> {
    let [rows, cols] = tensor.size()[..] else {
        return Err(Error::Engine { what: format!("rank 2 expected, got {:?}", tensor.size()) });
    };
    Ok(Matrix::new(rows as usize, cols as usize, values(tensor)?)?)
}

/// All values of a tensor in order.
pub(super) fn values(tensor: &Tensor) -> Result<Vec<f32>> {
    let tensor = tensor.f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?.f_contiguous()?;
    let mut values = vec![0.0; tensor.numel()];
    let count = values.len();
    tensor.f_copy_data(&mut values, count)?;
    Ok(values)
}

impl Inputs {
    fn new(images: usize, shape: Shape, device: Device) -> Result<Self> {
        let Shape { height, width, channels } = shape;
        let size = [images, height, width, channels].map(|size| size as i64);
        Ok(Self {
            pixels: Tensor::f_zeros(size, (Kind::Uint8, device))?,
            labels: Tensor::f_zeros([images as i64], (Kind::Int64, device))?,
        })
    }

    fn fill(&mut self, batch: Batch<'_>) -> Result<()> {
        let labels: Vec<i64> = batch.labels.iter().copied().map(i64::from).collect();
        let size = self.pixels.size();
        let pixels = Tensor::f_from_slice(batch.pixels)?.f_view(size.as_slice())?;
        self.pixels.f_copy_(&pixels)?;
        self.labels.f_copy_(&Tensor::f_from_slice(&labels)?)?;
        Ok(())
    }
}

impl DeviceWeights {
    fn upload(
        architecture: &Architecture,
        layout: &Layout,
        state: &State,
        device: Device,
        arithmetic: Arithmetic,
    ) -> Result<Self> {
        let or_zeros = |values: &[f32]| {
            if values.is_empty() {
                Ok(Tensor::f_zeros([layout.total], (Kind::Float, device))?)
            } else {
                layout.upload(values, device)
            }
        };
        let learned = layout.upload(&state.learned, device)?;
        let multiplied = learned.f_narrow(0, 0, layout.multiplied)?.f_to_kind(arithmetic.kind())?;
        let measured = Tensor::f_from_slice(&state.measured)?.f_to_device(device)?;
        let mut leaves = Vec::new();
        let mut named = measured_parts(architecture, &measured)?;
        for place in &layout.places {
            let part = if place.is_multiplied(layout) {
                place.slice(&multiplied)?
            } else {
                place.slice(&learned)?
            };
            let leaf = part.f_detach()?.f_set_requires_grad(true)?;
            named.insert(place.parameter.name.clone(), leaf.shallow_clone());
            leaves.push(leaf);
        }
        Ok(Self {
            first: or_zeros(&state.first)?,
            second: or_zeros(&state.second)?,
            gradient: or_zeros(&[])?,
            steps: Tensor::f_from_slice(&[state.steps as f32])?.f_to_device(device)?.f_squeeze()?,
            rate: Tensor::f_zeros([1], (Kind::Float, device))?,
            tally: Tensor::f_zeros([2], (Kind::Double, device))?,
            learned,
            multiplied,
            measured,
            leaves,
            named,
        })
    }

    /// Gradients by weight into the flat gradient.
    fn collect(&mut self, layout: &Layout, gradients: &[Tensor]) -> Result<()> {
        let mut parts = (Vec::new(), Vec::new());
        for (place, gradient) in layout.places.iter().zip(gradients) {
            let part = place.flatten(gradient)?;
            let list = if place.is_multiplied(layout) { &mut parts.0 } else { &mut parts.1 };
            list.push(part);
        }
        let rest = layout.total - layout.multiplied;
        let mut head = self.gradient.f_narrow(0, 0, layout.multiplied)?;
        head.f_copy_(&Tensor::f_cat(&parts.0, 0)?)?;
        let mut tail = self.gradient.f_narrow(0, layout.multiplied, rest)?;
        tail.f_copy_(&Tensor::f_cat(&parts.1, 0)?)?;
        Ok(())
    }

    /// Adam, operation by operation: the weights' decay is a part of the gradient.
    fn adam(&mut self, decay: f64) -> Result<()> {
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
    fn descend(&mut self, decay: f64) -> Result<()> {
        let _ = self.gradient.f_add_(&self.learned.f_mul_scalar(decay)?)?;
        let _ = self.first.f_mul_scalar_(BETAS.0)?;
        let _ = self.first.f_add_(&self.gradient)?;
        let _ = self.learned.f_sub_(&self.first.f_mul(&self.rate)?)?;
        Ok(())
    }

    /// Brings the multiplied weights up to date with the learned ones.
    fn refresh(&mut self, layout: &Layout) -> Result<()> {
        // Under full arithmetic they are one and the same memory.
        if self.multiplied.kind() != Kind::Float {
            self.multiplied.f_copy_(&self.learned.f_narrow(0, 0, layout.multiplied)?)?;
        }
        Ok(())
    }
}

impl DeviceAverage {
    fn upload(
        architecture: &Architecture,
        layout: &Layout,
        learned: &[f32],
        measured: &[f32],
        weights: &DeviceWeights,
    ) -> Result<Self> {
        let device = weights.learned.device();
        let learned = layout.upload(learned, device)?;
        let measured = Tensor::f_from_slice(measured)?.f_to_device(device)?;
        let kind = weights.multiplied.kind();
        let multiplied = learned.f_narrow(0, 0, layout.multiplied)?.f_to_kind(kind)?;
        let mut named = measured_parts(architecture, &measured)?;
        for place in &layout.places {
            let flat = if place.is_multiplied(layout) { &multiplied } else { &learned };
            named.insert(place.parameter.name.clone(), place.slice(flat)?);
        }
        Ok(Self { learned, measured, multiplied, named })
    }

    fn refresh(&mut self, layout: &Layout) -> Result<()> {
        if self.multiplied.kind() != Kind::Float {
            self.multiplied.f_copy_(&self.learned.f_narrow(0, 0, layout.multiplied)?)?;
        }
        Ok(())
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
