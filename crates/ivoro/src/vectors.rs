//! Loops compiled for the widest vectors that the machine has.

pub use pulp::Simd;
use pulp::{Arch, WithSimd};
use rayon::prelude::*;

/// Numbers that one task looks at: 256 KB.
const CHUNK: usize = 1 << 16;

/// Partial sums of a product.
const LANES: usize = 16;

/// Runs work with the widest vectors that the machine has. The work, and what it calls, must be
/// `#[inline(always)]`.
///
/// A closure that is given to [`Arch::dispatch`] directly is called through a shim which the
/// compiler is free not to inline, and then all of it is compiled for the narrowest vectors. That is
/// why Clippy refuses the call everywhere but in `widest`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
pub fn vectorised<R>(work: impl FnMut() -> R) -> R {
    widest(Loops(work))
}

/// Work that names its vectors itself. No closure is such work.
pub trait Wide {
    /// What it gives.
    type Output;

    /// Does it. Must be `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs work with the widest vectors that the machine has.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
#[allow(clippy::disallowed_methods, reason = "the one place, and it is given no closure")]
pub fn widest<W: Wide>(work: W) -> W::Output {
    Arch::new().dispatch(Work(work))
}

/// Asks for the cache line of a value that will be needed soon, into the second-level cache: the first
/// has room for few requests at a time. Where the machine has no such instruction, nothing happens.
#[inline(always)]
#[allow(clippy::inline_always, reason = "one instruction")]
#[allow(unsafe_code, reason = "a hint to the CPU; see SAFETY below")]
pub(crate) fn fetch_ahead(value: &f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is in every x86-64 CPU, and it neither reads nor faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

struct Work<W>(W);

impl<W: Wide> WithSimd for Work<W> {
    type Output = W::Output;

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn with_simd<S: Simd>(self, simd: S) -> W::Output {
        self.0.run(simd)
    }
}

struct Loops<F>(F);

impl<R, F: FnMut() -> R> Wide for Loops<F> {
    type Output = R;

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn run<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// Adds a factor times values.
pub fn add(to: &mut [f32], values: &[f32], factor: f32) {
    vectorised(
        #[inline(always)]
        || to.iter_mut().zip(values).for_each(|(to, value)| *to += factor * value),
    );
}

/// Σ aᵢ·bᵢ in double precision, in partial sums side by side: one alone would wait for every
/// addition.
pub fn dot<T: Copy + Into<f64>>(a: &[f32], b: &[T]) -> f64 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0f64; LANES];
    vectorised(
        #[inline(always)]
        || {
            for (a, b) in a.iter().zip(b) {
                for lane in 0..LANES {
                    sums[lane] += f64::from(a[lane]) * b[lane].into();
                }
            }
        },
    );
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(&a, &b)| f64::from(a) * b.into()).sum();
    sums.iter().sum::<f64>() + rest
}

/// Position of the least value, the first on a tie.
pub fn least(values: &[f32]) -> usize {
    let mut best = 0;
    for (at, value) in values.iter().enumerate() {
        if *value < values[best] {
            best = at;
        }
    }
    best
}

/// The largest magnitude. Magnitudes are ordered as their bits are, and those the compiler may
/// compare side by side.
pub(crate) fn largest_magnitude(numbers: &[f32]) -> f32 {
    let largest = numbers.par_chunks(CHUNK).map(largest_bits).max();
    f32::from_bits(largest.unwrap_or(0))
}

/// The place of the first number that lies outside ±`most`, or is none at all: the bits of NaN
/// without its sign are more than those of infinity.
pub(crate) fn too_large(numbers: &[f32], most: f32) -> Option<usize> {
    let most = most.to_bits();
    let chunk = numbers.par_chunks(CHUNK).position_first(|part| largest_bits(part) > most)?;
    let first = chunk * CHUNK;
    numbers[first..].iter().position(|value| value.abs().to_bits() > most).map(|at| first + at)
}

fn largest_bits(numbers: &[f32]) -> u32 {
    vectorised(
        #[inline(always)]
        || numbers.iter().fold(0, |largest, value| value.abs().to_bits().max(largest)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_number_is_found_wherever_it_is() {
        let mut numbers = vec![1.5f32; 3 * CHUNK + 17];
        assert_eq!(too_large(&numbers, 1.5), None);
        for at in [numbers.len() - 1, 2 * CHUNK, CHUNK - 1, 0] {
            numbers[at] = if at % 2 == 0 { f32::NAN } else { f32::NEG_INFINITY };
            assert_eq!(too_large(&numbers, 1.5), Some(at));
        }
        numbers[0] = -1.500_001;
        assert_eq!(too_large(&numbers, 1.5), Some(0));
        assert_eq!(too_large(&[], 1.5), None);
    }

    #[test]
    fn the_largest_magnitude_has_either_sign() {
        let mut numbers: Vec<f32> = (0..=u16::MAX).map(|at| f32::from(at) / 7.0).collect();
        assert_eq!(largest_magnitude(&numbers), f32::from(u16::MAX) / 7.0);
        numbers[60_001] = -1e30;
        assert_eq!(largest_magnitude(&numbers), 1e30);
        assert_eq!(largest_magnitude(&[]), 0.0);
        assert_eq!(largest_magnitude(&[-0.0, 1e-45]), 1e-45);
    }
}
