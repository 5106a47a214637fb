//! Which centres can be nearest, decided with bytes: distances in whole numbers of a coarse scale
//! are known up to a bound, and only centres within it are measured in full. The answer is the one
//! that measuring all of them would give.

use super::power::Nearest;
use crate::linalg::bytes::{COLUMNS, Columns, Machine, ROWS, Rounded, Scores, Sums};
use crate::linalg::squared_distance;
use crate::matrix::Matrix;

/// What makes a byte with a sign one without.
const SHIFT: u8 = 128;
/// Most numbers of a vector: sums of products of bytes stay below 2³¹.
const MOST_DIMENSIONS: usize = 1 << 15;
/// Partial sums, side by side, of a vector's numbers.
const LANES: usize = 16;

/// Centres ready to be screened.
pub(super) struct Screen<'a> {
    machine: Machine,
    centres: &'a Matrix,
    weights: &'a [f32],
    columns: Columns,
    /// The middle of all centres, which is taken off queries and centres: no distance changes.
    middle: Vec<f32>,
    /// Of each block's columns, twice their scale, negative; 0 where there is no centre.
    scales: Vec<[f32; COLUMNS]>,
    /// Of each block's columns ‖c‖² − ν; no number, which is never near, where there is no centre.
    offsets: Vec<[f32; COLUMNS]>,
    /// The largest length of a centre, of what its bytes leave out, and of an offset.
    longest: f32,
    left_out: f32,
    largest: f32,
    /// What sums of 32-bit numbers may be off by, in parts of the largest of them.
    rounding: f32,
}

/// A query in bytes.
struct Coarse {
    scale: f32,
    /// What the shift of the columns adds to all products.
    shift: i32,
    /// A distance in bytes is off by half of this at most.
    bound: f32,
    /// The least distance in bytes so far.
    least: f32,
}

/// A centre that may be the nearest one of a query.
struct Possible {
    row: u32,
    cell: u32,
    /// The distance in bytes.
    coarse: f32,
}

