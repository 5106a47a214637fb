//! A model and the network that looks at photos for it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ivoro::model::BurstRule;
use ivoro::{AskOptions, NetworkDescription, Retraction, Samples};
use ivoro_vision::dataset::{Broken, Decoding, Photo, Photos, Truncated};
use ivoro_vision::networks::{Asked, Networks};
use ivoro_vision::photos::{Looking, PhotoReport};
use ivoro_vision::recogniser::Classifier as _;
use pyo3::prelude::*;
use rayon::ThreadPool;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::model::{Model, check_place, retraction, teach};
use crate::network::Network;
use crate::photos::{Classes, Given, Held, hold};
use crate::threads::beside;

/// A model that is asked and taught with photos.
#[pyclass(frozen, module = "ivoro._ivoro")]
pub(crate) struct Recogniser {
    model: Py<Model>,
    network: Py<Network>,
    /// Held by who changes the model, while the network looks: what it sees depends on the model's variant.
    changing: Mutex<()>,
}

/// How photos that are taught are read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Reading {
    strict: bool,
    take_truncated: bool,
    keep_duplicates: bool,
    class_from: Option<String>,
}

impl Reading {
    fn decoding(&self) -> Decoding {
        decoding(self.strict, self.take_truncated)
    }
}

/// What is asked of photos.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Question {
    top: usize,
    reject: Option<f64>,
    burst: Option<usize>,
    vote: bool,
    strict: bool,
    take_truncated: bool,
}

impl Question {
    fn decoding(&self) -> Decoding {
        decoding(self.strict, self.take_truncated)
    }

    fn options(&self, model: &ivoro::Model) -> AskOptions {
        let rule = if self.vote { BurstRule::Vote } else { BurstRule::Sum };
        AskOptions {
            top: self.top,
            false_rejection: self.reject.filter(|_| model.can_reject()),
            burst: self.burst.map(|size| (size, rule)),
            ..AskOptions::default()
        }
    }
}

fn decoding(strict: bool, take_truncated: bool) -> Decoding {
    let truncated = if take_truncated { Truncated::Take } else { Truncated::Refuse };
    Decoding { broken: broken(strict), truncated }
}

fn broken(strict: bool) -> Broken {
    if strict { Broken::Fail } else { Broken::Skip }
}

/// What a network saw in photos of known classes.
struct Lesson {
    samples: Samples,
    network: NetworkDescription,
    report: PhotoReport,
}

impl Lesson {
    /// What became of the photos, as JSON.
    fn told(&self) -> String {
        let mut told = self.report.to_json("photos");
        let count = |class: usize| {
            self.samples.labels().iter().filter(|&&label| label as usize == class).count()
        };
        let names = self.samples.classes().iter().enumerate();
        told["classes"] = names.map(|(class, name)| (name.clone(), json!(count(class)))).collect();
        told.to_string()
    }
}

/// What is done with photos of known classes.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Change {
    verb: String,
    receipt: Option<PathBuf>,
    drop_probes: bool,
    inexact: bool,
}

impl Change {
    fn make(&self, model: &mut ivoro::Model, samples: &Samples) -> Outcome<()> {
        match self.verb.as_str() {
            "teach" => teach(model, samples, self.receipt.as_deref()),
            "update" => Ok(model.update(samples).map(|_| ())?),
            "calibrate" => Ok(model.calibrate(samples)?),
            "retract" => {
                let how = retraction(self.drop_probes, self.inexact);
                let how = Retraction { recomputed: true, ..how };
                Ok(model.retract(samples, how).map(|_| ())?)
            }
            other => Err(Failure::value(format!("{other}: no verb for photos"))),
        }
    }
}

/// What the network sees in photos of which every one has a class.
fn look(
    pool: &ThreadPool,
    model: &Model,
    network: &Network,
    mut found: Photos,
    reading: &Reading,
) -> Outcome<Lesson> {
    let mut report = PhotoReport::of(&mut found);
    let photos = found.photos;
    if photos.is_empty() {
        return Err(nothing(&report));
    }
    let network = network.frozen();
    let description = network.describe(network.photo_fit(&photos)?);
    // the lock is given back before the pool is gone to
    let variant = {
        let model = model.read();
        model.check_described_network(&description)?;
        model.head().variant()
    };
    let looking = Looking {
        decoding: reading.decoding(),
        keep_duplicates: reading.keep_duplicates,
        remembered: None,
    };
    let seen = pool.install(|| network.photo_samples(variant, &photos, looking, &mut |_| ()))?;
    let (samples, _) = report.add_seen(&photos, seen);
    let samples = samples.ok_or_else(|| nothing(&report))?;
    Ok(Lesson { samples, network: description, report })
}

