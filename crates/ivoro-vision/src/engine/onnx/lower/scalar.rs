//! A number that is made of another one, known by what it is at some places.
//!
//! Exporters write an activation in as many ways as there are, each with several operators. Whatever
//! the way: what it gives at enough places tells which one it is.

use std::array::from_fn;

use crate::engine::cpu::activation::{Activation, erf};

/// How many places are looked at.
const PLACES: usize = 24;
/// How far two numbers that are taken for one may be apart, by their size: less than the two kinds of
/// GELU are.
const NEAR: f64 = 2e-5;

/// What a number is made of another one, at some places.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar([f64; PLACES]);

/// The places: from -9 to 9, none of which is a round number.
fn places() -> [f32; PLACES] {
    from_fn(|at| (at as f32 - 12.0) * 0.771 + 0.013)
}

impl Scalar {
    /// The number itself.
    pub(super) fn itself() -> Self {
        Self(places().map(f64::from))
    }

    /// What becomes of it.
    pub(super) fn then(&self, next: impl Fn(f64) -> f64) -> Self {
        Self(self.0.map(next))
    }

    /// What an activation makes of it.
    pub(super) fn activated(&self, activation: Activation) -> Self {
        let mut numbers = self.0.map(|number| number as f32);
        activation.apply(&mut numbers);
        Self(numbers.map(f64::from))
    }

    /// What two of them make.
    pub(super) fn with(&self, other: &Self, next: impl Fn(f64, f64) -> f64) -> Self {
        Self(from_fn(|at| next(self.0[at], other.0[at])))
    }

    /// Its error function.
    pub(super) fn erf(&self) -> Self {
        self.then(|number| f64::from(erf(number as f32)))
    }

    fn is_near(&self, other: &Self) -> bool {
        let near = |(one, other): (&f64, &f64)| (one - other).abs() <= NEAR * other.abs().max(1.0);
        self.0.iter().zip(&other.0).all(near)
    }

    /// The activation that it is.
    pub(super) fn activation(&self) -> Option<Activation> {
        let known = [
            Activation::Gelu,
            Activation::TanhGelu,
            Activation::QuickGelu,
            Activation::Silu,
            Activation::HardSwish,
            Activation::Sigmoid,
        ];
        known.into_iter().find(|&activation| self.is_near(&Self::itself().activated(activation)))
    }

    /// The factor and the shift that it is, if it is no more than that.
    pub(super) fn linear(&self) -> Option<(f64, f64)> {
        let (places, last) = (places().map(f64::from), PLACES - 1);
        let factor = (self.0[last] - self.0[0]) / (places[last] - places[0]);
        let shift = self.0[0] - factor * places[0];
        let size = factor.abs().max(shift.abs());
        let near = |(number, place): (&f64, f64)| {
            (number - (factor * place + shift)).abs() <= 1e-9 * (1.0 + place.abs()) * size
        };
        let whole = factor.is_finite() && shift.is_finite();
        (whole && self.0.iter().zip(places).all(near)).then_some((factor, shift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activation_is_known_however_it_is_written() {
        let x = Scalar::itself();
        let half = |number: f64| number * 0.5;
        let error = x.then(|number| number / f64::from(2f32.sqrt())).erf();
        let first = x.with(&error.then(|number| number + 1.0), |a, b| a * b).then(half);
        let second = x.then(half).with(&error.then(|number| 1.0 + number), |a, b| a * b);
        assert_eq!(first.activation(), Some(Activation::Gelu));
        assert_eq!(second.activation(), Some(Activation::Gelu));
        let cube = x.then(|number| number.powi(3) * 0.044_715);
        let inner = x.with(&cube, |a, b| a + b).then(|number| number * 0.797_884_6);
        let tanh = x.then(half).with(&inner.then(f64::tanh), |a, b| a * (b + 1.0));
        assert_eq!(tanh.activation(), Some(Activation::TanhGelu));
        let quick = x.then(|number| number * 1.702).activated(Activation::Sigmoid);
        assert_eq!(x.with(&quick, |a, b| a * b).activation(), Some(Activation::QuickGelu));
        let gate = x.activated(Activation::Sigmoid);
        assert_eq!(gate.activation(), Some(Activation::Sigmoid));
        assert_eq!(x.with(&gate, |a, b| a * b).activation(), Some(Activation::Silu));
        assert_eq!(cube.activation(), None);
    }

    #[test]
    fn a_factor_and_a_shift_are_seen() {
        let x = Scalar::itself();
        assert_eq!(x.linear(), Some((1.0, 0.0)));
        let (factor, shift) = x.then(|number| number * 0.125 - 3.0).linear().unwrap();
        assert!((factor - 0.125).abs() < 1e-12 && (shift + 3.0).abs() < 1e-12);
        assert_eq!(x.then(|number| number * number).linear(), None);
        assert_eq!(x.then(|_| f64::NAN).linear(), None);
    }
}
