//! Products of rows with columns that are kept, each summed in one order: no bit of a product depends
//! on which other rows there are, on how many, or on the number of threads.
//!
//! A GEMM chooses its order of summation by the shapes, so that one query alone and the same query
//! among others get different last bits. Here every product is a chain of fused multiplications and
//! additions over 512 numbers, and the chains are added one after another. That is also what the GEMM
//! crate does with large blocks. Columns are packed once and kept, so that a single row costs no more
//! than reading them.

use std::ops::Range;

use pulp::Simd;
use rayon::prelude::*;

use crate::interrupt;
use crate::matrix::Matrix;
use crate::vectors::{Wide, widest};

/// Columns side by side in memory.
const WIDTH: usize = 64;
/// Numbers of one chain.
const DEPTH: usize = 512;
/// Rows multiplied at once: their sums fill the registers.
const ROWS: usize = 6;
/// Rows of one task.
const TASK: usize = 96;
/// Products from which on a single group of rows is shared out between threads.
const SHARED: usize = 1 << 19;

/// Columns, packed: 64 of them side by side, number after number, and zeros where there are fewer.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    count: usize,
    dim: usize,
    panels: Vec<f32>,
}

impl Columns {
    /// Packs columns, each of `dim` numbers one after another.
    pub fn new(columns: &[f32], dim: usize) -> Self {
        let count = columns.len() / dim.max(1);
        let mut panels = vec![0f32; count.div_ceil(WIDTH) * WIDTH * dim];
        let size = (WIDTH * dim).max(1);
        panels.par_chunks_mut(size).zip(columns.par_chunks(size)).for_each(|(panel, columns)| {
            for (at, column) in columns.chunks_exact(dim).enumerate() {
                for (place, &value) in panel.iter_mut().skip(at).step_by(WIDTH).zip(column) {
                    *place = value;
                }
            }
        });
        Self { count, dim, panels }
    }

    /// Number of columns.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the numbers kept.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.panels)
    }

    /// Each row times each column: one row per row, one column per column.
    ///
    /// # Panics
    /// If the rows are not as long as the columns.
    pub fn products(&self, rows: &Matrix) -> Matrix {
        assert_eq!(rows.cols(), self.dim, "shapes of a product");
        let mut out = Matrix::zeros(rows.rows(), self.count);
        if self.count == 0 || self.dim == 0 {
            return out;
        }
        if rows.rows() <= TASK && rows.rows() * self.panels.len() >= SHARED {
            self.share_out(rows.as_slice(), out.as_mut_slice());
            return out;
        }
        let chunks = rows.as_slice().par_chunks(TASK * self.dim);
        out.as_mut_slice()
            .par_chunks_mut(TASK * self.count)
            .zip(chunks)
            .for_each(|(out, rows)| self.fill(rows, 0..self.count, out));
        out
    }

    /// The same for rows one after another, on this thread, and for some of the columns: from a
    /// multiple of 512 on.
    pub(crate) fn fill(&self, rows: &[f32], columns: Range<usize>, out: &mut [f32]) {
        let (groups, count) = (packed(rows, self.dim), columns.len());
        let mut block = [0f32; ROWS * WIDTH];
        let panels = columns.start / WIDTH..columns.end.div_ceil(WIDTH);
        let panels = &self.panels[panels.start * WIDTH * self.dim..panels.end * WIDTH * self.dim];
        for (at, panel) in panels.chunks_exact(WIDTH * self.dim).enumerate() {
            interrupt::check();
            let (first, width) = (at * WIDTH, WIDTH.min(count - at * WIDTH));
            let out_groups = out.chunks_mut(ROWS * count);
            for (group, out) in groups.chunks_exact(ROWS * self.dim).zip(out_groups) {
                let rows = out.len() / count;
                multiply(panel, group, rows, &mut block);
                for (out, block) in out.chunks_exact_mut(count).zip(block.chunks(WIDTH)) {
                    out[first..first + width].copy_from_slice(&block[..width]);
                }
            }
        }
    }

    /// The same for few rows, panels shared out between threads.
    fn share_out(&self, rows: &[f32], out: &mut [f32]) {
        let (groups, count) = (packed(rows, self.dim), rows.len() / self.dim);
        let panels = self.panels.par_chunks_exact(WIDTH * self.dim);
        let blocks: Vec<Vec<f32>> = panels
            .map(|panel| {
                let mut blocks = vec![0f32; count.next_multiple_of(ROWS) * WIDTH];
                let groups = groups.chunks_exact(ROWS * self.dim);
                for (at, (group, block)) in
                    groups.zip(blocks.chunks_exact_mut(ROWS * WIDTH)).enumerate()
                {
                    multiply(panel, group, ROWS.min(count - at * ROWS), block);
                }
                blocks
            })
            .collect();
        for (at, blocks) in blocks.iter().enumerate() {
            let (first, width) = (at * WIDTH, WIDTH.min(self.count - at * WIDTH));
            for (out, block) in out.chunks_exact_mut(self.count).zip(blocks.chunks(WIDTH)) {
                out[first..first + width].copy_from_slice(&block[..width]);
            }
        }
    }
}

