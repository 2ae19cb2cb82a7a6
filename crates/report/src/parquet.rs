//! Parquet, by way of Arrow.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use table::{Column, Kind, Table, Value};

use crate::comma::IS_TOTAL;
use crate::names::unused;
use crate::{Error, arrow};

/// The table as a whole Parquet file. Its name, title and notes are in the schema's metadata.
pub(crate) fn encode(table: &Table) -> Result<Vec<u8>, Error> {
    let mut file = Vec::new();
    let schema = schema(table)?;
    let batch = batch(table, &schema)?;
    let mut writer = writer(table, schema, &mut file)?;
    writer.write(&batch).map_err(|error| failed(table, error))?;
    writer.close().map_err(|error| failed(table, error))?;
    Ok(file)
}

/// The file's metadata on the table.
pub(crate) fn schema(table: &Table) -> Result<Arc<Schema>, Error> {
    let empty = Table { rows: Vec::new(), ..table.clone() };
    let arrays = arrays(&empty)?;
    let fields = field_names(&table.columns).into_iter().zip(&arrays).zip(&table.columns);
    let field = |((name, array), column): ((String, &ArrayRef), &Column)| {
        Field::new(name, array.data_type().clone(), true).with_metadata(arrow::metadata(column))
    };
    let total = table.total.then(|| Field::new(IS_TOTAL, DataType::Boolean, true));
    let fields: Vec<_> = fields.map(field).chain(total).collect();
    let metadata = [
        ("name", table.name.clone()),
        ("title", table.title.clone()),
        ("notes", table.notes.join("\n")),
        (arrow::PANDAS, arrow::pandas_metadata(&fields)),
    ];
    let metadata = HashMap::from(metadata.map(|(key, value)| (key.to_string(), value)));
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// The table's rows.
pub(crate) fn batch(table: &Table, schema: &Arc<Schema>) -> Result<RecordBatch, Error> {
    let batch = RecordBatch::try_new(schema.clone(), arrays(table)?);
    batch.map_err(|error| failed(table, error.into()))
}

/// Writes a file of rows of this schema.
pub(crate) fn writer<W: Write + Send>(
    table: &Table,
    schema: Arc<Schema>,
    out: W,
) -> Result<ArrowWriter<W>, Error> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    ArrowWriter::try_new(out, schema, Some(properties)).map_err(|error| failed(table, error))
}

/// The library's error, or the error of the output that it writes to.
pub(crate) fn failed(table: &Table, error: ParquetError) -> Error {
    match error {
        ParquetError::External(cause) if cause.is::<io::Error>() => {
            Error::Stream(*cause.downcast().expect("just looked at"))
        }
        error => Error::Parquet(table.name.clone(), error.to_string()),
    }
}

fn arrays(table: &Table) -> Result<Vec<ArrayRef>, Error> {
    let total = table.total.then(|| {
        let last = table.rows.len().saturating_sub(1);
        let are_totals: Vec<bool> = (0..table.rows.len()).map(|row| row == last).collect();
        Ok(Arc::new(BooleanArray::from(are_totals)) as ArrayRef)
    });
    (0..table.columns.len()).map(|index| array(table, index)).chain(total).collect()
}

/// One column: text as strings, counts, deltas and addresses as integers, the rest as reals.
fn array(table: &Table, index: usize) -> Result<ArrayRef, Error> {
    Ok(match table.columns[index].kind {
        Kind::Text | Kind::Code => Arc::new(StringArray::from(cells(table, index, |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })?)),
        Kind::Count | Kind::Delta | Kind::Address => {
            Arc::new(Int64Array::from(cells(table, index, |value| match value {
                Value::Integer(number) => Some(*number),
                _ => None,
            })?))
        }
        Kind::Real(_) | Kind::Percent(_) | Kind::Change(_) => {
            Arc::new(Float64Array::from(cells(table, index, |value| match value {
                Value::Real(number) => Some(*number),
                Value::Integer(number) => Some(*number as f64),
                _ => None,
            })?))
        }
    })
}

