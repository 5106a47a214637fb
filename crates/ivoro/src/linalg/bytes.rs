//! Products of bytes, on machines that have an instruction for them (VNNI): it multiplies and adds
//! four in every lane of a vector, four times as many as there are 32-bit numbers.

use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
#[path = "bytes_avx512.rs"]
mod machine;

/// Columns of one vector, each with four bytes.
const LANES: usize = 16;
/// Vectors of one block of columns: with [`ROWS`] rows their sums fill the registers.
const VECTORS: usize = 4;
/// Columns of one block.
pub(crate) const COLUMNS: usize = LANES * VECTORS;
/// Rows that are multiplied at once.
pub(crate) const ROWS: usize = 6;
/// Bytes that are added up in one step: rows are filled up to a multiple of them.
const STEP: usize = 4;
/// The largest value of a byte with a sign.
const MOST: f32 = 127.0;

/// The sums of some rows and a block of columns.
pub(crate) type Sums = [[i32; COLUMNS]; ROWS];

/// A machine that can do it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine(());

/// A machine that can do it: there is none of this kind.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Machine {}

/// A vector less a middle, as bytes of one scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounded {
    /// What a byte is multiplied by.
    pub(crate) scale: f32,
    /// The square of the vector's length.
    pub(crate) square: f32,
    /// The square of what the bytes leave out.
    pub(crate) lost: f32,
    /// The sum of the bytes.
    pub(crate) sum: i32,
}

/// What turns sums of products into scores: `(sum − shift) · factor · scale + offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scores<'a> {
    pub(crate) shift: i32,
    pub(crate) factor: f32,
    pub(crate) scales: &'a [f32; COLUMNS],
    pub(crate) offsets: &'a [f32; COLUMNS],
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the instructions are not there on every machine")]
#[allow(clippy::unused_self, reason = "that there is one says that they are")]
impl Machine {
    /// This machine, if it has the instructions.
    pub(crate) fn find() -> Option<Self> {
        let there = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni");
        there.then_some(Self(()))
    }

    /// Rounds a vector less a middle to bytes.
    pub(crate) fn round(self, values: &[f32], middle: &[f32], bytes: &mut [i8]) -> Rounded {
        // SAFETY: there is a `Machine` only where the instructions are.
        unsafe { machine::round(values, middle, bytes) }
    }

    /// The products of [`ROWS`] rows with the columns of a block.
    ///
    /// # Panics
    /// If the rows are not as long as the columns.
    pub(crate) fn products(self, columns: &Columns, block: usize, rows: &[i8], sums: &mut Sums) {
        assert_eq!(rows.len(), ROWS * columns.row_len(), "rows of bytes");
        let length = VECTORS * columns.steps;
        let vectors = &columns.vectors[block * length..(block + 1) * length];
        // SAFETY: there is a `Machine` only where the instructions are.
        unsafe { machine::multiply(vectors, bytemuck::cast_slice(rows), columns.steps, sums) }
    }

