//! Where trained networks and features are kept, under a hash of all that made them.
//!
//! The hash is of a `Key`, which is JSON with names of its own and a version: code can be renamed
//! and what took hours is still found. Files kept before there were such keys have a hash of the
//! settings as Rust prints them, and are found too.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Serialize;

use crate::dataset::Broken;
use crate::extract::Extraction;
use crate::network::{Architecture, fingerprint};
use crate::recipe::Recipe;
use crate::shape::Fit;
use crate::train::Plan;

/// Raised when a key changes its meaning.
const VERSION: u32 = 1;

/// All that makes a file.
#[derive(Serialize)]
#[serde(tag = "made", rename_all = "kebab-case")]
enum Key<'a> {
    Weights {
        version: u32,
        architecture: &'a Architecture,
        recipe: &'a Recipe,
        base: &'a [u32],
        fit: Fit,
        broken: Broken,
        device: String,
        data_set: &'a str,
    },
    Features {
        version: u32,
        views: Vec<String>,
        layers: &'a [String],
        half_precision: bool,
        fit: Fit,
        broken: Broken,
        metadata: &'a BTreeMap<String, String>,
    },
}

impl Key<'_> {
    fn hash(&self) -> String {
        // a key of plain data is always JSON
        short_hash(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Where the weights of a training lie in a cache folder, or will.
pub fn weights_path(folder: &Path, plan: &Plan) -> PathBuf {
    let key = Key::Weights {
        version: VERSION,
        architecture: &plan.architecture,
        recipe: &plan.recipe,
        base: &plan.base,
        fit: plan.fit,
        broken: plan.broken,
        device: plan.device.to_string(),
        data_set: &plan.identity,
    };
    earlier_or_new(folder, &key, plan, "safetensors")
}

/// Where the features of an extraction lie in a cache folder, or will.
pub fn features_path(folder: &Path, extraction: &Extraction) -> PathBuf {
    let key = Key::Features {
        version: VERSION,
        views: extraction.views.iter().map(ToString::to_string).collect(),
        layers: &extraction.layers,
        half_precision: extraction.half_precision,
        fit: extraction.fit,
        broken: extraction.broken,
        metadata: &extraction.metadata,
    };
    earlier_or_new(folder, &key, extraction, "features")
}

/// The file of a key, unless there is one under the hash that earlier versions gave it.
fn earlier_or_new(folder: &Path, key: &Key<'_>, made_of: &dyn Debug, extension: &str) -> PathBuf {
    let earlier = folder.join(format!("{}.{extension}", earlier_hash(made_of)));
    let new = folder.join(format!("{}.{extension}", key.hash()));
    if !new.exists() && is_begun(&earlier) { earlier } else { new }
}

/// Whether a file is there, or what a stopped training or extraction left of it.
fn is_begun(path: &Path) -> bool {
    let beside = |more: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(more);
        PathBuf::from(name)
    };
    path.exists() || beside(".checkpoint").exists() || beside(".partial").exists()
}

/// The hash that files had before there were keys.
fn earlier_hash(made_of: &dyn Debug) -> String {
    short_hash(format!("{made_of:?}").as_bytes())
}

fn short_hash(bytes: &[u8]) -> String {
    fingerprint(bytes)[..16].to_owned()
}

/// The user's cache folder, or one here where there is none.
pub fn folder() -> PathBuf {
    let user = etcetera::choose_base_strategy().map(|folders| folders.cache_dir().join("ivoro"));
    user.unwrap_or_else(|_| PathBuf::from("ivoro-cache"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Device;
    use crate::network::Stem;
    use crate::shape::{How, Shape};
    use ivoro::View;

    fn plan() -> Plan {
        Plan {
            architecture: Architecture::resnet18(Stem::Small, 3, 0),
            recipe: Recipe::default(),
            base: vec![0, 1, 2],
            fit: Fit { shape: Shape { height: 32, width: 32, channels: 3 }, how: How::Exact },
            broken: Broken::Fail,
            device: "cpu".parse::<Device>().unwrap(),
            identity: "0123".to_owned(),
        }
    }

    fn extraction() -> Extraction {
        Extraction {
            views: vec![View::UPRIGHT, View::UPRIGHT.mirror()],
            layers: vec!["last".to_owned()],
            half_precision: true,
            batch: 64,
            fit: Fit {
                shape: Shape { height: 224, width: 224, channels: 3 },
                how: How::ResizeThenCentreCrop { resize: 256 },
            },
            broken: Broken::Skip,
            metadata: BTreeMap::from([("weights".to_owned(), "abcd".to_owned())]),
        }
    }

    /// Version 0.1.0 gave these names; files that bear them took hours.
    #[test]
    fn files_of_earlier_versions_are_found() {
        assert_eq!(earlier_hash(&plan()), "0417f6263e020c86");
        assert_eq!(earlier_hash(&extraction()), "87543d8735dbc2dd");
        let folder = tempfile::tempdir().unwrap();
        let earlier = folder.path().join("0417f6263e020c86.safetensors");
        assert_ne!(weights_path(folder.path(), &plan()), earlier);
        std::fs::write(&earlier, "").unwrap();
        assert_eq!(weights_path(folder.path(), &plan()), earlier);
    }

    /// These names stand in users' caches: if they change, raise the version and find the old ones.
    #[test]
    fn names_stay() {
        let folder = Path::new("cache");
        assert_eq!(weights_path(folder, &plan()), folder.join("a9ce17d0ce12040f.safetensors"));
        assert_eq!(features_path(folder, &extraction()), folder.join("9f28ffde8767dd66.features"));
    }

    #[test]
    fn whatever_makes_another_file_has_another_name_and_the_batch_does_not() {
        let folder = Path::new("cache");
        let (plan, extraction) = (plan(), extraction());
        let seed = Recipe { seed: 1, ..plan.recipe.clone() };
        for other in [
            Plan { recipe: seed, ..plan.clone() },
            Plan { base: vec![0, 2, 1], ..plan.clone() },
            Plan { identity: "other".to_owned(), ..plan.clone() },
            Plan { broken: Broken::Skip, ..plan.clone() },
        ] {
            assert_ne!(weights_path(folder, &other), weights_path(folder, &plan));
        }
        let other = Extraction { half_precision: false, ..extraction.clone() };
        assert_ne!(features_path(folder, &other), features_path(folder, &extraction));
        let other = Extraction { batch: 1, ..extraction.clone() };
        assert_eq!(features_path(folder, &other), features_path(folder, &extraction));
    }
}
