//! The columns of a table: which hold features, labels and the split, and what their rows say.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::assemble::Parts;
use super::cells::{Lists, Value, Values, shown};
use super::keys::{LAST, Part};
use super::labels::{Interner, Labels, MAX_CLASSES};
use super::{FeatureFile, ReadOptions};
use ivoro::Matrix;
use ivoro::{Error, Result};

const LABELS: [&str; 5] = ["label", "labels", "class", "target", "y"];
const SPLIT: &str = "split";
/// Column names that say "features" without saying of which layer.
const PLAIN: [&str; 5] = ["features", "embedding", "embeddings", "vector", "X"];

/// Which columns are read.
#[derive(Debug)]
pub(super) struct Choice {
    /// Column index and layer name.
    layers: Vec<(usize, String)>,
    label: Option<usize>,
    split: Option<usize>,
    text_labels: bool,
    names: Vec<String>,
}

impl Choice {
    pub(super) fn new(path: &Path, schema: &Schema, options: &ReadOptions) -> Result<Self> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
            return Err(Error::malformed(path, format!("two columns are called {twice}")));
        }
        let find = |name: &str| names.iter().position(|other| other == name);
        let named = |option: &Option<String>, usual: &[&str]| match option {
            Some(name) => find(name).map(Some).ok_or_else(|| {
                let found = names.join(", ");
                Error::malformed(
                    path,
                    format!("there is no column {name}; the columns are {found}"),
                )
            }),
            None => Ok(usual.iter().find_map(|name| find(name))),
        };
        let label = named(&options.label_column, &LABELS)?;
        let split = named(&options.split_column, &[SPLIT])?;
        let layers = match named(&options.feature_column, &[])? {
            Some(index) => vec![index],
            None => {
                (0..names.len()).filter(|&at| is_float_list(schema.field(at).data_type())).collect()
            }
        };
        if layers.is_empty() {
            let what =
                format!("no column holds lists of floats; the columns are {}", names.join(", "));
            return Err(Error::malformed(path, what));
        }
        let layers = layers.into_iter().map(|index| (index, layer_name(&names[index]))).collect();
        let text_labels = label.is_some_and(|index| is_text(schema.field(index).data_type()));
        Ok(Self { layers, label, split, text_labels, names })
    }

    pub(super) fn indices(&self) -> Vec<usize> {
        let layers = self.layers.iter().map(|&(index, _)| index);
        layers.chain(self.label).chain(self.split).collect()
    }
}

fn layer_name(column: &str) -> String {
    if PLAIN.contains(&column) { LAST.to_owned() } else { column.to_owned() }
}

fn is_float_list(kind: &DataType) -> bool {
    match kind {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            matches!(field.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64)
        }
        _ => false,
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        kind => matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

/// The rows read so far of one part.
#[derive(Debug, Default)]
struct Rows {
    count: usize,
    /// One vector of numbers a layer.
    layers: Vec<Vec<f32>>,
    ids: Vec<u32>,
    names: Interner,
}

/// The rows read so far.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    path: &'a Path,
    choice: Choice,
    /// The dimension of each layer, known from the first row.
    dims: Vec<Option<usize>>,
    train: Rows,
    test: Rows,
    all: Rows,
    seen: usize,
    /// Bytes of features that may still be added.
    left: u64,
}

