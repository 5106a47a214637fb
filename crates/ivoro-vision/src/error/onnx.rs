//! What can go wrong with a network in an ONNX file.

use std::path::PathBuf;

use crate::shape::Shape;

/// What went wrong with an ONNX network: lower case, what, which, expected, found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The file holds no network that can be read.
    #[error("{path}: not a readable ONNX file: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with its bytes.
        reason: String,
    },

    /// The runtime refuses the network, for an operator it does not know or an invalid graph.
    #[error("{path}: {runtime} can't load this network: {reason}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// The runtime.
        runtime: &'static str,
        /// What it said, with the name of the operator.
        reason: String,
    },

    /// The network could not be run.
    #[error("{path}: {runtime} can't run this network on {images} images at once: {reason}")]
    Run {
        /// The file.
        path: PathBuf,
        /// The runtime.
        runtime: &'static str,
        /// How many images it was given; some networks take one at a time only.
        images: usize,
        /// What it said.
        reason: String,
    },

    /// The network's input is not one tensor of images.
    #[error("{path}: {what}")]
    Input {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        what: String,
    },

    /// The file leaves the images' size open and none was given.
    #[error("{path}: the file leaves {side} of its input open; give it in the settings")]
    SizeOpen {
        /// The file.
        path: PathBuf,
        /// `the height`, `the width` or both.
        side: &'static str,
    },

    /// The network takes images of another size than asked for.
    #[error("{path}: the network's {side} is fixed at {fixed}, {asked} was asked for")]
    Size {
        /// The file.
        path: PathBuf,
        /// Height, width or number of channels.
        side: &'static str,
        /// What the file says.
        fixed: usize,
        /// What the settings say.
        asked: usize,
    },

    /// The network computes nothing of this name.
    #[error("{path}: there is no value \"{name}\" in this network; near it are {}", list(.nearest))]
    NoSuchValue {
        /// The file.
        path: PathBuf,
        /// The name asked for.
        name: String,
        /// Names that exist, the most similar first.
        nearest: Vec<String>,
    },

    /// The same value was asked for twice.
    #[error("{path}: the value \"{name}\" is asked for twice")]
    Repeated {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },

    /// A value is no feature vector and no stack of feature maps.
    #[error(
        "{path}: the value \"{name}\" is {found}; expected [{images}, features] or four dimensions \
         that begin with {images}"
    )]
    Value {
        /// The file.
        path: PathBuf,
        /// Its name.
        name: String,
        /// Its dimensions.
        found: String,
        /// How many images went in.
        images: usize,
    },

    /// Images that the network does not take.
    #[error("{bytes} bytes of {found} images, expected whole images of {expected}")]
    Images {
        /// What the network takes.
        expected: Shape,
        /// What was given.
        found: Shape,
        /// How many bytes were given.
        bytes: usize,
    },

    /// A layer that the network does not have.
    #[error("layer {index} was asked for, the network gives {layers}")]
    Layer {
        /// The index, from 0.
        index: usize,
        /// How many there are.
        layers: usize,
    },

    /// ONNX Runtime is not part of this build.
    #[error("this build has no ONNX Runtime; build with the cargo feature \"onnxruntime\"")]
    NotBuilt,

    /// ONNX Runtime's library can't be opened.
    #[error(
        "ONNX Runtime can't be opened: {reason}; hint: `pip install onnxruntime` and set \
         ORT_DYLIB_PATH to the file onnxruntime/capi/libonnxruntime.so.* of that package"
    )]
    Library {
        /// What the system said.
        reason: String,
    },
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}
