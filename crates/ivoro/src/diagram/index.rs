//! An index of very many centres, which looks at few of them per query.

use rayon::prelude::*;

use crate::diagram::{Nearest, PowerDiagram, squared_length};
use crate::error::{Error, Result};
use crate::linalg::Columns;
use crate::matrix::Matrix;
use crate::random::{mix, permutation};
use crate::vectors::vectorised;

/// Centres looked at for each family while the families are sought, and rounds of that search.
const SAMPLE: usize = 64;
const ROUNDS: usize = 8;
/// Queries answered together: the more there are, the more of them meet in one family, and one
/// product serves them all.
const QUERIES: usize = 16_384;
/// Candidates held at once while a batch is answered.
const CANDIDATES: usize = 1 << 22;
/// Queries compared with all families in one task.
const ROWS: usize = 256;
/// Scores that are passed over together if none of them is small enough.
const LANES: usize = 32;

/// An index over the cells of a Voronoi diagram with very many centres: a Voronoi diagram of
/// Voronoi diagrams.
///
/// Centres are divided into families, the cells of a coarse diagram. A query is compared with the
/// centres of the families nearest to it and with no others, so the answer may be wrong where the
/// nearest centre belongs to another family. What is found is the same on any number of threads.
///
/// ```
/// use ivoro::{Matrix, diagram::Index};
/// let centres = Matrix::new(4, 1, vec![0.0, 1.0, 8.0, 9.0])?;
/// let index = Index::new(&centres, 2, 1)?;
/// let found = index.search(&Matrix::new(1, 1, vec![8.9])?, 1, 1)?;
/// assert_eq!(found[0].cell, 3);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    families: PowerDiagram,
    /// Their centres as they are multiplied.
    packed: Columns,
    /// ‖c‖² of each family.
    lengths: Vec<f32>,
    /// Where each family begins among the centres, and the end.
    starts: Vec<usize>,
    /// Centres, family after family.
    centres: Matrix,
    /// ‖c‖² of each centre.
    offsets: Vec<f32>,
    /// The cell each centre belongs to.
    cells: Vec<u32>,
}

/// A query and a family it is compared with; the answer goes to `slot`.
#[derive(Clone, Copy)]
struct Visit {
    query: u32,
    slot: u32,
}