/// One product, with the bits that it has among others.
pub(crate) fn chain(row: &[f32], column: &[f32]) -> f32 {
    widest(Chain { row, column })
}

struct Chain<'a> {
    row: &'a [f32],
    column: &'a [f32],
}

impl Wide for Chain<'_> {
    type Output = f32;

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn run<S: Simd>(self, _: S) -> f32 {
        let chains = self.row.chunks(DEPTH).zip(self.column.chunks(DEPTH));
        let sums = chains.map(|(row, column)| {
            row.iter().zip(column).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum))
        });
        sums.reduce(|total, sum| total + sum).unwrap_or(0.0)
    }
}

/// Rows in groups of [`ROWS`], number after number; zeros where the last group has fewer.
fn packed(rows: &[f32], dim: usize) -> Vec<f32> {
    let count = rows.len() / dim;
    let mut packed = vec![0f32; count.next_multiple_of(ROWS) * dim];
    for (group, rows) in packed.chunks_exact_mut(ROWS * dim).zip(rows.chunks(ROWS * dim)) {
        for (at, row) in rows.chunks_exact(dim).enumerate() {
            for (place, &value) in group.iter_mut().skip(at).step_by(ROWS).zip(row) {
                *place = value;
            }
        }
    }
    packed
}

/// Products of a group of rows with a panel: row after row, [`WIDTH`] of each.
fn multiply(panel: &[f32], group: &[f32], rows: usize, out: &mut [f32]) {
    widest(Products { panel, group, rows, out });
}

struct Products<'a> {
    panel: &'a [f32],
    group: &'a [f32],
    rows: usize,
    out: &'a mut [f32],
}

impl Wide for Products<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn run<S: Simd>(self, simd: S) {
        // a machine with wide vectors has registers for twice as many of them
        if size_of::<S::f32s>() == size_of::<[f32; 16]>() {
            self.columns::<S, 4>(simd);
        } else {
            self.columns::<S, 2>(simd);
        }
    }
}

impl Products<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn columns<S: Simd, const V: usize>(self, simd: S) {
        let width = V * (size_of::<S::f32s>() / size_of::<f32>());
        for first in (0..WIDTH).step_by(width) {
            if self.rows > 3 {
                sums::<S, ROWS, V>(simd, self.panel, self.group, first, self.out);
            } else if self.rows > 1 {
                sums::<S, 3, V>(simd, self.panel, self.group, first, self.out);
            } else {
                sums::<S, 1, V>(simd, self.panel, self.group, first, self.out);
            }
        }
    }
}

