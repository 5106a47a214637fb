//! A frozen network and a model together: images in, answers out.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ivoro::head::Retracted;
use ivoro::model::Prediction;
use ivoro::model::{AskOptions, Predictor};
use ivoro::{Matrix, Model, NetworkDescription, Points, Retraction, Samples, Variant, interrupt};

use crate::ahead::look_at_parts;
use crate::dataset::{Broken, Dataset, Decoding, ImageInput, Images, Split, Unread, decode_all};
use crate::engine::cpu::{CpuEngine, Network};
use crate::engine::onnx::{OnnxNetwork, OnnxOptions};
use crate::engine::{Backbone, Device, Engine};
use crate::error::{Error, Result};
use crate::extract::features;
use crate::network::{Normalisation, OperationNetwork, Weights, fingerprint};
use crate::shape::{Fit, Fitting, How, Shape};

/// How a network is opened, beyond what its file says.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// What computes it; by default the CPU.
    pub engine: Arc<dyn Engine>,
    /// Images computed at once.
    pub batch: usize,
    /// The size of images and how others are brought to it; by default as in training.
    pub fitting: Fitting,
    /// What images are brought to, whatever size they have; wins over `fitting`.
    pub fit: Option<Fit>,
    /// ONNX: the values that are features, the last layer first; by default the graph's outputs.
    pub onnx_outputs: Vec<String>,
    /// ONNX: how pixels become the network's input; by default ImageNet's convention.
    pub normalisation: Option<Normalisation>,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            engine: Arc::new(CpuEngine),
            batch: Device::default().batch(),
            fitting: Fitting::default(),
            fit: None,
            onnx_outputs: Vec::new(),
            normalisation: None,
        }
    }
}

impl NetworkOptions {
    /// The same with what was not given taken from the description of a network: what a model was
    /// taught with, or what was said when the network was added.
    #[must_use]
    pub fn or(self, described: &NetworkDescription) -> Self {
        let NetworkDescription { outputs, mean, deviation, .. } = described;
        let (mean, deviation) = (mean.clone(), deviation.clone());
        let normalisation = self.normalisation.or(Some(Normalisation { mean, deviation }));
        let onnx_outputs =
            if self.onnx_outputs.is_empty() { outputs.clone() } else { self.onnx_outputs };
        let own = Fit::of_description(described);
        let Fitting { size, how } = self.fitting;
        let square = (own.shape.height == own.shape.width).then_some(own.shape.height);
        let (fitting, fit) = match (size, how) {
            (None, None) => (self.fitting, self.fit.or(Some(own))),
            _ => (Fitting { size: size.or(square), how: how.or(own.how.choice()) }, self.fit),
        };
        Self { fitting, fit, onnx_outputs, normalisation, ..self }
    }

    /// The sides that images are to have, where that was given.
    fn sides(&self) -> (Option<usize>, Option<usize>) {
        let fit = self.fit.map(|fit| (Some(fit.shape.height), Some(fit.shape.width)));
        fit.unwrap_or((self.fitting.size, self.fitting.size))
    }
}

/// A network that looks at images and is never trained again. Many threads can use it at once.
pub struct FrozenNetwork {
    backbone: Box<dyn Backbone>,
    name: String,
    path: Option<PathBuf>,
    fingerprint: String,
    normalisation: Normalisation,
    trained: Fit,
    fitting: Fitting,
    fixed: Option<Fit>,
    batch: usize,
}

impl FrozenNetwork {
    /// Opens a file: weights of this project or of torchvision's ResNet-18, or an ONNX network.
    pub fn open(path: &Path, options: &NetworkOptions) -> Result<Self> {
        Self::open_if(path, options, |_| Ok(()))
    }

    /// The same if the hash of the file is accepted.
    pub(crate) fn open_if(
        path: &Path,
        options: &NetworkOptions,
        accept: impl FnOnce(&str) -> Result<()>,
    ) -> Result<Self> {
        let bytes = fs_err::read(path)?;
        let fingerprint = fingerprint(&bytes);
        accept(&fingerprint)?;
        let opened = Self::of_known_hash(path, bytes.into(), fingerprint, options)?;
        Ok(Self { path: Some(std::path::absolute(path)?), ..opened })
    }

