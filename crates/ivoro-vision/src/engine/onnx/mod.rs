//! Networks in ONNX files.
//!
//! Any value that the network computes can be taken as features: the outputs of its graph, or the
//! result of any operator inside, by name. A value of two dimensions is taken as it is; of a value
//! of four, feature maps, the mean over all pixels is taken.
//!
//! ```no_run
//! use ivoro_vision::engine::Backbone;
//! use ivoro_vision::engine::onnx::{OnnxNetwork, OnnxOptions};
//!
//! let outputs = vec!["features".to_owned(), "block3".to_owned()];
//! let options = OnnxOptions { outputs, ..OnnxOptions::default() };
//! let network = OnnxNetwork::open("network.onnx".as_ref(), &options)?;
//! let shape = network.shape().unwrap();
//! let grey = vec![128; shape.len()];
//! let features = network.features(&grey, shape, &[0])?;
//! assert_eq!(features[0].cols(), network.layers()[0].1);
//! # Ok::<(), ivoro_vision::Error>(())
//! ```

mod builtin;
mod constants;
mod elementwise;
mod graph;
mod input;
mod lower;
#[cfg(feature = "onnxruntime")]
mod onnxruntime;
mod operator;
mod options;
mod protobuf;
mod rten;
mod to_features;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

pub use crate::error::OnnxError;
pub use options::{Layout, OnnxOptions, Runtime};

use self::graph::Graph;
use self::input::Input;
use self::operator::Files;
use self::to_features::Tensor;
use super::Backbone;
use super::cpu::record::Listed;
use crate::error::{Error, Result};
use crate::shape::Shape;
use ivoro::Matrix;

/// A message of protocol buffers can't be longer.
const MOST_BYTES: u64 = (1 << 31) - 1;
/// How many inputs of each core are ready at a time.
const ROUNDS: usize = 4;
/// How many names an error lists.
const NEAREST: usize = 6;

/// A network in an ONNX file.
pub struct OnnxNetwork {
    path: PathBuf,
    runtime: Box<dyn Compute>,
    input: Input,
    value_layout: Layout,
    layers: Vec<(String, usize)>,
}

/// A runtime with a network loaded.
trait Compute: Send + Sync {
    fn name(&self) -> &'static str;

    /// The order of axes that it wants images in, if it is not the file's.
    fn layout(&self) -> Option<Layout> {
        None
    }

    /// How many inputs are computed side by side; 1 where a single one is shared among cores.
    fn side_by_side(&self) -> usize {
        1
    }

    /// Images of one input, of at most so many. Never by the number of cores: the last digits depend
    /// on what is computed together.
    fn images(&self, most: usize) -> usize {
        most
    }

    /// The outputs at the indices wanted, for each of some inputs of these dimensions.
    fn run(
        &self,
        inputs: Vec<(Vec<f32>, [usize; 4])>,
        wanted: &[usize],
    ) -> Result<Vec<Vec<Tensor>>, String>;
}

/// Size and numbers of a layer's features.
type LayerFeatures = (usize, Vec<f32>);

/// What a runtime loads: a file, the values of it that are features, and where its weights lie.
struct Source<'a> {
    path: &'a Path,
    file: Cow<'a, [u8]>,
    outputs: Vec<String>,
    /// Files of weights, by the name that the network has for them.
    external: BTreeMap<String, PathBuf>,
}

impl Source<'_> {
    /// The file with the features as the outputs of its graph: copied only where that changes it.
    fn into_file(self) -> Result<Vec<u8>> {
        let graph = Graph::read(&self.file).map_err(|reason| malformed(self.path, &reason))?;
        if graph.outputs.iter().map(|output| output.name).eq(&self.outputs) {
            return Ok(self.file.into_owned());
        }
        graph.with_outputs(&self.outputs).map_err(|reason| malformed(self.path, &reason))
    }

    /// The files of weights, read.
    fn files(&self) -> Result<Files, String> {
        let read = |(name, path): (&String, &PathBuf)| {
            let bytes = fs_err::read(path).map_err(|error| error.to_string())?;
            Ok((name.clone(), bytes))
        };
        self.external.iter().map(read).collect()
    }
}

impl OnnxNetwork {
    /// Loads the network and runs it once on a blank image, to know its features and that it runs.
    pub fn open(path: &Path, options: &OnnxOptions) -> Result<Self> {
        check_length(path, fs_err::metadata(path)?.len())?;
        Self::from_bytes(path, fs_err::read(path)?, options)
    }

