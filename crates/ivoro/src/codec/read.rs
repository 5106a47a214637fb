//! Reading a model from the bytes of its file.

use std::collections::HashSet;
use std::path::Path;

use safetensors::Dtype;

use super::header::Header;
use super::source::Tensor;
use super::{FORMAT, RECEIPT, UNKNOWN_MACHINE};
use crate::calibration::Calibration;
use crate::error::{Error, Result};
use crate::head::{Frame, Head, LearnedClass, LearnedPhase, Place};
use crate::linalg::{Symmetric, tile_rows};
use crate::matrix::Matrix;
use crate::model::{Model, Predictor, Receipt};
use crate::statistics::{ClassStatistics, Grid, SecondMoments, Sums, joined};

/// Limits that no honest model reaches: a forged header is refused before anything is allocated.
const MOST_CLASSES: usize = 1 << 24;
const MOST_DIMENSIONS: usize = 1 << 24;
/// Largest exponent of a unit: beyond, nothing of an `f32` is left.
const MOST_UNIT: u32 = 150;

/// Reads a model from the bytes of its file; `name` is for messages.
pub fn decode(name: &Path, bytes: &[u8]) -> Result<Model> {
    Reader { path: name, bytes, header: Header::verified(name, bytes, FORMAT)? }.model()
}

/// Reads a model that is only to be asked: second moments go from the bytes into the metric, and
/// sums are given up as soon as the diagram stands.
pub fn decode_predictor(name: &Path, bytes: &[u8]) -> Result<Predictor> {
    Reader { path: name, bytes, header: Header::verified(name, bytes, FORMAT)? }.predictor()
}

/// Reads a receipt from the bytes of its file; `name` is for messages.
pub fn decode_receipt(name: &Path, bytes: &[u8]) -> Result<Receipt> {
    let reader = Reader { path: name, bytes, header: Header::verified(name, bytes, RECEIPT)? };
    let description = &reader.header.description;
    let updated: HashSet<String> = description.updated.iter().flatten().cloned().collect();
    let probed = description.phases.iter().any(|learned| learned.probe || learned.residual);
    // what a receipt takes back it has class by class
    let pooled = description.variant.is_metric() && !reader.keeps_second_per_class();
    let sealed = description.sealed.is_some();
    if probed || pooled || sealed || !updated.iter().all(|name| description.classes.contains(name))
    {
        return Err(
            reader.malformed("the description of the receipt contradicts itself".to_owned())
        );
    }
    Ok(Receipt { lesson: reader.model()?, updated })
}

pub(super) struct Reader<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    pub(super) header: Header,
}

