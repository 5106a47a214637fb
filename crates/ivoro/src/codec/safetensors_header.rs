//! What stands before the numbers of a safetensors file: the length of the header, and the header. The
//! same content gives the same bytes, which the safetensors crate doesn't promise of metadata.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, json};

use crate::error::{Error, Result};

/// Safetensors readers refuse longer headers.
const LONGEST: usize = 100_000_000;

/// Safetensors' word for a kind of number, and its bytes.
pub type Kind = (&'static str, usize);

/// 64-bit integers.
pub const I64: Kind = ("I64", 8);
/// 16-bit integers.
pub const I16: Kind = ("I16", 2);
/// 8-bit integers.
pub const I8: Kind = ("I8", 1);
/// 32-bit floats.
pub const F32: Kind = ("F32", 4);
/// 16-bit floats.
pub const F16: Kind = ("F16", 2);

/// What a header says of one tensor.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The tensor's name.
    pub name: String,
    /// The kind of its numbers.
    pub kind: Kind,
    /// Its shape.
    pub shape: Vec<usize>,
}

impl Entry {
    /// Bytes of its numbers.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.kind.1
    }
}

/// The bytes before the numbers of a file whose tensors follow in this order, one directly after the
/// other; `path` is for messages. Keys are sorted, and the numbers begin at a multiple of 8.
pub fn encode<'a>(
    path: &Path,
    metadata: &BTreeMap<String, String>,
    tensors: impl IntoIterator<Item = &'a Entry>,
) -> Result<Vec<u8>> {
    let mut entries = Map::new();
    entries.insert("__metadata__".to_owned(), json!(metadata));
    let mut start = 0;
    for tensor in tensors {
        let end = start + tensor.bytes();
        let entry =
            json!({"dtype": tensor.kind.0, "shape": tensor.shape, "data_offsets": [start, end]});
        entries.insert(tensor.name.clone(), entry);
        start = end;
    }
    let mut bytes = vec![0; 8];
    serde_json::to_writer(&mut bytes, &entries)
        .map_err(|error| Error::malformed(path, format!("no header can be written: {error}")))?;
    // readers expect the numbers to be aligned
    bytes.resize(bytes.len().next_multiple_of(8), b' ');
    let length = bytes.len() - 8;
    if length > LONGEST {
        let what = "the names of classes and layers make too long a header";
        return Err(Error::malformed(path, what));
    }
    bytes[..8].copy_from_slice(&(length as u64).to_le_bytes());
    Ok(bytes)
}