    /// The same from the contents of the file; `path` names it and says by its extension what it is.
    pub fn from_bytes<'a>(
        path: &Path,
        bytes: impl Into<Cow<'a, [u8]>>,
        options: &NetworkOptions,
    ) -> Result<Self> {
        let bytes = bytes.into();
        let fingerprint = fingerprint(&bytes);
        Self::of_known_hash(path, bytes, fingerprint, options)
    }

    /// The same where the hash of the contents is known.
    pub(crate) fn of_known_hash(
        path: &Path,
        bytes: Cow<'_, [u8]>,
        fingerprint: String,
        options: &NetworkOptions,
    ) -> Result<Self> {
        let batch = options.batch.max(1);
        let (backbone, trained, normalisation) = if is_onnx(path) {
            onnx(path, bytes, options, batch)?
        } else {
            let (backbone, trained, normalisation) = weights(path, &bytes, options)?;
            check_normalisation(path, &normalisation, options)?;
            (backbone, trained, normalisation)
        };
        let name = path.file_stem().map_or_else(String::new, |it| it.to_string_lossy().into());
        let (fitting, fixed) = (options.fitting, options.fit);
        let path = None;
        Ok(Self {
            backbone,
            name,
            path,
            fingerprint,
            normalisation,
            trained,
            fitting,
            fixed,
            batch,
        })
    }

    /// The same under another name.
    #[must_use]
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How pixels become its input.
    pub fn normalisation(&self) -> &Normalisation {
        &self.normalisation
    }

    /// What a model is told that was taught with this network and images brought to it so.
    pub fn describe(&self, fit: Fit) -> NetworkDescription {
        let Shape { height, width, .. } = fit.shape;
        let Normalisation { mean, deviation } = self.normalisation.clone();
        NetworkDescription {
            version: NetworkDescription::VERSION,
            name: self.name.clone(),
            hash: self.fingerprint.clone(),
            path: self.path.as_ref().and_then(|path| path.to_str()).map(ToOwned::to_owned),
            outputs: self.backbone.layers().iter().map(|(name, _)| name.clone()).collect(),
            height,
            width,
            fit: fit.how.described(),
            mean,
            deviation,
            engine: self.backbone.engine().to_owned(),
        }
    }

    /// The same for single images of any size.
    pub fn describe_queries(&self) -> Result<NetworkDescription> {
        Ok(self.describe(self.fit_of_queries()?))
    }

    /// What images of these rows are brought to; none where there is no row.
    pub fn fit_of(&self, split: &Split, rows: &[usize]) -> Result<Option<Fit>> {
        let own = match (split.shape(), rows.first()) {
            (Some(shape), _) => shape,
            (None, Some(&row)) => split.measure(row)?,
            (None, None) => return Ok(None),
        };
        Ok(Some(self.fit(own)))
    }

    /// The network itself.
    pub fn backbone(&self) -> &dyn Backbone {
        &*self.backbone
    }

    /// Hash of its file.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Images computed at once.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// What images were brought to in training; height and width are 0 where any will do.
    pub fn trained_fit(&self) -> Fit {
        self.trained
    }

    /// What images are brought to, where `own` is the shape of the first of them.
    pub fn fit(&self, own: Shape) -> Fit {
        self.fixed.unwrap_or_else(|| self.fitting.fit(own, Some(self.trained)))
    }

    /// What single images of any shape are brought to.
    pub fn fit_of_queries(&self) -> Result<Fit> {
        let known = self.fixed.is_some() || self.fitting.size.is_some();
        if !known && self.trained.shape.height == 0 {
            return Err(Error::UnknownSize);
        }
        Ok(self.fit(self.trained.shape))
    }

    /// What the network sees in images that have one shape already, for a variant of the model.
    pub(crate) fn look(&self, images: &Images, variant: Variant) -> Result<Vec<Matrix>> {
        features(&*self.backbone, images, &variant.views(), &self.layers_of(variant))
    }

    fn layers_of(&self, variant: Variant) -> Vec<usize> {
        (0..self.backbone.layers().len().min(variant.layers().end)).collect()
    }

    pub(crate) fn assemble(
        &self,
        origin: &str,
        variant: Variant,
        blocks: Vec<Matrix>,
    ) -> Result<Points> {
        let all = self.backbone.layers();
        let names = self.layers_of(variant).into_iter().map(|layer| all[layer].0.clone());
        Ok(Points::new(origin, names.collect(), variant.views(), blocks)?)
    }

    /// What a model of this variant is asked about these images: decoded on all cores, a batch at a
    /// time.
    pub fn points(
        &self,
        variant: Variant,
        images: &[ImageInput<'_>],
        decoding: impl Into<Decoding>,
    ) -> Result<Seen<Points>> {
        let (fit, decoding) = (self.fit_of_queries()?, decoding.into());
        let mut gathered = Gathered::default();
        look_at_parts(
            images,
            self.batch,
            |part| decode_all(part, fit, decoding),
            |images| self.look(images, variant),
            |_, _| {},
            |images, first, seen| gathered.add(images, first, seen),
        )?;
        let Gathered { blocks, rows, broken, truncated } = gathered;
        if rows.is_empty() {
            return Ok(Seen { of: None, rows, broken, truncated });
        }
        Ok(Seen { of: Some(self.assemble("images", variant, blocks)?), rows, broken, truncated })
    }

    /// What a model of this variant learns from these rows of a data set's training images.
    /// `each_batch` is told how many images are done.
    pub fn samples(
        &self,
        variant: Variant,
        dataset: &Dataset,
        rows: &[usize],
        broken: Broken,
        each_batch: &mut dyn FnMut(usize),
    ) -> Result<Seen<Samples>> {
        let split = &dataset.train;
        let Some(fit) = self.fit_of(split, rows)? else {
            return Ok(Seen::nothing());
        };
        let mut gathered = Gathered::default();
        for (batch, part) in rows.chunks(self.batch).enumerate() {
            interrupt::check();
            let mut images = split.read(part, fit, broken)?;
            // places in the list of rows, as for single images
            let place = |row: usize| part.iter().position(|&other| other == row).unwrap_or(0);
            images.rows.iter_mut().for_each(|row| *row = place(*row));
            images.broken.iter_mut().for_each(|(row, _)| *row = place(*row));
            images.truncated.iter_mut().for_each(|row| *row = place(*row));
            gathered.add(&images, batch * self.batch, self.look(&images, variant)?)?;
            each_batch((batch * self.batch + part.len()).min(rows.len()));
        }
        let Gathered { blocks, rows: places, broken, truncated } = gathered;
        if places.is_empty() {
            return Ok(Seen { of: None, rows: places, broken, truncated });
        }
        let labels = places.iter().map(|&at| split.labels()[rows[at]]).collect();
        let points = self.assemble(&dataset.name, variant, blocks)?;
        let samples = Samples::new(points, labels, dataset.classes.clone().into())?;
        Ok(Seen { of: Some(samples), rows: places, broken, truncated })
    }
}

