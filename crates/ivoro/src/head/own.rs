//! A metric for every class (letter Q).
//!
//! A class c of n samples is measured by its own covariance C_c, which a few hundred samples leave
//! uncertain, and by the pooled one S, which is certain but not its own. As a prior worth κ samples
//! the pooled one is mixed in, and what is left to chance is covered by the ridge of W:
//!
//! ```text
//! Σ_c = (n − 1)/(n − 1 + κ) · C_c + κ/(n − 1 + κ) · S + ε · mean diagonal of S · I
//! d(z, c) = (z − m_c)ᵀ Σ_c⁻¹ (z − m_c)
//! ```
//!
//! Bisectors are quadrics. Everything comes from sums that are kept class by class, so that a class
//! is forgotten, and models are merged, exactly.

use rayon::prelude::*;

use crate::error::Result;
use crate::head::Settings;
use crate::linalg::{Symmetric, mahalanobis, times_transposed};
use crate::matrix::Matrix;

/// One class in its own metric.
struct Quadric {
    /// `L⁻¹` of `L·Lᵀ` = Σ_c.
    whitener: Matrix,
    /// `L⁻¹·m_c`, one row.
    centre: Matrix,
}

/// The classes of one block, each in its own metric.
pub(crate) struct Quadrics {
    classes: Vec<Quadric>,
}

impl Quadrics {
    /// From the pooled covariance and of each class its centre, covariance and number of samples.
    pub(crate) fn new(
        pooled: &Symmetric,
        centres: &Matrix,
        covariances: Vec<(Symmetric, u64)>,
        settings: &Settings,
    ) -> Result<Self> {
        let floor = settings.ridge * pooled.mean_diagonal();
        let quadric = |(class, (mut mixed, count)): (usize, (Symmetric, u64))| {
            let freedom = count.saturating_sub(1) as f64;
            // of one sample and no prior there is nothing but the ridge
            let all = (freedom + settings.prior).max(f64::MIN_POSITIVE);
            mixed.scale(freedom / all);
            mixed.add(pooled, settings.prior / all);
            mixed.add_diagonal(floor);
            let whitener = mixed.factor("covariance of a class", settings.ridge)?.inverse();
            let centre = times_transposed(&centres.select(&[class]), &whitener);
            Ok(Quadric { whitener, centre })
        };
        let classes =
            covariances.into_par_iter().enumerate().map(quadric).collect::<Result<_>>()?;
        Ok(Self { classes })
    }

    /// Distances of every query to every class.
    pub(crate) fn distances(&self, queries: &Matrix) -> Matrix {
        mahalanobis(queries, self.classes.iter().map(|class| (&class.whitener, &class.centre)))
    }
}
