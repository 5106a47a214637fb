//! Convolutions and their gradients as products of matrices.
//!
//! Most of a network's work is done by [`winograd`]. For all other convolutions, what a tile of
//! output pixels sees is gathered into a matrix small enough for the second-level
//! cache and multiplied by the kernel, some taps at a time. Tiles have a fixed size and partial
//! sums are added in a fixed order: threads only decide who computes a tile, never how.

use std::ops::Range;

use rayon::prelude::*;

use super::aligned::with_scratch;
use super::conv_geometry::ConvGeometry;
use super::gemm::{Store, multiply, multiply_transposed};
use super::{ROWS, winograd};

/// Memory for kernels, kept between calls.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// A kernel turned around.
    turned: Vec<f32>,
    /// A kernel as it is multiplied with.
    pub(super) prepared: Vec<f32>,
    /// Partial sums of a kernel's gradient.
    partial: Vec<f32>,
}

/// Parts that the gradient of a kernel is computed in, which bounds the cores that can help.
const PARTS: usize = 32;

/// Convolves one tile: the output pixels from `start` on that `out` has rows for.
fn tile(
    geometry: &ConvGeometry,
    images: &[f32],
    kernel: &[f32],
    start: usize,
    out: &mut [f32],
    store: Store,
) {
    let at_once = geometry.taps_at_once();
    let tap_len = geometry.inputs * geometry.outputs;
    let rows = out.len() / geometry.outputs;
    with_scratch(rows * at_once * geometry.inputs, |scratch| {
        let mut store = store;
        for taps in chunks(geometry.taps(), at_once) {
            let columns = taps.len() * geometry.inputs;
            let gathered = &mut scratch[..rows * columns];
            geometry.gather(images, start, &taps, gathered);
            let part = &kernel[taps.start * tap_len..taps.end * tap_len];
            multiply(out, store, gathered, part, columns);
            store = Store::Add;
        }
    });
}

fn chunks(total: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..total).step_by(size).map(move |start| start..(start + size).min(total))
}

/// Convolves images on all threads; returns what `finish` said of each part.
pub(super) fn convolve<T: Send>(
    geometry: &ConvGeometry,
    images: &[f32],
    kernel: &[f32],
    prepared: &mut Vec<f32>,
    out: &mut [f32],
    store: Store,
    finish: impl Fn(&mut [f32]) -> T + Sync,
) -> Vec<T> {
    if winograd::fits(geometry) {
        winograd::spread_kernel(kernel, prepared);
        return winograd::convolve(geometry, images, prepared, out, store, finish);
    }
    tiles(geometry, images, kernel, out, store, finish)
}

fn tiles<T: Send>(
    geometry: &ConvGeometry,
    images: &[f32],
    kernel: &[f32],
    out: &mut [f32],
    store: Store,
    finish: impl Fn(&mut [f32]) -> T + Sync,
) -> Vec<T> {
    let tiles = out.par_chunks_mut(ROWS * geometry.outputs).enumerate();
    let one = |(index, part): (usize, &mut [f32])| {
        tile(geometry, images, kernel, index * ROWS, part, store);
        finish(part)
    };
    tiles.map(one).collect()
}

/// The gradient of the inputs from that of the outputs.
pub(super) fn backward_inputs(
    geometry: &ConvGeometry,
    kernel: &[f32],
    outputs: &[f32],
    memory: &mut Memory,
    inputs: &mut [f32],
    store: Store,
) {
    let Memory { turned, prepared, .. } = memory;
    turned.resize(kernel.len(), 0.0);
    let tap_len = geometry.inputs * geometry.outputs;
    let last = geometry.taps() - 1;
    turned.par_chunks_mut(tap_len).enumerate().for_each(|(tap, out)| {
        // At stride 1 the gradient is itself a convolution, with the kernel turned around.
        let from = if geometry.stride == 1 { last - tap } else { tap };
        let tap = &kernel[from * tap_len..(from + 1) * tap_len];
        transpose(tap, geometry.outputs, out);
    });
    if geometry.stride == 1 {
        convolve(&geometry.backward(), outputs, turned, prepared, inputs, store, |_| ());
    } else {
        spread(geometry, turned, outputs, inputs, store);
    }
}

