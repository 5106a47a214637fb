//! 3×3 convolutions of stride 1 with fewer multiplications.
//!
//! Winograd's F(2×2, 3×3): four outputs next to each other come from sixteen products instead of
//! thirty-six, `Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A` for a kernel g and the 4×4 inputs d. Over many
//! tiles and channels the sixteen products are sixteen products of matrices. The gradients are
//! the transposes of the same steps. The matrices A, B and G are those of Lavin and Gray (2016).

use std::ops::Range;

use ivoro::vectors::vectorised;
use rayon::prelude::*;

use super::aligned::with_scratch;
use super::conv_geometry::ConvGeometry;
use super::gemm::{Store, multiply, multiply_transposed};
use super::panels::{Finish, Out, Panels, Rows};
use super::winograd_tiles::WinogradTiles;

/// Products for a tile of 2×2 outputs.
const POINTS: usize = 16;
/// G: rows are points, columns positions in a kernel's row.
const KERNEL: [[f32; 3]; 4] = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];
/// Channels under which more is spent on the steps before and after than is gained.
const FEWEST: usize = 8;
/// Values that one task handles where values are alone.
const VALUES: usize = 1 << 14;
/// Weights of partial sums of a kernel's gradient: bounds memory, and the cores that can help.
const PARTIAL: usize = 1 << 17;
/// Tiles that are multiplied by a packed matrix at once.
const MOST: usize = 128;
/// Least and most partial sums.
const PARTS: (usize, usize) = (4, 32);

/// Whether a convolution is of the kind that this module computes, and gains by it.
pub(super) fn fits(geometry: &ConvGeometry) -> bool {
    let wide = geometry.inputs.min(geometry.outputs) >= FEWEST;
    (geometry.size, geometry.stride, geometry.padding) == (3, 1, 1) && wide
}

/// `G g Gᵀ`, as `[point, input, output]`.
pub(super) fn spread_kernel(kernel: &[f32], out: &mut Vec<f32>) {
    let length = kernel.len() / 9;
    out.resize(POINTS * length, 0.0);
    out.par_chunks_mut(length).enumerate().for_each(|(point, out)| {
        let weights = |tap: usize| KERNEL[point / 4][tap / 3] * KERNEL[point % 4][tap % 3];
        let taps = kernel.chunks_exact(length).enumerate();
        weighted_sum(&taps.map(|(tap, values)| (weights(tap), values)), out);
    });
}

/// A kernel spread out over the points, as it is multiplied with.
pub(super) trait Points: Sync {
    /// Writes the product of tiles and the kernel's matrix of a point.
    fn product(&self, point: usize, tiles: &[f32], geometry: &ConvGeometry, out: &mut [f32]);
}

/// What [`spread_kernel`] gives.
impl Points for &[f32] {
    fn product(&self, point: usize, tiles: &[f32], geometry: &ConvGeometry, out: &mut [f32]) {
        let length = geometry.inputs * geometry.outputs;
        let kernel = &self[point * length..][..length];
        multiply(out, Store::Replace, tiles, kernel, geometry.inputs);
    }
}

/// A kernel that never changes, packed once: a matrix for each point.
#[derive(Clone, Debug)]
pub(super) struct Packed(Vec<Panels>);

impl Packed {
    /// How many weights are kept; none if that can't be counted.
    pub(super) fn count(geometry: &ConvGeometry) -> Option<usize> {
        Panels::count(geometry.inputs, geometry.outputs)?.checked_mul(POINTS)
    }

    /// Packs a kernel `[tap, input, output]`.
    pub(super) fn new(geometry: &ConvGeometry, kernel: &[f32]) -> Self {
        let (mut spread, outputs) = (Vec::new(), geometry.outputs);
        spread_kernel(kernel, &mut spread);
        let bias = vec![0.0; outputs];
        let pack = |matrix: &[f32]| {
            Panels::new(geometry.inputs, &bias, |input, output| matrix[input * outputs + output])
        };
        Self(spread.chunks_exact(geometry.inputs * outputs).map(pack).collect())
    }
}

