//! Products with weights that never change, which are packed once.
//!
//! The rows of the other matrix are read where they lie: a row may consist of several runs, as
//! the pixels that a convolution's window sees do. Each number of the result is one sum in the
//! order of the inputs, whatever is computed beside it: blocks and threads change no bit.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use std::array::from_fn;

use ivoro::vectors::{Simd, Wide, widest};

use super::aligned::Aligned;
use super::gemm::Store;
use super::tokens::Meeting;

/// A matrix of weights `[input, output]`, in panels of a few vectors of outputs each, and a bias.
#[derive(Clone, Debug)]
pub(super) struct Panels {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// Numbers in a vector of this machine.
    lanes: usize,
    /// Panel after panel `[input, output within the panel]`; zeros where outputs are missing.
    weights: Aligned,
    /// With zeros where outputs are missing.
    bias: Aligned,
}

/// How many numbers a vector of this machine has.
struct Lanes;

impl Wide for Lanes {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

/// How many numbers a vector of this machine has.
pub(super) fn lanes() -> usize {
    widest(Lanes)
}

/// The panels of so many vectors: the first vector and the number of vectors of each. Two are
/// best; the last has three rather than leaving one alone.
fn panels(vectors: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = (vectors / 2).max(1);
    (0..count).map(move |at| (2 * at, if at + 1 < count { 2 } else { vectors - 2 * at }))
}

impl Panels {
    /// How many weights are kept for a matrix; none if that can't be counted.
    pub(super) fn count(inputs: usize, outputs: usize) -> Option<usize> {
        let lanes = lanes();
        outputs.checked_add(lanes - 1)?.checked_next_multiple_of(lanes)?;
        inputs.checked_mul(outputs.next_multiple_of(lanes))
    }

    /// Packs a matrix of which `weight` gives the number of an input and an output.
    pub(super) fn new(inputs: usize, bias: &[f32], weight: impl Fn(usize, usize) -> f32) -> Self {
        let (lanes, outputs) = (lanes(), bias.len());
        let vectors = outputs.div_ceil(lanes);
        let mut weights = Aligned::zeros(inputs * vectors * lanes);
        let mut rest = weights.at_least(inputs * vectors * lanes);
        for (first, count) in panels(vectors) {
            let (panel, more) = rest.split_at_mut(inputs * count * lanes);
            for (input, row) in panel.chunks_exact_mut(count * lanes).enumerate() {
                let outputs = first * lanes..outputs;
                for (value, output) in row.iter_mut().zip(outputs) {
                    *value = weight(input, output);
                }
            }
            rest = more;
        }
        let mut padded = Aligned::zeros(vectors * lanes);
        padded.at_least(outputs).copy_from_slice(bias);
        Self { inputs, outputs, lanes, weights, bias: padded }
    }

    /// Adds to each output, or multiplies it.
    pub(super) fn meet(&mut self, meeting: Meeting, numbers: &[f32]) {
        let (lanes, outputs, inputs) = (self.lanes, self.outputs, self.inputs);
        meeting.apply(self.bias.at_least(outputs), numbers);
        if meeting == Meeting::Sum {
            return;
        }
        let vectors = outputs.div_ceil(lanes);
        let mut rest = self.weights.at_least(inputs * vectors * lanes);
        for (first, count) in panels(vectors) {
            let (panel, more) = rest.split_at_mut(inputs * count * lanes);
            for row in panel.chunks_exact_mut(count * lanes) {
                meeting.apply(row, &numbers[first * lanes..]);
            }
            rest = more;
        }
    }

    /// Multiplies rows by the matrix.
    pub(super) fn multiply(&self, rows: &Rows, finish: Finish, out: Out) {
        widest(Product { panels: self, rows, finish, out });
    }
}

/// Rows that are multiplied: each begins somewhere, and consists of runs that are equally far from
/// its beginning in all rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub(super) numbers: &'a [f32],
    /// Where each row begins.
    pub(super) starts: &'a [usize],
    /// Where each run begins, from the beginning of the row on.
    pub(super) runs: &'a [usize],
    /// Numbers in a run.
    pub(super) run: usize,
}

/// What becomes of a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finish {
    /// Whether it is added to what is there.
    pub(super) store: Store,
    /// The least and the greatest number that it can then be.
    pub(super) limits: (f32, f32),
}

/// Where results go: rows of some length, from a column on.
#[derive(Debug)]
pub(super) struct Out<'a> {
    pub(super) numbers: &'a mut [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