/// A network ready to compute, what images were brought to in its training, and its normalisation.
type Opened = (Box<dyn Backbone>, Fit, Normalisation);

pub(crate) fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|it| it.eq_ignore_ascii_case("onnx"))
}

/// An ONNX network. Its file says nothing of how images were brought to it: the centre is what networks
/// for photographs are trained to see.
fn onnx(
    path: &Path,
    bytes: Cow<'_, [u8]>,
    options: &NetworkOptions,
    batch: usize,
) -> Result<Opened> {
    let (height, width) = options.sides();
    let onnx = OnnxOptions {
        outputs: options.onnx_outputs.clone(),
        height,
        width,
        normalisation: options.normalisation.clone(),
        batch,
        ..OnnxOptions::default()
    };
    let network = OnnxNetwork::from_bytes(path, bytes, &onnx)?;
    let shape = network.shape().unwrap_or(Shape { height: 0, width: 0, channels: 3 });
    let normalisation =
        options.normalisation.clone().unwrap_or_else(|| Normalisation::imagenet(shape.channels));
    Ok((Box::new(network), centre(shape), normalisation))
}

/// The centre of images whose shorter side is 8/7 of it.
pub(crate) fn centre(shape: Shape) -> Fit {
    let how = How::ResizeThenCentreCrop { resize: shape.height.max(shape.width) * 8 / 7 };
    Fit { shape, how }
}

