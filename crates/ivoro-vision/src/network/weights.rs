//! A network's weights: one flat vector in the order of the architecture's parameters, and the
//! safetensors file it is kept in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use half::f16;
use half::slice::HalfFloatSliceExt;
use ivoro::codec::safetensors_header::{self, Entry, F16, F32};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::architecture::{Architecture, Parameter, Role, Stem};
use super::normalisation::Normalisation;
use crate::error::{Error, Result};
use crate::shape::{Fit, How, Shape};

/// The weights of one network.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// What they are the weights of.
    pub architecture: Architecture,
    /// The learned ones, one after the other.
    pub learned: Vec<f32>,
    /// The measured ones (running means and variances), one after the other.
    pub measured: Vec<f32>,
    /// How pixels become the network's input.
    pub normalisation: Normalisation,
    /// What is known of how they came to be: recipe, data set, results.
    pub metadata: BTreeMap<String, String>,
}

/// How a file stores each number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 16 bits: half the size, for networks that are no longer trained.
    Half,
    /// 32 bits.
    Full,
}

/// Metadata key under which the architecture stands, as JSON.
const ARCHITECTURE: &str = "architecture";
/// Metadata keys of the normalisation: numbers in brackets, one a channel.
pub(super) const MEAN: &str = "mean";
pub(super) const DEVIATION: &str = "std";
/// Metadata key of how images are brought to the network, as JSON of a [`StoredFit`].
pub(super) const FIT: &str = "image_fit";
/// Metadata keys of files older than [`FIT`]: a shape and a fit as they are told to people.
const OLD_SHAPE: &str = "image";
const OLD_FIT: &str = "fit";
/// A header larger than this is no network's.
const MOST_BYTES: u64 = 4 << 30;

impl Weights {
    /// Random weights to begin training with: kernels as He et al. propose (normal, by the number
    /// of outputs a value reaches), linear layers uniform, normalisations neutral.
    pub fn random(architecture: Architecture, normalisation: Normalisation, seed: u64) -> Self {
        let mut learned = Vec::new();
        let mut measured = Vec::new();
        for (index, parameter) in architecture.parameters().iter().enumerate() {
            let stream = ivoro::random::mix(seed, index as u64);
            let values = begin(parameter, stream);
            let list = if parameter.is_learned() { &mut learned } else { &mut measured };
            list.extend(values);
        }
        Self { architecture, learned, measured, normalisation, metadata: BTreeMap::new() }
    }

