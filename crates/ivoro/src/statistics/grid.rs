//! The fixed-point grid on which samples are added.

use serde::{Deserialize, Serialize};

use crate::matrix::Matrix;
use crate::vectors::largest_magnitude;

/// Bits below the range kept of each value in sums.
const SUM_BITS: i32 = 40;
/// Bits below the range kept of each value in second moments.
const SQUARE_BITS: i32 = 21;

/// How many bits beyond its range a grid takes values: sums become wider then, and their unit stays.
const GROWTH: i32 = 32;

/// Exponents whose units and their squares are ordinary `f64` numbers; the largest covers all `f32`.
const LEAST_EXPONENT: i32 = -120;
const MOST_EXPONENT: i32 = 132;

/// The fixed-point grid of one block: values in ±2^exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    exponent: i32,
}

impl Grid {
    /// The grid for values like these: at least four times the largest magnitude, and a power
    /// of 16 so that sites with similar data choose the same one.
    pub fn covering(block: &Matrix) -> Self {
        let max = largest_magnitude(block.as_slice());
        if max == 0.0 {
            return Self { exponent: 0 };
        }
        let bits = (f64::from(max) * 4.0).log2().ceil() as i32;
        let exponent = bits.div_euclid(4) * 4 + if bits.rem_euclid(4) > 0 { 4 } else { 0 };
        Self { exponent: exponent.clamp(LEAST_EXPONENT, MOST_EXPONENT) }
    }

    /// A grid with the given exponent, as read from a file.
    pub fn from_exponent(exponent: i32) -> Option<Self> {
        (LEAST_EXPONENT..=MOST_EXPONENT).contains(&exponent).then_some(Self { exponent })
    }

    /// Exponent of the range.
    pub fn exponent(self) -> i32 {
        self.exponent
    }

    /// Largest magnitude on the grid.
    pub fn limit(self) -> f64 {
        f64::from(self.exponent).exp2()
    }

    /// Largest magnitude that sums can grow to hold.
    pub fn most(self) -> f64 {
        f64::from(self.exponent + GROWTH).exp2()
    }

    pub(super) fn sum_unit(self) -> f64 {
        f64::from(self.exponent - SUM_BITS).exp2()
    }

    pub(super) fn square_unit(self) -> f64 {
        f64::from(self.exponent - SQUARE_BITS).exp2()
    }

    /// How much of a variance may be rounding, where values are of this size.
    pub(crate) fn noise(self, size: f64) -> f64 {
        self.square_unit() * size
    }

    /// Unit of second moments.
    pub(crate) fn product_unit(self) -> f64 {
        self.square_unit() * self.square_unit()
    }
}
