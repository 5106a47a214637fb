//! Feature files: safetensors, `NumPy`, Parquet and Arrow, read as [`Samples`].
//!
//! Every size a file claims is checked against the bytes it has before anything is allocated, and
//! whatever is wrong comes back as one sentence that names the file.

mod array;
mod assemble;
#[cfg(feature = "tables")]
mod cells;
#[cfg(feature = "tables")]
mod columns;
mod keys;
mod labels;
mod npy;
mod npz;
#[cfg(feature = "tables")]
mod parquet_guard;
mod safetensors;
mod split;
mod stream;
#[cfg(feature = "tables")]
mod table;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use array::{ArrayHeader, IntegerArray, Integers};
pub use npz::most_unpacked;
pub use split::SplitOrigin;
pub use stream::{FeatureWriter, Outline};
pub use write::write_features;

use ivoro::{Error, Points, Result, Samples};

/// What to take from a file, beyond what the file says of itself.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Labels for a lone `.npy` file: another `.npy` file.
    pub labels: Option<PathBuf>,
    /// The fraction of each class held out where a file has no test part of its own.
    pub holdout: f64,
    /// The seed of that hold-out.
    pub seed: u64,
    /// The layers wanted, the network's last layer first; all of them by default.
    pub layers: Option<Vec<String>>,
    /// The column or array with the labels, where a file has several or calls them unusually.
    pub label_column: Option<String>,
    /// The column or array with the features, likewise.
    pub feature_column: Option<String>,
    /// The column that says `train` or `test` in a Parquet or Arrow file.
    pub split_column: Option<String>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            labels: None,
            holdout: 0.2,
            seed: 0,
            layers: None,
            label_column: None,
            feature_column: None,
            split_column: None,
        }
    }
}

/// The rows of a part, with the labels that the file has for them.
#[derive(Clone, Debug)]
pub enum Set {
    /// There is a label for each row.
    Labelled(Samples),
    /// There are no labels.
    Unlabelled(Points),
}

impl Set {
    /// The rows without their labels.
    pub fn points(&self) -> &Points {
        match self {
            Self::Labelled(samples) => samples.points(),
            Self::Unlabelled(points) => points,
        }
    }

    /// The rows with their labels, if the file has any.
    pub fn labelled(&self) -> Option<&Samples> {
        match self {
            Self::Labelled(samples) => Some(samples),
            Self::Unlabelled(_) => None,
        }
    }
}

/// What a file holds: a train and a test part, or one set that is not divided.
///
/// Classes are those with a sample in the train part (or in the only part there is).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FeatureFile {
    /// The samples the file says to learn from.
    pub train: Option<Set>,
    /// The samples the file says to ask about.
    pub test: Option<Set>,
    /// The samples of a file that does not say which they are.
    pub all: Option<Set>,
    /// What else the file says of itself.
    pub metadata: BTreeMap<String, String>,
    /// The file, for messages.
    pub path: PathBuf,
    /// The first class the file speaks of (by name, or by a larger id) that has no sample.
    pub gap: Option<String>,
}

/// Reads the file at `path`, whose format is known by its first bytes, else by its extension.
pub fn read(path: &Path, options: &ReadOptions) -> Result<FeatureFile> {
    let mapped = crate::map::map(path)?;
    let format = Format::of(path, &mapped)?;
    format.check(path, options)?;
    match format {
        Format::Npy => npy::read_lone(path, &mapped, &npy::labels_beside(path, options)?, options),
        #[cfg(feature = "tables")]
        Format::Parquet => table::read_parquet(path, bytes::Bytes::from_owner(mapped), options),
        format => read_as(format, path, &mapped, options),
    }
}

/// Reads a file's bytes from memory; `name` stands for it in messages and gives the extension.
///
/// No other file is touched: a lone `.npy` array is read without labels.
pub fn read_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<FeatureFile> {
    let path = Path::new(name);
    read_as(Format::of(path, bytes)?, path, bytes, options)
}

/// Arrays of integers from the `NumPy` archive (`.npz`) at `path`, by name: those of `wanted` that
/// it has. Other arrays are not unpacked.
pub fn read_integers(path: &Path, wanted: &[&str]) -> Result<BTreeMap<String, IntegerArray>> {
    npz::read_integers(path, &crate::map::map(path)?, wanted)
}