    /// Each parameter with its values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Parameter, &[f32])> {
        let (mut learned, mut measured) = (&self.learned[..], &self.measured[..]);
        self.architecture.parameters().into_iter().map(move |parameter| {
            let rest = if parameter.is_learned() { &mut learned } else { &mut measured };
            let (values, later) = rest.split_at(parameter.len());
            *rest = later;
            (parameter, values)
        })
    }

    /// The values of the parameter called `name`.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.iter().find(|(parameter, _)| parameter.name == name).map(|(_, values)| values)
    }

    /// How images were brought to the shape that it was trained on; its height and width are 0
    /// where that is not known.
    pub fn fit(&self) -> Fit {
        let stored = match self.metadata.get(FIT) {
            Some(text) => StoredFit::read(text),
            None => self.fit_of_an_old_file(),
        };
        let channels = self.architecture.channels;
        let unknown = Fit { shape: Shape { height: 0, width: 0, channels }, how: How::Resize };
        stored.map_or(unknown, |stored| stored.fit(channels))
    }

    /// Notes how images are brought to the network, for [`fit`](Self::fit).
    pub fn set_fit(&mut self, fit: Fit) {
        self.metadata.insert(FIT.to_owned(), StoredFit::of(fit).to_json());
    }

    /// Files older than [`FIT`] have a sentence for people: `30×28 colour, centre of 73`, and the
    /// oldest of them the shape alone.
    fn fit_of_an_old_file(&self) -> Option<StoredFit> {
        let text = |key: &str| self.metadata.get(key).map_or("", String::as_str);
        let mut sizes = text(OLD_SHAPE).split(['×', ' ']).filter_map(|part| part.parse().ok());
        // width first
        let (width, height) = (sizes.next()?, sizes.next()?);
        let centre_of =
            text(OLD_FIT).rsplit_once("centre of ").and_then(|(_, side)| side.parse().ok());
        Some(StoredFit { version: StoredFit::VERSION, height, width, centre_of })
    }

    /// Reads a file of ours or of torchvision's. `outputs` and `embedding` follow from the shapes
    /// in the file; a file without a classifier gets none.
    pub fn read(path: &Path) -> Result<Self> {
        let size = fs_err::metadata(path)?.len();
        if size > MOST_BYTES {
            return Err(Error::malformed(
                path,
                format!("{size} bytes are more than any network has"),
            ));
        }
        let bytes = fs_err::read(path)?;
        Self::from_bytes(path, &bytes)
    }

    /// Reads the content of a file; `path` names it in errors.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        let broken =
            |error: safetensors::SafeTensorError| Error::malformed(path, error.to_string());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(broken)?;
        let mut found = BTreeMap::new();
        for (name, view) in tensors.iter() {
            found.insert(our_name(name).into_owned(), view);
        }
        let mut metadata: BTreeMap<String, String> =
            header.metadata().clone().unwrap_or_default().into_iter().collect();
        let architecture = match metadata.remove(ARCHITECTURE) {
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                Error::malformed(path, format!("its architecture can't be read: {error}"))
            })?,
            None => recognise(path, &found)?,
        };
        let parameters = checked_parameters(path, &architecture)?;
        let normalisation = read_normalisation(path, &mut metadata, architecture.channels)?;
        let (mut learned, mut measured) = (Vec::new(), Vec::new());
        for parameter in parameters {
            let values = take(path, &found, &parameter)?;
            let list = if parameter.is_learned() { &mut learned } else { &mut measured };
            list.extend(values);
        }
        Ok(Self { architecture, learned, measured, normalisation, metadata })
    }

    /// Writes the file in one step.
    pub fn write(&self, path: &Path, precision: Precision) -> Result<()> {
        let bytes = self.to_bytes(path, precision)?;
        ivoro_io::atomic::write_atomically(path, |file| {
            std::io::Write::write_all(file, &bytes)?;
            Ok(())
        })?;
        Ok(())
    }

    fn to_bytes(&self, path: &Path, precision: Precision) -> Result<Vec<u8>> {
        let mut stored: Vec<(Entry, Vec<u8>)> = Vec::new();
        for (parameter, values) in self.iter() {
            // A variance below the smallest 16-bit number would be read back as zero.
            let full = precision == Precision::Full || parameter.role == Role::Variance;
            let (kind, data): (_, Vec<u8>) = if full {
                (F32, values.iter().flat_map(|value| value.to_le_bytes()).collect())
            } else {
                let halves = values.iter().map(|&value| f16::from_f32(value));
                (F16, halves.flat_map(f16::to_le_bytes).collect())
            };
            let Parameter { name, shape, .. } = parameter;
            stored.push((Entry { name: name.clone(), kind, shape: shape.clone() }, data));
        }
        // the wider numbers first, so that every tensor is aligned
        stored.sort_by(|(a, _), (b, _)| b.kind.1.cmp(&a.kind.1).then_with(|| a.name.cmp(&b.name)));
        let mut metadata = self.metadata.clone();
        let architecture = serde_json::to_string(&self.architecture)
            .map_err(|error| Error::malformed(path, error.to_string()))?;
        metadata.insert(ARCHITECTURE.to_owned(), architecture);
        metadata.insert(MEAN.to_owned(), list(&self.normalisation.mean));
        metadata.insert(DEVIATION.to_owned(), list(&self.normalisation.deviation));
        let entries = stored.iter().map(|(entry, _)| entry);
        let mut bytes = safetensors_header::encode(path, &metadata, entries)?;
        stored.iter().for_each(|(_, data)| bytes.extend_from_slice(data));
        Ok(bytes)
    }
}

