//! A training step on libtorch: everything from pixels to new weights stays on the device, and on
//! a GPU the step is recorded once and then replayed.

use ivoro::Matrix;
use ivoro_vision::engine::{Batch, Normalisation, State, Tally, begin};
use ivoro_vision::network::Architecture;
use ivoro_vision::recipe::{Optimiser, Recipe};
use ivoro_vision::shape::Shape;
use tch::{Device, Kind, Reduction, Tensor};

use super::Arithmetic;
use super::custom_loss::Looks;
use super::error::{Error, Result};
use super::forward::{Network, linear, mean_over_pixels};
use super::fused::{Fused, Tape};
use super::layout::Layout;
use super::libtorch_ffi::{Adam, Graph, sent};
use super::weights::{DeviceAverage, DeviceWeights, refresh};

/// Adam's β₁ and β₂; β₁ is also the momentum of plain descent.
pub(super) const BETAS: (f64, f64) = (0.9, 0.999);
pub(super) const EPSILON: f64 = 1e-8;
/// Steps before recording, in which cuDNN chooses its kernels and memory is taken.
pub(super) const WARM_UP: u64 = 3;

/// A network in training on libtorch.
pub(super) struct TorchTrainer {
    pub(super) network: Network,
    pub(super) layout: Layout,
    recipe: Recipe,
    pub(super) shape: Shape,
    pub(super) device: Device,
    classes: usize,
    pub(super) weights: DeviceWeights,
    average: Option<DeviceAverage>,
    inputs: Inputs,
    affine: (Tensor, Tensor),
    adam: Option<Adam>,
    /// Kernels of our own, where they fit; otherwise libtorch differentiates.
    pub(super) fused: Option<Fused>,
    pub(super) steps: u64,
    /// Steps before the state that was gone on from.
    earlier: u64,
    /// Views seen since the last tally.
    views: u64,
    pub(super) recorded: Option<Graph>,
    pub(super) looks: Looks,
    /// What holds the weights, and how strongly.
    pub(super) anchor: Option<(Tensor, Tensor)>,
}

/// How gradients get back from what the stages made of images.
pub(super) enum Way {
    /// libtorch remembers, from the last stage's output on.
    Automatic(Tensor),
    /// Along the tape, from these numbers' gradient.
    Fused(Tensor, Tape),
}

/// Where a step finds its images.
struct Inputs {
    pixels: Tensor,
    labels: Tensor,
}

