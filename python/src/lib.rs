//! The native part of the Python package: tables, charts and traces. Programs run in processes of their own,
//! of the `pathlength` command: `python/pathlength/_command.py` does that.

mod charts;
mod counts;
mod errors;
mod models;
mod records;
mod replays;
mod rows;
mod strides;
mod tables;
mod traces;

use pyo3::prelude::*;

/// The native part of `pathlength`.
#[pymodule]
mod _pathlength {
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::charts::{chart, page};
    #[pymodule_export]
    use super::counts::{PyCounts, PyMix, group_shares, paper};
    #[pymodule_export]
    use super::errors::{PathlengthError, TraceError, TraceWarning};
    #[pymodule_export]
    use super::models::{caches, machines, time};
    #[pymodule_export]
    use super::records::{Batches, Executions};
    #[pymodule_export]
    use super::replays::PySelection;
    #[pymodule_export]
    use super::strides::strides;
    #[pymodule_export]
    use super::tables::of_message;
    #[pymodule_export]
    use super::traces::{PyExecution, PyMark, PyTrace};
}