impl Points for Packed {
    fn product(&self, point: usize, tiles: &[f32], geometry: &ConvGeometry, out: &mut [f32]) {
        let inputs = geometry.inputs;
        let finish = Finish { store: Store::Replace, limits: (f32::NEG_INFINITY, f32::INFINITY) };
        let (mut starts, rows) = ([0; MOST], tiles.len() / inputs);
        for first in (0..rows).step_by(MOST) {
            let starts = &mut starts[..MOST.min(rows - first)];
            starts.iter_mut().enumerate().for_each(|(at, start)| *start = (first + at) * inputs);
            let rows = Rows { numbers: tiles, starts, runs: &[0], run: inputs };
            let out = &mut out[first * geometry.outputs..];
            let out = Out { numbers: out, row: geometry.outputs, column: 0 };
            self.0[point].multiply(&rows, finish, out);
        }
    }
}

/// `Gᵀ u G`, the transpose of [`spread_kernel`].
fn gather_kernel(points: &[f32], kernel: &mut [f32]) {
    let length = kernel.len() / 9;
    kernel.par_chunks_mut(length).enumerate().for_each(|(tap, out)| {
        let weights = |point: usize| KERNEL[point / 4][tap / 3] * KERNEL[point % 4][tap % 3];
        let points = points.chunks_exact(length).enumerate();
        weighted_sum(&points.map(|(point, values)| (weights(point), values)), out);
    });
}

fn weighted_sum<'a>(terms: &(impl Iterator<Item = (f32, &'a [f32])> + Clone), out: &mut [f32]) {
    for (index, out) in out.chunks_mut(1024).enumerate() {
        out.fill(0.0);
        for (weight, values) in terms.clone().filter(|(weight, _)| *weight != 0.0) {
            let values = &values[index * 1024..][..out.len()];
            out.iter_mut().zip(values).for_each(|(out, value)| *out += weight * value);
        }
    }
}

/// Convolves images on this thread; returns what `finish` said of each part.
pub(super) fn convolve_here<T>(
    geometry: &ConvGeometry,
    images: &[f32],
    kernel: &impl Points,
    out: &mut [f32],
    store: Store,
    finish: impl Fn(&mut [f32]) -> T,
) -> Vec<T> {
    let tiles = WinogradTiles::of(geometry);
    let one = |(rows, out): (Range<usize>, &mut [f32])| {
        convolve_part(&tiles, images, kernel, &rows, out, store, false);
        finish(out)
    };
    tiles.divide(images.len() / geometry.in_len(), out).map(one).collect()
}

/// Convolves some rows of tiles; `out` is what they give. `shared`: all threads share the points.
fn convolve_part(
    tiles: &WinogradTiles,
    images: &[f32],
    kernel: &impl Points,
    rows: &Range<usize>,
    out: &mut [f32],
    store: Store,
    shared: bool,
) {
    let ConvGeometry { inputs, outputs, .. } = tiles.geometry;
    let count = rows.len() * tiles.across;
    let sizes = [4 * tiles.line(inputs), POINTS * count * inputs, POINTS * count * outputs];
    with_scratch(sizes.iter().sum::<usize>() + 8 * outputs, |memory| {
        let (lines, memory) = memory.split_at_mut(sizes[0]);
        let (spread, memory) = memory.split_at_mut(sizes[1]);
        let (points, sums) = memory.split_at_mut(sizes[2]);
        vectorised(
            #[inline(always)]
            || tiles.spread_inputs(images, rows, lines, spread),
        );
        let product = |(at, point): (usize, &mut [f32])| {
            let spread = &spread[at * count * inputs..][..count * inputs];
            kernel.product(at, spread, &tiles.geometry, point);
        };
        if shared {
            points.par_chunks_exact_mut(count * outputs).enumerate().for_each(product);
        } else {
            points.chunks_exact_mut(count * outputs).enumerate().for_each(product);
        }
        vectorised(
            #[inline(always)]
            || tiles.gather_outputs(points, rows, sums, out, store),
        );
    });
}