/// Weights of this project or of torchvision, or a list of operations with weights, which the CPU computes.
fn weights(path: &Path, bytes: &[u8], options: &NetworkOptions) -> Result<Opened> {
    if OperationNetwork::is_in(bytes) {
        let network = OperationNetwork::from_bytes(path, bytes)?;
        let backbone = Network::of_operations(path, &network)?;
        return Ok((Box::new(backbone), network.fit, network.normalisation));
    }
    let weights = Weights::from_bytes(path, bytes)?;
    Ok((options.engine.backbone(&weights)?, weights.fit(), weights.normalisation))
}

/// Refuses to normalise otherwise than a file of weights says.
fn check_normalisation(path: &Path, own: &Normalisation, options: &NetworkOptions) -> Result<()> {
    match &options.normalisation {
        Some(asked) if asked != own => Err(Error::FixedNormalisation {
            path: path.to_owned(),
            own: own.to_string(),
            asked: asked.to_string(),
        }),
        _ => Ok(()),
    }
}

/// What a network saw in those images that could be read.
#[derive(Clone, Debug)]
pub struct Seen<T> {
    /// What it saw; none where no image could be read.
    pub of: Option<T>,
    /// For each row the place of its image among those given.
    pub rows: Vec<usize>,
    /// The places left out under [`Broken::Skip`], each with a sentence that says why.
    pub broken: Vec<(usize, Unread)>,
    /// The places of images that end too early and were taken.
    pub truncated: Vec<usize>,
}

impl<T> Seen<T> {
    /// Of no image.
    fn nothing() -> Self {
        Self { of: None, rows: Vec::new(), broken: Vec::new(), truncated: Vec::new() }
    }
}

/// Features of the batches so far.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) blocks: Vec<Matrix>,
    pub(crate) rows: Vec<usize>,
    pub(crate) broken: Vec<(usize, Unread)>,
    pub(crate) truncated: Vec<usize>,
}

impl Gathered {
    /// Adds a batch whose first image is the `first` of all.
    pub(crate) fn add(&mut self, images: &Images, first: usize, more: Vec<Matrix>) -> Result<()> {
        self.rows.extend(images.rows.iter().map(|row| first + row));
        self.broken.extend(images.broken.iter().map(|(row, why)| (first + row, why.clone())));
        self.truncated.extend(images.truncated.iter().map(|row| first + row));
        if self.blocks.is_empty() {
            self.blocks = more;
            return Ok(());
        }
        for (block, more) in self.blocks.iter_mut().zip(&more) {
            block.append(more)?;
        }
        Ok(())
    }
}

/// What a [`Recogniser`] can ask: a [`Model`], or a [`Predictor`] that does nothing else.
pub trait Classifier {
    /// The variant, which says which views and layers are looked at.
    fn variant(&self) -> Variant;

    /// Refuses another network than the one it was taught with.
    fn check_network(&self, fingerprint: &str) -> ivoro::Result<()>;

    /// Refuses another network, and images brought to it otherwise.
    fn check_described_network(&self, description: &NetworkDescription) -> ivoro::Result<()>;

    /// What it was taught with.
    fn taught(&self) -> Taught<'_>;

    /// See [`Model::ask`].
    fn ask(&self, queries: &Points, options: AskOptions) -> ivoro::Result<Vec<Prediction>>;
}

