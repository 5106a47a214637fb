//! Networks: photos in, features out.

use std::path::PathBuf;

use ivoro::{View, interrupt};
use ivoro_vision::dataset::{Broken, ImageInput, Photo, decode_all};
use ivoro_vision::extract::{features, layer_indices};
use ivoro_vision::networks::{Asked, Networks};
use ivoro_vision::recogniser::Taught;
use ivoro_vision::{FrozenNetwork, NetworkOptions};
use numpy::{IntoPyArray, PyArray3, ndarray};
use pyo3::prelude::*;

use crate::failure::{Failure, Outcome};
use crate::photos::{Given, Held, hold};
use crate::threads::detached;

/// A frozen network.
#[pyclass(frozen, module = "ivoro._ivoro")]
pub(crate) struct Network {
    network: FrozenNetwork,
}

impl Network {
    pub(crate) fn of(network: FrozenNetwork) -> Self {
        Self { network }
    }

    pub(crate) fn frozen(&self) -> &FrozenNetwork {
        &self.network
    }
}

#[pymethods]
impl Network {
    /// Opens a network by name or file; without either, the one that ships.
    #[new]
    fn new(network: Option<PathBuf>) -> Outcome<Self> {
        let asked = Asked { network: network.as_deref(), ..Asked::default() };
        let network = Networks::of_user().open(&asked, Taught::Nothing)?;
        Ok(Self { network })
    }

    #[getter]
    fn name(&self) -> &str {
        self.network.name()
    }

    #[getter]
    fn hash(&self) -> &str {
        self.network.fingerprint()
    }

    /// Names and sizes of the layers, the last one first.
    #[getter]
    fn layers(&self) -> Vec<(String, usize)> {
        self.network.backbone().layers().to_vec()
    }

    /// How images are brought to it, as JSON.
    fn description(&self) -> Outcome<String> {
        Ok(self.network.describe_queries()?.to_json())
    }

    /// Features of one layer: an array of images, views and numbers.
    fn features<'py>(
        &self,
        py: Python<'py>,
        images: Vec<Given<'_>>,
        layer: String,
        views: Vec<String>,
        threads: Option<i64>,
    ) -> Outcome<Bound<'py, PyArray3<f32>>> {
        let photos: Vec<Photo> = hold(images)?.into_iter().map(Held::single).collect();
        let view = |name: &String| {
            let expected = "expected degrees of rotation, with an m behind for the mirror image";
            View::parse(name).ok_or_else(|| Failure::value(format!("view {name:?}: {expected}")))
        };
        let views = views.iter().map(view).collect::<Outcome<Vec<View>>>()?;
        let backbone = self.network.backbone();
        let layers = layer_indices(backbone, &[layer])?;
        let width = layers.first().map_or(0, |&at| backbone.layers()[at].1);
        let shape = (photos.len(), views.len(), width);
        let numbers = detached(py, threads, || {
            let fit = self.network.fit_of_queries()?;
            let inputs: Vec<ImageInput<'_>> = photos.iter().map(Photo::input).collect();
            let mut numbers = Vec::with_capacity(shape.0 * shape.1 * shape.2);
            for part in inputs.chunks(NetworkOptions::default().batch) {
                interrupt::check();
                let images = decode_all(part, fit, Broken::Fail)?;
                let blocks = features(backbone, &images, &views, &layers)?;
                for row in 0..part.len() {
                    blocks.iter().for_each(|block| numbers.extend_from_slice(block.row(row)));
                }
            }
            Ok(numbers)
        })?;
        let array = ndarray::Array3::from_shape_vec(shape, numbers)
            .map_err(|error| Failure::value(error.to_string()))?;
        Ok(array.into_pyarray(py))
    }
}
