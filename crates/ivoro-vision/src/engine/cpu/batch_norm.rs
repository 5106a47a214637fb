//! Batch norm with what follows it: the shortcut is added, negative values become 0.
//!
//! With γ, β learned, μ, σ² over all pixels of all images and ε = 1e-5:
//! `out = max(0, γ (raw − μ) / √(σ² + ε) + β + shortcut)`.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of the CPU at hand"
)]

use ivoro::vectors::vectorised;
use rayon::prelude::*;

use crate::network::EPSILON;

/// Share of the newest batch in the running statistics.
const MOMENTUM: f64 = 0.1;
/// Values that one task handles.
const VALUES: usize = 1 << 16;

/// Mean and sum of squared differences from it, per channel, of the rows of one tile.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    rows: usize,
    mean: Vec<f32>,
    squares: Vec<f32>,
}

impl Moments {
    /// Measures the rows of a tile.
    pub(super) fn of(tile: &[f32], channels: usize) -> Self {
        let rows = tile.len() / channels;
        let (mut mean, mut squares) = (vec![0.0; channels], vec![0.0; channels]);
        vectorised(
            #[inline(always)]
            || {
                for row in tile.chunks_exact(channels) {
                    mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
                mean.iter_mut().for_each(|sum| *sum /= rows as f32);
                for row in tile.chunks_exact(channels) {
                    let values = squares.iter_mut().zip(row).zip(&mean);
                    values.for_each(|((sum, value), mean)| *sum += (value - mean) * (value - mean));
                }
            },
        );
        Self { rows, mean, squares }
    }
}

/// What normalises one layer's outputs in one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    mean: Vec<f32>,
    /// 1 / √(σ² + ε).
    inverse: Vec<f32>,
    /// `out = raw · factor + shift`.
    factor: Vec<f32>,
    shift: Vec<f32>,
}

impl Statistics {
    /// Joins the tiles' moments and moves the running mean and variance towards them.
    pub(super) fn new(
        moments: &[Moments],
        (scale, shift): (&[f32], &[f32]),
        (running_mean, running_variance): (&mut [f32], &mut [f32]),
    ) -> Self {
        let channels = scale.len();
        let rows: usize = moments.iter().map(|tile| tile.rows).sum();
        let mut statistics = Self::default();
        for channel in 0..channels {
            let (mean, variance) = join(moments, channel);
            let inverse = 1.0 / (variance + EPSILON).sqrt();
            let factor = f64::from(scale[channel]) * inverse;
            statistics.mean.push(mean as f32);
            statistics.inverse.push(inverse as f32);
            statistics.factor.push(factor as f32);
            statistics.shift.push((f64::from(shift[channel]) - mean * factor) as f32);
            let unbiased = variance * rows as f64 / (rows as f64 - 1.0);
            follow(&mut running_mean[channel], mean);
            follow(&mut running_variance[channel], unbiased);
        }
        statistics
    }
}

fn follow(running: &mut f32, value: f64) {
    *running = (f64::from(*running) * (1.0 - MOMENTUM) + value * MOMENTUM) as f32;
}

/// Mean and variance of a channel over all tiles.
fn join(moments: &[Moments], channel: usize) -> (f64, f64) {
    let (mut rows, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for tile in moments {
        let more = tile.rows as f64;
        let difference = f64::from(tile.mean[channel]) - mean;
        mean += difference * more / (rows + more);
        squares += f64::from(tile.squares[channel])
            + difference * difference * rows * more / (rows + more);
        rows += more;
    }
    (mean, squares / rows)
}

/// What is added before negative values become 0.
#[derive(Clone, Copy)]
pub(super) enum Shortcut<'a> {
    /// Nothing.
    None,
    /// The block's input.
    Same(&'a [f32]),
    /// A convolution of it, with its own batch norm.
    Convolved(&'a [f32], &'a Statistics),
}

/// Rows of `channels` values that one task handles.
fn task(channels: usize) -> usize {
    (VALUES / channels).max(1) * channels
}

/// Writes the normalised values, with the shortcut added, negative ones as 0.
pub(super) fn forward(raw: &[f32], statistics: &Statistics, shortcut: Shortcut, out: &mut [f32]) {
    let channels = statistics.mean.len();
    let length = task(channels);
    out.par_chunks_mut(length).enumerate().for_each(|(index, out)| {
        let part = index * length..index * length + out.len();
        let raw = &raw[part.clone()];
        let shortcut = match shortcut {
            Shortcut::None => Shortcut::None,
            Shortcut::Same(input) => Shortcut::Same(&input[part]),
            Shortcut::Convolved(raw, statistics) => Shortcut::Convolved(&raw[part], statistics),
        };
        vectorised(
            #[inline(always)]
            || forward_rows(raw, statistics, shortcut, out),
        );
    });
}

#[inline(always)]
fn forward_rows(raw: &[f32], statistics: &Statistics, shortcut: Shortcut, out: &mut [f32]) {
    let Statistics { factor, shift, .. } = statistics;
    let channels = factor.len();
    let rows = out.chunks_exact_mut(channels).zip(raw.chunks_exact(channels));
    match shortcut {
        Shortcut::None => rows.for_each(|(out, raw)| {
            let values = out.iter_mut().zip(raw).zip(factor.iter().zip(shift));
            values.for_each(|((out, raw), (factor, shift))| {
                *out = (raw * factor + shift).max(0.0);
            });
        }),
        Shortcut::Same(input) => {
            rows.zip(input.chunks_exact(channels)).for_each(|((out, raw), input)| {
                let values = out.iter_mut().zip(raw).zip(factor.iter().zip(shift)).zip(input);
                values.for_each(|(((out, raw), (factor, shift)), input)| {
                    *out = (raw * factor + shift + input).max(0.0);
                });
            });
        }
        Shortcut::Convolved(other, also) => {
            rows.zip(other.chunks_exact(channels)).for_each(|((out, raw), other)| {
                let own = raw.iter().zip(factor.iter().zip(shift));
                let also = other.iter().zip(also.factor.iter().zip(&also.shift));
                let values = out.iter_mut().zip(own).zip(also);
                values.for_each(|((out, (raw, (factor, shift))), (other, (by, plus)))| {
                    *out = (raw * factor + shift + (other * by + plus)).max(0.0);
                });
            });
        }
    }
}

/// Sums over all rows that gradients of a batch norm need.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    /// Σ gradient.
    plain: Vec<f32>,
    /// Σ gradient · (raw − μ).
    centred: Vec<f32>,
}