/// What is known of the network that made the features of a model.
#[derive(Clone, Copy, Debug)]
pub enum Taught<'a> {
    /// The model has learned nothing.
    Nothing,
    /// It learned features, and nothing says what made them.
    Features,
    /// It knows the hash of the network's file alone, as models of version 0.1 do.
    Hash(&'a str),
    /// It knows all.
    Described(&'a NetworkDescription),
}

impl<'a> Taught<'a> {
    /// Refuses another network by its hash.
    pub(crate) fn check_hash(self, found: &str) -> Result<()> {
        let expected = match self {
            Self::Nothing | Self::Features => return Ok(()),
            Self::Hash(hash) => hash,
            Self::Described(described) => &described.hash,
        };
        if expected == found {
            return Ok(());
        }
        let (expected, found) = (expected.to_owned(), found.to_owned());
        Err(ivoro::Error::OtherNetwork { expected, found }.into())
    }

    fn of(hash: Option<&'a str>, description: Option<&'a NetworkDescription>) -> Self {
        match (description, hash) {
            (Some(description), _) => Self::Described(description),
            (None, Some(hash)) => Self::Hash(hash),
            (None, None) => Self::Features,
        }
    }
}

impl Classifier for Model {
    fn variant(&self) -> Variant {
        self.head().variant()
    }

    fn check_network(&self, fingerprint: &str) -> ivoro::Result<()> {
        self.check_network(fingerprint)
    }

    fn check_described_network(&self, description: &NetworkDescription) -> ivoro::Result<()> {
        self.check_described_network(description)
    }

    fn taught(&self) -> Taught<'_> {
        if self.head().classes().is_empty() {
            return Taught::Nothing;
        }
        Taught::of(self.network(), self.network_description())
    }

    fn ask(&self, queries: &Points, options: AskOptions) -> ivoro::Result<Vec<Prediction>> {
        self.ask(queries, options)
    }
}

impl Classifier for Predictor {
    fn variant(&self) -> Variant {
        self.variant()
    }

    fn check_network(&self, fingerprint: &str) -> ivoro::Result<()> {
        self.check_network(fingerprint)
    }

    fn check_described_network(&self, description: &NetworkDescription) -> ivoro::Result<()> {
        self.check_described_network(description)
    }

    fn taught(&self) -> Taught<'_> {
        Taught::of(self.network(), self.network_description())
    }

    fn ask(&self, queries: &Points, options: AskOptions) -> ivoro::Result<Vec<Prediction>> {
        self.ask(queries, options)
    }
}

/// A model and the network whose features it was taught with: learns and answers images given as
/// paths, bytes or pixels. Asking takes `&self`, so many threads can ask one recogniser.
///
/// ```no_run
/// use std::path::Path;
/// use ivoro_vision::dataset::ImageInput;
/// use ivoro_vision::recogniser::{FrozenNetwork, NetworkOptions, Recogniser};
///
/// let network = FrozenNetwork::open(Path::new("network.onnx"), &NetworkOptions::default())?;
/// let mut pets = Recogniser::open(Path::new("pets.ivoro"), network)?;
/// pets.learn(&[(ImageInput::Path(Path::new("rex.jpg")), "dog")])?;
/// let photo = std::fs::read("who.jpg")?;
/// let query = ImageInput::Bytes { name: Path::new("who.jpg"), bytes: &photo };
/// println!("{}", pets.ask(&[query], Default::default())?[0].top[0].class);
/// pets.save(Path::new("pets.ivoro"))?;
/// # Ok::<(), ivoro_vision::Error>(())
/// ```
pub struct Recogniser<M = Model> {
    model: M,
    network: FrozenNetwork,
}

