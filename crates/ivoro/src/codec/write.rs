//! Writing a model as the bytes of its file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::safetensors_header;
use super::target::Tensor;
use super::{Description, FORMAT, PLAIN_VERSION, PhaseShape, RECEIPT, VERSION, checksum};
use super::{compact, write_sealed};
use crate::calibration::Calibration;
use crate::error::{Error, Result};
use crate::head::{LearnedClass, LearnedPhase, Place};
use crate::model::{Model, Receipt};
use crate::statistics::{SecondMoments, Sums};

/// Writes the file of a model; `name` is for messages.
pub fn write(model: &Model, name: &Path, out: &mut dyn Write) -> Result<()> {
    write_parts(parts(&describe(model)?, model, FORMAT, name)?, out)
}

/// The bytes of the file that [`write()`] writes; [`super::decode`] reads them back.
pub fn encode(model: &Model) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(model, Path::new("model"), &mut bytes)?;
    Ok(bytes)
}

/// Writes the file of a receipt; `name` is for messages.
pub fn write_receipt(receipt: &Receipt, name: &Path, out: &mut dyn Write) -> Result<()> {
    let mut updated: Vec<String> = receipt.updated.iter().cloned().collect();
    updated.sort();
    let description = Description { updated: Some(updated), ..describe(&receipt.lesson)? };
    write_parts(parts(&description, &receipt.lesson, RECEIPT, name)?, out)
}

/// The bytes of the file that [`write_receipt`] writes; [`super::decode_receipt`] reads them back.
pub fn encode_receipt(receipt: &Receipt) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_receipt(receipt, Path::new("receipt"), &mut bytes)?;
    Ok(bytes)
}

fn write_parts((header, tensors): (Vec<u8>, Vec<Tensor>), out: &mut dyn Write) -> Result<()> {
    out.write_all(&header)?;
    tensors.iter().try_for_each(|tensor| out.write_all(&tensor.bytes))?;
    Ok(())
}

/// What stands before the numbers, and the tensors in order of name.
fn parts(
    description: &Description,
    model: &Model,
    format: &str,
    path: &Path,
) -> Result<(Vec<u8>, Vec<Tensor>)> {
    let mut tensors = tensors(model);
    tensors.sort_by(|a, b| a.entry.name.cmp(&b.entry.name));
    let description = serde_json::to_string(description).map_err(|error| {
        Error::malformed(path, format!("the model can't be described: {error}"))
    })?;
    let newer = !is_plain(model) || tensors.iter().any(|t| is_new(&t.entry.name));
    let version = if newer { VERSION } else { PLAIN_VERSION };
    let sum = checksum(&description, tensors.iter().map(|t| (t.entry.name.as_str(), &t.bytes[..])));
    let metadata = BTreeMap::from(
        [
            ("format", format.to_owned()),
            ("version", version.to_string()),
            ("program", env!("CARGO_PKG_VERSION").to_owned()),
            ("model", description),
            ("checksum", sum),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    let entries = tensors.iter().map(|tensor| &tensor.entry);
    Ok((safetensors_header::encode(path, &metadata, entries)?, tensors))
}

/// Whether a tensor is one that programs of the plain version would overlook.
fn is_new(name: &str) -> bool {
    ["compact.", "high.", "second_high.", "origin.", "probe_origin."]
        .iter()
        .any(|new| name.starts_with(new))
}

/// Whether nothing is in the model that version 1 has no word for: points have the unit that they came
/// in, no class is sealed, there is no journal, no machine and no lesson, and nothing says how images
/// became features.
fn is_plain(model: &Model) -> bool {
    let lessons = matches!(model.calibration, Some(Calibration::Lessons(_)));
    let told = !model.journal.is_empty() || !model.machines.is_empty();
    let told = told || model.description.is_some();
    if model.head().parts().frozen.is_some() || lessons || told {
        return false;
    }
    let frame = model.head().parts().frame;
    let mut places = frame.iter().flat_map(|frame| frame.places.iter().chain(&frame.probe_places));
    places.all(|place| place.exponents.is_empty())
}

/// Exponents of columns, or nothing where there are none in any block.
fn units(places: &[Place]) -> Vec<Vec<i32>> {
    if places.iter().all(|place| place.exponents.is_empty()) {
        return Vec::new();
    }
    places.iter().map(|place| place.exponents.clone()).collect()
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
        units: units(&frame.places),
        probe_units: units(&frame.probe_places),
        classes: head.classes().iter().map(|class| class.name.clone()).collect(),
        phases: parts.phases.iter().map(shape).collect(),
        calibration: model.calibration.clone(),
        choices: model.choices.clone(),
        network: model.network.clone(),
        described_network: model.description.clone(),
        journal: model.journal.clone(),
        machines: model.machines.clone(),
        updated: None,
        sealed: write_sealed::shape(model.head()),
    })
}

fn tensors(model: &Model) -> Vec<Tensor> {
    let (all, parts) = (model.head().classes(), model.head().parts());
    let mut tensors = write_sealed::tensors(model.head());
    tensors.extend(compact::tensors(model.head()));
    let counts = all.iter().map(|class| class.statistics.count as i64);
    tensors.push(Tensor::integers("counts".to_owned(), vec![all.len()], counts));
    let known: Vec<&LearnedClass> = all.iter().filter(|class| !class.is_sealed()).collect();
    let blocks = parts.frame.map_or(0, |frame| frame.dims.len());
    for block in 0..blocks {
        let sums = || known.iter().map(|class| &class.statistics.blocks[block]);
        let dim = parts.frame.map_or(0, |frame| frame.dims[block]);
        let values = sums().flat_map(|sums| sums.sums.iter().copied());
        let name = format!("sums.{block}");
        tensors.push(Tensor::integers(name, vec![known.len(), dim], values));
        if sums().any(|sums| !sums.high.is_empty()) {
            let high = |sums: &Sums| {
                let upper = |at: usize| sums.high.get(at).copied().unwrap_or(sums.sums[at] >> 63);
                (0..dim).map(upper).collect::<Vec<_>>()
            };
            let shape = vec![known.len(), dim];
            tensors.push(Tensor::integers(format!("high.{block}"), shape, sums().flat_map(high)));
        }
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
            let numbers = first.tiles.iter().map(Vec::len).sum();
            let shape = vec![second.len(), numbers];
            let values = second.iter().flat_map(|s| s.tiles.iter().flatten().copied());
            tensors.push(Tensor::integers(format!("second.{block}"), shape.clone(), values));
            if second.iter().any(|second| second.is_wide()) {
                let values = second.iter().flat_map(|second| upper_halves(second));
                tensors.push(Tensor::integers(format!("second_high.{block}"), shape, values));
            }
        }
    }
    if let Some(frame) = parts.frame {
        for (kind, places) in [("origin", &frame.places), ("probe_origin", &frame.probe_places)] {
            for (block, place) in places.iter().enumerate().filter(|(_, p)| !p.origin.is_empty()) {
                tensors.push(Tensor::row(format!("{kind}.{block}"), &place.origin));
            }
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

/// Upper halves of all numbers, also of those that need none.
fn upper_halves(second: &SecondMoments) -> impl Iterator<Item = i64> {
    second.tiles.iter().zip(&second.high).flat_map(|(tile, high)| {
        (0..tile.len()).map(|at| high.get(at).copied().unwrap_or(tile[at] >> 63))
    })
}
