//! Where a run's features come from: a file, the set that comes with the program, or images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anstream::eprintln;
use ivoro::samples::Split;
use ivoro_eval::record::{NamedValues, named_values};
use ivoro_eval::{ClassOrder, Protocol, Stream};
use ivoro_io::features::{self, ReadOptions, SplitOrigin};
use ivoro_vision::cache;
use ivoro_vision::dataset::{Dataset, Fit, is_features_file};
use ivoro_vision::extract::Extraction;
use ivoro_vision::network::{Precision, Weights, fingerprint};
use ivoro_vision::train::Plan;

use super::{extract, train};
use serde_json::{Value, json};

use crate::args::images::{BackboneArguments, PipelineArguments, views};
use crate::args::{RunArguments, TuneOn};
use crate::failure::Failure;
use crate::{output, progress};

/// The small real set that comes with the program.
const EMBEDDED: &[u8] = include_bytes!("../../data/cifar100-small.features");
const EMBEDDED_NAME: &str = "cifar100-small.features (embedded)";
/// Share of the base classes' training images that settings are tuned on.
const HELD_OUT: f64 = 0.2;
/// Training images of a class, at least, where settings are tuned on some of them.
const FEWEST: usize = 5;

/// What a run is given.
pub(super) enum Source {
    /// Samples, already divided.
    Samples(Box<Found>),
    /// Images, whose features depend on the base classes.
    Images { dataset: Box<Dataset>, identity: String },
}

/// Samples with what is known of them.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) split: Split,
    /// How train and test parts came to be.
    pub(super) origin: String,
    pub(super) name: String,
    /// How the network behind them was trained, where that is known.
    pub(super) training: Option<NamedValues>,
}

impl Source {
    /// Opens what the arguments name.
    pub(super) fn open(arguments: &RunArguments) -> Result<Self, Failure> {
        let Some(path) = &arguments.features else {
            let file = features::read_bytes(EMBEDDED_NAME, EMBEDDED, &arguments.split.options())?;
            of_no_use(arguments, EMBEDDED_NAME)?;
            let found = found(arguments, file, EMBEDDED_NAME.to_owned())?;
            return Ok(Self::Samples(Box::new(found)));
        };
        let spinner = progress::spinner(&format!("reading {}", path.display()));
        let images = images(arguments, path)?;
        let Some(dataset) = images else {
            spinner.finish_and_clear();
            let found = read(arguments, path)?;
            of_no_use(arguments, &path.display().to_string())?;
            return Ok(Self::Samples(Box::new(found)));
        };
        let identity = dataset.identity()?;
        spinner.finish_and_clear();
        eprintln!("{}: {}", dataset.name, dataset.layout);
        Ok(Self::Images { dataset: Box::new(dataset), identity })
    }

    /// Names of all classes.
    pub(super) fn classes(&self) -> &[String] {
        match self {
            Self::Samples(found) => found.split.train.classes(),
            Self::Images { dataset, .. } => &dataset.classes,
        }
    }

    /// The features for one class order: for images, of a network trained on its base classes.
    pub(super) fn features(
        &self,
        arguments: &RunArguments,
        protocol: &Protocol,
        order: &ClassOrder,
    ) -> Result<Found, Failure> {
        let (dataset, identity) = match self {
            Self::Samples(found) => return Ok((**found).clone()),
            Self::Images { dataset, identity } => (dataset, identity),
        };
        let base = base(dataset.classes.len(), protocol, order)?;
        let pipeline = Pipeline::new(&arguments.pipeline, dataset, identity)?;
        let network = pipeline.network(base)?;
        let training = Weights::read(&network).ok().and_then(|weights| training_of(&weights));
        let found = pipeline.read_features(network, |path| read(arguments, path))?;
        Ok(Found { name: dataset.name.clone(), training, ..found })
    }

    /// What settings are chosen on, if that is not the base phase itself.
    pub(super) fn tuning_set(
        &self,
        arguments: &RunArguments,
        protocol: &Protocol,
        order: &ClassOrder,
    ) -> Result<Option<TuningSet>, Failure> {
        let base = base(self.classes().len(), protocol, order)?;
        let (path, name) = match (&arguments.tune_on, self) {
            (None, _) => return Ok(None),
            (Some(TuneOn::File(path)), _) => (path.clone(), path.display().to_string()),
            (Some(TuneOn::HeldOutClasses), Self::Images { dataset, .. }) => {
                let path = tuning_features(arguments, dataset, &base)?;
                (path, "a network trained on half of the base classes".to_owned())
            }
            (Some(TuneOn::HeldOutClasses), Self::Samples(_)) => {
                let text = "--tune-on trains a network and needs a data set of images; features of \
                            such a network can be named: --tune-on=FILE";
                return Err(Failure::Usage(text.to_owned()));
            }
        };
        let split = read(arguments, &path)?.split;
        let known =
            |name: &String| base.iter().any(|&class| self.classes()[class as usize] == *name);
        if let Some(later) = split.train.classes().iter().find(|name| !known(name)) {
            let text = format!(
                "{}: class {later:?} is no base class: settings are chosen on those alone",
                path.display()
            );
            return Err(Failure::Usage(text));
        }
        let protocol = Protocol::default_for(split.train.classes().len())?;
        let stream = Stream::new(&split, protocol, &ClassOrder::Identity)?;
        let identity = &fingerprint(&fs_err::read(&path)?)[..16];
        Ok(Some(TuningSet { name: format!("{name} ({identity})"), stream, split }))
    }

