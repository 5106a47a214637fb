//! Writing `.features` files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use half::f16;

use super::assemble::{FORMAT, VERSION};
use crate::atomic::write_atomically;
use ivoro::codec::safetensors_header::{self, Entry, Kind};
use ivoro::samples::{Samples, View};
use ivoro::{Error, Result};

/// How labels are stored.
pub(super) const LABEL: Kind = safetensors_header::I64;

/// How features are stored.
pub(super) fn number(half_precision: bool) -> Kind {
    if half_precision { safetensors_header::F16 } else { safetensors_header::F32 }
}

/// Writes a `.features` file: the parts given, in half precision where `half_precision` says so,
/// with `metadata` beside what the format itself records. The file appears whole or not at all.
pub fn write_features(
    path: &Path,
    train: Option<&Samples>,
    test: Option<&Samples>,
    half_precision: bool,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let parts = [("train", train), ("test", test)];
    let parts: Vec<_> = parts.into_iter().filter_map(|(name, part)| Some((name, part?))).collect();
    let Some(&(_, first)) = parts.first() else {
        return Err(Error::malformed(
            path,
            "there is nothing to write: neither a train nor a test part",
        ));
    };
    check_parts(path, first, &parts)?;
    let tensors = tensors(&parts, half_precision);
    let entries: Vec<Entry> = tensors.iter().map(Tensor::entry).collect();
    let described = described(path, first.layers(), first.views(), first.classes(), metadata)?;
    let header = safetensors_header::encode(path, &described, &entries)?;
    write_atomically(path, |file| {
        file.write_all(&header)?;
        tensors.iter().try_for_each(|tensor| tensor.write(file))
    })
}

/// One tensor to be written.
struct Tensor<'a> {
    name: String,
    part: &'a Samples,
    /// A layer's index, or the labels.
    layer: Option<usize>,
    half_precision: bool,
}

impl Tensor<'_> {
    fn entry(&self) -> Entry {
        let name = self.name.clone();
        let rows = self.part.len();
        match self.layer {
            None => Entry { name, kind: LABEL, shape: vec![rows] },
            Some(layer) => {
                let shape = vec![rows, self.part.views().len(), self.part.dim(layer)];
                Entry { name, kind: number(self.half_precision), shape }
            }
        }
    }

    fn write(&self, file: &mut impl Write) -> Result<()> {
        let Some(layer) = self.layer else {
            for &label in self.part.labels() {
                file.write_all(&i64::from(label).to_le_bytes())?;
            }
            return Ok(());
        };
        for row in 0..self.part.len() {
            for &view in self.part.views() {
                let block = self.part.block(layer, view);
                let values = block.map_or(&[][..], |block| block.row(row));
                self.write_row(file, values, row, view)?;
            }
        }
        Ok(())
    }

    fn write_row(
        &self,
        file: &mut impl Write,
        values: &[f32],
        row: usize,
        view: View,
    ) -> Result<()> {
        for &value in values {
            if !self.half_precision {
                file.write_all(&value.to_le_bytes())?;
                continue;
            }
            let half = f16::from_f32(value);
            if !half.is_finite() {
                let what = format!(
                    "{}: row {row}, view {view}: {value} does not fit half precision; write \
                     single precision",
                    self.name
                );
                return Err(Error::Unsupported { what });
            }
            file.write_all(&half.to_le_bytes())?;
        }
        Ok(())
    }
}

/// Labels first: what has the wider elements comes first, so that every tensor is aligned.
fn tensors<'a>(parts: &[(&str, &'a Samples)], half_precision: bool) -> Vec<Tensor<'a>> {
    let labels = parts.iter().map(|&(name, part)| {
        let name = format!("{name}.labels");
        Tensor { name, part, layer: None, half_precision }
    });
    let layers = parts.iter().flat_map(|&(name, part)| {
        part.layers().iter().enumerate().map(move |(layer, called)| {
            let name = format!("{name}.{called}");
            Tensor { name, part, layer: Some(layer), half_precision }
        })
    });
    labels.chain(layers).collect()
}

fn check_parts(path: &Path, first: &Samples, parts: &[(&str, &Samples)]) -> Result<()> {
    for (name, part) in parts {
        let dims = |features: &Samples| -> Vec<usize> {
            (0..features.layers().len()).map(|layer| features.dim(layer)).collect()
        };
        let differs = [
            ("layers", part.layers() != first.layers()),
            ("dimensions", dims(part) != dims(first)),
            ("views", part.views() != first.views()),
            ("classes", part.classes() != first.classes()),
        ];
        if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
            return Err(Error::malformed(path, format!("the {what} of the {name} part differ")));
        }
        if part.is_empty() {
            return Err(Error::malformed(path, format!("the {name} part has no sample to write")));
        }
    }
    let unusable = |layer: &&String| layer.contains(',') || layer.trim() != *layer;
    match first.layers().iter().find(|layer| *layer == "labels" || unusable(layer)) {
        Some(layer) => Err(Error::malformed(path, format!("a layer can't be called {layer:?}"))),
        None => Ok(()),
    }
}

/// The metadata: the caller's, and what the format records, which wins.
pub(super) fn described(
    path: &Path,
    layers: &[String],
    views: &[View],
    classes: &[String],
    metadata: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    let views: Vec<String> = views.iter().map(ToString::to_string).collect();
    let classes = serde_json::to_string(classes)
        .map_err(|error| Error::malformed(path, error.to_string()))?;
    let mut all = metadata.clone();
    all.extend([
        ("format".to_owned(), FORMAT.to_owned()),
        ("version".to_owned(), VERSION.to_string()),
        ("layers".to_owned(), layers.join(",")),
        ("views".to_owned(), views.join(",")),
        ("classes".to_owned(), classes),
    ]);
    Ok(all)
}
