//! 3×3 convolutions of stride 1 with fewer multiplications.
//!
//! Winograd's F(2×2, 3×3): four outputs next to each other come from sixteen products instead of
//! thirty-six, `Y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A` for a kernel g and the 4×4 inputs d. Over many
//! squares and channels the sixteen products are sixteen products of matrices. The gradients are
//! the transposes of the same steps. The matrices A, B and G are those of Lavin and Gray (2016).

use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use super::product::{Store, multiply, multiply_transposed, with_scratch};
use super::window::Window;

/// Products for a square of 2×2 outputs.
const POINTS: usize = 16;
/// G: rows are points, columns positions in a kernel's row.
const KERNEL: [[f32; 3]; 4] = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];
/// Channels under which more is spent on the steps before and after than is gained.
const FEWEST: usize = 8;
/// Values that one task handles where values are alone.
const VALUES: usize = 1 << 14;
/// Weights of partial sums of a kernel's gradient: bounds memory, and the cores that can help.
const PARTIAL: usize = 1 << 17;
/// Least and most partial sums.
const PARTS: (usize, usize) = (4, 32);

/// Whether a convolution is of the kind that this module computes, and gains by it.
pub(super) fn fits(window: &Window) -> bool {
    let wide = window.inputs.min(window.outputs) >= FEWEST;
    (window.size, window.stride, window.padding) == (3, 1, 1) && wide
}

/// Squares of 2×2 outputs over images of one size.
#[derive(Clone, Copy)]
struct Squares {
    window: Window,
    /// Squares in a row.
    across: usize,
    /// Rows of squares in an image.
    down: usize,
    /// Rows of squares that are handled at once.
    at_once: usize,
    /// Images that one task handles.
    images: usize,
}

impl Squares {
    fn of(window: &Window) -> Self {
        let (across, down) = (window.width.div_ceil(2), window.height.div_ceil(2));
        let squares = (8192 / window.inputs.max(window.outputs)).clamp(64, 128);
        let images = (squares / (across * down)).max(1);
        Self { window: *window, across, down, at_once: (squares / across).max(1), images }
    }