    /// The images, with a network trained on the base classes.
    pub(super) fn network(
        &self,
        arguments: &RunArguments,
        protocol: &Protocol,
        order: &ClassOrder,
    ) -> Result<Trained<'_>, Failure> {
        let Self::Images { dataset, identity } = self else {
            let text =
                "baselines train the network on: they need a data set of images, not features";
            return Err(Failure::Usage(text.to_owned()));
        };
        let pipeline = Pipeline::new(&arguments.pipeline, dataset, identity)?;
        let path = pipeline.network(base(dataset.classes.len(), protocol, order)?)?;
        let weights = Weights::read(&path)?;
        let fit = arguments.pipeline.images.fit(&dataset.train, Some(weights.fit()))?;
        let fingerprint = fingerprint(&fs_err::read(&path)?);
        Ok(Trained { dataset, identity, weights, fingerprint, fit })
    }
}

/// Refuses flags for images where features are given: nothing would come of them.
fn of_no_use(arguments: &RunArguments, name: &str) -> Result<(), Failure> {
    match &arguments.for_images[..] {
        [] => Ok(()),
        flags => Err(Failure::Usage(format!(
            "{name} holds features; only for a data set of images: {}",
            flags.join(", ")
        ))),
    }
}

/// What settings are chosen on in place of the base phase.
pub(super) struct TuningSet {
    /// What it is, with a hash of its features.
    pub(super) name: String,
    pub(super) stream: Stream,
    pub(super) split: Split,
}

/// The features of the base classes' training images under a network trained on half of them.
fn tuning_features(
    arguments: &RunArguments,
    dataset: &Dataset,
    base: &[u32],
) -> Result<PathBuf, Failure> {
    let images =
        |class: &u32| dataset.train.labels().iter().filter(|label| *label == class).count();
    if base.len() < 2 || base.iter().any(|class| images(class) < FEWEST) {
        let text = format!(
            "--tune-on needs two base classes or more, each with {FEWEST} training images or more"
        );
        return Err(Failure::Usage(text));
    }
    let taught = Protocol::default_for(base.len())?.sizes()[0];
    eprintln!("choosing settings with a network of {taught} of {} base classes", base.len());
    let images = dataset.rehearsal(base, HELD_OUT, arguments.split.settings.seed);
    let identity = images.identity()?;
    let pipeline = Pipeline::new(&arguments.pipeline, &images, &identity)?;
    let weights = pipeline.weights((0..taught as u32).collect())?;
    pipeline.read_features(weights, |path| read(arguments, path).map(|_| path.to_owned()))
}

/// How a network of ours was trained, whatever its seed.
pub(super) fn training_of(weights: &Weights) -> Option<NamedValues> {
    let mut recipe: Value = serde_json::from_str(weights.metadata.get("recipe")?).ok()?;
    recipe.as_object_mut()?.remove("seed");
    let architecture = &weights.architecture;
    let training = json!({
        "recipe": recipe,
        "dimensions": architecture.dimensions(),
        "widths": architecture.widths,
        "depth": architecture.depth,
        "fit": weights.metadata.get("fit"),
    });
    named_values(&training).ok()
}

/// Images and a network that knows the base classes.
pub(super) struct Trained<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) identity: &'a str,
    pub(super) weights: Weights,
    /// Hash of the weights file.
    pub(super) fingerprint: String,
    pub(super) fit: Fit,
}

/// The data set's labels of the base classes.
fn base(classes: usize, protocol: &Protocol, order: &ClassOrder) -> Result<Vec<u32>, Failure> {
    let permutation = order.permutation(classes)?;
    Ok(permutation[..protocol.sizes()[0]].iter().map(|&class| class as u32).collect())
}

/// The data set of images at a path, unless a features file is there.
fn images(arguments: &RunArguments, path: &Path) -> Result<Option<Dataset>, Failure> {
    if is_features_file(path) {
        return Ok(None);
    }
    arguments.pipeline.images.open(path).map(Some)
}

fn read(arguments: &RunArguments, path: &Path) -> Result<Found, Failure> {
    let spinner = progress::spinner(&format!("reading {}", path.display()));
    let file = features::read(path, &arguments.split.options())?;
    spinner.finish_and_clear();
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    found(arguments, file, name)
}

fn found(
    arguments: &RunArguments,
    file: features::FeatureFile,
    name: String,
) -> Result<Found, Failure> {
    let (split, how) = arguments.split.divide(file)?;
    let origin = how.to_string();
    if matches!(how, SplitOrigin::HeldOut { .. }) {
        eprintln!("note: the file has no test part: {origin}");
    }
    Ok(Found { split, origin, name, training: None })
}

