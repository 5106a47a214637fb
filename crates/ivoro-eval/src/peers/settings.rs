use serde::{Deserialize, Serialize};

use ivoro::{Error, Result};

/// What can be set about the peers; the defaults are the published values where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeerSettings {
    /// Seed of RanPAC's random lift.
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
            joint_weight_decay: 1e-2,
            joint_iterations: 200,
            joint_tolerance: 1e-5,
        }
    }
}

impl PeerSettings {
    /// Refuses a setting outside its range.
    pub fn check(&self) -> Result<()> {
        let (gamma1, gamma2) = self.fecam_shrink;
        let ridge = self.ranpac_ridge.unwrap_or(1.0);
        let proper = |value: f64| value > 0.0 && value <= 1.0;
        let finite = |value: f64| value >= 0.0 && value.is_finite();
        let dim = self.ranpac_dim;
        demand("ranpac_dim", dim as f64, dim > 0, "at least 1")?;
        demand("ranpac_ridge", ridge, ridge > 0.0 && ridge.is_finite(), "more than 0 and finite")?;
        demand("slda_shrinkage", self.slda_shrinkage, proper(self.slda_shrinkage), "in (0, 1]")?;
        demand("fecam_shrink.0", gamma1, finite(gamma1), "finite and not negative")?;
        demand("fecam_shrink.1", gamma2, finite(gamma2), "finite and not negative")?;
        demand("fecam_tukey", self.fecam_tukey, proper(self.fecam_tukey), "in (0, 1]")?;
        let decay = self.joint_weight_decay;
        demand("joint_weight_decay", decay, finite(decay), "finite and not negative")?;
        let tolerance = self.joint_tolerance;
        demand("joint_tolerance", tolerance, finite(tolerance), "finite and not negative")
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
