//! The numbers of a model file, taken from its bytes one after another.

/// What is left of the numbers of one tensor.
#[derive(Clone, Copy)]
pub(super) struct Tensor<'a> {
    bytes: &'a [u8],
}

impl<'a> Tensor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The same tensor from its `first`-th 64-bit number on.
    pub(super) fn from(&self, first: usize) -> Self {
        Self { bytes: self.bytes.get(8 * first..).unwrap_or_default() }
    }

    /// The next `count` integers; fewer at the end.
    pub(super) fn integers(&mut self, count: usize) -> Vec<i64> {
        self.take::<8, _>(count, i64::from_le_bytes)
    }

    /// The next `count` floats; fewer at the end.
    pub(super) fn floats(&mut self, count: usize) -> Vec<f32> {
        self.take::<4, _>(count, f32::from_le_bytes)
    }

    /// The next `count` 16-bit integers; fewer at the end.
    pub(super) fn shorts(&mut self, count: usize) -> Vec<i16> {
        self.take::<2, _>(count, i16::from_le_bytes)
    }

    /// The next `count` 8-bit integers; fewer at the end.
    pub(super) fn bytes(&mut self, count: usize) -> Vec<i16> {
        self.take::<1, _>(count, |byte| i8::from_le_bytes(byte).into())
    }

    fn take<const SIZE: usize, T>(
        &mut self,
        count: usize,
        convert: impl Fn([u8; SIZE]) -> T,
    ) -> Vec<T> {
        let end = (SIZE * count).min(self.bytes.len());
        let (taken, left) = self.bytes.split_at(end);
        self.bytes = left;
        taken.as_chunks::<SIZE>().0.iter().map(|chunk| convert(*chunk)).collect()
    }
}
