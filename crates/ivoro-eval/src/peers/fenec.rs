//! FeNeC (Książek, Jastrzębski, Trojan, Pniaczek, Karp and Tabor, "FeNeC: Enhancing Continual Learning
//! via Feature Clustering with Neighbor- or Logit-Based Classification", 2025, Knowledge-Based Systems
//! 338, 2026): FeCAM with several centres per class.
//!
//! Covariances are those of [`super::fecam`], except that V₂ is the mean of all entries off the
//! diagonal. The centres m of a class are those of k-means on its features as they are, and
//!
//! ```text
//! d(z, c) = min over m of δᵀ·Σ_c⁻¹·δ,        δ = u(t(z)) − u(t(m))
//! ```
//!
//! is the published nearest neighbour among centres. λ = 0.377, γ = (0.886, 0.896) and 47 centres are
//! the published values for ResNet features of CIFAR-100, whose classes have 500 samples. Where a class
//! has fewer, it gets as many centres as leave ten samples to each, so that no centre is a sample. As γ₁
//! is less than γ₂, a few samples whose features vary against each other can leave a Σ that is no
//! metric; such a class does without γ₂, where the published program takes a pseudo-inverse. The variant with trained logits, FeNeC-Log, is not among the peers.

use std::sync::OnceLock;

use super::PeerSettings;
use super::checked::Method;
use super::clusters;
use super::fecam::{Covariance, Zeros, tukey};
use super::intake::Phase;
use super::rows::{normalised, single_bytes, triangle};
use ivoro::Matrix;
use ivoro::Result;
use ivoro::linalg;

/// Samples that a centre stands for at least.
const SAMPLES: usize = 10;

#[derive(Debug)]
pub(super) struct Fenec {
    settings: PeerSettings,
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    /// u(t(m)): one row a centre.
    centres: Matrix,
    covariance: Covariance,
    /// `L⁻¹` of the factored matrix, computed when first asked for.
    whitener: OnceLock<Matrix>,
}

impl Fenec {
    pub(super) fn new(settings: PeerSettings) -> Self {
        Self { settings, classes: Vec::new() }
    }
}

impl Method for Fenec {
    fn absorb(&mut self, phase: &Phase<'_>, known: usize) -> Result<()> {
        let PeerSettings { fenec_tukey, fenec_centres, seed, .. } = self.settings;
        self.classes.truncate(known);
        let points = tukey(phase.points.clone(), fenec_tukey);
        let transformed = phase.with(&points);
        let centred = transformed.centred(&transformed.means());
        for rows in &phase.members {
            let count = fenec_centres.min(rows.len() / SAMPLES).max(1);
            let centres = clusters::centres(&phase.points.select(rows), count, seed);
            self.classes.push(Class {
                centres: normalised(tukey(centres, fenec_tukey)),
                covariance: Covariance::of(&centred.select(rows)),
                whitener: OnceLock::new(),
            });
        }
        Ok(())
    }

    fn measure(&self, points: &Matrix) -> Result<Matrix> {
        let points = normalised(tukey(points.clone(), self.settings.fenec_tukey));
        let mut out = Matrix::zeros(points.rows(), self.classes.len());
        for (at, class) in self.classes.iter().enumerate() {
            let whitener = class.whitener(self.settings.fenec_shrink)?;
            let centres = linalg::times_transposed(&class.centres, whitener);
            let white = linalg::times_transposed_alike(&points, whitener);
            for (row, nearest) in clusters::nearest(&white, &centres).into_iter().enumerate() {
                out.row_mut(row)[at] = nearest.1;
            }
        }
        Ok(out)
    }

    fn bytes(&self) -> usize {
        let numbers =
            |class: &Class| class.centres.as_slice().len() + triangle(class.centres.cols());
        single_bytes(self.classes.iter().map(numbers).sum())
    }
}

impl Class {
    fn whitener(&self, shrink: (f64, f64)) -> Result<&Matrix> {
        if let Some(whitener) = self.whitener.get() {
            return Ok(whitener);
        }
        let shrunk = |shrink| self.covariance.whitener(shrink, Zeros::Count);
        let whitener = shrunk(shrink).or_else(|_| shrunk((shrink.0, 0.0)))?;
        Ok(self.whitener.get_or_init(|| whitener))
    }
}
