//! Tables as Arrow's record batches, and back: for programs that share memory with us.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use serde_json::json;
use table::{Column, Kind, Table, Value};

use crate::{Error, parquet};

/// Where a schema's metadata has what pandas is to make of the columns.
pub const PANDAS: &str = "pandas";

/// What pandas is to make of columns of integers of which some are missing: its own types of integers, as those of
/// NumPy have no missing values and pandas would make them floating-point numbers, with 53 bits. ("Storing pandas
/// DataFrame objects in Apache Parquet format", in pandas' developer documentation; pyarrow reads it, too.)
pub fn pandas_metadata<'f>(fields: impl IntoIterator<Item = &'f Field>) -> String {
    let column = |field: &Field| {
        let (name, data_type) = (field.name(), format!("{}", field.data_type()));
        json!({
            "name": name, "field_name": name, "pandas_type": data_type.to_lowercase(), "numpy_type": data_type,
            "metadata": null,
        })
    };
    let fields = fields.into_iter().filter(|field| field.is_nullable() && field.data_type().is_integer());
    let columns: Vec<serde_json::Value> = fields.map(column).collect();
    let creator = json!({"library": "pathlength", "version": env!("CARGO_PKG_VERSION")});
    json!({
        "index_columns": [], "column_indexes": [], "columns": columns, "creator": creator, "pandas_version": "2.0.0",
    })
    .to_string()
}

/// The names of a field's metadata on its column.
const HEADING: &str = "heading";
const KIND: &str = "kind";

/// The table as a record batch. The schema's metadata has its name, title and notes; the fields' have the
/// columns' headings and kinds.
pub fn to_arrow(table: &Table) -> Result<RecordBatch, Error> {
    let schema = parquet::schema(table)?;
    parquet::batch(table, &schema)
}

/// The table that a record batch holds: of text, 64-bit integers and doubles. Columns that another program
/// made get a kind by their type.
pub fn from_arrow(batch: &RecordBatch) -> Result<Table, Error> {
    let schema = batch.schema();
    let said = |key: &str| schema.metadata().get(key).cloned().unwrap_or_default();
    let mut table = Table::new(&said("name"), said("title"), &[]);
    table.columns = schema.fields().iter().map(|field| column(field)).collect::<Result<_, _>>()?;
    let cells = table.columns.iter().zip(batch.columns()).map(|(column, array)| cells(column.kind, array));
    let cells: Vec<Vec<Value>> = cells.collect();
    for row in 0..batch.num_rows() {
        table.row(cells.iter().map(|column| column[row].clone()).collect());
    }
    Ok(table)
}

/// A field's metadata on its column.
pub(crate) fn metadata(column: &Column) -> HashMap<String, String> {
    let kind = serde_json::to_string(&column.kind).expect("a kind is plain data");
    HashMap::from([(HEADING.into(), column.name.clone()), (KIND.into(), kind)])
}

fn column(field: &Field) -> Result<Column, Error> {
    let said = |key: &str| field.metadata().get(key);
    // A renamed field has its name as its heading.
    let heading = said(HEADING).filter(|heading| parquet::field_name(heading) == *field.name());
    let by_type = match field.data_type() {
        DataType::Utf8 => Kind::Text,
        DataType::Int64 => Kind::Count,
        DataType::Float64 => Kind::Real(2),
        kind => return Err(Error::NoKind { column: field.name().clone(), kind: kind.to_string() }),
    };
    let kind = said(KIND).and_then(|kind| serde_json::from_str(kind).ok());
    let kind = kind.filter(|&kind| stored_as(kind) == stored_as(by_type)).unwrap_or(by_type);
    Ok(Column { name: heading.unwrap_or(field.name()).clone(), kind })
}

fn stored_as(kind: Kind) -> DataType {
    match kind {
        Kind::Text | Kind::Code => DataType::Utf8,
        Kind::Count | Kind::Delta | Kind::Address => DataType::Int64,
        Kind::Real(_) | Kind::Percent(_) | Kind::Change(_) => DataType::Float64,
    }
}

fn cells(kind: Kind, array: &dyn Array) -> Vec<Value> {
    match stored_as(kind) {
        DataType::Utf8 => array.as_string::<i32>().iter().map(Value::from).collect(),
        DataType::Int64 => array.as_primitive::<Int64Type>().iter().map(Value::from).collect(),
        _ => array.as_primitive::<Float64Type>().iter().map(Value::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Int64Array};

    #[test]
    fn a_table_comes_back_as_it_was() {
        let columns = [("Group", Kind::Text), ("% delta", Kind::Change(1)), ("at", Kind::Address)];
        let mut table = Table::new("groups", "Groups", &columns);
        table.row(vec!["LOADS".into(), 2.5.into(), 0x1_2000_0000_u64.into()]);
        table.row(vec![Value::Missing, Value::Missing, Value::Missing]);
        assert_eq!(from_arrow(&to_arrow(&table).unwrap()).unwrap(), table);
    }

    #[test]
    fn columns_of_others_get_a_kind_and_a_name() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None]));
        let mut field = Field::new("Renamed", DataType::Int64, true);
        field.set_metadata(metadata(&Column { name: "old".into(), kind: Kind::Text }));
        let schema = arrow_schema::Schema::new(vec![field]);
        let table = from_arrow(&RecordBatch::try_new(Arc::new(schema), vec![array]).unwrap()).unwrap();
        assert_eq!(table.columns, [Column { name: "Renamed".into(), kind: Kind::Count }]);
        assert_eq!(table.rows, [[Value::Integer(7)], [Value::Missing]]);

        let array: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
        let error = from_arrow(&RecordBatch::try_from_iter([("is_odd", array)]).unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the column 'is_odd' is of the type Boolean: a table has text, integers (int64) and reals (double)"
        );
    }
}
