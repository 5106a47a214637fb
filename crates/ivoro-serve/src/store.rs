//! The models that are served: one file, or those of a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::annotations;
use crate::hosted::Hosted;
use crate::keys::beside;
use crate::metrics::Metrics;
use crate::names::{ENDING, ModelName};
use crate::options::Options;
use crate::problem::Problem;
use crate::start_error::StartError;
use crate::writer::host;

/// Models of a folder, at most.
const MOST: usize = 1000;

/// The models that are served.
pub(crate) struct Store {
    models: RwLock<BTreeMap<ModelName, Arc<Hosted>>>,
    /// Where new ones are begun; none where a single file is served.
    folder: Option<PathBuf>,
    options: Options,
    metrics: Arc<Metrics>,
}

impl Store {
    pub(crate) fn open(options: &Options, metrics: &Arc<Metrics>) -> Result<Self, StartError> {
        let place = &options.place;
        let mut models = BTreeMap::new();
        let files = if place.is_dir() { files_of(place)? } else { vec![place.clone()] };
        for path in files {
            let stem = path.file_stem().map_or_else(String::new, |it| it.to_string_lossy().into());
            let name = ModelName::of_file(&stem);
            if models.contains_key(&name) {
                return Err(StartError::SameName { path, name: name.to_string() });
            }
            models.insert(name.clone(), host(&path, name, options, metrics)?);
        }
        let folder = place.is_dir().then(|| place.clone());
        let (options, metrics) = (options.clone(), Arc::clone(metrics));
        Ok(Self { models: RwLock::new(models), folder, options, metrics })
    }

    /// A model by its name, which is never taken for a path.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Hosted>, Problem> {
        let unknown =
            || Problem::not_found("unknown-model", "no model of this name is served here");
        let name = ModelName::parse(name).ok_or_else(unknown)?;
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models.get(&name).map(Arc::clone).ok_or_else(unknown)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Hosted>> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
        models.values().map(Arc::clone).collect()
    }

    /// The only one, where a single one is served.
    pub(crate) fn single(&self) -> Option<Arc<Hosted>> {
        let all = self.all();
        if let [only] = &all[..] { Some(Arc::clone(only)) } else { None }
    }

    /// Begins a model.
    pub(crate) fn create(&self, name: &str) -> Result<Arc<Hosted>, Problem> {
        let Some(folder) = &self.folder else {
            let detail = "a single model is served here; serve a folder to begin others";
            return Err(Problem::conflict("single-model", detail));
        };
        let name = ModelName::parse(name).ok_or_else(|| {
            Problem::unprocessable("the name of a model has 1 to 64 letters, digits, - _ and ., the first a letter or digit")
        })?;
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        if models.contains_key(&name) {
            return Err(Problem::conflict("name-taken", format!("a model {name} is here already")));
        }
        if models.len() >= MOST {
            return Err(Problem::conflict(
                "too-many-models",
                format!("at most {MOST} models are served"),
            ));
        }
        let path = folder.join(format!("{name}.{ENDING}"));
        if path.exists() {
            return Err(Problem::conflict(
                "name-taken",
                format!("a file {name}.{ENDING} is here already"),
            ));
        }
        let hosted = host(&path, name.clone(), &self.options, &self.metrics);
        let hosted = hosted.map_err(|error| match error {
            StartError::Model(error) => error.into(),
            _ => Problem::internal(),
        })?;
        models.insert(name, Arc::clone(&hosted));
        Ok(hosted)
    }

    /// Stops serving a model and deletes its files.
    pub(crate) fn delete(&self, hosted: &Hosted) -> Result<(), Problem> {
        if self.folder.is_none() {
            let detail = "a single model is served here; stop the server and delete its file";
            return Err(Problem::conflict("single-model", detail));
        }
        let removed =
            self.models.write().unwrap_or_else(PoisonError::into_inner).remove(&hosted.name);
        if removed.is_none() {
            return Err(Problem::not_found(
                "unknown-model",
                "no model of this name is served here",
            ));
        }
        hosted.stop();
        let sidecars =
            ["keys", "who", annotations::ENDING].map(|ending| beside(&hosted.path, ending));
        for path in std::iter::once(hosted.path.clone()).chain(sidecars) {
            match fs_err::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ivoro::Error::from(error).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses changes from now on, and waits until those that were taken are written.
    pub(crate) fn stop(&self) {
        self.all().iter().for_each(|hosted| hosted.stop());
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, StartError> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        let is_model = path.extension().is_some_and(|it| it == ENDING);
        let is_hidden = path.file_name().is_some_and(|it| it.to_string_lossy().starts_with('.'));
        if is_model && !is_hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
