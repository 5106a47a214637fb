//! The settings of a head, and the [table](TABLE) of all that is known of each.

mod table;

pub use crate::setting_range::{SettingRange, SettingValue};
use serde::{Deserialize, Serialize};
pub use table::{SettingInfo, TABLE, find, of_variant};

use crate::error::{Error, Result, text_choice};
use crate::regression::Optimiser;
use crate::transform::Transform;

/// Which query views meet which centres under AC and AI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairs {
    /// The query at rotation α with the centres of rotation α: 4 pairs.
    #[default]
    Matched,
    /// Every rotation with every rotation: 16 pairs.
    All,
}

/// How D picks among phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Each phase's probe names a winner; the winner with the nearest cross-phase centre wins.
    #[default]
    Tournament,
    /// The paper's algorithm: candidates meet in order of arrival, one is eliminated each time.
    Elimination,
}

/// Which features a probe of D sees under N.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeSpace {
    /// The features as they come; N acts between phases alone.
    Raw,
    /// The transformed features.
    #[default]
    Transformed,
}

/// Whether rotations share a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeViews {
    /// One probe tells apart all rotated sister classes of a phase.
    #[default]
    Sisters,
    /// One probe per rotation.
    Separate,
}

/// What W keeps so that classes can be forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScatterKept {
    /// One pooled matrix: small, but a class can't be taken out of it again.
    #[default]
    Pooled,
    /// One matrix per class: forgetting is exact.
    PerClass,
}

/// In how many directions a class's own metric differs from the pooled one (Q).
///
/// ```
/// use ivoro::settings::Rank;
/// assert_eq!("32".parse::<Rank>()?, Rank::Directions(32));
/// assert_eq!(Rank::Full.to_string(), "full");
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// In all of them: a whole matrix per class.
    Full,
    /// In so many, and in no more than one less than the class has samples.
    Directions(usize),
}

impl std::str::FromStr for Rank {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "full" {
            return Ok(Self::Full);
        }
        let reason = "write full or a number of directions";
        let refused = |_| Error::Setting { name: "rank", value: text.to_owned(), reason };
        text.parse().map(Self::Directions).map_err(refused)
    }
}

impl std::fmt::Display for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Directions(count) => write!(f, "{count}"),
        }
    }
}

impl Serialize for Rank {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Full => serializer.serialize_str("full"),
            Self::Directions(count) => serializer.serialize_u64(*count as u64),
        }
    }
}

impl<'de> Deserialize<'de> for Rank {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(usize),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(count) => Ok(Self::Directions(count)),
            Written::Word(word) => word.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// What the ridge of W is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RidgePer {
    /// The mean variance of all features: what models knew before they had a choice.
    Mean,
    /// Each feature's own variance: whatever unit a feature is measured in, answers are the same.
    Feature,
    /// Each feature's own where features are of mixed scale (the mean variance is more than 16 times the
    /// median one), else the mean.
    #[default]
    Auto,
}

text_choice!(Pairs, "pairs", "write matched or all", "matched" => Matched, "all" => All);
text_choice!(Rule, "rule", "write tournament or elimination",
    "tournament" => Tournament, "elimination" => Elimination);
text_choice!(ProbeSpace, "probe-space", "write raw or transformed",
    "raw" => Raw, "transformed" => Transformed);
text_choice!(ProbeViews, "probe-views", "write sisters or separate",
    "sisters" => Sisters, "separate" => Separate);
text_choice!(RidgePer, "ridge-per", "write mean, feature or auto",
    "mean" => Mean, "feature" => Feature, "auto" => Auto);
text_choice!(ScatterKept, "scatter", "write pooled or per-class",
    "pooled" => Pooled, "per-class" => PerClass);

/// Settings given by the caller; what is `None` is chosen on the base phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// λ of N.
    pub lambda: Option<f64>,
    /// w of N.
    pub scale: Option<f64>,
    /// η of N.
    pub shift: Option<f64>,
    /// Ridge of W.
    pub ridge: Option<f64>,
    /// κ of Q.
    pub prior: Option<f64>,
    /// Directions of Q.
    #[serde(default)]
    pub rank: Option<Rank>,
    /// Weights of the last layer and the third block.
    pub layer_weights: Option<[f64; 2]>,
    /// Weight decay of D's probe.
    pub weight_decay: Option<f64>,
    /// β of R.
    pub beta: Option<f64>,
    /// What D's probe sees under N.
    pub probe_space: Option<ProbeSpace>,
    /// One probe for all rotations or one each; not tuned, held-out samples of real data prefer one.
    pub probe_views: Option<ProbeViews>,
}

/// Every number and choice that a head needs, all of them fixed.
///
/// ```
/// use ivoro::Settings;
/// let settings = Settings { ridge: -1.0, ..Settings::default() };
/// assert!(settings.check().unwrap_err().to_string().contains("must be finite and not negative"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// N: λ, w and η.
    pub transform: Transform,
    /// W and Q: ε, the ridge as a share of the mean diagonal.
    pub ridge: f64,
    /// W: what the ridge is a share of; models of before it was there take the mean.
    #[serde(default = "Settings::mean_ridge")]
    pub ridge_per: RidgePer,
    /// Q: κ, for how many samples of a class the pooled covariance counts.
    #[serde(default = "Settings::usual_prior")]
    pub prior: f64,
    /// Q: α, what a class pays for its volume; models of before it was there pay nothing.
    #[serde(default)]
    pub volume: f64,
    /// Q: in how many directions each class has a variance of its own; models of before it was there
    /// keep a whole matrix.
    #[serde(default = "Settings::whole_matrix")]
    pub rank: Rank,
    /// L: weight of the last layer and of the third block.
    pub layer_weights: [f64; 2],
    /// L: exponent γ of the influence function.
    pub gamma: f64,
    /// D: weight decay of the probe.
    pub weight_decay: f64,
    /// R: β, how firmly centres are held at the prototypes.
    pub beta: f64,
    /// D under N: which features the probe sees.
    pub probe_space: ProbeSpace,
    /// D and R with rotations: one probe or one each.
    pub probe_views: ProbeViews,
    /// How probes are fitted.
    pub optimiser: Optimiser,
    /// Most iterations (L-BFGS) or epochs (Adam) of a probe.
    pub iterations: usize,
    /// Pairs of views under AC and AI.
    pub pairs: Pairs,
    /// How D picks among phases.
    pub rule: Rule,
    /// K: dimension of the lifted space.
    pub lift: usize,
    /// Seed of the lift and of Adam's batches.
    pub seed: u64,
    /// What W keeps.
    pub scatter: ScatterKept,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transform: Transform { lambda: 0.7, scale: 10.0, shift: 0.0 },
            ridge: 1.0,
            ridge_per: RidgePer::default(),
            prior: Self::usual_prior(),
            // chosen on base-phase images of CIFAR-100, see docs/reproduce.md
            volume: 0.4,
            rank: Rank::Directions(64),
            layer_weights: [1.0, 1.0],
            gamma: 1.0,
            weight_decay: 1e-4,
            beta: 1e-2,
            probe_space: ProbeSpace::default(),
            probe_views: ProbeViews::default(),
            optimiser: Optimiser::default(),
            iterations: 100,
            pairs: Pairs::default(),
            rule: Rule::default(),
            lift: 10_000,
            seed: 1993,
            scatter: ScatterKept::default(),
        }
    }
}

impl Settings {
    fn mean_ridge() -> RidgePer {
        RidgePer::Mean
    }

    fn usual_prior() -> f64 {
        500.0
    }

    fn whole_matrix() -> Rank {
        Rank::Full
    }
}
