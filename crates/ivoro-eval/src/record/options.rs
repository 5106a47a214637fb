//! What a run was asked for, as its record tells it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Settings by name. They stay as they were written: a record of another version may lack some of
/// today's settings and have others, and what it does not tell must not become a default.
pub type NamedValues = Map<String, Value>;

/// What was asked for: given settings and choices that are not tuned. Methods on features and
/// baselines tell different parts, and earlier versions told fewer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Tells data apart: a hash of all samples or images; of several sets in earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Settings given on the command line or by the caller; `null` where one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<NamedValues>,
    /// Layers of the features, with their dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<(String, usize)>>,
    /// Hash of the network that baselines begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Settings of the peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<NamedValues>,
    /// The recipe that baselines train later phases by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<NamedValues>,
    /// The revision of all baselines, in records of versions that told it once for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Settings of the variants that are not tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<NamedValues>,
    /// How the network was trained, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<NamedValues>,
    /// What other versions tell.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl RunOptions {
    /// The settings that were given, without those that were left to be chosen.
    pub fn given(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.given.iter().flatten().filter(|(_, value)| !value.is_null())
    }

    /// Epochs of the longest training told, that of the network or that of later phases.
    pub fn longest_training(&self) -> u64 {
        let epochs = |recipe: Option<&Value>| recipe?.get("epochs")?.as_u64();
        let network = self.training.as_ref().and_then(|training| training.get("recipe"));
        let phases = self.phases.as_ref().and_then(|recipe| recipe.get("epochs")?.as_u64());
        epochs(network).max(phases).unwrap_or(0)
    }
}

/// The fields of a settings struct by name.
pub fn named_values(settings: &impl Serialize) -> serde_json::Result<NamedValues> {
    serde_json::from_value(serde_json::to_value(settings)?)
}

/// `null` stands for options of which nothing is told.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<RunOptions, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The reverse of [`read`].
pub(super) fn write<S: Serializer>(options: &RunOptions, to: S) -> Result<S::Ok, S::Error> {
    if *options == RunOptions::default() { to.serialize_none() } else { options.serialize(to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_every_version_are_written_as_they_were_read() {
        let old = [
            r#"{"data":["a1","b2"],"given":{"beta":null,"lambda":0.30000001192092896},"peers":{"ranpac_dim":2000},"settings":{"pairs":"all","transform":{"lambda":0.7,"scale":10.0}}}"#,
            r#"{"data":"a1","network":"b2","phases":{"epochs":3,"schedule":{"steps":[44,89]}},"revision":2}"#,
            r#"{"data":"a1","layers":[["last",512],["block3",256]],"training":{"depth":18,"recipe":{"epochs":9}},"later":{"any":[1,null]}}"#,
        ];
        for text in old {
            let options: RunOptions = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&options).unwrap(), text);
        }
    }

    #[test]
    fn what_was_chosen_was_not_given() {
        let options: RunOptions =
            serde_json::from_str(r#"{"given":{"beta":null,"lambda":0.5}}"#).unwrap();
        let given: Vec<&str> = options.given().map(|(name, _)| name.as_str()).collect();
        assert_eq!(given, ["lambda"]);
    }

    #[test]
    fn the_longest_training_is_of_the_network_or_of_phases() {
        let longest = |text: &str| {
            let options: RunOptions = serde_json::from_str(text).unwrap();
            options.longest_training()
        };
        assert_eq!(longest(r#"{"training":{"recipe":{"epochs":9}},"phases":{"epochs":3}}"#), 9);
        assert_eq!(longest(r#"{"training":{},"phases":{"epochs":3}}"#), 3);
        assert_eq!(longest("{}"), 0);
    }
}