/// The same on all threads: they share the parts, or the points of a part if there are few.
pub(super) fn convolve_shared(
    geometry: &ConvGeometry,
    images: &[f32],
    kernel: &impl Points,
    out: &mut [f32],
    store: Store,
    finish: impl Fn(&mut [f32]) + Sync,
) {
    let tiles = WinogradTiles::of(geometry);
    let parts: Vec<_> = tiles.divide(images.len() / geometry.in_len(), out).collect();
    let shared = parts.len() < rayon::current_num_threads();
    parts.into_par_iter().for_each(|(rows, out)| {
        convolve_part(&tiles, images, kernel, &rows, out, store, shared);
        finish(out);
    });
}

/// Convolves images on all threads with a kernel from [`spread_kernel`], some images a task.
pub(super) fn convolve<T: Send>(
    geometry: &ConvGeometry,
    images: &[f32],
    kernel: &[f32],
    out: &mut [f32],
    store: Store,
    finish: impl Fn(&mut [f32]) -> T + Sync,
) -> Vec<T> {
    let group = WinogradTiles::of(geometry).images;
    let parts = out.par_chunks_mut(group * geometry.out_len());
    let parts = parts.zip(images.par_chunks(group * geometry.in_len()));
    let one = |(out, images): (&mut [f32], &[f32])| {
        convolve_here(geometry, images, &kernel, out, store, &finish)
    };
    parts.map(one).flatten_iter().collect()
}

/// The gradient of the kernel from that of the outputs. `partial` is memory for partial sums.
pub(super) fn backward_kernel(
    geometry: &ConvGeometry,
    images: &[f32],
    outputs: &[f32],
    partial: &mut Vec<f32>,
    kernel: &mut [f32],
) {
    let count = images.len() / geometry.in_len();
    let length = POINTS * geometry.inputs * geometry.outputs;
    let most = (PARTIAL / (geometry.inputs * geometry.outputs)).clamp(PARTS.0, PARTS.1);
    // Whole sets of images that fill a product, so that no group has a smaller one.
    let set = WinogradTiles::of(geometry).images;
    let group = count.div_ceil(set).div_ceil(most).max(1) * set;
    let groups = count.div_ceil(group);
    partial.resize(groups * length, 0.0);
    let given = images.par_chunks(group * geometry.in_len());
    let given = given.zip(outputs.par_chunks(group * geometry.out_len()));
    partial.par_chunks_mut(length).zip(given).for_each(|(sums, (images, outputs))| {
        sum_points(geometry, images, outputs, sums);
    });
    let (first, rest) = partial.split_at_mut(length);
    first.par_chunks_mut(VALUES).enumerate().for_each(|(index, out)| {
        for more in rest.chunks_exact(length) {
            let more = &more[index * VALUES..][..out.len()];
            out.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    });
    gather_kernel(first, kernel);
}

fn sum_points(geometry: &ConvGeometry, images: &[f32], gradient: &[f32], sums: &mut [f32]) {
    let ConvGeometry { inputs, outputs, .. } = *geometry;
    let tiles = WinogradTiles::of(geometry);
    let count = tiles.at_once * tiles.across;
    let line = 4 * tiles.line(inputs.max(outputs));
    let sizes = [line, POINTS * count * inputs, POINTS * count * outputs];
    with_scratch(sizes.iter().sum(), |memory| {
        let (lines, memory) = memory.split_at_mut(sizes[0]);
        let (left, right) = memory.split_at_mut(sizes[1]);
        let mut store = Store::Replace;
        for rows in tiles.parts(images.len() / geometry.in_len()) {
            let count = rows.len() * tiles.across;
            let left = &mut left[..POINTS * count * inputs];
            let right = &mut right[..POINTS * count * outputs];
            let memory = &mut lines[..4 * tiles.line(inputs)];
            vectorised(
                #[inline(always)]
                || tiles.spread_inputs(images, &rows, memory, left),
            );
            let memory = &mut lines[..4 * tiles.line(outputs)];
            vectorised(
                #[inline(always)]
                || tiles.spread_outputs(gradient, &rows, memory, right),
            );
            let each = sums.chunks_exact_mut(inputs * outputs);
            let each = each.zip(left.chunks_exact(count * inputs));
            for ((sums, left), right) in each.zip(right.chunks_exact(count * outputs)) {
                multiply_transposed(sums, store, left, right, count);
            }
            store = Store::Add;
        }
    });
}
