//! A model that Python can hold.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use ivoro::calibration::softmin;
use ivoro::codec::{decode, encode};
use ivoro::head::Retracted;
use ivoro::head::{Answers, Forgetting};
use ivoro::model::BurstRule;
use ivoro::{Budget, Retraction, Samples};
use ivoro_io::{FileLock, load, load_receipt, save, save_receipt};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::arrays::{Labels, Layer, Names, array, points, samples, wide};
use crate::failure::{Failure, Outcome};
use crate::settings::options;
use crate::threads::{beside, interruptible};

/// A classifier: what `IVoroClassifier` is made of. Classes are in order of arrival here.
#[pyclass(frozen, module = "ivoro._ivoro")]
pub(crate) struct Model {
    inner: RwLock<ivoro::Model>,
    /// Counts the changes of which classes are known and in which order.
    version: AtomicU64,
}

/// How many samples of each class.
type Counts = Vec<(String, u64)>;

/// Seconds since 1970 began, for the journal: those of the clock, or those that `SOURCE_DATE_EPOCH`
/// names.
fn now() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    given.unwrap_or_else(clock)
}

pub(crate) fn retraction(drop_probes: bool, inexact: bool) -> Retraction {
    let probes = if drop_probes { Forgetting::DropProbes } else { Forgetting::Exact };
    Retraction { probes, inexact, ..Retraction::default() }
}

/// A receipt that is there already may be the only one of another lesson.
pub(crate) fn check_place(receipt: Option<&Path>) -> Outcome<()> {
    let Some(path) = receipt.filter(|path| path.exists()) else { return Ok(()) };
    let what = "is there already; a receipt is not overwritten, name another file";
    Err(Failure::value(format!("{}: {what}", path.display())))
}

/// Teaches samples; the receipt is written before anything is learned.
pub(crate) fn teach(
    model: &mut ivoro::Model,
    samples: &Samples,
    receipt: Option<&Path>,
) -> Outcome<()> {
    let Some(path) = receipt else { return Ok(model.teach(samples)?) };
    let mut changed = model.clone();
    save_receipt(&changed.teach_with_receipt(samples)?, path)?;
    *model = changed;
    Ok(())
}

/// Distances, strangeness and uncertainty of queries.
type Answered<'py> =
    (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Rows that are one query, and how they are joined.
struct Grouping {
    groups: Vec<Vec<usize>>,
    rule: BurstRule,
}

impl Grouping {
    /// From the number of each row's group.
    fn new(codes: Option<PyReadonlyArray1<'_, u32>>, rule: &str) -> Outcome<Option<Self>> {
        let rule = match rule {
            "sum" => BurstRule::Sum,
            "vote" => BurstRule::Vote,
            _ => return Err(Failure::value(format!("rule = {rule}: write sum or vote"))),
        };
        let Some(codes) = codes else { return Ok(None) };
        let codes = codes.as_array();
        let count = codes.iter().max().map_or(0, |&code| code as usize + 1);
        if count > codes.len() {
            return Err(Failure::value("groups: numbers that leave gaps"));
        }
        let mut groups = vec![Vec::new(); count];
        codes.iter().enumerate().for_each(|(row, &code)| groups[code as usize].push(row));
        if groups.iter().any(Vec::is_empty) {
            return Err(Failure::value("groups: numbers that leave gaps"));
        }
        Ok(Some(Self { groups, rule }))
    }

    fn join(&self, answers: Answers) -> Outcome<Answers> {
        let rows = answers.distances.rows();
        let found: usize = self.groups.iter().map(Vec::len).sum();
        if rows != found {
            return Err(Failure::value(format!("groups: expected {rows} entries, found {found}")));
        }
        let groups: Vec<&[usize]> = self.groups.iter().map(Vec::as_slice).collect();
        Ok(answers.in_groups(&groups, self.rule)?)
    }
}

impl Model {
    fn of(inner: ivoro::Model, version: u64) -> Self {
        Self { inner: RwLock::new(inner), version: AtomicU64::new(version) }
    }

    // a panic leaves the model as it was: changes are made to a copy, or at the end
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, ivoro::Model> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ivoro::Model> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the model. Who has to wait until it is taught lets other threads of Python go on.
    fn looked<T: Send>(&self, py: Python<'_>, look: impl FnOnce(&ivoro::Model) -> T + Send) -> T {
        py.detach(|| look(&self.read()))
    }

    /// Changes which classes are known.
    fn changed<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut ivoro::Model) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        interruptible(py, || {
            let mut model = self.write();
            model.set_time(now());
            let outcome = change(&mut model)?;
            self.version.fetch_add(1, Ordering::SeqCst);
            Ok(outcome)
        })
    }

    /// Changes the model in a pool, whose threads must not wait for its lock.
    pub(crate) fn change_in<T: Send>(
        &self,
        pool: &ThreadPool,
        change: impl FnOnce(&mut ivoro::Model) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        let mut model = self.write();
        let model = &mut *model;
        let before = model.head().classes().len();
        model.set_time(now());
        let outcome = pool.install(|| change(model))?;
        if model.head().classes().len() != before {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        Ok(outcome)
    }

    /// Asks on so many threads, without the interpreter's lock.
    fn asked<T: Send>(
        &self,
        py: Python<'_>,
        threads: Option<i64>,
        work: impl FnOnce(&ivoro::Model) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        beside(py, threads, |pool| {
            let model = self.read();
            let model = &*model;
            pool.install(|| work(model))
        })
    }
}

