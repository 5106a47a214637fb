use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use fs_err::File;

use crate::error::Result;

/// Where the bytes of a model are.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    File(&'a File),
}

/// The numbers of one tensor, taken one after another.
#[derive(Clone)]
pub(super) struct Tensor<'a> {
    source: Source<'a>,
    /// What is left of it.
    place: Range<usize>,
}

impl<'a> Tensor<'a> {
    /// The bytes of `place`, which lie inside the source.
    pub(super) fn new(source: Source<'a>, place: Range<usize>) -> Self {
        Self { source, place }
    }

    /// The same tensor from its `first`-th 64-bit number on.
    pub(super) fn from(&self, first: usize) -> Self {
        Self { source: self.source, place: self.place.start + 8 * first..self.place.end }
    }

    /// The next `count` integers; fewer at the end.
    pub(super) fn integers(&mut self, count: usize) -> Result<Vec<i64>> {
        self.take::<8, _>(count, i64::from_le_bytes)
    }

    /// The next `count` floats; fewer at the end.
    pub(super) fn floats(&mut self, count: usize) -> Result<Vec<f32>> {
        self.take::<4, _>(count, f32::from_le_bytes)
    }

    fn take<const SIZE: usize, T>(
        &mut self,
        count: usize,
        convert: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>> {
        let end = (self.place.start + SIZE * count).min(self.place.end);
        let place = self.place.start..end;
        self.place.start = end;
        let numbers = |bytes: &[u8]| -> Vec<T> {
            bytes.as_chunks::<SIZE>().0.iter().map(|chunk| convert(*chunk)).collect()
        };
        match self.source {
            Source::Bytes(bytes) => Ok(numbers(&bytes[place])),
            Source::File(mut file) => {
                let mut bytes = vec![0; place.len()];
                file.seek(SeekFrom::Start(place.start as u64))?;
                file.read_exact(&mut bytes)?;
                Ok(numbers(&bytes))
            }
        }
    }
}
