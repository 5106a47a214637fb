//! Arguments of the verbs that start from images.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use ivoro::View;
use ivoro_eval::{ClassOrder, Protocol};
use ivoro_vision::dataset::{Broken, Dataset, Fit, OpenOptions, Shape, Split, is_images};
use ivoro_vision::engine::{Device, Normalisation};
use ivoro_vision::network::{Architecture, Precision, Stem};
use ivoro_vision::networks::{Asked, Networks};
use ivoro_vision::recogniser::Taught;
use ivoro_vision::shape::{FitHow, Fitting};
use ivoro_vision::train::Recipe;
use ivoro_vision::{FrozenNetwork, NetworkOptions};

use crate::engine::engine;
use crate::failure::Failure;
use crate::grid::pair;

/// How a data set of images is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images")]
pub(crate) struct ImageArguments {
    #[command(flatten)]
    pub(crate) fitting: FitArguments,

    /// Share of each class that becomes test images, where a folder has no such part.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub(crate) test_share: f64,

    /// Seed of that division.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) split_seed: u64,
}

/// How images are brought to the shape that a network takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images")]
pub(crate) struct FitArguments {
    /// Side of the square that images are brought to (default: what the network was trained on, or
    /// their own size, if all have one).
    #[arg(long, value_name = "PIXELS")]
    pub(crate) size: Option<usize>,

    /// How other sizes are brought to it: stretch both sides, or cut out the centre (default: as for
    /// the images that the network was trained on; of an ONNX network the centre, else stretch).
    #[arg(long, value_name = "HOW")]
    pub(crate) fit: Option<FitChoice>,

    /// Leave out images that can't be read, and list them, instead of stopping at the first.
    #[arg(long)]
    pub(crate) skip_broken: bool,
}

impl FitArguments {
    /// What was given, as it would be typed.
    pub(crate) fn words(&self) -> Vec<String> {
        let fit = self.fit.and_then(|fit| fit.to_possible_value());
        let fit = fit.as_ref().map(PossibleValue::get_name);
        let mut words = [pair("--size", self.size.as_ref()), pair("--fit", fit.as_ref())].concat();
        words.extend(self.skip_broken.then(|| "--skip-broken".to_owned()));
        words
    }

    pub(crate) fn broken(&self) -> Broken {
        if self.skip_broken { Broken::Skip } else { Broken::Fail }
    }

    /// The shape that images are brought to: the size given, else the one that the network was
    /// made for, else that of the first image, which all others must then have too.
    pub(crate) fn fit(&self, own: Shape, network: Option<Fit>) -> Fit {
        self.fitting().fit(own, network)
    }