    /// The parts that the rows of squares of `images` images are handled in.
    fn parts(&self, images: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, at_once) = (images * self.down, self.at_once);
        (0..rows).step_by(at_once).map(move |row| row..(row + at_once).min(rows))
    }

    /// The first row of pixels, counted through all images, of a row of squares.
    fn pixel_row(&self, row: usize) -> usize {
        row / self.down * self.window.height + 2 * (row % self.down)
    }

    /// Values of a row of pixels, with room for what lies outside the image.
    fn line(&self, channels: usize) -> usize {
        (2 * self.across + 2) * channels
    }

    /// Writes Bᵀ d B for `rows`, as `[point, square, channel]`. `lines` is memory for four lines.
    fn spread_inputs(
        &self,
        images: &[f32],
        rows: &Range<usize>,
        lines: &mut [f32],
        out: &mut [f32],
    ) {
        let Window { width, height, inputs, .. } = self.window;
        let line = self.line(inputs);
        let count = rows.len() * self.across;
        lines.fill(0.0);
        for (index, row) in rows.clone().enumerate() {
            let top = 2 * (row % self.down);
            let image = &images[row / self.down * self.window.in_len()..][..self.window.in_len()];
            let pixels = |at: usize| {
                // Row 0 is the padding above the image.
                let inside = (1..=height).contains(&(top + at));
                inside.then(|| &image[(top + at - 1) * width * inputs..][..width * inputs])
            };
            let d = [pixels(0), pixels(1), pixels(2), pixels(3)];
            for (out, (left, sign, right)) in lines.chunks_exact_mut(line).zip(pairs(d)) {
                combine(left, sign, right, &mut out[inputs..(width + 1) * inputs]);
            }
            for square in 0..self.across {
                let at = index * self.across + square;
                for (vertical, line) in lines.chunks_exact(line).enumerate() {
                    let pixel = |x: usize| Some(&line[(2 * square + x) * inputs..][..inputs]);
                    let d = [pixel(0), pixel(1), pixel(2), pixel(3)];
                    for (horizontal, (left, sign, right)) in pairs(d).into_iter().enumerate() {
                        let point = 4 * vertical + horizontal;
                        let out = &mut out[(point * count + at) * inputs..][..inputs];
                        combine(left, sign, right, out);
                    }
                }
            }
        }
    }

    /// Writes Aᵀ M A, given as `[point, square, channel]`, to the pixels of `rows`.
    fn gather_outputs(
        &self,
        points: &[f32],
        rows: &Range<usize>,
        sums: &mut [f32],
        out: &mut [f32],
        store: Store,
    ) {
        let Window { width, height, outputs, .. } = self.window;
        let count = rows.len() * self.across;
        let first = self.pixel_row(rows.start);
        for (index, row) in rows.clone().enumerate() {
            for square in 0..self.across {
                let at = index * self.across + square;
                let point = |point: usize| &points[(point * count + at) * outputs..][..outputs];
                // Over the columns of the square first: `[row of points, column]`.
                for (vertical, sums) in sums.chunks_exact_mut(2 * outputs).enumerate() {
                    let (left, right) = sums.split_at_mut(outputs);
                    let m = [0, 1, 2, 3].map(|horizontal| point(4 * vertical + horizontal));
                    shrink(m, [Some(left), Some(right)], Store::Replace);
                }
                for column in 0..2.min(width - 2 * square) {
                    let s = [0, 1, 2, 3]
                        .map(|vertical| &sums[(2 * vertical + column) * outputs..][..outputs]);
                    let pixel = (self.pixel_row(row) - first) * width + 2 * square + column;
                    let out = &mut out[pixel * outputs..];
                    if 2 * (row % self.down) + 1 < height {
                        let (above, below) = out.split_at_mut(width * outputs);
                        shrink(s, [Some(above), Some(below)], store);
                    } else {
                        shrink(s, [Some(out), None], store);
                    }
                }
            }
        }
    }

    /// Writes A y Aᵀ, the transpose of [`gather_outputs`](Self::gather_outputs).
    fn spread_outputs(
        &self,
        gradient: &[f32],
        rows: &Range<usize>,
        lines: &mut [f32],
        out: &mut [f32],
    ) {
        let Window { width, height, outputs, .. } = self.window;
        let line = self.line(outputs);
        let count = rows.len() * self.across;
        lines.fill(0.0);
        for (index, row) in rows.clone().enumerate() {
            let first = self.pixel_row(row) * width * outputs;
            let above = Some(&gradient[first..][..width * outputs]);
            let inside = 2 * (row % self.down) + 1 < height;
            let below = inside.then(|| &gradient[first + width * outputs..][..width * outputs]);
            for (out, (left, sign, right)) in
                lines.chunks_exact_mut(line).zip(stretch(above, below))
            {
                combine(left, sign, right, &mut out[..width * outputs]);
            }
            for square in 0..self.across {
                let at = index * self.across + square;
                for (vertical, line) in lines.chunks_exact(line).enumerate() {
                    let pixel = |x: usize| Some(&line[(2 * square + x) * outputs..][..outputs]);
                    let parts = stretch(pixel(0), pixel(1)).into_iter().enumerate();
                    for (horizontal, (left, sign, right)) in parts {
                        let point = 4 * vertical + horizontal;
                        let out = &mut out[(point * count + at) * outputs..][..outputs];
                        combine(left, sign, right, out);
                    }
                }
            }
        }
    }
}

type Line<'a> = Option<&'a [f32]>;

/// The rows of Bᵀ: which two of four are added or subtracted.
fn pairs(d: [Line<'_>; 4]) -> [(Line<'_>, f32, Line<'_>); 4] {
    [(d[0], -1.0, d[2]), (d[1], 1.0, d[2]), (d[2], -1.0, d[1]), (d[1], -1.0, d[3])]
}

/// The rows of A: what becomes of two.
fn stretch<'a>(above: Line<'a>, below: Line<'a>) -> [(Line<'a>, f32, Line<'a>); 4] {
    [(above, 1.0, None), (above, 1.0, below), (above, -1.0, below), (None, -1.0, below)]
}

