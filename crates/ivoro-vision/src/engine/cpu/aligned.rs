//! Memory that begins where a line of the cache begins: a vector that crosses a line costs two
//! reads, and vectors of 64 bytes in memory that begins anywhere cross one each time.

use std::cell::Cell;

use bytemuck::{Pod, Zeroable};

/// Numbers in a line of the cache.
const LINE: usize = 16;

/// A line of the cache.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Numbers that begin at a line of the cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Aligned(Vec<Line>);

impl Aligned {
    /// So many zeros.
    pub(super) fn zeros(length: usize) -> Self {
        let mut zeros = Self::default();
        zeros.at_least(length);
        zeros
    }

    /// The first numbers, with anything in them; makes room if there are fewer.
    pub(super) fn at_least(&mut self, length: usize) -> &mut [f32] {
        let lines = length.div_ceil(LINE);
        if self.0.len() < lines {
            self.0.resize(lines, Line::zeroed());
        }
        &mut bytemuck::cast_slice_mut(&mut self.0)[..length]
    }

    /// All numbers, and zeros up to the end of the last line.
    pub(super) fn numbers(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }
}

thread_local! {
    static SCRATCH: Cell<Aligned> = const { Cell::new(Aligned(Vec::new())) };
}

/// Lends `work` memory for `length` values, with anything in it, that the thread keeps for later.
pub(super) fn with_scratch<T>(length: usize, work: impl FnOnce(&mut [f32]) -> T) -> T {
    let mut memory = SCRATCH.take();
    let result = work(memory.at_least(length));
    SCRATCH.set(memory);
    result
}
