//! Tables as pyarrow's, whose memory is not copied.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::{IntoPyArrow, Table as ArrowTable};
use arrow_schema::Schema;
use pyo3::prelude::*;
use serde::Deserialize;
use table::Table;

use crate::errors::failed;

/// A `pyarrow.Table` without the row of totals, which would be counted among the others.
pub fn table(py: Python<'_>, mut table: Table) -> PyResult<Bound<'_, PyAny>> {
    if std::mem::take(&mut table.total) {
        table.rows.pop();
    }
    from_batch(py, report::to_arrow(&table).map_err(failed)?)
}

/// As in the command's message.
#[derive(Deserialize)]
struct TablesMessage {
    tables: Vec<Table>,
}

/// The tables of the command's message, each with its name.
#[pyfunction(name = "tables")]
pub fn of_message<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let message: TablesMessage = py.detach(|| serde_json::from_slice(message)).map_err(failed)?;
    message.tables.into_iter().map(|one| Ok((one.name.clone(), table(py, one)?))).collect()
}

/// A `pyarrow.Table` of columns that are never empty in part.
pub fn of_columns<'py, const N: usize>(
    py: Python<'py>,
    columns: [(&str, ArrayRef); N],
) -> PyResult<Bound<'py, PyAny>> {
    from_batch(py, RecordBatch::try_from_iter(columns).map_err(failed)?)
}

/// A column.
pub fn column<A: arrow_array::Array + From<Vec<T>> + 'static, T>(
    cells: impl IntoIterator<Item = T>,
) -> ArrayRef {
    Arc::new(A::from(cells.into_iter().collect::<Vec<T>>()))
}

fn from_batch(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    let mut schema = Schema::clone(&batch.schema());
    let pandas = report::pandas_metadata(schema.fields().iter().map(AsRef::as_ref));
    schema.metadata.insert(report::PANDAS.to_string(), pandas);
    let schema = Arc::new(schema);
    let batch = batch.with_schema(schema.clone()).map_err(failed)?;
    ArrowTable::try_new(vec![batch], schema).map_err(failed)?.into_pyarrow(py)
}
