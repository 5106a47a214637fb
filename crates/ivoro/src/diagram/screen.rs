//! Which centres can be nearest, decided with bytes: distances in whole numbers of a coarse scale
//! are known up to a bound, and only centres within it are measured in full. The answer is the one
//! that measuring all of them would give.

use rayon::prelude::*;

use super::power::{Nearest, squared_length};
use crate::interrupt;
use crate::linalg::bytes::{COLUMNS, Columns, Machine, ROWS, Rounded, Scores, Sums};
use crate::linalg::squared_distance;
use crate::matrix::Matrix;

/// What makes a byte with a sign one without.
const SHIFT: u8 = 128;
/// Most numbers of a vector: sums of products of bytes stay below 2³¹.
const MOST_DIMENSIONS: usize = 1 << 15;
/// Lengths, around the middle, of the longest centre at least, and squares of lengths at most: no
/// square vanishes or overflows.
const SHORTEST: f32 = 1e-12;
const LARGEST: f32 = 1e30;
/// Partial sums, side by side, of a vector's numbers.
const LANES: usize = 16;
/// Centres that may be nearest are measured when so many have come together.
const TOGETHER: usize = 1 << 14;

/// How far apart two centres are compared rightly, whatever rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margin {
    /// Parts of ‖z‖·‖c‖, and of the squares, that rounding may change.
    products: f32,
    squares: f32,
    /// The largest length of a centre, and the largest square or offset.
    longest: f32,
    largest: f32,
}

impl Margin {
    /// For centres, and the largest magnitude of their offsets.
    pub(super) fn new(centres: &Matrix, offset: f32) -> Self {
        let longest = centres.iter_rows().map(squared_length).fold(0f32, f32::max);
        let dim = centres.cols() as f32;
        let rounding = f32::EPSILON / 2.0;
        // a chain of products, twice; and sums in lanes, with all that is added to them
        let products = rounding * 2.0 * (dim + 32.0);
        let squares = rounding * (dim / 16.0 + 64.0);
        Self { products, squares, longest: longest.sqrt(), largest: longest + offset }
    }

    /// By how much what is compared of a query may differ from the true number.
    fn of(self, query: &[f32]) -> f32 {
        let square = squared_length(query);
        self.products * square.sqrt() * self.longest + self.squares * (square + self.largest)
    }
}

/// A centre as good as the nearest one of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    pub(super) row: u32,
    pub(super) cell: u32,
    distance: f32,
}

/// Centres ready to be screened.
pub(super) struct Screen<'a> {
    machine: Machine,
    centres: &'a Matrix,
    weights: &'a [f32],
    columns: Columns,
    /// The middle of all centres, which is taken off queries and centres: no distance changes.
    middle: Vec<f32>,
    blocks: Vec<Block>,
    /// What sums of 32-bit numbers may be off by, in parts of the largest of them.
    rounding: f32,
    margin: Margin,
}

/// Centres that are multiplied at once.
struct Block {
    /// Of each column, twice its scale, negative; 0 where there is no centre.
    scales: [f32; COLUMNS],
    /// Of each column ‖c‖² − ν; no number, which is never near, where there is no centre.
    offsets: [f32; COLUMNS],
    /// The largest length of a centre, of what its bytes leave out, and of an offset.
    longest: f32,
    left_out: f32,
    largest: f32,
}

/// A query in bytes.
struct Coarse {
    scale: f32,
    /// What the shift of the columns adds to all products.
    shift: i32,
    /// By how much what is compared in the end may differ from the true number.
    margin: f32,
    /// Its length, and that of what the bytes leave out.
    length: f32,
    lost: f32,
    /// The nearest centre is no further than this, less ‖z‖².
    limit: f32,
}

/// A centre that may be the nearest one of a query.
struct Possible {
    row: u32,
    cell: u32,
    /// It is no nearer than this, less ‖z‖².
    least: f32,
}

