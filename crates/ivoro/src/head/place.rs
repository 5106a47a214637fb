//! Where the points of a block are compared: around an origin of their own, and in a unit of their own
//! where their numbers are of an unusual size.
//!
//! Distances do not change when all points are moved. But products of numbers that are nearly one large
//! number cancel to nothing, and their squares need digits that 32 and even 64 bits do not have. So a
//! block whose first samples lie far from zero is moved to zero before all else. Powers of two are exact:
//! features of 1e-30 or 1e15 are multiplied by one, so that no square vanishes or overflows, and under a
//! metric with a ridge per feature each column gets one of its own where they are of mixed scale.

use std::fmt;

use crate::diagram::{far_origin, less};
use crate::head::settings::{RidgePer, Settings};
use crate::head::variant::Variant;
use crate::linalg::Symmetric;
use crate::matrix::Matrix;
use crate::vectors::largest_magnitude;

/// Binary exponents of the largest number up to which numbers are taken as they are.
const USUAL: f64 = 40.0;
/// Mean variance, in units of the median one, from which on columns are of mixed scale: networks give
/// features of up to 2, tables of measurements 10³ and more.
const MIXED: f64 = 16.0;
/// Least variance of a feature that its ridge is a share of, in units of the mean one.
const LEAST: f64 = 1e-6;

/// What is done to the points of a block: less the origin, times powers of two.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Place {
    /// Empty where it is zero.
    pub(crate) origin: Vec<f32>,
    /// Exponents of two, one a column; empty where they are all 0.
    pub(crate) exponents: Vec<i32>,
}

impl Place {
    /// The place for points like these; with `columns` each column may have a unit of its own.
    pub(crate) fn of(points: &Matrix, columns: bool) -> Self {
        let (means, variances) = moments(points);
        if columns && points.rows() > 1 && are_mixed(&variances) {
            let usual = median(&variances).sqrt();
            let exponent = |variance: &f64| {
                let size = if *variance > 0.0 { variance.sqrt() } else { usual };
                -(size.log2().floor() as i32)
            };
            let origin = means.into_iter().map(|mean| mean as f32).collect();
            return Self { origin, exponents: variances.iter().map(exponent).collect() };
        }
        let spread = variances.iter().any(|&variance| variance > 0.0);
        let origin = far_origin(points).filter(|_| spread).unwrap_or_default();
        let moved = if origin.is_empty() { None } else { Some(less(points, &origin)) };
        let largest = largest_magnitude(moved.as_ref().unwrap_or(points).as_slice());
        let exponent = f64::from(largest).log2().floor();
        let unusual = largest > 0.0 && exponent.abs() > USUAL;
        let exponents = if unusual { vec![-(exponent as i32); points.cols()] } else { Vec::new() };
        Self { origin, exponents }
    }

    /// Whether points stay as they are.
    pub(crate) fn is_usual(&self) -> bool {
        self.origin.is_empty() && self.exponents.is_empty()
    }

    /// Puts points there.
    pub(crate) fn put(&self, points: &mut Matrix) {
        if self.is_usual() {
            return;
        }
        let scales: Vec<f32> = self.exponents.iter().map(|&exponent| power(exponent)).collect();
        for at in 0..points.rows() {
            let row = points.row_mut(at);
            row.iter_mut().zip(&self.origin).for_each(|(value, from)| *value -= from);
            row.iter_mut().zip(&scales).for_each(|(value, scale)| *value *= scale);
        }
    }

    /// Points as they were before they were put there.
    pub(super) fn back(&self, mut points: Matrix) -> Matrix {
        for at in 0..points.rows() {
            let row = points.row_mut(at);
            row.iter_mut().zip(&self.exponents).for_each(|(value, &e)| *value *= power(-e));
            row.iter_mut().zip(&self.origin).for_each(|(value, from)| *value += from);
        }
        points
    }

    /// By what each column was multiplied; empty where by nothing.
    pub(super) fn scales(&self) -> Vec<f64> {
        self.exponents.iter().map(|&exponent| f64::from(exponent).exp2()).collect()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_usual() {
            return f.write_str("features as they are");
        }
        let square = |value: &f32| f64::from(*value) * f64::from(*value);
        let length = self.origin.iter().map(square).sum::<f64>().sqrt();
        let low = self.exponents.iter().min().copied().unwrap_or(0);
        let high = self.exponents.iter().max().copied().unwrap_or(0);
        write!(f, "an origin of length {length}, units of 2^{low} to 2^{high}")
    }
}

