//! The compiled half of the Python package: thin, and all of it called from `ivoro/*.py`, which
//! knows labels of any type, scikit-learn and matplotlib.

#![allow(clippy::needless_pass_by_value, reason = "arguments come from Python as values")]

mod arrays;
mod comparison;
mod failure;
mod metrics;
mod model;
mod network;
mod photos;
mod recogniser;
mod settings;
mod threads;

/// Calls run in threads of a pool. There the system's allocator gives large pieces back at once, and
/// every call would wait for them to be made anew.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `ivoro` is made of; use that instead.
#[pyo3::pymodule]
mod _ivoro {
    #[pymodule_export]
    use super::arrays::encoded;
    #[pymodule_export]
    use super::comparison::{Comparison, read_features};
    #[pymodule_export]
    use super::metrics::{
        area_under_roc, average, backward_transfer, calibration_error, forgetting_pass,
        forgetting_pycil, pearson,
    };
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::network::Network;
    #[pymodule_export]
    use super::recogniser::Recogniser;
    #[pymodule_export]
    use super::settings::settings_table;
    #[pymodule_export]
    use super::thread_count;
}

/// The number of threads that a call with this argument uses.
#[pyo3::pyfunction]
#[pyo3(signature = (threads=None))]
fn thread_count(threads: Option<i64>) -> failure::Outcome<usize> {
    threads::count(threads)
}
