//! The rules that move weights, as PyTorch's `Adam` and `SGD` have them.

use ivoro::vectors::vectorised;
use rayon::prelude::*;

use crate::engine::State;
use crate::recipe::Optimiser;

/// Shares of the old values in Adam's running means.
const BETAS: (f64, f64) = (0.9, 0.999);
/// Added to Adam's root.
const EPSILON: f32 = 1e-8;
/// Share of the old step in the new one.
const MOMENTUM: f32 = 0.9;
/// Weights that one task handles.
const VALUES: usize = 1 << 16;
/// So many tasks are not shared among cores.
const FEW: usize = 8;

/// Moves the learned weights along the gradient; `state.steps` counts this step already.
pub(crate) fn change(state: &mut State, gradient: &[f32], rule: Optimiser, rate: f32, decay: f32) {
    match rule {
        Optimiser::Momentum => state.move_by(
            gradient,
            #[inline(always)]
            |weights, gradient, steps, _| {
                let values = weights.iter_mut().zip(gradient).zip(steps);
                values.for_each(|((weight, gradient), step)| {
                    *step = MOMENTUM * *step + (gradient + decay * *weight);
                    *weight -= rate * *step;
                });
            },
        ),
        Optimiser::Adam => {
            let steps = i32::try_from(state.steps).unwrap_or(i32::MAX);
            let rate = (f64::from(rate) / (1.0 - BETAS.0.powi(steps))) as f32;
            let root = (1.0 - BETAS.1.powi(steps)).sqrt() as f32;
            let (mean_share, square_share) = ((1.0 - BETAS.0) as f32, (1.0 - BETAS.1) as f32);
            state.move_by(
                gradient,
                #[inline(always)]
                |weights, gradient, means, squares| {
                    let moments = means.iter_mut().zip(squares);
                    let values = weights.iter_mut().zip(gradient).zip(moments);
                    values.for_each(|((weight, gradient), (mean, square))| {
                        let gradient = gradient + decay * *weight;
                        *mean += mean_share * (gradient - *mean);
                        *square = BETAS.1 as f32 * *square + square_share * gradient * gradient;
                        *weight -= rate * *mean / (square.sqrt() / root + EPSILON);
                    });
                },
            );
        }
    }
}

impl State {
    /// Applies a rule to weights, gradient and both moments, part by part: on all cores, or on this
    /// one where others would wake too late.
    fn move_by(
        &mut self,
        gradient: &[f32],
        rule: impl Fn(&mut [f32], &[f32], &mut [f32], &mut [f32]) + Sync,
    ) {
        let rule =
            |weights: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32]| {
                vectorised(
                    #[inline(always)]
                    || rule(&mut *weights, gradient, &mut *first, &mut *second),
                );
            };
        let Self { learned, first, second, .. } = self;
        if learned.len() <= FEW * VALUES {
            return rule(learned, gradient, first, second);
        }
        let weights = learned.par_chunks_mut(VALUES).zip(gradient.par_chunks(VALUES));
        let moments = first.par_chunks_mut(VALUES).zip(second.par_chunks_mut(VALUES));
        weights.zip(moments).for_each(|((weights, gradient), (first, second))| {
            rule(weights, gradient, first, second);
        });
    }
}

/// Moves the running average, if there is one, towards the weights.
pub(super) fn follow(state: &mut State, share: f32) {
    let Some((learned, measured)) = &mut state.average else { return };
    let towards = |average: &mut [f32], weights: &[f32]| {
        average.iter_mut().zip(weights).for_each(|(average, weight)| {
            *average = share * *average + (1.0 - share) * weight;
        });
    };
    let pairs = learned.par_chunks_mut(VALUES).zip(state.learned.par_chunks(VALUES));
    pairs.for_each(|(average, weights)| towards(average, weights));
    towards(measured, &state.measured);
}