/// Transposes a matrix of `columns` columns.
pub(super) fn transpose(matrix: &[f32], columns: usize, out: &mut [f32]) {
    let rows = matrix.len() / columns;
    // Squares of 16 by 16 use every cache line that is fetched in full.
    for top in (0..rows).step_by(16) {
        for left in (0..columns).step_by(16) {
            for column in left..(left + 16).min(columns) {
                for row in top..(top + 16).min(rows) {
                    out[column * rows + row] = matrix[row * columns + column];
                }
            }
        }
    }
}

/// The gradient of the inputs at any stride: each output pixel adds to the places it saw.
fn spread(
    geometry: &ConvGeometry,
    turned: &[f32],
    outputs: &[f32],
    inputs: &mut [f32],
    store: Store,
) {
    let images = (ROWS / geometry.out_pixels()).max(1);
    let tap_len = geometry.inputs * geometry.outputs;
    let parts = inputs.par_chunks_mut(images * geometry.in_len());
    parts.zip(outputs.par_chunks(images * geometry.out_len())).for_each(|(inputs, outputs)| {
        if store == Store::Replace {
            inputs.fill(0.0);
        }
        for (index, rows) in outputs.chunks(ROWS * geometry.outputs).enumerate() {
            let count = rows.len() / geometry.outputs;
            with_scratch(count * geometry.inputs, |seen| {
                for (tap, kernel) in turned.chunks_exact(tap_len).enumerate() {
                    multiply(seen, Store::Replace, rows, kernel, geometry.outputs);
                    geometry.scatter(seen, index * ROWS, &(tap..tap + 1), inputs);
                }
            });
        }
    });
}

/// The gradient of the kernel from that of the outputs.
pub(super) fn backward_kernel(
    geometry: &ConvGeometry,
    images: &[f32],
    outputs: &[f32],
    memory: &mut Memory,
    kernel: &mut [f32],
) {
    let partial = &mut memory.partial;
    if winograd::fits(geometry) {
        return winograd::backward_kernel(geometry, images, outputs, partial, kernel);
    }
    let at_once = geometry.taps_at_once();
    let pixels = outputs.len() / geometry.outputs;
    let tiles = pixels.div_ceil(ROWS);
    let chunk_len = at_once * geometry.inputs * geometry.outputs;
    let groups = (PARTS / geometry.taps().div_ceil(at_once)).clamp(1, tiles.max(1));
    let rows = tiles.div_ceil(groups) * ROWS;
    partial.resize(groups * geometry.kernel_len(), 0.0);
    partial.par_chunks_mut(geometry.kernel_len()).enumerate().for_each(|(group, sums)| {
        let pixels = (group * rows).min(pixels)..((group + 1) * rows).min(pixels);
        sums.par_chunks_mut(chunk_len).enumerate().for_each(|(chunk, sums)| {
            let first = chunk * at_once;
            let taps = first..(first + at_once).min(geometry.taps());
            sum_taps(geometry, images, outputs, &taps, &pixels, sums);
        });
    });
    let length = kernel.len();
    kernel.par_chunks_mut(1 << 14).enumerate().for_each(|(index, part)| {
        let from = index << 14;
        part.copy_from_slice(&partial[from..from + part.len()]);
        for group in 1..groups {
            let more = &partial[group * length + from..][..part.len()];
            part.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    });
}

/// The gradient of some taps of the kernel, summed over a range of output pixels.
fn sum_taps(
    geometry: &ConvGeometry,
    images: &[f32],
    outputs: &[f32],
    taps: &Range<usize>,
    pixels: &Range<usize>,
    sums: &mut [f32],
) {
    let columns = taps.len() * geometry.inputs;
    if pixels.is_empty() {
        sums.fill(0.0);
    }
    let mut store = Store::Replace;
    for start in pixels.clone().step_by(ROWS) {
        let rows = ROWS.min(pixels.end - start);
        with_scratch(rows * columns, |gathered| {
            geometry.gather(images, start, taps, gathered);
            let outputs = &outputs[start * geometry.outputs..][..rows * geometry.outputs];
            multiply_transposed(sums, store, gathered, outputs, rows);
        });
        store = Store::Add;
    }
}