/// A [`Fit`] in a file's metadata. The channels are the architecture's.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredFit {
    version: u32,
    height: usize,
    width: usize,
    /// The shorter side before the centre is cut out; without it both sides are scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    centre_of: Option<usize>,
}

impl StoredFit {
    const VERSION: u32 = 1;

    pub(super) fn of(Fit { shape: Shape { height, width, .. }, how }: Fit) -> Self {
        let centre_of = match how {
            How::ResizeThenCentreCrop { resize } => Some(resize),
            How::Exact | How::Resize => None,
        };
        Self { version: Self::VERSION, height, width, centre_of }
    }

    /// What it says, for images of so many channels.
    pub(super) fn fit(&self, channels: usize) -> Fit {
        let Self { height, width, centre_of, .. } = *self;
        let most = height.max(width);
        // what makes no sense is not believed
        let resize = centre_of.filter(|side| (most..=most.saturating_mul(4)).contains(side));
        let how = resize.map_or(How::Resize, |resize| How::ResizeThenCentreCrop { resize });
        Fit { shape: Shape { height, width, channels }, how }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// None for what is no such JSON, or of a later version: then nothing is known.
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|stored: &Self| stored.version == Self::VERSION)
    }
}

/// A hash of a weights file's content, for the metadata of what is made with it.
pub fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn begin(parameter: &Parameter, stream: u64) -> Vec<f32> {
    let count = parameter.len();
    match parameter.role {
        Role::Kernel => {
            let fan_out = parameter.shape[0] * parameter.shape[2] * parameter.shape[3];
            let deviation = (2.0 / fan_out as f64).sqrt();
            (0..count)
                .map(|at| (deviation * ivoro::random::normal(stream, at as u64)) as f32)
                .collect()
        }
        Role::Linear => {
            let bound = 1.0 / (parameter.shape[1] as f64).sqrt();
            let draw = |at| bound * (2.0 * ivoro::random::unit(stream, at) - 1.0);
            (0..count).map(|at| draw(at as u64) as f32).collect()
        }
        Role::Scale | Role::Variance => vec![1.0; count],
        Role::Shift | Role::Bias | Role::Mean => vec![0.0; count],
    }
}

/// Other projects' names for the same layers.
fn our_name(name: &str) -> Cow<'_, str> {
    let name = name.strip_prefix("module.").unwrap_or(name);
    if let Some(rest) = name.strip_prefix("stem.0.") {
        return format!("conv1.{rest}").into();
    }
    if let Some(rest) = name.strip_prefix("stem.1.") {
        return format!("bn1.{rest}").into();
    }
    if name.contains(".down.") {
        return name.replace(".down.", ".downsample.").into();
    }
    name.into()
}

type Found<'a> = BTreeMap<String, TensorView<'a>>;

pub(super) fn list(values: &[f32]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("({})", texts.join(", "))
}

/// The normalisation a file names. One that names none is taken to follow the convention of
/// networks trained on ImageNet.
pub(super) fn read_normalisation(
    path: &Path,
    metadata: &mut BTreeMap<String, String>,
    channels: usize,
) -> Result<Normalisation> {
    let mut numbers = |key: &str, usual: [f32; 3]| {
        let Some(text) = metadata.remove(key) else {
            return Ok((0..channels).map(|channel| usual[channel % 3]).collect());
        };
        let inner = text.trim_matches(['(', ')', '[', ']']);
        let values: Option<Vec<f32>> =
            inner.split(',').map(|number| number.trim().parse().ok()).collect();
        values
            .filter(|values| values.len() == channels && values.iter().all(|v| v.is_finite()))
            .ok_or_else(|| {
                let what = format!("its {key} is \"{text}\", expected {channels} numbers");
                Error::malformed(path, what)
            })
    };
    let mean = numbers(MEAN, [0.485, 0.456, 0.406])?;
    let deviation = numbers(DEVIATION, [0.229, 0.224, 0.225])?;
    if let Some(wrong) = deviation.iter().find(|value| **value <= 0.0) {
        let what = format!("its {DEVIATION} has {wrong}, expected numbers above 0");
        return Err(Error::malformed(path, what));
    }
    Ok(Normalisation { mean, deviation })
}

