//! A metric for every class (letter Q).
//!
//! A class c of n samples is measured by its own covariance C_c, which a few hundred samples leave
//! uncertain, and by the pooled one S, which is certain but not its own. As a prior worth κ samples
//! the pooled one is mixed in, and what is left to chance is covered by the ridge of W:
//!
//! ```text
//! Σ_c = (n − 1)/(n − 1 + κ) · C_c + κ/(n − 1 + κ) · S + ε · mean diagonal of S · I
//! d(z, c) = (z − m_c)ᵀ Σ_c⁻¹ (z − m_c) + α · (ln det Σ_c − least of all classes)
//! ```
//!
//! The last term is what a class pays for its volume: at α = 1 the nearest class is the likeliest of
//! normal ones. Whether a query is strange is judged without it.
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
    /// What is added to every distance.
    volume: f32,
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
            let factor = mixed.factor("covariance of a class", settings.ridge)?;
            let (whitener, volume) = (factor.inverse(), factor.log_determinant());
            let centre = times_transposed(&centres.select(&[class]), &whitener);
            Ok((Quadric { whitener, centre, volume: 0.0 }, volume))
        };
        let measured =
            covariances.into_par_iter().enumerate().map(quadric).collect::<Result<Vec<_>>>()?;
        let least = measured.iter().map(|(_, volume)| *volume).fold(f64::INFINITY, f64::min);
        let classes = measured.into_iter().map(|(class, volume)| {
            let volume = (settings.volume * (volume - least)) as f32;
            Quadric { volume, ..class }
        });
        Ok(Self { classes: classes.collect() })
    }

    /// Distances of every query to every class.
    pub(crate) fn distances(&self, queries: &Matrix) -> Matrix {
        let metrics = self.classes.iter().map(|class| (&class.whitener, &class.centre));
        let mut out = mahalanobis(queries, metrics);
        for row in out.as_mut_slice().chunks_exact_mut(self.classes.len().max(1)) {
            row.iter_mut().zip(&self.classes).for_each(|(value, class)| *value += class.volume);
        }
        out
    }

    /// What a class pays for its volume.
    pub(crate) fn volume(&self, class: usize) -> f32 {
        self.classes[class].volume
    }
}

#[cfg(test)]
mod tests {
    use crate::head::{Head, Settings};
    use crate::matrix::Matrix;
    use crate::random::normals;
    use crate::samples::Samples;

    /// A narrow class inside a wide one, around the same point, far from the grid's edge.
    fn learned(volume: f64) -> Head {
        let mut drawn = normals(3, 0);
        let mut value =
            |row: usize| 20.0 + if row < 400 { 1.0 } else { 4.0 } * drawn.next().unwrap();
        let data = (0..800).flat_map(|row| [value(row), value(row)]).map(|v| v as f32).collect();
        let labels = (0..800).map(|row| u32::from(row >= 400)).collect();
        let samples =
            Samples::single("test", Matrix::new(800, 2, data).unwrap(), labels, 2).unwrap();
        let settings = Settings { volume, prior: 0.0, ridge: 1e-6, ..Settings::default() };
        let mut head = Head::new("iVoro-Q".parse().unwrap(), settings).unwrap();
        head.learn(&samples).unwrap();
        head
    }

    #[test]
    fn a_class_pays_for_its_volume() {
        let points = Matrix::new(2, 2, vec![20.2, 19.9, 26.0, 14.0]).unwrap();
        let queries = Samples::single("test", points, vec![0, 1], 2).unwrap();
        // for normal classes of deviations 1 and 4 the border is at 2·ln(16)·16/15 = 5.9
        assert_eq!(learned(1.0).predict(&queries).unwrap(), [0, 1]);
        // without it the wide class is nearer everywhere
        assert_eq!(learned(0.0).predict(&queries).unwrap(), [1, 1]);
        let (free, paid) = (learned(0.0), learned(1.0));
        let (free, paid) = (free.ask(&queries, true).unwrap(), paid.ask(&queries, true).unwrap());
        assert!((paid.strangeness[1] / free.strangeness[1] - 1.0).abs() < 1e-5);
        let more = paid.distances.row(1)[1] - free.distances.row(1)[1];
        // ln det of the two covariances: 4·ln 4 apart, as far as 400 samples tell
        assert!((f64::from(more) - 4.0 * 4f64.ln()).abs() < 0.5, "{more}");
        assert_eq!(paid.distances.row(1)[0], free.distances.row(1)[0]);
    }
}