impl Reader<'_> {
    pub(super) fn malformed(&self, what: String) -> Error {
        Error::malformed(self.path, what)
    }

    fn model(self) -> Result<Model> {
        let frame = self.frame()?;
        let per_class = self.keeps_second_per_class();
        let mut classes = self.classes(&frame)?;
        if per_class {
            self.add_second(&mut classes, &frame)?;
        }
        let phases = self.phases(&frame)?;
        let whiten = self.header.description.variant.whiten;
        let pools = whiten && !per_class && classes.iter().all(|class| !class.is_closed());
        let pooled = pools.then(|| self.pooled(&frame)).transpose()?;
        self.restored(frame, classes, phases, pooled)
    }

    fn predictor(self) -> Result<Predictor> {
        if self.header.description.sealed.is_some() {
            // most of it is small; rows of second moments are those of open classes alone
            return Ok(Predictor::new(self.model()?));
        }
        let frame = self.frame()?;
        let (classes, phases) = (self.classes(&frame)?, self.phases(&frame)?);
        let rows = if self.keeps_second_per_class() { classes.len() } else { 1 };
        let mut model = self.restored(frame.clone(), classes, phases, None)?;
        model.reduce_to_predictor(&mut |block, class| self.scatter(&frame, block, class, rows))?;
        Ok(Predictor::new(model))
    }

    fn restored(
        &self,
        frame: Frame,
        classes: Vec<LearnedClass>,
        phases: Vec<LearnedPhase>,
        pooled: Option<Vec<SecondMoments>>,
    ) -> Result<Model> {
        let description = &self.header.description;
        let mut head = Head::new(description.variant, description.settings.clone())?;
        head.restore(frame, classes, phases, pooled);
        head.freeze(self.frozen()?);
        let super::Description { calibration, choices, network, .. } = description;
        let mut model =
            Model::from_parts(head, calibration.clone(), choices.clone(), network.clone());
        model.description.clone_from(&description.described_network);
        model.journal.clone_from(&description.journal);
        model.machines.clone_from(&description.machines);
        let depends = description.variant.normalise || description.variant.lift;
        if depends && model.machines.is_empty() {
            model.machines.push(UNKNOWN_MACHINE.to_owned());
        }
        Ok(model)
    }

    fn frame(&self) -> Result<Frame> {
        let description = &self.header.description;
        let blocks = description.dims.len();
        let variant = description.variant;
        let (views, layers) = variant.separate();
        let names: HashSet<&String> = description.classes.iter().collect();
        let sensible = description.views == views
            && blocks == views * layers
            && description.layers.len() == if variant.layered { 2 } else { 1 }
            && description.layers.iter().all(|(_, dim)| (1..=MOST_DIMENSIONS).contains(dim))
            && description.classes.iter().all(|name| !name.is_empty())
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
            && self.network_is_sensible()
            && description.classes.len() <= MOST_CLASSES
            && description
                .phases
                .iter()
                .all(|learned| learned.size > 0 && learned.size <= MOST_CLASSES)
            && description.phases.iter().map(|learned| learned.size).sum::<usize>()
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
        let (dims, probe_dims) = (&description.dims, &description.probe_dims);
        Ok(Frame {
            layers: description.layers.clone(),
            views: description.views,
            dims: dims.clone(),
            probe_dims: probe_dims.clone(),
            grids: description.grids.iter().map(grid).collect::<Result<_>>()?,
            places: self.places("origin", dims, &description.units)?,
            probe_places: self.places("probe_origin", probe_dims, &description.probe_units)?,
        })
    }

    /// Whether what is said of the network is of one network.
    fn network_is_sensible(&self) -> bool {
        let super::Description { network, described_network, .. } = &self.header.description;
        described_network.as_ref().is_none_or(|described| {
            described.is_sensible() && network.as_ref().is_none_or(|hash| *hash == described.hash)
        })
    }

    /// Where points are compared: as they came, unless the file says something else.
    fn places(&self, kind: &str, dims: &[usize], units: &[Vec<i32>]) -> Result<Vec<Place>> {
        let fits = |(exponents, dim): (&Vec<i32>, &usize)| {
            let usual = exponents.iter().all(|exponent| exponent.unsigned_abs() <= MOST_UNIT);
            usual && (exponents.is_empty() || exponents.len() == *dim)
        };
        let listed = units.is_empty() || units.len() == dims.len();
        if !listed || !units.iter().zip(dims).all(fits) {
            return Err(self.malformed("units of features that do not fit the dimensions".into()));
        }
        let place = |(block, &dim): (usize, &usize)| {
            let name = format!("{kind}.{block}");
            let there = self.header.metadata.info(&name).is_some();
            let origin = there.then(|| self.floats(&name, 1, dim)).transpose()?;
            let origin = origin.map(Matrix::into_vec).unwrap_or_default();
            Ok(Place { origin, exponents: units.get(block).cloned().unwrap_or_default() })
        };
        dims.iter().enumerate().map(place).collect()
    }

    /// The upper halves of integers, where the file has any.
    fn upper(&self, name: &str, shape: &[usize]) -> Result<Option<Tensor<'_>>> {
        let there = self.header.metadata.info(name).is_some();
        there.then(|| self.integers(name, shape)).transpose()
    }

    /// A tensor that must have this type and shape.
    pub(super) fn tensor(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<Tensor<'_>> {
        let info = self.header.metadata.info(name);
        let info = info.ok_or_else(|| self.malformed(format!("tensor {name} is missing")))?;
        if info.dtype != dtype || info.shape != shape {
            return Err(self.malformed(format!(
                "tensor {name}: expected {dtype:?} {shape:?}, found {:?} {:?}",
                info.dtype, info.shape
            )));
        }
        let (start, end) = info.data_offsets;
        Ok(Tensor::new(&self.bytes[self.header.start + start..self.header.start + end]))
    }

    pub(super) fn integers(&self, name: &str, shape: &[usize]) -> Result<Tensor<'_>> {
        self.tensor(name, Dtype::I64, shape)
    }

    pub(super) fn floats(&self, name: &str, rows: usize, cols: usize) -> Result<Matrix> {
        let data = self.tensor(name, Dtype::F32, &[rows, cols])?.floats(rows * cols);
        if data.iter().any(|value| !value.is_finite()) {
            return Err(self.malformed(format!("tensor {name} holds a number that is not finite")));
        }
        Matrix::new(rows, cols, data)
    }

    fn classes(&self, frame: &Frame) -> Result<Vec<LearnedClass>> {
        let names = &self.header.description.classes;
        let counts = self.integers("counts", &[names.len()])?.integers(names.len());
        let mut classes: Vec<LearnedClass> = Vec::with_capacity(names.len());
        for (count, name) in counts.into_iter().zip(names) {
            let positive = u64::try_from(count).ok().filter(|&count| count > 0);
            let bad = || self.malformed(format!("class {name} has count {count}"));
            let count = positive.ok_or_else(bad)?;
            let blocks = Vec::with_capacity(frame.dims.len());
            let statistics = ClassStatistics { count, blocks, second: None, compact: None };
            classes.push(LearnedClass { name: name.clone(), statistics, sealed: None });
        }
        self.add_sealed(&mut classes, frame)?;
        self.add_compact(&mut classes, frame)?;
        let mut open: Vec<&mut LearnedClass> =
            classes.iter_mut().filter(|class| !class.is_sealed()).collect();
        let rows = open.len();
        for (block, &dim) in frame.dims.iter().enumerate() {
            let mut sums = self.integers(&format!("sums.{block}"), &[rows, dim])?;
            let mut halves = self.integers(&format!("squares.{block}"), &[rows, 2])?;
            let halves = halves.integers(2 * rows);
            let mut high = self.upper(&format!("high.{block}"), &[rows, dim])?;
            for (class, halves) in open.iter_mut().zip(halves.as_chunks::<2>().0) {
                let sums = sums.integers(dim);
                let squares = joined(halves[0], halves[1]);
                let sums = match &mut high {
                    None => Sums { sums, high: Vec::new(), squares },
                    Some(high) => {
                        let halves = sums.into_iter().zip(high.integers(dim));
                        let numbers: Vec<i128> =
                            halves.map(|(low, high)| joined(low, high)).collect();
                        Sums::of(&numbers, squares)
                    }
                };
                class.statistics.blocks.push(sums);
            }
        }
        Ok(classes)
    }

    fn keeps_second_per_class(&self) -> bool {
        let description = &self.header.description;
        description.variant.keeps_second_per_class(description.settings.scatter)
    }

    fn add_second(&self, classes: &mut [LearnedClass], frame: &Frame) -> Result<()> {
        for (block, &dim) in frame.dims.iter().enumerate() {
            let rows = classes.iter().filter(|class| !class.is_sealed()).count();
            if rows == 0 {
                continue;
            }
            let mut values = self.second(block, rows, dim)?;
            let mut high = self.second_high(block, rows, dim)?;
            for class in classes.iter_mut().filter(|class| !class.is_sealed()) {
                let moments = second_moments(dim, &mut values, high.as_mut());
                class.statistics.second.get_or_insert_default().push(moments);
            }
        }
        Ok(())
    }

    fn second(&self, block: usize, rows: usize, dim: usize) -> Result<Tensor<'_>> {
        self.integers(&format!("second.{block}"), &[rows, numbers_of(dim)])
    }

    fn second_high(&self, block: usize, rows: usize, dim: usize) -> Result<Option<Tensor<'_>>> {
        self.upper(&format!("second_high.{block}"), &[rows, numbers_of(dim)])
    }

    fn pooled(&self, frame: &Frame) -> Result<Vec<SecondMoments>> {
        let block = |(block, &dim): (usize, &usize)| {
            let mut high = self.second_high(block, 1, dim)?;
            Ok(second_moments(dim, &mut self.second(block, 1, dim)?, high.as_mut()))
        };
        frame.dims.iter().enumerate().map(block).collect()
    }

    /// Σ z zᵀ of a block, of one class or of all `rows`, as real numbers, tile row after tile row:
    /// the integers of no more than one are in memory.
    fn scatter(
        &self,
        frame: &Frame,
        block: usize,
        class: Option<usize>,
        rows: usize,
    ) -> Result<Symmetric> {
        let (dim, unit) = (frame.dims[block], frame.grids[block].product_unit());
        let wanted = class.map_or(0..rows, |class| class..class + 1);
        let whole = self.second(block, rows, dim)?;
        let upper = self.second_high(block, rows, dim)?;
        let overflow = || Error::CountOverflow { class: "all".to_owned(), count: 0 };
        let mut first = 0;
        let mut tiles = Vec::new();
        for (_, height, width) in tile_rows(dim) {
            let mut sum = vec![0i128; height * width];
            for row in wanted.clone() {
                let start = row * numbers_of(dim) + first;
                let low = whole.from(start).integers(height * width);
                let high = upper.map(|upper| upper.from(start).integers(height * width));
                for (at, (sum, low)) in sum.iter_mut().zip(low).enumerate() {
                    let high = high.as_ref().map_or(low >> 63, |high| high[at]);
                    *sum = sum.checked_add(joined(low, high)).ok_or_else(overflow)?;
                }
            }
            tiles.push(sum.into_iter().map(|value| value as f64 * unit).collect());
            first += height * width;
        }
        Ok(Symmetric::from_tiles(dim, tiles))
    }

    fn phases(&self, frame: &Frame) -> Result<Vec<LearnedPhase>> {
        let shapes = self.header.description.phases.iter().enumerate();
        let learned = |(phase, shape): (usize, &super::PhaseShape)| {
            let blocks = |kind: &str, there: bool, dims: &[usize]| {
                let centres = dims.iter().enumerate().map(|(block, &dim)| {
                    self.floats(&format!("{kind}.{phase}.{block}"), shape.size, dim)
                });
                there.then(|| centres.collect::<Result<Vec<_>>>()).transpose()
            };
            Ok(LearnedPhase {
                size: shape.size,
                probe: blocks("probe", shape.probe, &frame.probe_dims)?,
                residual: blocks("residual", shape.residual, &frame.dims)?,
            })
        };
        shapes.map(learned).collect()
    }
}

/// Numbers in the second moments of a block.
fn numbers_of(dim: usize) -> usize {
    tile_rows(dim).map(|(_, rows, cols)| rows * cols).sum()
}

fn second_moments(
    dim: usize,
    values: &mut Tensor<'_>,
    high: Option<&mut Tensor<'_>>,
) -> SecondMoments {
    let tiles = |values: &mut Tensor<'_>| -> Vec<Vec<i64>> {
        tile_rows(dim).map(|(_, rows, cols)| values.integers(rows * cols)).collect()
    };
    let low = tiles(values);
    match high {
        None => SecondMoments::from_tiles(dim, low),
        Some(high) => SecondMoments::from_halves(dim, &low, &tiles(high)),
    }
}
