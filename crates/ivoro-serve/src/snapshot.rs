//! A model as it is asked: whole, ready, never changed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use axum::body::Bytes;
use ivoro::head::ClassMap;
use ivoro::model::AskOptions;
use ivoro::{Matrix, Model, Points, codec};

use crate::held::hold;

/// The hash of a model without any class, which has no file.
pub(crate) const NO_HASH: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

/// A model at one moment. Whoever asks holds one, whatever is taught meanwhile.
pub(crate) struct Snapshot {
    pub(crate) model: Model,
    /// BLAKE3 of the model file.
    pub(crate) hash: String,
    /// How many changes there were since the server began.
    pub(crate) generation: u64,
    /// Bytes of the model file.
    pub(crate) bytes: u64,
    pub(crate) can_reject: bool,
    /// How far the samples of each class usually are, where distances say that.
    usual: HashMap<String, f64>,
    /// Computed when it is asked for.
    map: OnceLock<Option<ClassMap>>,
    /// The model file while somebody takes it along: one copy, however many they are.
    file: Mutex<Weak<Vec<u8>>>,
}

impl Snapshot {
    /// A model that is made ready here, so that nobody who asks has to wait for it.
    pub(crate) fn new(model: Model, hash: String, generation: u64, bytes: u64) -> Self {
        let can_reject = !model.head().classes().is_empty() && model.can_reject();
        warm(&model, can_reject);
        let usual = usual(&model);
        Self {
            model,
            hash,
            generation,
            bytes,
            can_reject,
            usual,
            map: OnceLock::new(),
            file: Mutex::default(),
        }
    }

    /// The bytes of the model file, which is at `path` unless it was replaced meanwhile.
    pub(crate) fn file(&self, path: &Path) -> ivoro::Result<Bytes> {
        let mut held = hold(&self.file);
        let whole = match held.upgrade() {
            Some(whole) => whole,
            None => Arc::new(self.read(path)?),
        };
        *held = Arc::downgrade(&whole);
        Ok(Bytes::from_owner(Whole(whole)))
    }

    fn read(&self, path: &Path) -> ivoro::Result<Vec<u8>> {
        match fs_err::read(path) {
            Ok(bytes) if blake3::hash(&bytes).to_hex().as_str() == self.hash => Ok(bytes),
            _ => codec::encode(&self.model),
        }
    }

    /// The classes in the plane; none where there is no class.
    pub(crate) fn map(&self) -> ivoro::Result<Option<&ClassMap>> {
        if let Some(map) = self.map.get() {
            return Ok(map.as_ref());
        }
        let map = self.model.head().class_map()?;
        Ok(self.map.get_or_init(|| map).as_ref())
    }

    /// How far samples of a class usually are from it.
    pub(crate) fn usual(&self, class: &str) -> Option<f64> {
        self.usual.get(class).copied()
    }

    pub(crate) fn classes(&self) -> usize {
        self.model.head().classes().len()
    }

    pub(crate) fn samples(&self) -> u64 {
        self.model.head().classes().iter().map(|class| class.statistics.count).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.model.head().classes().is_empty()
    }
}

/// Bytes that several answers share.
struct Whole(Arc<Vec<u8>>);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Under W and Q the metric makes it the same for all classes, and distances are no multiple of it.
fn usual(model: &Model) -> HashMap<String, f64> {
    let head = model.head();
    if head.variant().is_metric() || head.classes().is_empty() {
        return HashMap::new();
    }
    let distances = head.typical_distances().unwrap_or_default().iter().copied();
    head.classes().iter().map(|class| class.name.clone()).zip(distances).collect()
}

/// Asks once: what answers need is computed with the first.
fn warm(model: &Model, can_reject: bool) {
    let Some(points) = origin(model) else { return };
    let options =
        AskOptions { false_rejection: can_reject.then_some(0.05), ..AskOptions::default() };
    // whatever is wrong is said to who asks
    let _ = model.ask(&points, options);
}

/// One query of zeros in every block that the model looks at.
fn origin(model: &Model) -> Option<Points> {
    let (head, variant) = (model.head(), model.head().variant());
    let known = head.layers();
    let last = known.last()?.1;
    let (views, layers) = (variant.views(), variant.layers());
    let dim = |layer: usize| {
        layer.checked_sub(layers.start).and_then(|at| known.get(at)).map_or(last, |it| it.1)
    };
    let blocks = (0..layers.end).flat_map(|layer| {
        let dim = dim(layer);
        views.iter().map(move |_| Matrix::zeros(1, dim))
    });
    let names = (0..layers.end).map(|layer| layer.to_string()).collect();
    Points::new("ready", names, variant.views(), blocks.collect()).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_file_has_the_hash_of_nothing() {
        assert_eq!(blake3::hash(b"").to_hex().as_str(), super::NO_HASH);
    }
}