impl<'a> Screen<'a> {
    /// Prepares centres, if the machine has the instructions and neither sums of bytes nor squares
    /// of lengths leave their range.
    pub(super) fn of(centres: &'a Matrix, weights: &'a [f32], margin: Margin) -> Option<Self> {
        let dim = centres.cols();
        let machine = Machine::find().filter(|_| dim > 0 && dim <= MOST_DIMENSIONS)?;
        let mut sums = vec![0f64; dim];
        for row in centres.iter_rows() {
            sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let count = centres.rows().max(1) as f64;
        let middle: Vec<f32> = sums.iter().map(|sum| (sum / count) as f32).collect();
        let mut columns = Columns::blank(centres.rows(), dim, SHIFT);
        let blocks: Option<Vec<Block>> = columns
            .blocks_mut()
            .zip(centres.as_slice().par_chunks(COLUMNS * dim))
            .zip(weights.par_chunks(COLUMNS))
            .map(|((mut columns, rows), weights)| {
                let mut block = Block {
                    scales: [0.0; COLUMNS],
                    offsets: [f32::NAN; COLUMNS],
                    longest: 0.0,
                    left_out: 0.0,
                    largest: 0.0,
                };
                let mut bytes = vec![0i8; dim];
                for (at, (row, weight)) in rows.chunks_exact(dim).zip(weights).enumerate() {
                    let rounded = machine.round(row, &middle, &mut bytes);
                    columns.set(at, bytes.iter().map(|byte| byte.cast_unsigned() ^ SHIFT));
                    block.add(at, rounded, *weight)?;
                }
                Some(block)
            })
            .collect();
        let blocks = blocks?;
        let longest = blocks.iter().fold(0.0, |longest, block| f32::max(longest, block.longest));
        let rounding = f32::EPSILON * (dim / LANES + 32) as f32;
        let screen = Self { machine, centres, weights, columns, middle, blocks, rounding, margin };
        (longest >= SHORTEST).then_some(screen)
    }

    /// The nearest centre of each query as measured, and all that rounding may have kept from being
    /// it, in order of the queries. None, with nothing done, if a query is beyond the range of what
    /// can be compared so.
    pub(super) fn nearest(&self, queries: &[f32], out: &mut [Nearest]) -> Option<Vec<Rival>> {
        let dim = self.centres.cols();
        let mut rivals: Vec<Rival> = Vec::new();
        let margins = self.possible(queries, |coarse, possible: &mut Vec<Possible>| {
            for Possible { row, cell, least } in possible.drain(..) {
                let at = row as usize;
                if least > coarse[at].limit {
                    continue;
                }
                let (query, centre) = (&queries[at * dim..(at + 1) * dim], cell as usize);
                let square = squared_distance(query, self.centres.row(centre));
                let distance = square - self.weights[centre];
                if distance <= out[at].distance + 2.0 * coarse[at].margin {
                    rivals.push(Rival { row, cell, distance });
                }
                // The centres of a query come in order: the first of equals stays.
                if distance < out[at].distance {
                    out[at] = Nearest { cell, distance };
                }
            }
        })?;
        rivals.retain(|rival| {
            let row = rival.row as usize;
            rival.distance <= out[row].distance + 2.0 * margins[row]
        });
        rivals.sort_by_key(|rival| rival.row);
        Some(rivals)
    }

    /// How many centres of these queries would be measured, or that it can't be said.
    pub(super) fn left(&self, queries: &[f32]) -> Option<usize> {
        let mut count = 0;
        self.possible(queries, |coarse, possible: &mut Vec<Possible>| {
            let within =
                |possible: &Possible| possible.least <= coarse[possible.row as usize].limit;
            count += possible.drain(..).filter(within).count();
        })?;
        Some(count)
    }

    /// Finds the centres that may be nearest and hands them over, some at a time. Returns the margin
    /// of each query.
    fn possible(
        &self,
        queries: &[f32],
        mut take: impl FnMut(&[Coarse], &mut Vec<Possible>),
    ) -> Option<Vec<f32>> {
        let (dim, length) = (self.centres.cols(), self.columns.row_len());
        let mut bytes = vec![0i8; (queries.len() / dim).next_multiple_of(ROWS) * length];
        let mut coarse: Vec<Coarse> = queries
            .chunks_exact(dim)
            .zip(bytes.chunks_exact_mut(length))
            .map(|(query, bytes)| self.coarse(query, &mut bytes[..dim]))
            .collect::<Option<_>>()?;
        let mut possible = Vec::new();
        let mut sums: Sums = [[0; COLUMNS]; ROWS];
        for (at, block) in self.blocks.iter().enumerate() {
            interrupt::check();
            let rows = coarse.chunks_mut(ROWS).zip(bytes.chunks_exact(ROWS * length));
            for (group, (coarse, bytes)) in rows.enumerate() {
                self.machine.products(&self.columns, at, bytes, &mut sums);
                for (row, (sums, coarse)) in sums.iter().zip(coarse).enumerate() {
                    let row = (group * ROWS + row) as u32;
                    self.compare(row, (at, block), sums, coarse, &mut possible);
                }
            }
            if possible.len() >= TOGETHER {
                take(&coarse, &mut possible);
            }
        }
        take(&coarse, &mut possible);
        Some(coarse.into_iter().map(|coarse| coarse.margin).collect())
    }

    /// A query less the middle, in bytes; none if it is too long.
    fn coarse(&self, query: &[f32], bytes: &mut [i8]) -> Option<Coarse> {
        let Rounded { scale, square, lost, sum } = self.machine.round(query, &self.middle, bytes);
        let shift = i32::from(SHIFT).wrapping_mul(sum);
        let (length, lost) = (square.sqrt(), lost.sqrt());
        let margin = self.margin.of(query);
        let coarse = Coarse { scale, shift, margin, length, lost, limit: f32::INFINITY };
        (square <= LARGEST && lost.is_finite() && margin.is_finite()).then_some(coarse)
    }

    /// Takes the centres of a block that may be the nearest of a query.
    fn compare(
        &self,
        row: u32,
        (at, block): (usize, &Block),
        sums: &[i32; COLUMNS],
        query: &mut Coarse,
        possible: &mut Vec<Possible>,
    ) {
        let (length, Block { longest, left_out, largest, .. }) = (query.length + query.lost, block);
        let left_out = 2.0 * (query.lost * longest + length * left_out);
        let bound =
            left_out + self.rounding * ((length + longest).powi(2) + largest) + query.margin;
        let by = Scores {
            shift: query.shift,
            factor: query.scale,
            scales: &block.scales,
            offsets: &block.offsets,
        };
        let mut scores = [0f32; COLUMNS];
        let (limit, mut near) = self.machine.scores(sums, by, (query.limit, bound), &mut scores);
        query.limit = limit;
        while near != 0 {
            let column = near.trailing_zeros() as usize;
            near &= near - 1;
            let cell = (at * COLUMNS + column) as u32;
            possible.push(Possible { row, cell, least: scores[column] - bound });
        }
    }
}

impl Block {
    /// Adds a centre; none if it is too long.
    fn add(&mut self, at: usize, rounded: Rounded, weight: f32) -> Option<()> {
        let Rounded { scale, square, lost, .. } = rounded;
        let offset = square - weight;
        // What is no number is not below it, either.
        if ![square, lost, offset.abs()].iter().all(|value| *value <= LARGEST) {
            return None;
        }
        (self.scales[at], self.offsets[at]) = (-2.0 * scale, offset);
        self.longest = self.longest.max(square.sqrt());
        self.left_out = self.left_out.max(lost.sqrt());
        self.largest = self.largest.max(offset.abs());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;

    fn some(rows: usize, cols: usize, seed: u64, spread: f64) -> Matrix {
        let value = |at: usize| (3.0 + spread * unit(seed, at as u64)) as f32;
        Matrix::new(rows, cols, (0..rows * cols).map(value).collect()).unwrap()
    }

    fn margin(centres: &Matrix) -> Margin {
        Margin::new(centres, 1000.0)
    }

    /// What measuring all centres gives.
    fn measured(query: &[f32], centres: &Matrix, weights: &[f32]) -> Nearest {
        let mut best = Nearest { cell: 0, distance: f32::INFINITY };
        for (cell, (centre, weight)) in centres.iter_rows().zip(weights).enumerate() {
            let distance = squared_distance(query, centre) - weight;
            if distance < best.distance {
                best = Nearest { cell: cell as u32, distance };
            }
        }
        best
    }

    #[test]
    fn the_answer_is_that_of_measuring_all() {
        for (dim, spread) in [(37, 1.0), (64, 1e-3), (3, 50.0), (512, 1.0)] {
            let mut centres = some(150, dim, 1, spread);
            let twin = centres.row(7).to_vec();
            centres.row_mut(90).copy_from_slice(&twin);
            let queries = some(200, dim, 2, spread);
            for weighted in [0.0, 0.3] {
                let weights: Vec<f32> =
                    (0..150).map(|at| (weighted * spread * unit(3, at)) as f32).collect();
                let Some(screen) = Screen::of(&centres, &weights, margin(&centres)) else { return };
                let mut all = queries.clone();
                all.append(&centres).unwrap();
                let mut out = vec![Nearest { cell: 0, distance: f32::INFINITY }; all.rows()];
                assert!(screen.nearest(all.as_slice(), &mut out).is_some());
                for (row, found) in out.iter().enumerate() {
                    let expected = measured(all.row(row), &centres, &weights);
                    assert_eq!(*found, expected, "{dim} numbers, row {row}");
                }
            }
        }
    }

    #[test]
    fn few_centres_are_measured_where_they_lie_apart() {
        let centres = some(500, 64, 1, 1.0);
        let weights = vec![0.0; 500];
        let Some(screen) = Screen::of(&centres, &weights, margin(&centres)) else { return };
        let mut out = vec![Nearest { cell: 0, distance: f32::INFINITY }; 500];
        assert_eq!(screen.left(centres.as_slice()), Some(500));
        assert!(screen.nearest(centres.as_slice(), &mut out).is_some());
        assert!(out.iter().enumerate().all(|(row, found)| found.cell as usize == row));
    }

    #[test]
    fn one_centre_far_away_hides_nothing() {
        let mut centres = some(300, 40, 1, 1.0);
        centres.row_mut(5).fill(1e6);
        let weights = vec![0.0; 300];
        let Some(screen) = Screen::of(&centres, &weights, margin(&centres)) else { return };
        let queries = some(100, 40, 2, 1.0);
        let mut out = vec![Nearest { cell: 0, distance: f32::INFINITY }; 100];
        assert!(screen.nearest(queries.as_slice(), &mut out).is_some());
        for (row, found) in out.iter().enumerate() {
            assert_eq!(*found, measured(queries.row(row), &centres, &weights), "row {row}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_left_to_others() {
        let centres = some(70, 20, 1, 1.0);
        let weights = vec![0.0; 70];
        let Some(screen) = Screen::of(&centres, &weights, margin(&centres)) else { return };
        for value in [f32::NAN, f32::INFINITY, f32::MAX] {
            let mut query = [0.0; 20];
            query[3] = value;
            let mut out = [Nearest { cell: 0, distance: f32::INFINITY }];
            assert!(screen.nearest(&query, &mut out).is_none(), "{value}");
        }
        for value in [f32::NAN, f32::INFINITY, 1e30] {
            let mut centres = centres.clone();
            centres.row_mut(7)[3] = value;
            assert!(Screen::of(&centres, &weights, margin(&centres)).is_none(), "{value}");
        }
        let tiny: Vec<f32> = centres.as_slice().iter().map(|value| value * 1e-20).collect();
        let tiny = Matrix::new(70, 20, tiny).unwrap();
        assert!(Screen::of(&tiny, &weights, margin(&tiny)).is_none());
        let mut unlikely = weights.clone();
        unlikely[0] = f32::NEG_INFINITY;
        assert!(Screen::of(&centres, &unlikely, margin(&centres)).is_none());
    }
}
