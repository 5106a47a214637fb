//! A request to stop everything that the process computes.
//!
//! Whoever has been asked to stop (by Ctrl-C, say) calls [`request`]; every long computation of this crate
//! then ends within milliseconds by unwinding, on all threads, and [`catch`] tells that from other
//! panics. Heads and models are changed at the end or on a copy, so that an unwound call leaves them as
//! they were. Nothing is printed, and nothing is checked more often than once a block of work.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// A computation was stopped on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// Asks all computations of this process to stop, until [`clear`] takes it back.
///
/// ```
/// use ivoro::interrupt;
/// interrupt::request();
/// let stopped = interrupt::catch(interrupt::check);
/// interrupt::clear();
/// assert_eq!(stopped, Err(interrupt::Interrupted));
/// assert_eq!(interrupt::catch(|| 7), Ok(7));
/// ```
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Takes the request back.
pub fn clear() {
    REQUESTED.store(false, Ordering::SeqCst);
}

/// Ends the computation, if that was asked for. Long loops of other crates call it once a block.
pub fn check() {
    if REQUESTED.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Interrupted));
    }
}

/// Does the work, or says that it was stopped. Other panics go on.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Interrupted> {
    catch_unwind(AssertUnwindSafe(work)).or_else(|panic| match panic.downcast::<Interrupted>() {
        Ok(interrupted) => Err(*interrupted),
        Err(panic) => resume_unwind(panic),
    })
}