    pub(crate) fn fitting(&self) -> Fitting {
        let how = self.fit.map(|choice| match choice {
            FitChoice::Stretch => FitHow::Stretch,
            FitChoice::Centre => FitHow::Centre,
        });
        Fitting { size: self.size, how }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitChoice {
    /// Both sides are scaled on their own.
    Stretch,
    /// The shorter side is scaled to 8/7 of the size, then the centre is cut out.
    Centre,
}

impl ImageArguments {
    pub(crate) fn open(&self, path: &Path) -> Result<Dataset, Failure> {
        let (test_share, seed, broken) = (self.test_share, self.split_seed, self.broken());
        Ok(Dataset::open(path, &OpenOptions { test_share, seed, broken })?)
    }

    pub(crate) fn broken(&self) -> Broken {
        self.fitting.broken()
    }

    /// The shape that the images of a split are brought to.
    pub(crate) fn fit(&self, split: &Split, network: Option<Fit>) -> Result<Fit, Failure> {
        let own = match split.shape() {
            Some(shape) => shape,
            None if split.is_empty() => {
                return Err(Failure::Usage("the data set has no image".to_owned()));
            }
            None => split.measure(0)?,
        };
        Ok(self.fitting.fit(own, network))
    }
}

/// Which classes are there when.
#[derive(Debug, Args)]
pub(crate) struct BaseArguments {
    /// Which classes come when: the first number is that of base classes. 50+5x10 or 4,3,3.
    /// Default: half of the classes first.
    #[arg(long, value_name = "TEXT")]
    pub(crate) protocol: Option<String>,

    /// Class order: identity, a seed, numpy:SEED, or a file with ids or names.
    #[arg(long, value_name = "ORDER", default_value = "numpy:1993")]
    pub(crate) order: String,
}

impl BaseArguments {
    /// The data set's labels of the base classes, in order.
    pub(crate) fn base(&self, dataset: &Dataset) -> Result<Vec<u32>, Failure> {
        let classes = dataset.classes.len();
        let protocol = match &self.protocol {
            Some(text) => text.parse()?,
            None => Protocol::default_for(classes)?,
        };
        protocol.check(classes)?;
        let order = class_order(&self.order, &dataset.classes)?.permutation(classes)?;
        Ok(order[..protocol.sizes()[0]].iter().map(|&class| class as u32).collect())
    }
}

/// A class order as text: a name, a seed, or a file.
pub(crate) fn class_order(text: &str, names: &[String]) -> Result<ClassOrder, Failure> {
    match text.parse() {
        Ok(order) => Ok(order),
        Err(_) if Path::new(text).exists() => {
            let named = |error: ivoro::Error| match error {
                ivoro::Error::Order { reason, .. } => {
                    ivoro::Error::Order { text: text.to_owned(), reason }
                }
                error => error,
            };
            let list = fs_err::read_to_string(text)?;
            let order = ClassOrder::from_list_text(&list, names).map_err(named)?;
            order.permutation(names.len()).map_err(named)?;
            Ok(order)
        }
        Err(ivoro::Error::Order { text, reason }) => {
            let reason = format!("{reason}; there is no such file");
            Err(ivoro::Error::Order { text, reason }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Which network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkChoice {
    /// ResNet-18 with a 3×3 first convolution, for images of about 28 to 64 pixels.
    Resnet18,
    /// ResNet-18 with a 7×7 first convolution, for images of about 224 pixels.
    Resnet18Large,
    /// A network that trains in about a minute on two cores, for small images.
    Small,
}

impl NetworkChoice {
    pub(crate) fn architecture(self, embedding: Option<usize>) -> Architecture {
        // Channels and outputs are set when the data are known.
        let architecture = match self {
            Self::Resnet18 => Architecture::resnet18(Stem::Small, 3, 0),
            Self::Resnet18Large => Architecture::resnet18(Stem::Large, 3, 0),
            Self::Small => Architecture::small(3, 0),
        };
        match embedding {
            Some(dimensions) => architecture.with_embedding(dimensions),
            None => architecture,
        }
    }
}

/// How a network is trained. What is not given is the recipe of PASS.
#[derive(Debug, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArguments {
    /// The network.
    #[arg(long, default_value = "resnet18")]
    pub(crate) network: NetworkChoice,

    /// Give the network a last layer of this many values, e.g. 2 for pictures in the plane.
    #[arg(long, value_name = "DIM")]
    pub(crate) embedding: Option<usize>,

    /// TOML file with the settings of training; the flags below win over it.
    #[arg(long, value_name = "FILE")]
    pub(crate) recipe: Option<PathBuf>,

    /// Times every training image is seen (101).
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<usize>,

    /// Training images per step, each at four rotations (64).
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<usize>,

    /// First learning rate (0.001).
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<f32>,

    /// Share of the base classes' training images that only measure accuracy (0).
    #[arg(long, value_name = "SHARE")]
    pub(crate) validation: Option<f64>,

    /// Seed of weights, order and augmentation (0).
    #[arg(long, value_name = "SEED")]
    pub(crate) training_seed: Option<u64>,
}

impl TrainingArguments {
    pub(crate) fn recipe(&self) -> Result<Recipe, Failure> {
        let mut recipe = match &self.recipe {
            Some(path) => toml::from_str(&fs_err::read_to_string(path)?)
                .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?,
            None => Recipe::default(),
        };
        recipe.epochs = self.epochs.unwrap_or(recipe.epochs);
        recipe.batch = self.batch.unwrap_or(recipe.batch);
        recipe.rate = self.rate.unwrap_or(recipe.rate);
        recipe.holdout = self.validation.unwrap_or(recipe.holdout);
        recipe.seed = self.training_seed.unwrap_or(recipe.seed);
        recipe.check()?;
        Ok(recipe)
    }
}

#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    /// Data set: a CIFAR, MNIST or MedMNIST file or folder, or a folder of images by class.
    pub(crate) dataset: PathBuf,

    /// The weights file to write. Beside it: a log, and a checkpoint until training is done.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) base: BaseArguments,

    /// Where to compute: cpu, cuda or cuda:N. On a GPU, cuda:full computes in 32 bits, and cuda:fast
    /// searches for the fastest kernels: then last digits may differ from run to run.
    #[arg(long, default_value = "cpu")]
    pub(crate) device: Device,

    /// How the weights are stored.
    #[arg(long, default_value = "f16")]
    pub(crate) precision: PrecisionChoice,

    #[command(flatten)]
    pub(crate) images: ImageArguments,

    #[command(flatten)]
    pub(crate) training: TrainingArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionChoice {
    /// 16 bits a number.
    F16,
    /// 32 bits a number.
    F32,
}

impl From<PrecisionChoice> for Precision {
    fn from(choice: PrecisionChoice) -> Self {
        match choice {
            PrecisionChoice::F16 => Self::Half,
            PrecisionChoice::F32 => Self::Full,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExtractArguments {
    /// Data set: a CIFAR, MNIST or MedMNIST file or folder, or a folder of images by class.
    pub(crate) dataset: PathBuf,

    /// The features file to write. A stopped extraction resumes where it was.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// Views of each image: upright, rotations, flips, or rotations,flips for all eight.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "rotations")]
    pub(crate) views: Vec<ViewChoice>,

    /// Layers, the last first: last,block3 (default: all).
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) layers: Vec<String>,

    /// How numbers are stored.
    #[arg(long, default_value = "f16")]
    pub(crate) precision: PrecisionChoice,

    // What is flattened comes last: its heading is also that of all flags behind it.
    #[command(flatten)]
    pub(crate) backbone: BackboneArguments,

    #[command(flatten)]
    pub(crate) images: ImageArguments,
}

/// The frozen network.
#[derive(Debug, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct BackboneArguments {
    /// The network that looks at images: a name of `ivoro networks`, or a file: weights of ours or of
    /// torchvision's ResNet-18 (.safetensors), or an ONNX network. Default: the one that the model was
    /// taught with; for a new model the one that comes with the program.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) backbone: Option<PathBuf>,

    /// Where to compute: cpu, cuda or cuda:N. On a GPU, cuda:full computes in 32 bits, and cuda:fast
    /// searches for the fastest kernels: then last digits may differ from run to run.
    #[arg(long, default_value = "cpu")]
    pub(crate) device: Device,

    /// Images computed at once (default: 64, on a GPU 4096).
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<usize>,

    #[command(flatten)]
    pub(crate) onnx: OnnxArguments,
}

/// What the file of an ONNX network does not say.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OnnxArguments {
    /// ONNX: values that are features, the last layer first (default: the outputs of the graph).
    #[arg(long = "onnx-outputs", value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) outputs: Vec<String>,

    /// ONNX: mean of each channel of pixels from 0 to 1 (default: ImageNet's).
    #[arg(long = "onnx-mean", value_name = "R,G,B", value_delimiter = ',', requires = "deviation")]
    pub(crate) mean: Vec<f32>,

    /// ONNX: deviation of each channel.
    #[arg(long = "onnx-deviation", value_name = "R,G,B", value_delimiter = ',', requires = "mean")]
    pub(crate) deviation: Vec<f32>,
}

impl OnnxArguments {
    /// The normalisation that was given.
    pub(crate) fn normalisation(&self) -> Option<Normalisation> {
        let (mean, deviation) = (self.mean.clone(), self.deviation.clone());
        (!mean.is_empty()).then_some(Normalisation { mean, deviation })
    }
}

impl BackboneArguments {
    /// Images computed at once.
    pub(crate) fn batch(&self) -> usize {
        self.batch.unwrap_or(self.device.batch()).max(1)
    }

    /// Opens the network that is named, or the one that ships.
    pub(crate) fn open(&self, fitting: &FitArguments) -> Result<FrozenNetwork, Failure> {
        self.open_for(fitting, Taught::Nothing, None)
    }

    /// Opens the network that is named, or the one that a model was taught with.
    pub(crate) fn open_for(
        &self,
        fitting: &FitArguments,
        taught: Taught<'_>,
        near: Option<&Path>,
    ) -> Result<FrozenNetwork, Failure> {
        let options = NetworkOptions {
            engine: engine(&self.device)?.into(),
            batch: self.batch(),
            fitting: fitting.fitting(),
            fit: None,
            onnx_outputs: self.onnx.outputs.clone(),
            normalisation: self.onnx.normalisation(),
        };
        let network = self.backbone.as_deref();
        let network = Networks::of_user().open(&Asked { network, options, near }, taught)?;
        self.note(&network, taught);
        Ok(network)
    }

    /// Says what was taken where neither the file nor the user said anything.
    fn note(&self, network: &FrozenNetwork, taught: Taught<'_>) {
        let is_onnx = self.backbone.as_ref().is_some_and(|path| {
            path.is_file() && path.extension().is_some_and(|it| it.eq_ignore_ascii_case("onnx"))
        });
        let untold = matches!(taught, Taught::Nothing | Taught::Hash(_));
        if is_onnx && untold && self.onnx.mean.is_empty() {
            anstream::eprintln!(
                "note: {} does not say how pixels are normalised: ImageNet's {} is taken, \
                 --onnx-mean and --onnx-deviation name another",
                network.name(),
                network.normalisation()
            );
        }
        if let (Taught::Hash(_), Ok(described)) = (taught, network.describe_queries()) {
            anstream::eprintln!(
                "note: the model knows its network, but not how images were brought to it; taken now: \
                 {described}"
            );
        }
    }
}

/// For verbs that take features or, with a network, images.
#[derive(Debug, Args)]
pub(crate) struct LookArguments {
    #[command(flatten)]
    pub(crate) network: BackboneArguments,

    #[command(flatten)]
    pub(crate) fitting: FitArguments,

    /// Those of these flags that were given.
    #[arg(skip)]
    pub(crate) given: Vec<String>,

    /// The folder of the model, where a network that was moved may lie too.
    #[arg(skip)]
    pub(crate) near: Option<PathBuf>,
}

impl LookArguments {
    /// Whether a path holds images and not features; flags that no features need are refused.
    pub(crate) fn takes_images(&self, path: &Path) -> Result<bool, Failure> {
        if is_images(path) {
            return Ok(true);
        }
        match self.given.first() {
            Some(flag) if path.exists() => Err(Failure::Usage(format!(
                "{flag} is for images; {} holds features",
                path.display()
            ))),
            _ => Ok(false),
        }
    }

    /// Whether all paths hold images, or none; a mixture is refused.
    pub(crate) fn all_images(&self, paths: &[PathBuf]) -> Result<bool, Failure> {
        let images = paths.iter().map(|path| self.takes_images(path));
        let images = images.collect::<Result<Vec<bool>, Failure>>()?;
        if images.iter().any(|&it| it != images[0]) {
            let text = "name photos and folders of photos, or one features file".to_owned();
            return Err(Failure::Usage(text));
        }
        Ok(images.first().is_some_and(|&first| first))
    }

    /// Opens the network that is named, or the one that a model was taught with.
    pub(crate) fn open(&self, taught: Taught<'_>) -> Result<FrozenNetwork, Failure> {
        self.network.open_for(&self.fitting, taught, self.near.as_deref())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewChoice {
    /// The image as it is.
    Upright,
    /// 0°, 90°, 180°, 270°.
    Rotations,
    /// The mirror image of each other view.
    Flips,
}

/// The views that a list of choices stands for.
pub(crate) fn views(choices: &[ViewChoice]) -> Vec<View> {
    let mut views = if choices.contains(&ViewChoice::Rotations) {
        View::ROTATIONS.to_vec()
    } else {
        vec![View::UPRIGHT]
    };
    if choices.contains(&ViewChoice::Flips) {
        let mirrored: Vec<View> = views.iter().map(|view| view.mirror()).collect();
        views.extend(mirrored);
    }
    views
}

/// From a data set of images to features, inside `run`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Images (where the input is a data set of images)")]
pub(crate) struct PipelineArguments {
    /// A trained network: a name of `ivoro networks`, or a file; without one, a network is trained on
    /// the base classes.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) backbone: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) onnx: OnnxArguments,

    /// Where to compute networks: cpu, cuda or cuda:N, with :full or :fast behind as for `extract`.
    #[arg(long, default_value = "cpu")]
    pub(crate) device: Device,

    /// Views of each image: upright, rotations, flips, or rotations,flips for all eight.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "rotations")]
    pub(crate) views: Vec<ViewChoice>,

    /// Images computed at once when features are taken (default: 64, on a GPU 4096).
    #[arg(long, value_name = "N")]
    pub(crate) extraction_batch: Option<usize>,

    /// Folder for trained networks and features, which later runs find again by the hash of what
    /// made them (default: ivoro in the user's cache folder).
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) images: ImageArguments,

    #[command(flatten)]
    pub(crate) training: TrainingArguments,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Folder for all that is made: images, weights, features, records.
    #[arg(long, value_name = "DIR", default_value = "ivoro-demo")]
    pub(crate) out: PathBuf,

    /// Samples in the plane, so that cells can be drawn; accuracy falls.
    #[arg(long)]
    pub(crate) plane: bool,

    /// Epochs of base-phase training.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) epochs: usize,
}