/// Which residual network a file without our metadata holds.
fn recognise(path: &Path, found: &Found) -> Result<Architecture> {
    let shape = |name: &str| found.get(name).map(TensorView::shape);
    let stem_shape = shape("conv1.weight").ok_or_else(|| {
        let names: Vec<&str> = found.keys().take(3).map(String::as_str).collect();
        let what = format!(
            "no residual network: \"conv1.weight\" is missing; it begins with {}",
            names.join(", ")
        );
        Error::malformed(path, what)
    })?;
    let stem = match stem_shape {
        [_, _, 3, 3] => Stem::Small,
        [_, _, 7, 7] => Stem::Large,
        other => {
            let what = format!("\"conv1.weight\" is {other:?}; expected a 3×3 or 7×7 kernel");
            return Err(Error::malformed(path, what));
        }
    };
    let channels = stem_shape[1];
    let mut widths = Vec::new();
    while let Some(shape) = shape(&format!("layer{}.0.conv1.weight", widths.len() + 1)) {
        widths.push(shape.first().copied().unwrap_or(0));
    }
    let mut depth = 0;
    while shape(&format!("layer1.{depth}.conv1.weight")).is_some() {
        depth += 1;
    }
    let embedding = shape("embedding.weight").and_then(|shape| shape.first().copied());
    let outputs = shape("fc.weight").and_then(|shape| shape.first().copied()).unwrap_or(0);
    let halve_first = shape("layer1.0.downsample.0.weight").is_some();
    Ok(Architecture { channels, stem, widths, depth, halve_first, embedding, outputs })
}

/// The parameters of an architecture that came from a file, its sizes checked first.
pub(crate) fn checked_parameters(
    path: &Path,
    architecture: &Architecture,
) -> Result<Vec<Parameter>> {
    let Architecture { channels, widths, depth, embedding, outputs, .. } = architecture;
    let sizes = widths.iter().chain(embedding).chain([channels, depth]);
    let sensible = |&size: &usize| (1..=1 << 16).contains(&size);
    let fine = sizes.clone().all(sensible) && !widths.is_empty() && *outputs <= 1 << 24;
    if !fine || widths.len() > 16 || *depth > 256 {
        let what = format!("its architecture has senseless sizes: {architecture}");
        return Err(Error::malformed(path, what));
    }
    Ok(architecture.parameters())
}

fn take(path: &Path, found: &Found, parameter: &Parameter) -> Result<Vec<f32>> {
    if parameter.is_empty() {
        return Ok(Vec::new());
    }
    let Parameter { name, shape, .. } = parameter;
    let Some(view) = found.get(name) else {
        let what = format!("weights of another architecture: \"{name}\" {shape:?} is missing");
        return Err(Error::malformed(path, what));
    };
    if view.shape() != shape {
        let what = format!(
            "weights of another architecture: \"{name}\" is {:?}, expected {shape:?}",
            view.shape()
        );
        return Err(Error::malformed(path, what));
    }
    floats(path, name, view)
}