/// From images to features, each step kept under a name made of all that went into it.
struct Pipeline<'a> {
    arguments: &'a PipelineArguments,
    dataset: &'a Dataset,
    identity: &'a str,
    cache: PathBuf,
}

impl<'a> Pipeline<'a> {
    fn new(
        arguments: &'a PipelineArguments,
        dataset: &'a Dataset,
        identity: &'a str,
    ) -> Result<Self, Failure> {
        let elsewhere = |failure: Failure| {
            let text =
                "; trained networks and features are kept there, --cache DIR names another folder";
            Failure::Usage(failure.sentence() + text)
        };
        let cache = arguments.cache.clone().unwrap_or_else(cache::folder);
        output::make_folder(&cache).map_err(elsewhere)?;
        Ok(Self { arguments, dataset, identity, cache })
    }

    /// The network that was named, or one trained on the base classes.
    fn network(&self, base: Vec<u32>) -> Result<PathBuf, Failure> {
        match &self.arguments.backbone {
            Some(path) => Ok(path.clone()),
            None => self.weights(base),
        }
    }

    /// What a reader makes of the features of a network; a file of ours that is damaged is made again.
    fn read_features<T>(
        &self,
        weights: PathBuf,
        reader: impl Fn(&Path) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = self.features(weights.clone())?;
        let failure = match reader(&path) {
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        if features::read(&path, &ReadOptions::default()).is_ok() {
            // it is what is asked of it that is wrong
            return Err(failure);
        }
        made_again(&path, failure)?;
        reader(&self.features(weights)?)
    }

    /// The features file of a network, computed unless it is there.
    fn features(&self, weights: PathBuf) -> Result<PathBuf, Failure> {
        let backbone = BackboneArguments {
            backbone: Some(weights),
            device: self.arguments.device.clone(),
            batch: self.arguments.extraction_batch,
            onnx: self.arguments.onnx.clone(),
        };
        let network = backbone.open(&self.arguments.images.fitting)?;
        let fit = self.arguments.images.fit(&self.dataset.train, Some(network.trained_fit()))?;
        // The last layer and the block before it, as far as the network has them.
        let layers: Vec<String> =
            network.backbone().layers().iter().take(2).map(|(name, _)| name.clone()).collect();
        let mut settings = self.extraction(network.fingerprint(), fit, &layers, backbone.batch());
        if let Some(normalisation) = self.arguments.onnx.normalisation() {
            // what is given belongs to the name of what is kept
            let text = normalisation.to_string();
            settings.metadata.insert("normalisation".to_owned(), text);
        }
        let path = cache::features_path(&self.cache, &settings);
        if path.exists() {
            eprintln!("features from {}", path.display());
            return Ok(path);
        }
        let done = extract::extract_to(self.dataset, network.backbone(), &settings, &path)?;
        done.broken.iter().for_each(|sentence| eprintln!("left out: {sentence}"));
        Ok(path)
    }

    fn extraction(&self, weights: &str, fit: Fit, layers: &[String], batch: usize) -> Extraction {
        let note = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        Extraction {
            views: views(&self.arguments.views),
            layers: layers.to_vec(),
            half_precision: true,
            batch,
            fit,
            broken: self.arguments.images.broken(),
            metadata: BTreeMap::from([
                note("weights", weights),
                note("data_set", &self.dataset.name),
                note("data_set_identity", self.identity),
                note("device", &self.arguments.device.to_string()),
            ]),
        }
    }

    /// The weights file, trained unless it is there.
    fn weights(&self, base: Vec<u32>) -> Result<PathBuf, Failure> {
        let training = &self.arguments.training;
        let plan = Plan {
            architecture: training.network.architecture(training.embedding),
            recipe: training.recipe()?,
            base,
            fit: self.arguments.images.fit(&self.dataset.train, None)?,
            broken: self.arguments.images.broken(),
            device: self.arguments.device.clone(),
            identity: self.identity.to_owned(),
        };
        let path = cache::weights_path(&self.cache, &plan);
        if path.exists() {
            match Weights::read(&path) {
                Ok(_) => {
                    eprintln!("weights from {}", path.display());
                    return Ok(path);
                }
                Err(error) => made_again(&path, error.into())?,
            }
        }
        // an image that can't be read is found now, not after hours of training
        let spinner = progress::spinner("looking at all images");
        for split in [&self.dataset.train, &self.dataset.test] {
            split.check_all(plan.fit, plan.broken)?;
        }
        spinner.finish_and_clear();
        train::train_to(self.dataset, plan, &path, Precision::Half)?;
        Ok(path)
    }
}

/// Puts a damaged file of the cache aside; one that could not even be read may be whole.
fn made_again(path: &Path, failure: Failure) -> Result<(), Failure> {
    if matches!(failure, Failure::Io(_) | Failure::Library(ivoro::Error::Io(_))) {
        return Err(failure);
    }
    eprintln!("note: {}; it is made again", failure.sentence());
    let aside = path.with_extension("damaged");
    Ok(fs_err::rename(path, aside)?)
}