/// `left + sign · right`; what is not there is 0.
#[inline(always)]
fn combine(left: Line<'_>, sign: f32, right: Line<'_>, out: &mut [f32]) {
    match (left, right) {
        (Some(left), Some(right)) => {
            let values = out.iter_mut().zip(left).zip(right);
            if sign > 0.0 {
                values.for_each(|((out, left), right)| *out = left + right);
            } else {
                values.for_each(|((out, left), right)| *out = left - right);
            }
        }
        (Some(left), None) => out.copy_from_slice(left),
        (None, Some(right)) => {
            out.iter_mut().zip(right).for_each(|(out, right)| *out = sign * right);
        }
        (None, None) => out.fill(0.0),
    }
}

/// The rows of Aᵀ: two of four.
#[inline(always)]
fn shrink(m: [&[f32]; 4], out: [Option<&mut [f32]>; 2], store: Store) {
    let [above, below] = out;
    let old = |value: f32| if store == Store::Add { value } else { 0.0 };
    if let Some(out) = above {
        let values = out.iter_mut().zip(m[0]).zip(m[1]).zip(m[2]);
        values.for_each(|(((out, a), b), c)| *out = old(*out) + (a + (b + c)));
    }
    if let Some(out) = below {
        let values = out.iter_mut().zip(m[1]).zip(m[2]).zip(m[3]);
        values.for_each(|(((out, a), b), c)| *out = old(*out) + ((a - b) - c));
    }
}

/// `G g Gᵀ`, as `[point, input, output]`.
pub(super) fn spread_kernel(kernel: &[f32], out: &mut Vec<f32>) {
    let length = kernel.len() / 9;
    out.resize(POINTS * length, 0.0);
    out.par_chunks_mut(length).enumerate().for_each(|(point, out)| {
        let weights = |tap: usize| KERNEL[point / 4][tap / 3] * KERNEL[point % 4][tap % 3];
        let taps = kernel.chunks_exact(length).enumerate();
        weighted_sum(taps.map(|(tap, values)| (weights(tap), values)), out);
    });
}

/// `Gᵀ u G`, the transpose of [`spread_kernel`].
fn gather_kernel(points: &[f32], kernel: &mut [f32]) {
    let length = kernel.len() / 9;
    kernel.par_chunks_mut(length).enumerate().for_each(|(tap, out)| {
        let weights = |point: usize| KERNEL[point / 4][tap / 3] * KERNEL[point % 4][tap % 3];
        let points = points.chunks_exact(length).enumerate();
        weighted_sum(points.map(|(point, values)| (weights(point), values)), out);
    });
}

fn weighted_sum<'a>(terms: impl Iterator<Item = (f32, &'a [f32])> + Clone, out: &mut [f32]) {
    for (index, out) in out.chunks_mut(1024).enumerate() {
        out.fill(0.0);
        for (weight, values) in terms.clone().filter(|(weight, _)| *weight != 0.0) {
            let values = &values[index * 1024..][..out.len()];
            out.iter_mut().zip(values).for_each(|(out, value)| *out += weight * value);
        }
    }
}

/// Convolves images on this thread with a kernel from [`spread_kernel`]; returns what `finish`
/// said of each part.
pub(super) fn convolve_here<T>(
    window: &Window,
    images: &[f32],
    kernel: &[f32],
    out: &mut [f32],
    store: Store,
    finish: impl Fn(&mut [f32]) -> T,
) -> Vec<T> {
    let Window { inputs, outputs, .. } = *window;
    let squares = Squares::of(window);
    let count = squares.at_once * squares.across;
    let sizes = [4 * squares.line(inputs), POINTS * count * inputs, POINTS * count * outputs];
    with_scratch(sizes.iter().sum::<usize>() + 8 * outputs, |memory| {
        let (lines, memory) = memory.split_at_mut(sizes[0]);
        let (spread, memory) = memory.split_at_mut(sizes[1]);
        let (points, sums) = memory.split_at_mut(sizes[2]);
        let one = |rows: Range<usize>| {
            let count = rows.len() * squares.across;
            let spread = &mut spread[..POINTS * count * inputs];
            let points = &mut points[..POINTS * count * outputs];
            simd(|| squares.spread_inputs(images, &rows, lines, spread));
            let each = points.chunks_exact_mut(count * outputs);
            let each = each.zip(spread.chunks_exact(count * inputs));
            for ((point, spread), kernel) in each.zip(kernel.chunks_exact(inputs * outputs)) {
                multiply(point, Store::Replace, spread, kernel, inputs);
            }
            let line = window.width * outputs;
            let end = (squares.pixel_row(rows.end - 1) + 2)
                .min(((rows.end - 1) / squares.down + 1) * window.height);
            let out = &mut out[squares.pixel_row(rows.start) * line..end * line];
            simd(|| squares.gather_outputs(points, &rows, sums, out, store));
            finish(out)
        };
        squares.parts(images.len() / window.in_len()).map(one).collect()
    })
}

