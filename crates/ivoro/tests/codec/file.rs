//! A model file taken apart and put together again, checksum included.

use std::path::Path;

use ivoro::codec::{decode, encode};
use ivoro::head::{ScatterKept, Settings};
use ivoro::{Error, Matrix, Model, ModelOptions, Samples};
use serde_json::{Map, Value, json};

/// Two phases of two classes each.
pub(crate) fn model(variant: &str) -> Model {
    keeping(variant, ScatterKept::PerClass)
}

/// The same with a compact scatter.
pub(crate) fn compact_model(variant: &str) -> Model {
    keeping(variant, ScatterKept::Compact)
}

fn keeping(variant: &str, scatter: ScatterKept) -> Model {
    let settings =
        Settings { lift: 20, iterations: 5, scatter, scatter_rank: 2, ..Settings::default() };
    let mut model =
        Model::new(variant.parse().unwrap(), ModelOptions { settings, ..Default::default() });
    for first in [0, 2] {
        model.learn(&features(first)).unwrap();
    }
    model
}

/// Samples of the classes `first` and `first + 1`.
pub(crate) fn features(first: u32) -> Samples {
    let labels: Vec<u32> = (0..12).map(|row| first + row % 2).collect();
    let value = |at: usize| {
        let label = labels[at / 3] as usize;
        ((at * 7919 + 13) % 101) as f32 / 50.0 + (label * (at % 3 + 1)) as f32
    };
    let points = Matrix::new(12, 3, (0..36).map(value).collect()).unwrap();
    Samples::single("test", points, labels.clone(), 4).unwrap()
}

pub(crate) fn bytes_of(model: &Model) -> Vec<u8> {
    encode(model).unwrap()
}

pub(crate) fn loaded(bytes: &[u8]) -> Result<Model, Error> {
    decode(Path::new("attack.ivoro"), bytes)
}

#[track_caller]
pub(crate) fn assert_malformed(bytes: &[u8], part: &str) {
    match loaded(bytes) {
        Err(Error::Malformed { what, .. }) => assert!(what.contains(part), "{what}"),
        other => panic!("{:?}", other.map(|_| "loaded")),
    }
}

/// A safetensors file in parts.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) header: Map<String, Value>,
    pub(crate) data: Vec<u8>,
}

impl Parts {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        Self { header, data: bytes[8 + length..].to_vec() }
    }

    pub(crate) fn metadata(&mut self) -> &mut Map<String, Value> {
        self.header["__metadata__"].as_object_mut().unwrap()
    }

    /// Changes the description of the model.
    pub(crate) fn describe(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let text = self.metadata()["model"].as_str().unwrap().to_owned();
        let mut description: Value = serde_json::from_str(&text).unwrap();
        change(&mut description);
        self.metadata().insert("model".to_owned(), json!(description.to_string()));
        self
    }

    /// Where the numbers of a tensor lie.
    pub(crate) fn range(&self, name: &str) -> std::ops::Range<usize> {
        let offset = |at: usize| self.header[name]["data_offsets"][at].as_u64().unwrap() as usize;
        offset(0)..offset(1)
    }

    /// Overwrites the beginning of a tensor.
    pub(crate) fn overwrite(mut self, name: &str, bytes: &[u8]) -> Self {
        let start = self.range(name).start;
        self.data[start..start + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Writes the checksum an honest program would write.
    pub(crate) fn signed(mut self) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.metadata()["model"].as_str().unwrap().as_bytes());
        let names: Vec<String> =
            self.header.keys().filter(|k| *k != "__metadata__").cloned().collect();
        for name in names {
            let bytes = &self.data[self.range(&name)];
            hasher.update(name.as_bytes()).update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
        let sum = hasher.finalize().to_hex().to_string();
        self.metadata().insert("checksum".to_owned(), json!(sum));
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut header = serde_json::to_vec(&self.header).unwrap();
        header.resize(header.len().next_multiple_of(8), b' ');
        [&(header.len() as u64).to_le_bytes()[..], &header, &self.data].concat()
    }
}
