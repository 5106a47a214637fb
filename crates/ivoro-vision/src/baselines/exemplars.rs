//! Kept images, for the methods that keep some. A [`PhaseData`](super::phase_data::PhaseData) shows
//! images of its own phase and those of a [`Memory`]: a method without one can't get at an image of
//! an earlier phase.

use std::ops::Range;

use ivoro::Matrix;

use super::losses::{mean, normalised};

/// Images kept per class.
pub(super) const EACH: usize = 20;

/// Rows of the training part that are kept, class by class in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    rows: Vec<usize>,
    /// Where the rows of each class end.
    ends: Vec<usize>,
}

impl Memory {
    /// Keeps the images of the next class whose mean comes closest to the class's own; `rows` are
    /// their places, `points` what the network makes of them.
    pub(super) fn keep(&mut self, rows: &[usize], points: &Matrix) {
        let chosen = herd(points, EACH);
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

    /// Lets go of all but the first classes, so that others can be kept of them.
    pub(super) fn truncate(&mut self, classes: usize) {
        self.ends.truncate(classes);
        self.rows.truncate(self.ends.last().copied().unwrap_or(0));
    }
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
        memory.keep(&[7, 9], &Matrix::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap());
        memory.keep(&[3], &Matrix::new(1, 2, vec![1.0, 1.0]).unwrap());
        let by_class: Vec<&[usize]> = memory.by_class().collect();
        assert_eq!((by_class[0].len(), by_class[1]), (2, &[3][..]));
        assert_eq!(memory.rows().len(), 3);
        // what is kept of the second class is chosen anew
        memory.truncate(1);
        memory.keep(&[5], &Matrix::new(1, 2, vec![1.0, 1.0]).unwrap());
        assert_eq!((memory.rows().len(), memory.by_class().last()), (3, Some(&[5][..])));
    }
}
