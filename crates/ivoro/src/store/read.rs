use std::collections::HashSet;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};

use super::{Description, FORMAT, VERSION, checksum};
use crate::calibration::Calibration;
use crate::error::{Error, Result};
use crate::head::{Clique, Frame, Head, KnownClass};
use crate::linalg::tile_rows;
use crate::matrix::Matrix;
use crate::model::Model;
use crate::statistics::{ClassStatistics, Grid, SecondMoments, Sums};

/// Limits that no honest model reaches: a forged header is refused before anything is allocated.
const MOST_CLASSES: usize = 1 << 24;
const MOST_DIMENSIONS: usize = 1 << 24;

/// Loads a model; the file is mapped, not read, so that loading needs no second copy in memory.
pub fn load(path: &Path) -> Result<Model> {
    let map = crate::map::map(path)?;
    load_bytes(path, &map)
}

/// Loads a model from bytes; `path` is for messages.
pub fn load_bytes(path: &Path, bytes: &[u8]) -> Result<Model> {
    Reader::new(path, bytes)?.model()
}

struct Reader<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
    description: Description,
}

impl<'a> Reader<'a> {
    fn new(path: &'a Path, bytes: &'a [u8]) -> Result<Self> {
        let malformed = |what: String| Error::Malformed { path: path.to_owned(), what };
        let broken = |error| malformed(format!("not a whole model file: {error}"));
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let entry = |key: &str| metadata.get(key).map(String::as_str);
        if entry("format") != Some(FORMAT) {
            let found = entry("format").unwrap_or("none");
            return Err(malformed(format!("expected a file of format {FORMAT}, found {found}")));
        }
        let version = entry("version").and_then(|text| text.parse::<u64>().ok());
        let found = version.ok_or_else(|| malformed("no version in the metadata".to_owned()))?;
        if found > VERSION {
            return Err(Error::NewerVersion { path: path.to_owned(), found, supported: VERSION });
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
        let text = entry("model").ok_or_else(|| malformed("no description of the model".into()))?;
        let mut named: Vec<_> = tensors.iter().collect();
        named.sort_unstable_by(|a, b| a.0.cmp(b.0));
        let sum = checksum(text, named.iter().map(|(name, view)| (*name, view.data())));
        let expected = entry("checksum").unwrap_or("none").to_owned();
        if sum != expected {
            return Err(Error::Checksum { path: path.to_owned(), expected, found: sum });
        }
        let description: Description = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the description of the model: {error}")))?;
        Ok(Self { path, tensors, description })
    }

    fn malformed(&self, what: String) -> Error {
        Error::Malformed { path: self.path.to_owned(), what }
    }

    fn model(self) -> Result<Model> {
        let frame = self.frame()?;
        let classes = self.classes(&frame)?;
        let cliques = self.cliques(&frame)?;
        let whiten = self.description.variant.whiten;
        let per_class = classes.first().is_some_and(|class| class.statistics.second.is_some());
        let pooled = (whiten && !per_class).then(|| self.pooled(&frame)).transpose()?;
        let Description { variant, settings, calibration, choices, .. } = self.description;
        let mut head = Head::new(variant, settings)?;
        head.restore(frame, classes, cliques, pooled);
        Ok(Model::from_parts(head, calibration, choices))
    }

    fn frame(&self) -> Result<Frame> {
        let description = &self.description;
        let blocks = description.dims.len();
        let variant = description.variant;
        let (views, layers) = variant.separate();
        let names: HashSet<&String> = description.classes.iter().collect();
        let sensible = description.views == views
            && blocks == views * layers
            && description.layers.len() == if variant.layered { 2 } else { 1 }
            && description.probe_dims.len() == blocks
            && description.grids.len() == blocks
            && description
                .dims
                .iter()
                .chain(&description.probe_dims)
                .all(|&dim| dim > 0 && dim <= MOST_DIMENSIONS)
            && !description.classes.is_empty()
            && names.len() == description.classes.len()
            && description.calibration.as_ref().is_none_or(Calibration::is_sensible)
            && description.classes.len() <= MOST_CLASSES
            && description
                .cliques
                .iter()
                .all(|clique| clique.size > 0 && clique.size <= MOST_CLASSES)
            && description.cliques.iter().map(|clique| clique.size).sum::<usize>()
                == description.classes.len();
        if !sensible {
            return Err(
                self.malformed("the description of the model contradicts itself".to_owned())
            );
        }
        let grid = |&exponent: &i32| {
            Grid::from_exponent(exponent)
                .ok_or_else(|| self.malformed(format!("grid exponent {exponent} is out of range")))
        };
        Ok(Frame {
            layers: description.layers.clone(),
            views: description.views,
            dims: description.dims.clone(),
            probe_dims: description.probe_dims.clone(),
            grids: description.grids.iter().map(grid).collect::<Result<_>>()?,
        })
    }

    /// The bytes of a tensor that must have this type and shape.
    fn tensor(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<&[u8]> {
        let missing = |_| self.malformed(format!("tensor {name} is missing"));
        let view = self.tensors.tensor(name).map_err(missing)?;
        if view.dtype() != dtype || view.shape() != shape {
            return Err(self.malformed(format!(
                "tensor {name}: expected {dtype:?} {shape:?}, found {:?} {:?}",
                view.dtype(),
                view.shape()
            )));
        }
        // the view borrows from the file, not from this look-up
        let range = view.data();
        Ok(range)
    }

    fn integers(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<impl Iterator<Item = i64> + use<'_, 'a>> {
        let (chunks, _) = self.tensor(name, Dtype::I64, shape)?.as_chunks::<8>();
        Ok(chunks.iter().map(|chunk| i64::from_le_bytes(*chunk)))
    }

    fn floats(&self, name: &str, rows: usize, cols: usize) -> Result<Matrix> {
        let (chunks, _) = self.tensor(name, Dtype::F32, &[rows, cols])?.as_chunks::<4>();
        let data: Vec<f32> = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
        if data.iter().any(|value| !value.is_finite()) {
            return Err(self.malformed(format!("tensor {name} holds a number that is not finite")));
        }
        Matrix::new(rows, cols, data)
    }

    fn classes(&self, frame: &Frame) -> Result<Vec<KnownClass>> {
        let names = &self.description.classes;
        let counts = self.integers("counts", &[names.len()])?.zip(names).map(|(count, name)| {
            let positive = u64::try_from(count).ok().filter(|&count| count > 0);
            positive.ok_or_else(|| self.malformed(format!("class {name} has count {count}")))
        });
        let mut classes: Vec<KnownClass> = Vec::with_capacity(names.len());
        for (count, name) in counts.collect::<Result<Vec<_>>>()?.into_iter().zip(names) {
            let statistics = ClassStatistics { count, blocks: Vec::new(), second: None };
            classes.push(KnownClass { name: name.clone(), statistics });
        }
        for (block, &dim) in frame.dims.iter().enumerate() {
            let mut sums = self.integers(&format!("sums.{block}"), &[names.len(), dim])?;
            let mut halves = self.integers(&format!("squares.{block}"), &[names.len(), 2])?;
            for class in &mut classes {
                let squares = halves.next().unwrap_or(0) as u64;
                let high = i128::from(halves.next().unwrap_or(0)) << 64;
                let sums = sums.by_ref().take(dim).collect();
                class.statistics.blocks.push(Sums { sums, squares: high | i128::from(squares) });
            }
            if self.keeps_second_per_class() {
                self.add_second(&mut classes, block, dim)?;
            }
        }
        Ok(classes)
    }

    fn keeps_second_per_class(&self) -> bool {
        let kept = self.description.settings.scatter;
        self.description.variant.whiten && kept == crate::head::ScatterKept::PerClass
    }

    fn add_second(&self, classes: &mut [KnownClass], block: usize, dim: usize) -> Result<()> {
        let mut values = self.second(block, classes.len(), dim)?;
        for class in classes {
            let moments = second_moments(dim, &mut values);
            class.statistics.second.get_or_insert_default().push(moments);
        }
        Ok(())
    }

    fn second(
        &self,
        block: usize,
        rows: usize,
        dim: usize,
    ) -> Result<impl Iterator<Item = i64> + use<'_, 'a>> {
        let numbers = tile_rows(dim).map(|(_, rows, cols)| rows * cols).sum();
        self.integers(&format!("second.{block}"), &[rows, numbers])
    }

    fn pooled(&self, frame: &Frame) -> Result<Vec<SecondMoments>> {
        let block = |(block, &dim): (usize, &usize)| {
            Ok(second_moments(dim, &mut self.second(block, 1, dim)?))
        };
        frame.dims.iter().enumerate().map(block).collect()
    }

    fn cliques(&self, frame: &Frame) -> Result<Vec<Clique>> {
        let shapes = self.description.cliques.iter().enumerate();
        let clique = |(phase, shape): (usize, &super::CliqueShape)| {
            let blocks = |kind: &str, there: bool, dims: &[usize]| {
                let centres = dims.iter().enumerate().map(|(block, &dim)| {
                    self.floats(&format!("{kind}.{phase}.{block}"), shape.size, dim)
                });
                there.then(|| centres.collect::<Result<Vec<_>>>()).transpose()
            };
            Ok(Clique {
                size: shape.size,
                probe: blocks("probe", shape.probe, &frame.probe_dims)?,
                residual: blocks("residual", shape.residual, &frame.dims)?,
            })
        };
        shapes.map(clique).collect()
    }
}

fn second_moments(dim: usize, values: &mut impl Iterator<Item = i64>) -> SecondMoments {
    let tiles = tile_rows(dim).map(|(_, rows, cols)| values.by_ref().take(rows * cols).collect());
    SecondMoments::from_tiles(dim, tiles.collect())
}
