//! Losses of outputs and points with their gradients: plain functions, so that each can be checked
//! against finite differences.

use std::ops::Range;

use ivoro::Matrix;
use ivoro::softmax::Softened;
use ivoro::vectors::{add, dot};

use crate::error::Result;

/// The sum of a loss over rows, which adds its gradient: `of_row` is told row, outputs and gradient.
fn over_rows(
    outputs: &Matrix,
    gradient: &mut Matrix,
    of_row: impl Fn(usize, &[f32], &mut [f32]) -> f64,
) -> f64 {
    (0..outputs.rows()).map(|row| of_row(row, outputs.row(row), gradient.row_mut(row))).sum()
}

/// Cross-entropy of the outputs in `columns`, over rows whose label is among them; the mean over
/// all rows times `weight`. The gradient is added.
pub(super) fn cross_entropy(
    outputs: &Matrix,
    labels: &[usize],
    columns: &Range<usize>,
    temperature: f32,
    weight: f64,
    gradient: &mut Matrix,
) -> f64 {
    let weight = weight / labels.len().max(1) as f64;
    over_rows(outputs, gradient, |row, outputs, gradient| {
        let Some(&label) = labels.get(row).filter(|label| columns.contains(label)) else {
            return 0.0;
        };
        let own = Softened::of(&outputs[columns.clone()], temperature);
        let factor = (weight / f64::from(temperature)) as f32;
        add(&mut gradient[columns.clone()], &own.chances, factor);
        gradient[label] -= factor;
        weight * own.surprise(outputs[label])
    })
}

/// Cross-entropy between what another network says and these outputs, both softened by a
/// temperature, in `columns`; the mean over rows times `weight`. The gradient is added.
pub(super) fn distil(
    outputs: &Matrix,
    wanted: &Matrix,
    columns: &Range<usize>,
    temperature: f32,
    weight: f64,
    gradient: &mut Matrix,
) -> f64 {
    let weight = weight / outputs.rows().max(1) as f64;
    over_rows(outputs, gradient, |row, outputs, gradient| {
        let wanted = Softened::of(&wanted.row(row)[columns.clone()], temperature).chances;
        let outputs = &outputs[columns.clone()];
        let own = Softened::of(outputs, temperature);
        let factor = (weight / f64::from(temperature)) as f32;
        add(&mut gradient[columns.clone()], &own.chances, factor);
        add(&mut gradient[columns.clone()], &wanted, -factor);
        let pairs = wanted.iter().zip(outputs);
        weight
            * pairs
                .map(|(&wanted, &own_output)| f64::from(wanted) * own.surprise(own_output))
                .sum::<f64>()
    })
}

/// Logistic loss of every output against a target between 0 and 1: summed over outputs, the mean
/// over rows. The gradient is added.
pub(super) fn logistic(
    outputs: &Matrix,
    target: impl Fn(usize, usize) -> f32,
    gradient: &mut Matrix,
) -> f64 {
    let weight = 1.0 / outputs.rows().max(1) as f64;
    over_rows(outputs, gradient, |row, outputs, gradient| {
        let mut loss = 0.0;
        for (column, (&value, gradient)) in outputs.iter().zip(gradient).enumerate() {
            let (value, target) = (f64::from(value), f64::from(target(row, column)));
            // ln(1 + e^v) − target · v, without overflow.
            loss += weight * (value.max(0.0) + (-value.abs()).exp().ln_1p() - target * value);
            *gradient += (weight * (sigmoid(value) - target)) as f32;
        }
        loss
    })
}

