//! Networks computed by ONNX Runtime, whose library is opened when the first one is loaded.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;

use super::OnnxError;
use super::to_features::Tensor;
use super::{Compute, Source};
use crate::error::Result;

/// The variable that names the library.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// A process has one environment, from the first network on.
static ENVIRONMENT: Mutex<Option<Environment>> = Mutex::new(None);

/// Whether the library's path is given.
pub(super) fn is_named() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|path| !path.is_empty())
}

fn environment() -> std::result::Result<Environment, OnnxError> {
    let mut kept = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = &*kept {
        return Ok(environment.clone());
    }
    let library = |reason: String| OnnxError::Library { reason };
    let path = std::env::var_os(VARIABLE)
        .filter(|path| !path.is_empty())
        .ok_or_else(|| library(format!("{VARIABLE} is not set")))?;
    let builder = ort::init_from(&path).map_err(|error| library(error.to_string()))?;
    // A library prints nothing: what matters comes back as an error.
    let environment = builder
        .with_name("ivoro")
        .with_telemetry(false)
        .with_logger(Arc::new(|_, _, _, _, _| {}))
        .build()
        .map_err(|error| library(error.to_string()))?;
    Ok(kept.insert(environment).clone())
}

/// A network loaded by ONNX Runtime.
pub(super) struct OnnxRuntime {
    /// Parts of ONNX Runtime do not bear two runs of one session at a time.
    session: Mutex<Session>,
}

impl OnnxRuntime {
    /// Opens the library if need be, then loads the network, or says why not.
    pub(super) fn load(source: Source<'_>) -> Result<std::result::Result<Self, String>> {
        let environment = environment()?;
        let folder = source.path.parent().unwrap_or(Path::new(""));
        let file = source.into_file()?;
        Ok(session(&environment, folder, &file)
            .map(|session| Self { session: Mutex::new(session) })
            .map_err(|error| one_line(&error)))
    }
}

fn session(environment: &Environment, folder: &Path, file: &[u8]) -> ort::Result<Session> {
    let folder = folder.to_string_lossy();
    let mut builder = Session::builder(environment)?
        .with_intra_threads(rayon::current_num_threads())?
        .with_config_entry("session.model_external_initializers_file_folder_path", folder)?;
    builder.commit_from_memory(file)
}

fn one_line(error: &ort::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Compute for OnnxRuntime {
    fn name(&self) -> &'static str {
        "ONNX Runtime"
    }

    fn run(
        &self,
        inputs: Vec<(Vec<f32>, [usize; 4])>,
        wanted: &[usize],
    ) -> std::result::Result<Vec<Vec<Tensor>>, String> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |(numbers, dimensions): &(Vec<f32>, _)| {
            run_one(&mut session, numbers, *dimensions, wanted)
        };
        inputs.iter().map(one).collect()
    }
}

fn run_one(
    session: &mut Session,
    numbers: &[f32],
    dimensions: [usize; 4],
    wanted: &[usize],
) -> std::result::Result<Vec<Tensor>, String> {
    let input =
        TensorRef::from_array_view((dimensions, numbers)).map_err(|error| one_line(&error))?;
    let values = session.run(ort::inputs![input]).map_err(|error| one_line(&error))?;
    let tensor = |&index: &usize| {
        let (shape, numbers) =
            values[index].try_extract_tensor::<f32>().map_err(|error| one_line(&error))?;
        let shape = shape.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
        Ok(Tensor { shape, numbers: numbers.to_vec() })
    };
    wanted.iter().map(tensor).collect()
}
