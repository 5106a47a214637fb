//! The model file: one safetensors file with typed metadata.
//!
//! Written to a sibling, synced and renamed, so that a reader and a power cut see the old file or
//! the new one. Every size is checked against the metadata before it is used, and a checksum covers
//! metadata and numbers. `docs/format.md` describes the layout.

mod header;
mod lock;
mod read;
mod source;
mod write;

use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::head::{Settings, Variant};
use crate::learner::Choice;

pub use lock::ModelLock;
pub use read::{load, load_bytes, load_to_ask};
pub use write::{save, save_bytes};

/// Name of the format in the file's metadata.
const FORMAT: &str = "ivoro-model";
/// Newest version this program reads, and the one it writes.
const VERSION: u64 = 1;

/// Everything in a model file that is not a tensor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    variant: Variant,
    settings: Settings,
    layers: Vec<(String, usize)>,
    views: usize,
    dims: Vec<usize>,
    probe_dims: Vec<usize>,
    /// Exponents of the fixed-point grids, one a block.
    grids: Vec<i32>,
    classes: Vec<String>,
    cliques: Vec<CliqueShape>,
    calibration: Option<Calibration>,
    choices: Vec<Choice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CliqueShape {
    size: usize,
    probe: bool,
    residual: bool,
}

/// The checksum over the description and all tensor bytes in order of name.
fn checksum<'a>(description: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(description.as_bytes());
    for (name, bytes) in tensors {
        hasher.update(name.as_bytes()).update(&(bytes.len() as u64).to_le_bytes());
        hasher.update_rayon(bytes);
    }
    hasher.finalize().to_hex().to_string()
}
