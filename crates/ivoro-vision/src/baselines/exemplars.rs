//! Kept images, for the methods that keep some. A [`PhaseData`](super::phase_data::PhaseData) shows
//! images of its own phase and those of a [`Memory`]: a method without one can't get at an image of
//! an earlier phase.

use std::ops::Range;

use ivoro::Matrix;
use ivoro::random::{mix, permutation};

use super::losses::{mean, normalised};

/// Images kept per class, where no policy says how many.
pub(super) const EACH: usize = 20;

/// Rows of the training part that are kept, class by class in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    rows: Vec<usize>,
    /// Where the rows of each class end.
    ends: Vec<usize>,
}

impl Memory {
    /// Keeps the images of the next class whose mean comes closest to the class's own, at most so
    /// many; `rows` are their places, `points` what the network makes of them.
    pub(super) fn keep(&mut self, rows: &[usize], points: &Matrix, most: usize) {
        let chosen = herd(points, most);
        self.rows.extend(chosen.into_iter().map(|at| rows[at]));
        self.ends.push(self.rows.len());
    }

    /// All rows kept.
    pub(super) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The rows kept of each class.
    pub(super) fn by_class(&self) -> impl Iterator<Item = &[usize]> {
        between(&self.ends).map(|span| &self.rows[span])
    }

    /// Lets go of the images of each class that were chosen last, so that it has no more than this.
    pub(super) fn limit(&mut self, most: &[usize]) {
        let shorter = |(rows, &most): (&[usize], &usize)| rows[..most.min(rows.len())].to_vec();
        let kept: Vec<Vec<usize>> = self.by_class().zip(most).map(shorter).collect();
        *self = Self::default();
        for rows in kept {
            self.rows.extend(rows);
            self.ends.push(self.rows.len());
        }
    }

    /// Lets go of all but the first classes, so that others can be kept of them.
    pub(super) fn truncate(&mut self, classes: usize) {
        self.ends.truncate(classes);
        self.rows.truncate(self.ends.last().copied().unwrap_or(0));
    }
}

/// As many images of each class of a phase as there is room for, drawn at random.
pub(super) fn admitted(by_class: &[Vec<usize>], room: usize, seed: u64) -> Vec<usize> {
    let each = room / by_class.len().max(1);
    let drawn = by_class.iter().enumerate().flat_map(|(class, rows)| {
        let order = permutation(mix(seed, class as u64), rows.len());
        order.into_iter().take(each).map(|at| rows[at])
    });
    let mut drawn: Vec<usize> = drawn.collect();
    drawn.sort_unstable();
    drawn
}

/// What lies between ends, the first beginning at 0.
pub(super) fn between(ends: &[usize]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| start..end)
}

/// The points, one after another, that bring the mean of those chosen closest to the mean of all;
/// each at length 1.
pub(super) fn herd(points: &Matrix, count: usize) -> Vec<usize> {
    let (unit, _) = normalised(points);
    let dims = unit.cols();
    let mean = mean(&unit);
    let mut chosen: Vec<usize> = Vec::new();
    let mut sum = vec![0f64; dims];
    while chosen.len() < count.min(unit.rows()) {
        let share = 1.0 / (chosen.len() + 1) as f64;
        let off = |at: usize| -> f64 {
            let values = unit.row(at).iter().zip(&sum).zip(&mean);
            values.map(|((&x, sum), mean)| (mean - share * (sum + f64::from(x))).powi(2)).sum()
        };
        let rest = (0..unit.rows()).filter(|at| !chosen.contains(at)).map(|at| (off(at), at));
        let Some((_, best)) = rest.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        sum.iter_mut().zip(unit.row(best)).for_each(|(sum, &x)| *sum += f64::from(x));
        chosen.push(best);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_chosen_points_approaches_that_of_all() {
        let value = |at: usize| ivoro::random::unit(3, at as u64) as f32 + 0.1;
        let points = Matrix::new(60, 8, (0..480).map(value).collect()).unwrap();
        let (unit, _) = normalised(&points);
        let mean = |rows: &[usize]| -> Vec<f64> {
            let column = |at: usize| {
                rows.iter().map(|&row| f64::from(unit.row(row)[at])).sum::<f64>()
                    / rows.len() as f64
            };
            (0..8).map(column).collect()
        };
        let all = mean(&(0..60).collect::<Vec<_>>());
        let off = |rows: &[usize]| -> f64 {
            mean(rows).iter().zip(&all).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        let chosen = herd(&points, 20);
        assert!(off(&chosen) < 0.2 * off(&chosen[..1]));
        // twenty in a row, unchosen, are further off
        assert!(off(&chosen) < 0.5 * off(&(0..20).collect::<Vec<_>>()));
        let mut once = chosen.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), 20);
    }

    #[test]
    fn a_class_of_few_images_is_kept_whole() {
        let mut memory = Memory::default();
        memory.keep(&[7, 9], &Matrix::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap(), EACH);
        memory.keep(&[3], &Matrix::new(1, 2, vec![1.0, 1.0]).unwrap(), EACH);
        let by_class: Vec<&[usize]> = memory.by_class().collect();
        assert_eq!((by_class[0].len(), by_class[1]), (2, &[3][..]));
        assert_eq!(memory.rows().len(), 3);
        // what is kept of the second class is chosen anew
        memory.truncate(1);
        memory.keep(&[5], &Matrix::new(1, 2, vec![1.0, 1.0]).unwrap(), EACH);
        assert_eq!((memory.rows().len(), memory.by_class().last()), (3, Some(&[5][..])));
    }

    #[test]
    fn a_shorter_memory_has_the_images_that_were_chosen_first() {
        let mut memory = Memory::default();
        memory.keep(&[7, 9], &Matrix::new(2, 2, vec![1.0, 0.0, 0.8, 0.6]).unwrap(), 2);
        memory.keep(&[3, 4], &Matrix::new(2, 2, vec![1.0, 0.0, 1.0, 0.1]).unwrap(), 1);
        let first = memory.rows()[0];
        memory.limit(&[1, 5]);
        let by_class: Vec<&[usize]> = memory.by_class().collect();
        assert_eq!((by_class[0], by_class[1].len()), (&[first][..], 1));
    }

    #[test]
    fn a_phase_without_room_for_all_images_has_as_many_of_every_class() {
        let by_class = [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![9]];
        let drawn = admitted(&by_class, 7, 3);
        let count = |rows: &[usize]| rows.iter().filter(|row| drawn.contains(row)).count();
        assert_eq!(by_class.each_ref().map(|rows| count(rows)), [2, 2, 1]);
        assert_ne!(drawn, admitted(&by_class, 7, 4));
    }
}
