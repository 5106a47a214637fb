//! A checkpoint: all that training needs to resume and end at the same place.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::epochs::Epoch;
use crate::engine::{Normalisation, State};
use crate::error::{Error, Result};
use crate::network::{Architecture, checked_parameters};
use crate::recipe::Recipe;

/// The version of the file.
const VERSION: u32 = 1;
/// The metadata key that everything but the numbers stands under.
const KEY: &str = "ivoro.checkpoint";

/// Training after some epochs.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The network.
    pub architecture: Architecture,
    /// How it is trained.
    pub recipe: Recipe,
    /// How pixels become its input.
    pub normalisation: Normalisation,
    /// What it is trained on: a hash of data set, base classes and image shape.
    pub data: String,
    /// The epochs done so far.
    pub epochs: Vec<Epoch>,
    /// Weights and moments.
    pub state: State,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    architecture: Architecture,
    recipe: Recipe,
    normalisation: Normalisation,
    data: String,
    epochs: Vec<Epoch>,
    steps: u64,
}

impl Checkpoint {
    /// Writes the file in one step.
    pub fn write(&self, path: &Path) -> Result<()> {
        let header = Header {
            version: VERSION,
            architecture: self.architecture.clone(),
            recipe: self.recipe.clone(),
            normalisation: self.normalisation.clone(),
            data: self.data.clone(),
            epochs: self.epochs.clone(),
            steps: self.state.steps,
        };
        let broken = |error: &dyn std::fmt::Display| Error::malformed(path, error.to_string());
        let text = serde_json::to_string(&header).map_err(|error| broken(&error))?;
        let parts = self.parts();
        // The numbers of a little-endian machine are the file's bytes already.
        let views: std::result::Result<Vec<_>, _> = parts
            .iter()
            .map(|(name, values)| {
                let data = bytemuck::cast_slice(values);
                Ok((*name, TensorView::new(Dtype::F32, vec![values.len()], data)?))
            })
            .collect();
        let views = views.map_err(|error: safetensors::SafeTensorError| broken(&error))?;
        let metadata = [(KEY.to_owned(), text)].into_iter().collect();
        let all = safetensors::serialize(views, Some(metadata)).map_err(|error| broken(&error))?;
        ivoro_io::atomic::write_atomically(path, |file| {
            std::io::Write::write_all(file, &all)?;
            Ok(())
        })?;
        Ok(())
    }

    fn parts(&self) -> Vec<(&'static str, &[f32])> {
        let State { learned, measured, first, second, average, .. } = &self.state;
        let mut parts: Vec<(&'static str, &[f32])> = vec![
            ("learned", learned),
            ("measured", measured),
            ("first", first),
            ("second", second),
        ];
        if let Some((learned, measured)) = average {
            parts.extend([("average.learned", &learned[..]), ("average.measured", &measured[..])]);
        }
        parts
    }

    /// Reads a file, every size checked.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs_err::read(path)?;
        let broken =
            |error: safetensors::SafeTensorError| Error::malformed(path, error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
        let text = metadata.metadata().as_ref().and_then(|all| all.get(KEY)).ok_or_else(|| {
            Error::malformed(path, "no checkpoint of a training: its header is missing")
        })?;
        let header: Header = serde_json::from_str(text).map_err(|error| {
            Error::malformed(path, format!("its header can't be read: {error}"))
        })?;
        if header.version != VERSION {
            let what = format!("a checkpoint of version {}, expected {VERSION}", header.version);
            return Err(Error::malformed(path, what));
        }
        let tensors = SafeTensors::deserialize(&bytes).map_err(broken)?;
        if let Some((name, view)) = tensors.iter().find(|(_, view)| view.dtype() != Dtype::F32) {
            let what = format!("\"{name}\" holds {:?}, expected F32", view.dtype());
            return Err(Error::malformed(path, what));
        }
        let found: BTreeMap<String, Vec<f32>> = tensors
            .iter()
            .map(|(name, view)| {
                let numbers = view.data().as_chunks::<4>().0.iter();
                (name.to_owned(), numbers.map(|&bytes| f32::from_le_bytes(bytes)).collect())
            })
            .collect();
        let state = state(path, &header, found)?;
        let Header { architecture, recipe, normalisation, data, epochs, .. } = header;
        Ok(Self { architecture, recipe, normalisation, data, epochs, state })
    }
}

fn state(path: &Path, header: &Header, mut found: BTreeMap<String, Vec<f32>>) -> Result<State> {
    checked_parameters(path, &header.architecture)?;
    let (learned, measured) = header.architecture.counts();
    let mut take = |name: &str, expected: usize| {
        let values = found.remove(name).unwrap_or_default();
        if values.len() == expected {
            return Ok(values);
        }
        let what = format!("\"{name}\" has {} numbers, expected {expected}", values.len());
        Err(Error::malformed(path, what))
    };
    Ok(State {
        learned: take("learned", learned)?,
        measured: take("measured", measured)?,
        first: take("first", learned)?,
        second: take("second", learned)?,
        average: match header.recipe.average {
            Some(_) => {
                Some((take("average.learned", learned)?, take("average.measured", measured)?))
            }
            None => None,
        },
        steps: header.steps,
    })
}
