//! Letter **N**: h_λ ∘ g_{w,η} ∘ f, the parameterised feature transformation.
//!
//! f(z) = z / ‖z‖₂, g(z) = w·z + η, h(z) = z^λ (λ ≠ 0) or log z (λ = 0).
//!
//! What the formulas leave open: a zero vector stays zero under f; under h a negative entry keeps
//! its sign, −|z|^λ; for λ ≤ 0 magnitudes below [`FLOOR`] count as [`FLOOR`], so that log 0 and
//! 0^λ are finite (log of a negative entry is the log of the floor).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::matrix::Matrix;
use crate::setting_range::SettingRange;

/// Smallest magnitude seen by a logarithm or a negative power.
pub const FLOOR: f32 = 1e-6;

/// Which values the parameters may have.
pub(crate) const LAMBDA: SettingRange = SettingRange::WithinTen;
pub(crate) const SCALE: SettingRange = SettingRange::Positive;
pub(crate) const SHIFT: SettingRange = SettingRange::Finite;

/// The parameters of the transformation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transform {
    /// Exponent λ of Tukey's ladder; 0 is the logarithm.
    pub lambda: f64,
    /// Factor w.
    pub scale: f64,
    /// Shift η.
    pub shift: f64,
}

impl Transform {
    /// Checks that the parameters are finite and the factor is not zero.
    pub fn new(lambda: f64, scale: f64, shift: f64) -> Result<Self> {
        LAMBDA.check_number("lambda", lambda)?;
        SCALE.check_number("scale", scale)?;
        SHIFT.check_number("shift", shift)?;
        Ok(Self { lambda, scale, shift })
    }

    /// Every row transformed.
    pub fn apply(&self, points: &Matrix) -> Matrix {
        self.changed(points.clone())
    }

    fn changed(&self, mut points: Matrix) -> Matrix {
        let cols = points.cols().max(1);
        points.as_mut_slice().par_chunks_mut(cols * 64).for_each(|rows| {
            rows.chunks_exact_mut(cols).for_each(|row| self.apply_row(row));
        });
        points
    }

    /// Every row brought to length w; a zero row stays zero.
    pub(crate) fn with_equal_lengths(&self, points: Matrix) -> Matrix {
        Self { lambda: 1.0, scale: self.scale, shift: 0.0 }.changed(points)
    }

    fn apply_row(&self, row: &mut [f32]) {
        let norm = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
        let factor = if norm > 0.0 { (self.scale / norm) as f32 } else { 0.0 };
        let shift = self.shift as f32;
        row.iter_mut().for_each(|value| *value = *value * factor + shift);
        self.power(row);
    }

    fn power(&self, row: &mut [f32]) {
        let lambda = self.lambda as f32;
        if self.lambda == 1.0 {
        } else if self.lambda == 0.5 {
            row.iter_mut().for_each(|value| *value = value.abs().sqrt().copysign(*value));
        } else if self.lambda > 0.0 {
            row.iter_mut().filter(|value| **value != 0.0).for_each(|value| {
                *value = value.abs().powf(lambda).copysign(*value);
            });
        } else if self.lambda < 0.0 {
            row.iter_mut().for_each(|value| {
                *value = value.abs().max(FLOOR).powf(lambda).copysign(*value);
            });
        } else {
            row.iter_mut().for_each(|value| *value = value.max(FLOOR).ln());
        }
    }
}

/// Each row divided by its length; a zero row stays zero.
pub fn normalise_rows(points: &Matrix) -> Matrix {
    Transform { lambda: 1.0, scale: 1.0, shift: 0.0 }.apply(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(lambda: f64, scale: f64, shift: f64, row: &[f32]) -> Vec<f32> {
        let points = Matrix::new(1, row.len(), row.to_vec()).unwrap();
        Transform::new(lambda, scale, shift).unwrap().apply(&points).into_vec()
    }

    #[test]
    fn composes_length_factor_shift_and_power() {
        // ((3, 4)/5 · 10 + 2)^0.5 = (8, 10)^0.5
        let found = one(0.5, 10.0, 2.0, &[3.0, 4.0]);
        assert!((found[0] - 8f32.sqrt()).abs() < 1e-6 && (found[1] - 10f32.sqrt()).abs() < 1e-6);
        let found = one(0.7, 10.0, 2.0, &[3.0, 4.0]);
        assert!((found[0] - 8f32.powf(0.7)).abs() < 1e-5);
        let found = one(0.0, 5.0, 0.0, &[3.0, 4.0]);
        assert!((found[0] - 3f32.ln()).abs() < 1e-6);
    }

    #[test]
    fn zero_negative_and_non_positive_entries_are_defined() {
        assert_eq!(one(0.5, 1.0, 0.0, &[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(one(0.3, 1.0, 0.0, &[0.0, 2.0])[0], 0.0);
        let found = one(0.5, 1.0, 0.0, &[-3.0, 4.0]);
        assert!((found[0] + 0.6f32.sqrt()).abs() < 1e-6);
        for lambda in [0.0, -0.5] {
            assert!(one(lambda, 1.0, 0.0, &[0.0, -1.0]).iter().all(|v| v.is_finite()));
        }
    }

    #[test]
    fn equal_lengths_are_w_and_a_zero_row_stays_zero() {
        let points = Matrix::new(2, 2, vec![3.0, 4.0, 0.0, 0.0]).unwrap();
        let transform = Transform::new(0.5, 10.0, 0.0).unwrap();
        let found = transform.with_equal_lengths(transform.apply(&points)).into_vec();
        assert!((found[0].hypot(found[1]) - 10.0).abs() < 1e-5);
        assert!((found[0] / found[1] - (3f32 / 4.0).sqrt()).abs() < 1e-6);
        assert_eq!(found[2..], [0.0, 0.0]);
    }

    #[test]
    fn senseless_parameters_are_refused() {
        assert!(Transform::new(f64::NAN, 1.0, 0.0).is_err());
        assert!(Transform::new(0.5, 0.0, 0.0).is_err());
        assert!(Transform::new(0.5, 1.0, f64::INFINITY).is_err());
    }
}
