//! The engine that this build of the program has.

use ivoro_vision::engine::{Device, Engine};

use crate::failure::Failure;

/// The engine that computes networks on a device.
pub(crate) fn engine(device: &Device) -> Result<Box<dyn Engine>, Failure> {
    #[cfg(feature = "torch")]
    let engine = ivoro_torch::TorchEngine::open(device)?;
    #[cfg(not(feature = "torch"))]
    let engine = ivoro_vision::engine::cpu::CpuEngine::open(device)?;
    Ok(Box::new(engine))
}