impl TorchTrainer {
    /// Resumes from `state`.
    pub(super) fn new(
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
        (device, arithmetic): (Device, Arithmetic),
    ) -> Result<Self> {
        let state = &begin(architecture, recipe, shape, state.clone())?;
        let layout = Layout::new(architecture);
        let weights = DeviceWeights::upload(architecture, &layout, state, device, arithmetic)?;
        let average = match &state.average {
            Some((learned, measured)) => {
                Some(DeviceAverage::upload(architecture, &layout, learned, measured, &weights)?)
            }
            None => None,
        };
        let (factors, shifts): (Vec<f32>, Vec<f32>) = normalisation.affine().into_iter().unzip();
        let on_device = |values: &[f32]| Tensor::f_from_slice(values)?.f_to_device(device);
        let affine = (on_device(&factors)?, on_device(&shifts)?);
        let inputs = Inputs::new(recipe.batch, shape, device)?;
        let adam = match (recipe.optimiser, device) {
            (Optimiser::Adam, Device::Cuda(_)) => Adam::find().ok(),
            _ => None,
        };
        let network = Network::new(architecture);
        Ok(Self {
            fused: Fused::find(&network, device, arithmetic).and_then(Result::ok),
            network,
            classes: architecture.outputs / recipe.sisters(),
            recipe: recipe.clone(),
            steps: state.steps,
            earlier: state.steps,
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
            looks: Looks::default(),
            anchor: None,
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
        let (points, way) = self.pass(&images)?;
        let outputs = linear(&self.weights.named, "fc", &points)?;
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
        self.differentiate(&loss, way, None)?;
        tch::no_grad(|| {
            self.count(&loss, &logits, &labels)?;
            self.move_weights()
        })
    }

    /// Points of images, with the batch's own statistics, and the backward pass.
    pub(super) fn pass(&self, images: &Tensor) -> Result<(Tensor, Way)> {
        let weights = &self.weights.named;
        let Some(fused) = &self.fused else {
            let stage = self.network.last_stage(weights, images, true)?;
            let points = self.network.points(weights, &mean_over_pixels(&stage)?)?;
            return Ok((points, Way::Automatic(stage)));
        };
        let (trunk, tape) = tch::no_grad(|| fused.forward(&self.network, weights, images))?;
        let trunk = trunk.f_set_requires_grad(true)?;
        Ok((self.network.points(weights, &trunk)?, Way::Fused(trunk, tape)))
    }

    /// The gradient of all weights. `stage` is the last stage's output if the loss has a part in it
    /// which libtorch does not remember.
    pub(super) fn differentiate(
        &mut self,
        loss: &Tensor,
        way: Way,
        stage: Option<&Tensor>,
    ) -> Result<()> {
        let leaves = &self.weights.leaves;
        let gradients = match (way, &self.fused) {
            (Way::Fused(trunk, tape), Some(fused)) => {
                // What follows the stages is libtorch's; from there back the kernels are ours.
                let places = self.layout.places.iter().zip(leaves);
                let (names, after): (Vec<&str>, Vec<&Tensor>) = places
                    .filter(|(place, _)| place.is_linear())
                    .map(|(place, leaf)| (place.parameter.name.as_str(), leaf))
                    .unzip();
                let asked: Vec<&Tensor> =
                    std::iter::once(&trunk).chain(stage).chain(after).collect();
                let mut gradients = Tensor::f_run_backward(&[loss], &asked, false, false)?;
                let points = gradients.remove(0);
                let of_stage = stage.map(|_| gradients.remove(0));
                let named = &self.weights.named;
                let mut found = tch::no_grad(|| {
                    fused.backward(&self.network, named, tape, (&points, of_stage.as_ref()))
                })?;
                found.extend(names.into_iter().map(str::to_owned).zip(gradients));
                let missing = |name: &str| Error::Engine { what: format!("no gradient of {name}") };
                let names = self.layout.places.iter().map(|place| &place.parameter.name);
                names
                    .map(|name| found.remove(name).ok_or_else(|| missing(name)))
                    .collect::<Result<Vec<_>>>()?
            }
            _ => Tensor::f_run_backward(&[loss], leaves, false, false)?,
        };
        tch::no_grad(|| self.weights.collect(&self.layout, &gradients))
    }

    /// Normalised images in `[n · sisters, channels, height, width]`, rotation after rotation.
    pub(super) fn prepare(&self, pixels: &Tensor, sisters: i64) -> Result<Tensor> {
        let kind = self.weights.kernels.kind();
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
    pub(super) fn move_weights(&mut self) -> Result<()> {
        let weights = &mut self.weights;
        let decay = f64::from(self.recipe.decay);
        if let Some(anchor) = &self.anchor {
            weights.hold(anchor)?;
        }
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
        refresh(&mut weights.kernels, &weights.learned, &self.layout)?;
        if let (Some(average), Some(keep)) = (&mut self.average, self.recipe.average) {
            let share = 1.0 - f64::from(keep);
            let _ = average.learned.f_lerp_(&weights.learned, share)?;
            let _ = average.measured.f_lerp_(&weights.measured, share)?;
        }
        Ok(())
    }

    /// Images as they are, ready for the network.
    pub(super) fn upload(&self, pixels: &[u8], images: usize) -> Result<Tensor> {
        let raw = sent(pixels, self.device)?.f_view(size(images, self.shape))?;
        self.prepare(&raw, 1)
    }

    pub(super) fn check(&self, pixels: &[u8], images: usize) -> Result<()> {
        let expected = images * self.shape.len();
        if pixels.len() == expected {
            return Ok(());
        }
        Err(ivoro_vision::Error::Pixels { expected, found: pixels.len() }.into())
    }
}

/// What [`Trainer`](ivoro_vision::engine::Trainer) asks for.
impl TorchTrainer {
    pub(super) fn step(&mut self, batch: Batch<'_>, rate: f32) -> Result<()> {
        self.check(batch.pixels, batch.labels.len())?;
        // The backward pass from points goes through the weights they were made with.
        self.looks.forget();
        if let Some(&label) = batch.labels.iter().find(|&&label| label as usize >= self.classes) {
            return Err(ivoro_vision::Error::Label { label, classes: self.classes }.into());
        }
        let fits = batch.labels.len() as i64 == self.inputs.labels.size()[0];
        if !fits {
            // Another batch size: what was recorded no longer fits.
            self.recorded = None;
            self.inputs = Inputs::new(batch.labels.len(), self.shape, self.device)?;
        }
        self.inputs.fill(batch, self.device)?;
        let _ = self.weights.rate.f_fill_(f64::from(rate))?;
        match (&mut self.recorded, self.device) {
            (Some(graph), _) => graph.replay(),
            (None, Device::Cuda(index)) if self.steps - self.earlier >= WARM_UP && fits => {
                // Recording does the step only in part: it is replayed for its effect.
                let mut graph = Graph::record(index as i8, || self.compute())?;
                graph.replay();
                self.recorded = Some(graph);
            }
            _ => self.compute()?,
        }
        self.steps += 1;
        self.views += (batch.labels.len() * self.recipe.sisters()) as u64;
        Ok(())
    }

    pub(super) fn tally(&mut self) -> Result<Tally> {
        let sums: Vec<f64> = Vec::try_from(self.weights.tally.f_to_device(Device::Cpu)?)?;
        let _ = tch::no_grad(|| self.weights.tally.f_zero_())?;
        Ok(Tally { loss: sums[0], correct: sums[1] as u64, views: std::mem::take(&mut self.views) })
    }

    pub(super) fn state(&mut self) -> Result<State> {
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

    pub(super) fn outputs(&mut self, pixels: &[u8]) -> Result<Matrix> {
        let images = pixels.len() / self.shape.len().max(1);
        self.check(pixels, images)?;
        tch::no_grad(|| {
            let images = self.upload(pixels, images)?;
            let named = match &mut self.average {
                Some(average) => {
                    refresh(&mut average.kernels, &average.learned, &self.layout)?;
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

/// Axes of images as they come.
pub(super) fn size(images: usize, Shape { height, width, channels }: Shape) -> [i64; 4] {
    [images, height, width, channels].map(|size| size as i64)
}

impl Inputs {
    fn new(images: usize, shape: Shape, device: Device) -> Result<Self> {
        Ok(Self {
            pixels: Tensor::f_zeros(size(images, shape), (Kind::Uint8, device))?,
            labels: Tensor::f_zeros([images as i64], (Kind::Int64, device))?,
        })
    }

    fn fill(&mut self, batch: Batch<'_>, device: Device) -> Result<()> {
        let labels: Vec<i64> = batch.labels.iter().copied().map(i64::from).collect();
        let size = self.pixels.size();
        self.pixels.f_copy_(&sent(batch.pixels, device)?.f_view(size.as_slice())?)?;
        self.labels.f_copy_(&sent(&labels, device)?)?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "trainer_tests.rs"]
mod tests;