/// The numbers of a tensor, all of them finite.
pub(super) fn floats(path: &Path, name: &str, view: &TensorView<'_>) -> Result<Vec<f32>> {
    let data = view.data();
    let values: Vec<f32> = match view.dtype() {
        Dtype::F32 => data.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
        Dtype::F16 => {
            let halves = data.as_chunks::<2>().0.iter().map(|&bytes| f16::from_le_bytes(bytes));
            // all at once: the instructions of the CPU for that are many times as fast
            halves.collect::<Vec<f16>>().to_f32_vec()
        }
        Dtype::BF16 => {
            let numbers = data.as_chunks::<2>().0.iter();
            numbers.map(|&b| half::bf16::from_le_bytes(b).to_f32()).collect()
        }
        other => {
            let what = format!("\"{name}\" is stored as {other:?}; expected F32, F16 or BF16");
            return Err(Error::malformed(path, what));
        }
    };
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => Err(Error::malformed(path, format!("\"{name}\" contains {value}"))),
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights() -> Weights {
        let normalisation = Normalisation { mean: vec![0.4, 0.5, 0.6], deviation: vec![0.2; 3] };
        let mut weights = Weights::random(Architecture::small(3, 8), normalisation, 7);
        let shape = Shape { height: 28, width: 30, channels: 3 };
        weights.set_fit(Fit { shape, how: How::Resize });
        weights
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.safetensors");
        weights().write(&path, Precision::Full).unwrap();
        let read = Weights::read(&path).unwrap();
        assert_eq!(read, weights());
        assert_eq!(read.fit().shape, Shape { height: 28, width: 30, channels: 3 });
        weights().write(&path, Precision::Half).unwrap();
        let halved = Weights::read(&path).unwrap();
        let whole = weights().learned;
        let far = halved.learned.iter().zip(&whole).map(|(a, b)| (a - b).abs());
        assert!(far.fold(0.0, f32::max) < 1e-3);
    }

    #[test]
    fn images_are_brought_to_a_networks_shape_as_in_its_training() {
        let mut weights = weights();
        assert_eq!(weights.fit().how, How::Resize);
        let shape = weights.fit().shape;
        for how in [How::Resize, How::ResizeThenCentreCrop { resize: 36 }] {
            weights.set_fit(Fit { shape, how });
            assert_eq!(weights.fit(), Fit { shape, how });
        }
        assert_eq!(weights.metadata[FIT], r#"{"centre_of":36,"height":28,"version":1,"width":30}"#);
    }

    #[test]
    fn a_fit_that_makes_no_sense_is_not_believed() {
        let mut weights = weights();
        let shape = weights.fit().shape;
        weights.set_fit(Fit { shape, how: How::ResizeThenCentreCrop { resize: 27 } });
        assert_eq!(weights.fit(), Fit { shape, how: How::Resize });
        for text in ["", "30×28 colour", r#"{"version":2,"height":28,"width":30}"#] {
            weights.metadata.insert(FIT.to_owned(), text.to_owned());
            assert_eq!(weights.fit().shape, Shape { height: 0, width: 0, channels: 3 }, "{text}");
        }
    }

    #[test]
    fn fits_of_old_files_are_sentences() {
        let mut weights = weights();
        weights.metadata.remove(FIT);
        let unknown = Shape { height: 0, width: 0, channels: 3 };
        assert_eq!(weights.fit(), Fit { shape: unknown, how: How::Resize });
        let shape = Shape { height: 28, width: 30, channels: 3 };
        weights.metadata.insert(OLD_SHAPE.to_owned(), shape.to_string());
        assert_eq!(weights.fit(), Fit { shape, how: How::Resize });
        let fit = Fit { shape, how: How::ResizeThenCentreCrop { resize: 36 } };
        weights.metadata.insert(OLD_FIT.to_owned(), fit.to_string());
        assert_eq!(weights.fit(), fit);
    }

    #[test]
    fn the_network_of_this_repository_is_an_old_file() {
        let path = "../../networks/resnet18-cifar100-base50.safetensors";
        let weights = Weights::read(Path::new(path)).unwrap();
        assert!(!weights.metadata.contains_key(FIT));
        let shape = Shape { height: 32, width: 32, channels: 3 };
        assert_eq!(weights.fit(), Fit { shape, how: How::Resize });
    }

    /// The same file with the names of its header in order.
    fn sorted(file: &[u8]) -> Vec<u8> {
        let (length, rest) = file.split_first_chunk::<8>().unwrap();
        let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let entries: serde_json::Value = serde_json::from_slice(header).unwrap();
        let mut header = serde_json::to_vec(&entries).unwrap();
        header.resize(header.len().next_multiple_of(8), b' ');
        [&(header.len() as u64).to_le_bytes(), header.as_slice(), data].concat()
    }

    #[test]
    fn a_file_is_the_one_of_the_safetensors_crate_with_a_sorted_header() {
        for precision in [Precision::Full, Precision::Half] {
            let ours = weights().to_bytes(Path::new("w"), precision).unwrap();
            let (_, header) = SafeTensors::read_metadata(&ours).unwrap();
            let tensors = SafeTensors::deserialize(&ours).unwrap();
            assert_eq!(tensors.len(), weights().iter().count());
            let theirs =
                safetensors::serialize(tensors.tensors(), header.metadata().clone()).unwrap();
            assert_eq!(ours, sorted(&theirs), "{precision:?}");
        }
    }

    /// A file of weights whose header has been changed.
    fn forged(change: impl Fn(String) -> String) -> Vec<u8> {
        let bytes = weights().to_bytes(Path::new("w"), Precision::Full).unwrap();
        let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
        let (header, numbers) = rest.split_at(u64::from_le_bytes(*length) as usize);
        let header = change(String::from_utf8(header.to_vec()).unwrap());
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), numbers].concat()
    }

    #[test]
    fn sizes_and_deviations_of_a_file_are_not_believed() {
        let refused = |bytes: &[u8]| {
            Weights::from_bytes(Path::new("w.safetensors"), bytes).unwrap_err().to_string()
        };
        assert!(Weights::from_bytes(Path::new("w"), &forged(|header| header)).is_ok());
        let error = refused(&forged(|header| header.replace("(0.2, 0.2, 0.2)", "(0.2, 0.0, 0.2)")));
        assert!(error.contains("std") && error.contains("above 0"), "{error}");
        // without a normalisation, one is made for every channel: of these no memory holds enough
        let error = refused(&forged(|header| {
            let channels = (r#"\"channels\":3"#, r#"\"channels\":1152921504606846976"#);
            assert!(header.contains(channels.0), "{header}");
            let header = header.replace(channels.0, channels.1);
            header.replace("\"mean\"", "\"no-mean\"").replace("\"std\"", "\"no-std\"")
        }));
        assert!(error.contains("senseless"), "{error}");
    }

    #[test]
    fn names_of_others_are_understood() {
        assert_eq!(our_name("stem.0.weight"), "conv1.weight");
        assert_eq!(our_name("stem.1.running_var"), "bn1.running_var");
        assert_eq!(our_name("layer2.0.down.1.bias"), "layer2.0.downsample.1.bias");
        assert_eq!(our_name("module.fc.weight"), "fc.weight");
    }

    #[test]
    fn weights_of_another_architecture_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.safetensors");
        let mut other = weights();
        other.write(&path, Precision::Full).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        // The header says 64 where the tensor has 128.
        let at = bytes.windows(12).position(|w| w == b"[32,64,128],").unwrap();
        bytes[at..at + 12].copy_from_slice(b"[32,64,129],");
        let error = Weights::from_bytes(&path, &bytes).unwrap_err().to_string();
        assert!(error.contains("another architecture") && error.contains("layer3"), "{error}");
        other.learned[3] = f32::NAN;
        other.write(&path, Precision::Full).unwrap();
        let error = Weights::read(&path).unwrap_err().to_string();
        assert!(error.contains("conv1.weight") && error.contains("NaN"), "{error}");
        std::fs::write(&path, &bytes[..100]).unwrap();
        assert!(Weights::read(&path).is_err());
    }
}
