//! Sums per class of a block, about as fast as its bytes are read.
//!
//! A value rounded to the grid is the lower bits of a sum: z + 1.5 · 2⁵² · unit has its last bit
//! at the unit, so the processor's own rounding does the work, and the bits of two such sums differ
//! by the whole number of units between them. The bits are added as integers, and the constant's
//! share is taken off at the end. Rows are taken in the order of their classes, a few thousand at a
//! time, so that the sums in hand stay in the first-level cache.

use rayon::prelude::*;

use super::grid::Grid;
use super::sums::Sums;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::vectors::{fetch_ahead, vectorised};

/// Rows put into the order of their classes at a time: few, so that they lie close together, but
/// some of each class.
const BLOCK: std::ops::RangeInclusive<usize> = 1024..=16_384;
const BLOCK_PER_CLASS: usize = 32;
/// Most rows of one task: 2⁴⁰ units each, an `i64` holds their sum.
const TASK: usize = 1 << 22;
/// Columns summed at a time: 2⁴² units each, an `i64` holds the sum of their squares.
const COLUMNS: usize = 1 << 18;
/// Rows of a class added at a time: their sum is read and written once.
const TOGETHER: usize = 4;
/// Columns between two looks ahead: the rows of a class do not lie one after the other, so the
/// processor can't know which come next.
const STRIDE: usize = 64;
/// Values in a cache line.
const LINE: usize = 16;

/// Sums per class of one block: row `i` belongs to class `labels[i]` of `classes`.
pub fn sums_by_class(
    block: &Matrix,
    labels: &[u32],
    classes: usize,
    grid: Grid,
    index: usize,
) -> Result<Vec<Sums>> {
    let dim = block.cols();
    if dim == 0 {
        return Ok(vec![Sums::zeros(0); classes]);
    }
    // what a task or a block does once for every class must not outweigh its rows
    let least = classes.clamp(256, TASK);
    let rows = block.rows().div_ceil(4 * rayon::current_num_threads().max(1)).clamp(least, TASK);
    let sorted = (BLOCK_PER_CLASS * classes).clamp(*BLOCK.start(), *BLOCK.end()).max(classes);
    let partial = block.as_slice().par_chunks(rows * dim).zip(labels.par_chunks(rows));
    let partial = partial.map(|(chunk, labels)| {
        let mut tally = Tally::new(classes, dim, grid);
        for (rows, labels) in chunk.chunks(sorted * dim).zip(labels.chunks(sorted)) {
            tally.add(rows, labels).map_err(|value| Error::OutOfRange {
                block: index,
                value,
                limit: grid.limit(),
            })?;
        }
        Ok::<_, Error>(tally.finish())
    });
    let sums = partial.try_reduce_with(|mut left, right| {
        for (left, right) in left.iter_mut().zip(right) {
            if left.sums.is_empty() {
                *left = right;
            } else if !right.sums.is_empty() {
                let overflow =
                    || Error::CountOverflow { class: "?".to_owned(), count: labels.len() as u64 };
                left.combine(&right, 1).ok_or_else(overflow)?;
            }
        }
        Ok(left)
    });
    let empty = || Ok(vec![Sums::zeros(0); classes]);
    let mut sums: Vec<Sums> = sums.unwrap_or_else(empty)?;
    sums.iter_mut().for_each(|sums| sums.sums.resize(dim, 0));
    Ok(sums)
}

/// Running sums of one task.
struct Tally {
    limit: f32,
    rounding: Rounding,
    dim: usize,
    counts: Vec<i64>,
    /// Of a class not met yet: empty, since of very many classes a task meets a few.
    sums: Vec<Sums>,
    /// Rows of the block in hand by class, and where each class ends.
    order: Vec<u32>,
    ends: Vec<u32>,
}

/// What rounds to the grid: 1.5 · 2⁵² units of sums, and of squares.
#[derive(Clone, Copy)]
struct Rounding {
    fine: f64,
    coarse: f64,
}