/// Gradients become 0 where the output is 0; returns the sums for each batch norm in `layers`.
pub(super) fn mask_and_sum(
    gradient: &mut [f32],
    out: &[f32],
    layers: &[(&[f32], &Statistics)],
) -> Vec<Sums> {
    let channels = layers[0].1.mean.len();
    let length = task(channels);
    let tasks = gradient.par_chunks_mut(length).zip(out.par_chunks(length)).enumerate();
    let partial: Vec<Vec<Sums>> = tasks
        .map(|(index, (gradient, out))| {
            for (gradient, out) in gradient.iter_mut().zip(out) {
                *gradient = if *out > 0.0 { *gradient } else { 0.0 };
            }
            let gradient = &*gradient;
            let from = index * length;
            let sum = |&(raw, statistics): &(&[f32], &Statistics)| {
                let raw = &raw[from..from + gradient.len()];
                vectorised(
                    #[inline(always)]
                    || sum_rows(gradient, raw, &statistics.mean),
                )
            };
            layers.iter().map(sum).collect()
        })
        .collect();
    (0..layers.len()).map(|layer| add_up(&partial, layer, channels)).collect()
}

#[inline(always)]
fn sum_rows(gradient: &[f32], raw: &[f32], mean: &[f32]) -> Sums {
    let channels = mean.len();
    let (mut plain, mut centred) = (vec![0.0; channels], vec![0.0; channels]);
    for (gradient, raw) in gradient.chunks_exact(channels).zip(raw.chunks_exact(channels)) {
        let values = gradient.iter().zip(raw).zip(mean);
        let sums = plain.iter_mut().zip(centred.iter_mut());
        sums.zip(values).for_each(|((plain, centred), ((gradient, raw), mean))| {
            *plain += gradient;
            *centred += gradient * (raw - mean);
        });
    }
    Sums { plain, centred }
}

fn add_up(partial: &[Vec<Sums>], layer: usize, channels: usize) -> Sums {
    let total = |values: fn(&Sums) -> &[f32]| {
        let sum = |channel: usize| {
            let terms = partial.iter().map(|task| f64::from(values(&task[layer])[channel]));
            terms.sum::<f64>() as f32
        };
        (0..channels).map(sum).collect()
    };
    Sums { plain: total(|sums| &sums.plain), centred: total(|sums| &sums.centred) }
}

impl Sums {
    /// Writes the gradients of γ and β.
    pub(super) fn learned(&self, statistics: &Statistics, scale: &mut [f32], shift: &mut [f32]) {
        let sums = self.centred.iter().zip(&statistics.inverse);
        scale.iter_mut().zip(sums).for_each(|(out, (sum, inverse))| *out = sum * inverse);
        shift.copy_from_slice(&self.plain);
    }
}

/// The gradient of the values before batch norm, in place.
pub(super) fn backward_here(
    gradient: &mut [f32],
    raw: &[f32],
    statistics: &Statistics,
    sums: &Sums,
) {
    let channels = statistics.mean.len();
    let (slope, level) = corrections(statistics, sums, gradient.len() / channels);
    let length = task(channels);
    gradient.par_chunks_mut(length).zip(raw.par_chunks(length)).for_each(|(gradient, raw)| {
        vectorised(
            #[inline(always)]
            || {
                let rows = gradient.chunks_exact_mut(channels).zip(raw.chunks_exact(channels));
                for (gradient, raw) in rows {
                    let about = raw.iter().zip(&statistics.mean).zip(&statistics.factor);
                    let values = gradient.iter_mut().zip(about).zip(slope.iter().zip(&level));
                    values.for_each(|((gradient, ((raw, mean), factor)), (slope, level))| {
                        *gradient = *gradient * factor + ((raw - mean) * slope + level);
                    });
                }
            },
        );
    });
}

/// [`backward_here`], keeping the gradient of the normalised values.
pub(super) fn backward(
    gradient: &[f32],
    raw: &[f32],
    statistics: &Statistics,
    sums: &Sums,
    out: &mut [f32],
) {
    out.par_chunks_mut(VALUES).zip(gradient.par_chunks(VALUES)).for_each(|(out, gradient)| {
        out.copy_from_slice(gradient);
    });
    backward_here(out, raw, statistics, sums);
}

/// What the batch's own mean and variance take away: `(raw − μ) · slope + level`.
fn corrections(statistics: &Statistics, sums: &Sums, rows: usize) -> (Vec<f32>, Vec<f32>) {
    let rows = rows as f32;
    let inner = statistics.factor.iter().zip(&statistics.inverse).zip(&sums.centred);
    let slope = inner.map(|((factor, inverse), sum)| -factor * inverse * inverse * (sum / rows));
    let level = statistics.factor.iter().zip(&sums.plain).map(|(factor, sum)| -factor * sum / rows);
    (slope.collect(), level.collect())
}
