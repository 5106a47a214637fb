//! Writing a model as the bytes of its file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::safetensors_header::{self, Entry, F32, I64};
use super::{Description, FORMAT, PhaseShape, VERSION, checksum};
use crate::error::{Error, Result};
use crate::head::LearnedPhase;
use crate::matrix::Matrix;
use crate::model::Model;
use crate::statistics::SecondMoments;

/// One tensor and its little-endian bytes.
struct Tensor {
    entry: Entry,
    bytes: Vec<u8>,
}

impl Tensor {
    fn integers(name: String, shape: Vec<usize>, values: impl Iterator<Item = i64>) -> Self {
        let bytes = values.flat_map(i64::to_le_bytes).collect();
        Self { entry: Entry { name, kind: I64, shape }, bytes }
    }

    fn floats(name: String, matrix: &Matrix) -> Self {
        let bytes = matrix.as_slice().iter().flat_map(|value| value.to_le_bytes()).collect();
        let shape = vec![matrix.rows(), matrix.cols()];
        Self { entry: Entry { name, kind: F32, shape }, bytes }
    }
}

/// Writes the file of a model; `name` is for messages.
pub fn write(model: &Model, name: &Path, out: &mut dyn Write) -> Result<()> {
    let (header, tensors) = parts(model, name)?;
    out.write_all(&header)?;
    tensors.iter().try_for_each(|tensor| out.write_all(&tensor.bytes))?;
    Ok(())
}

/// The bytes of the file that [`write()`] writes; [`super::decode`] reads them back.
pub fn encode(model: &Model) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(model, Path::new("model"), &mut bytes)?;
    Ok(bytes)
}

/// What stands before the numbers, and the tensors in order of name.
fn parts(model: &Model, path: &Path) -> Result<(Vec<u8>, Vec<Tensor>)> {
    let mut tensors = tensors(model);
    tensors.sort_by(|a, b| a.entry.name.cmp(&b.entry.name));
    let description = serde_json::to_string(&describe(model)?).map_err(|error| {
        Error::malformed(path, format!("the model can't be described: {error}"))
    })?;
    let sum = checksum(&description, tensors.iter().map(|t| (t.entry.name.as_str(), &t.bytes[..])));
    let metadata = BTreeMap::from(
        [
            ("format", FORMAT.to_owned()),
            ("version", VERSION.to_string()),
            ("program", env!("CARGO_PKG_VERSION").to_owned()),
            ("model", description),
            ("checksum", sum),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    let entries = tensors.iter().map(|tensor| &tensor.entry);
    Ok((safetensors_header::encode(path, &metadata, entries)?, tensors))
}

fn describe(model: &Model) -> Result<Description> {
    let head = model.head();
    let parts = head.parts();
    let frame = parts.frame.ok_or(Error::Size {
        what: "classes in a model to save".to_owned(),
        expected: 1,
        found: 0,
    })?;
    let shape = |learned: &LearnedPhase| PhaseShape {
        size: learned.size,
        probe: learned.probe.is_some(),
        residual: learned.residual.is_some(),
    };
    Ok(Description {
        variant: head.variant(),
        settings: head.settings().clone(),
        layers: frame.layers.clone(),
        views: frame.views,
        dims: frame.dims.clone(),
        probe_dims: frame.probe_dims.clone(),
        grids: frame.grids.iter().map(|grid| grid.exponent()).collect(),
        classes: head.classes().iter().map(|class| class.name.clone()).collect(),
        phases: parts.phases.iter().map(shape).collect(),
        calibration: model.calibration.clone(),
        choices: model.choices.clone(),
        network: model.network.clone(),
    })
}

fn tensors(model: &Model) -> Vec<Tensor> {
    let (known, parts) = (model.head().classes(), model.head().parts());
    let mut tensors = Vec::new();
    let counts = known.iter().map(|class| class.statistics.count as i64);
    tensors.push(Tensor::integers("counts".to_owned(), vec![known.len()], counts));
    let blocks = parts.frame.map_or(0, |frame| frame.dims.len());
    for block in 0..blocks {
        let sums = || known.iter().map(|class| &class.statistics.blocks[block]);
        let dim = parts.frame.map_or(0, |frame| frame.dims[block]);
        let values = sums().flat_map(|sums| sums.sums.iter().copied());
        let name = format!("sums.{block}");
        tensors.push(Tensor::integers(name, vec![known.len(), dim], values));
        let halves = sums().flat_map(|s| [s.squares as i64, (s.squares >> 64) as i64]);
        let name = format!("squares.{block}");
        tensors.push(Tensor::integers(name, vec![known.len(), 2], halves));
        let second: Vec<&SecondMoments> = if let Some(pooled) = parts.pooled {
            vec![&pooled[block]]
        } else {
            let second = known.iter().filter_map(|class| class.statistics.second.as_ref());
            second.map(|second| &second[block]).collect()
        };
        if let Some(first) = second.first() {
            let shape = vec![second.len(), first.bytes() / 8];
            let values = second.iter().flat_map(|s| s.tiles.iter().flatten().copied());
            tensors.push(Tensor::integers(format!("second.{block}"), shape, values));
        }
    }
    for (phase, learned) in parts.phases.iter().enumerate() {
        for (kind, blocks) in [("probe", &learned.probe), ("residual", &learned.residual)] {
            for (block, centres) in blocks.iter().flatten().enumerate() {
                tensors.push(Tensor::floats(format!("{kind}.{phase}.{block}"), centres));
            }
        }
    }
    tensors
}
