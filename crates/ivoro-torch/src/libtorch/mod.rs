//! The fast engine: libtorch through `tch`, on the CPU or on an NVIDIA GPU.
//!
//! The library is the one inside the `torch` wheel. Its CUDA part is opened at run time, so that
//! one binary, built where no CUDA is installed, uses a GPU where there is one.

mod backbone;
mod custom_loss;
mod engine;
mod error;
mod forward;
mod fused;
mod kernels;
mod layout;
mod libtorch_ffi;
mod trainer;
mod weights;

pub use engine::TorchEngine;
pub use libtorch_ffi::synchronise;

use tch::{Device, Kind};

use error::Result;

/// What convolutions are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arithmetic {
    /// 32-bit numbers everywhere.
    Full,
    /// bfloat16 for convolutions, which in a frozen network have the batch norm in them; weights,
    /// statistics, linear layers and loss in 32 bits.
    Mixed,
}

impl Arithmetic {
    fn kind(self) -> Kind {
        match self {
            Self::Full => Kind::Float,
            Self::Mixed => Kind::BFloat16,
        }
    }
}

/// The GPU of this index. A search for the fastest kernels may find others in every run.
fn gpu(index: usize, search: bool) -> Result<Device> {
    libtorch_ffi::load_cuda()?;
    let found = tch::Cuda::device_count();
    if (index as i64) < found {
        libtorch_ffi::make_current(index as i32)?;
        libtorch_ffi::keep_32_bits()?;
        // Results must repeat: cuDNN may otherwise choose kernels that add in changing order.
        libtorch_ffi::set_deterministic();
        tch::Cuda::cudnn_set_benchmark(search);
        // What is left for the CPU is too small to be shared among its cores.
        tch::set_num_threads(1);
        return Ok(Device::Cuda(index));
    }
    let (asked, found) = (format!("cuda:{index}"), format!("{found} usable GPUs"));
    Err(ivoro_vision::Error::NoDevice { asked, found }.into())
}
