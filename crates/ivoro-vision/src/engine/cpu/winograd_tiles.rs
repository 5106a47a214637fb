//! Tiles of outputs and the sums before and after their products; see [`winograd`](super::winograd).

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use std::ops::Range;

use super::conv_geometry::ConvGeometry;
use super::gemm::Store;

/// Tiles of 2×2 outputs over images of one size.
#[derive(Clone, Copy)]
pub(super) struct WinogradTiles {
    pub(super) geometry: ConvGeometry,
    /// Tiles in a row.
    pub(super) across: usize,
    /// Rows of tiles in an image.
    pub(super) down: usize,
    /// Rows of tiles that are handled at once.
    pub(super) at_once: usize,
    /// Images that one task handles.
    pub(super) images: usize,
}

impl WinogradTiles {
    pub(super) fn of(geometry: &ConvGeometry) -> Self {
        let (across, down) = (geometry.width.div_ceil(2), geometry.height.div_ceil(2));
        let tiles = (8192 / geometry.inputs.max(geometry.outputs)).clamp(64, 128);
        let images = (tiles / (across * down)).max(1);
        Self { geometry: *geometry, across, down, at_once: (tiles / across).max(1), images }
    }

    /// The parts that the rows of tiles of `images` images are handled in.
    pub(super) fn parts(&self, images: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, at_once) = (images * self.down, self.at_once);
        (0..rows).step_by(at_once).map(move |row| row..(row + at_once).min(rows))
    }

    /// The parts of `images` images, each with its place in their outputs.
    pub(super) fn divide<'a>(
        &self,
        images: usize,
        out: &'a mut [f32],
    ) -> impl Iterator<Item = (Range<usize>, &'a mut [f32])> + use<'a> {
        let (tiles, mut rest) = (*self, out);
        let line = self.geometry.width * self.geometry.outputs;
        self.parts(images).map(move |rows| {
            let last = rows.end - 1;
            let image_end = (last / tiles.down + 1) * tiles.geometry.height;
            let end = (tiles.pixel_row(last) + 2).min(image_end);
            let length = (end - tiles.pixel_row(rows.start)) * line;
            let (part, more) = std::mem::take(&mut rest).split_at_mut(length);
            rest = more;
            (rows, part)
        })
    }

    /// The first row of pixels, counted through all images, of a row of tiles.
    pub(super) fn pixel_row(&self, row: usize) -> usize {
        row / self.down * self.geometry.height + 2 * (row % self.down)
    }

    /// Values of a row of pixels, with room for what lies outside the image.
    pub(super) fn line(&self, channels: usize) -> usize {
        (2 * self.across + 2) * channels
    }

    /// Writes Bᵀ d B for `rows`, as `[point, tile, channel]`. `lines` is memory for four lines.
    #[inline(always)]
    pub(super) fn spread_inputs(
        &self,
        images: &[f32],
        rows: &Range<usize>,
        lines: &mut [f32],
        out: &mut [f32],
    ) {
        let ConvGeometry { width, height, inputs, .. } = self.geometry;
        let line = self.line(inputs);
        let count = rows.len() * self.across;
        lines.fill(0.0);
        for (index, row) in rows.clone().enumerate() {
            let top = 2 * (row % self.down);
            let image =
                &images[row / self.down * self.geometry.in_len()..][..self.geometry.in_len()];
            let pixels = |at: usize| {
                // Row 0 is the padding above the image.
                let inside = (1..=height).contains(&(top + at));
                inside.then(|| &image[(top + at - 1) * width * inputs..][..width * inputs])
            };
            let d = [pixels(0), pixels(1), pixels(2), pixels(3)];
            for (out, (left, sign, right)) in lines.chunks_exact_mut(line).zip(pairs(d)) {
                combine(left, sign, right, &mut out[inputs..(width + 1) * inputs]);
            }
            for tile in 0..self.across {
                let at = index * self.across + tile;
                for (vertical, line) in lines.chunks_exact(line).enumerate() {
                    let pixel = |x: usize| Some(&line[(2 * tile + x) * inputs..][..inputs]);
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

    /// Writes Aᵀ M A, given as `[point, tile, channel]`, to the pixels of `rows`.
    #[inline(always)]
    pub(super) fn gather_outputs(
        &self,
        points: &[f32],
        rows: &Range<usize>,
        sums: &mut [f32],
        out: &mut [f32],
        store: Store,
    ) {
        let ConvGeometry { width, height, outputs, .. } = self.geometry;
        let count = rows.len() * self.across;
        let first = self.pixel_row(rows.start);
        for (index, row) in rows.clone().enumerate() {
            for tile in 0..self.across {
                let at = index * self.across + tile;
                let point = |point: usize| &points[(point * count + at) * outputs..][..outputs];
                // Over the columns of the tile first: `[row of points, column]`.
                for (vertical, sums) in sums.chunks_exact_mut(2 * outputs).enumerate() {
                    let (left, right) = sums.split_at_mut(outputs);
                    let m = [0, 1, 2, 3].map(|horizontal| point(4 * vertical + horizontal));
                    shrink(m, [Some(left), Some(right)], Store::Replace);
                }
                for column in 0..2.min(width - 2 * tile) {
                    let s = [0, 1, 2, 3]
                        .map(|vertical| &sums[(2 * vertical + column) * outputs..][..outputs]);
                    let pixel = (self.pixel_row(row) - first) * width + 2 * tile + column;
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
    #[inline(always)]
    pub(super) fn spread_outputs(
        &self,
        gradient: &[f32],
        rows: &Range<usize>,
        lines: &mut [f32],
        out: &mut [f32],
    ) {
        let ConvGeometry { width, height, outputs, .. } = self.geometry;
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
            for tile in 0..self.across {
                let at = index * self.across + tile;
                for (vertical, line) in lines.chunks_exact(line).enumerate() {
                    let pixel = |x: usize| Some(&line[(2 * tile + x) * outputs..][..outputs]);
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
#[inline(always)]
fn pairs(d: [Line<'_>; 4]) -> [(Line<'_>, f32, Line<'_>); 4] {
    [(d[0], -1.0, d[2]), (d[1], 1.0, d[2]), (d[2], -1.0, d[1]), (d[1], -1.0, d[3])]
}

/// The rows of A: what becomes of two.
#[inline(always)]
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
