//! A frozen network as a list of operations, and the safetensors file it is kept in. A network that can't be
//! trained here, since it has no [`Architecture`](super::Architecture), is kept so.
//!
//! Values are numbered: 0 is the image, and operation `i`, counted from 0, makes value `i + 1`.

use std::collections::BTreeMap;
use std::path::Path;

use half::f16;
use ivoro::codec::safetensors_header::{self, Entry, F16, F32};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::normalisation::Normalisation;
use super::weights::{DEVIATION, FIT, MEAN, StoredFit, floats, list, read_normalisation};
use crate::error::{Error, Result};
use crate::shape::Fit;

/// Metadata key under which the operations stand, as JSON.
const OPERATIONS: &str = "operations";
/// Limits that no network here reaches.
const MOST_OPERATIONS: usize = 1 << 12;
const MOST_CHANNELS: usize = 1 << 16;
const MOST_WINDOW: usize = 1 << 6;
const MOST_SIDE: usize = 1 << 12;

/// What is computed, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operations {
    /// Raised when an older program would compute something else.
    version: u32,
    /// Channels of the images: 1 or 3.
    pub channels: usize,
    /// The operations.
    pub steps: Vec<Operation>,
    /// The layers that features are taken from, the last one first: a name, and the value whose mean over
    /// all pixels is taken.
    pub layers: Vec<(String, usize)>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// A convolution in groups of channels, with a bias.
    Convolution {
        /// The value it takes.
        input: usize,
        /// Channels that it makes.
        outputs: usize,
        /// Groups of channels that are convolved by themselves.
        groups: usize,
        /// Rows and columns of its window.
        window: [usize; 2],
        /// Steps between two positions, down and right.
        step: [usize; 2],
        /// Zeros above, left, below and right of the image.
        padding: [usize; 4],
        /// What results are cut off at.
        #[serde(default, skip_serializing_if = "Clip::is_none")]
        clip: Clip,
    },
    /// The sum of two values of one size.
    Add {
        /// The values.
        inputs: [usize; 2],
        /// What results are cut off at.
        #[serde(default, skip_serializing_if = "Clip::is_none")]
        clip: Clip,
    },
}

/// The least and the greatest number that stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// What is less becomes this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f32>,
    /// What is more becomes this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f32>,
}

impl Clip {
    /// Whether all numbers stay.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The kernel and the bias of a convolution; both are empty of other operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// `[outputs, inputs / groups, rows, columns]`.
    pub values: Vec<f32>,
    /// One number for each output.
    pub bias: Vec<f32>,
}

/// A network of operations with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationNetwork {
    /// What is computed.
    pub operations: Operations,
    /// Weights of each operation.
    pub kernels: Vec<Kernel>,
    /// How pixels become its input.
    pub normalisation: Normalisation,
    /// What images are brought to: it takes this size and no other.
    pub fit: Fit,
    /// What else is known: name, licence, source.
    pub metadata: BTreeMap<String, String>,
}

impl Operations {
    const VERSION: u32 = 1;

    /// Operations for images of so many channels.
    pub fn new(channels: usize, steps: Vec<Operation>, layers: Vec<(String, usize)>) -> Self {
        Self { version: Self::VERSION, channels, steps, layers }
    }

    /// The numbers of each layer, if all sizes make sense.
    pub(crate) fn layer_sizes(&self) -> Option<Vec<usize>> {
        let widths = self.widths()?;
        self.layers.iter().map(|(_, value)| widths.get(*value).copied()).collect()
    }

    /// The channels of each value, if all sizes make sense.
    fn widths(&self) -> Option<Vec<usize>> {
        let named = self
            .layers
            .iter()
            .all(|(name, value)| !name.is_empty() && *value >= 1 && *value <= self.steps.len());
        let few = (1..=MOST_OPERATIONS).contains(&self.steps.len()) && !self.layers.is_empty();
        if self.version != Self::VERSION || !matches!(self.channels, 1 | 3) || !named || !few {
            return None;
        }
        let mut widths = vec![self.channels];
        for step in &self.steps {
            widths.push(step.width(&widths)?);
        }
        Some(widths)
    }
}

impl Operation {
    /// The channels of what it makes, after values of these.
    fn width(&self, before: &[usize]) -> Option<usize> {
        match self {
            Self::Convolution { input, outputs, groups, window, step, padding, clip } => {
                let inputs = *before.get(*input)?;
                let divides = |count: usize| count.checked_rem(*groups) == Some(0);
                let size = |side: &usize| (1..=MOST_WINDOW).contains(side);
                let fits = (1..=MOST_CHANNELS).contains(outputs)
                    && divides(inputs)
                    && divides(*outputs)
                    && window.iter().chain(step).all(size)
                    && padding.iter().all(|side| *side < MOST_WINDOW);
                (fits && clip.is_sensible()).then_some(*outputs)
            }
            Self::Add { inputs: [one, other], clip } => {
                let (one, other) = (*before.get(*one)?, *before.get(*other)?);
                (one == other && clip.is_sensible()).then_some(one)
            }
        }
    }