impl<M: Classifier> Recogniser<M> {
    /// A model with its network; another network than the model's is refused.
    pub fn new(model: M, network: FrozenNetwork) -> Result<Self> {
        match network.describe_queries() {
            Ok(description) => model.check_described_network(&description)?,
            Err(_) => model.check_network(network.fingerprint())?,
        }
        Ok(Self { model, network })
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The network.
    pub fn network(&self) -> &FrozenNetwork {
        &self.network
    }

    /// An answer for each image, or for each burst of images. An image that can't be read is an
    /// error.
    pub fn ask(&self, images: &[ImageInput<'_>], options: AskOptions) -> Result<Vec<Prediction>> {
        Ok(self.ask_readable(images, options, Broken::Fail)?.of.unwrap_or_default())
    }

    /// The same; `decoding` says what to do about an image that can't be read.
    pub fn ask_readable(
        &self,
        images: &[ImageInput<'_>],
        options: AskOptions,
        decoding: impl Into<Decoding>,
    ) -> Result<Seen<Vec<Prediction>>> {
        let Seen { of, rows, broken, truncated } =
            self.network.points(self.model.variant(), images, decoding)?;
        let answers = of.map(|points| self.model.ask(&points, options)).transpose()?;
        Ok(Seen { of: answers, rows, broken, truncated })
    }
}

impl Recogniser<Predictor> {
    /// Opens a model that is only to be asked: quicker, and with less in memory.
    pub fn open_to_ask(model: &Path, network: FrozenNetwork) -> Result<Self> {
        Self::new(ivoro_io::load_predictor(model)?, network)
    }
}

impl Recogniser {
    /// Opens a model file with its network.
    pub fn open(model: &Path, network: FrozenNetwork) -> Result<Self> {
        Self::new(ivoro_io::load(model)?, network)
    }

    /// Teaches new classes as one phase; see [`Model::learn`].
    pub fn learn(&mut self, images: &[(ImageInput<'_>, &str)]) -> Result<()> {
        let samples = self.labelled(images)?;
        self.learn_samples(&samples)
    }

    /// Teaches new classes, and more of those that the model knows; see [`Model::teach`].
    pub fn teach(&mut self, images: &[(ImageInput<'_>, &str)]) -> Result<()> {
        let samples = self.labelled(images)?;
        self.note_network()?;
        Ok(self.model.teach(&samples)?)
    }

    /// Adds images of classes that the model knows; see [`Model::update`].
    pub fn update(&mut self, images: &[(ImageInput<'_>, &str)]) -> Result<Vec<(String, usize)>> {
        let samples = self.labelled(images)?;
        self.update_samples(&samples)
    }

    /// Takes images back that were learned or added; see [`Model::retract`]. What a network computes depends, in its
    /// last digits, on the images beside each one: the same images in the same order are recognised where the
    /// model keeps a journal; others are refused unless `how` is inexact.
    pub fn retract(
        &mut self,
        images: &[(ImageInput<'_>, &str)],
        how: Retraction,
    ) -> Result<Retracted> {
        let samples = self.labelled(images)?;
        Ok(self.model.retract(&samples, Retraction { recomputed: true, ..how })?)
    }

    /// Teaches what the network saw in a data set; see [`FrozenNetwork::samples`].
    pub fn learn_samples(&mut self, samples: &Samples) -> Result<()> {
        self.note_network()?;
        Ok(self.model.learn(samples)?)
    }

    /// Adds what the network saw in a data set; see [`FrozenNetwork::samples`].
    pub fn update_samples(&mut self, samples: &Samples) -> Result<Vec<(String, usize)>> {
        self.note_network()?;
        Ok(self.model.update(samples)?)
    }

    /// Notes in the model which network looks at images for it, and how they are brought to it.
    fn note_network(&mut self) -> Result<()> {
        match self.network.describe_queries() {
            Ok(description) => Ok(self.model.use_described_network(&description)?),
            Err(_) => Ok(self.model.use_network(self.network.fingerprint())?),
        }
    }

    /// Saves the model: the file appears whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        Ok(ivoro_io::save(&self.model, path)?)
    }

    /// The model alone.
    pub fn into_model(self) -> Model {
        self.model
    }

    fn labelled(&self, images: &[(ImageInput<'_>, &str)]) -> Result<Samples> {
        let mut classes: Vec<String> = Vec::new();
        let mut labels = Vec::with_capacity(images.len());
        for (_, class) in images {
            let known = classes.iter().position(|other| other == class);
            labels.push(known.unwrap_or(classes.len()) as u32);
            if known.is_none() {
                classes.push((*class).to_owned());
            }
        }
        let inputs: Vec<ImageInput<'_>> = images.iter().map(|(image, _)| *image).collect();
        let seen = self.network.points(self.model.head().variant(), &inputs, Broken::Fail)?;
        let points = seen.of.ok_or(ivoro::Error::Size {
            what: "images to learn from".to_owned(),
            expected: 1,
            found: 0,
        })?;
        Ok(Samples::new(points, labels, classes.into())?)
    }
}
