//! Sums per class of a block, about as fast as its bytes are read.
//!
//! A value rounded to the grid is the lower bits of a sum: z + 1.5 · 2⁵² · unit has its last bit
//! at the unit, so the CPU's own rounding does the work, and the bits of two such sums differ
//! by the whole number of units between them. The bits are added as integers, and the constant's
//! share is taken off at the end.
//!
//! Rows are taken as they come if the sums of all classes stay in the cache, since memory is read
//! fastest from front to back. If not, they are taken in the order of their classes, a few thousand
//! at a time, so that the sums in hand stay in the first-level cache.

use rayon::prelude::*;

use super::grid::Grid;
use super::sums::Sums;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::matrix::Matrix;
use crate::vectors::{fetch_ahead, too_large, vectorised};

/// Bytes of sums that stay in the second-level cache while rows pass through.
const CACHED: usize = 1 << 19;
/// Rows that are asked for ahead where they are taken as they come.
const AHEAD: usize = 8;
/// Rows put into the order of their classes at a time, where a task has so many.
const BLOCK: std::ops::RangeInclusive<usize> = 4096..=65_536;
const BLOCK_PER_CLASS: usize = 64;
/// Most numbers of a block, and of a row: an `i64` holds the squares of a sixteenth of them, 2⁴²
/// units each.
const NUMBERS: usize = 1 << 24;
/// Most rows of one task: 2⁴⁰ units each, an `i64` holds their sum.
const TASK: usize = 1 << 22;
/// Rows of a class that a task has, on average, before a thread gets several tasks.
const TASK_PER_CLASS: usize = 32;
/// Most rows of a class that are added at a time: their sum is read and written once.
const TOGETHER: usize = 8;
/// Columns added side by side: those of a cache line.
const LANES: usize = 16;

/// Sums per class of one block: row `i` belongs to class `labels[i]` of `names`. Where the block comes
/// from, and the names, are for messages. Rows with values beyond the grid's range are added one by
/// one, as whole numbers of 128 bits.
pub fn sums_by_class(
    block: &Matrix,
    labels: &[u32],
    names: &[String],
    grid: Grid,
    origin: &str,
) -> Result<Vec<Sums>> {
    let sums = sums_within(block, labels, names, grid, origin);
    if !matches!(sums, Err(Error::OutOfRange { .. })) {
        return sums;
    }
    let beyond = |row: &usize| too_large(block.row(*row), grid.limit() as f32).is_some();
    let (beyond, within): (Vec<usize>, Vec<usize>) = (0..block.rows()).partition(beyond);
    let near: Vec<u32> = within.iter().map(|&row| labels[row]).collect();
    let mut sums = sums_within(&block.select(&within), &near, names, grid, origin)?;
    for row in beyond {
        let class = labels[row] as usize;
        let overflow =
            || Error::CountOverflow { class: names[class].clone(), count: block.rows() as u64 };
        let one = sums_of_row(block.row(row), grid).map_err(|value| Error::OutOfRange {
            origin: origin.to_owned(),
            class: names[class].clone(),
            value,
            limit: grid.most(),
        })?;
        sums[class].combine(&one, 1).ok_or_else(overflow)?;
    }
    Ok(sums)
}

/// Sums of one row, wherever its values lie; the error is one that is too large.
fn sums_of_row(row: &[f32], grid: Grid) -> std::result::Result<Sums, f32> {
    if let Some(&value) =
        row.iter().find(|value| value.is_nan() || f64::from(value.abs()) > grid.most())
    {
        return Err(value);
    }
    let whole = |value: f32, unit: f64| (f64::from(value) / unit).round_ties_even() as i128;
    let sums: Vec<i128> = row.iter().map(|&value| whole(value, grid.sum_unit())).collect();
    // at most 2⁵³ units each: 2²⁰ squares have room
    let squares = row.iter().map(|&value| whole(value, grid.square_unit()).pow(2)).sum();
    Ok(Sums::of(&sums, squares))
}

