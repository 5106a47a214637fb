//! A residual network as data: which convolutions, of what size, under which names.
//!
//! Both engines build the same network from one [`Architecture`], and its list of
//! [`parameters`](Architecture::parameters) is the order in which weights lie in a flat vector.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the network sees first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stem {
    /// 3×3, stride 1: for images of about 28 to 64 pixels.
    Small,
    /// 7×7, stride 2, then a 3×3 maximum of stride 2: for images of about 224 pixels.
    Large,
}

/// A residual network of basic blocks: stem, stages, mean over all pixels, linear outputs.
///
/// ResNet-18 is four stages of two blocks, 64 to 512 wide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Channels of the images: 1 or 3.
    pub channels: usize,
    /// The first convolution.
    pub stem: Stem,
    /// Channels of each stage; the stem has as many as the first stage.
    pub widths: Vec<usize>,
    /// Basic blocks in a stage.
    pub depth: usize,
    /// Whether the first stage halves the image, as all later ones do.
    pub halve_first: bool,
    /// A linear layer of this many outputs becomes the last layer, for pictures in the plane.
    pub embedding: Option<usize>,
    /// Outputs of the classifier that the network is trained with.
    pub outputs: usize,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<String> = self.widths.iter().map(ToString::to_string).collect();
        let Self { channels, depth, outputs, .. } = self;
        write!(f, "{channels} channels, stages of width {}, ", widths.join(", "))?;
        write!(f, "{depth} blocks each, {outputs} outputs")?;
        self.embedding.map_or(Ok(()), |embedding| write!(f, ", embedding of {embedding}"))
    }
}

/// What a weight does, which decides how it begins and whether the optimiser moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A convolution's kernel, `[out, in, height, width]`.
    Kernel,
    /// A batch norm's factor.
    Scale,
    /// A batch norm's shift.
    Shift,
    /// A linear layer's matrix, `[out, in]`.
    Linear,
    /// A linear layer's bias.
    Bias,
    /// A batch norm's running mean: measured, not learned.
    Mean,
    /// A batch norm's running variance: measured, not learned.
    Variance,
}

/// One named weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, as torchvision has it.
    pub name: String,
    /// Its shape, in PyTorch's order.
    pub shape: Vec<usize>,
    /// What it does.
    pub role: Role,
}

impl Parameter {
    /// The number of its values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the optimiser moves it.
    pub fn is_learned(&self) -> bool {
        !matches!(self.role, Role::Mean | Role::Variance)
    }
}

/// A convolution with its batch norm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Name of the kernel's layer, e.g. `layer1.0.conv1`.
    pub kernel: String,
    /// Name of the batch norm's layer, e.g. `layer1.0.bn1`.
    pub normalisation: String,
    /// Input channels.
    pub inputs: usize,
    /// Output channels.
    pub outputs: usize,
    /// Height and width of the kernel; padding is half of it, rounded down.
    pub size: usize,
    /// Step between two positions.
    pub stride: usize,
}

/// Two convolutions and their shortcut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first convolution.
    pub first: Convolution,
    /// The second one, whose output the shortcut is added to.
    pub second: Convolution,
    /// A 1×1 convolution on the shortcut, where size or width change.
    pub shortcut: Option<Convolution>,
}

impl Architecture {
    /// ResNet-18.
    pub fn resnet18(stem: Stem, channels: usize, outputs: usize) -> Self {
        let widths = vec![64, 128, 256, 512];
        Self { channels, stem, widths, depth: 2, halve_first: false, embedding: None, outputs }
    }

    /// A network that trains in about a minute on two cores, for small images.
    pub fn small(channels: usize, outputs: usize) -> Self {
        let widths = vec![32, 64, 128];
        Self {
            channels,
            stem: Stem::Small,
            widths,
            depth: 1,
            halve_first: true,
            embedding: None,
            outputs,
        }
    }

    /// The same network with a last layer of `dimensions` values.
    #[must_use]
    pub fn with_embedding(self, dimensions: usize) -> Self {
        Self { embedding: Some(dimensions), ..self }
    }

    /// The stem's convolution.
    pub fn stem_convolution(&self) -> Convolution {
        let (size, stride) = match self.stem {
            Stem::Small => (3, 1),
            Stem::Large => (7, 2),
        };
        Convolution {
            kernel: "conv1".to_owned(),
            normalisation: "bn1".to_owned(),
            inputs: self.channels,
            outputs: self.widths[0],
            size,
            stride,
        }
    }

    /// The blocks, stage by stage.
    pub fn stages(&self) -> Vec<Vec<Block>> {
        let mut width = self.widths[0];
        let mut stages = Vec::with_capacity(self.widths.len());
        for (stage, &outputs) in self.widths.iter().enumerate() {
            let mut blocks = Vec::with_capacity(self.depth);
            for index in 0..self.depth {
                let halves = index == 0 && (stage > 0 || self.halve_first);
                blocks.push(block(stage + 1, index, width, outputs, if halves { 2 } else { 1 }));
                width = outputs;
            }
            stages.push(blocks);
        }
        stages
    }

