//! Everything that can go wrong, one variant per thing a caller can act on.

use std::path::{Path, PathBuf};

/// A result with this crate's [`Error`].
///
/// ```
/// fn rows(data: Vec<f32>) -> ivoro::Result<usize> {
///     Ok(ivoro::Matrix::new(data.len() / 2, 2, data)?.rows())
/// }
/// assert!(rows(vec![0.0; 4]).is_ok() && rows(vec![0.0; 3]).is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: lower case, what, which, expected, found.
///
/// ```
/// use ivoro::{Error, Variant};
/// let refused = "iVoro-X".parse::<Variant>().unwrap_err();
/// assert!(matches!(refused, Error::Variant { .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file operation; the message names the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),

    /// A file is not what its name or header says: truncated, forged, or of another kind.
    #[error("{path}: {what}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },

    /// A file was written by a newer version of the program.
    #[error("{path}: format version {found}, this program reads up to {supported}")]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
        /// The newest version understood here.
        supported: u64,
    },

    /// The checksum in a model file does not match its contents.
    #[error("{path}: checksum {found} does not match the recorded {expected}; the file is damaged")]
    Checksum {
        /// The file.
        path: PathBuf,
        /// The checksum recorded in the file.
        expected: String,
        /// The checksum of what was read.
        found: String,
    },

    /// Another process is writing the same model.
    #[error("{path}: locked by another process that is writing this model")]
    Locked {
        /// The model file.
        path: PathBuf,
    },

    /// A feature value is NaN, infinite, or so large that distances would be.
    #[error(
        "{origin}: row {row}, layer {layer}, view {view}: {value} is not a finite number within ±1e15"
    )]
    NotFinite {
        /// The file or set the row belongs to.
        origin: String,
        /// Row, counted from 0.
        row: usize,
        /// Layer name.
        layer: String,
        /// View name.
        view: String,
        /// The value found.
        value: f32,
    },

    /// A feature value is too large for the unit that the first samples of the model chose.
    #[error(
        "{origin}: class {class}: {value} is outside ±{limit}, which is as far as sums grow from the first samples"
    )]
    OutOfRange {
        /// The file or set.
        origin: String,
        /// The class of the sample, which may have been transformed.
        class: String,
        /// The value found.
        value: f32,
        /// The largest magnitude the model accepts.
        limit: f64,
    },

    /// An exact sum would leave its 128-bit integer.
    #[error("class {class}: too many samples for an exact sum ({count})")]
    CountOverflow {
        /// Class name.
        class: String,
        /// Samples learned.
        count: u64,
    },

    /// A class without a name, or with one that is far too long.
    #[error("{origin}: class {place}: a name of {found} bytes, expected 1 to {most}")]
    ClassName {
        /// The file or set.
        origin: String,
        /// Which class, counted from 0.
        place: usize,
        /// Bytes of its name.
        found: usize,
        /// Bytes of the longest name that is taken.
        most: usize,
    },

    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, found {found}")]
    Size {
        /// Which quantity.
        what: String,
        /// The size required.
        expected: usize,
        /// The size given.
        found: usize,
    },

    /// A label does not name a class.
    #[error("{origin}: row {row}: label {label} is outside 0..{classes}")]
    LabelRange {
        /// The file or set the row belongs to.
        origin: String,
        /// Row, counted from 0.
        row: usize,
        /// The label found.
        label: i64,
        /// How many classes there are.
        classes: usize,
    },

    /// A class has no sample.
    #[error("class {class} has no {split} sample")]
    EmptyClass {
        /// Class name.
        class: String,
        /// Where it is empty: train, test, ….
        split: &'static str,
    },

    /// A class arrived that the model already knows.
    #[error(
        "class {class} was already learned in phase {}; use update to add samples to it", phase + 1
    )]
    ClassReturns {
        /// Class name.
        class: String,
        /// The phase in which it was learned, counted from 0.
        phase: usize,
    },

    /// A class that the model does not know.
    #[error("class {class} is not in the model")]
    UnknownClass {
        /// Class name.
        class: String,
    },

    /// The variant needs rotated views that the features do not have.
    #[error("{variant} needs the views {needed}, the features have {found}")]
    MissingViews {
        /// The variant.
        variant: String,
        /// Views required.
        needed: String,
        /// Views present.
        found: String,
    },

    /// The variant needs a layer that the features do not have.
    #[error("{variant} needs {needed}, the features have {found}")]
    MissingLayer {
        /// The variant.
        variant: String,
        /// What is needed.
        needed: String,
        /// The layers present.
        found: String,
    },

    /// A variant's name does not parse.
    #[error("variant {name}: {reason}; the grammar is {grammar}, letters in this order")]
    Variant {
        /// The name given.
        name: String,
        /// What is wrong with it.
        reason: String,
        /// How names of variants are made.
        grammar: &'static str,
    },

    /// A protocol's text does not parse or does not fit the classes.
    #[error("protocol {text}: {reason}")]
    Protocol {
        /// The text given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A class order does not parse or is no permutation.
    #[error("class order {text}: {reason}")]
    Order {
        /// The text given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A setting is outside its range.
    #[error("{name} = {value}: {reason}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// The value given.
        value: String,
        /// Its range.
        reason: &'static str,
    },

    /// Forgetting can't be exact because of a component of this model.
    #[error("class {class} can't be forgotten exactly: {component}; {}", component.alternative())]
    ForgetInexact {
        /// Class name.
        class: String,
        /// The component that mixes classes.
        component: MixedComponent,
    },

    /// Taking samples back can't be exact because of a component of this model.
    #[error(
        "samples of class {class} can't be taken back exactly: {component}; {}",
        component.alternative()
    )]
    RetractInexact {
        /// Class name.
        class: String,
        /// The component that was computed from the samples.
        component: MixedComponent,
    },

    /// More would be taken back than was given.
    #[error("class {class}: more would be taken back than was given: {reason}")]
    NotGiven {
        /// Class name.
        class: String,
        /// How that shows.
        reason: NotGiven,
    },

    /// Features that were computed again may differ from those that were learned.
    #[error(
        "the samples can't be taken back exactly: {}",
        if *networks {
            "the last digits of what a network computes depend on the machine, the engine and the images beside them"
        } else {
            "N or K computed their points on a machine whose arithmetic differs from this one's, or is not known"
        }
    )]
    OtherFeatures {
        /// Whether a network computed them; else the letters N or K did.
        networks: bool,
    },

    /// A receipt is of no use here.
    #[error("the receipt can't be used: {reason}")]
    Receipt {
        /// Why not.
        reason: ReceiptRefusal,
    },

    /// A class was to get the name of another one.
    #[error("a class {class} is in the model already")]
    NameTaken {
        /// Class name.
        class: String,
    },

    /// A sealed class keeps no sums that samples could be added to or taken from.
    #[error(
        "class {class} is sealed: it keeps no sums, so no sample can be added or taken away; it can be asked, forgotten and merged with other classes"
    )]
    Sealed {
        /// Class name.
        class: String,
    },

    /// A class with a compact scatter keeps too little for samples to be added or taken away.
    #[error(
        "class {class} keeps its spread in few directions (scatter compact), so no sample can be added or taken away; forget it and learn it again from all its samples"
    )]
    CompactClass {
        /// Class name.
        class: String,
    },

    /// Two models can't be merged.
    #[error("the models can't be merged: {reason}")]
    Merge {
        /// Why not.
        reason: MergeRefusal,
    },

    /// Features of one network mean nothing to a model taught with another.
    #[error(
        "the model was taught with another network: expected the one with hash {}…, found {}…",
        expected.get(..12).unwrap_or(expected), found.get(..12).unwrap_or(found)
    )]
    OtherNetwork {
        /// Hash of the network that the model was taught with.
        expected: String,
        /// Hash of the one in use.
        found: String,
    },

    /// Images would be brought to the network in another way than those that the model was taught with.
    #[error("the model was taught with {name} and {what} {expected}; {found} was given")]
    OtherImages {
        /// Name of the network.
        name: String,
        /// What differs.
        what: &'static str,
        /// What the model was taught with.
        expected: String,
        /// What was given.
        found: String,
    },

    /// A component can't do what was asked, and what can.
    #[error("{what}")]
    Unsupported {
        /// What is not possible and what to do instead.
        what: String,
    },

    /// A matrix that must be positive definite is not.
    #[error("the {what} is not positive definite; raise the ridge (now {ridge})")]
    NotPositiveDefinite {
        /// Which matrix.
        what: &'static str,
        /// The ridge in use.
        ridge: f64,
    },
}

