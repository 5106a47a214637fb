//! Where networks are computed, chosen by name.

use std::fmt;
use std::str::FromStr;

use super::{Backbone, Normalisation, State, Student};
use crate::dataset::Shape;
use crate::error::{Error, Result};
use crate::network::{Architecture, Weights};
use crate::train::Recipe;

/// A place to compute: `cpu`, `cuda` or `cuda:N`, with `:full` behind for 32-bit numbers on a GPU.
///
/// On a GPU the default is mixed arithmetic: bfloat16 convolutions, everything else in 32 bits.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Device {
    gpu: Option<usize>,
    full: bool,
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (place, full) = text.strip_suffix(":full").map_or((text, false), |rest| (rest, true));
        let gpu = match place.split_once(':') {
            None if place == "cpu" => return Ok(Self { gpu: None, full: true }),
            None if place == "cuda" => Some(0),
            Some(("cuda", index)) => index.parse().ok(),
            _ => None,
        };
        if gpu.is_none() {
            let reason = "expected cpu, cuda or cuda:N, with :full behind for 32-bit arithmetic";
            return Err(Error::Setting { name: "device", value: text.to_owned(), reason });
        }
        Ok(Self { gpu, full })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gpu {
            None => write!(f, "cpu"),
            Some(index) => write!(f, "cuda:{index}{}", if self.full { ":full" } else { "" }),
        }
    }
}

#[cfg(feature = "torch")]
impl Device {
    fn open(&self) -> Result<(tch::Device, super::torch::Arithmetic)> {
        use super::torch::{Arithmetic, device};
        Ok(match self.gpu {
            None => (tch::Device::Cpu, Arithmetic::Full),
            Some(index) => {
                let arithmetic = if self.full { Arithmetic::Full } else { Arithmetic::Mixed };
                (device(index)?, arithmetic)
            }
        })
    }

    /// A network in training, going on from `state`.
    pub fn trainer(
        &self,
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
    ) -> Result<Box<dyn Student>> {
        let place = self.open()?;
        let trainer = super::torch::TorchTrainer::new(
            architecture,
            recipe,
            normalisation,
            shape,
            state,
            place,
        )?;
        Ok(Box::new(trainer))
    }

    /// A frozen network.
    pub fn backbone(&self, weights: &Weights) -> Result<Box<dyn Backbone>> {
        let (device, arithmetic) = self.open()?;
        Ok(Box::new(super::torch::TorchNetwork::new(weights, device, arithmetic)?))
    }
}

#[cfg(not(feature = "torch"))]
impl Device {
    fn check(&self) -> Result<()> {
        if self.gpu.is_none() {
            return Ok(());
        }
        let found = "this program was built without the feature `torch`, which serves GPUs";
        Err(Error::NoDevice { asked: self.to_string(), found: found.to_owned() })
    }

    /// A network in training, going on from `state`.
    pub fn trainer(
        &self,
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
    ) -> Result<Box<dyn Student>> {
        self.check()?;
        let (architecture, normalisation) = (architecture.clone(), normalisation.clone());
        let state = state.clone();
        let trainer =
            super::cpu::CpuTrainer::new(architecture, recipe, normalisation, shape, state)?;
        Ok(Box::new(trainer))
    }

    /// A frozen network.
    pub fn backbone(&self, weights: &Weights) -> Result<Box<dyn Backbone>> {
        self.check()?;
        Ok(Box::new(super::cpu::Network::new(weights)?))
    }
}
