//! Options of tables: where they go, and which rows they have.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use report::{Destination, FileForm, Format, StandardStream};
use table::{Column, Table, Value, separated};

/// The output of tables.
#[derive(Clone, Debug, Args)]
pub struct OutputOptions {
    /// The format of tables: table, csv, json, parquet or markdown. Without it, the name of a file says the format. Without both,
    /// the tables of a program that is run go to standard error unless standard output is a terminal.
    #[arg(long = "format", value_name = "FORMAT")]
    explicit_format: Option<Format>,
    /// A file, or for several tables a directory, instead of standard output. The end of its name says its form: .csv, .json,
    /// .parquet, .md, .html, and with some options .svg and others; any other name is text.
    #[arg(short = 'o', long = "output", value_name = "PATH")]
    pub path: Option<PathBuf>,
    /// On a terminal, do not shorten names so that rows fit.
    #[arg(long)]
    wide: bool,
}

impl OutputOptions {
    /// Standard output, for a command whose -o is not for tables.
    pub fn standard(format: Format) -> OutputOptions {
        OutputOptions { explicit_format: Some(format), path: None, wide: false }
    }

    /// The same with a file.
    pub fn with_path(self, path: Option<PathBuf>) -> OutputOptions {
        OutputOptions { path, ..self }
    }

    /// The format of tables.
    pub fn format(&self) -> Format {
        let named = match self.path.as_deref().and_then(FileForm::of) {
            Some(FileForm::Tables(format)) => Some(format),
            _ => None,
        };
        self.explicit_format.or(named).unwrap_or_default()
    }

    /// The format that --format names.
    pub fn explicit_format(&self) -> Option<Format> {
        self.explicit_format
    }

    /// Before the work that computes them: whether one table, or several, can be written.
    pub fn check(&self, several: bool) -> Result<(), report::Error> {
        report::check(several, self.format(), self.path.as_deref())
    }

    /// Where tables go if no program was run.
    pub fn destination(&self) -> Destination<'_> {
        Destination {
            path: self.path.as_deref(),
            stream: StandardStream::Output,
            is_wide: self.wide,
            is_paged: true,
        }
    }

    /// Where tables go after the run of a program, whose own output they must not mix with: to a terminal, or if a
    /// format is named, to standard output, and otherwise to standard error.
    pub fn destination_after_run(&self) -> Destination<'_> {
        let is_output = self.explicit_format.is_some() || std::io::stdout().is_terminal();
        let stream = if is_output { StandardStream::Output } else { StandardStream::Error };
        Destination { stream, is_paged: false, ..self.destination() }
    }

    /// Whether standard output, which is no terminal, is for tables only: what a program writes to it goes to standard
    /// error.
    pub fn takes_standard_output(&self) -> bool {
        self.explicit_format.is_some() && self.path.is_none() && !std::io::stdout().is_terminal()
    }
}

/// Tables: which of their rows are shown, and where they go.
#[derive(Clone, Debug, Args)]
pub struct TableOptions {
    #[command(flatten)]
    pub rows: RowOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// The rows of tables.
#[derive(Clone, Debug, Default, Args)]
pub struct RowOptions {
    /// Show the first N rows of long tables.
    #[arg(long, value_name = "N")]
    pub top: Option<NonZeroUsize>,
    /// Sort rows by this column: numbers from the largest on, texts from A to Z; -COLUMN for the opposite order.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    sort: Option<String>,
}

impl RowOptions {
    /// Sorts the tables that have the column. An error if none has, with the names of those that there are; the tables
    /// stay as they are then.
    pub fn sort(&self, tables: &mut [Table]) -> anyhow::Result<()> {
        let Some(requested) = &self.sort else { return Ok(()) };
        let (name, is_reversed) = match requested.strip_prefix('-') {
            Some(name) => (name, true),
            None => (requested.as_str(), false),
        };
        let place =
            |table: &Table| table.columns.iter().position(|column| plain(&column.name) == plain(name));
        if !tables.iter().any(|table| place(table).is_some()) {
            let mut names: Vec<&str> = Vec::new();
            for Column { name, .. } in tables.iter().flat_map(|table| &table.columns) {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
            bail!("--sort: there is no column '{name}'; the columns are {}", names.join(", "));
        }
        for table in tables {
            if let Some(column) = place(table) {
                sort_rows(table, column, is_reversed);
            }
        }
        Ok(())
    }

    /// Keeps the first rows of a table, and its total: as many as --top says, or else `default`. `all` says how to see the
    /// others.
    pub fn shorten(&self, table: &mut Table, default: Option<usize>, all: &str) {
        let Some(kept) = self.top.map(NonZeroUsize::get).or(default) else { return };
        let others = table.rows.len().saturating_sub(kept + usize::from(table.total));
        if others > 0 {
            table.rows.drain(kept..kept + others);
            let rows = if others == 1 { "row" } else { "rows" };
            table.notes.push(format!("{} more {rows}: {all}.", separated(&others.to_string())));
        }
    }

    /// Sorts and shortens tables. They are shortened even if the column does not exist.
    pub fn apply(&self, tables: &mut [Table]) -> anyhow::Result<()> {
        let sorted = self.sort(tables);
        for table in tables {
            self.shorten(table, None, "a larger --top shows them");
        }
        sorted
    }
}

/// A column's name without case, unit and punctuation, so that `dcache-misses` is found.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Sorts the rows of a table but for its total: numbers descend, texts ascend, and missing values come last.
fn sort_rows(table: &mut Table, column: usize, is_reversed: bool) {
    let body = table.rows.len() - usize::from(table.total);
    let number = |row: &Vec<Value>| match row[column] {
        Value::Integer(number) => number as f64,
        Value::Real(number) => number,
        Value::Text(_) | Value::Missing => 0.0,
    };
    let text = |row: &Vec<Value>| match &row[column] {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    };
    table.rows[..body].sort_by(|a, b| {
        let order = number(b).total_cmp(&number(a)).then_with(|| text(a).cmp(&text(b)));
        let order = if is_reversed { order.reverse() } else { order };
        let is_missing = |row: &Vec<Value>| row[column] == Value::Missing;
        is_missing(a).cmp(&is_missing(b)).then(order)
    });
}