    /// Loads the content of a file. `path` names it in errors, and files of weights that the
    /// network refers to are looked for beside it. Bytes that are given away need not be copied.
    pub fn from_bytes<'a>(
        path: &Path,
        bytes: impl Into<Cow<'a, [u8]>>,
        options: &OnnxOptions,
    ) -> Result<Self> {
        Self::from_content(path, bytes.into(), options)
    }

    fn from_content(path: &Path, file: Cow<'_, [u8]>, options: &OnnxOptions) -> Result<Self> {
        check_length(path, file.len() as u64)?;
        let graph = Graph::read(&file).map_err(|reason| malformed(path, &reason))?;
        let mut input = Input::new(path, &graph, options)?;
        let names = outputs(path, &graph, &options.outputs)?;
        let external = external(path, &graph.external)?;
        let source = Source { path, file, outputs: names.clone(), external };
        let value_layout = options.value_layout.unwrap_or(input.layout);
        let runtime = load(source, &input, value_layout, options.runtime)?;
        input.layout = runtime.layout().unwrap_or(input.layout);
        let layers = names.into_iter().map(|name| (name, 0)).collect();
        let mut network = Self { path: path.to_owned(), runtime, input, value_layout, layers };
        let blank = vec![0; network.input.shape.len()];
        let all: Vec<usize> = (0..network.layers.len()).collect();
        for features in network.run(&[&blank], &all)? {
            for (layer, (size, _)) in network.layers.iter_mut().zip(features) {
                layer.1 = size;
            }
        }
        Ok(network)
    }

    /// The runtime in use: `ivoro`, `rten` or `ONNX Runtime`.
    pub fn runtime(&self) -> &'static str {
        self.runtime.name()
    }

    /// The features of each layer for the images of some parts.
    fn run(&self, parts: &[&[u8]], layers: &[usize]) -> Result<Vec<Vec<LayerFeatures>>> {
        let wanted = |part: &[u8]| part.len() / self.input.shape.len();
        let images = |part: &[u8]| {
            if self.input.fixed_batch { self.input.batch } else { wanted(part) }
        };
        let input = |part: &&[u8]| {
            let images = images(part);
            (self.input.numbers(part, images), self.input.dimensions(images))
        };
        let inputs: Vec<_> = parts.iter().map(input).collect();
        let most = parts.iter().map(|part| images(part)).max().unwrap_or(0);
        let found = self.runtime.run(inputs, layers).map_err(|reason| {
            let (path, runtime) = (self.path.clone(), self.runtime.name());
            OnnxError::Run { path, runtime, images: most, reason }
        })?;
        let features = |(part, tensors): (&&[u8], Vec<Tensor>)| {
            let (images, wanted) = (images(part), wanted(part));
            let of_layer = |(tensor, &layer): (&Tensor, &usize)| {
                tensor.features(images, wanted, self.value_layout).ok_or_else(|| {
                    let (path, name) = (self.path.clone(), self.layers[layer].0.clone());
                    let found = format!("{:?}", tensor.shape);
                    OnnxError::Value { path, name, found, images }.into()
                })
            };
            tensors.iter().zip(layers).map(of_layer).collect()
        };
        parts.iter().zip(found).map(features).collect()
    }
}

impl Backbone for OnnxNetwork {
    fn layers(&self) -> &[(String, usize)] {
        &self.layers
    }

    fn shape(&self) -> Option<Shape> {
        Some(self.input.shape)
    }

    fn engine(&self) -> &'static str {
        self.runtime()
    }

    fn features(&self, pixels: &[u8], shape: Shape, layers: &[usize]) -> Result<Vec<Matrix>> {
        let expected = self.input.shape;
        if shape != expected || !pixels.len().is_multiple_of(expected.len()) {
            let bytes = pixels.len();
            return Err(OnnxError::Images { expected, found: shape, bytes }.into());
        }
        if let Some(&index) = layers.iter().find(|&&index| index >= self.layers.len()) {
            return Err(OnnxError::Layer { index, layers: self.layers.len() }.into());
        }
        let rows = pixels.len() / expected.len();
        let sizes: Vec<usize> = layers.iter().map(|&layer| self.layers[layer].1).collect();
        let mut found: Vec<Vec<f32>> =
            sizes.iter().map(|size| Vec::with_capacity(rows * size)).collect();
        let batch = self.input.batch;
        let images = if self.input.fixed_batch { batch } else { self.runtime.images(batch) };
        let parts: Vec<&[u8]> = pixels.chunks(images * expected.len()).collect();
        for parts in parts.chunks(ROUNDS * self.runtime.side_by_side()) {
            for features in self.run(parts, layers)? {
                found.iter_mut().zip(features).for_each(|(all, (_, some))| all.extend(some));
            }
        }
        let matrices = found.into_iter().zip(sizes);
        matrices.map(|(numbers, size)| Ok(Matrix::new(rows, size, numbers)?)).collect()
    }
}

fn check_length(path: &Path, bytes: u64) -> Result<()> {
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let what = "an ONNX network".to_owned();
    Err(Error::TooLarge { path: path.to_owned(), what, bytes, most: MOST_BYTES })
}

