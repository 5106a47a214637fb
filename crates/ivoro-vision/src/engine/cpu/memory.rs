//! Memory that the values of a graph lie in, from one run to the next: to get new memory from the
//! system costs as much as a layer.

use std::sync::{Mutex, PoisonError};

use super::aligned::Aligned;

/// Memory that values lie in, which the next run uses again.
#[derive(Debug, Default)]
pub(crate) struct Memory(pub(super) Vec<Aligned>);

impl Memory {
    /// The place for the images of a run, so many numbers in NHWC order.
    pub(crate) fn images(&mut self, length: usize) -> &mut [f32] {
        if self.0.is_empty() {
            self.0.push(Aligned::default());
        }
        self.0[0].at_least(length)
    }

    pub(super) fn value(&self, slot: usize, length: usize) -> &[f32] {
        &self.0[slot].numbers()[..length]
    }
}

/// Memory of earlier runs, as much as was needed at the same time.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<Vec<Memory>>);

impl Memories {
    /// Lends memory to a run.
    pub(crate) fn lend<T>(&self, run: impl FnOnce(&mut Memory) -> T) -> T {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // a statement of its own, so that others can lend while this one runs
        let free = kept().pop();
        let mut memory = free.unwrap_or_default();
        let result = run(&mut memory);
        kept().push(memory);
        result
    }
}

impl Clone for Memories {
    fn clone(&self) -> Self {
        Self::default()
    }
}
