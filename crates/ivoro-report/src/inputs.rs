//! What a report is made of: records, scenes and embeddings, and what could not be read.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use ivoro_eval::picture::{self, Embedding, Scene};
use ivoro_eval::record::{self, Kind, MethodRecord, RunRecord};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most bytes that a compressed file may unpack to.
const MOST_BYTES: u64 = 1 << 30;

/// Why a file is not in a report.
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

/// A file and what is wrong with it.
#[derive(Debug)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// What is wrong.
    pub error: ReadError,
}

/// Something read, and where it stood.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// The file, as it was named.
    pub file: String,
    /// What it holds.
    pub content: T,
}

impl<T: DeserializeOwned> Found<T> {
    fn of(file: &str, value: Value, version: u32) -> Result<Self, ReadError> {
        Ok(Self { file: file.to_owned(), content: checked(value, version)? })
    }
}

/// The cells of a grid, as a job that runs them leaves it behind (`grid.json`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the file's format.
    pub version: u32,
    /// All cells.
    pub cells: Vec<PlannedCell>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Its folder, from where the file stands.
    pub folder: String,
    /// The command that runs it.
    pub command: String,
}

impl Plan {
    /// The version that is read and written here.
    pub const VERSION: u32 = 1;
}

/// Everything that a report is made of.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Results of runs.
    pub records: Vec<Found<RunRecord>>,
    /// Diagrams in the plane.
    pub scenes: Vec<Found<Scene>>,
    /// Features brought to the plane.
    pub embeddings: Vec<Found<Embedding>>,
    /// What jobs were to run.
    pub plans: Vec<Found<Plan>>,
    /// Files that say a cell came to its end.
    pub ends: Vec<String>,
    /// Files that are not in the report.
    pub problems: Vec<Problem>,
    /// The revision that each baseline has now; results of an earlier one are marked.
    pub revisions: BTreeMap<String, u64>,
}

/// What a file holds, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `run.json`, `run-ORDER.json`.
    Record,
    /// `NAME.scene.json`.
    Scene,
    /// `NAME.tsne.json`.
    Embedding,
    /// `grid.json`.
    Plan,
    /// `cell.json`.
    End,
}

impl FileKind {
    /// By the name of a file, with or without `.gz` at its end; `None` for other files.
    pub fn of(name: &str) -> Option<Self> {
        let plain = name.strip_suffix(".gz").unwrap_or(name);
        let base = plain.rsplit(['/', '\\']).next().unwrap_or(plain);
        let stem = base.strip_suffix(".json")?;
        match stem.rsplit_once('.') {
            Some((_, "scene")) => Some(Self::Scene),
            Some((_, "tsne")) => Some(Self::Embedding),
            _ if stem == "grid" => Some(Self::Plan),
            _ if stem == "cell" => Some(Self::End),
            _ if stem == "run" || stem.starts_with("run-") => Some(Self::Record),
            _ => None,
        }
    }
}

impl Inputs {
    /// Whether a baseline has changed since it was trained.
    pub fn is_outdated(&self, method: &MethodRecord) -> bool {
        let present = self.revisions.get(&method.name).filter(|_| method.kind == Kind::Baseline);
        present.is_some_and(|&present| method.revision() < present)
    }

    /// Takes in one file. What can't be read becomes a problem that the report names.
    pub fn add(&mut self, file: &str, bytes: &[u8]) {
        let Some(kind) = FileKind::of(file) else { return };
        if let Err(error) = self.try_add(kind, file, bytes) {
            self.problems.push(Problem { file: file.to_owned(), error });
        }
    }

    /// Tells of a file that could not even be opened.
    pub fn unread(&mut self, file: &str, error: std::io::Error) {
        self.problems.push(Problem { file: file.to_owned(), error: ReadError::Io(error) });
    }

    fn try_add(&mut self, kind: FileKind, file: &str, bytes: &[u8]) -> Result<(), ReadError> {
        let unpacked = unpack(bytes)?;
        let value = parse(&unpacked)?;
        match kind {
            FileKind::Record => {
                let values = match value {
                    Value::Array(several) => several,
                    one => vec![one],
                };
                if values.is_empty() {
                    return Err(ReadError::Empty);
                }
                for value in values {
                    self.add_record(file, value)?;
                }
            }
            FileKind::Scene => self.scenes.push(Found::of(file, value, picture::VERSION)?),
            FileKind::Embedding => self.embeddings.push(Found::of(file, value, picture::VERSION)?),
            FileKind::Plan => self.plans.push(Found::of(file, value, Plan::VERSION)?),
            FileKind::End => self.ends.push(file.to_owned()),
        }
        Ok(())
    }

    /// Takes in a record. A method of it that can't be read is named and costs the others nothing.
    fn add_record(&mut self, file: &str, mut value: Value) -> Result<(), ReadError> {
        let methods = value.get_mut("methods").and_then(Value::as_array_mut).map(std::mem::take);
        let mut record: RunRecord = checked(value, record::VERSION)?;
        for (at, method) in methods.into_iter().flatten().enumerate() {
            match deserialized(method, &format!("methods[{at}].")) {
                Ok(method) => record.methods.push(method),
                Err(error) => self.problems.push(Problem { file: file.to_owned(), error }),
            }
        }
        self.records.push(Found { file: file.to_owned(), content: record.with_revisions() });
        Ok(())
    }
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

/// JSON, also with the `NaN` and `Infinity` that some programs write into it.
fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| {
        let plain = without_nan(bytes);
        serde_json::from_slice(&plain).map_err(|_| error)
    })
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
    fn files_are_known_by_their_names() {
        let kind = FileKind::of;
        assert_eq!(kind("runs/a/run.json"), Some(FileKind::Record));
        assert_eq!(kind("runs/a/run-numpy-1993.json.gz"), Some(FileKind::Record));
        assert_eq!(kind("mnist.scene.json"), Some(FileKind::Scene));
        assert_eq!(kind("mnist.tsne.json.gz"), Some(FileKind::Embedding));
        assert_eq!(kind("runs/grid.json"), Some(FileKind::Plan));
        assert_eq!(kind("runs/a/cell.json"), Some(FileKind::End));
        assert_eq!(kind("settings.json"), None);
        assert_eq!(kind("run.json.zst"), None);
    }

    #[test]
    fn nan_is_taken_for_nothing_but_not_in_names() {
        let plain = without_nan(br#"{"a": NaN, "NaN \" Infinity": [-Infinity, Infinity, 1]}"#);
        let text = String::from_utf8(plain).unwrap();
        assert_eq!(text, r#"{"a": null, "NaN \" Infinity": [null, null, 1]}"#);
    }

    #[test]
    fn a_damaged_archive_is_named() {
        let mut inputs = Inputs::default();
        inputs.add("run.json.gz", &[0x1f, 0x8b, 8, 0, 0]);
        inputs.add("run-a.json", b"{\"version\": 7}");
        inputs.add("run-b.json", b"[1, 2");
        inputs.add("run-c.json", b"{}");
        let texts: Vec<String> = inputs.problems.iter().map(|p| p.error.to_string()).collect();
        assert!(texts[0].contains("gzip"), "{texts:?}");
        assert_eq!(texts[1], "format version 7, this program reads version 1");
        assert!(texts[2].contains("EOF"), "{texts:?}");
        assert_eq!(texts[3], "format version none, this program reads version 1");
        assert!(inputs.records.is_empty());
    }
}
