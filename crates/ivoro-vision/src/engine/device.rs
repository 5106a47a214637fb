//! Where networks are computed, chosen by name.

use std::fmt;
use std::str::FromStr;

use super::{Backbone, CustomLossTrainer, Normalisation, State};
use crate::error::{Error, Result};
use crate::network::{Architecture, Weights};
use crate::recipe::Recipe;
use crate::shape::Shape;

/// A place to compute: `cpu`, `cuda` or `cuda:N`. Behind a GPU, `:full` asks for 32-bit numbers and
/// `:fast` for a search for the fastest kernels.
///
/// On a GPU the default is mixed arithmetic: bfloat16 convolutions, in a frozen network with the
/// batch norm and its bias in them, and everything else in 32 bits. Kernels are chosen by rule. A search measures time, so that its choice, and with it the
/// last digits, can be another one in every run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Device {
    gpu: Option<usize>,
    full: bool,
    fast: bool,
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (mut place, mut full, mut fast) = (text, false, false);
        loop {
            if let Some(rest) = place.strip_suffix(":full") {
                (place, full) = (rest, true);
            } else if let Some(rest) = place.strip_suffix(":fast") {
                (place, fast) = (rest, true);
            } else {
                break;
            }
        }
        let gpu = match place.split_once(':') {
            None if text == "cpu" => return Ok(Self { gpu: None, full: true, fast }),
            None if place == "cuda" => Some(0),
            Some(("cuda", index)) => index.parse().ok(),
            _ => None,
        };
        if gpu.is_none() {
            let reason = "expected cpu, cuda or cuda:N, a GPU with :full behind for 32-bit \
                          arithmetic or :fast for a search for the fastest kernels";
            return Err(Error::Setting { name: "device", value: text.to_owned(), reason });
        }
        Ok(Self { gpu, full, fast })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gpu {
            None => write!(f, "cpu"),
            Some(index) => {
                let (full, fast) =
                    (if self.full { ":full" } else { "" }, if self.fast { ":fast" } else { "" });
                write!(f, "cuda:{index}{full}{fast}")
            }
        }
    }
}

impl Device {
    /// How many images a frozen network is best given at once: a GPU wants many.
    pub fn batch(&self) -> usize {
        if self.gpu.is_some() { 4096 } else { 64 }
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
                (device(index, self.fast)?, arithmetic)
            }
        })
    }

    /// A network in training, resumed from `state`.
    pub fn trainer(
        &self,
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
    ) -> Result<Box<dyn CustomLossTrainer>> {
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

    /// A network in training, resumed from `state`.
    pub fn trainer(
        &self,
        architecture: &Architecture,
        recipe: &Recipe,
        normalisation: &Normalisation,
        shape: Shape,
        state: &State,
    ) -> Result<Box<dyn CustomLossTrainer>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        for name in ["cpu", "cuda:0", "cuda:3:full", "cuda:1:fast", "cuda:0:full:fast"] {
            assert_eq!(name.parse::<Device>().unwrap().to_string(), name);
        }
        assert_eq!("cuda:fast".parse::<Device>().unwrap().to_string(), "cuda:0:fast");
        for wrong in ["gpu", "cuda:x", "cpu:full", "cpu:fast", "cuda:", ":fast", ""] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
    }
}
