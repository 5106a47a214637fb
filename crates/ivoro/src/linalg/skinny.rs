//! Products with few columns. A general GEMM copies the large factor before it multiplies; with a
//! handful of classes that copy costs more than the product.

use pulp::Arch;

/// Classes up to which these loops beat the GEMM.
pub(crate) const FEW: usize = 24;
/// Partial sums side by side: enough for several vectors of the widest instruction set.
const LANES: usize = 64;

/// `out[i][k] = rows[i] · weights[k]`, all row-major.
pub(crate) fn dots(rows: &[f32], weights: &[f32], dim: usize, out: &mut [f32]) {
    let classes = weights.len() / dim;
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (row, out) in rows.chunks_exact(dim).zip(out.chunks_exact_mut(classes)) {
                for (weight, out) in weights.chunks_exact(dim).zip(out) {
                    *out = dot(row, weight);
                }
            }
        },
    );
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left.iter().zip(right) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    // halves are added to each other, as vectors, until little is left
    let (low, high) = sums.split_at(LANES / 2);
    let folded: [f32; LANES / 2] = std::array::from_fn(|lane| low[lane] + high[lane]);
    let (low, high) = folded.split_at(LANES / 4);
    let folded: [f32; LANES / 4] = std::array::from_fn(|lane| low[lane] + high[lane]);
    folded.iter().sum::<f32>() + rest
}

/// `gradient[k] += Σ_i residues[i][k] · rows[i]`, all row-major.
pub(crate) fn accumulate(rows: &[f32], residues: &[f32], dim: usize, gradient: &mut [f32]) {
    let classes = gradient.len() / dim;
    let four = rows.len() / (4 * dim) * 4;
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for first in (0..four).step_by(4) {
                let row = |at: usize| &rows[(first + at) * dim..(first + at + 1) * dim];
                for (class, gradient) in gradient.chunks_exact_mut(dim).enumerate() {
                    let factor = |at: usize| residues[(first + at) * classes + class];
                    add_four(gradient, [row(0), row(1), row(2), row(3)], [0, 1, 2, 3].map(factor));
                }
            }
            let rest = rows[four * dim..].chunks_exact(dim);
            for (row, residues) in rest.zip(residues[four * classes..].chunks_exact(classes)) {
                for (gradient, factor) in gradient.chunks_exact_mut(dim).zip(residues) {
                    gradient.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
                }
            }
        },
    );
}

/// Adds four multiples of rows at once: the sum is loaded and stored once for all of them.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_four(sum: &mut [f32], rows: [&[f32]; 4], factors: [f32; 4]) {
    let [a, b, c, d] = rows;
    for ((((sum, a), b), c), d) in sum.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *sum += factors[0] * a + factors[1] * b + (factors[2] * c + factors[3] * d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_plain_sums_for_odd_sizes() {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
        for (count, dim, classes) in [(1, 1, 1), (4, 16, 3), (7, 37, 5), (9, 64, 2)] {
            let rows: Vec<f32> = (0..count * dim).map(value).collect();
            let weights: Vec<f32> = (100..100 + classes * dim).map(value).collect();
            let mut out = vec![0f32; count * classes];
            dots(&rows, &weights, dim, &mut out);
            let mut gradient = vec![0.5f32; classes * dim];
            accumulate(&rows, &out, dim, &mut gradient);
            for k in 0..classes {
                for i in 0..count {
                    let plain: f32 =
                        (0..dim).map(|j| rows[i * dim + j] * weights[k * dim + j]).sum();
                    assert!((out[i * classes + k] - plain).abs() < 1e-4);
                }
                for j in 0..dim {
                    let plain: f32 =
                        (0..count).map(|i| out[i * classes + k] * rows[i * dim + j]).sum();
                    assert!((gradient[k * dim + j] - plain - 0.5).abs() < 1e-3);
                }
            }
        }
    }
}