/// R rows with V vectors of columns from `first` on.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn sums<S: Simd, const R: usize, const V: usize>(
    simd: S,
    panel: &[f32],
    group: &[f32],
    first: usize,
    out: &mut [f32],
) {
    let lanes = size_of::<S::f32s>() / size_of::<f32>();
    let mut total = [[simd.splat_f32s(0.0); V]; R];
    let chains = panel.chunks(DEPTH * WIDTH).zip(group.chunks(DEPTH * ROWS));
    for (chain, (panel, group)) in chains.enumerate() {
        let mut sums = [[simd.splat_f32s(0.0); V]; R];
        for (columns, rows) in panel.chunks_exact(WIDTH).zip(group.as_chunks::<ROWS>().0) {
            let columns = S::as_simd_f32s(&columns[first..first + V * lanes]).0;
            let columns: [S::f32s; V] = std::array::from_fn(|at| columns[at]);
            for (sums, &value) in sums.iter_mut().zip(rows) {
                let value = simd.splat_f32s(value);
                for (sum, columns) in sums.iter_mut().zip(columns) {
                    *sum = simd.mul_add_e_f32s(value, columns, *sum);
                }
            }
        }
        for (total, sums) in total.iter_mut().zip(sums) {
            for (total, sum) in total.iter_mut().zip(sums) {
                *total = if chain == 0 { sum } else { simd.add_f32s(*total, sum) };
            }
        }
    }
    for (out, total) in out.chunks_exact_mut(WIDTH).zip(total) {
        let out = S::as_mut_simd_f32s(&mut out[first..first + V * lanes]).0;
        out.iter_mut().zip(total).for_each(|(out, total)| *out = total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::times_transposed;
    use crate::random::unit;

    fn some(rows: usize, cols: usize, seed: u64) -> Matrix {
        let value = |at: usize| (unit(seed, at as u64) - 0.3) as f32;
        Matrix::new(rows, cols, (0..rows * cols).map(value).collect()).unwrap()
    }

    fn has_fma() -> bool {
        #[cfg(target_arch = "x86_64")]
        return std::arch::is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    #[test]
    fn a_row_alone_and_among_others_has_the_same_products() {
        for (count, dim) in [(1, 1), (3, 700), (63, 5), (64, 64), (65, 512), (200, 1300), (1, 600)]
        {
            let columns = Columns::new(some(count, dim, 1).as_slice(), dim);
            let rows = some(230, dim, 2);
            let whole = columns.products(&rows);
            for take in [1, 2, 3, 4, 5, 6, 7, 95, 97, 229] {
                let chosen: Vec<usize> = (0..take).map(|at| (at * 7 + 3) % 230).collect();
                let part = columns.products(&rows.select(&chosen));
                assert_eq!(part, whole.select(&chosen), "{count} {dim} {take}");
            }
            for (row, col) in [(0, 0), (229, count - 1), (77, count / 2)] {
                if has_fma() {
                    let alone = chain(rows.row(row), some(count, dim, 1).row(col));
                    assert_eq!(alone, whole.row(row)[col]);
                }
                let pairs = rows.row(row).iter().zip(some(count, dim, 1).row(col).to_vec());
                let exact: f64 = pairs.map(|(&a, b)| f64::from(a) * f64::from(b)).sum();
                assert!((f64::from(whole.row(row)[col]) - exact).abs() < 1e-5 * dim as f64);
            }
        }
    }

    #[test]
    fn thread_count_changes_nothing() {
        let columns = Columns::new(some(300, 700, 1).as_slice(), 700);
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for rows in [1, 50, 300] {
            let rows = some(rows, 700, 2);
            let work = || columns.products(&rows);
            assert_eq!(pool(1).install(work), pool(3).install(work));
        }
    }

    /// Results that were measured with the GEMM crate's large blocks stay what they are.
    #[test]
    fn large_blocks_have_the_bits_of_the_gemm_crate() {
        if !has_fma() {
            return;
        }
        for (count, dim) in [(10, 64), (55, 512), (100, 256), (100, 768), (100, 1280), (100, 3072)]
        {
            let (rows, columns) = (some(256, dim, 3), some(count, dim, 4));
            let found = Columns::new(columns.as_slice(), dim).products(&rows);
            assert_eq!(found, times_transposed(&rows, &columns), "{count} {dim}");
        }
    }
}
