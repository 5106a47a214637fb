//! Settings of the peers, with their published values and ranges.

use serde::{Deserialize, Serialize};

use ivoro::{Error, Result};

/// What can be set about the peers; the defaults are the published values where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeerSettings {
    /// Seed of everything random.
    pub seed: u64,
    /// Dimension that RanPAC lifts to, at least 1.
    pub ranpac_dim: usize,
    /// RanPAC's ridge, more than 0; chosen on the first phase if absent.
    pub ranpac_ridge: Option<f64>,
    /// Weight of the identity in the shared covariance of `slda`, in (0, 1].
    pub slda_shrinkage: f64,
    /// FeCAM's γ₁ (mean variance added to the diagonal) and γ₂ (mean covariance added elsewhere),
    /// neither negative.
    pub fecam_shrink: (f64, f64),
    /// Exponent of FeCAM's Tukey transform, in (0, 1]; 1 leaves features as they are.
    pub fecam_tukey: f64,
    /// Random Fourier features of KLDA, at least 1.
    pub klda_dim: usize,
    /// γ of KLDA's kernel, more than 0; chosen on the first phase if absent.
    pub klda_gamma: Option<f64>,
    /// What KLDA adds to the diagonal of its scatter, more than 0.
    pub klda_ridge: f64,
    /// Dimension that DS-AL lifts to, at least 1.
    pub dsal_dim: usize,
    /// Ridge of both regressions of DS-AL, more than 0.
    pub dsal_ridge: f64,
    /// Weight of the second regression of DS-AL, not negative.
    pub dsal_compensation: f64,
    /// Dimension that LoRanPAC lifts to, at least 1; the published one is 100 000.
    pub loranpac_dim: usize,
    /// Share of the directions that LoRanPAC keeps, in (0, 1].
    pub loranpac_kept: f64,
    /// Most directions that LoRanPAC keeps, at least 1.
    pub loranpac_rank: usize,
    /// Dimension of each lift of AnaCP, at least 1.
    pub anacp_dim: usize,
    /// Ridge of all regressions of AnaCP, more than 0.
    pub anacp_ridge: f64,
    /// Regressions to prototypes that AnaCP averages, at least 1.
    pub anacp_heads: usize,
    /// Samples that AnaCP draws for each class, at least 1.
    pub anacp_samples: usize,
    /// Most centres per class of FeNeC, at least 1.
    pub fenec_centres: usize,
    /// The same of FeNeC as γ₁ and γ₂ of FeCAM.
    pub fenec_shrink: (f64, f64),
    /// Exponent of FeNeC's Tukey transform, in (0, 1].
    pub fenec_tukey: f64,
    /// Weight decay of the joint logistic regression on standardised features, not negative.
    pub joint_weight_decay: f64,
    /// Most steps of one joint fit.
    pub joint_iterations: usize,
    /// Largest gradient entry at which a joint fit is done.
    pub joint_tolerance: f64,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            seed: 0,
            ranpac_dim: 10_000,
            ranpac_ridge: None,
            slda_shrinkage: 1e-4,
            fecam_shrink: (1.0, 1.0),
            fecam_tukey: 0.5,
            klda_dim: 5_000,
            klda_gamma: None,
            klda_ridge: 1e-3,
            dsal_dim: 8_192,
            dsal_ridge: 0.1,
            dsal_compensation: 0.6,
            loranpac_dim: 10_000,
            loranpac_kept: 0.75,
            loranpac_rank: 10_000,
            anacp_dim: 5_000,
            anacp_ridge: 100.0,
            anacp_heads: 3,
            anacp_samples: 100,
            fenec_centres: 47,
            fenec_shrink: (0.886, 0.896),
            fenec_tukey: 0.377,
            joint_weight_decay: 1e-2,
            joint_iterations: 200,
            joint_tolerance: 1e-5,
        }
    }
}

impl PeerSettings {
    /// All lifts to this many dimensions.
    #[must_use]
    pub fn with_lifts(self, dim: usize) -> Self {
        Self {
            ranpac_dim: dim,
            klda_dim: dim,
            dsal_dim: dim,
            loranpac_dim: dim,
            anacp_dim: dim,
            ..self
        }
    }

    /// Refuses a setting outside its range.
    pub fn check(&self) -> Result<()> {
        let counts = [
            ("ranpac_dim", self.ranpac_dim),
            ("klda_dim", self.klda_dim),
            ("dsal_dim", self.dsal_dim),
            ("loranpac_dim", self.loranpac_dim),
            ("loranpac_rank", self.loranpac_rank),
            ("anacp_dim", self.anacp_dim),
            ("anacp_heads", self.anacp_heads),
            ("anacp_samples", self.anacp_samples),
            ("fenec_centres", self.fenec_centres),
        ];
        for (name, count) in counts {
            demand(name, count as f64, count > 0, "at least 1")?;
        }
        let positive = [
            ("ranpac_ridge", self.ranpac_ridge.unwrap_or(1.0)),
            ("klda_gamma", self.klda_gamma.unwrap_or(1.0)),
            ("klda_ridge", self.klda_ridge),
            ("dsal_ridge", self.dsal_ridge),
            ("anacp_ridge", self.anacp_ridge),
        ];
        for (name, value) in positive {
            demand(name, value, value > 0.0 && value.is_finite(), "more than 0 and finite")?;
        }
        let shares = [
            ("slda_shrinkage", self.slda_shrinkage),
            ("fecam_tukey", self.fecam_tukey),
            ("fenec_tukey", self.fenec_tukey),
            ("loranpac_kept", self.loranpac_kept),
        ];
        for (name, value) in shares {
            demand(name, value, value > 0.0 && value <= 1.0, "in (0, 1]")?;
        }
        let others = [
            ("fecam_shrink.0", self.fecam_shrink.0),
            ("fecam_shrink.1", self.fecam_shrink.1),
            ("fenec_shrink.0", self.fenec_shrink.0),
            ("fenec_shrink.1", self.fenec_shrink.1),
            ("dsal_compensation", self.dsal_compensation),
            ("joint_weight_decay", self.joint_weight_decay),
            ("joint_tolerance", self.joint_tolerance),
        ];
        for (name, value) in others {
            demand(name, value, value >= 0.0 && value.is_finite(), "finite and not negative")?;
        }
        Ok(())
    }
}

fn demand(name: &'static str, value: f64, holds: bool, reason: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Setting { name, value: value.to_string(), reason }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_hold_and_survive_json() {
        let settings = PeerSettings { seed: 4, ..PeerSettings::default() };
        settings.check().unwrap();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<PeerSettings>(&text).unwrap(), settings);
        assert_eq!(serde_json::from_str::<PeerSettings>("{}").unwrap(), PeerSettings::default());
    }

    #[test]
    fn values_out_of_range_are_named() {
        let settings = PeerSettings { slda_shrinkage: 0.0, ..PeerSettings::default() };
        assert!(matches!(settings.check(), Err(Error::Setting { name: "slda_shrinkage", .. })));
        let settings = PeerSettings { ranpac_ridge: Some(f64::NAN), ..PeerSettings::default() };
        assert!(matches!(settings.check(), Err(Error::Setting { name: "ranpac_ridge", .. })));
    }
}
