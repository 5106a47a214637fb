//! Locks of this process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock, also where a thread has panicked with it: what it guards is changed in single steps.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
