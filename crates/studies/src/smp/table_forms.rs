//! Tables of the study.

use table::{Column, Kind, Table, Value};

/// A table whose first column has texts.
pub(super) fn table_of(name: &str, title: &str, first: &str, columns: &[(String, Kind)]) -> Table {
    let mut table = Table::new(name, title, &[(first, Kind::Text)]);
    table.columns.extend(columns.iter().map(|(name, kind)| Column { name: name.clone(), kind: *kind }));
    table
}

/// A printed number, if there is one.
pub(super) fn printed_value(number: Option<f64>) -> Value {
    number.map_or(Value::Missing, Value::from)
}

/// A table of commands.
pub(super) fn commands_table(name: &str, title: &str, commands: &[[String; 2]]) -> Table {
    let mut table = Table::new(name, title, &[("simulation", Kind::Text), ("command", Kind::Code)]);
    for [what, command] in commands {
        table.row(vec![what.clone().into(), command.clone().into()]);
    }
    table
}
