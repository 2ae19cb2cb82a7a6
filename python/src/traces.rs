//! Traces: their parts as tables, and their records.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use analysis::replay::summary;
use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, StringArray, UInt32Array, UInt64Array};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use table::Table;

use crate::errors::TraceError;
use crate::records::{Batches, Executions};
use crate::replays::{self, PySelection};
use crate::tables;

/// A trace in a file.
#[pyclass(frozen, module = "pathlength._pathlength", name = "Trace")]
pub struct PyTrace(pub Arc<trace::Trace>);

#[pymethods]
impl PyTrace {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<PyTrace> {
        let opened = py.detach(|| trace::Trace::open(&path));
        Ok(PyTrace(Arc::new(opened.map_err(|error| TraceError::new_err(error.to_string()))?)))
    }

    /// The header.
    #[getter]
    fn header<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let header = self.0.header();
        let dict = PyDict::new(py);
        dict.set_item("program", &header.program)?;
        dict.set_item("arguments", &header.arguments)?;
        dict.set_item("cpu", &header.cpu)?;
        dict.set_item("has_values", header.has_values)?;
        dict.set_item("unit", &header.unit)?;
        dict.set_item("time", header.time)?;
        dict.set_item("process", header.process)?;
        Ok(dict)
    }

    /// Parts that could not be read when the trace was opened: offsets in the file, and reasons.
    #[getter]
    fn problems(&self) -> Vec<(u64, String)> {
        self.0.problems().iter().map(|problem| (problem.offset, problem.what.clone())).collect()
    }

    /// How many instructions it holds.
    #[getter]
    fn instructions(&self) -> u64 {
        self.0.chunks().iter().map(|chunk| chunk.instructions).fold(0, u64::saturating_add)
    }

    #[getter]
    fn images<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let images = || self.0.images().iter();
        let build_id =
            |image: &events::MappedImage| image.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let columns = [
            ("path", text(images().map(|image| image.path.display().to_string()))),
            ("start", numbers(images().map(|image| image.start))),
            ("end", numbers(images().map(|image| image.end))),
            ("build_id", text(images().map(build_id))),
        ];
        tables::of_columns(py, columns)
    }

    #[getter]
    fn functions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let functions = || self.0.functions().iter();
        let columns = [
            (
                "function",
                text(functions().map(|function| analysis::names::demangle(&function.name).into_owned())),
            ),
            ("image", tables::column::<UInt32Array, _>(functions().map(|function| function.image))),
            ("address", numbers(functions().map(|function| function.address))),
            ("size", numbers(functions().map(|function| function.size))),
        ];
        tables::of_columns(py, columns)
    }

    #[getter]
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let blocks = self.0.blocks();
        let mut words = ListBuilder::new(UInt32Builder::new());
        for block in blocks {
            words.append_value(block.words.iter().copied().map(Some));
        }
        let functions = (0..blocks.len() as u32).map(|block| self.0.function_of(block));
        let columns: [(&str, ArrayRef); 4] = [
            ("address", numbers(blocks.iter().map(|block| block.address))),
            ("words", Arc::new(words.finish())),
            ("image", tables::column::<UInt32Array, _>(blocks.iter().map(|block| block.image))),
            ("function", tables::column::<UInt32Array, _>(functions)),
        ];
        tables::of_columns(py, columns)
    }

    #[getter]
    fn streams<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let streams = || self.0.streams().iter();
        let mut instructions = vec![0_u64; self.0.streams().len()];
        for chunk in self.0.chunks() {
            let sum = &mut instructions[chunk.stream as usize];
            *sum = sum.saturating_add(chunk.instructions);
        }
        let columns = [
            ("process", tables::column::<UInt32Array, _>(streams().map(|stream| stream.process))),
            ("thread", tables::column::<UInt32Array, _>(streams().map(|stream| stream.thread))),
            ("instructions", numbers(instructions)),
        ];
        tables::of_columns(py, columns)
    }

    /// A row an instruction.
    fn records(&self, py: Python<'_>, selection: &PySelection) -> PyResult<Batches> {
        Batches::new(py, self, selection)
    }

    /// An object for each execution of a block, and for each mark if `marks` is set.
    fn executions(&self, py: Python<'_>, selection: &PySelection, marks: bool) -> PyResult<Executions> {
        Executions::new(py, self, selection, marks)
    }

    /// The tables of `pathlength show`, by name.
    fn summary<'py>(
        &self,
        py: Python<'py>,
        selection: &PySelection,
        line_sizes: Vec<u64>,
        page_sizes: Vec<u64>,
        window: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        check("cache line", &line_sizes, 8..=4096)?;
        check("page", &page_sizes, 4096..=1 << 40)?;
        let options = |trace: &trace::Trace| {
            let window = window.unwrap_or_else(|| summary::window(trace));
            summary::SummarySettings { line_sizes, page_sizes, window: window.max(1) }
        };
        dict(py, replays::summary(py, self, selection, options, progress)?)
    }
}

