//! FeCAM (Goswami et al. 2023): a mean and a covariance for every class.
//!
//! Features pass a Tukey transform, `t(x) = sign(x)·|x|^λ` (the published one is for features that
//! are not negative, where the two agree). The covariance Σ of a class's transformed samples, over
//! n − 1, is shrunk **twice** by
//!
//! ```text
//! Σ ← Σ + γ₁·V₁·I + γ₂·V₂·(1 − I),
//! ```
//!
//! V₁ being the mean of its diagonal and V₂ the mean of its other entries, those that are exactly
//! zero left out; then it is divided by the outer product of its standard deviations. With u(x) =
//! x / ‖x‖ and m the plain mean of the class,
//!
//! ```text
//! d(z, c) = δᵀ·Σ_c⁻¹·δ,        δ = u(t(z)) − u(t(m_c))
//! ```
//!
//! The published program answers with the network's own classifier until the second phase; here
//! there is none, so that the distance above serves from the first. A class that does not vary (one
//! sample) has the identity for Σ.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::PeerSettings;
use super::checked::Method;
use super::intake::Phase;
use super::rows::{normalised, single_bytes, triangle};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::linalg::{self, Symmetric};

#[derive(Debug)]
pub(super) struct Fecam {
    settings: PeerSettings,
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    /// u(t(m)), a matrix of one row.
    mean: Matrix,
    covariance: Covariance,
    /// `L⁻¹` of the factored matrix, computed when first asked for.
    whitener: OnceLock<Matrix>,
}

impl Fecam {
    pub(super) fn new(settings: PeerSettings) -> Self {
        Self { settings, classes: Vec::new() }
    }
}

impl Method for Fecam {
    fn absorb(&mut self, phase: &Phase<'_>, _known: usize) -> Result<()> {
        let power = self.settings.fecam_tukey;
        let means = normalised(tukey(phase.means(), power));
        let points = tukey(phase.points.clone(), power);
        let transformed = phase.with(&points);
        let centred = transformed.centred(&transformed.means());
        for (class, rows) in transformed.members.iter().enumerate() {
            self.classes.push(Class::new(means.select(&[class]), &centred.select(rows)));
        }
        Ok(())
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let points = normalised(tukey(points.clone(), self.settings.fecam_tukey));
        let whitened = self.classes.iter().map(|class| {
            let whitener = class.whitener(self.settings.fecam_shrink)?;
            Ok((whitener, linalg::times_transposed(&class.mean, whitener)))
        });
        let whitened = whitened.collect::<Result<Vec<_>>>()?;
        Ok(linalg::mahalanobis(&points, whitened.iter().map(|(whitener, mean)| (*whitener, mean))))
    }

    fn bytes(&self) -> usize {
        let dim = self.classes.first().map_or(0, |class| class.mean.cols());
        single_bytes(self.classes.len() * (dim + triangle(dim)))
    }
}

impl Class {
    fn new(mean: Matrix, centred: &Matrix) -> Self {
        Self { mean, covariance: Covariance::of(centred), whitener: OnceLock::new() }
    }

    /// `L⁻¹`, with `L·Lᵀ` the shrunk and normalised covariance.
    fn whitener(&self, shrink: (f64, f64)) -> Result<&Matrix> {
        if let Some(whitener) = self.whitener.get() {
            return Ok(whitener);
        }
        let whitener = self.covariance.whitener(shrink, Zeros::LeaveOut)?;
        Ok(self.whitener.get_or_init(|| whitener))
    }
}

/// The covariance of a class before it is shrunk.
#[derive(Debug)]
pub(super) struct Covariance {
    dim: usize,
    /// Its lower triangle, row after row.
    lower: Vec<f32>,
}

/// What becomes of covariances that are exactly zero when they are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zeros {
    LeaveOut,
    Count,
}

impl Covariance {
    /// Of samples around their mean, over n − 1.
    pub(super) fn of(centred: &Matrix) -> Self {
        let dim = centred.cols();
        let mut covariance = Symmetric::zeros(dim);
        // one sample varies around itself by nothing at all
        let freedom = centred.rows().saturating_sub(1).max(1);
        covariance.add_gram(centred, 1.0 / freedom as f64);
        let lower = (0..dim).flat_map(|row| (0..=row).map(move |col| (row, col)));
        let lower = lower.map(|(row, col)| covariance.get(row, col) as f32).collect();
        Self { dim, lower }
    }

    /// `L⁻¹`, with `L·Lᵀ` the covariance that was shrunk twice and normalised.
    pub(super) fn whitener(&self, shrink: (f64, f64), zeros: Zeros) -> Result<Matrix> {
        let mut matrix = Symmetric::zeros(self.dim);
        matrix.for_each(|row, col, value| {
            let (row, col) = (row.max(col), row.min(col));
            *value = self.lower[triangle(row) + col].into();
        });
        shrink_towards_means(&mut matrix, shrink, zeros);
        shrink_towards_means(&mut matrix, shrink, zeros);
        normalise_variances(&mut matrix);
        // on all cores, and so not while others wait for it
        Ok(matrix.factor("class covariance", shrink.0)?.inverse())
    }
}

pub(super) fn tukey(mut points: Matrix, power: f64) -> Matrix {
    let power = power as f32;
    let transform = |value: &mut f32| *value = value.abs().powf(power).copysign(*value);
    points.as_mut_slice().par_iter_mut().for_each(transform);
    points
}

fn shrink_towards_means(matrix: &mut Symmetric, (gamma1, gamma2): (f64, f64), zeros: Zeros) {
    let (on, off) = (gamma1 * matrix.mean_diagonal(), gamma2 * mean_off_diagonal(matrix, zeros));
    matrix.for_each(|row, col, value| *value += if row == col { on } else { off });
}

/// Mean of the entries off the diagonal.
fn mean_off_diagonal(matrix: &Symmetric, zeros: Zeros) -> f64 {
    let lower = (0..matrix.dim()).flat_map(|row| (0..row).map(move |col| (row, col)));
    let values = lower
        .map(|(row, col)| matrix.get(row, col))
        .filter(|&value| value != 0.0 || zeros == Zeros::Count);
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

fn normalise_variances(matrix: &mut Symmetric) {
    let deviations: Vec<f64> = matrix.diagonal().into_iter().map(f64::sqrt).collect();
    matrix.for_each(|row, col, value| {
        let product = deviations[row] * deviations[col];
        *value = if row == col {
            1.0
        } else if product > 0.0 {
            *value / product
        } else {
            0.0
        };
    });
}
