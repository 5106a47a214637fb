//! Where networks are computed, chosen by name.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A place to compute: `cpu`, `cuda` or `cuda:N`. Behind a GPU, `:full` asks for 32-bit numbers and
/// `:fast` for a search for the fastest kernels.
///
/// On a GPU the default is mixed arithmetic: bfloat16 convolutions, in a frozen network with the
/// batch norm and its bias in them, and everything else in 32 bits. Kernels are chosen by rule. A
/// search measures time, so that its choice, and with it the last digits, can be another one in
/// every run.
///
/// This is the name alone. An [`Engine`](super::Engine) opens it.
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

    /// The index of the GPU, unless it is the CPU.
    pub fn gpu(&self) -> Option<usize> {
        self.gpu
    }

    /// Whether everything is computed in 32 bits.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the fastest kernels are searched for.
    pub fn is_fast(&self) -> bool {
        self.fast
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
