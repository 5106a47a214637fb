//! What becomes of each number after an operation.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use ivoro::vectors::vectorised;

use crate::network::Clip;

/// What becomes of each number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Activation {
    /// What is less becomes the least, what is more the most: ReLU is from 0 on.
    Clip {
        /// The least number, −∞ if there is none.
        least: f32,
        /// The greatest number, ∞ if there is none.
        most: f32,
    },
    /// `1 / (1 + e⁻ˣ)`.
    Sigmoid,
    /// `x / (1 + e⁻ˣ)`, also called swish.
    Silu,
    /// `slope · x + shift` within 0 and 1.
    HardSigmoid {
        /// What a number is multiplied by.
        slope: f32,
        /// What is then added.
        shift: f32,
    },
    /// `x` times its hard sigmoid of slope 1/6 and shift 1/2.
    HardSwish,
    /// `x · (1 + erf(x / √2)) / 2`.
    Gelu,
    /// GELU with `tanh` for the error function: `x · sigmoid(√(8/π) · (x + 0.044_715 · x³))`.
    TanhGelu,
    /// GELU as CLIP has it: `x · sigmoid(1.702 · x)`.
    QuickGelu,
}

impl Activation {
    /// Numbers stay as they are.
    pub(super) const NONE: Self = Self::Clip { least: f32::NEG_INFINITY, most: f32::INFINITY };
    /// Negative numbers become 0.
    pub(crate) const RELU: Self = Self::Clip { least: 0.0, most: f32::INFINITY };

    /// The limits that numbers are cut off at while they are in registers, and whether more is
    /// to be done after that.
    pub(super) fn limits(self) -> (f32, f32) {
        match self {
            Self::Clip { least, most } => (least, most),
            _ => (f32::NEG_INFINITY, f32::INFINITY),
        }
    }

    /// The same as a network of operations has it, if it can be said so.
    pub(super) fn clip(self) -> Option<Clip> {
        let Self::Clip { least, most } = self else { return None };
        let finite = |limit: f32| Some(limit).filter(|limit| limit.is_finite());
        Some(Clip { least: finite(least), most: finite(most) })
    }

    /// Applies it to numbers.
    pub(crate) fn apply(self, numbers: &mut [f32]) {
        match self {
            Self::NONE => {}
            Self::Clip { least, most } => each(numbers, |x| clip(x, least, most)),
            Self::Sigmoid => each(numbers, sigmoid),
            Self::Silu => each(numbers, |x| x * sigmoid(x)),
            Self::HardSigmoid { slope, shift } => {
                each(numbers, |x| clip(slope * x + shift, 0.0, 1.0));
            }
            Self::HardSwish => each(numbers, |x| x * clip(x / 6.0 + 0.5, 0.0, 1.0)),
            Self::Gelu => each(numbers, gelu),
            Self::QuickGelu => each(numbers, |x| x * sigmoid(1.702 * x)),
            Self::TanhGelu => {
                each(numbers, |x| x * sigmoid(1.595_769 * (x + 0.044_715 * x * x * x)));
            }
        }
    }

    /// Applies what is left after the limits.
    pub(super) fn apply_rest(self, numbers: &mut [f32]) {
        if !matches!(self, Self::Clip { .. }) {
            self.apply(numbers);
        }
    }

    /// Adds a number to each channel of rows, and then applies it.
    pub(super) fn apply_with_bias(self, rows: &mut [f32], bias: &[f32]) {
        let (least, most) = self.limits();
        vectorised(
            #[inline(always)]
            || {
                for row in rows.chunks_exact_mut(bias.len()) {
                    let values = row.iter_mut().zip(bias);
                    values.for_each(|(value, bias)| *value = clip(*value + bias, least, most));
                }
            },
        );
    }
}

/// Replaces each number, side by side in vectors.
#[inline(always)]
fn each(numbers: &mut [f32], one: impl Fn(f32) -> f32) {
    vectorised(
        #[inline(always)]
        || numbers.iter_mut().for_each(|number| *number = one(*number)),
    );
}

/// `eˣ` to 2 units in the last place, without a call, so that loops of it become vectors: a power
/// of 2 and a polynomial for what is left (Cephes, `expf`). Beyond what a number can hold it is
/// the least or the greatest of them.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// Added to a number below 2²² it leaves the nearest whole number in the last bits.
    const ROUND: f32 = 12_582_912.0;
    let x = clip(x, -87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts, the first of which has few bits
    let rest = (x - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let mut sum = 1.987_569_1e-4;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
        sum = sum * rest + factor;
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    (sum * rest * rest + rest + 1.0) * power
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function of Abramowitz and Stegun, 7.1.26: off by 1.5e-7 at most.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let place = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * place);
    let mut sum = 1.061_405_4;
    for factor in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
        sum = sum * t + factor;
    }
    let erf = 1.0 - sum * t * exp(-place * place);
    if x < 0.0 { -erf } else { erf }
}

/// A number within limits; a value that is no number stays so.
#[inline(always)]
fn clip(value: f32, least: f32, most: f32) -> f32 {
    let value = if value < least { least } else { value };
    if value > most { most } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An activation of a number in double precision.
    fn exact(activation: Activation, x: f64) -> f64 {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        match activation {
            Activation::Clip { least, most } => x.clamp(least.into(), most.into()),
            Activation::Sigmoid => sigmoid(x),
            Activation::Silu => x * sigmoid(x),
            Activation::HardSigmoid { slope, shift } => {
                (f64::from(slope) * x + f64::from(shift)).clamp(0.0, 1.0)
            }
            Activation::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
            Activation::Gelu => x * (1.0 + erf(x / 2f64.sqrt())) / 2.0,
            Activation::QuickGelu => x * sigmoid(1.702 * x),
            Activation::TanhGelu => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
                x * (1.0 + inner.tanh()) / 2.0
            }
        }
    }

    /// The error function as the integral that it is.
    fn erf(x: f64) -> f64 {
        let steps = 2000;
        let width = x / f64::from(steps);
        let middle = |step: i32| (-((f64::from(step) + 0.5) * width).powi(2)).exp();
        (0..steps).map(middle).sum::<f64>() * width * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn each_number_is_near_that_of_its_formula() {
        let all = [
            Activation::NONE,
            Activation::RELU,
            Activation::Clip { least: -1.5, most: 6.0 },
            Activation::Sigmoid,
            Activation::Silu,
            Activation::HardSigmoid { slope: 0.2, shift: 0.5 },
            Activation::HardSwish,
            Activation::Gelu,
            Activation::TanhGelu,
            Activation::QuickGelu,
        ];
        let numbers: Vec<f32> = (-1200..1200).map(|at| at as f32 * 0.01).collect();
        for activation in all {
            let mut found = numbers.clone();
            activation.apply(&mut found);
            for (x, found) in numbers.iter().zip(found) {
                let expected = exact(activation, f64::from(*x));
                let most = 1e-6 * expected.abs().max(1.0);
                let error = (f64::from(found) - expected).abs();
                assert!(error < most, "{activation:?} of {x}: {found} instead of {expected}");
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_so_and_nothing_overflows() {
        let all = [Activation::RELU, Activation::Sigmoid, Activation::Silu, Activation::Gelu];
        for activation in all {
            let mut numbers = [f32::NAN, 1e30, -1e30];
            activation.apply(&mut numbers);
            assert!(numbers[0].is_nan(), "{activation:?}");
            assert!(numbers[1..].iter().all(|number| number.is_finite()), "{numbers:?}");
        }
    }
}