impl Tally {
    fn new(classes: usize, dim: usize, grid: Grid) -> Self {
        let magic = 1.5 * 52f64.exp2();
        Self {
            limit: (grid.limit() as f32).min(f32::MAX),
            rounding: Rounding {
                fine: magic * grid.sum_unit(),
                coarse: magic * grid.square_unit(),
            },
            dim,
            counts: vec![0; classes],
            sums: vec![Sums::zeros(0); classes],
            order: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds rows; the error is a value outside the grid.
    fn add(&mut self, rows: &[f32], labels: &[u32]) -> Result<(), f32> {
        self.sort(labels);
        let mut first = 0;
        for (class, &end) in self.ends.iter().enumerate() {
            let mine = &self.order[first..end as usize];
            first = end as usize;
            if mine.is_empty() {
                continue;
            }
            let next = &self.order[first..];
            self.counts[class] += mine.len() as i64;
            let sums = &mut self.sums[class];
            sums.sums.resize(self.dim, 0);
            let (squares, largest) = vectorised(
                #[inline(always)]
                || add_class(&mut sums.sums, rows, (mine, next), self.rounding),
            );
            if largest > self.limit.to_bits() {
                let beyond = |value: &&f32| value.is_nan() || value.abs() > self.limit;
                return Err(rows.iter().find(beyond).copied().unwrap_or(f32::NAN));
            }
            sums.squares += squares;
        }
        Ok(())
    }

    /// Puts the numbers of a block's rows into the order of their classes.
    fn sort(&mut self, labels: &[u32]) {
        self.ends.clear();
        self.ends.resize(self.sums.len(), 0);
        labels.iter().for_each(|&label| self.ends[label as usize] += 1);
        let mut before = 0;
        for end in &mut self.ends {
            (*end, before) = (before, before + *end);
        }
        self.order.resize(labels.len(), 0);
        for (row, &label) in labels.iter().enumerate() {
            let place = &mut self.ends[label as usize];
            self.order[*place as usize] = row as u32;
            *place += 1;
        }
    }

    fn finish(mut self) -> Vec<Sums> {
        let constant = self.rounding.fine.to_bits() as i64;
        for (sums, count) in self.sums.iter_mut().zip(self.counts) {
            let share = constant.wrapping_mul(count);
            sums.sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(share));
        }
        self.sums
    }
}

/// Adds the bits of some rows, rounded, to the sums of their class; others come next. Returns Σ of
/// squares on the coarse grid and the largest magnitude's bits, which those of infinity and NaN
/// exceed.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_class(
    sums: &mut [i64],
    rows: &[f32],
    (mine, next): (&[u32], &[u32]),
    rounding: Rounding,
) -> (i128, u32) {
    let (dim, mut squares, mut largest) = (sums.len(), 0, 0);
    let row = |at: u32| &rows[at as usize * dim..(at as usize + 1) * dim];
    let (groups, rest) = mine.as_chunks::<TOGETHER>();
    let mut ahead = mine.iter().chain(next).skip(TOGETHER).copied();
    for &group in groups {
        let soon = std::array::from_fn(|_| ahead.next().map(row));
        let (part, most) = add_rows(sums, group.map(row), soon, rounding);
        squares += part;
        largest = most.max(largest);
    }
    for &at in rest {
        let (part, most) = add_rows(sums, [row(at)], [ahead.next().map(row)], rounding);
        squares += part;
        largest = most.max(largest);
    }
    (squares, largest)
}

/// The same for a few rows, so that the sums are read and written once for all of them. Nothing
/// but integers is carried from column to column: those the compiler may add side by side.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_rows<const N: usize>(
    sums: &mut [i64],
    rows: [&[f32]; N],
    soon: [Option<&[f32]>; N],
    rounding: Rounding,
) -> (i128, u32) {
    let (mut total, mut squares, mut largest) = (0, 0i64, 0);
    let (whole, tail) = sums.as_chunks_mut::<STRIDE>();
    for (part, sums) in whole.iter_mut().enumerate() {
        for row in soon.into_iter().flatten() {
            row.as_chunks::<STRIDE>().0[part].iter().step_by(LINE).for_each(fetch_ahead);
        }
        // as many columns as there are sums, and both numbers known to the compiler
        let rows = rows.map(|row| row.as_chunks::<STRIDE>().0[part].as_slice());
        let (more, most) = add_columns(sums, rows, rounding);
        (squares, largest) = (squares.wrapping_add(more), most.max(largest));
        if (part + 1).is_multiple_of(COLUMNS / STRIDE) {
            total += i128::from(std::mem::take(&mut squares));
        }
    }
    let rows = rows.map(|row| row.as_chunks::<STRIDE>().1);
    let (more, most) = add_columns(tail, rows, rounding);
    (total + i128::from(squares.wrapping_add(more)), most.max(largest))
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_columns<const N: usize>(
    sums: &mut [i64],
    rows: [&[f32]; N],
    rounding: Rounding,
) -> (i64, u32) {
    let (mut squares, mut largest) = (0i64, 0);
    for column in 0..sums.len() {
        let mut sum = sums[column];
        for row in rows {
            let value = row[column];
            let wide = f64::from(value);
            sum = sum.wrapping_add((wide + rounding.fine).to_bits() as i64);
            // the lower half of the constant's bits is zero: what is there is the whole number
            let coarse = i64::from((wide + rounding.coarse).to_bits() as i32);
            squares = squares.wrapping_add(coarse.wrapping_mul(coarse));
            largest = largest.max(value.abs().to_bits());
        }
        sums[column] = sum;
    }
    (squares, largest)
}
