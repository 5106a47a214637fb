//! Everything that can go wrong with images, one variant per thing a caller can act on.

mod onnx;

use std::path::{Path, PathBuf};

pub use onnx::OnnxError;

use crate::shape::Shape;

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: lower case, what, which, expected, found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file operation; the message names the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),

    /// The method or its files said no.
    #[error(transparent)]
    Method(#[from] ivoro::Error),

    /// A network in an ONNX file can't be used.
    #[error(transparent)]
    Onnx(#[from] OnnxError),

    /// There is nothing at the path given.
    #[error("{path}: there is no such file or folder; expected {expected}")]
    Missing {
        /// The path.
        path: PathBuf,
        /// What should be there.
        expected: String,
    },

    /// A folder or file is no data set of a known layout.
    #[error("{path}: no known data set; looked for {looked_for}")]
    UnknownLayout {
        /// The folder or file.
        path: PathBuf,
        /// Every layout that would have been read.
        looked_for: String,
    },

    /// A file is not what its name or header says: truncated, forged, or of another kind.
    #[error("{path}: {what}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },

    /// A file claims or unpacks to more than is read.
    #[error("{path}: {what} takes {bytes} bytes, at most {most} are read")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        what: String,
        /// How many bytes it would take.
        bytes: u64,
        /// The most that is read.
        most: u64,
    },

    /// A label does not name a class.
    #[error("{path}: image {row}: label {label} is outside 0..{classes}")]
    LabelRange {
        /// The file that holds the label.
        path: PathBuf,
        /// Which image, counted from 0.
        row: usize,
        /// The label found.
        label: i64,
        /// How many classes there are.
        classes: usize,
    },

    /// There are not as many labels as images.
    #[error("{path}: {labels} labels, expected one for each of {images} images")]
    LabelCount {
        /// The file that holds the labels.
        path: PathBuf,
        /// How many labels there are.
        labels: usize,
        /// How many images there are.
        images: usize,
    },

    /// An image has another size or number of channels than the rest.
    #[error("{path}: image of {found}, expected {expected}; images of mixed sizes need resizing")]
    Mixed {
        /// The image.
        path: PathBuf,
        /// The shape asked for.
        expected: Shape,
        /// The shape of the image.
        found: Shape,
    },

    /// A class folder holds no image.
    #[error("{path}: class folder without an image; expected at least {least}")]
    EmptyClass {
        /// The folder.
        path: PathBuf,
        /// How many images a class needs here.
        least: usize,
    },

    /// A file that should be an image can't be decoded.
    #[error("{path}: not a readable image: {reason}")]
    BrokenImage {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        reason: String,
    },

    /// An image that ends before all of it is there.
    #[error("{path}: the image is cut off: {found}")]
    TruncatedImage {
        /// The file.
        path: PathBuf,
        /// What there is of it.
        found: String,
    },

    /// An image of a format that is known and not read.
    #[error("{path}: an image in the format {found}, which is not read; expected {read}")]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The format.
        found: &'static str,
        /// What is read.
        read: &'static str,
    },

    /// A pipe, a socket or a device, which is never opened.
    #[error("{path}: expected a file, found {found}")]
    NoFile {
        /// Where it lies.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },

    /// A photo that is to be learned lies in no folder that could name its class.
    #[error(
        "{path}: no folder names the class of this photo; expected CLASS/PHOTO or --class NAME"
    )]
    NoClass {
        /// The photo.
        path: PathBuf,
    },

    /// A row that the data set does not have was asked for.
    #[error("row {row} was asked for, the split has {rows} images")]
    Row {
        /// The row, counted from 0.
        row: usize,
        /// How many there are.
        rows: usize,
    },

    /// No device of the kind asked for can be used.
    #[error("no device \"{asked}\": {found}")]
    NoDevice {
        /// What was asked for.
        asked: String,
        /// What there is instead.
        found: String,
    },

    /// The engine that computes networks failed.
    #[error("the network could not be computed: {what}")]
    Engine {
        /// What the engine said.
        what: String,
    },

    /// Rotations by a quarter turn need square images.
    #[error("images of {found} can't be turned by 90°: height and width must be equal")]
    NotSquare {
        /// The shape of the images.
        found: Shape,
    },

    /// A network that takes images of any size says nothing of the size to bring photos to.
    #[error("the network does not say which size of images it takes; name it with --size")]
    UnknownSize,

    /// The network that a model was taught with is nowhere to be found.
    #[error(
        "the network of the model was not found: {name}, hash {}…; looked in {}",
        hash.get(..12).unwrap_or(hash), .looked_in.join(", ")
    )]
    NetworkNotFound {
        /// What it was called.
        name: String,
        /// Hash of its file.
        hash: String,
        /// Files and folders that were looked at.
        looked_in: Vec<String>,
    },

    /// A model was taught features, and nothing says which network made them.
    #[error("the model was taught with features, and nothing says which network made them")]
    UnknownNetwork,

    /// A network can't be stored under this name.
    #[error("\"{name}\" {reason}")]
    NetworkName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// A network's file says how pixels are normalised, and another way was asked for.
    #[error("{path}: its pixels are normalised with {own}; {asked} was asked for")]
    FixedNormalisation {
        /// The network.
        path: PathBuf,
        /// What its file says.
        own: String,
        /// What was asked for.
        asked: String,
    },

    /// A batch has more or fewer pixels than its images have.
    #[error("a batch of {found} bytes, expected {expected}")]
    Pixels {
        /// Bytes of that many images.
        expected: usize,
        /// Bytes given.
        found: usize,
    },

    /// A training label is outside the classes that the network has outputs for.
    #[error("label {label} is outside the {classes} classes that the network has outputs for")]
    Label {
        /// The label.
        label: u32,
        /// How many classes there are.
        classes: usize,
    },

    /// The network was made for images with other channels.
    #[error("images of {found}, but the network takes {expected} channels")]
    Channels {
        /// Channels of the network.
        expected: usize,
        /// Shape of the images.
        found: Shape,
    },

    /// None of the base classes has a training image.
    #[error("none of the {classes} base classes has an image to train on")]
    NothingToTrain {
        /// How many base classes there are.
        classes: usize,
    },

    /// A name that no method to compare with has.
    #[error("there is no baseline called {name:?}; known are {known}")]
    UnknownBaseline {
        /// The name.
        name: String,
        /// All names there are.
        known: String,
    },

    /// A network was trained on another number of base classes.
    #[error(
        "the network has {found} outputs, which is neither the protocol's {expected} base classes \
         nor four times as many: it was trained on other classes"
    )]
    BaseClasses {
        /// Base classes of the protocol.
        expected: usize,
        /// Outputs of the network.
        found: usize,
    },

    /// A method needs a network that tells rotations apart.
    #[error(
        "PASS starts from a network trained with rotations, 4 outputs per class; this one has \
         {outputs} for {classes} classes"
    )]
    NoRotations {
        /// Outputs of the network.
        outputs: usize,
        /// Base classes.
        classes: usize,
    },

    /// The loss is no longer a number.
    #[error("training diverged in epoch {epoch}: the loss is {loss}")]
    Diverged {
        /// Which epoch, counted from 1.
        epoch: usize,
        /// The loss.
        loss: f64,
    },

    /// A checkpoint belongs to another training.
    #[error("{path}: the checkpoint of a training with another {what}")]
    OtherTraining {
        /// The checkpoint.
        path: PathBuf,
        /// What differs.
        what: String,
    },

    /// No layer of the network has that name.
    #[error("the network has no layer \"{name}\"; it has {found}")]
    NoLayer {
        /// The name asked for.
        name: String,
        /// The names there are.
        found: String,
    },

    /// The network takes images of one shape only, and these have another.
    #[error("the network takes images of {expected}, not of {found}")]
    NetworkShape {
        /// What the network takes.
        expected: Shape,
        /// What was given.
        found: Shape,
    },

    /// A layer that the network does not have was asked for.
    #[error("there is no such layer, the network has {found}")]
    Layer {
        /// How many layers there are.
        found: usize,
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
}

impl Error {
    /// [`Error::Malformed`], from what is at hand.
    pub(crate) fn malformed(path: &Path, what: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_owned(), what: what.into() }
    }

    /// [`Error::BrokenImage`], from what is at hand.
    pub(crate) fn broken(path: &Path, reason: &impl ToString) -> Self {
        Self::BrokenImage { path: path.to_owned(), reason: reason.to_string() }
    }
}