/// 1 / (1 + e^−value).
pub(super) fn sigmoid(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// Length of the difference of all points together times `weight`; the gradient is added.
pub(super) fn distance_loss(
    points: &Matrix,
    wanted: &Matrix,
    weight: f64,
    gradient: &mut Matrix,
) -> f64 {
    let mut apart = points.as_slice().to_vec();
    add(&mut apart, wanted.as_slice(), -1.0);
    let length = dot(&apart, &apart).sqrt();
    if length > 0.0 {
        add(gradient.as_mut_slice(), &apart, (weight / length) as f32);
    }
    weight * length
}

/// The mean of all rows.
pub(super) fn mean(rows: &Matrix) -> Vec<f64> {
    let mut mean = vec![0f64; rows.cols()];
    for row in rows.iter_rows() {
        mean.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    mean.iter_mut().for_each(|sum| *sum /= rows.rows().max(1) as f64);
    mean
}

/// Rows of length 1, and the lengths they had.
pub(super) fn normalised(rows: &Matrix) -> (Matrix, Vec<f32>) {
    let mut unit = rows.clone();
    let columns = rows.cols().max(1);
    let lengths = unit.as_mut_slice().chunks_exact_mut(columns).map(|row| {
        let length = row.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-12);
        row.iter_mut().for_each(|value| *value /= length);
        length
    });
    let lengths = lengths.collect();
    (unit, lengths)
}

/// The mean of rows at length 1, itself at length 1.
pub(super) fn direction(rows: &Matrix) -> Result<Vec<f32>> {
    let mean: Vec<f32> = mean(&normalised(rows).0).into_iter().map(|value| value as f32).collect();
    Ok(normalised(&Matrix::new(1, mean.len(), mean)?).0.into_vec())
}

/// The gradient of rows from that of the rows of length 1 made of them.
pub(super) fn through_normalised(unit: &Matrix, lengths: &[f32], gradient: &Matrix) -> Matrix {
    let mut out = gradient.clone();
    for (row, length) in lengths.iter().enumerate() {
        let own = unit.row(row);
        let along: f32 = own.iter().zip(gradient.row(row)).map(|(a, b)| a * b).sum();
        let values = out.row_mut(row).iter_mut().zip(own);
        values.for_each(|(value, own)| *value = (*value - along * own) / length);
    }
    out
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn some(rows: usize, columns: usize, seed: u64) -> Matrix {
        let value = |at: usize| (4.0 * ivoro::random::unit(seed, at as u64) - 2.0) as f32;
        Matrix::new(rows, columns, (0..rows * columns).map(value).collect()).unwrap()
    }

    /// The gradient that `loss` adds is the one that small changes show.
    pub(in super::super) fn check(start: &Matrix, loss: impl Fn(&Matrix, &mut Matrix) -> f64) {
        check_by(1e-2, start, loss);
    }

    /// The same by changes of this size: small ones for losses with kinks.
    pub(in super::super) fn check_by(
        step: f32,
        start: &Matrix,
        loss: impl Fn(&Matrix, &mut Matrix) -> f64,
    ) {
        let mut gradient = Matrix::zeros(start.rows(), start.cols());
        loss(start, &mut gradient);
        let mut unused = Matrix::zeros(start.rows(), start.cols());
        for at in 0..start.as_slice().len() {
            let mut moved = start.clone();
            moved.as_mut_slice()[at] += step;
            let above = loss(&moved, &mut unused);
            moved.as_mut_slice()[at] -= 2.0 * step;
            let below = loss(&moved, &mut unused);
            let (slope, found) = ((above - below) / f64::from(2.0 * step), gradient.as_slice()[at]);
            assert!((slope - f64::from(found)).abs() < 2e-3, "{at}: {slope} and {found}");
        }
        assert!(gradient.as_slice().iter().any(|value| value.abs() > 1e-3));
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (start, other) = (some(4, 5, 1), some(4, 5, 2));
        let labels = [0, 3, 4, 2];
        check(&start, |z, g| cross_entropy(z, &labels, &(0..5), 0.7, 1.3, g));
        check(&start, |z, g| cross_entropy(z, &labels, &(2..5), 1.0, 1.0, g));
        check(&start, |z, g| distil(z, &other, &(0..3), 2.0, 3.0, g));
        check(&start, |z, g| logistic(z, |row, at| f32::from(u8::from(labels[row] == at)), g));
        check(&start, |z, g| distance_loss(z, &other, 10.0, g));
        check(&start, |z, g| {
            let (unit, lengths) = normalised(z);
            let back = through_normalised(&unit, &lengths, &other);
            g.as_mut_slice().iter_mut().zip(back.as_slice()).for_each(|(a, b)| *a += b);
            let products = unit.as_slice().iter().zip(other.as_slice());
            products.map(|(a, b)| f64::from(a * b)).sum()
        });
    }

    #[test]
    fn distillation_is_at_rest_where_both_agree() {
        let outputs = some(3, 4, 5);
        let mut gradient = Matrix::zeros(3, 4);
        distil(&outputs, &outputs, &(0..4), 2.0, 1.0, &mut gradient);
        assert!(gradient.as_slice().iter().all(|value| value.abs() < 1e-7));
    }
}