/// Sums of rows whose values lie in the grid's range; the error names one that does not.
fn sums_within(
    block: &Matrix,
    labels: &[u32],
    names: &[String],
    grid: Grid,
    origin: &str,
) -> Result<Vec<Sums>> {
    let (dim, classes) = (block.cols(), names.len());
    if dim == 0 {
        return Ok(vec![Sums::zeros(0); classes]);
    }
    if dim > NUMBERS {
        let what = format!("{origin}: dimensions, at most");
        return Err(Error::Size { what, expected: NUMBERS, found: dim });
    }
    // what a task or a block does once for every class must not outweigh its rows
    let threads = rayon::current_num_threads().max(1);
    let tasks = (block.rows() / (TASK_PER_CLASS * classes * threads).max(1)).clamp(1, 4) * threads;
    let rows = block.rows().div_ceil(tasks).clamp(classes.clamp(256, TASK), TASK);
    let sorted = (BLOCK_PER_CLASS * classes).clamp(*BLOCK.start(), *BLOCK.end()).max(classes);
    let sorted = sorted.min(NUMBERS / dim);
    let partial = block.as_slice().par_chunks(rows * dim).zip(labels.par_chunks(rows));
    let partial = partial.map(|(chunk, labels)| {
        let mut tally = Tally::new(classes, dim, grid);
        for (rows, labels) in chunk.chunks(sorted * dim).zip(labels.chunks(sorted)) {
            interrupt::check();
            tally.add(rows, labels).map_err(|(label, value)| Error::OutOfRange {
                origin: origin.to_owned(),
                class: names[label as usize].clone(),
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

impl Rounding {
    /// The bits that are added to a sum, and the square on the coarse grid.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
    fn of(self, value: f32) -> (i64, i64) {
        let wide = f64::from(value);
        // the lower half of the constant's bits is zero: what is there is the whole number
        let coarse = i64::from((wide + self.coarse).to_bits() as i32);
        ((wide + self.fine).to_bits() as i64, coarse.wrapping_mul(coarse))
    }
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

    /// Adds rows; the error is a value outside the grid, and whose it is.
    fn add(&mut self, rows: &[f32], labels: &[u32]) -> Result<(), (u32, f32)> {
        let mut largest = [0; LANES];
        if self.sums.len() * self.dim * size_of::<i64>() <= CACHED {
            self.add_as_they_come(rows, labels, &mut largest);
        } else {
            self.add_by_class(rows, labels, &mut largest);
        }
        if largest.into_iter().any(|bits| bits > self.limit.to_bits()) {
            let at = too_large(rows, self.limit).unwrap_or(0);
            return Err((labels[at / self.dim], rows[at]));
        }
        Ok(())
    }

    fn add_as_they_come(&mut self, rows: &[f32], labels: &[u32], largest: &mut [u32; LANES]) {
        let (dim, rounding) = (self.dim, self.rounding);
        let mut squares = vec![[0; LANES]; self.sums.len()];
        labels.iter().for_each(|&label| self.counts[label as usize] += 1);
        self.sums.iter_mut().for_each(|sums| sums.sums.resize(dim, 0));
        vectorised(
            #[inline(always)]
            || {
                let row = |at: usize| &rows[at * dim..(at + 1) * dim];
                for (at, &label) in labels.iter().enumerate() {
                    let soon = row((at + AHEAD).min(labels.len() - 1));
                    let class = label as usize;
                    let sums = &mut self.sums[class].sums;
                    add_rows(sums, [row(at)], [soon], rounding, &mut squares[class], largest);
                }
            },
        );
        for (sums, squares) in self.sums.iter_mut().zip(squares) {
            sums.squares += whole_sum(squares);
        }
    }

    fn add_by_class(&mut self, rows: &[f32], labels: &[u32], largest: &mut [u32; LANES]) {
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
            let mut squares = [0; LANES];
            vectorised(
                #[inline(always)]
                || {
                    let among = (rows, mine, next);
                    add_class(&mut sums.sums, among, self.rounding, &mut squares, largest);
                },
            );
            sums.squares += whole_sum(squares);
        }
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

/// Adds the bits of some rows, rounded, to the sums of their class; others come next.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_class(
    sums: &mut [i64],
    (rows, mine, next): (&[f32], &[u32], &[u32]),
    rounding: Rounding,
    squares: &mut [i64; LANES],
    largest: &mut [u32; LANES],
) {
    let mut ahead = mine.iter().chain(next).skip(TOGETHER).copied();
    let mut rest = mine;
    rest = add_groups::<TOGETHER>(sums, rows, rest, &mut ahead, rounding, squares, largest);
    rest = add_groups::<4>(sums, rows, rest, &mut ahead, rounding, squares, largest);
    rest = add_groups::<2>(sums, rows, rest, &mut ahead, rounding, squares, largest);
    add_groups::<1>(sums, rows, rest, &mut ahead, rounding, squares, largest);
}

/// The same for as many whole groups of rows as there are; returns the rows that are left.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_groups<'a, const N: usize>(
    sums: &mut [i64],
    rows: &[f32],
    mine: &'a [u32],
    ahead: &mut impl Iterator<Item = u32>,
    rounding: Rounding,
    squares: &mut [i64; LANES],
    largest: &mut [u32; LANES],
) -> &'a [u32] {
    let dim = sums.len();
    let row = |at: u32| &rows[at as usize * dim..(at as usize + 1) * dim];
    let (groups, rest) = mine.as_chunks::<N>();
    for &group in groups {
        // at the end a row that is there already: asking for it costs nothing
        let soon = group.map(|at| row(ahead.next().unwrap_or(at)));
        add_rows(sums, group.map(row), soon, rounding, squares, largest);
    }
    rest
}

/// The same for a few rows, so that the sums are read and written once for all of them. Squares, on
/// the coarse grid, and the largest magnitude's bits, which those of infinity and NaN exceed, are
/// kept apart for each lane: all lanes do the same then, as vectors need it.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn add_rows<const N: usize>(
    sums: &mut [i64],
    rows: [&[f32]; N],
    soon: [&[f32]; N],
    rounding: Rounding,
    squares: &mut [i64; LANES],
    largest: &mut [u32; LANES],
) {
    // copies of our own, which can stay in registers
    let (mut square, mut most) = (*squares, *largest);
    let (whole, tail) = sums.as_chunks_mut::<LANES>();
    for (part, sums) in whole.iter_mut().enumerate() {
        for row in soon {
            fetch_ahead(&row[part * LANES]);
        }
        let mut lanes = *sums;
        for row in rows.map(|row| &row.as_chunks::<LANES>().0[part]) {
            for lane in 0..LANES {
                let (bits, more) = rounding.of(row[lane]);
                lanes[lane] = lanes[lane].wrapping_add(bits);
                square[lane] = square[lane].wrapping_add(more);
                most[lane] = most[lane].max(row[lane].abs().to_bits());
            }
        }
        *sums = lanes;
    }
    (*squares, *largest) = (square, most);
    for row in rows.map(|row| row.as_chunks::<LANES>().1) {
        for (lane, (sum, &value)) in tail.iter_mut().zip(row).enumerate() {
            let (bits, more) = rounding.of(value);
            *sum = sum.wrapping_add(bits);
            squares[lane] = squares[lane].wrapping_add(more);
            largest[lane] = largest[lane].max(value.abs().to_bits());
        }
    }
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn whole_sum(lanes: [i64; LANES]) -> i128 {
    lanes.into_iter().map(i128::from).sum()
}