impl<'a> Screen<'a> {
    /// Prepares centres, if the machine has the instructions and sums of bytes can't overflow.
    pub(super) fn of(centres: &'a Matrix, weights: &'a [f32]) -> Option<Self> {
        let dim = centres.cols();
        let machine = Machine::find().filter(|_| dim <= MOST_DIMENSIONS)?;
        let count = centres.rows().max(1) as f64;
        let mut sums = vec![0f64; dim];
        for row in centres.iter_rows() {
            sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let middle: Vec<f32> = sums.iter().map(|sum| (sum / count) as f32).collect();
        let mut columns = Columns::blank(centres.rows(), dim, SHIFT);
        let blocks = centres.rows().div_ceil(COLUMNS);
        let mut scales = vec![[0.0; COLUMNS]; blocks];
        let mut offsets = vec![[f32::NAN; COLUMNS]; blocks];
        let (mut longest, mut left_out, mut largest) = (0f32, 0f32, 0f32);
        let mut bytes = vec![0i8; dim];
        for (at, (row, weight)) in centres.iter_rows().zip(weights).enumerate() {
            let Rounded { scale, square, lost, .. } = machine.round(row, &middle, &mut bytes);
            let bytes: Vec<u8> = bytes.iter().map(|&b| b.cast_unsigned() ^ SHIFT).collect();
            columns.set(at, &bytes);
            let (block, column) = (at / COLUMNS, at % COLUMNS);
            let offset = square - weight;
            (scales[block][column], offsets[block][column]) = (-2.0 * scale, offset);
            longest = longest.max(square.sqrt());
            left_out = left_out.max(lost.sqrt());
            largest = largest.max(offset.abs());
        }
        let finite = [longest, left_out, largest].iter().all(|value| value.is_finite());
        finite.then_some(Self {
            machine,
            centres,
            weights,
            columns,
            middle,
            scales,
            offsets,
            longest,
            left_out,
            largest,
            rounding: f32::EPSILON * (dim / LANES + 16) as f32,
        })
    }

    /// The nearest centre of each query; returns how many centres were measured.
    pub(super) fn nearest(&self, queries: &[f32], out: &mut [Nearest]) -> usize {
        let (dim, length) = (self.centres.cols(), self.columns.row_len());
        let mut bytes = vec![0i8; out.len().next_multiple_of(ROWS) * length];
        let mut coarse: Vec<Coarse> = queries
            .chunks_exact(dim)
            .zip(bytes.chunks_exact_mut(length))
            .map(|(query, bytes)| self.coarse(query, &mut bytes[..dim]))
            .collect();
        let mut possible = Vec::new();
        let mut sums: Sums = [[0; COLUMNS]; ROWS];
        for block in 0..self.scales.len() {
            let rows = coarse.chunks_mut(ROWS).zip(bytes.chunks_exact(ROWS * length));
            for (group, (coarse, bytes)) in rows.enumerate() {
                self.machine.products(&self.columns, block, bytes, &mut sums);
                for (at, (sums, coarse)) in sums.iter().zip(coarse).enumerate() {
                    let row = (group * ROWS + at) as u32;
                    self.compare(row, block, sums, coarse, &mut possible);
                }
            }
        }
        let mut measured = 0;
        for Possible { row, cell, coarse: distance } in possible {
            let row = row as usize;
            let Coarse { least, bound, .. } = &coarse[row];
            if distance > least + bound {
                continue;
            }
            measured += 1;
            let (query, centre) = (&queries[row * dim..(row + 1) * dim], cell as usize);
            let distance = squared_distance(query, self.centres.row(centre)) - self.weights[centre];
            // The centres of a query come in order: the first of equals stays.
            if distance < out[row].distance {
                out[row] = Nearest { cell, distance };
            }
        }
        measured
    }

    /// A query less the middle, in bytes.
    fn coarse(&self, query: &[f32], bytes: &mut [i8]) -> Coarse {
        let Rounded { scale, square, lost, sum } = self.machine.round(query, &self.middle, bytes);
        let (length, lost) = (square.sqrt(), lost.sqrt());
        let left_out = 2.0 * (lost * self.longest + (length + lost) * self.left_out);
        let largest = (length + lost + self.longest).powi(2) + self.largest;
        let bound = 2.0 * (left_out + self.rounding * largest);
        Coarse { scale, shift: i32::from(SHIFT) * sum, bound, least: f32::INFINITY }
    }

    /// Takes the centres of a block that may be the nearest of a query.
    fn compare(
        &self,
        row: u32,
        block: usize,
        sums: &[i32; COLUMNS],
        query: &mut Coarse,
        possible: &mut Vec<Possible>,
    ) {
        let by = Scores {
            shift: query.shift,
            factor: query.scale,
            scales: &self.scales[block],
            offsets: &self.offsets[block],
        };
        let mut scores = [0f32; COLUMNS];
        let (least, mut near) =
            self.machine.scores(sums, by, (query.least, query.bound), &mut scores);
        query.least = least;
        while near != 0 {
            let at = near.trailing_zeros() as usize;
            near &= near - 1;
            let cell = (block * COLUMNS + at) as u32;
            possible.push(Possible { row, cell, coarse: scores[at] });
        }
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
                let Some(screen) = Screen::of(&centres, &weights) else { return };
                let mut all = queries.clone();
                all.append(&centres).unwrap();
                let mut out = vec![Nearest { cell: 0, distance: f32::INFINITY }; all.rows()];
                screen.nearest(all.as_slice(), &mut out);
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
        let Some(screen) = Screen::of(&centres, &weights) else { return };
        let mut out = vec![Nearest { cell: 0, distance: f32::INFINITY }; 500];
        assert_eq!(screen.nearest(centres.as_slice(), &mut out), 500);
        assert!(out.iter().enumerate().all(|(row, found)| found.cell as usize == row));
    }

    #[test]
    fn a_query_that_is_no_number_is_near_nothing() {
        let centres = some(70, 20, 1, 1.0);
        let weights = vec![0.0; 70];
        let Some(screen) = Screen::of(&centres, &weights) else { return };
        for value in [f32::NAN, f32::INFINITY, f32::MAX] {
            let mut out = [Nearest { cell: 0, distance: f32::INFINITY }];
            screen.nearest(&[value; 20], &mut out);
            assert!(out[0].cell < 70);
        }
    }
}