    /// All convolutions in the order in which an image passes them.
    pub fn convolutions(&self) -> Vec<Convolution> {
        let mut all = vec![self.stem_convolution()];
        for block in self.stages().into_iter().flatten() {
            all.push(block.first);
            all.push(block.second);
            all.extend(block.shortcut);
        }
        all
    }

    /// Values of the last layer.
    pub fn dimensions(&self) -> usize {
        self.embedding.unwrap_or(self.last_width())
    }

    /// Channels of the last stage.
    pub fn last_width(&self) -> usize {
        self.widths.last().copied().unwrap_or(0)
    }

    /// The layers features can be taken from, from the last one backwards, with their sizes.
    ///
    /// `last` is the layer the classifier sees; `block3` is the mean over all pixels of the third
    /// stage, and so on.
    pub fn layers(&self) -> Vec<(String, usize)> {
        let mut layers = vec![("last".to_owned(), self.dimensions())];
        let inner =
            if self.embedding.is_some() { self.widths.len() } else { self.widths.len() - 1 };
        layers.extend((1..=inner).rev().map(|at| (format!("block{at}"), self.widths[at - 1])));
        layers
    }

    /// How many numbers are learned, and how many measured.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let (learned, measured): (Vec<_>, Vec<_>) =
            self.parameters().into_iter().partition(Parameter::is_learned);
        let count = |list: &[Parameter]| list.iter().map(Parameter::len).sum();
        (count(&learned), count(&measured))
    }

    /// All weights, learned ones first, each group in the order of the convolutions.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut learned = Vec::new();
        let mut measured = Vec::new();
        for convolution in self.convolutions() {
            let Convolution { inputs, outputs, size, .. } = convolution;
            let shape = vec![outputs, inputs, size, size];
            push(&mut learned, &convolution.kernel, "weight", shape, Role::Kernel);
            let name = &convolution.normalisation;
            push(&mut learned, name, "weight", vec![outputs], Role::Scale);
            push(&mut learned, name, "bias", vec![outputs], Role::Shift);
            push(&mut measured, name, "running_mean", vec![outputs], Role::Mean);
            push(&mut measured, name, "running_var", vec![outputs], Role::Variance);
        }
        if let Some(dimensions) = self.embedding {
            let shape = vec![dimensions, self.last_width()];
            push(&mut learned, "embedding", "weight", shape, Role::Linear);
            push(&mut learned, "embedding", "bias", vec![dimensions], Role::Bias);
        }
        push(&mut learned, "fc", "weight", vec![self.outputs, self.dimensions()], Role::Linear);
        push(&mut learned, "fc", "bias", vec![self.outputs], Role::Bias);
        learned.append(&mut measured);
        learned
    }
}

fn push(list: &mut Vec<Parameter>, layer: &str, kind: &str, shape: Vec<usize>, role: Role) {
    list.push(Parameter { name: format!("{layer}.{kind}"), shape, role });
}

fn block(stage: usize, index: usize, inputs: usize, outputs: usize, stride: usize) -> Block {
    let name = |part: &str| format!("layer{stage}.{index}.{part}");
    let convolution = |kernel: &str, normalisation: &str, inputs, size, stride| Convolution {
        kernel: name(kernel),
        normalisation: name(normalisation),
        inputs,
        outputs,
        size,
        stride,
    };
    let changes = stride != 1 || inputs != outputs;
    Block {
        first: convolution("conv1", "bn1", inputs, 3, stride),
        second: convolution("conv2", "bn2", outputs, 3, 1),
        shortcut: changes.then(|| convolution("downsample.0", "downsample.1", inputs, 1, stride)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resnet18_has_the_published_number_of_weights() {
        // torchvision.models.resnet18(): sum(p.numel() for p in net.parameters()) == 11_689_512.
        let network = Architecture::resnet18(Stem::Large, 3, 1000);
        let parameters = network.parameters();
        let learned = parameters.iter().filter(|parameter| parameter.is_learned());
        assert_eq!(learned.map(Parameter::len).sum::<usize>(), 11_689_512);
    }

    #[test]
    fn layers_run_from_the_last_backwards() {
        let names = |network: &Architecture| {
            network.layers().into_iter().map(|(name, size)| format!("{name}:{size}")).collect()
        };
        let network = Architecture::resnet18(Stem::Small, 3, 200);
        let plain: Vec<String> = names(&network);
        assert_eq!(plain, ["last:512", "block3:256", "block2:128", "block1:64"]);
        let plane: Vec<String> = names(&Architecture::small(1, 16).with_embedding(2));
        assert_eq!(plane, ["last:2", "block3:128", "block2:64", "block1:32"]);
    }
}
