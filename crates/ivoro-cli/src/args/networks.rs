//! Arguments of `ivoro networks`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::images::{FitArguments, OnnxArguments};

/// Networks at hand: the one that comes with the program, and those that were added. A larger one from a hub
/// tells more apart: DINOv2, CLIP or a ViT, as ONNX.
#[derive(Debug, Args)]
pub(crate) struct NetworksArguments {
    #[command(subcommand)]
    pub(crate) action: Option<NetworksCommand>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NetworksCommand {
    /// Store a network under a name, for --backbone NAME. It is run once before.
    Add(AddArguments),
    /// Write an ONNX network as a list of operations with weights in 16 bits: half as large, and the file
    /// says how images are brought to it. For convolutional networks that this program computes itself.
    Convert(ConvertArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// The network: an ONNX file, or weights (.safetensors).
    pub(crate) file: PathBuf,

    /// What it is called from now on.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// Under which licence it may be used; it is listed.
    #[arg(long, value_name = "TEXT")]
    pub(crate) licence: Option<String>,

    #[command(flatten)]
    pub(crate) onnx: NetworkOnnxArguments,
}

/// How images are brought to an ONNX network.
#[derive(Debug, Args)]
pub(crate) struct NetworkOnnxArguments {
    /// Mean of each channel of pixels from 0 to 1 (default: ImageNet's).
    #[arg(long, value_name = "R,G,B", value_delimiter = ',', requires = "deviation")]
    pub(crate) mean: Vec<f32>,

    /// Deviation of each channel.
    #[arg(long, value_name = "R,G,B", value_delimiter = ',', requires = "mean")]
    pub(crate) deviation: Vec<f32>,

    /// Values that are features, the last layer first (default: the outputs of the graph).
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) outputs: Vec<String>,

    /// Side of the square that images are brought to, where the file leaves it open.
    #[arg(long, value_name = "PIXELS")]
    pub(crate) size: Option<usize>,

    /// How other sizes are brought to it (default: the centre).
    #[arg(long, value_name = "HOW")]
    pub(crate) fit: Option<super::images::FitChoice>,
}

impl NetworkOnnxArguments {
    /// The same as arguments of the verbs that look at images.
    pub(crate) fn split(&self) -> (OnnxArguments, FitArguments) {
        let onnx = OnnxArguments {
            outputs: self.outputs.clone(),
            mean: self.mean.clone(),
            deviation: self.deviation.clone(),
        };
        (onnx, FitArguments { size: self.size, fit: self.fit, skip_broken: false })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// The ONNX network.
    pub(crate) file: PathBuf,

    /// The file to write.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// What it is called, in the file.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// Names of the layers in the file, in the order of --outputs (default: last, and those names).
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) layers: Vec<String>,

    #[command(flatten)]
    pub(crate) onnx: NetworkOnnxArguments,
}
