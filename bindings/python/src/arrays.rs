//! NumPy arrays as features, and matrices as NumPy arrays.

use std::borrow::Cow;
use std::sync::Arc;

use ivoro::{Matrix, Points, Samples, View};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArray1,
    PyUntypedArrayMethods, ndarray,
};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::failure::{Failure, Outcome};

/// Names of layers that come without one, the network's last first.
const LAYERS: [&str; 2] = ["last", "third"];
/// Labels are counted where they are at most this many times as far apart as there are of them.
const SPARSE: usize = 4;
/// Numbers that one task converts at a time.
const CHUNK: usize = 1 << 16;

/// The numbers of an array that is kept alive as long as they are looked at.
struct Lent<T: Element> {
    _array: Py<PyArrayDyn<T>>,
    first: *const T,
    length: usize,
}

// SAFETY: the reference keeps the array, and with it its memory, in place; it is only read.
#[allow(
    unsafe_code,
    reason = "copying 100 000 × 512 numbers takes about as long as adding them up"
)]
unsafe impl<T: Element> Send for Lent<T> {}
// SAFETY: as above; nothing is written through the pointer.
#[allow(unsafe_code, reason = "as above")]
unsafe impl<T: Element> Sync for Lent<T> {}

impl<T: Element> AsRef<[T]> for Lent<T> {
    #[allow(unsafe_code, reason = "as above")]
    fn as_ref(&self) -> &[T] {
        // SAFETY: `first` and `length` are those of a contiguous, aligned slice of the array, which
        // NumPy neither moves nor frees while there is a reference to it. Python code that writes
        // to the array from another thread during a call breaks what NumPy's own functions demand
        // too; the documentation says so.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

/// Numbers of one type, in C order, free of the interpreter's lock.
type Numbers<T> = Arc<dyn AsRef<[T]> + Send + Sync>;

enum Kind {
    Single(Numbers<f32>),
    Double(Numbers<f64>),
}

/// One layer of features: an array `[rows, dim]` or `[rows, views, dim]` of 32 or 64 bit floats.
pub(crate) struct Layer {
    rows: usize,
    views: usize,
    dim: usize,
    kind: Kind,
}

impl<'py> FromPyObject<'_, 'py> for Layer {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (shape, kind) = if let Ok(single) = object.cast::<PyArrayDyn<f32>>() {
            (single.shape().to_vec(), Kind::Single(numbers(&single)?))
        } else if let Ok(double) = object.cast::<PyArrayDyn<f64>>() {
            (double.shape().to_vec(), Kind::Double(numbers(&double)?))
        } else {
            return Err(Failure::value("features: expected float32 or float64 arrays").into());
        };
        let (rows, views, dim) = match shape[..] {
            [rows, dim] => (rows, 1, dim),
            [rows, views, dim] => (rows, views, dim),
            _ => {
                let axes = shape.len();
                let sentence = format!(
                    "features: expected [samples, dim] or [samples, views, dim], found {axes} axes"
                );
                return Err(Failure::value(sentence).into());
            }
        };
        Ok(Self { rows, views, dim, kind })
    }
}

/// The array's own numbers where they are in C order, else a copy that is.
fn numbers<T: Element + Copy + Send + Sync + 'static>(
    array: &Bound<'_, PyArrayDyn<T>>,
) -> PyResult<Numbers<T>> {
    let reader = array.try_readonly()?;
    // a slice is also given of Fortran order, where rows are not what it would be read as
    Ok(match reader.as_slice() {
        Ok(slice) if array.is_c_contiguous() => Arc::new(Lent {
            _array: array.clone().unbind(),
            first: slice.as_ptr(),
            length: slice.len(),
        }),
        _ => Arc::new(reader.as_array().iter().copied().collect::<Vec<T>>()),
    })
}

impl Layer {
    /// One matrix a view. With one view, 32-bit numbers stay where they are unless `keep` says
    /// that the matrix outlives the call.
    fn matrices(&self, keep: bool) -> Outcome<Vec<Matrix>> {
        let view = |view: usize| match &self.kind {
            Kind::Single(numbers) if self.views == 1 && !keep => {
                Ok(Matrix::shared(self.rows, self.dim, Arc::clone(numbers) as _)?)
            }
            Kind::Single(numbers) => self.gather((**numbers).as_ref(), view, |value| value),
            Kind::Double(numbers) => self.gather((**numbers).as_ref(), view, |value| value as f32),
        };
        (0..self.views).map(view).collect()
    }

    fn gather<T: Copy + Send + Sync>(
        &self,
        numbers: &[T],
        view: usize,
        narrow: impl Fn(T) -> f32 + Send + Sync,
    ) -> Outcome<Matrix> {
        let mut out = vec![0f32; self.rows * self.dim];
        let rows = (CHUNK / self.dim.max(1)).max(1);
        let chunks = out.par_chunks_mut(rows * self.dim.max(1)).enumerate();
        chunks.for_each(|(chunk, out)| {
            for (at, out) in out.chunks_mut(self.dim).enumerate() {
                let first = ((chunk * rows + at) * self.views + view) * self.dim;
                let row = &numbers[first..first + self.dim];
                out.iter_mut().zip(row).for_each(|(out, &value)| *out = narrow(value));
            }
        });
        // shared, so that whoever clones the matrix copies nothing
        Ok(Matrix::shared(self.rows, self.dim, Arc::new(out))?)
    }
}

