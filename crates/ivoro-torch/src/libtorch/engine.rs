//! The traits of `ivoro-vision`, on libtorch. Each method hands on to one of the same name whose
//! errors are libtorch's.

use ivoro::Matrix;
use ivoro_vision::Result;
use ivoro_vision::engine::{
    Anchor, Backbone, Batch, CustomLossTrainer, Device, Engine, Normalisation, State, Tally,
    Trainer,
};
use ivoro_vision::network::{Architecture, Weights};
use ivoro_vision::recipe::Recipe;
use ivoro_vision::shape::Shape;

use super::Arithmetic;
use super::backbone::TorchNetwork;
use super::trainer::TorchTrainer;

/// libtorch on one device.
#[derive(Clone, Debug)]
pub struct TorchEngine {
    device: Device,
}

impl TorchEngine {
    /// Opens the device: an error, if it asks for a GPU that is not there.
    pub fn open(device: &Device) -> Result<Self> {
        let engine = Self { device: device.clone() };
        engine.place()?;
        Ok(engine)
    }

    /// The device of libtorch. A GPU is made the current one of the thread that asks.
    fn place(&self) -> Result<(tch::Device, Arithmetic)> {
        let Some(index) = self.device.gpu() else {
            return Ok((tch::Device::Cpu, Arithmetic::Full));
        };
        let arithmetic = if self.device.is_full() { Arithmetic::Full } else { Arithmetic::Mixed };
        Ok((super::gpu(index, self.device.is_fast())?, arithmetic))
    }
}

impl Engine for TorchEngine {
    fn backbone(&self, weights: &Weights) -> Result<Box<dyn Backbone>> {
        let (device, arithmetic) = self.place()?;
        Ok(Box::new(TorchNetwork::new(weights, device, arithmetic)?))
    }

    fn trainer(
        &self,
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
    ) -> Result<Box<dyn CustomLossTrainer>> {
        let place = self.place()?;
        let trainer = TorchTrainer::new(architecture, recipe, normalisation, shape, state, place)?;
        Ok(Box::new(trainer))
    }
}

impl Backbone for TorchNetwork {
    fn layers(&self) -> &[(String, usize)] {
        &self.layers
    }

    fn shape(&self) -> Option<Shape> {
        None
    }

    fn engine(&self) -> &'static str {
        "libtorch"
    }

    fn features(&self, pixels: &[u8], shape: Shape, layers: &[usize]) -> Result<Vec<Matrix>> {
        Ok(self.features(pixels, shape, layers)?)
    }

    fn points_and_maps(&self, pixels: &[u8], shape: Shape) -> Result<(Matrix, Matrix)> {
        Ok(self.points_and_maps(pixels, shape)?)
    }
}

impl Trainer for TorchTrainer {
    fn step(&mut self, batch: Batch<'_>, rate: f32) -> Result<()> {
        Ok(self.step(batch, rate)?)
    }

    fn tally(&mut self) -> Result<Tally> {
        Ok(self.tally()?)
    }

    fn state(&mut self) -> Result<State> {
        Ok(self.state()?)
    }

    fn outputs(&mut self, pixels: &[u8]) -> Result<Matrix> {
        Ok(self.outputs(pixels)?)
    }
}

impl CustomLossTrainer for TorchTrainer {
    fn embed(&mut self, pixels: &[u8]) -> Result<Matrix> {
        Ok(self.embed(pixels)?)
    }

    fn maps(&mut self) -> Result<Matrix> {
        Ok(self.maps()?)
    }

    fn backward(&mut self, points: &Matrix, maps: Option<&Matrix>) -> Result<()> {
        Ok(self.backward(points, maps)?)
    }

    fn gradient(&mut self) -> Result<Vec<f32>> {
        Ok(self.gradient()?)
    }

    fn apply_gradient(&mut self, rate: f32) -> Result<()> {
        Ok(self.apply_gradient(rate)?)
    }

    fn hold(&mut self, anchor: &Anchor) -> Result<()> {
        Ok(self.hold(anchor)?)
    }
}