/// Whether columns with these variances are of mixed scale.
pub(super) fn are_mixed(variances: &[f64]) -> bool {
    let mean = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
    mean > MIXED * median(variances)
}

/// Whether columns may have units of their own: a metric whose ridge is the same for all features knows
/// one unit.
pub(crate) fn scales_columns(variant: Variant, settings: &Settings) -> bool {
    variant.is_metric() && settings.ridge_per != RidgePer::Mean
}

/// Adds the ridge of W: a share of the mean variance, or of each feature's own. Says whether it is the
/// former, the same for all features.
pub(crate) fn add_ridge(covariance: &mut Symmetric, place: &Place, settings: &Settings) -> bool {
    let (ridge, diagonal) = (settings.ridge, covariance.diagonal());
    // variances of features as they came
    let squares: Vec<f64> = place.scales().iter().map(|scale| scale * scale).collect();
    let own = |(at, variance): (usize, &f64)| variance / squares.get(at).unwrap_or(&1.0);
    let variances: Vec<f64> = diagonal.iter().enumerate().map(own).collect();
    let per_feature = match settings.ridge_per {
        RidgePer::Mean => false,
        RidgePer::Feature => true,
        RidgePer::Auto => are_mixed(&variances),
    };
    let mean = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
    if !per_feature && squares.is_empty() {
        covariance.add_diagonal(ridge * covariance.mean_diagonal());
        return true;
    }
    // a feature that varies in no class: as much as rounding leaves of the others
    let least = diagonal.iter().sum::<f64>() / diagonal.len().max(1) as f64 * LEAST;
    let added = diagonal.iter().enumerate().map(|(at, variance)| {
        let same = mean * squares.get(at).unwrap_or(&1.0);
        ridge * if per_feature { variance.max(least) } else { same }
    });
    let added: Vec<f64> = added.collect();
    covariance.add_to_diagonal(&added);
    false
}

/// The median of what is above zero; infinite if nothing is.
fn median(variances: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = variances.iter().copied().filter(|v| *v > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// A power of two as close as `f32` has it.
fn power(exponent: i32) -> f32 {
    f64::from(exponent.clamp(-126, 127)).exp2() as f32
}

/// Mean and variance of each column.
fn moments(points: &Matrix) -> (Vec<f64>, Vec<f64>) {
    let count = points.rows().max(1) as f64;
    let mut means = vec![0f64; points.cols()];
    for row in points.iter_rows() {
        means.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value) / count);
    }
    let mut variances = vec![0f64; points.cols()];
    for row in points.iter_rows() {
        for ((variance, &value), mean) in variances.iter_mut().zip(row).zip(&means) {
            *variance += (f64::from(value) - mean).powi(2) / count;
        }
    }
    (means, variances)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;

    fn some(scale: impl Fn(usize) -> f64, plus: f64) -> Matrix {
        let value = |at: usize| (plus + scale(at % 5) * (unit(1, at as u64) - 0.5)) as f32;
        Matrix::new(40, 5, (0..200).map(value).collect()).unwrap()
    }

    #[test]
    fn usual_numbers_stay_as_they_are() {
        for (scale, plus) in [(1.0, 0.0), (1e-9, 0.0), (1e9, 0.0), (3.0, 20.0)] {
            assert!(Place::of(&some(|_| scale, plus), true).is_usual(), "{scale} {plus}");
        }
        // whether a single sample is far from others can't be known
        assert!(Place::of(&some(|_| 1.0, 1e4).select(&[0]), true).is_usual());
        assert!(Place::of(&Matrix::zeros(3, 5), true).is_usual());
    }

    #[test]
    fn what_is_far_small_large_or_mixed_comes_close_to_one() {
        let mixed = |at: usize| [1e-3, 1.0, 1e4, 2.0, 0.5][at];
        for (points, columns) in [
            (some(|_| 5.0, 1e4), false),
            (some(|_| 1e-30, 0.0), false),
            (some(|_| 1e15, 3e14), false),
            (some(mixed, 0.0), true),
        ] {
            let place = Place::of(&points, columns);
            let mut put = points.clone();
            place.put(&mut put);
            let largest = largest_magnitude(put.as_slice());
            assert!(!place.is_usual() && (0.5..16.0).contains(&largest), "{largest}");
            let back = place.back(put);
            for (found, expected) in back.as_slice().iter().zip(points.as_slice()) {
                assert!((found - expected).abs() <= 1e-3 * expected.abs(), "{found} {expected}");
            }
        }
        assert!(Place::of(&some(mixed, 0.0), false).is_usual());
    }
}
