//! A model that Python can hold.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ivoro::Variant;
use ivoro::calibration::softmin;
use ivoro::head::{Answers, Forgetting};
use ivoro::model::BurstRule;
use ivoro::store::{ModelLock, load, load_bytes, save, save_bytes};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rayon::prelude::*;

use crate::arrays::{Labels, Layer, Names, array, features, wide};
use crate::failure::{Failure, Outcome};
use crate::settings::options;
use crate::threads::beside;

/// A classifier: what `IVoroClassifier` is made of. Classes are in order of arrival here.
#[pyclass(frozen, module = "ivoro._ivoro")]
pub(crate) struct Model {
    inner: RwLock<ivoro::Model>,
}

/// Distances, strangeness and uncertainty of queries.
type Judged<'py> =
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
    fn of(inner: ivoro::Model) -> Self {
        Self { inner: RwLock::new(inner) }
    }

    // a panic leaves the model as it was: changes are made to a copy, or at the end
    fn read(&self) -> RwLockReadGuard<'_, ivoro::Model> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ivoro::Model> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
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
    let answers = model.head().ask(&features(layers, None, false)?, absolute)?;
    match grouping {
        Some(grouping) => grouping.join(answers),
        None => Ok(answers),
    }
}

#[pymethods]
impl Model {
    /// A model that knows no class.
    #[new]
    fn new(variant: &str, settings: &Bound<'_, PyDict>) -> Outcome<Self> {
        let variant: Variant = variant.parse()?;
        let options = options(settings)?;
        options.settings.check()?;
        Ok(Self::of(ivoro::Model::new(variant, options)))
    }

    /// Learns new classes as one phase and adds samples to known ones; returns how many are known.
    fn teach(
        &self,
        py: Python<'_>,
        layers: Vec<Layer>,
        codes: PyReadonlyArray1<'_, u32>,
        names: Names<'_>,
        threads: Option<i64>,
    ) -> Outcome<usize> {
        let labels = Labels::new(&codes, names);
        beside(py, threads, |pool| {
            let features = pool.install(|| features(&layers, Some(labels), false))?;
            let mut model = self.write();
            let model = &mut *model;
            pool.install(|| model.teach(&features))?;
            Ok(model.head().known().len())
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
                return Ok(model.head().predict(&features(&layers, None, false)?)?);
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
            Ok(ivoro::Learner::distances(model, &features(&layers, None, false)?)?)
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
    fn judge<'py>(
        &self,
        py: Python<'py>,
        layers: Vec<Layer>,
        threads: Option<i64>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
        rule: &str,
    ) -> Outcome<Judged<'py>> {
        let grouping = Grouping::new(groups, rule)?;
        let asked = |model: &ivoro::Model| answers(model, &layers, grouping.as_ref(), true);
        let answers = self.asked(py, threads, asked)?;
        let distances = array(py, answers.distances)?;
        let (strangeness, uncertainty) = (answers.strangeness, answers.uncertainty);
        Ok((distances, strangeness.into_pyarray(py), uncertainty.into_pyarray(py)))
    }

    /// Strangeness above which a query is rejected.
    fn threshold(&self, share: f64) -> Outcome<f64> {
        Ok(self.read().threshold(share)?)
    }

    /// Forgets a class.
    fn forget(&self, name: &str, drop_probes: bool) -> Outcome<()> {
        let how = if drop_probes { Forgetting::DropProbes } else { Forgetting::Exact };
        Ok(self.write().forget(name, how)?)
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
        py.detach(|| {
            let other = other.read().clone();
            let ancestor = ancestor.map(|ancestor| ancestor.read().clone());
            let report = self.write().merge(&other, ancestor.as_ref())?;
            Ok((report.added, report.combined))
        })
    }

    /// A model of the same settings and value range that knows no class.
    fn emptied(&self) -> Self {
        Self::of(self.read().emptied())
    }

    /// A model with the same contents.
    fn copy(&self) -> Self {
        Self::of(self.read().clone())
    }

    /// Writes the model file; it appears whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Outcome<()> {
        py.detach(|| {
            let _lock = ModelLock::acquire(&path)?;
            Ok(save(&self.read(), &path)?)
        })
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Outcome<Self> {
        py.detach(|| Ok(Self::of(load(&path)?)))
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| save_bytes(&self.read()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A model from the bytes of its file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Outcome<Self> {
        py.detach(|| Ok(Self::of(load_bytes(Path::new("model"), bytes)?)))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> Outcome<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let bytes = slf.get().to_bytes(py)?;
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (bytes,)))
    }

    fn __eq__(&self, other: &Self) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let other = other.read().clone();
        self.read().head() == other.head()
    }

    /// Class names in order of arrival.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.read().head().known().iter().map(|class| class.name.clone()).collect()
    }

    /// Samples learned of each class.
    #[getter]
    fn counts(&self) -> Vec<u64> {
        self.read().head().known().iter().map(|class| class.statistics.count).collect()
    }

    /// Classes of each phase.
    #[getter]
    fn phases(&self) -> Vec<usize> {
        self.read().head().phases()
    }

    /// Names and dimensions of the layers in use.
    #[getter]
    fn layers(&self) -> Vec<(String, usize)> {
        self.read().head().layers().to_vec()
    }

    /// The variant's name.
    #[getter]
    fn variant(&self) -> String {
        self.read().head().variant().to_string()
    }

    /// Whether temperature and thresholds were fitted.
    #[getter]
    fn calibrated(&self) -> bool {
        self.read().calibration().is_some()
    }

    /// Bytes of all numbers kept.
    #[getter]
    fn bytes(&self) -> usize {
        self.read().head().bytes()
    }

    /// Settings in use, as JSON.
    fn settings(&self) -> Outcome<String> {
        Ok(serde_json::to_string(self.read().head().settings())?)
    }

    /// How settings were chosen, as JSON.
    fn choices(&self) -> Outcome<String> {
        Ok(serde_json::to_string(self.read().choices())?)
    }

    /// Every number kept, as JSON.
    fn audit(&self) -> Outcome<String> {
        Ok(serde_json::to_string(&ivoro::audit::audit(self.read().head()))?)
    }

    /// Centres between phases, one array a block.
    fn centroids<'py>(&self, py: Python<'py>) -> Outcome<Vec<Bound<'py, PyArray2<f32>>>> {
        let centroids = self.read().head().centroids()?;
        centroids.into_iter().map(|block| array(py, block)).collect()
    }

    /// Centres and weights of the power diagram of a single layer.
    fn diagram<'py>(&self, py: Python<'py>) -> Outcome<Diagram<'py>> {
        let diagram = py.detach(|| self.read().head().diagram())?;
        let [layer] = diagram.layers() else {
            return Err(Failure::value("the cells of several layers are no power diagram"));
        };
        let weights = layer.weights().to_vec().into_pyarray(py);
        Ok((array(py, layer.centres().clone())?, weights))
    }
}

/// Centres, one a row, and weights.
type Diagram<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f32>>);

/// Position of the least value, the first on a tie.
fn first_least(row: &[f32]) -> u32 {
    let least = row.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    least.map_or(0, |(at, _)| at as u32)
}