impl<'a> Columns<'a> {
    pub(super) fn new(path: &'a Path, choice: Choice, most: u64) -> Self {
        let rows = || Rows { layers: vec![Vec::new(); choice.layers.len()], ..Rows::default() };
        let (train, test, all) = (rows(), rows(), rows());
        let dims = vec![None; choice.layers.len()];
        Self { path, choice, dims, train, test, all, seen: 0, left: most }
    }

    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let parts = self.parts(batch)?;
        for layer in 0..self.choice.layers.len() {
            let lists = self.column(batch, self.choice.layers[layer].0)?.clone();
            self.push_layer(layer, &lists, &parts)?;
        }
        if let Some(label) = self.choice.label {
            let column = self.column(batch, label)?.clone();
            self.push_labels(&column, &parts)?;
        }
        for &part in &parts {
            self.rows(part).count += 1;
        }
        self.seen += parts.len();
        Ok(())
    }

    fn column<'b>(&self, batch: &'b RecordBatch, index: usize) -> Result<&'b ArrayRef> {
        let name = &self.choice.names[index];
        let missing =
            || Error::malformed(self.path, format!("a batch of rows has no column {name}"));
        batch.column_by_name(name).ok_or_else(missing)
    }

    fn rows(&mut self, part: Part) -> &mut Rows {
        match part {
            Part::Train => &mut self.train,
            Part::Test => &mut self.test,
            Part::All => &mut self.all,
        }
    }

    /// The part each row of the batch belongs to.
    fn parts(&self, batch: &RecordBatch) -> Result<Vec<Part>> {
        // Rows without a byte behind them (a batch of no columns) end here.
        let first = self.column(batch, self.choice.layers[0].0)?;
        let Some(split) = self.choice.split else { return Ok(vec![Part::All; first.len()]) };
        let values = Values::new(self.column(batch, split)?);
        let values = values.map_err(|what| self.in_column(split, &what))?;
        (0..first.len())
            .map(|row| match values.get(row) {
                Some(Value::Text("train")) => Ok(Part::Train),
                Some(Value::Text("test")) => Ok(Part::Test),
                found => {
                    let what = format!("expected train or test, found {}", shown(found));
                    Err(self.in_row(split, row, &what))
                }
            })
            .collect()
    }

    fn push_layer(&mut self, layer: usize, column: &ArrayRef, parts: &[Part]) -> Result<()> {
        let index = self.choice.layers[layer].0;
        let lists = Lists::new(column).map_err(|what| self.in_column(index, &what))?;
        for (row, &part) in parts.iter().enumerate() {
            let numbers = lists.row(row).map_err(|what| self.in_row(index, row, what))?;
            let dim = *self.dims[layer].get_or_insert(numbers.len());
            if numbers.len() != dim || dim == 0 {
                let what = format!("expected {} numbers, found {}", dim.max(1), numbers.len());
                return Err(self.in_row(index, row, &what));
            }
            self.left = self.left.checked_sub(numbers.len() as u64 * 4).ok_or_else(|| {
                self.in_row(index, row, "more numbers than a file of this length may unpack to")
            })?;
            self.rows(part).layers[layer].extend_from_slice(numbers);
        }
        Ok(())
    }

    fn push_labels(&mut self, column: &ArrayRef, parts: &[Part]) -> Result<()> {
        let Some(index) = self.choice.label else { return Ok(()) };
        let values = Values::new(column).map_err(|what| self.in_column(index, &what))?;
        for (row, &part) in parts.iter().enumerate() {
            match values.get(row) {
                Some(Value::Text(name)) => {
                    let pushed = self.rows(part).names.push(name);
                    pushed.map_err(|what| self.in_row(index, row, &what))?;
                }
                Some(Value::Integer(label)) if (0..MAX_CLASSES as i64).contains(&label) => {
                    self.rows(part).ids.push(label as u32);
                }
                Some(Value::Integer(label)) => {
                    let origin = self.path.display().to_string();
                    let (row, classes) = (self.seen + row, MAX_CLASSES);
                    return Err(Error::LabelRange { origin, row, label, classes });
                }
                None => return Err(self.in_row(index, row, "no value")),
            }
        }
        Ok(())
    }

    fn in_column(&self, index: usize, what: &str) -> Error {
        Error::malformed(self.path, format!("column {}: {what}", self.choice.names[index]))
    }

    fn in_row(&self, index: usize, row: usize, what: &str) -> Error {
        let (row, column) = (self.seen + row, &self.choice.names[index]);
        Error::malformed(self.path, format!("row {row}, column {column}: {what}"))
    }

    pub(super) fn finish(
        self,
        path: &Path,
        metadata: BTreeMap<String, String>,
        options: &ReadOptions,
    ) -> Result<FeatureFile> {
        let mut parts = Parts::new(path, options);
        parts.metadata = metadata;
        let all = [(Part::Train, self.train), (Part::Test, self.test), (Part::All, self.all)];
        for (part, rows) in all.into_iter().filter(|(_, rows)| rows.count > 0) {
            for (at, data) in rows.layers.into_iter().enumerate() {
                let (layer, dim) = (&self.choice.layers[at].1, self.dims[at].unwrap_or(0));
                if parts.wants(layer) {
                    let matrix = Matrix::new(rows.count, dim, data)?;
                    parts.add_layer(part, layer.clone(), vec![matrix])?;
                }
            }
            if self.choice.label.is_some() {
                let text = self.choice.text_labels;
                let labels = if text { rows.names.finish() } else { Labels::Ids(rows.ids) };
                parts.add_labels(part, labels)?;
            }
        }
        parts.finish()
    }
}