    /// The shape of its kernel, where its input has so many channels.
    fn kernel_shape(&self, inputs: usize) -> Option<Vec<usize>> {
        match self {
            Self::Convolution { outputs, groups, window, .. } => {
                Some(vec![*outputs, inputs / groups, window[0], window[1]])
            }
            Self::Add { .. } => None,
        }
    }

    fn input(&self) -> usize {
        match self {
            Self::Convolution { input, .. } => *input,
            Self::Add { inputs, .. } => inputs[0],
        }
    }
}

impl Clip {
    fn is_sensible(&self) -> bool {
        let numbers = [self.least, self.most];
        let ordered = self.least.zip(self.most).is_none_or(|(least, most)| least <= most);
        ordered && numbers.iter().flatten().all(|value| value.is_finite())
    }
}

impl OperationNetwork {
    /// Whether a file holds operations: else it has weights of an architecture.
    pub fn is_in(bytes: &[u8]) -> bool {
        let header = SafeTensors::read_metadata(bytes).ok();
        header.is_some_and(|(_, header)| {
            header.metadata().as_ref().is_some_and(|entries| entries.contains_key(OPERATIONS))
        })
    }

    /// Reads the content of a file; `path` names it in errors.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        let malformed = |what: String| Error::malformed(path, what);
        let broken = |error: safetensors::SafeTensorError| malformed(error.to_string());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
        let mut metadata: BTreeMap<String, String> =
            header.metadata().clone().unwrap_or_default().into_iter().collect();
        let text = metadata.remove(OPERATIONS).unwrap_or_default();
        let operations: Operations = serde_json::from_str(&text)
            .map_err(|error| malformed(format!("its operations can't be read: {error}")))?;
        let widths = operations
            .widths()
            .ok_or_else(|| malformed("its operations contradict themselves".to_owned()))?;
        let normalisation = read_normalisation(path, &mut metadata, operations.channels)?;
        let fit = metadata.remove(FIT).and_then(|text| StoredFit::read(&text));
        let fit = fit.map(|stored| stored.fit(operations.channels));
        let sides = |fit: &Fit| [fit.shape.height, fit.shape.width];
        let fit = fit
            .filter(|fit| sides(fit).iter().all(|side| (1..=MOST_SIDE).contains(side)))
            .ok_or_else(|| malformed("it does not say which images it takes".to_owned()))?;
        let mut kernels = Vec::new();
        for (at, step) in operations.steps.iter().enumerate() {
            kernels.push(match step.kernel_shape(widths[step.input()]) {
                Some(shape) => kernel(path, &tensors, at, &shape)?,
                None => Kernel::default(),
            });
        }
        Ok(Self { operations, kernels, normalisation, fit, metadata })
    }

    /// The bytes of a file: kernels in 16 bits, biases in 32. The same network gives the same bytes.
    pub fn to_bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let widths = self.operations.widths();
        let widths = widths.ok_or_else(|| Error::malformed(path, "its operations do not fit"))?;
        let (mut wide, mut narrow) = (Vec::new(), Vec::new());
        for (at, (step, kernel)) in self.operations.steps.iter().zip(&self.kernels).enumerate() {
            let Some(shape) = step.kernel_shape(widths[step.input()]) else { continue };
            let name = |what: &str| format!("{at:04}.{what}");
            let bias = Entry { name: name("bias"), kind: F32, shape: vec![kernel.bias.len()] };
            let bytes: Vec<u8> = kernel.bias.iter().flat_map(|it| it.to_le_bytes()).collect();
            wide.push((bias, bytes));
            let halves = kernel.values.iter().map(|&value| f16::from_f32(value));
            let entry = Entry { name: name("kernel"), kind: F16, shape };
            narrow.push((entry, halves.flat_map(f16::to_le_bytes).collect()));
        }
        // the wider numbers first, so that every tensor is aligned
        let stored: Vec<(Entry, Vec<u8>)> = wide.into_iter().chain(narrow).collect();
        let mut metadata = self.metadata.clone();
        let operations = serde_json::to_string(&self.operations)
            .map_err(|error| Error::malformed(path, error.to_string()))?;
        metadata.insert(OPERATIONS.to_owned(), operations);
        metadata.insert(MEAN.to_owned(), list(&self.normalisation.mean));
        metadata.insert(DEVIATION.to_owned(), list(&self.normalisation.deviation));
        metadata.insert(FIT.to_owned(), StoredFit::of(self.fit).to_json());
        let entries = stored.iter().map(|(entry, _)| entry);
        let mut bytes = safetensors_header::encode(path, &metadata, entries)?;
        stored.iter().for_each(|(_, data)| bytes.extend_from_slice(data));
        Ok(bytes)
    }
}

/// The weights of an operation, whose kernel must have this shape.
fn kernel(path: &Path, tensors: &SafeTensors<'_>, at: usize, shape: &[usize]) -> Result<Kernel> {
    let find = |what: &str, shape: &[usize]| {
        let name = format!("{at:04}.{what}");
        let view = tensors.tensor(&name);
        let view = view.map_err(|_| Error::malformed(path, format!("\"{name}\" is missing")))?;
        if view.shape() != shape {
            let what = format!("\"{name}\" is {:?}, expected {shape:?}", view.shape());
            return Err(Error::malformed(path, what));
        }
        numbers(path, &name, &view)
    };
    Ok(Kernel { values: find("kernel", shape)?, bias: find("bias", &shape[..1])? })
}

