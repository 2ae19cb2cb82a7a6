//! The native part of the Python package: tables, charts and traces. Programs run in processes of their own,
//! of the `pathlength` command: `python/pathlength/_command.py` does that.

mod charts;
mod counts;
mod models;
mod records;
mod replays;
mod rows;
mod strides;
mod tables;
mod traces;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyUserWarning, PyValueError};
use pyo3::prelude::*;

create_exception!(pathlength, PathlengthError, PyException, "What went wrong, where, and what to do.");
create_exception!(
    pathlength,
    TraceError,
    PathlengthError,
    "A file is no trace, or does not have the requested part."
);
create_exception!(
    pathlength,
    TraceWarning,
    PyUserWarning,
    "A part of a trace cannot be read, and is left out."
);

/// An exception with the sentence of one of our errors.
fn failed(error: impl std::fmt::Display) -> PyErr {
    PathlengthError::new_err(error.to_string())
}

/// Parses `by`.
fn choose<T: Copy>(what: &str, all: &[(&str, T)], by: &str) -> PyResult<T> {
    all.iter().find(|(name, _)| *name == by).map(|&(_, one)| one).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        PyValueError::new_err(format!("by=\"{by}\": {what} are by {}", names.join(", ")))
    })
}

/// What `pathlength` is made from.
#[pymodule]
mod _pathlength {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::charts::{chart, page};
    #[pymodule_export]
    use super::counts::{Counts, Mix, group_shares, paper};
    #[pymodule_export]
    use super::models::{caches, machines, time};
    #[pymodule_export]
    use super::records::{Batches, Executions};
    #[pymodule_export]
    use super::replays::Selection;
    #[pymodule_export]
    use super::strides::strides;
    #[pymodule_export]
    use super::traces::{Execution, Mark, Trace};
    #[pymodule_export]
    use super::{PathlengthError, TraceError, TraceWarning};
}
