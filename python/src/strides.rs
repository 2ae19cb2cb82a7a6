//! Memory access patterns of a trace.

use analysis::strides::{Bins, DEEPEST, StrideRows, StrideSettings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::choose;
use crate::replays::{self, PySelection};
use crate::traces::{PyTrace, dict};

/// The names of series in Python.
const SERIES: [(&str, StrideRows); 5] = [
    ("array", StrideRows::Array),
    ("line", StrideRows::Line),
    ("function", StrideRows::Function),
    ("instruction", StrideRows::Instruction),
    ("all", StrideRows::All),
];

/// The tables of `pathlength strides`, by name.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn strides<'py>(
    py: Python<'py>,
    trace: &PyTrace,
    selection: &PySelection,
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
