//! Selections of traces, and their replays.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use analysis::models::ExecutionPart;
use analysis::replay::summary::{self, Summary};
use analysis::replay::{Executed, Replay, ReplayOrder, Visitor};
use analysis::strides::{self, Patterns, StrideRows};
use events::record::Mark;
use machine::{Model, UnitWindow};
use pyo3::prelude::*;
use table::Table;

use crate::errors::{TraceError, TraceWarning, failed};
use crate::traces::PyTrace;

/// The selected part of a trace; ranges include both ends.
#[pyclass(frozen, name = "Selection")]
pub struct PySelection(pub analysis::replay::Selection);

/// Both ends.
type Range = Option<(u64, u64)>;

#[pymethods]
impl PySelection {
    #[new]
    #[pyo3(signature = (*, functions, with_callees, images, addresses, data, threads, instructions, units))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        functions: Vec<String>,
        with_callees: bool,
        images: Vec<String>,
        addresses: Range,
        data: Range,
        threads: Vec<(u32, Option<u32>)>,
        instructions: Range,
        units: Range,
    ) -> PySelection {
        let range = |range: Range| range.map(|(first, last)| first..=last);
        PySelection(analysis::replay::Selection {
            functions,
            with_callees,
            images,
            range: range(addresses),
            modes: Vec::new(),
            data_range: range(data),
            threads,
            instructions: range(instructions),
            units: range(units),
        })
    }
}

/// Warns of parts that could not be read. `warnings.simplefilter` can make this an error.
pub fn warn(py: Python<'_>, problem: &str) -> PyResult<()> {
    let message = std::ffi::CString::new(problem.replace('\0', "?")).map_err(failed)?;
    PyErr::warn(py, &py.get_type::<TraceWarning>(), &message, 2)
}

/// Replays the selection without holding Python's lock, and makes tables. Warns of parts that could not be read.
fn tables(
    py: Python<'_>,
    trace: &PyTrace,
    selection: &PySelection,
    work: impl FnOnce(&Replay) -> PyResult<(Vec<Table>, Vec<trace::Error>)> + Send,
) -> PyResult<Vec<Table>> {
    let (trace, selection) = (Arc::clone(&trace.0), selection.0.clone());
    let done = py.detach(|| Replay::of_part(&trace, &selection, ReplayOrder::Time, work));
    let (tables, problems) = done.map_err(|absent| TraceError::new_err(absent.to_string()))??;
    problems.iter().try_for_each(|problem| warn(py, &problem.to_string()))?;
    Ok(tables)
}

/// Replays the selection to a visitor. `progress` is called with the number of instructions replayed.
fn show(
    replay: &Replay,
    visitor: &mut impl Visitor,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Vec<trace::Error>> {
    let mut seen = 0;
    let stop = Cell::new(None);
    let ended = replay.run(&mut Stoppable { visitor, stop: &stop }, &mut |more| {
        seen += more;
        // The first error counts: chunks without blocks, which would end the replay, may follow.
        let error = stop.take().or_else(|| tell(progress, seen).err());
        stop.set(error);
    });
    match stop.take() {
        Some(error) => Err(error),
        None => ended.map_err(failed),
    }
}

/// Summarises the selection.
pub fn summary(
    py: Python<'_>,
    trace: &PyTrace,
    selection: &PySelection,
    options: impl FnOnce(&trace::Trace) -> summary::SummarySettings + Send,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Table>> {
    tables(py, trace, selection, |replay| {
        let options = options(replay.dictionary.trace);
        let mut summary = Summary::new(replay.dictionary, replay.accesses, options);
        let problems = show(replay, &mut summary, progress.as_ref())?;
        let set = replay.dictionary.trace.instruction_set();
        Ok((summary.tables(&|number| engine::system_call_name(set, number)), problems))
    })
}

/// Counts the strides of the selection: tables of the most frequent ones, and of all.
pub fn strides(
    py: Python<'_>,
    trace: &PyTrace,
    selection: &PySelection,
    (by, arrays): (StrideRows, &[String]),
    options: strides::StrideSettings,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Table>> {
    tables(py, trace, selection, |replay| {
        let mut patterns = Patterns::new(replay.dictionary, by, arrays, options);
        let problems = show(replay, &mut patterns, progress.as_ref())?;
        match patterns.missing() {
            Some(name) => Err(TraceError::new_err(format!(
                "no variable '{name}' is known: strides() without array lists those that are accessed"
            ))),
            None => Ok((
                vec![patterns.table(ExecutionPart::Whole), patterns.histograms(ExecutionPart::Whole)],
                problems,
            )),
        }
    })
}

/// Simulates a model on the selection, and makes tables of its results after `warm_up` units of work.
pub fn simulate<M: Model>(
    py: Python<'_>,
    trace: &PyTrace,
    selection: &PySelection,
    warm_up: u64,
    model: M,
    found: impl FnOnce(&M, &trace::Trace) -> Vec<Table> + Send,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Table>> {
    if warm_up > 0 && trace.0.first_unit().is_none() {
        return Err(TraceError::new_err(
            "warm_up counts units of work, and there are none: record with unit=",
        ));
    }
    let window = UnitWindow { warm_up, ..UnitWindow::default() };
    tables(py, trace, selection, |replay| {
        let mut seen = 0;
        let (model, problems) = replay.run_model(model, window, &mut |more| {
            seen += more;
            tell(progress.as_ref(), seen)
        })?;
        if model.is_warming() {
            return Err(TraceError::new_err(format!(
                "all units of work that were simulated belong to the warm-up: give less than warm_up={warm_up}"
            )));
        }
        Ok((found(&model.model, replay.dictionary.trace), problems))
    })
}

/// Gives Python a chance to be interrupted.
fn tell(progress: Option<&Py<PyAny>>, seen: u64) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        progress.map_or(Ok(()), |progress| progress.call1(py, (seen,)).map(drop))
    })
}

/// A visitor that can end the replay.
struct Stoppable<'a, V> {
    visitor: &'a mut V,
    stop: &'a Cell<Option<PyErr>>,
}

impl<V: Visitor> Visitor for Stoppable<'_, V> {
    fn mark(&mut self, stream: u32, before: u64, mark: Mark, is_selected: bool) -> io::Result<()> {
        self.visitor.mark(stream, before, mark, is_selected)
    }

    fn executed(&mut self, executed: &Executed) -> io::Result<()> {
        if let Some(error) = self.stop.take() {
            self.stop.set(Some(error));
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.visitor.executed(executed)
    }
}
