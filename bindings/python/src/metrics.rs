//! What is reported of a run.

use ivoro_eval::metrics as library;
use pyo3::prelude::*;

use crate::failure::{Failure, Outcome};

/// Row i of the matrix must have an entry for each of the phases 0 to i.
fn triangular(matrix: &[Vec<f64>]) -> Outcome<()> {
    match matrix.iter().enumerate().find(|(phase, row)| row.len() <= *phase) {
        Some((phase, row)) => Err(Failure::value(format!(
            "accuracy matrix: row {phase}: expected at least {} entries, found {}",
            phase + 1,
            row.len()
        ))),
        None => Ok(()),
    }
}

fn same_length(what: &str, expected: usize, found: usize) -> Outcome<()> {
    if expected == found {
        return Ok(());
    }
    Err(Failure::value(format!("{what}: expected {expected} entries, found {found}")))
}

#[pyfunction]
pub(crate) fn average(accuracies: Vec<f64>) -> f64 {
    library::average(&accuracies)
}

#[pyfunction]
pub(crate) fn forgetting_pass(matrix: Vec<Vec<f64>>, phase: i64) -> Outcome<f64> {
    triangular(&matrix)?;
    let phases = matrix.len();
    let outside = || Failure::value(format!("phase {phase} is outside 0..{phases}"));
    let phase = usize::try_from(phase).ok().filter(|&phase| phase < phases).ok_or_else(outside)?;
    Ok(library::forgetting_pass(&matrix, phase))
}

#[pyfunction]
pub(crate) fn forgetting_pycil(matrix: Vec<Vec<f64>>) -> Outcome<f64> {
    triangular(&matrix)?;
    Ok(library::forgetting_pycil(&matrix))
}

#[pyfunction]
pub(crate) fn backward_transfer(matrix: Vec<Vec<f64>>) -> Outcome<f64> {
    triangular(&matrix)?;
    Ok(library::backward_transfer(&matrix))
}

#[pyfunction]
pub(crate) fn calibration_error(
    confidence: Vec<f64>,
    correct: Vec<bool>,
    bins: i64,
) -> Outcome<f64> {
    same_length("correct", confidence.len(), correct.len())?;
    if bins < 1 || confidence.iter().any(|value| !(0.0..=1.0).contains(value)) {
        return Err(Failure::value("calibration error: expected confidences in 0..1 and a bin"));
    }
    Ok(library::calibration_error(&confidence, &correct, bins as usize))
}

#[pyfunction]
pub(crate) fn area_under_roc(known: Vec<f64>, unknown: Vec<f64>) -> Option<f64> {
    library::area_under_roc(&known, &unknown)
}

#[pyfunction]
pub(crate) fn pearson(x: Vec<f64>, y: Vec<f64>) -> Outcome<Option<f64>> {
    same_length("y", x.len(), y.len())?;
    Ok(library::pearson(&x, &y))
}
