//! Reading records: from bytes, plain or packed by gzip, with a message that names the field.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{RunRecord, VERSION};

/// Most bytes that a compressed file may unpack to.
const MOST_BYTES: u64 = 1 << 30;

/// Why a file, or a part of it, can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file can't be read.
    #[error("{0}")]
    Io(std::io::Error),
    /// The compressed file is damaged.
    #[error("not a complete gzip file: {0}")]
    Gzip(std::io::Error),
    /// The compressed file is too large.
    #[error("unpacks to more than {MOST_BYTES} bytes")]
    TooLarge,
    /// It is a list without a record.
    #[error("holds no record")]
    Empty,
    /// It is no JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON, but not of this kind.
    #[error("{field}: {error}")]
    Field {
        /// Where in it.
        field: String,
        /// What is wrong there.
        error: serde_json::Error,
    },
    /// It was written by another version.
    #[error("format version {found}, this program reads version {supported}")]
    Version {
        /// The version in the file, as it stands there.
        found: String,
        /// The version read here.
        supported: u32,
    },
}

/// What a file of records holds.
#[derive(Debug, Default)]
pub struct RecordFile {
    /// The records, with the methods that could be read.
    pub records: Vec<RunRecord>,
    /// What is wrong with the records and methods that could not be read.
    pub unread: Vec<ReadError>,
}

/// Reads a file of one record or a list of them. A part that can't be read costs the others nothing.
///
/// ```
/// use ivoro_eval::record::{self, RunRecord};
/// let record = RunRecord { version: record::VERSION, ..RunRecord::default() };
/// let file = record::read(&serde_json::to_vec(&record)?)?;
/// assert_eq!(file.records, [record]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<RecordFile, ReadError> {
    let values = match read_json(bytes)? {
        Value::Array(several) if several.is_empty() => return Err(ReadError::Empty),
        Value::Array(several) => several,
        one => vec![one],
    };
    let mut file = RecordFile::default();
    for value in values {
        match with_methods(value, &mut file.unread) {
            Ok(record) => file.records.push(record),
            Err(error) => file.unread.push(error),
        }
    }
    Ok(file)
}

/// Reads any other versioned file: its field `version` must be `supported`.
pub fn read_versioned<T: DeserializeOwned>(bytes: &[u8], supported: u32) -> Result<T, ReadError> {
    checked(read_json(bytes)?, supported)
}

/// Reads JSON, also with the `NaN` and `Infinity` that some programs write into it.
pub fn read_json(bytes: &[u8]) -> Result<Value, ReadError> {
    let bytes = unpack(bytes)?;
    let value = serde_json::from_slice(&bytes);
    Ok(value.or_else(|error| serde_json::from_slice(&without_nan(&bytes)).map_err(|_| error))?)
}

/// A record; of its methods, those that can't be read are named in `unread`.
fn with_methods(mut value: Value, unread: &mut Vec<ReadError>) -> Result<RunRecord, ReadError> {
    let methods = value.get_mut("methods").and_then(Value::as_array_mut).map(std::mem::take);
    let mut record: RunRecord = checked(value, VERSION)?;
    for (at, method) in methods.into_iter().flatten().enumerate() {
        match deserialized(method, &format!("methods[{at}].")) {
            Ok(method) => record.methods.push(method),
            Err(error) => unread.push(error),
        }
    }
    Ok(record.with_revisions())
}

/// The bytes themselves, unpacked where they are those of gzip.
fn unpack(bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
    // some editors begin a text with this mark
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes.to_vec());
    }
    let mut out = Vec::new();
    let mut limited = GzDecoder::new(bytes).take(MOST_BYTES + 1);
    limited.read_to_end(&mut out).map_err(ReadError::Gzip)?;
    if out.len() as u64 > MOST_BYTES { Err(ReadError::TooLarge) } else { Ok(out) }
}

/// `NaN`, `Infinity` and `-Infinity` outside of strings become `null`.
fn without_nan(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut at, mut quoted) = (Vec::with_capacity(bytes.len()), 0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let word =
            [&b"NaN"[..], b"-Infinity", b"Infinity"].into_iter().find(|w| rest.starts_with(w));
        if let (false, Some(word)) = (quoted, word) {
            out.extend_from_slice(b"null");
            at += word.len();
            continue;
        }
        if quoted && rest[0] == b'\\' && rest.len() > 1 {
            out.extend_from_slice(&rest[..2]);
            at += 2;
            continue;
        }
        quoted ^= rest[0] == b'"';
        out.push(rest[0]);
        at += 1;
    }
    out
}

fn checked<T: DeserializeOwned>(value: Value, supported: u32) -> Result<T, ReadError> {
    let found = value.get("version").cloned().unwrap_or(Value::Null);
    if found.as_u64() != Some(u64::from(supported)) {
        let found = match found {
            Value::Null => "none".to_owned(),
            other => other.to_string().chars().take(40).collect(),
        };
        return Err(ReadError::Version { found, supported });
    }
    deserialized(value, "")
}

fn deserialized<T: DeserializeOwned>(value: Value, within: &str) -> Result<T, ReadError> {
    serde_path_to_error::deserialize(value).map_err(|error| ReadError::Field {
        field: format!("{within}{}", error.path()),
        error: error.into_inner(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_taken_for_nothing_but_not_in_names() {
        let plain = without_nan(br#"{"a": NaN, "NaN \" Infinity": [-Infinity, Infinity, 1]}"#);
        let text = String::from_utf8(plain).unwrap();
        assert_eq!(text, r#"{"a": null, "NaN \" Infinity": [null, null, 1]}"#);
    }

    #[test]
    fn one_bad_record_or_method_costs_the_others_nothing() {
        let good = RunRecord { version: VERSION, ..RunRecord::default() };
        let mut bad_method = serde_json::to_value(&good).unwrap();
        bad_method["methods"] = serde_json::json!([{"name": 5}]);
        let bad = serde_json::json!({"version": 7});
        let list = serde_json::json!([bad, good, bad_method]);
        let file = read(list.to_string().as_bytes()).unwrap();
        assert_eq!(file.records, [good.clone(), good]);
        let said: Vec<String> = file.unread.iter().map(ToString::to_string).collect();
        assert_eq!(said[0], "format version 7, this program reads version 1");
        assert!(said[1].starts_with("methods[0].name: "), "{said:?}");
        assert!(matches!(read(b"[]"), Err(ReadError::Empty)));
    }
}