/// A part of a model that was computed from several classes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MixedComponent {
    /// The pooled scatter of W.
    #[error("W keeps one scatter for all classes together")]
    PooledScatter,
    /// The probe of a phase with several classes.
    #[error("the probe of its phase was trained on it and other classes")]
    Probe,
}

impl MixedComponent {
    /// What to do instead of exact forgetting.
    pub fn alternative(self) -> &'static str {
        match self {
            Self::PooledScatter => "learn with the scatter kept per class",
            Self::Probe => "drop the probes of that phase: its classes keep their exact means",
        }
    }
}

/// How it shows that samples were never given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotGiven {
    /// There are fewer samples.
    #[error("the model has {kept} of its samples, to be taken are {taken}")]
    Count {
        /// Samples of the class.
        kept: u64,
        /// Samples to be taken.
        taken: u64,
    },
    /// What would remain is impossible.
    #[error("no {left} samples have the sums that would remain, so others were learned than these")]
    Sums {
        /// Samples that would remain.
        left: u64,
    },
    /// The journal says that this very lesson was taken back as often as it was given.
    #[error("the journal says that this very lesson was taken back already")]
    Again,
}

/// Why a receipt is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptRefusal {
    /// It is of a model of another kind.
    #[error("{what} of its model differs: expected {own}, found {other}")]
    Differs {
        /// What differs.
        what: &'static str,
        /// In the model.
        own: String,
        /// In the receipt.
        other: String,
    },
    /// What it says was taken back already.
    #[error("its samples were taken back already")]
    Used,
    /// It is not of all samples of a class.
    #[error("class {class}: {left} of its {all} samples are in no receipt")]
    Incomplete {
        /// Class name.
        class: String,
        /// Samples in no receipt.
        left: u64,
        /// Samples of the class.
        all: u64,
    },
}