fn answers(
    model: &ivoro::Model,
    layers: &[Layer],
    grouping: Option<&Grouping>,
    absolute: bool,
) -> Outcome<Answers> {
    let answers = model.answers(&points(layers, false)?, absolute)?;
    match grouping {
        Some(grouping) => grouping.join(answers),
        None => Ok(answers),
    }
}

#[pymethods]
impl Model {
    /// A model that knows no class. Without arguments it is one that a state is put into.
    #[new]
    #[pyo3(signature = (variant=None, settings=None, budget=200.0))]
    fn new(
        variant: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
        budget: f64,
    ) -> Outcome<Self> {
        let options = settings.map(options).transpose()?.unwrap_or_default();
        options.settings.check()?;
        let Some(variant) = variant else {
            if !(budget.is_finite() && budget >= 0.0) {
                return Err(Failure::value(format!(
                    "budget = {budget}: a number of KB, 0 or more"
                )));
            }
            let bytes_per_class = (budget * 1024.0) as usize;
            let budget = Budget { bytes_per_class, ..Budget::default() };
            return Ok(Self::of(ivoro::Model::choosing(options, budget), 0));
        };
        Ok(Self::of(ivoro::Model::new(variant.parse()?, options), 0))
    }

    /// Learns new classes as one phase and adds samples to known ones; writes a receipt if a file is
    /// named, before anything is learned.
    #[pyo3(signature = (layers, codes, names, threads, receipt=None))]
    fn teach(
        &self,
        py: Python<'_>,
        layers: Vec<Layer>,
        codes: PyReadonlyArray1<'_, u32>,
        names: Names<'_>,
        threads: Option<i64>,
        receipt: Option<PathBuf>,
    ) -> Outcome<()> {
        check_place(receipt.as_deref())?;
        let labels = Labels::new(&codes, names);
        beside(py, threads, |pool| {
            let features = pool.install(|| samples(&layers, labels, false))?;
            self.change_in(pool, |model| teach(model, &features, receipt.as_deref()))
        })
    }