/// [`read_integers`] from memory; `name` stands for the file in messages.
pub fn read_integers_bytes(
    name: &str,
    bytes: &[u8],
    wanted: &[&str],
) -> Result<BTreeMap<String, IntegerArray>> {
    npz::read_integers(Path::new(name), bytes, wanted)
}

/// What the headers of arrays in the `NumPy` archive (`.npz`) at `path` say, by name: those of
/// `wanted` that it has. No array is unpacked, so this is fast whatever the size of the file.
pub fn read_array_headers(path: &Path, wanted: &[&str]) -> Result<BTreeMap<String, ArrayHeader>> {
    npz::read_headers(path, &crate::map::map(path)?, wanted)
}

fn read_as(
    format: Format,
    path: &Path,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<FeatureFile> {
    match format {
        Format::Safetensors => safetensors::read(path, bytes, options),
        Format::Npy => npy::read_lone(path, bytes, &npy::LabelFile::None, options),
        Format::Npz => npz::read(path, bytes, options),
        #[cfg(feature = "tables")]
        Format::Parquet => table::read_parquet(path, bytes::Bytes::copy_from_slice(bytes), options),
        #[cfg(feature = "tables")]
        Format::ArrowFile => table::read_arrow_file(path, bytes, options),
        #[cfg(feature = "tables")]
        Format::ArrowStream => table::read_arrow_stream(path, bytes, options),
        #[cfg(not(feature = "tables"))]
        Format::Parquet | Format::ArrowFile | Format::ArrowStream => Err(Error::Unsupported {
            what: format!(
                "{}: this program was built without Parquet and Arrow; build it with the cargo \
                 feature tables",
                path.display()
            ),
        }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Safetensors,
    Npy,
    Npz,
    Parquet,
    ArrowFile,
    ArrowStream,
}

impl Format {
    fn of(path: &Path, bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::malformed(path, "the file is empty"));
        }
        Self::of_content(bytes).or_else(|| Self::of_extension(path)).ok_or_else(|| {
            Error::malformed(
                path,
                "neither its first bytes nor its extension are those of a .features or \
                 .safetensors, .npz, .npy, .parquet or .arrow file",
            )
        })
    }

    /// Refuses what makes no sense for a file of this format.
    fn check(self, path: &Path, options: &ReadOptions) -> Result<()> {
        let table = matches!(self, Self::Parquet | Self::ArrowFile | Self::ArrowStream);
        let lone = self == Self::Npy;
        let named = options.label_column.is_some() || options.feature_column.is_some();
        let what = if options.labels.is_some() && !lone {
            "labels in a file of their own are for a lone .npy array"
        } else if options.split_column.is_some() && !table {
            "a column that says train and test is for Parquet and Arrow files"
        } else if named && lone {
            "a lone .npy array has no columns to choose from"
        } else {
            return Ok(());
        };
        Err(Error::malformed(path, what))
    }

    fn of_content(bytes: &[u8]) -> Option<Self> {
        let magics: [(&[u8], Self); 6] = [
            (b"\x93NUMPY", Self::Npy),
            (b"PK\x03\x04", Self::Npz),
            (b"PK\x05\x06", Self::Npz),
            (b"PAR1", Self::Parquet),
            (b"ARROW1", Self::ArrowFile),
            (b"\xff\xff\xff\xff", Self::ArrowStream),
        ];
        let by_magic = magics.iter().find(|(magic, _)| bytes.starts_with(magic));
        // Safetensors has no magic: eight bytes of header length, then a JSON object.
        let safetensors = (bytes.get(8) == Some(&b'{')).then_some(Self::Safetensors);
        by_magic.map(|&(_, format)| format).or(safetensors)
    }

    fn of_extension(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "features" | "safetensors" => Some(Self::Safetensors),
            "npy" => Some(Self::Npy),
            "npz" => Some(Self::Npz),
            "parquet" => Some(Self::Parquet),
            "arrow" | "feather" | "ipc" => Some(Self::ArrowFile),
            "arrows" => Some(Self::ArrowStream),
            _ => None,
        }
    }
}

/// Which part of which file a message is about.
#[derive(Clone, Copy, Debug)]
struct Origin<'a> {
    path: &'a Path,
    /// `train`, `test`, or nothing for a set that is not divided.
    part: &'static str,
}

impl Origin<'_> {
    fn malformed(self, what: &str) -> Error {
        let separator = if self.part.is_empty() { "" } else { ": " };
        Error::malformed(self.path, format!("{}{separator}{what}", self.part))
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.part.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.path.display(), self.part)
    }
}
