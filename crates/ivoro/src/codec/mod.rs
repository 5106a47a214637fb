//! The model file: one safetensors file with typed metadata.
//!
//! Bytes in, bytes out: `ivoro-io` has the files. Every size is checked against the metadata before it is used, and a checksum covers
//! metadata and numbers. `docs/format.md` describes the layout.
//!
//! ```
//! use ivoro::{Matrix, Model, Samples, Variant, codec};
//! let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
//! let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
//! model.learn(&Samples::single("monday", points, vec![0, 0, 1, 1], 2)?)?;
//! let file = codec::encode(&model)?;
//! let read = codec::decode("model.ivoro".as_ref(), &file)?;
//! assert_eq!(read.head(), model.head());
//! # Ok::<(), ivoro::Error>(())
//! ```

mod compact;
mod header;
mod read;
mod read_sealed;
#[doc(hidden)] // feature files and weights of networks begin alike
pub mod safetensors_header;
mod source;
mod target;
mod write;
mod write_sealed;

use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::head::{Settings, Variant};
use crate::journal::Journal;
use crate::network::NetworkDescription;
use crate::tune::Choice;

pub use read::{decode, decode_predictor, decode_receipt};
pub use write::{encode, encode_receipt, write, write_receipt};

/// Name of the format in the file's metadata, and that of a receipt: the same of a single lesson.
const FORMAT: &str = "ivoro-model";
const RECEIPT: &str = "ivoro-receipt";
/// A machine on which points were made before machines were written down.
const UNKNOWN_MACHINE: &str = "unknown";
/// Newest version this program reads.
const VERSION: u64 = 2;
/// The version it writes where nothing of the newer one is needed, so that older programs read it.
const PLAIN_VERSION: u64 = 1;

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
    /// Exponents of the fixed-point grids, one per block.
    grids: Vec<i32>,
    /// Exponents of the powers of two that columns are multiplied by, one list a block; and the same
    /// in the probe's space.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    units: Vec<Vec<i32>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    probe_units: Vec<Vec<i32>>,
    classes: Vec<String>,
    #[serde(rename = "cliques")]
    phases: Vec<PhaseShape>,
    calibration: Option<Calibration>,
    choices: Vec<Choice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    /// How images became features.
    #[serde(rename = "network_description", default, skip_serializing_if = "Option::is_none")]
    described_network: Option<NetworkDescription>,
    #[serde(default, skip_serializing_if = "Journal::is_empty")]
    journal: Journal,
    /// On whose arithmetic N and K made points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    machines: Vec<String>,
    /// Of a receipt: the classes that were known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<SealedShape>,
}

/// Sealed classes and their metric.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedShape {
    /// Bits of each number of a direction.
    bits: u8,
    /// The share of the pooled covariance in the metric of each block, and what was added to its
    /// diagonal.
    metrics: Vec<(f64, f64)>,
    /// The usual distance of a sample to its class in each block.
    usual: Vec<f64>,
    /// Places of the sealed classes.
    classes: Vec<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseShape {
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

/// Of a safetensors file that can't be read: how many bytes it lacks, if that is why.
#[doc(hidden)] // `ivoro-io` says the same of feature files
pub fn shortage(bytes: &[u8]) -> Option<String> {
    let found = bytes.len() as u64;
    let short = |what: &str, expected: u64| {
        Some(format!("{what}: expected {expected} bytes, found {found}; the file may be cut off"))
    };
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return short("the length of the header", 8);
    };
    let length = u64::from_le_bytes(*length);
    let Some(header) = usize::try_from(length).ok().and_then(|length| rest.get(..length)) else {
        return short("the header", length.saturating_add(8));
    };
    let header: serde_json::Value = serde_json::from_slice(header).ok()?;
    let ends = header.as_object().into_iter().flatten();
    let end = ends.filter_map(|(_, tensor)| tensor["data_offsets"][1].as_u64()).max()?;
    let expected = end.saturating_add(length).saturating_add(8);
    if expected > found { short("the tensors", expected) } else { None }
}