/// What this format stores: 32 or 16 bits per number.
fn numbers(path: &Path, name: &str, view: &TensorView<'_>) -> Result<Vec<f32>> {
    match view.dtype() {
        Dtype::F32 | Dtype::F16 => floats(path, name, view),
        other => {
            let what = format!("\"{name}\" is stored as {other:?}; expected F32 or F16");
            Err(Error::malformed(path, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{How, Shape};

    fn convolution(input: usize, outputs: usize, groups: usize) -> Operation {
        let clip = Clip { least: Some(0.0), most: Some(6.0) };
        let (window, step, padding) = ([3, 3], [1, 1], [1, 1, 1, 1]);
        Operation::Convolution { input, outputs, groups, window, step, padding, clip }
    }

    fn network() -> OperationNetwork {
        let steps = vec![
            convolution(0, 4, 1),
            convolution(1, 4, 4),
            Operation::Add { inputs: [1, 2], clip: Clip::default() },
        ];
        let layers = vec![("last".to_owned(), 3), ("inner".to_owned(), 1)];
        let numbers = |count: usize| (0..count).map(|at| at as f32 / 8.0).collect::<Vec<f32>>();
        let kernel = |count| Kernel { values: numbers(count), bias: numbers(4) };
        let shape = Shape { height: 8, width: 6, channels: 3 };
        OperationNetwork {
            operations: Operations::new(3, steps, layers),
            kernels: vec![kernel(108), kernel(36), Kernel::default()],
            normalisation: Normalisation { mean: vec![0.498; 3], deviation: vec![0.502; 3] },
            fit: Fit { shape, how: How::ResizeThenCentreCrop { resize: 9 } },
            metadata: BTreeMap::from([("licence".to_owned(), "none".to_owned())]),
        }
    }

    fn written(network: &OperationNetwork) -> Vec<u8> {
        network.to_bytes(Path::new("n")).unwrap()
    }

    fn refusal(bytes: &[u8]) -> String {
        OperationNetwork::from_bytes(Path::new("n"), bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = written(&network());
        assert!(OperationNetwork::is_in(&bytes));
        assert_eq!(OperationNetwork::from_bytes(Path::new("n"), &bytes).unwrap(), network());
    }

    /// The file with another text in its header.
    fn forged(from: &str, to: &str) -> Vec<u8> {
        let bytes = written(&network());
        let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
        let (header, numbers) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let header = std::str::from_utf8(header).unwrap();
        assert!(header.contains(from), "{header}");
        let mut header = header.replacen(from, to, 1).into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        [&(header.len() as u64).to_le_bytes()[..], &header, numbers].concat()
    }

    #[test]
    fn sizes_that_a_file_claims_are_not_believed() {
        let wide = r#"\"outputs\":1152921504606846976"#;
        for (from, to) in [
            (r#"\"outputs\":4"#, wide),
            (r#"\"groups\":4"#, r#"\"groups\":0"#),
            (r#"\"groups\":4"#, r#"\"groups\":3"#),
            (r#"\"window\":[3,3]"#, r#"\"window\":[0,3]"#),
            (r#"\"step\":[1,1]"#, r#"\"step\":[0,1]"#),
            (r#"\"padding\":[1,1,1,1]"#, r#"\"padding\":[1,1,1,9999]"#),
            (r#"\"input\":1"#, r#"\"input\":2"#),
            (r#"\"inputs\":[1,2]"#, r#"\"inputs\":[1,3]"#),
            (r#"[\"inner\",1]"#, r#"[\"inner\",4]"#),
            (r#"[\"inner\",1]"#, r#"[\"inner\",0]"#),
            (r#"\"channels\":3"#, r#"\"channels\":2"#),
            (r#"\"version\":1,\"channels\""#, r#"\"version\":2,\"channels\""#),
            (r#"\"most\":6.0"#, r#"\"most\":-6.0"#),
        ] {
            let error = refusal(&forged(from, to));
            assert!(error.contains("contradict"), "{from}: {error}");
        }
        let error = refusal(&forged(r#"\"window\":[3,3]"#, r#"\"window\":[3,1]"#));
        assert!(error.contains("expected"), "{error}");
        let error = refusal(&forged(r#"\"width\":6"#, r#"\"width\":0"#));
        assert!(error.contains("which images"), "{error}");
        let error = refusal(&forged("0001.kernel", "0001.kennel"));
        assert!(error.contains("\"0001.kernel\" is missing"), "{error}");
    }

    #[test]
    fn a_cut_file_and_numbers_that_are_none_are_refused() {
        let bytes = written(&network());
        for length in [0, 7, 100, bytes.len() - 1] {
            refusal(&bytes[..length]);
        }
        let mut infinite = network();
        infinite.kernels[0].values[3] = f32::INFINITY;
        let error = refusal(&written(&infinite));
        assert!(error.contains("0000.kernel") && error.contains("inf"), "{error}");
    }
}
