//! What a model remembers of the network whose features it was taught with: data, no pixel is seen here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The largest side of images that a description may name.
const MOST_SIDE: usize = 1 << 15;
/// The most layers, and the most bytes of a name.
const MOST_LAYERS: usize = 1 << 10;
const MOST_NAME: usize = 1 << 12;

/// A network, and everything beside its weights that decides what it computes of an image.
///
/// ```
/// use ivoro::network::{ImageFit, NetworkDescription};
/// let taught = NetworkDescription {
///     name: "lite0".to_owned(),
///     hash: "ab".repeat(32),
///     path: None,
///     outputs: vec!["features".to_owned()],
///     height: 224,
///     width: 224,
///     fit: ImageFit::Centre { of: 256 },
///     mean: vec![0.5; 3],
///     deviation: vec![0.5; 3],
///     engine: "ivoro".to_owned(),
///     version: NetworkDescription::VERSION,
/// };
/// let text = taught.to_json();
/// assert_eq!(NetworkDescription::from_json(&text).unwrap(), taught);
/// let stretched = NetworkDescription { fit: ImageFit::Stretch, ..taught.clone() };
/// assert!(taught.check_same(&stretched).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkDescription {
    /// Version of this description, [`VERSION`](Self::VERSION).
    pub version: u32,
    /// What people call the network.
    pub name: String,
    /// BLAKE3 of its file, in hexadecimal.
    pub hash: String,
    /// Where the file was last, unless it comes with the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The layers that it gives, the last one first; of an ONNX file the names of its values.
    pub outputs: Vec<String>,
    /// Rows of an image as the network sees it.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// How images of other sizes are brought to that.
    pub fit: ImageFit,
    /// What is taken off pixels from 0 to 1, for each channel.
    pub mean: Vec<f32>,
    /// What they are then divided by.
    pub deviation: Vec<f32>,
    /// What computed it. Engines agree but for last digits, so this is told and not compared.
    pub engine: String,
}

/// How images are brought to the size that a network sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageFit {
    /// Not at all: they have it.
    Exact,
    /// Both sides are scaled on their own.
    Stretch,
    /// The shorter side is scaled, then the centre is cut out.
    Centre {
        /// The length of the shorter side before.
        of: usize,
    },
}

impl fmt::Display for ImageFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Stretch => f.write_str("stretch"),
            Self::Centre { of } => write!(f, "centre of {of}"),
        }
    }
}

impl NetworkDescription {
    /// The version that is written, and the newest that is read.
    pub const VERSION: u32 = 1;

    /// The description as text, for metadata of other files.
    pub fn to_json(&self) -> String {
        // plain data of finite numbers is always JSON
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads such text; the error is a sentence without a subject.
    pub fn from_json(text: &str) -> std::result::Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } =
            serde_json::from_str(text).map_err(|error| format!("can't be read: {error}"))?;
        if version > Self::VERSION {
            let known = Self::VERSION;
            return Err(format!("has version {version}, this program reads up to {known}"));
        }
        let read: Self =
            serde_json::from_str(text).map_err(|error| format!("can't be read: {error}"))?;
        if read.is_sensible() { Ok(read) } else { Err("contradicts itself".to_owned()) }
    }

    /// Whether sizes and numbers can be those of a network.
    pub(crate) fn is_sensible(&self) -> bool {
        let side = |side: usize| (1..=MOST_SIDE).contains(&side);
        let name = |name: &String| !name.is_empty() && name.len() <= MOST_NAME;
        let fits = match self.fit {
            ImageFit::Exact | ImageFit::Stretch => true,
            ImageFit::Centre { of } => of >= self.height.max(self.width) && of <= 4 * MOST_SIDE,
        };
        (1..=Self::VERSION).contains(&self.version)
            && name(&self.name)
            && self.hash.len() == 64
            && self.hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            && self.path.as_ref().is_none_or(name)
            && (1..=MOST_LAYERS).contains(&self.outputs.len())
            && self.outputs.iter().all(name)
            && side(self.height)
            && side(self.width)
            && fits
            && matches!(self.mean.len(), 1 | 3)
            && self.deviation.len() == self.mean.len()
            && self.mean.iter().all(|value| value.is_finite())
            && self.deviation.iter().all(|value| value.is_finite() && *value > 0.0)
            && self.engine.len() <= MOST_NAME
    }

    /// Refuses a network, or a way to bring images to it, that computes something else. Where the file
    /// lies, what it is called and what computes it may differ.
    pub fn check_same(&self, other: &Self) -> Result<()> {
        if self.hash != other.hash {
            return Err(Error::OtherNetwork {
                expected: self.hash.clone(),
                found: other.hash.clone(),
            });
        }
        match self.differences(other).next() {
            None => Ok(()),
            Some((what, expected, found)) => {
                let name = self.name.clone();
                Err(Error::OtherImages { name, what, expected, found })
            }
        }
    }

    /// What differs beside the hash: what it is, and both values as text.
    fn differences(&self, other: &Self) -> impl Iterator<Item = (&'static str, String, String)> {
        let told = |it: &Self| {
            [
                ("layers", it.outputs.join(",")),
                ("images of size", format!("{}×{}", it.width, it.height)),
                ("fit", it.fit.to_string()),
                ("mean", numbers(&it.mean)),
                ("deviation", numbers(&it.deviation)),
            ]
        };
        let pairs = told(self).into_iter().zip(told(other));
        pairs
            .filter(|(own, other)| own != other)
            .map(|((what, own), (_, other))| (what, own, other))
    }
}