/// The values that are features: those asked for, or all outputs.
fn outputs(path: &Path, graph: &Graph, asked: &[String]) -> Result<Vec<String>> {
    let path = || path.to_owned();
    let all: Vec<String> = graph.outputs.iter().map(|output| output.name.to_owned()).collect();
    let wanted = if asked.is_empty() { &all } else { asked };
    let (names, mut seen) = (graph.names(), BTreeSet::new());
    let known: BTreeSet<&str> = names.iter().copied().collect();
    for name in wanted {
        if !known.contains(name.as_str()) {
            let (name, nearest) = (name.clone(), nearest(name, &names));
            return Err(OnnxError::NoSuchValue { path: path(), name, nearest }.into());
        }
        if !seen.insert(name) {
            return Err(OnnxError::Repeated { path: path(), name: name.clone() }.into());
        }
    }
    Ok(wanted.to_vec())
}

/// The operations of the network in `bytes`, the shape of its images, and the names of the values that are
/// its features.
pub(crate) fn operations(
    path: &Path,
    bytes: &[u8],
    options: &OnnxOptions,
) -> Result<(Listed, Shape, Vec<String>)> {
    let graph = Graph::read(bytes).map_err(|reason| malformed(path, &reason))?;
    let input = Input::new(path, &graph, options)?;
    let names = outputs(path, &graph, &options.outputs)?;
    let external = external(path, &graph.external)?;
    let source = Source { path, file: Cow::Borrowed(bytes), outputs: names.clone(), external };
    let files = source.files().map_err(|reason| refused(path, "ivoro", reason))?;
    let listed = builtin::Builtin::listed(&source, &files, &input).ok_or_else(|| {
        let reason = "it is not a network of convolutions, sums and limits alone".to_owned();
        refused(path, "ivoro", reason)
    })?;
    Ok((listed, input.shape, names))
}

/// Files of weights that the network in `bytes` refers to, beside `path`: each name and where it lies.
pub(crate) fn weight_files(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, PathBuf>> {
    let graph = Graph::read(bytes).map_err(|reason| malformed(path, &reason))?;
    external(path, &graph.external)
}

fn nearest(name: &str, names: &[&str]) -> Vec<String> {
    let mut names = names.to_vec();
    let similarity = |other: &str| strsim::jaro_winkler(name, other);
    names.sort_by(|a, b| similarity(b).total_cmp(&similarity(a)));
    names.iter().take(NEAREST).map(ToString::to_string).collect()
}

/// Files of weights beside the network. A name that leads out of its folder is refused.
fn external(path: &Path, names: &BTreeSet<&str>) -> Result<BTreeMap<String, PathBuf>> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let resolve = |&name: &&str| {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let file = folder.join(name);
        let reason = if !inside || name.is_empty() {
            format!("its weights are in \"{name}\", outside its folder")
        } else if !file.is_file() {
            format!("its weights are in \"{name}\", which is not beside it")
        } else {
            return Ok((name.to_owned(), file));
        };
        Err(OnnxError::Malformed { path: path.to_owned(), reason }.into())
    };
    names.iter().map(resolve).collect()
}

fn malformed(path: &Path, reason: &protobuf::Broken) -> Error {
    OnnxError::Malformed { path: path.to_owned(), reason: reason.to_string() }.into()
}

fn load(
    source: Source<'_>,
    input: &Input,
    value_layout: Layout,
    runtime: Runtime,
) -> Result<Box<dyn Compute>> {
    let path = source.path;
    #[cfg(feature = "onnxruntime")]
    if runtime == Runtime::OnnxRuntime || (runtime == Runtime::Automatic && onnxruntime::is_named())
    {
        let loaded = onnxruntime::OnnxRuntime::load(source)?;
        let network = loaded.map_err(|reason| refused(path, "ONNX Runtime", reason))?;
        return Ok(Box::new(network));
    }
    if runtime == Runtime::OnnxRuntime {
        return Err(OnnxError::NotBuilt.into());
    }
    let files = source.files().map_err(|reason| refused(path, "rten", reason))?;
    if runtime != Runtime::Rten
        && [input.layout, value_layout] == [Layout::ChannelsFirst; 2]
        && let Some(network) = builtin::Builtin::load(&source, &files, input)
    {
        return Ok(Box::new(network));
    }
    if runtime == Runtime::Builtin {
        let reason = "it has operators or an order of axes that this engine lacks".to_owned();
        return Err(refused(path, "ivoro", reason).into());
    }
    let network = rten::Rten::load(source.into_file()?, files, &input.name);
    Ok(Box::new(network.map_err(|reason| refused(path, "rten", reason))?))
}

fn refused(path: &Path, runtime: &'static str, reason: String) -> OnnxError {
    OnnxError::Refused { path: path.to_owned(), runtime, reason }
}
