//! The ridge of a lifted regression, chosen on samples held out.
//!
//! Of every class each fifth sample is held out; the regression on the others is scored by its
//! mean squared error on them for λ = 10⁻⁶ … 10⁶. Since there are fewer samples n than lifted
//! dimensions, the regression is solved in its dual form,
//!
//! ```text
//! K = H·Hᵀ,   A = (K + λ·I)⁻¹·Y,   predictions = H'·Hᵀ·A,
//! ```
//!
//! n × n, which gives the same predictions. At most [`ROWS`] samples take part, the same number of
//! each class as far as they go.

use super::intake::Phase;
use super::rows::one_hot;
use ivoro::Matrix;
use ivoro::lift::Lift;
use ivoro::linalg::{self, Symmetric};

/// Most samples that take part, fitted and held out together.
const ROWS: usize = 3200;

/// Of how many samples one is held out.
const FOLD: usize = 5;

/// Exponents of ten tried.
const EXPONENTS: std::ops::RangeInclusive<i32> = -6..=6;

/// Used when no class has enough samples to hold one out.
const FALLBACK: f64 = 1.0;

/// The power of ten with the smallest error; the smaller one if two are equal.
pub(super) fn choose(lift: &Lift, phase: &Phase<'_>) -> f64 {
    let (fitted, held) = parts(&phase.members);
    if held.is_empty() {
        return FALLBACK;
    }
    let lifted = lift.apply(&phase.points.select(&fitted));
    let kernel = linalg::times_transposed(&lift.apply(&phase.points.select(&held)), &lifted);
    let mut gram = Symmetric::zeros(fitted.len());
    gram.add_gram(&lifted.transposed(), 1.0);
    let classes = phase.members.len();
    let of = |rows: &[usize]| rows.iter().map(|&row| phase.labels[row]).collect::<Vec<_>>();
    let targets = one_hot(&of(&fitted), classes).transposed();
    let held = of(&held);
    let mut best = (f64::INFINITY, FALLBACK);
    for ridge in EXPONENTS.map(|exponent| 10_f64.powi(exponent)) {
        let mut matrix = gram.clone();
        matrix.add_diagonal(ridge);
        // a ridge too small for the precision at hand is no candidate
        let Ok(factor) = matrix.factor("lifted kernel", ridge) else { continue };
        let predictions = linalg::times_transposed(&kernel, &factor.solve(&targets));
        let error = squared_error(&predictions, &held);
        if error < best.0 {
            best = (error, ridge);
        }
    }
    best.1
}

/// Rows to fit and rows held out.
pub(super) fn parts(members: &[Vec<usize>]) -> (Vec<usize>, Vec<usize>) {
    let share = (ROWS / members.len().max(1)).max(FOLD);
    let (mut fitted, mut held) = (Vec::new(), Vec::new());
    for rows in members {
        for (at, &row) in rows.iter().take(share).enumerate() {
            let part = if at % FOLD == FOLD - 1 { &mut held } else { &mut fitted };
            part.push(row);
        }
    }
    (fitted, held)
}

fn squared_error(predictions: &Matrix, labels: &[usize]) -> f64 {
    let error = |(row, &class): (&[f32], &usize)| -> f64 {
        let target = |at: usize| if at == class { 1.0 } else { 0.0 };
        row.iter().enumerate().map(|(at, &value)| (f64::from(value) - target(at)).powi(2)).sum()
    };
    predictions.iter_rows().zip(labels).map(error).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fifth_sample_of_a_class_is_held_out() {
        let (fitted, held) = parts(&[vec![0, 2, 4, 6, 8, 9], vec![1, 3, 5]]);
        assert_eq!((fitted, held), (vec![0, 2, 4, 6, 9, 1, 3, 5], vec![8]));
    }

    #[test]
    fn large_phases_are_thinned_evenly() {
        let members: Vec<Vec<usize>> =
            (0..4).map(|c| (c * 9000..(c + 1) * 9000).collect()).collect();
        let (fitted, held) = parts(&members);
        assert_eq!((fitted.len(), held.len()), (2560, 640));
    }
}