/// Why two models can't be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeRefusal {
    /// Phases with probes can't be joined to one phase.
    #[error("phases with probes of their own can't be made one")]
    Probes,
    /// A class would have to leave the pooled scatter.
    #[error(
        "class {class} of the ancestor is missing in one of the two, and a scatter of all classes together can't lose it"
    )]
    PooledScatter {
        /// Class name.
        class: String,
    },
    /// A class of both models is sealed in one of them.
    #[error(
        "class {class} is in both and sealed in one of them: without its sums, samples can't be added to it"
    )]
    Sealed {
        /// Class name.
        class: String,
    },
    /// A class of both models keeps its spread in few directions.
    #[error(
        "class {class} is in both and keeps its spread in few directions (scatter compact): two parts of it can't be joined"
    )]
    Compact {
        /// Class name.
        class: String,
    },
    /// The models are of different kinds.
    #[error("{what} differs: {own} and {other}")]
    Differs {
        /// What differs.
        what: &'static str,
        /// In the first model.
        own: String,
        /// In the second model.
        other: String,
    },
    /// The models keep different things of a sample.
    #[error(
        "what is kept of a sample depends on {name}, which is {own} in one and {other} in the other"
    )]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value in the first model.
        own: String,
        /// Its value in the second model.
        other: String,
    },
    /// Both models seem to hold the same samples, and no ancestor was given.
    #[error(
        "class {class} has the same statistics in both, so both seem to hold the same samples; name the model both started from"
    )]
    SameSamples {
        /// Class name.
        class: String,
    },
    /// The ancestor holds samples that a model lacks.
    #[error(
        "class {class} has more samples in the ancestor than now, so this is not the model both started from"
    )]
    OtherAncestor {
        /// Class name.
        class: String,
    },
}

/// Reads and writes a choice by its names, and refuses any other with the reason.
macro_rules! text_choice {
    ($type:ident, $name:literal, $reason:literal, $($text:literal => $variant:ident),+) => {
        impl $type {
            /// All that may be written.
            pub const WORDS: &'static [&'static str] = &[$($text),+];
        }

        impl std::str::FromStr for $type {
            type Err = $crate::error::Error;

            fn from_str(text: &str) -> $crate::error::Result<Self> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::error::Error::Setting { name: $name, value: text.to_owned(), reason: $reason }),
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text,)+ })
            }
        }
    };
}
pub(crate) use text_choice;

impl Error {
    /// [`Error::Malformed`], from what is at hand.
    #[doc(hidden)] // for the crates beside this one
    pub fn malformed(path: &Path, what: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_owned(), what: what.into() }
    }
}