impl Index {
    /// Divides the centres, one per row, into families. The seed chooses where the search for them
    /// begins.
    pub fn new(centres: &Matrix, families: usize, seed: u64) -> Result<Self> {
        if centres.rows() == 0 || centres.cols() == 0 {
            let what = "centres of an index".to_owned();
            return Err(Error::Size { what, expected: 1, found: 0 });
        }
        let families = seek_families(centres, families.clamp(1, centres.rows()), seed)?;
        let nearest = families.nearest(centres)?;
        let mut starts = vec![0; families.centres().rows() + 1];
        nearest.iter().for_each(|nearest| starts[nearest.cell as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let mut next = starts.clone();
        let mut cells = vec![0u32; centres.rows()];
        for (cell, nearest) in nearest.iter().enumerate() {
            let place = &mut next[nearest.cell as usize];
            cells[*place] = cell as u32;
            *place += 1;
        }
        let rows: Vec<usize> = cells.iter().map(|&cell| cell as usize).collect();
        let centres = centres.select(&rows);
        let offsets = centres.iter_rows().map(squared_length).collect();
        let lengths = families.centres().iter_rows().map(squared_length).collect();
        let packed = Columns::new(families.centres().as_slice(), centres.cols());
        Ok(Self { families, packed, lengths, starts, centres, offsets, cells })
    }

    /// Number of families.
    pub fn families(&self) -> usize {
        self.lengths.len()
    }

    /// Bytes of all numbers held.
    pub fn bytes(&self) -> usize {
        let floats = self.centres.as_slice().len() + 2 * self.families.centres().as_slice().len();
        (floats + self.offsets.len() + self.cells.len() + 3 * self.lengths.len()) * 4
            + self.starts.len() * size_of::<usize>()
    }

    /// The `top` nearest centres of every query in the `probes` families nearest to it, nearest
    /// first, `top` per query. Where those families hold fewer centres, the rest have an infinite
    /// distance.
    pub fn search(&self, queries: &Matrix, probes: usize, top: usize) -> Result<Vec<Nearest>> {
        let dim = self.centres.cols();
        if queries.cols() != dim {
            let what = "dimension of the queries".to_owned();
            return Err(Error::Size { what, expected: dim, found: queries.cols() });
        }
        let (probes, top) = (probes.clamp(1, self.families()), top.max(1));
        let rows = (CANDIDATES / (probes * top)).clamp(1, QUERIES);
        let mut out = vec![NONE; queries.rows() * top];
        for (out, queries) in out.chunks_mut(rows * top).zip(queries.as_slice().chunks(rows * dim))
        {
            self.search_batch(queries, probes, top, out);
        }
        Ok(out)
    }

    fn search_batch(&self, queries: &[f32], probes: usize, top: usize, out: &mut [Nearest]) {
        let dim = self.centres.cols();
        let near = self.nearest_families(queries, probes);
        let visits = self.visits(&near, probes);
        let mut found = vec![NONE; near.len() * top];
        let answers: Vec<(usize, Vec<Nearest>)> = visits
            .par_iter()
            .enumerate()
            .filter(|(_, visits)| !visits.is_empty())
            .map(|(family, visits)| (family, self.visit(family, visits, queries, top)))
            .collect();
        for (family, answers) in answers {
            for (visit, answer) in visits[family].iter().zip(answers.chunks_exact(top)) {
                let slot = visit.slot as usize * top;
                found[slot..slot + top].copy_from_slice(answer);
            }
        }
        out.par_chunks_mut(top)
            .zip(found.par_chunks(probes * top))
            .zip(queries.par_chunks(dim))
            .for_each(|((out, found), query)| {
                found.iter().for_each(|candidate| insert(out, *candidate));
                let length = squared_length(query);
                out.iter_mut().for_each(|nearest| nearest.distance += length);
            });
    }

    /// The families nearest to each query, `probes` per query.
    fn nearest_families(&self, queries: &[f32], probes: usize) -> Vec<Nearest> {
        let dim = self.centres.cols();
        let mut near = vec![NONE; queries.len() / dim * probes];
        near.par_chunks_mut(ROWS * probes).zip(queries.par_chunks(ROWS * dim)).for_each(
            |(near, queries)| {
                let mut scores = vec![0f32; queries.len() / dim * self.families()];
                products(queries, &self.packed, &mut scores);
                keep_least_of_each(near, probes, &scores, &self.lengths);
            },
        );
        near
    }

    /// For each family the queries that visit it.
    fn visits(&self, near: &[Nearest], probes: usize) -> Vec<Vec<Visit>> {
        let mut visits = vec![Vec::new(); self.families()];
        for (slot, family) in near.iter().enumerate() {
            let visit = Visit { query: (slot / probes) as u32, slot: slot as u32 };
            visits[family.cell as usize].push(visit);
        }
        visits
    }

    /// The `top` nearest centres of one family for each of its visitors.
    fn visit(&self, family: usize, visits: &[Visit], queries: &[f32], top: usize) -> Vec<Nearest> {
        let dim = self.centres.cols();
        let range = self.starts[family]..self.starts[family + 1];
        let mut found = vec![NONE; visits.len() * top];
        if range.is_empty() {
            return found;
        }
        let mut gathered = Vec::with_capacity(visits.len() * dim);
        for visit in visits {
            let start = visit.query as usize * dim;
            gathered.extend_from_slice(&queries[start..start + dim]);
        }
        let mut scores = vec![0f32; visits.len() * range.len()];
        let numbers = &self.centres.as_slice()[range.start * dim..range.end * dim];
        products(&gathered, &Columns::new(numbers, dim), &mut scores);
        let offsets = &self.offsets[range.clone()];
        keep_least_of_each(&mut found, top, &scores, offsets);
        let known = found.iter_mut().filter(|found| found.distance < f32::INFINITY);
        known.for_each(|found| found.cell = self.cells[range.start + found.cell as usize]);
        found
    }
}

const NONE: Nearest = Nearest { cell: 0, distance: f32::INFINITY };

/// Centres of the families: Lloyd's rounds on a sample.
fn seek_families(centres: &Matrix, families: usize, seed: u64) -> Result<PowerDiagram> {
    let dim = centres.cols();
    let mut order = permutation(seed, centres.rows());
    order.truncate(families.saturating_mul(SAMPLE));
    let sample = centres.select(&order);
    let mut diagram = PowerDiagram::voronoi(centres.select(&order[..families]));
    for round in 0..ROUNDS {
        let mut sums = vec![0f64; families * dim];
        let mut counts = vec![0u32; families];
        for (nearest, row) in diagram.nearest(&sample)?.iter().zip(sample.iter_rows()) {
            let family = nearest.cell as usize;
            counts[family] += 1;
            let sums = &mut sums[family * dim..(family + 1) * dim];
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let mut next = Matrix::zeros(families, dim);
        for (family, (&count, sums)) in counts.iter().zip(sums.chunks_exact(dim)).enumerate() {
            let target = next.row_mut(family);
            if count == 0 {
                // a family nobody belongs to begins again elsewhere
                let place = mix(seed, (round * families + family) as u64) % sample.rows() as u64;
                target.copy_from_slice(sample.row(place as usize));
            } else {
                let mean = |sum: &f64| (sum / f64::from(count)) as f32;
                target.iter_mut().zip(sums).for_each(|(target, sum)| *target = mean(sum));
            }
        }
        diagram = PowerDiagram::voronoi(next);
    }
    Ok(diagram)
}

/// −2 q·c of every query with the centres in `range`.
fn products(queries: &[f32], centres: &Columns, scores: &mut [f32]) {
    centres.fill(queries, 0..centres.count(), scores);
    scores.iter_mut().for_each(|score| *score *= -2.0);
}

/// Of each query, whose scores are as many as there are offsets, the `top` least sums.
fn keep_least_of_each(kept: &mut [Nearest], top: usize, scores: &[f32], offsets: &[f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (kept, scores) in kept.chunks_exact_mut(top).zip(scores.chunks_exact(offsets.len()))
            {
                keep_least(kept, scores, offsets);
            }
        },
    );
}

/// Keeps the least sums of a score and its offset, least first; the earlier on a tie.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn keep_least(kept: &mut [Nearest], scores: &[f32], offsets: &[f32]) {
    let parts = scores.chunks(LANES).zip(offsets.chunks(LANES));
    for (part, (scores, offsets)) in parts.enumerate() {
        let mut sums = [f32::INFINITY; LANES];
        for (sum, (score, offset)) in sums.iter_mut().zip(scores.iter().zip(offsets)) {
            *sum = score + offset;
        }
        let worst = kept[kept.len() - 1].distance;
        // a count rather than a search: no branch, so that it is vectorised
        if sums.iter().map(|sum| u32::from(*sum < worst)).sum::<u32>() == 0 {
            continue;
        }
        for (at, &distance) in sums.iter().enumerate() {
            insert(kept, Nearest { cell: (part * LANES + at) as u32, distance });
        }
    }
}

/// Puts a candidate where it belongs; among equals the smaller cell goes first.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must be inlined into the dispatched instruction set")]
fn insert(kept: &mut [Nearest], candidate: Nearest) {
    let before = |a: &Nearest, b: &Nearest| {
        a.distance < b.distance || (a.distance == b.distance && a.cell < b.cell)
    };
    let last = kept.len() - 1;
    if candidate.distance.is_infinite() || !before(&candidate, &kept[last]) {
        return;
    }
    let place = kept.partition_point(|other| before(other, &candidate));
    kept[place..].rotate_right(1);
    kept[place] = candidate;
}
