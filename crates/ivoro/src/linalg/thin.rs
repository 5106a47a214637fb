//! Products of many rows with a few: a GEMM packs its operands anew for each block, which costs as
//! much as the arithmetic when one side has ten rows. Here nothing is packed.

use pulp::Simd;

use crate::vectors::{Wide, widest};

/// Rows of the thin side up to which these are faster than a GEMM.
pub(crate) const THIN: usize = 32;

/// Rows whose products are summed side by side.
const ROWS: usize = 4;

/// `few · rowsᵀ`: one row per row of `few`, one column per row of `rows`, all of length `dim`.
pub(crate) fn thin_products(few: &[f32], rows: &[f32], dim: usize, out: &mut [f32]) {
    widest(Products { few, rows, dim, out });
}

/// Adds `weights · rows`, one row per row of `weights`, to `out`.
pub(crate) fn add_thin_sums(weights: &[f32], rows: &[f32], dim: usize, out: &mut [f32]) {
    widest(Sums { weights, rows, dim, out });
}

struct Products<'a> {
    few: &'a [f32],
    rows: &'a [f32],
    dim: usize,
    out: &'a mut [f32],
}

impl Wide for Products<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn run<S: Simd>(mut self, simd: S) {
        let count = self.rows.len() / self.dim;
        let whole = count - count % ROWS;
        for row in (0..whole).step_by(ROWS) {
            self.rows_from::<S, ROWS>(simd, row, count);
        }
        for row in whole..count {
            self.rows_from::<S, 1>(simd, row, count);
        }
    }
}

impl Products<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn rows_from<S: Simd, const R: usize>(&mut self, simd: S, row: usize, count: usize) {
        let few = self.few.len() / self.dim;
        let mut first = 0;
        while first < few {
            first += match few - first {
                5.. => self.tile::<S, R, 5>(simd, row, first, count),
                2.. => self.tile::<S, R, 2>(simd, row, first, count),
                _ => self.tile::<S, R, 1>(simd, row, first, count),
            };
        }
    }

    /// Products of R rows with K of the few; returns K.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn tile<S: Simd, const R: usize, const K: usize>(
        &mut self,
        simd: S,
        row: usize,
        first: usize,
        count: usize,
    ) -> usize {
        let dim = self.dim;
        let row_of = |at: usize| at * dim..(at + 1) * dim;
        let rows: [_; R] = std::array::from_fn(|at| S::as_simd_f32s(&self.rows[row_of(row + at)]));
        let few: [_; K] = std::array::from_fn(|at| S::as_simd_f32s(&self.few[row_of(first + at)]));
        let vectors = rows[0].0.len();
        let mut sums = [[simd.splat_f32s(0.0); R]; K];
        for at in 0..vectors {
            let values: [S::f32s; R] = std::array::from_fn(|row| rows[row].0[at]);
            for (sums, few) in sums.iter_mut().zip(&few) {
                let factor = few.0[at];
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = simd.mul_add_e_f32s(factor, value, *sum);
                }
            }
        }
        for (class, (sums, few)) in sums.into_iter().zip(&few).enumerate() {
            let out = &mut self.out[(first + class) * count + row..][..R];
            for ((out, sum), row) in out.iter_mut().zip(sums).zip(&rows) {
                let rest: f32 = few.1.iter().zip(row.1).map(|(a, b)| a * b).sum();
                *out = simd.reduce_sum_f32s(sum) + rest;
            }
        }
        K
    }
}

struct Sums<'a> {
    weights: &'a [f32],
    rows: &'a [f32],
    dim: usize,
    out: &'a mut [f32],
}

impl Wide for Sums<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn run<S: Simd>(mut self, simd: S) {
        let few = self.out.len() / self.dim;
        let width = size_of::<S::f32s>() / size_of::<f32>();
        let pairs = self.dim - self.dim % (2 * width);
        let whole = self.dim - self.dim % width;
        for at in (0..pairs).step_by(2 * width) {
            self.columns_from::<S, 2>(simd, at, few);
        }
        for at in (pairs..whole).step_by(width) {
            self.columns_from::<S, 1>(simd, at, few);
        }
        let count = self.rows.len() / self.dim;
        let sums = self.out.chunks_exact_mut(self.dim).zip(self.weights.chunks_exact(count));
        for (sums, weights) in sums {
            for (weight, row) in weights.iter().zip(self.rows.chunks_exact(self.dim)) {
                let rest = sums[whole..].iter_mut().zip(&row[whole..]);
                rest.for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }
}

impl Sums<'_> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn columns_from<S: Simd, const V: usize>(&mut self, simd: S, at: usize, few: usize) {
        let mut first = 0;
        while first < few {
            first += match few - first {
                10.. => self.tile::<S, V, 10>(simd, at, first),
                5.. => self.tile::<S, V, 5>(simd, at, first),
                2.. => self.tile::<S, V, 2>(simd, at, first),
                _ => self.tile::<S, V, 1>(simd, at, first),
            };
        }
    }

    /// V vectors of K sums, over all rows; returns K.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn tile<S: Simd, const V: usize, const K: usize>(
        &mut self,
        simd: S,
        at: usize,
        first: usize,
    ) -> usize {
        let (dim, count) = (self.dim, self.rows.len() / self.dim);
        let columns = at..at + V * (size_of::<S::f32s>() / size_of::<f32>());
        let mut sums = [[simd.splat_f32s(0.0); V]; K];
        let weights: [&[f32]; K] =
            std::array::from_fn(|class| &self.weights[(first + class) * count..][..count]);
        for (row, values) in self.rows.chunks_exact(dim).enumerate() {
            let values = S::as_simd_f32s(&values[columns.clone()]).0;
            let values: [S::f32s; V] = std::array::from_fn(|vector| values[vector]);
            for (sums, weights) in sums.iter_mut().zip(weights) {
                let weight = simd.splat_f32s(weights[row]);
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = simd.mul_add_e_f32s(weight, value, *sum);
                }
            }
        }
        for (class, sums) in sums.into_iter().enumerate() {
            let out = &mut self.out[(first + class) * dim..][columns.clone()];
            let out = S::as_mut_simd_f32s(out).0;
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = simd.add_f32s(*out, sum);
            }
        }
        K
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thin_products_and_sums_are_those_of_plain_loops_for_any_shape() {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        for (few, count, dim) in [(1, 1, 1), (3, 5, 7), (10, 9, 48), (17, 6, 95), (32, 4, 16)] {
            let thin: Vec<f32> = (0..few * dim).map(value).collect();
            let rows: Vec<f32> = (500..500 + count * dim).map(value).collect();
            let weights: Vec<f32> = (900..900 + few * count).map(value).collect();
            let mut products = vec![9.0; few * count];
            thin_products(&thin, &rows, dim, &mut products);
            let mut sums = vec![1.0; few * dim];
            add_thin_sums(&weights, &rows, dim, &mut sums);
            for class in 0..few {
                for row in 0..count {
                    let pairs = (0..dim).map(|at| thin[class * dim + at] * rows[row * dim + at]);
                    let expected: f32 = pairs.sum();
                    assert!((products[class * count + row] - expected).abs() < 1e-4);
                }
                for at in 0..dim {
                    let terms =
                        (0..count).map(|row| weights[class * count + row] * rows[row * dim + at]);
                    let expected = 1.0 + terms.sum::<f32>();
                    assert!((sums[class * dim + at] - expected).abs() < 1e-4);
                }
            }
        }
    }
}
