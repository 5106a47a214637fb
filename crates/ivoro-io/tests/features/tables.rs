//! Parquet and Arrow tables.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array, Int64Array,
    ListArray, RecordBatch, StringArray, types::Int8Type,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field};
use ivoro_io::features::{ReadOptions, read_bytes};
use parquet::arrow::ArrowWriter;

use super::fixtures::{self, *};

const CELLS: usize = VIEWS * DIM;

fn item(kind: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", kind, true))
}

/// The values as one list of ten numbers a row.
fn fixed() -> ArrayRef {
    let values = Arc::new(Float32Array::from(values()));
    let list = FixedSizeListArray::new(item(DataType::Float32), CELLS as i32, values, None);
    Arc::new(list)
}

fn lists(lengths: [usize; ROWS]) -> ArrayRef {
    let values = values().into_iter().map(f64::from).take(lengths.iter().sum());
    let values = Arc::new(Float64Array::from_iter_values(values));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(item(DataType::Float64), offsets, values, None))
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

fn labels(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// The batch in each of the three formats.
fn written(batch: &RecordBatch) -> [(&'static str, Vec<u8>); 3] {
    let (mut file, mut stream, mut parquet) = (Vec::new(), Vec::new(), Vec::new());
    let mut writer = FileWriter::try_new(&mut file, batch.schema_ref()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let mut writer = StreamWriter::try_new(&mut stream, batch.schema_ref()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let mut writer = ArrowWriter::try_new(&mut parquet, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    [("a.arrow", file), ("a.arrows", stream), ("a.parquet", parquet)]
}

pub(crate) fn samples() -> [(&'static str, Vec<u8>); 3] {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["owl", "ant", "owl"]));
    written(&table(vec![("embedding", fixed()), ("label", text)]))
}

fn refusals(columns: Vec<(&str, ArrayRef)>) -> [String; 3] {
    written(&table(columns)).map(|(name, bytes)| refusal(name, &bytes))
}

#[test]
fn fixed_and_variable_lists_land_where_they_belong() {
    for features in [fixed(), lists([CELLS; ROWS])] {
        let batch = table(vec![("label", labels(&[1, 0, 1])), ("embedding", features)]);
        for (name, bytes) in written(&batch) {
            let features = fixtures::read(name, &bytes).unwrap().learning().unwrap();
            let block = features.block(0, features.views()[0]).unwrap();
            assert_eq!(block.as_slice(), values(), "{name}");
            assert_eq!(features.labels(), [1, 0, 1]);
            assert_eq!(features.layers(), ["last"]);
        }
    }
}

#[test]
fn layers_splits_and_dictionaries() {
    let dictionary: DictionaryArray<Int8Type> = ["owl", "ant", "owl"].into_iter().collect();
    let split: ArrayRef = Arc::new(StringArray::from(vec!["train", "train", "test"]));
    let batch = table(vec![
        ("layer3", lists([4; ROWS])),
        ("layer4", fixed()),
        ("class", Arc::new(dictionary)),
        ("split", split),
        ("path", Arc::new(StringArray::from(vec!["a.png", "b.png", "c.png"]))),
    ]);
    for (name, bytes) in written(&batch) {
        let (split, _) = fixtures::read(name, &bytes).unwrap().into_split(0.2, 0).unwrap();
        assert_eq!(split.train.layers(), ["layer4", "layer3"]);
        assert_eq!((split.train.dim(0), split.train.dim(1)), (CELLS, 4));
        assert_eq!(**split.train.classes(), ["ant", "owl"]);
        assert_eq!((split.train.labels(), split.test.labels()), (&[1, 0][..], &[1][..]));
        let block = split.test.block(0, split.test.views()[0]).unwrap();
        assert_eq!(block.as_slice(), &values()[2 * CELLS..]);
    }
}

#[test]
fn columns_by_the_names_given() {
    let batch = table(vec![("a", fixed()), ("b", fixed()), ("kind", labels(&[0, 0, 1]))]);
    let mut options = ReadOptions {
        feature_column: Some("b".to_owned()),
        label_column: Some("kind".to_owned()),
        ..ReadOptions::default()
    };
    for (name, bytes) in written(&batch) {
        let features = read_bytes(name, &bytes, &options).unwrap().learning().unwrap();
        assert_eq!(features.layers(), ["b"]);
        assert_eq!(features.labels(), [0, 0, 1]);
        assert!(fixtures::read(name, &bytes).unwrap().asking().unwrap().labelled().is_none());
    }
    options.label_column = Some("genus".to_owned());
    for (name, bytes) in written(&batch) {
        let error = read_bytes(name, &bytes, &options).unwrap_err().to_string();
        assert!(error.contains("no column genus; the columns are a, b, kind"), "{error}");
    }
}

#[test]
fn cells_without_a_value_are_named() {
    let missing: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), None, Some(1)]));
    for message in refusals(vec![("features", fixed()), ("y", missing)]) {
        assert!(message.contains("row 1, column y: no value"), "{message}");
    }
    let numbers = values().into_iter().enumerate().map(|(at, value)| (at != 25).then_some(value));
    let numbers: Float32Array = numbers.collect();
    let holed =
        FixedSizeListArray::new(item(DataType::Float32), CELLS as i32, Arc::new(numbers), None);
    let holed: ArrayRef = Arc::new(holed);
    for message in refusals(vec![("features", holed)]) {
        assert!(message.contains("row 2, column features: a number is missing"), "{message}");
    }
}

#[test]
fn rows_that_do_not_fit() {
    for message in refusals(vec![("features", lists([4, 4, 3]))]) {
        assert!(
            message.contains("row 2, column features: expected 4 numbers, found 3"),
            "{message}"
        );
    }
    for message in refusals(vec![("features", lists([0, 0, 0]))]) {
        assert!(message.contains("expected 1 numbers, found 0"), "{message}");
    }
    for message in refusals(vec![("features", fixed()), ("label", labels(&[0, -1, 0]))]) {
        assert!(message.contains("row 1: label -1 is outside"), "{message}");
    }
    let split: ArrayRef = Arc::new(StringArray::from(vec!["train", "dev", "test"]));
    for message in refusals(vec![("features", fixed()), ("split", split)]) {
        assert!(
            message.contains("row 1, column split: expected train or test, found dev"),
            "{message}"
        );
    }
    for message in refusals(vec![("label", labels(&[0, 1, 0]))]) {
        assert!(message.contains("no column holds lists of floats"), "{message}");
    }
}

#[test]
fn tables_cut_anywhere() {
    for (name, bytes) in samples() {
        for length in 0..bytes.len() {
            refusal(name, &bytes[..length]);
        }
    }
}