/// Names of classes: text, or whole numbers that are written as such.
pub(crate) enum Names<'py> {
    Numbers(PyReadonlyArray1<'py, i64>),
    Texts(Vec<String>),
}

impl<'py> FromPyObject<'_, 'py> for Names<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(numbers) = object.extract() {
            return Ok(Self::Numbers(numbers));
        }
        let wrong = |_| Failure::value("labels: expected text in Unicode").into();
        object.extract().map(Self::Texts).map_err(wrong)
    }
}

impl From<Names<'_>> for Vec<String> {
    fn from(names: Names<'_>) -> Self {
        match names {
            Names::Numbers(numbers) => numbers.as_array().iter().map(i64::to_string).collect(),
            Names::Texts(texts) => texts,
        }
    }
}

/// Distinct whole numbers, and the place of each number among them.
type Encoded<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);

/// The distinct numbers, sorted, and the place of each number among them; None where they lie so far
/// apart that counting them would take longer than sorting.
#[pyfunction]
pub(crate) fn encoded<'py>(
    py: Python<'py>,
    numbers: PyReadonlyArray1<'py, i64>,
) -> Option<Encoded<'py>> {
    // a slice, over which the compiler makes loops of vectors
    let numbers: Cow<'_, [i64]> = match numbers.as_slice() {
        Ok(slice) => slice.into(),
        Err(_) => numbers.as_array().to_vec().into(),
    };
    let (low, high) = (*numbers.iter().min()?, *numbers.iter().max()?);
    let spread = usize::try_from(high.checked_sub(low)?).ok()?;
    if spread > SPARSE * numbers.len() {
        return None;
    }
    let place = |number: &i64| (number - low) as usize;
    let mut present = vec![false; spread + 1];
    numbers.iter().for_each(|number| present[place(number)] = true);
    let mut count = 0;
    let places = present.iter().map(|&present| {
        count += u32::from(present);
        count.wrapping_sub(1)
    });
    let places: Vec<u32> = places.collect();
    let there = present.iter().enumerate().filter(|(_, present)| **present);
    let distinct: Vec<i64> = there.map(|(at, _)| low + at as i64).collect();
    let codes: Vec<u32> = numbers.iter().map(|number| places[place(number)]).collect();
    Some((distinct.into_pyarray(py), codes.into_pyarray(py)))
}

/// Which class each row is of.
pub(crate) struct Labels {
    pub(crate) codes: Vec<u32>,
    pub(crate) names: Vec<String>,
}

impl Labels {
    pub(crate) fn new(codes: &PyReadonlyArray1<'_, u32>, names: impl Into<Vec<String>>) -> Self {
        Self { codes: codes.as_array().to_vec(), names: names.into() }
    }
}

/// Labelled samples from layers.
pub(crate) fn samples(layers: &[Layer], labels: Labels, keep: bool) -> Outcome<Samples> {
    Ok(Samples::new(points(layers, keep)?, labels.codes, labels.names.into())?)
}

/// Points from layers.
pub(crate) fn points(layers: &[Layer], keep: bool) -> Outcome<Points> {
    let views = layers.first().map_or(0, |layer| layer.views);
    if layers.len() > LAYERS.len() || layers.is_empty() {
        let found = layers.len();
        return Err(Failure::value(format!("features: expected one or two layers, found {found}")));
    }
    if layers.iter().any(|layer| layer.views != views) {
        return Err(Failure::value("features: layers with different numbers of views"));
    }
    let angles = View::conventional(views).ok_or_else(|| {
        let wanted = "1 view, 2 (mirror), 4 (rotations) or 8 (rotations, then of the mirror)";
        Failure::value(format!("features: expected {wanted}, found {views}"))
    })?;
    let mut blocks = Vec::with_capacity(layers.len() * views);
    for layer in layers {
        blocks.extend(layer.matrices(keep)?);
    }
    let names = LAYERS[..layers.len()].iter().map(|&name| name.to_owned()).collect();
    Ok(Points::new("features", names, angles, blocks)?)
}

/// A matrix as an array; its numbers move, they are not copied.
pub(crate) fn array(py: Python<'_>, matrix: Matrix) -> Outcome<Bound<'_, PyArray2<f32>>> {
    let sizes = (matrix.rows(), matrix.cols());
    wide(py, sizes, matrix.into_vec())
}

/// Row-major numbers as an array.
pub(crate) fn wide<T: Element>(
    py: Python<'_>,
    sizes: (usize, usize),
    numbers: Vec<T>,
) -> Outcome<Bound<'_, PyArray2<T>>> {
    let shaped = ndarray::Array2::from_shape_vec(sizes, numbers);
    Ok(shaped.map_err(|error| Failure::value(error.to_string()))?.into_pyarray(py))
}
