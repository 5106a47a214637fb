//! How an ONNX network is to be used, beyond what its file says.

use crate::engine::Normalisation;

/// The order of the axes of images or feature maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Image, channel, row, column: what PyTorch exports.
    ChannelsFirst,
    /// Image, row, column, channel: what TensorFlow exports.
    ChannelsLast,
}

/// What computes the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// ONNX Runtime where the build has it and `ORT_DYLIB_PATH` names its library, else `Builtin`
    /// where it knows all operators, else `Rten`.
    #[default]
    Automatic,
    /// The engine that computes this crate's own networks. It knows the operators of ResNets,
    /// MobileNets and EfficientNets: convolutions in any groups, batch norm after them, padding
    /// before them, activations, sums, factors for each channel, pools and linear maps. And those of
    /// vision transformers: layer norm, attention, tokens that are put before others or taken.
    Builtin,
    /// The crate rten, which is part of every build.
    Rten,
    /// ONNX Runtime, in builds with the cargo feature `onnxruntime`.
    OnnxRuntime,
}

/// How an ONNX network is to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct OnnxOptions {
    /// Names of the values that are features, the last layer first: outputs of the graph or
    /// results of any operator inside. Empty: all outputs of the graph, in its order.
    pub outputs: Vec<String>,
    /// Rows of an image; needed where the file leaves them open.
    pub height: Option<usize>,
    /// Columns of an image; needed where the file leaves them open.
    pub width: Option<usize>,
    /// Axes of the input. Without it, the axis of 1 or 3 entries holds the channels, the second
    /// before the fourth.
    pub layout: Option<Layout>,
    /// Axes of values of four dimensions, whose pixels are averaged. Without it, those of the
    /// input.
    pub value_layout: Option<Layout>,
    /// How pixels become the input. An ONNX file does not say. Without it, the convention of
    /// networks trained on ImageNet.
    pub normalisation: Option<Normalisation>,
    /// A factor on what the normalisation gives: 255, with mean 0 and deviation 1, for networks
    /// that take pixels from 0 to 255.
    pub scale: f32,
    /// Images computed at once, where the file does not fix it.
    pub batch: usize,
    /// What computes the network.
    pub runtime: Runtime,
}

impl Default for OnnxOptions {
    fn default() -> Self {
        Self {
            outputs: Vec::new(),
            height: None,
            width: None,
            layout: None,
            value_layout: None,
            normalisation: None,
            scale: 1.0,
            batch: 16,
            runtime: Runtime::Automatic,
        }
    }
}

/// The usual normalisation of networks trained on ImageNet; grey images are like red.
pub(super) fn imagenet(channels: usize) -> Normalisation {
    let part = |values: [f32; 3]| values[..channels.min(3)].to_vec();
    Normalisation { mean: part([0.485, 0.456, 0.406]), deviation: part([0.229, 0.224, 0.225]) }
}
