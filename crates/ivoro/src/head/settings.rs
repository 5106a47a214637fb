//! The choices that settings are made of, and the [table](TABLE) of all that is known of each setting.

mod table;

pub use crate::setting_range::{SettingRange, SettingValue};
use serde::{Deserialize, Serialize};
pub use table::{Given, SettingInfo, Settings, TABLE, find, of_variant};

use crate::error::{Error, Result, text_choice};

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
    /// Of each class few directions and the variance of each feature, in whole numbers: small, and
    /// forgetting is exact. Samples can't be added to such a class or taken away.
    Compact,
}

/// In how many directions a class's own metric differs from the pooled one (Q).
///
/// ```
/// use ivoro::head::settings::Rank;
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

/// How long points are after the power of N, where a metric compares them (W and Q).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lengths {
    /// As long as the power leaves them: the paper's N, and what models knew before they had a choice.
    Free,
    /// All of length w: the power makes evenly spread points longer than others of their class.
    #[default]
    Equal,
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

text_choice!(Lengths, "lengths", "write equal or free", "equal" => Equal, "free" => Free);
text_choice!(Pairs, "pairs", "write matched or all", "matched" => Matched, "all" => All);
text_choice!(Rule, "rule", "write tournament or elimination",
    "tournament" => Tournament, "elimination" => Elimination);
text_choice!(ProbeSpace, "probe-space", "write raw or transformed",
    "raw" => Raw, "transformed" => Transformed);
text_choice!(ProbeViews, "probe-views", "write sisters or separate",
    "sisters" => Sisters, "separate" => Separate);
text_choice!(RidgePer, "ridge-per", "write mean, feature or auto",
    "mean" => Mean, "feature" => Feature, "auto" => Auto);
text_choice!(ScatterKept, "scatter", "write pooled, per-class or compact",
    "pooled" => Pooled, "per-class" => PerClass, "compact" => Compact);
