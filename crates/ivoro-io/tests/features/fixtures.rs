//! Files made by hand: 3 rows × 2 views × 5 dimensions, each value spelling where it belongs.

use std::io::{Cursor, Write};

use half::f16;
use ivoro::View;
use ivoro_io::features::{FeatureFile, ReadOptions, Set, read_bytes};
use serde_json::{Value, json};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

pub(crate) const ROWS: usize = 3;
pub(crate) const VIEWS: usize = 2;
pub(crate) const DIM: usize = 5;

/// Row, view and column as the digits of a number.
pub(crate) fn value(row: usize, view: usize, column: usize) -> f32 {
    (100 * row + 10 * view + column) as f32
}

/// Row, view and column of every element with the last axis fastest.
pub(crate) fn positions() -> impl Iterator<Item = (usize, usize, usize)> {
    (0..ROWS * VIEWS * DIM).map(|at| (at / (VIEWS * DIM), at / DIM % VIEWS, at % DIM))
}

pub(crate) fn values() -> Vec<f32> {
    positions().map(|(row, view, column)| value(row, view, column)).collect()
}

pub(crate) fn halves(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect()
}

pub(crate) fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn longs(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Asserts that every number of the layer is where it belongs.
pub(crate) fn assert_values(set: &Set, layer: usize) {
    let views = set.points().views();
    assert_eq!(views, View::conventional(VIEWS).unwrap());
    for (row, view, column) in positions() {
        let block = set.points().block(layer, views[view]).unwrap();
        assert_eq!((block.rows(), block.cols()), (ROWS, DIM));
        let (found, expected) = (block.row(row)[column], value(row, view, column));
        assert_eq!(found.to_bits(), expected.to_bits(), "{row} {view} {column}");
    }
}

/// A tensor: name, type, shape, bytes.
pub(crate) type Tensor<'a> = (&'a str, &'a str, Vec<usize>, Vec<u8>);

/// A safetensors file, written from its specification.
pub(crate) fn safetensors(metadata: &Value, tensors: &[Tensor<'_>]) -> Vec<u8> {
    let mut header = json!({"__metadata__": metadata});
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        header[*name] = json!({"dtype": dtype, "shape": shape, "data_offsets": offsets});
        data.extend_from_slice(bytes);
    }
    safetensors_raw(&header.to_string(), &data)
}

pub(crate) fn safetensors_raw(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// A train part of two layers and three labels in half precision.
pub(crate) fn small_features() -> Vec<u8> {
    let shape = vec![ROWS, VIEWS, DIM];
    safetensors(
        &json!({}),
        &[
            ("train.layer3", "F16", shape.clone(), halves(&[0.5; ROWS * VIEWS * DIM])),
            ("train.layer4", "F16", shape, halves(&values())),
            ("train.labels", "I64", vec![ROWS], longs(&[1, 0, 1])),
        ],
    )
}

/// A `.npy` file of format 1.0, padded as `NumPy` pads it.
pub(crate) fn npy(descr: &str, fortran: bool, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let shape = shape.join(", ");
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({shape},), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

/// A zip archive of `.npy` members.
pub(crate) fn npz(method: CompressionMethod, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in members {
        writer.start_file(format!("{name}.npy"), options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(crate) fn read(name: &str, bytes: &[u8]) -> ivoro::Result<FeatureFile> {
    read_bytes(name, bytes, &ReadOptions::default())
}

/// What the reader says against a file, which must be one line that names it.
pub(crate) fn refusal(name: &str, bytes: &[u8]) -> String {
    let message = read(name, bytes).unwrap_err().to_string();
    assert!(message.contains(name) && !message.contains('\n'), "{message}");
    message
}