    /// The position of the nearest class of every query.
    #[pyo3(signature = (layers, threads, groups=None, rule="sum"))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        layers: Vec<Layer>,
        threads: Option<i64>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
        rule: &str,
    ) -> Outcome<Bound<'py, PyArray1<u32>>> {
        let grouping = Grouping::new(groups, rule)?;
        let nearest = self.asked(py, threads, |model| {
            if grouping.is_none() {
                return Ok(model.head().predict(&points(&layers, false)?)?);
            }
            let distances = answers(model, &layers, grouping.as_ref(), false)?.distances;
            Ok(distances.iter_rows().map(first_least).collect())
        })?;
        Ok(nearest.into_pyarray(py))
    }

    /// Distances of every query to every class.
    #[pyo3(signature = (layers, threads, groups=None, rule="sum"))]
    fn distances<'py>(
        &self,
        py: Python<'py>,
        layers: Vec<Layer>,
        threads: Option<i64>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
        rule: &str,
    ) -> Outcome<Bound<'py, PyArray2<f32>>> {
        let grouping = Grouping::new(groups, rule)?;
        let distances = self.asked(py, threads, |model| {
            if grouping.is_some() {
                return Ok(answers(model, &layers, grouping.as_ref(), false)?.distances);
            }
            Ok(model.head().distances(&points(&layers, false)?)?)
        })?;
        array(py, distances)
    }

    /// Probabilities of every class for every query.
    #[pyo3(signature = (layers, threads, groups=None))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        layers: Vec<Layer>,
        threads: Option<i64>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
    ) -> Outcome<Bound<'py, PyArray2<f64>>> {
        let grouping = Grouping::new(groups, "sum")?;
        let (sizes, numbers) = self.asked(py, threads, |model| {
            let temperature = model.temperature()?;
            let answers = answers(model, &layers, grouping.as_ref(), false)?;
            let distances = &answers.distances;
            let row = |(row, &size): (usize, &usize)| {
                softmin(distances.row(row), temperature * size as f64)
            };
            let rows: Vec<Vec<f64>> = answers.burst.par_iter().enumerate().map(row).collect();
            Ok(((distances.rows(), distances.cols()), rows.concat()))
        })?;
        wide(py, sizes, numbers)
    }

    /// Distances, strangeness and uncertainty of every query.
    #[pyo3(signature = (layers, threads, groups=None, rule="sum"))]
    fn answers<'py>(
        &self,
        py: Python<'py>,
        layers: Vec<Layer>,
        threads: Option<i64>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
        rule: &str,
    ) -> Outcome<Answered<'py>> {
        let grouping = Grouping::new(groups, rule)?;
        let asked = |model: &ivoro::Model| answers(model, &layers, grouping.as_ref(), true);
        let answers = self.asked(py, threads, asked)?;
        let distances = array(py, answers.distances)?;
        let (strangeness, uncertainty) = (answers.strangeness, answers.uncertainty);
        Ok((distances, strangeness.into_pyarray(py), uncertainty.into_pyarray(py)))
    }

    /// Strangeness above which a query is rejected.
    fn threshold(&self, py: Python<'_>, share: f64) -> Outcome<f64> {
        Ok(self.looked(py, |model| model.threshold(share))?)
    }

    /// Calibrates on samples that were not learned.
    fn calibrate(
        &self,
        py: Python<'_>,
        layers: Vec<Layer>,
        codes: PyReadonlyArray1<'_, u32>,
        names: Names<'_>,
        threads: Option<i64>,
    ) -> Outcome<()> {
        let labels = Labels::new(&codes, names);
        beside(py, threads, |pool| {
            let features = pool.install(|| samples(&layers, labels, false))?;
            self.change_in(pool, |model| Ok(model.calibrate(&features)?))
        })
    }

    /// Forgets a class, with the receipts of all its samples if there are any.
    #[pyo3(signature = (name, drop_probes, receipts=Vec::new()))]
    fn forget(
        &self,
        py: Python<'_>,
        name: &str,
        drop_probes: bool,
        receipts: Vec<PathBuf>,
    ) -> Outcome<()> {
        let how = retraction(drop_probes, false);
        self.changed(py, |model| {
            if receipts.is_empty() {
                return Ok(model.forget(name, how.probes)?);
            }
            let receipts = receipts.iter().map(|path| load_receipt(path));
            let receipts = receipts.collect::<Result<Vec<_>, _>>()?;
            Ok(model.forget_with_receipts(name, &receipts, how)?)
        })
    }

    /// Takes samples back; returns how many of each class.
    #[allow(clippy::too_many_arguments, reason = "called from one place, by name")]
    fn retract(
        &self,
        py: Python<'_>,
        layers: Vec<Layer>,
        codes: PyReadonlyArray1<'_, u32>,
        names: Names<'_>,
        drop_probes: bool,
        inexact: bool,
        threads: Option<i64>,
    ) -> Outcome<Counts> {
        let (labels, how) = (Labels::new(&codes, names), retraction(drop_probes, inexact));
        beside(py, threads, |pool| {
            let features = pool.install(|| samples(&layers, labels, false))?;
            self.change_in(pool, |model| Ok(model.retract(&features, how)?.samples))
        })
    }

    /// Takes back what a receipt says was given.
    fn retract_receipt(
        &self,
        py: Python<'_>,
        receipt: PathBuf,
        drop_probes: bool,
    ) -> Outcome<Counts> {
        self.changed(py, |model| {
            let receipt = load_receipt(&receipt)?;
            let Retracted { samples, .. } =
                model.retract_receipt(&receipt, retraction(drop_probes, false))?;
            Ok(samples)
        })
    }

    /// Gives a class another name.
    fn rename(&self, py: Python<'_>, name: &str, new: &str) -> Outcome<()> {
        self.changed(py, |model| Ok(model.rename(name, new)?))
    }

    /// When what was done to the model, as JSON.
    fn journal(&self, py: Python<'_>) -> Outcome<String> {
        Ok(self.looked(py, |model| serde_json::to_string(model.journal()))?)
    }

    /// Seals classes, those named or all; returns their names.
    #[pyo3(signature = (names=None, rank=None, bits=None))]
    fn seal(
        &self,
        py: Python<'_>,
        names: Option<Vec<String>>,
        rank: Option<usize>,
        bits: Option<u8>,
    ) -> Outcome<Vec<String>> {
        let options = ivoro::SealOptions { rank, bits };
        self.changed(py, |model| Ok(model.seal(names.as_deref(), options)?.classes))
    }

    /// Merges another model; returns the names of the classes added and combined.
    #[pyo3(signature = (other, ancestor=None))]
    fn merge(
        &self,
        py: Python<'_>,
        other: &Self,
        ancestor: Option<&Self>,
    ) -> Outcome<(Vec<String>, Vec<String>)> {
        // clones, so that no lock is held while another is waited for
        let other = other.looked(py, ivoro::Model::clone);
        let ancestor = ancestor.map(|ancestor| ancestor.looked(py, ivoro::Model::clone));
        self.changed(py, |model| {
            let report = model.merge(&other, ancestor.as_ref())?;
            Ok((report.added, report.combined))
        })
    }

    /// Makes one phase, in this order, of all classes that came after so many phases.
    fn gather_phase(
        &self,
        py: Python<'_>,
        after: usize,
        order: Vec<String>,
        begun: &Self,
    ) -> Outcome<()> {
        let begun = begun.looked(py, ivoro::Model::clone);
        self.changed(py, |model| Ok(model.gather_phase(after, &order, &begun)?))
    }

    /// A model of the same settings and value range that knows no class.
    fn emptied(&self, py: Python<'_>) -> Self {
        Self::of(self.looked(py, ivoro::Model::emptied), 0)
    }

    /// A model with the same contents.
    fn copy(&self, py: Python<'_>) -> Self {
        self.looked(py, |model| Self::of(model.clone(), self.version()))
    }

    /// Writes the model file; it appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Outcome<()> {
        py.detach(|| {
            let _lock = FileLock::acquire(&path)?;
            Ok(save(&self.read(), &path)?)
        })
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Outcome<Self> {
        py.detach(|| Ok(Self::of(load(&path)?, 0)))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        let bytes = self.looked(py, encode)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A model from the bytes of its file.
    #[staticmethod]
    #[pyo3(signature = (bytes, version=0))]
    fn from_bytes(py: Python<'_>, bytes: &[u8], version: u64) -> Outcome<Self> {
        py.detach(|| Ok(Self::of(decode(Path::new("model"), bytes)?, version)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Outcome<Reduced<'py>> {
        let py = slf.py();
        Ok((py.get_type::<Self>().getattr("from_bytes")?, slf.get().__getstate__(py)?))
    }

    /// The bytes of the model file and the version, for those who do not ask `__reduce__`.
    fn __getstate__<'py>(&self, py: Python<'py>) -> Outcome<(Bound<'py, PyBytes>, u64)> {
        // the version changes with the model, which nobody changes meanwhile
        let (bytes, version) = self.looked(py, |model| (encode(model), self.version()));
        Ok((PyBytes::new(py, &bytes?), version))
    }

    fn __setstate__(&self, py: Python<'_>, state: (Vec<u8>, u64)) -> Outcome<()> {
        let (bytes, version) = state;
        py.detach(|| {
            *self.write() = decode(Path::new("model"), &bytes)?;
            self.version.store(version, Ordering::SeqCst);
            Ok(())
        })
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let other = other.looked(py, ivoro::Model::clone);
        self.looked(py, |model| model.head() == other.head())
    }

    /// Counts the changes of which classes are known and in which order.
    #[getter]
    fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Class names in order of arrival.
    #[getter]
    fn classes(&self, py: Python<'_>) -> Vec<String> {
        self.looked(py, |model| {
            model.head().classes().iter().map(|class| class.name.clone()).collect()
        })
    }

    /// Samples learned of each class.
    #[getter]
    fn counts(&self, py: Python<'_>) -> Vec<u64> {
        self.looked(py, |model| {
            model.head().classes().iter().map(|class| class.statistics.count).collect()
        })
    }

    /// Classes of each phase.
    #[getter]
    fn phases(&self, py: Python<'_>) -> Vec<usize> {
        self.looked(py, |model| model.head().phases())
    }

    /// Names and dimensions of the layers in use.
    #[getter]
    fn layers(&self, py: Python<'_>) -> Vec<(String, usize)> {
        self.looked(py, |model| model.head().layers().to_vec())
    }

    /// The variant's name.
    #[getter]
    fn variant(&self, py: Python<'_>) -> String {
        self.looked(py, |model| model.head().variant().to_string())
    }

    /// Whether temperature and thresholds were fitted.
    #[getter]
    fn calibrated(&self, py: Python<'_>) -> bool {
        self.looked(py, |model| model.calibration().is_some_and(|it| it.samples() > 0))
    }

    /// Bytes of all numbers kept.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> usize {
        self.looked(py, |model| model.head().bytes())
    }

    /// Settings in use, as JSON.
    fn settings(&self, py: Python<'_>) -> Outcome<String> {
        Ok(self.looked(py, |model| serde_json::to_string(model.head().settings()))?)
    }

    /// How settings were chosen, as JSON.
    fn choices(&self, py: Python<'_>) -> Outcome<String> {
        Ok(self.looked(py, |model| serde_json::to_string(model.choices()))?)
    }

    /// Every number kept, as JSON.
    fn audit(&self, py: Python<'_>) -> Outcome<String> {
        Ok(self
            .looked(py, |model| serde_json::to_string(&ivoro::head::audit::audit(model.head())))?)
    }

    /// Centres between phases, one array a block.
    fn centroids<'py>(&self, py: Python<'py>) -> Outcome<Vec<Bound<'py, PyArray2<f32>>>> {
        let centroids = self.looked(py, |model| model.head().centroids())?;
        centroids.into_iter().map(|block| array(py, block)).collect()
    }

    /// Centres and weights of the power diagram of a single layer.
    fn diagram<'py>(&self, py: Python<'py>) -> Outcome<Diagram<'py>> {
        let diagram = self.looked(py, |model| model.head().diagram())?;
        let [layer] = diagram.layers() else {
            return Err(Failure::value("the cells of several layers are no power diagram"));
        };
        let weights = layer.weights().to_vec().into_pyarray(py);
        Ok((array(py, layer.centres().clone())?, weights))
    }
}

/// What makes a model again, and what it takes for that.
type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, u64));

/// Centres, one a row, and weights.
type Diagram<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f32>>);

/// Position of the least value, the first on a tie.
fn first_least(row: &[f32]) -> u32 {
    let least = row.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    least.map_or(0, |(at, _)| at as u32)
}
