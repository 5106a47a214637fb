//! The one place where an error becomes a Python exception.
//!
//! What the operating system refuses is an `OSError`, all else a `ValueError`; the text is the
//! library's sentence. `NotFittedError` is raised by the Python side, which knows whether `fit` was
//! called.

use std::path::Path;

use ivoro::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyBlockingIOError, PyFileNotFoundError, PyValueError};

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) struct Failure(PyErr);

/// A result with a [`Failure`].
pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// A `ValueError` with this sentence.
    pub(crate) fn value(sentence: impl Into<String>) -> Self {
        Self(PyValueError::new_err(sentence.into()))
    }

    /// A `FileNotFoundError`.
    pub(crate) fn missing(path: &Path) -> Self {
        let sentence = format!("{}: no such file or folder", path.display());
        Self(PyFileNotFoundError::new_err(sentence))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(match error {
            Error::Io(error) => error.into(),
            Error::Setting { name, value, reason } => {
                // as the parameter is called here
                let name = match name {
                    "lambda" => "exponent",
                    "false-rejection" => "share",
                    name => name,
                };
                PyValueError::new_err(Error::Setting { name, value, reason }.to_string())
            }
            Error::Locked { .. } => PyBlockingIOError::new_err(error.to_string()),
            error => PyValueError::new_err(error.to_string()),
        })
    }
}

impl From<ivoro_vision::Error> for Failure {
    fn from(error: ivoro_vision::Error) -> Self {
        match error {
            ivoro_vision::Error::Io(error) => Self(error.into()),
            ivoro_vision::Error::Method(error) => error.into(),
            error => Self::value(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::value(error.to_string())
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}