struct Product<'a> {
    panels: &'a Panels,
    rows: &'a Rows<'a>,
    finish: Finish,
    out: Out<'a>,
}

impl Wide for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let vectors = self.panels.outputs.div_ceil(self.panels.lanes);
        for (first, count) in panels(vectors) {
            // As many sums side by side as there are registers for, besides the factors.
            match (count, S::REGISTER_COUNT >= 32) {
                (1, _) => self.panel::<S, 12, 6, 1>(simd, first),
                (2, true) => self.panel::<S, 12, 6, 2>(simd, first),
                (2, false) => self.panel::<S, 6, 3, 2>(simd, first),
                (_, true) => self.panel::<S, 8, 4, 3>(simd, first),
                (_, false) => self.panel::<S, 4, 2, 3>(simd, first),
            }
        }
    }
}

impl Product<'_> {
    /// All rows with one panel of V vectors: M rows at a time, or HALF where no more are left.
    #[inline(always)]
    fn panel<S: Simd, const M: usize, const HALF: usize, const V: usize>(
        &mut self,
        simd: S,
        first: usize,
    ) {
        let (rows, mut row) = (self.rows.starts.len(), 0);
        while row < rows {
            if rows - row > HALF {
                self.tile::<S, M, V>(simd, row, first);
                row += M;
            } else {
                self.tile::<S, HALF, V>(simd, row, first);
                row += HALF;
            }
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const M: usize, const V: usize>(&mut self, simd: S, row: usize, first: usize) {
        let Rows { numbers, starts, runs, run } = *self.rows;
        // What is beyond the last row is computed as the last row, and left out.
        let starts: [usize; M] = from_fn(|at| starts[(row + at).min(starts.len() - 1)]);
        let inputs = self.panels.inputs;
        let (weights, _) = S::as_simd_f32s(self.panels.weights.numbers());
        let (weights, _) = weights[first * inputs..][..V * inputs].as_chunks::<V>();
        let mut sums = [[simd.splat_f32s(0.0); V]; M];
        for (offset, weights) in runs.iter().zip(weights.chunks_exact(run)) {
            let rows: [&[f32]; M] = from_fn(|at| &numbers[starts[at] + offset..][..run]);
            for (at, factors) in weights.iter().enumerate() {
                for (sums, row) in sums.iter_mut().zip(&rows) {
                    let value = simd.splat_f32s(row[at]);
                    for (sum, factor) in sums.iter_mut().zip(factors) {
                        *sum = simd.mul_add_e_f32s(value, *factor, *sum);
                    }
                }
            }
        }
        let rows = self.rows.starts.len();
        // A loop of any other length would have the sums in memory all along.
        for (at, sums) in sums.into_iter().enumerate() {
            if row + at < rows {
                self.finish::<S, V>(simd, row + at, first, sums);
            }
        }
    }

    /// Writes the sums of a row.
    #[inline(always)]
    fn finish<S: Simd, const V: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        sums: [S::f32s; V],
    ) {
        let (bias, _) = S::as_simd_f32s(self.panels.bias.numbers());
        let out = &mut self.out.numbers[row * self.out.row + self.out.column..];
        let mut out = &mut out[first * S::F32_LANES..self.panels.outputs];
        for (sum, bias) in sums.into_iter().zip(&bias[first..]) {
            let (place, rest) = out.split_at_mut(S::F32_LANES.min(out.len()));
            let mut value = simd.add_f32s(sum, *bias);
            if let ([place], _) = S::as_mut_simd_f32s(place) {
                if self.finish.store == Store::Add {
                    value = simd.add_f32s(value, *place);
                }
                *place = clip(simd, value, self.finish.limits);
            } else {
                if self.finish.store == Store::Add {
                    value = simd.add_f32s(value, simd.partial_load_f32s(place));
                }
                simd.partial_store_f32s(place, clip(simd, value, self.finish.limits));
            }
            out = rest;
        }
    }
}

/// Numbers within limits; a value that is no number stays so.
#[inline(always)]
pub(super) fn clip<S: Simd>(simd: S, value: S::f32s, (least, most): (f32, f32)) -> S::f32s {
    let (least, most) = (simd.splat_f32s(least), simd.splat_f32s(most));
    let value = simd.select_f32s(simd.less_than_f32s(value, least), least, value);
    simd.select_f32s(simd.less_than_f32s(most, value), most, value)
}
