//! Comparisons, one phase at a time, and the files they read.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ivoro::samples::Split;
use ivoro::{Matrix, ModelOptions, Points};
use ivoro_eval::comparison::{Method, Provenance, begin, suitable};
use ivoro_eval::peers::PeerSettings;
use ivoro_eval::record::{PhaseOutcome, RunRecord};
use ivoro_eval::run::go_through;
use ivoro_eval::{ClassOrder, Learner, Protocol, Stream};
use ivoro_io::features::{FeatureFile, ReadOptions, Set, read};
use numpy::{IntoPyArray, PyArray1, PyArray3, PyReadonlyArray1, ndarray};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::arrays::{Labels, Layer, samples};
use crate::failure::{Failure, Outcome};
use crate::settings::options;
use crate::threads::{beside, detached};

/// A comparison of methods that advances by one phase when asked to.
#[pyclass(frozen, module = "ivoro._ivoro")]
pub(crate) struct Comparison {
    state: Mutex<State>,
}

struct State {
    stream: Stream,
    options: ModelOptions,
    peers: PeerSettings,
    methods: Vec<Method>,
    phases: Vec<Range<usize>>,
    record: RunRecord,
    learner: Option<Box<dyn Learner>>,
    outcomes: Vec<PhaseOutcome>,
}

/// Which samples a comparison is about.
#[derive(FromPyObject)]
enum Data<'py> {
    File(PathBuf),
    Arrays(Part<'py>, Part<'py>, Vec<String>),
}

/// Layers and labels of samples.
type Part<'py> = (Vec<Layer>, PyReadonlyArray1<'py, u32>);

impl Data<'_> {
    /// The same, free of the interpreter.
    fn detach(self) -> Source {
        match self {
            Self::File(path) => Source::File(path),
            Self::Arrays(train, test, names) => {
                let part = |(layers, codes): Part<'_>| (layers, Labels::new(&codes, names.clone()));
                Source::Arrays(part(train), part(test))
            }
        }
    }
}

enum Source {
    File(PathBuf),
    Arrays((Vec<Layer>, Labels), (Vec<Layer>, Labels)),
}

impl Source {
    fn split(self, holdout: f64, seed: u64) -> Outcome<(Split, Provenance)> {
        match self {
            Self::File(path) => {
                let (split, origin) = read(&path, &reading(seed))?.into_split(holdout, seed)?;
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Ok((split, Provenance { features: name, split: origin.to_string() }))
            }
            Self::Arrays(train, test) => {
                let part = |(layers, labels): (Vec<Layer>, Labels)| samples(&layers, labels, true);
                let split = Split { train: part(train)?, test: part(test)? };
                let text = "training and test arrays".to_owned();
                Ok((split, Provenance { features: "arrays".to_owned(), split: text }))
            }
        }
    }
}

fn reading(seed: u64) -> ReadOptions {
    ReadOptions { seed, ..ReadOptions::default() }
}

impl State {
    /// Learns and tests the next phase; `None` where all is done.
    fn step(&mut self) -> Outcome<Option<String>> {
        let Some(method) = self.methods.get(self.record.methods.len()) else { return Ok(None) };
        let learner =
            self.learner.get_or_insert_with(|| method.learner(&self.options, &self.peers)).as_mut();
        let phases = &self.phases[..=self.outcomes.len()];
        let outcome = go_through(&self.stream, learner, phases)?;
        let mut text = json!(outcome);
        text["method"] = json!(method.name());
        self.outcomes.push(outcome);
        if self.outcomes.len() == self.phases.len() {
            let outcomes = std::mem::take(&mut self.outcomes);
            self.record.methods.push(method.record(learner, &self.peers, outcomes));
            self.learner = None;
        }
        Ok(Some(text.to_string()))
    }
}

