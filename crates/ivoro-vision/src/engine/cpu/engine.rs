//! The engine as one that opens networks.

use super::{CpuTrainer, Network};
use crate::engine::{Backbone, CustomLossTrainer, Device, Engine, Normalisation, State};
use crate::error::{Error, Result};
use crate::network::{Architecture, Weights};
use crate::recipe::Recipe;
use crate::shape::Shape;

/// The engine on the CPU, which is always there.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuEngine;

impl CpuEngine {
    /// The engine, if the device is the CPU; an error for a GPU.
    pub fn open(device: &Device) -> Result<Self> {
        if device.gpu().is_none() {
            return Ok(Self);
        }
        let found = "this program was built without the feature `torch`, which serves GPUs";
        Err(Error::NoDevice { asked: device.to_string(), found: found.to_owned() })
    }
}

impl Engine for CpuEngine {
    fn backbone(&self, weights: &Weights) -> Result<Box<dyn Backbone>> {
        Ok(Box::new(Network::new(weights)?))
    }

    fn trainer(
        &self,
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
    ) -> Result<Box<dyn CustomLossTrainer>> {
        let (architecture, normalisation) = (architecture.clone(), normalisation.clone());
        let state = state.clone();
        let trainer = CpuTrainer::new(architecture, recipe, normalisation, shape, state)?;
        Ok(Box::new(trainer))
    }
}
