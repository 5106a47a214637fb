//! Loops compiled for the widest vectors that the machine has.

use pulp::{Arch, Simd, WithSimd};

/// Runs work with the widest vectors that the machine has. The work, and what it calls, must be
/// `#[inline(always)]`.
///
/// A closure that is given to [`Arch::dispatch`] directly is called through a shim which the
/// compiler is free not to inline, and then all of it is compiled for the narrowest vectors.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
pub(crate) fn vectorised<R>(work: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Work(work))
}

struct Work<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Work<F> {
    type Output = R;

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}