/// Tables by name.
pub fn dict(py: Python<'_>, all: Vec<Table>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for table in all {
        dict.set_item(table.name.replace('-', "_"), tables::table(py, table)?)?;
    }
    Ok(dict)
}

/// Sizes are powers of two.
fn check(what: &str, sizes: &[u64], allowed: RangeInclusive<u64>) -> PyResult<()> {
    let is_allowed = |size: &&u64| size.is_power_of_two() && allowed.contains(size);
    let Some(size) = sizes.iter().find(|size| !is_allowed(size)) else { return Ok(()) };
    let (least, most) = allowed.into_inner();
    Err(PyValueError::new_err(format!(
        "a {what} of {size} bytes: the size must be a power of two from {least} to {most}"
    )))
}

fn text(cells: impl IntoIterator<Item = String>) -> ArrayRef {
    tables::column::<StringArray, _>(cells)
}

fn numbers(cells: impl IntoIterator<Item = u64>) -> ArrayRef {
    tables::column::<UInt64Array, _>(cells)
}

/// A block that was executed.
#[pyclass(frozen, module = "pathlength", name = "Execution")]
pub struct PyExecution {
    /// The number of its stream.
    #[pyo3(get)]
    pub stream: u32,
    /// The number of its first instruction in its stream, from 1.
    #[pyo3(get)]
    pub instruction: u64,
    /// Which block: a row of the trace's blocks.
    #[pyo3(get)]
    pub block: u32,
    /// The address of its first instruction.
    #[pyo3(get)]
    pub address: u64,
    /// Its instructions.
    #[pyo3(get)]
    pub length: u32,
    /// `image!function`.
    pub function: Arc<str>,
    /// The effective addresses of its loads and stores, in order.
    #[pyo3(get)]
    pub addresses: Vec<u64>,
    /// The values of its instructions that have one, in order, if values were recorded.
    #[pyo3(get)]
    pub values: Vec<u64>,
}

#[pymethods]
impl PyExecution {
    #[getter]
    fn function(&self) -> &str {
        &self.function
    }

    fn __repr__(&self) -> String {
        let PyExecution { instruction, function, address, length, .. } = self;
        format!("<Execution {instruction}: {address:#x} {function}, {length} instructions>")
    }
}

/// A mark: an event that is no instruction.
#[pyclass(frozen, get_all, module = "pathlength", name = "Mark")]
pub struct PyMark {
    /// The number of its stream.
    pub stream: u32,
    /// The number of the next instruction.
    pub instruction: u64,
    /// Its kind.
    pub kind: &'static str,
    /// Of the unit, the system call or in the order of all streams.
    pub number: Option<u64>,
}

#[pymethods]
impl PyMark {
    fn __repr__(&self) -> String {
        let number = self.number.map(|number| format!(" {number}")).unwrap_or_default();
        format!("<Mark {}: {}{number}>", self.instruction, self.kind)
    }
}