#[pymethods]
impl Comparison {
    /// Arranges samples in phases. Nothing is learned yet.
    #[new]
    #[pyo3(signature = (data, protocol, order, variants, peers, settings, holdout, ranpac_dim))]
    #[allow(clippy::too_many_arguments, reason = "called from one place, by name")]
    fn new(
        py: Python<'_>,
        data: Data<'_>,
        protocol: Option<&str>,
        order: &str,
        variants: Vec<String>,
        peers: Vec<String>,
        settings: &Bound<'_, PyDict>,
        holdout: f64,
        ranpac_dim: Option<usize>,
    ) -> Outcome<Self> {
        let options = options(settings)?;
        let methods =
            Method::named(variants.iter().map(String::as_str), peers.iter().map(String::as_str))?;
        let (source, seed) = (data.detach(), options.settings.seed);
        let (split, provenance) = detached(py, None, || source.split(holdout, seed))?;
        let (methods, _) = suitable(methods, &split)?;
        if methods.is_empty() {
            return Err(Failure::value("no method to run: name variants or peers"));
        }
        let classes = split.train.classes().len();
        let protocol = match protocol {
            Some(text) => text.parse()?,
            None => Protocol::default_for(classes)?,
        };
        let order: ClassOrder = order.parse()?;
        let peers = PeerSettings { seed: options.settings.seed, ..PeerSettings::default() };
        let peers = ranpac_dim.map_or(peers, |dim| peers.with_lifts(dim));
        let stream = detached(py, None, || Ok(Stream::new(&split, protocol, &order)?))?;
        let state = State {
            phases: stream.protocol().phases().collect(),
            record: begin(&stream, &order, &provenance, &options, &peers),
            stream,
            options,
            peers,
            methods,
            learner: None,
            outcomes: Vec::new(),
        };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Learns and tests the next phase, as JSON; None where all is done.
    fn step(&self, py: Python<'_>, threads: Option<i64>) -> Outcome<Option<String>> {
        beside(py, threads, |pool| {
            let mut state = self.state();
            let state = &mut *state;
            pool.install(|| state.step())
        })
    }

    /// The record of the methods that are finished, as JSON.
    fn record(&self, py: Python<'_>) -> Outcome<String> {
        py.detach(|| Ok(serde_json::to_string(&self.state().record)?))
    }

    /// Names of the methods.
    #[getter]
    fn methods(&self, py: Python<'_>) -> Vec<String> {
        let names = || self.state().methods.iter().map(|method| method.name().to_owned()).collect();
        py.detach(names)
    }
}

impl Comparison {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Arrays of a set of samples: one a layer, and the labels if there are any.
type Arrays<'py> = (Vec<Bound<'py, PyArray3<f32>>>, Option<Bound<'py, PyArray1<u32>>>);

/// Reads a features file: sets by name (train, test or all), layers, views and class names.
#[pyfunction]
pub(crate) fn read_features(py: Python<'_>, path: PathBuf) -> Outcome<Bound<'_, PyDict>> {
    let found = detached(py, None, || Ok(read(&path, &reading(0))?))?;
    let FeatureFile { train, test, all, .. } = found;
    let sets = [("train", train), ("test", test), ("all", all)];
    let first = sets.iter().find_map(|(_, set)| set.as_ref()).ok_or_else(|| empty(&path))?;
    let out = PyDict::new(py);
    let views: Vec<String> = first.points().views().iter().map(ToString::to_string).collect();
    out.set_item("layers", first.points().layers())?;
    out.set_item("views", views)?;
    let classes = first.labelled().map_or_else(|| vec!["?".to_owned()], |it| it.classes().to_vec());
    out.set_item("classes", classes)?;
    for (name, set) in &sets {
        let arrays = set.as_ref().map(|set| arrays(py, set)).transpose()?;
        out.set_item(*name, arrays)?;
    }
    Ok(out)
}

fn empty(path: &Path) -> Failure {
    Failure::value(format!("{}: no samples", path.display()))
}

fn arrays<'py>(py: Python<'py>, set: &Set) -> Outcome<Arrays<'py>> {
    let samples = set.points();
    let layers = (0..samples.layers().len()).map(|layer| interleaved(py, samples, layer));
    let labels = set.labelled().map(|samples| samples.labels().to_vec().into_pyarray(py));
    Ok((layers.collect::<Outcome<_>>()?, labels))
}

/// One layer as [rows, views, dim].
fn interleaved<'py>(
    py: Python<'py>,
    samples: &Points,
    layer: usize,
) -> Outcome<Bound<'py, PyArray3<f32>>> {
    let blocks: Vec<&Matrix> =
        samples.views().iter().filter_map(|&view| samples.block(layer, view)).collect();
    let sizes = (samples.len(), blocks.len(), samples.dim(layer));
    let mut numbers = Vec::with_capacity(sizes.0 * sizes.1 * sizes.2);
    for row in 0..samples.len() {
        blocks.iter().for_each(|block| numbers.extend_from_slice(block.row(row)));
    }
    let shaped = ndarray::Array3::from_shape_vec(sizes, numbers);
    Ok(shaped.map_err(|error| Failure::value(error.to_string()))?.into_pyarray(py))
}
