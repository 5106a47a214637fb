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
        if let Some(kind) = other_kind(bytes) {
            return Err(malformed(format!("this is {kind}, not a model")));
        }
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

/// What else a file is that begins so, in words.
fn other_kind(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 13] = [
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"\x89PNG\r\n", "a PNG image"),
        (b"GIF8", "a GIF image"),
        (b"II*\0", "a TIFF image"),
        (b"MM\0*", "a TIFF image"),
        (b"BM", "a BMP image"),
        (b"RIFF", "a WebP image or another RIFF file"),
        (b"%PDF", "a PDF document"),
        (b"PK\x03\x04", "a zip or .npz archive"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"\x93NUMPY", "a .npy array"),
        (b"PAR1", "a Parquet table"),
        (b"ARROW1", "an Arrow table"),
    ];
    // a model begins with the length of its header, in eight bytes of which the last ones are zero
    let may_be_one = bytes.get(4..8).is_none_or(|high| high == [0; 4]);
    let kind = KINDS.iter().find(|(start, _)| bytes.starts_with(start)).map(|(_, kind)| *kind);
    kind.filter(|_| !may_be_one)
}

#[cfg(test)]
mod tests {
    use super::other_kind;

    #[test]
    fn another_kind_of_file_is_named_and_a_model_is_none() {
        assert_eq!(other_kind(b"\xff\xd8\xff\xe0\0\x10JFIF"), Some("a JPEG image"));
        assert_eq!(other_kind(b"\x89PNG\r\n\x1a\n"), Some("a PNG image"));
        assert_eq!(other_kind(b"PK\x03\x04\x14\0\x01\x02"), Some("a zip or .npz archive"));
        assert_eq!(other_kind(b"II*\0\x08\0\0\0"), Some("a TIFF image"));
        // a header of 0x4d42 bytes begins as a BMP image does
        assert_eq!(other_kind(b"BM\0\0\0\0\0\0{}"), None);
        assert_eq!(other_kind(b"BM"), None);
        assert_eq!(other_kind(b""), None);
    }
}