/// Network, size, fit and normalisation in one line.
impl fmt::Display for NetworkDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, width, height, fit, mean, deviation, .. } = self;
        let (mean, deviation) = (numbers(mean), numbers(deviation));
        write!(f, "{name}, {width}×{height}, {fit}, mean {mean}, deviation {deviation}")
    }
}

fn numbers(values: &[f32]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> NetworkDescription {
        NetworkDescription {
            version: 1,
            name: "a network".to_owned(),
            hash: "0f".repeat(32),
            path: Some("/there/a.onnx".to_owned()),
            outputs: vec!["features".to_owned(), "inner".to_owned()],
            height: 224,
            width: 220,
            fit: ImageFit::Centre { of: 256 },
            mean: vec![0.498, 0.485, 0.1],
            deviation: vec![0.502, 0.229, 0.1],
            engine: "ivoro".to_owned(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for fit in [ImageFit::Exact, ImageFit::Stretch, ImageFit::Centre { of: 224 }] {
            let description = NetworkDescription { fit, path: None, ..description() };
            assert_eq!(NetworkDescription::from_json(&description.to_json()), Ok(description));
        }
    }

    #[test]
    fn each_thing_that_changes_features_is_refused_with_both_values() {
        let own = description();
        let moved = NetworkDescription {
            path: None,
            name: "b".to_owned(),
            engine: "rten".to_owned(),
            ..own.clone()
        };
        own.check_same(&moved).unwrap();
        let others = [
            ("fit", NetworkDescription { fit: ImageFit::Stretch, ..own.clone() }, "stretch"),
            ("size", NetworkDescription { height: 256, ..own.clone() }, "220×256"),
            ("mean", NetworkDescription { mean: vec![0.5; 3], ..own.clone() }, "0.5,0.5,0.5"),
            ("deviation", NetworkDescription { deviation: vec![1.0; 3], ..own.clone() }, "1,1,1"),
            ("layers", NetworkDescription { outputs: vec!["x".to_owned()], ..own.clone() }, "x"),
            ("hash", NetworkDescription { hash: "1e".repeat(32), ..own.clone() }, "1e1e1e"),
        ];
        for (what, other, found) in others {
            let error = own.check_same(&other).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(found), "{error}");
        }
    }

    #[test]
    fn descriptions_of_files_are_not_believed() {
        let refused = |change: &dyn Fn(&mut NetworkDescription)| {
            let mut changed = description();
            change(&mut changed);
            NetworkDescription::from_json(&changed.to_json()).unwrap_err()
        };
        refused(&|it| it.height = 0);
        refused(&|it| it.width = usize::MAX);
        refused(&|it| it.fit = ImageFit::Centre { of: 100 });
        refused(&|it| it.mean.clear());
        refused(&|it| it.deviation[1] = 0.0);
        refused(&|it| it.hash.clear());
        refused(&|it| it.outputs.clear());
        let newer = refused(&|it| it.version = 2);
        assert!(newer.contains("version 2"), "{newer}");
        let more = description().to_json().replace("\"name\"", "\"views\":4,\"name\"");
        NetworkDescription::from_json(&more).unwrap_err();
        // one of a later version may have keys of its own: its version is told, not they
        let later = more.replace("\"version\":1", "\"version\":9");
        let error = NetworkDescription::from_json(&later).unwrap_err();
        assert!(error.contains("version 9"), "{error}");
    }
}