    /// The scores of a row, which are off by `bound` at most. The limit comes down to the least of
    /// them and the bound; those that may be below it have their bit set.
    pub(crate) fn scores(
        self,
        sums: &[i32; COLUMNS],
        by: Scores<'_>,
        (limit, bound): (f32, f32),
        scores: &mut [f32; COLUMNS],
    ) -> (f32, u64) {
        // SAFETY: there is a `Machine` only where the instructions are.
        unsafe { machine::score(sums, by, (limit, bound), scores) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Machine {
    pub(crate) fn find() -> Option<Self> {
        None
    }

    pub(crate) fn round(self, _: &[f32], _: &[f32], _: &mut [i8]) -> Rounded {
        match self {}
    }

    pub(crate) fn products(self, _: &Columns, _: usize, _: &[i8], _: &mut Sums) {
        match self {}
    }

    pub(crate) fn scores(
        self,
        _: &[i32; COLUMNS],
        _: Scores<'_>,
        _: (f32, f32),
        _: &mut [f32; COLUMNS],
    ) -> (f32, u64) {
        match self {}
    }
}

/// Columns of unsigned bytes, block after block, in the order in which they are multiplied.
pub(crate) struct Columns {
    /// Steps in each column.
    steps: usize,
    /// Of each block, vector after vector, the steps of its lanes.
    vectors: Vec<[u8; LANES * STEP]>,
}

impl Columns {
    /// Room for columns of so many bytes; all of them are `blank`.
    pub(crate) fn blank(columns: usize, bytes: usize, blank: u8) -> Self {
        let steps = bytes.div_ceil(STEP);
        let blocks = columns.div_ceil(COLUMNS);
        Self { steps, vectors: vec![[blank; LANES * STEP]; blocks * VECTORS * steps] }
    }

    /// The blocks of columns, each to be filled by itself.
    pub(crate) fn blocks_mut(&mut self) -> impl IndexedParallelIterator<Item = BlockMut<'_>> {
        let steps = self.steps;
        let blocks = self.vectors.par_chunks_mut(VECTORS * steps.max(1));
        blocks.map(move |vectors| BlockMut { steps, vectors })
    }

    /// Bytes of a row, filled up.
    pub(crate) fn row_len(&self) -> usize {
        self.steps * STEP
    }
}

/// A block of columns.
pub(crate) struct BlockMut<'a> {
    steps: usize,
    vectors: &'a mut [[u8; LANES * STEP]],
}

impl BlockMut<'_> {
    /// Sets the bytes of one of its columns.
    pub(crate) fn set(&mut self, column: usize, bytes: impl Iterator<Item = u8>) {
        let (vector, lane) = (column / LANES, column % LANES);
        let vectors = &mut self.vectors[vector * self.steps..(vector + 1) * self.steps];
        for (at, byte) in bytes.enumerate() {
            vectors[at / STEP][lane * STEP + at % STEP] = byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_exact_at_the_ends_of_the_range() {
        let Some(machine) = Machine::find() else { return };
        let (columns, bytes) = (COLUMNS + 5, 9);
        let column = |column: usize| -> Vec<u8> {
            let byte = |at| if column == 1 { 255 } else { (column * 37 + at * 11) as u8 };
            (0..bytes).map(byte).collect()
        };
        let row = |row: usize| -> Vec<i8> {
            let byte = |at| if row == 2 { -128 } else { (row * 53 + at * 29) as i8 };
            (0..bytes).map(byte).collect()
        };
        let mut packed = Columns::blank(columns, bytes, 128);
        packed.blocks_mut().enumerate().for_each(|(block, mut filled)| {
            for at in (0..COLUMNS).filter(|at| block * COLUMNS + at < columns) {
                filled.set(at, column(block * COLUMNS + at).into_iter());
            }
        });
        let mut rows = vec![0i8; ROWS * packed.row_len()];
        for (at, line) in rows.chunks_exact_mut(packed.row_len()).enumerate() {
            line[..bytes].copy_from_slice(&row(at));
        }
        let mut sums: Sums = [[0; COLUMNS]; ROWS];
        for block in 0..2 {
            machine.products(&packed, block, &rows, &mut sums);
            for (at, sums) in sums.iter().enumerate() {
                for (lane, &sum) in sums.iter().enumerate() {
                    let place = block * COLUMNS + lane;
                    let other = if place < columns { column(place) } else { vec![128; bytes] };
                    let pairs = row(at).into_iter().zip(other);
                    let expected: i32 = pairs.map(|(a, b)| i32::from(a) * i32::from(b)).sum();
                    assert_eq!(sum, expected, "row {at}, column {place}");
                }
            }
        }
    }

    #[test]
    fn rounding_says_what_it_leaves_out() {
        let Some(machine) = Machine::find() else { return };
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 100.0 - 5.0;
        for length in [1, 16, 37] {
            let values: Vec<f32> = (0..length).map(value).collect();
            let middle: Vec<f32> = (100..100 + length).map(value).collect();
            let mut bytes = vec![0i8; length];
            let Rounded { scale, square, lost, sum } = machine.round(&values, &middle, &mut bytes);
            let apart = |at: usize| f64::from(values[at]) - f64::from(middle[at]);
            let left = |at: usize| apart(at) - f64::from(bytes[at]) * f64::from(scale);
            let squares =
                |of: &dyn Fn(usize) -> f64| -> f64 { (0..length).map(|at| of(at).powi(2)).sum() };
            assert!((squares(&apart) - f64::from(square)).abs() < 1e-4 * squares(&apart));
            assert!((squares(&left) - f64::from(lost)).abs() < 1e-6 * squares(&apart));
            assert!((0..length).all(|at| left(at).abs() < 0.51 * f64::from(scale)), "{length}");
            assert_eq!(sum, bytes.iter().copied().map(i32::from).sum::<i32>());
            assert_eq!(bytes.iter().map(|byte| byte.unsigned_abs()).max(), Some(127));
        }
    }
}
