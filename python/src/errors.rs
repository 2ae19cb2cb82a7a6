//! The exceptions that the package raises.

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
pub fn failed(error: impl std::fmt::Display) -> PyErr {
    PathlengthError::new_err(error.to_string())
}

/// Parses `by`.
pub fn choose<T: Copy>(what: &str, all: &[(&str, T)], by: &str) -> PyResult<T> {
    all.iter().find(|(name, _)| *name == by).map(|&(_, one)| one).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        PyValueError::new_err(format!("by=\"{by}\": {what} are by {}", names.join(", ")))
    })
}