#[inline(always)]
fn simd(work: impl FnOnce()) {
    Arch::new().dispatch(
        #[inline(always)]
        || work(),
    );
}

/// Convolves images on all threads with a kernel from [`spread_kernel`].
pub(super) fn convolve<T: Send>(
    window: &Window,
    images: &[f32],
    kernel: &[f32],
    out: &mut [f32],
    store: Store,
    finish: impl Fn(&mut [f32]) -> T + Sync,
) -> Vec<T> {
    let group = Squares::of(window).images;
    let parts = out.par_chunks_mut(group * window.out_len());
    let parts = parts.zip(images.par_chunks(group * window.in_len()));
    let one = |(out, images): (&mut [f32], &[f32])| {
        convolve_here(window, images, kernel, out, store, &finish)
    };
    parts.map(one).flatten_iter().collect()
}

/// The gradient of the kernel from that of the outputs. `partial` is memory for partial sums.
pub(super) fn backward_kernel(
    window: &Window,
    images: &[f32],
    outputs: &[f32],
    partial: &mut Vec<f32>,
    kernel: &mut [f32],
) {
    let count = images.len() / window.in_len();
    let length = POINTS * window.inputs * window.outputs;
    let most = (PARTIAL / (window.inputs * window.outputs)).clamp(PARTS.0, PARTS.1);
    // Whole sets of images that fill a product, so that no group has a smaller one.
    let set = Squares::of(window).images;
    let group = count.div_ceil(set).div_ceil(most).max(1) * set;
    let groups = count.div_ceil(group);
    partial.resize(groups * length, 0.0);
    let given = images.par_chunks(group * window.in_len());
    let given = given.zip(outputs.par_chunks(group * window.out_len()));
    partial.par_chunks_mut(length).zip(given).for_each(|(sums, (images, outputs))| {
        sum_points(window, images, outputs, sums);
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

fn sum_points(window: &Window, images: &[f32], gradient: &[f32], sums: &mut [f32]) {
    let Window { inputs, outputs, .. } = *window;
    let squares = Squares::of(window);
    let count = squares.at_once * squares.across;
    let line = 4 * squares.line(inputs.max(outputs));
    let sizes = [line, POINTS * count * inputs, POINTS * count * outputs];
    with_scratch(sizes.iter().sum(), |memory| {
        let (lines, memory) = memory.split_at_mut(sizes[0]);
        let (left, right) = memory.split_at_mut(sizes[1]);
        let mut store = Store::Replace;
        for rows in squares.parts(images.len() / window.in_len()) {
            let count = rows.len() * squares.across;
            let left = &mut left[..POINTS * count * inputs];
            let right = &mut right[..POINTS * count * outputs];
            let memory = &mut lines[..4 * squares.line(inputs)];
            simd(|| squares.spread_inputs(images, &rows, memory, left));
            let memory = &mut lines[..4 * squares.line(outputs)];
            simd(|| squares.spread_outputs(gradient, &rows, memory, right));
            let each = sums.chunks_exact_mut(inputs * outputs);
            let each = each.zip(left.chunks_exact(count * inputs));
            for ((sums, left), right) in each.zip(right.chunks_exact(count * outputs)) {
                multiply_transposed(sums, store, left, right, count);
            }
            store = Store::Add;
        }
    });
}