/// The error where there is nothing to look at.
fn nothing(report: &PhotoReport) -> Failure {
    let all = report.unread.len() + report.others.len();
    let kinds = report.kinds();
    let kinds = if kinds.is_empty() { kinds } else { format!(": {kinds}") };
    Failure::value(format!("no photo to take among {all} files{kinds}"))
}

#[pymethods]
impl Recogniser {
    /// A model with the network that it was taught with, or for a new one with the network that is named.
    #[new]
    fn new(
        py: Python<'_>,
        model: Py<Model>,
        network: Option<PathBuf>,
        near: Option<PathBuf>,
    ) -> Outcome<Self> {
        let opened = py.detach(|| {
            let near = near.as_deref().and_then(Path::parent);
            let asked = Asked { network: network.as_deref(), near, ..Asked::default() };
            let model = model.get().read();
            let network = Networks::of_user().open(&asked, model.taught())?;
            match network.describe_queries() {
                Ok(description) => model.check_described_network(&description)?,
                Err(_) => model.check_network(network.fingerprint())?,
            }
            Ok::<_, Failure>(network)
        })?;
        let network = Py::new(py, Network::of(opened))?;
        Ok(Self { model, network, changing: Mutex::new(()) })
    }

    #[getter]
    fn model(&self, py: Python<'_>) -> Py<Model> {
        self.model.clone_ref(py)
    }

    #[getter]
    fn network(&self, py: Python<'_>) -> Py<Network> {
        self.network.clone_ref(py)
    }

    /// Changes the model by what the network sees in photos; says what became of them, as JSON.
    fn lesson(
        &self,
        py: Python<'_>,
        change: Change,
        photos: Vec<Given<'_>>,
        classes: Option<Vec<String>>,
        reading: Reading,
        threads: Option<i64>,
    ) -> Outcome<String> {
        check_place(change.receipt.as_deref())?;
        let held = hold(photos)?;
        let classes = Classes::new(classes, reading.class_from.as_deref())?;
        let (model, network) = (self.model.get(), self.network.get());
        beside(py, threads, |pool| {
            let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let found = classes.of(held, broken(reading.strict))?;
            let lesson = look(pool, model, network, found, &reading)?;
            let samples = &lesson.samples;
            model.change_in(pool, |model| {
                if model.network_description().is_some() {
                    return change.make(model, samples);
                }
                // in a copy: after an error nothing is noted
                let mut changed = model.clone();
                changed.use_described_network(&lesson.network)?;
                change.make(&mut changed, samples)?;
                *model = changed;
                Ok(())
            })?;
            Ok(lesson.told())
        })
    }

    /// Answers of photos, and what became of them, as JSON. Each answer has the name of its photo and its place
    /// among what was given.
    fn ask(
        &self,
        py: Python<'_>,
        photos: Vec<Given<'_>>,
        question: Question,
        threads: Option<i64>,
    ) -> Outcome<String> {
        let held = hold(photos)?;
        let (model, network) = (self.model.get(), self.network.get());
        beside(py, threads, |pool| {
            let (mut found, places) = numbered(held, broken(question.strict))?;
            let mut report = PhotoReport::of(&mut found);
            let (variant, options) = {
                let model = model.read();
                (model.head().variant(), question.options(&model))
            };
            let network = network.frozen();
            let size = question.burst.unwrap_or(1).max(1);
            let at_once = network.batch().next_multiple_of(size);
            let mut answers = Vec::new();
            let parts = found.photos.chunks(at_once).zip(places.chunks(at_once));
            for (photos, places) in parts {
                let inputs: Vec<_> = photos.iter().map(Photo::input).collect();
                let decoding = question.decoding();
                let seen = pool.install(|| network.points(variant, &inputs, decoding))?;
                report.done += seen.rows.len();
                report.add_unread(photos, seen.broken);
                report.add_truncated(photos, &seen.truncated);
                let Some(points) = seen.of else { continue };
                let model = model.read();
                let model = &*model;
                let predictions = pool.install(|| model.ask(&points, options))?;
                for (prediction, &row) in predictions.iter().zip(seen.rows.iter().step_by(size)) {
                    let mut told = json!(prediction);
                    told["photo"] = json!(photos[row].name().display().to_string());
                    told["place"] = json!(places[row]);
                    answers.push(told);
                }
            }
            let mut told = report.to_json("photos");
            told["answers"] = answers.into();
            Ok(told.to_string())
        })
    }
}

/// Photos with the place of each among what was given.
fn numbered(held: Vec<Held>, broken: Broken) -> Outcome<(Photos, Vec<usize>)> {
    let (mut all, mut places) = (Photos::default(), Vec::new());
    for (place, one) in held.into_iter().enumerate() {
        let found = one.all(broken)?;
        places.extend(std::iter::repeat_n(place, found.photos.len()));
        all.append(found);
    }
    Ok((all, places))
}
