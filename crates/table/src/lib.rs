//! The one form every result takes: named columns with kinds and units, and rows of values.
//! `report` renders it; nothing else formats a number.

use serde::{Deserialize, Serialize};

/// The kind of a column, which decides how its values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Words, left-aligned.
    Text,
    /// Text in a fixed-width face whose spaces matter: source, disassembly, names that are indented.
    Code,
    /// A count or a size: thousands separators.
    Count,
    /// A difference: thousands separators and always a sign.
    Delta,
    /// A measured or derived quantity, with this number of decimals.
    Real(u8),
    /// A share in percent (the value 12.5 is 12.5 %), with this number of decimals.
    Percent(u8),
    /// A relative change in percent, always with a sign, with this number of decimals.
    Change(u8),
    /// A machine address, in hexadecimal.
    Address,
}

/// A column's heading and kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The heading, for people; also the field's name in CSV, JSON and Parquet.
    pub name: String,
    /// How values are written.
    pub kind: Kind,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// For [`Kind::Text`].
    Text(String),
    /// For counts, deltas and addresses.
    Integer(i64),
    /// For reals, percentages and changes.
    Real(f64),
    /// Not known or not defined (a percentage of nothing): written as a dash, null in files.
    Missing,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Short name in kebab-case: the name of its file and its anchor in a page.
    pub name: String,
    /// One line that says what the table shows.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// Whether the last row is a total, set apart when printed.
    pub total: bool,
    /// Remarks printed below the table.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(name: &str, title: impl Into<String>, columns: &[(&str, Kind)]) -> Table {
        let columns = columns.iter().map(|&(name, kind)| Column { name: name.into(), kind }).collect();
        Table {
            name: name.into(),
            title: title.into(),
            columns,
            rows: Vec::new(),
            total: false,
            notes: Vec::new(),
        }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If the row is not as long as the table is wide: a mistake of the caller. So are two columns of one name, which development
    /// builds find: nobody could ask for the second one by its name.
    pub fn row(&mut self, values: Vec<Value>) {
        assert_eq!(values.len(), self.columns.len(), "row of table {}", self.name);
        debug_assert!(!self.rows.is_empty() || self.has_distinct_columns(), "columns of {}", self.name);
        self.rows.push(values);
    }

    fn has_distinct_columns(&self) -> bool {
        let names: std::collections::HashSet<&str> =
            self.columns.iter().map(|column| &*column.name).collect();
        names.len() == self.columns.len()
    }

    /// Appends a last row that is a total of the others.
    pub fn total_row(&mut self, values: Vec<Value>) {
        self.row(values);
        self.total = true;
    }
}

/// A number without its decimals, with a comma before every three digits.
pub fn rounded(number: f64) -> String {
    separated(&format!("{number:.0}"))
}

/// Digits with a comma before every three.
pub fn separated(digits: &str) -> String {
    let mut separated = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            separated.push(',');
        }
        separated.push(digit);
    }
    separated
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    /// # Panics
    /// On counts of 2^63 and more, which nothing here reaches; addresses are below 2^63 too.
    fn from(count: u64) -> Value {
        Value::Integer(i64::try_from(count).expect("a count below 2^63"))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Integer(number)
    }
}

impl From<f64> for Value {
    /// A number that is not finite is [`Value::Missing`].
    fn from(number: f64) -> Value {
        if number.is_finite() { Value::Real(number) } else { Value::Missing }
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Missing, Into::into)
    }
}
