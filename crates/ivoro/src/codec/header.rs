//! The header of a model file, checked before anything is read.

use std::path::Path;

use safetensors::tensor::Metadata;
use safetensors::{SafeTensorError, SafeTensors};

use super::{Description, VERSION, checksum};
use crate::error::{Error, Result};

/// What stands before the numbers of a model file.
pub(super) struct Header {
    /// Where the numbers begin.
    pub(super) start: usize,
    /// Where each tensor lies behind that.
    pub(super) metadata: Metadata,
    pub(super) description: Description,
}

impl Header {
    /// The header of a file of this format whose version and checksum are right.
    pub(super) fn verified(path: &Path, bytes: &[u8], format: &str) -> Result<Self> {
        let malformed = |what: String| Error::malformed(path, what);
        let broken = |error: SafeTensorError| {
            let what = super::shortage(bytes).unwrap_or_else(|| error.to_string());
            malformed(format!("not a whole model file: {what}"))
        };
        let (length, metadata) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let entries = metadata.metadata().clone().unwrap_or_default();
        let entry = |key: &str| entries.get(key).map(String::as_str);
        if entry("format") != Some(format) {
            let found = entry("format").unwrap_or("none");
            return Err(malformed(format!("expected a file of format {format}, found {found}")));
        }
        let version = entry("version").and_then(|text| text.parse::<u64>().ok());
        let found = version.ok_or_else(|| malformed("no version in the metadata".to_owned()))?;
        if found > VERSION {
            return Err(Error::NewerVersion { path: path.to_owned(), found, supported: VERSION });
        }
        let text = entry("model").ok_or_else(|| malformed("no description of the model".into()))?;
        // the length of the header stands in 8 bytes before it
        let start = length + 8;
        let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
        tensors.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let data = tensors.iter().map(|(name, info)| {
            let (first, end) = info.data_offsets;
            (name.as_str(), &bytes[start + first..start + end])
        });
        let sum = checksum(text, data);
        let expected = entry("checksum").unwrap_or("none").to_owned();
        if sum != expected {
            return Err(Error::Checksum { path: path.to_owned(), expected, found: sum });
        }
        let description: Description = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the description of the model: {error}")))?;
        Ok(Self { start, metadata, description })
    }
}