/// The column's cells, those that are missing as None, or the one that `get` does not accept.
fn cells<'t, T>(
    table: &'t Table,
    index: usize,
    get: impl Fn(&'t Value) -> Option<T>,
) -> Result<Vec<Option<T>>, Error> {
    let column = &table.columns[index];
    let cell = |(row, values): (usize, &'t Vec<Value>)| match &values[index] {
        Value::Missing => Ok(None),
        Value::Real(number) if !number.is_finite() => Ok(None),
        value => get(value).map(Some).ok_or_else(|| Error::Mismatch {
            table: table.name.clone(),
            column: column.name.clone(),
            row: row + 1,
            value: value.clone(),
            kind: column.kind,
        }),
    };
    table.rows.iter().enumerate().map(cell).collect()
}

/// The columns' names in snake_case, made different where they would be the same.
fn field_names(columns: &[Column]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in columns {
        let name = unused(field_name(&column.name), '_', |name| names.iter().any(|other| other == name));
        names.push(name);
    }
    names
}

pub(crate) fn field_name(heading: &str) -> String {
    let spelled = heading.to_lowercase().replace('%', " percent ");
    let words: Vec<_> =
        spelled.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "column".into() } else { words.join("_") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use proptest::prelude::*;

    fn value(kind: Kind) -> BoxedStrategy<Value> {
        match kind {
            Kind::Text | Kind::Code => prop_oneof![".*".prop_map(Value::Text), Just(Value::Missing)].boxed(),
            Kind::Count | Kind::Delta | Kind::Address => {
                prop_oneof![any::<i64>().prop_map(Value::Integer), Just(Value::Missing)].boxed()
            }
            _ => prop_oneof![any::<f64>().prop_map(Value::from), Just(Value::Missing)].boxed(),
        }
    }

    proptest! {
        #[test]
        fn reads_back_equal(rows in proptest::collection::vec(
            (value(Kind::Text), value(Kind::Count), value(Kind::Percent(1))), 0..40)) {
            let mut table = Table::new("t", "T",
                &[("Function", Kind::Text), ("Code bytes", Kind::Count), ("Change (%)", Kind::Percent(1))]);
            rows.into_iter().for_each(|(a, b, c)| table.row(vec![a, b, c]));
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(encode(&table).unwrap()))
                .unwrap();
            prop_assert_eq!(&reader.schema().metadata()["title"], "T");
            let names: Vec<_> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
            prop_assert_eq!(names, ["function", "code_bytes", "change_percent"]);
            let mut row = table.rows.iter();
            for batch in reader.build().unwrap() {
                let batch = batch.unwrap();
                let column = |index: usize| batch.column(index).as_any();
                let texts = column(0).downcast_ref::<StringArray>().unwrap();
                let counts = column(1).downcast_ref::<Int64Array>().unwrap();
                let reals = column(2).downcast_ref::<Float64Array>().unwrap();
                for ((text, count), real) in texts.iter().zip(counts).zip(reals) {
                    let read: Vec<Value> =
                        vec![text.map(String::from).into(), count.into(), real.into()];
                    prop_assert_eq!(Some(&read), row.next());
                }
            }
            prop_assert!(row.next().is_none());
        }
    }

    #[test]
    fn same_names_are_told_apart() {
        let columns =
            ["%", "percent", "Percent", "", "…"].map(|name| Column { name: name.into(), kind: Kind::Text });
        assert_eq!(field_names(&columns), ["percent", "percent_2", "percent_3", "column", "column_2"]);
    }

    #[test]
    fn a_misplaced_value_is_named() {
        let mut table = Table::new("sizes", "Sizes", &[("bytes", Kind::Count)]);
        table.row(vec![7_u64.into()]);
        table.row(vec!["many".into()]);
        let message = encode(&table).unwrap_err().to_string();
        assert_eq!(
            message,
            "row 2 of the table 'sizes' holds Text(\"many\") in the column 'bytes' of kind Count"
        );
    }
}
