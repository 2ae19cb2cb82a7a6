//! Counts of a run, as tables.

use analysis::code_counts::{CodeRows, code_table};
use analysis::mix;
use analysis::names::Names;
use analysis::profile::{Attribution, Profile, functions, image_shares};
use analysis::units::{each_unit, path_lengths};
use arrow_array::{StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;
use session::measure::{Counted, Ending};
use table::Table;

use crate::errors::{PathlengthError, failed};
use crate::tables;

/// As in the command's message.
#[derive(Deserialize)]
struct CountedMessage {
    counted: Counted,
}

/// The counts of a run.
#[pyclass(frozen, module = "pathlength", name = "Counts")]
pub struct PyCounts {
    counted: Counted,
    profile: Profile,
    span: &'static str,
}

#[pymethods]
impl PyCounts {
    /// From the command's message.
    #[new]
    fn new(py: Python<'_>, message: &[u8]) -> PyResult<PyCounts> {
        py.detach(|| {
            let CountedMessage { counted } = serde_json::from_slice(message).map_err(failed)?;
            let attribution = Attribution::new(&counted.counts);
            let (profile, span) = match &counted.measurement {
                Some(measurement) => (attribution.mean(&measurement.units), "a unit of work"),
                None => (attribution.whole(&counted.counts), "the run"),
            };
            Ok(PyCounts { counted, profile, span })
        })
    }

    /// Instructions of the whole run.
    #[getter]
    fn total(&self) -> u64 {
        self.counted.counts.instructions()
    }

    /// The program's exit status; none if a signal ended it.
    #[getter]
    fn exit_status(&self) -> Option<i32> {
        match self.counted.ending {
            Ending::Exited(status) => Some(status),
            Ending::Killed { .. } => None,
        }
    }

    /// How a signal ended the program, if one did.
    #[getter]
    fn crash(&self) -> Option<String> {
        match &self.counted.ending {
            Ending::Exited(_) => None,
            Ending::Killed { report, .. } => Some(report.clone()),
        }
    }

    /// Accesses that were not aligned.
    #[getter]
    fn unaligned(&self) -> u64 {
        self.counted.unaligned
    }

    /// Processes that the program and its children forked; they are not counted.
    #[getter]
    fn forked(&self) -> u64 {
        self.counted.forked
    }

    #[getter]
    fn mix(&self) -> PyMix {
        PyMix(self.profile.mix())
    }

    #[getter]
    fn instructions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let title = format!("Instructions of {}", self.span);
        tables::table(py, mix::single("instructions", &title, &self.profile.mix()))
    }

    #[getter]
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let title = format!("Instruction groups of {}", self.span);
        tables::table(py, mix::group_shares("groups", &title, &[("share", &self.profile.mix())]))
    }

    #[getter]
    fn functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tables::table(py, functions("functions", &format!("Functions of {}", self.span), &self.profile))
    }

    #[getter]
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tables::table(py, self.code(CodeRows::Line))
    }

    #[getter]
    fn addresses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tables::table(py, self.code(CodeRows::Instruction))
    }

    #[getter]
    fn images<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let title = format!("Images in {}", self.span);
        tables::table(py, image_shares("images", &title, &[("instructions", &self.profile)]))
    }

    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tables::table(py, each_unit(self.measurement()?))
    }

    #[getter]
    fn path_length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let title = "Path length: instructions a unit of work";
        tables::table(py, path_lengths("path-length", title, &[("the units", self.measurement()?)]))
    }

    /// Whether the units measured are of the steady state.
    #[getter]
    fn is_steady(&self) -> PyResult<bool> {
        Ok(self.measurement()?.steady)
    }

    #[getter]
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counts = &self.counted.counts;
        let columns = [
            ("address", tables::column::<UInt64Array, _>(counts.blocks.iter().map(|block| block.address))),
            ("length", tables::column::<UInt32Array, _>(counts.blocks.iter().map(|b| b.words.len() as u32))),
            ("executions", tables::column::<UInt64Array, _>(counts.executions.iter().copied())),
        ];
        tables::of_columns(py, columns)
    }

    #[getter]
    fn system_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let calls = || self.counted.counts.system_calls.iter();
        let set = self.counted.counts.instruction_set();
        let names = calls().map(|&(number, _)| engine::system_call_name(set, number));
        let columns = [
            ("system_call", tables::column::<StringArray, _>(names)),
            ("calls", tables::column::<UInt64Array, _>(calls().map(|&(_, n)| n))),
        ];
        tables::of_columns(py, columns)
    }

    fn __repr__(&self) -> String {
        use table::separated;
        let total = separated(&self.total().to_string());
        match &self.counted.measurement {
            Some(measurement) => format!("<Counts: {total} instructions, {} units>", measurement.units.len()),
            None => format!("<Counts: {total} instructions>"),
        }
    }
}

impl PyCounts {
    fn code(&self, rows: CodeRows) -> Table {
        let counts = &self.counted.counts;
        code_table(rows, counts, &Names::of_counts(counts), self.counted.measurement.as_ref())
    }

    fn measurement(&self) -> PyResult<&analysis::units::Measurement> {
        self.counted.measurement.as_ref().ok_or_else(|| {
            PathlengthError::new_err("no unit of work was counted apart: name its function with unit=")
        })
    }
}

/// How often each instruction occurs.
#[pyclass(frozen, module = "pathlength", name = "Mix")]
pub struct PyMix(mix::Mix);

#[pymethods]
impl PyMix {
    /// By name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.0.iter().try_for_each(|(name, n)| dict.set_item(name, n))?;
        Ok(dict)
    }

    fn __getitem__(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    fn __repr__(&self) -> String {
        let total = table::separated(&mix::total(&self.0).to_string());
        format!("<Mix: {total} instructions, {} different>", self.0.len())
    }
}

/// The share of each group of instructions in several mixes.
#[pyfunction]
pub fn group_shares<'py>(
    py: Python<'py>,
    mixes: Vec<(String, PyRef<'py, PyMix>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let mixes: Vec<(&str, &mix::Mix)> = mixes.iter().map(|(name, mix)| (name.as_str(), &mix.0)).collect();
    tables::table(py, mix::group_shares("groups", "Instruction groups", &mixes))
}

/// The mixes of the 1997 paper's transaction in a mode: original, byte/word.
#[pyfunction]
pub fn paper(mode: &str) -> PyResult<[PyMix; 2]> {
    match mode {
        "cached" => Ok(analysis::paper::cached().map(PyMix)),
        "scaled" => Ok(analysis::paper::scaled().map(PyMix)),
        _ => Err(PathlengthError::new_err(format!("the paper has no mode '{mode}': use cached or scaled"))),
    }
}
