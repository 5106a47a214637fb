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
        }
    }

    /// The same as a network of operations has it, if it can be said so.
    #[expect(clippy::unnecessary_wraps, reason = "other activations have no such form")]
    pub(super) fn clip(self) -> Option<Clip> {
        let Self::Clip { least, most } = self;
        let finite = |limit: f32| Some(limit).filter(|limit| limit.is_finite());
        Some(Clip { least: finite(least), most: finite(most) })
    }

    /// Applies it to numbers.
    pub(super) fn apply(self, numbers: &mut [f32]) {
        match self {
            Self::NONE => {}
            Self::Clip { least, most } => vectorised(
                #[inline(always)]
                || numbers.iter_mut().for_each(|number| *number = clip(*number, least, most)),
            ),
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

/// A number within limits; a value that is no number stays so.
#[inline(always)]
fn clip(value: f32, least: f32, most: f32) -> f32 {
    let value = if value < least { least } else { value };
    if value > most { most } else { value }
}
