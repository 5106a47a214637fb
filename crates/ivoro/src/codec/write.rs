//! Writing a model as the bytes of its file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde_json::json;

use super::{Description, FORMAT, PhaseShape, VERSION, checksum};
use crate::error::{Error, Result};
use crate::head::LearnedPhase;
use crate::matrix::Matrix;
use crate::model::Model;
use crate::statistics::SecondMoments;

/// One tensor: dtype, shape and little-endian bytes.
struct Tensor {
    dtype: &'static str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    fn integers(shape: Vec<usize>, values: impl Iterator<Item = i64>) -> Self {
        Self { dtype: "I64", shape, bytes: values.flat_map(i64::to_le_bytes).collect() }
    }

    fn floats(matrix: &Matrix) -> Self {
        let bytes = matrix.as_slice().iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { dtype: "F32", shape: vec![matrix.rows(), matrix.cols()], bytes }
    }
}

/// Writes the file of a model; `name` is for messages.
pub fn write(model: &Model, name: &Path, out: &mut dyn Write) -> Result<()> {
    let (header, tensors) = parts(model, name)?;
    Ok(put(out, &header, &tensors)?)
}

/// The bytes of the file that [`write`] writes; [`super::decode`] reads them back.
pub fn encode(model: &Model) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(model, Path::new("model"), &mut bytes)?;
    Ok(bytes)
}

fn put(
    out: &mut dyn Write,
    header: &[u8],
    tensors: &BTreeMap<String, Tensor>,
) -> std::io::Result<()> {
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header)?;
    tensors.values().try_for_each(|tensor| out.write_all(&tensor.bytes))
}

/// The header of the file and what follows it.
fn parts(model: &Model, path: &Path) -> Result<(Vec<u8>, BTreeMap<String, Tensor>)> {
    let tensors = tensors(model);
    let description =
        serde_json::to_string(&describe(model)?).map_err(|error| malformed(path, &error))?;
    let sum = checksum(&description, tensors.iter().map(|(name, t)| (name.as_str(), &t.bytes[..])));
    let mut header = serde_json::Map::new();
    header.insert(
        "__metadata__".to_owned(),
        json!({
            "format": FORMAT,
            "version": VERSION.to_string(),
            "program": env!("CARGO_PKG_VERSION"),
            "model": description,
            "checksum": sum,
        }),
    );
    let mut offset = 0;
    for (name, tensor) in &tensors {
        let end = offset + tensor.bytes.len();
        let entry =
            json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [offset, end]});
        header.insert(name.clone(), entry);
        offset = end;
    }
    let mut header = serde_json::to_vec(&header).map_err(|error| malformed(path, &error))?;
    // readers expect the numbers to be aligned
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok((header, tensors))
}

fn malformed(path: &Path, error: &serde_json::Error) -> Error {
    Error::Malformed {
        path: path.to_owned(),
        what: format!("the model can't be described: {error}"),
    }
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

fn tensors(model: &Model) -> BTreeMap<String, Tensor> {
    let (known, parts) = (model.head().classes(), model.head().parts());
    let mut tensors = BTreeMap::new();
    let counts = known.iter().map(|class| class.statistics.count as i64);
    tensors.insert("counts".to_owned(), Tensor::integers(vec![known.len()], counts));
    let blocks = parts.frame.map_or(0, |frame| frame.dims.len());
    for block in 0..blocks {
        let sums = || known.iter().map(|class| &class.statistics.blocks[block]);
        let dim = parts.frame.map_or(0, |frame| frame.dims[block]);
        let values = sums().flat_map(|sums| sums.sums.iter().copied());
        tensors.insert(format!("sums.{block}"), Tensor::integers(vec![known.len(), dim], values));
        let halves = sums().flat_map(|s| [s.squares as i64, (s.squares >> 64) as i64]);
        tensors.insert(format!("squares.{block}"), Tensor::integers(vec![known.len(), 2], halves));
        let second: Vec<&SecondMoments> = if let Some(pooled) = parts.pooled {
            vec![&pooled[block]]
        } else {
            let second = known.iter().filter_map(|class| class.statistics.second.as_ref());
            second.map(|second| &second[block]).collect()
        };
        if let Some(first) = second.first() {
            let shape = vec![second.len(), first.bytes() / 8];
            let values = second.iter().flat_map(|s| s.tiles.iter().flatten().copied());
            tensors.insert(format!("second.{block}"), Tensor::integers(shape, values));
        }
    }
    for (phase, learned) in parts.phases.iter().enumerate() {
        for (kind, blocks) in [("probe", &learned.probe), ("residual", &learned.residual)] {
            for (block, centres) in blocks.iter().flatten().enumerate() {
                tensors.insert(format!("{kind}.{phase}.{block}"), Tensor::floats(centres));
            }
        }
    }
    tensors
}
