//! Charts: the specifications that reports have.

use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use report::{Arrangement, Chart, Page};

use crate::errors::failed;

/// The Vega-Lite specification, as JSON, of a chart of this kind: "grouped", "stacked" or "percent" bars,
/// "shares", "differences" or "strip". Columns are named as in the batch.
#[pyfunction]
pub fn chart(
    kind: &str,
    batch: PyArrowType<RecordBatch>,
    category: &str,
    values: Vec<String>,
) -> PyResult<String> {
    let batch = batch.0;
    let table = report::from_arrow(&batch).map_err(failed)?;
    let heading = |name: &str| match batch.schema().index_of(name) {
        Ok(index) => Ok(table.columns[index].name.clone()),
        Err(_) => Err(PyKeyError::new_err(format!("the table has no column '{name}'"))),
    };
    let category = heading(category)?;
    let values = values.iter().map(|name| heading(name)).collect::<PyResult<Vec<_>>>()?;
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let bars = |arrangement| report::bars(&table, &category, &values, arrangement);
    let chart = match (kind, values.as_slice()) {
        ("stacked", _) => bars(Arrangement::Stacked),
        ("percent", _) => bars(Arrangement::Percent),
        ("shares", values) => report::shares(&table, &category, values),
        ("differences", [value]) => report::differences(&table, &category, value),
        ("strip", [value]) => report::strip(&table, &category, value),
        _ => bars(Arrangement::Grouped),
    };
    Ok(chart.map_err(failed)?.spec.to_string())
}

/// A page of HTML with a chart of this Vega-Lite specification, which needs no network: the libraries are in it.
#[pyfunction]
pub fn page(title: &str, spec: &str) -> PyResult<String> {
    let spec = serde_json::from_str(spec).map_err(failed)?;
    let (name, title) = ("chart".into(), title.to_string());
    let chart = Chart { name, title: title.clone(), caption: String::new(), spec };
    let page = Page { title: "pathlength".into(), headline: title, chart: Some(chart), ..Page::default() };
    let mut html = Vec::new();
    page.write(&mut html).map_err(failed)?;
    String::from_utf8(html).map_err(failed)
}
