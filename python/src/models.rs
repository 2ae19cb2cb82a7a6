//! Models of machines on a trace.

use analysis::models::{self, OwnRows};
use machine::{Caches, Machine, TimingModel};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{choose, failed};
use crate::replays::{PySelection, simulate};
use crate::tables;
use crate::traces::{PyTrace, dict};

/// One row for each machine that comes with the package.
#[pyfunction]
pub fn machines(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    tables::table(py, models::machines())
}

/// The tables of `pathlength caches`, by name.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn caches<'py>(
    py: Python<'py>,
    trace: &PyTrace,
    selection: &PySelection,
    machine: &str,
    by: Vec<String>,
    classify: bool,
    warm_up: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let described = Machine::find(machine).map_err(failed)?;
    let caches = if classify { Caches::classified(&described) } else { Caches::new(&described) };
    let by = rows(&by)?;
    let all = |caches: &Caches, trace: &trace::Trace| {
        let named = [(machine, caches)];
        let by = by.into_iter().flat_map(|rows| models::by(rows, &named, trace));
        std::iter::once(models::structures(&[(machine, caches.into())], classify)).chain(by).collect()
    };
    dict(py, simulate(py, trace, selection, warm_up, caches, all, progress)?)
}

/// The tables of `pathlength time`, by name.
#[pyfunction]
pub fn time<'py>(
    py: Python<'py>,
    trace: &PyTrace,
    selection: &PySelection,
    machine: &str,
    by: Vec<String>,
    warm_up: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let described = Machine::find(machine).map_err(failed)?;
    let time = TimingModel::new(&described).map_err(failed)?;
    let by = rows(&by)?;
    let all = |time: &TimingModel, trace: &trace::Trace| {
        let by = by.into_iter().flat_map(|rows| models::by(rows, &[(machine, time)], trace));
        models::times(&[(machine, &described, time.into())]).into_iter().chain(by).collect()
    };
    dict(py, simulate(py, trace, selection, warm_up, time, all, progress)?)
}

/// The names of rows in Python.
const ROWS: [(&str, OwnRows); 4] = [
    ("function", OwnRows::Function),
    ("line", OwnRows::Line),
    ("instruction", OwnRows::Instruction),
    ("unit", OwnRows::Unit),
];

fn rows(names: &[String]) -> PyResult<Vec<OwnRows>> {
    names.iter().map(|name| choose("tables", &ROWS, name)).collect()
}
