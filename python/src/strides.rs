//! Memory access patterns of a trace.

use analysis::strides::{Bins, By, DEEPEST, StrideSettings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::choose;
use crate::replays::{self, Selection};
use crate::traces::{Trace, dict};

/// The names of series in Python.
const SERIES: [(&str, By); 5] = [
    ("array", By::Array),
    ("line", By::Line),
    ("function", By::Function),
    ("instruction", By::Instruction),
    ("all", By::All),
];

/// The tables of `pathlength strides`, by name.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn strides<'py>(
    py: Python<'py>,
    trace: &Trace,
    selection: &Selection,
    by: &str,
    arrays: Vec<String>,
    depth: u32,
    threshold: u64,
    signed: bool,
    in_elements: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    if !(1..=DEEPEST).contains(&depth) {
        return Err(PyValueError::new_err(format!("depth={depth}: strides are counted 1 to {DEEPEST} back")));
    }
    let by = choose("series", &SERIES, by)?;
    let bins = Bins { is_signed: signed, in_elements };
    let options = StrideSettings { depth, threshold, bins };
    dict(py, replays::strides(py, trace, selection, (by, &arrays), options, progress)?)
}
