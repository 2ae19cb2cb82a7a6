//! Tables of a branch log.

use std::collections::HashMap;

use table::{Kind, Table, Value};

use super::{count, number, share};
use crate::branch_log::log::LogState;
use crate::branch_log::{LoggedImage, ReconstructedStep, Reconstruction};

/// The rows of a table of logged instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedRows {
    /// Functions.
    Function,
    /// Blocks.
    Block,
    /// Threads.
    Thread,
}

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum LoggedRow {
    Function(usize, u32),
    Block(usize, u32),
    Thread(u32, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct LoggedTotal {
    instructions: u64,
    blocks: u64,
    entries: u64,
}

/// The instructions that a log has, by the rows of a table.
#[derive(Debug)]
pub struct LoggedInstructions {
    by: LoggedRows,
    rows: HashMap<LoggedRow, LoggedTotal>,
}

impl LoggedInstructions {
    /// None so far.
    pub fn new(by: LoggedRows) -> LoggedInstructions {
        LoggedInstructions { by, rows: HashMap::new() }
    }

    /// Adds a step.
    pub fn add(&mut self, images: &[LoggedImage], step: &ReconstructedStep) {
        let procedure = || images[step.image].program().blocks[step.block as usize].procedure;
        let row = match self.by {
            LoggedRows::Function => LoggedRow::Function(step.image, procedure()),
            LoggedRows::Block => LoggedRow::Block(step.image, step.block),
            LoggedRows::Thread => LoggedRow::Thread(step.process, step.thread),
        };
        let total = self.rows.entry(row).or_default();
        total.instructions += u64::from(step.instructions);
        total.blocks += u64::from(step.begins);
        let is_entry = || images[step.image].program().head(procedure()) == Some(step.block);
        total.entries += u64::from(step.begins && is_entry());
    }

    /// The table of images with these names, and what it does not show.
    pub fn table(
        &self,
        images: &[LoggedImage],
        image_names: &[String],
        found: &Reconstruction,
        state: LogState,
    ) -> Table {
        let (name, mut columns) = match self.by {
            LoggedRows::Function => ("functions", vec![("function", Kind::Text), ("image", Kind::Text)]),
            LoggedRows::Block => {
                ("blocks", vec![("address", Kind::Address), ("function", Kind::Text), ("image", Kind::Text)])
            }
            LoggedRows::Thread => ("threads", vec![("process", Kind::Text), ("thread", Kind::Address)]),
        };
        let texts = columns.len();
        columns.extend([
            ("instructions", Kind::Count),
            ("share", Kind::Percent(2)),
            ("blocks", Kind::Count),
            ("instructions per block", Kind::Real(1)),
            ("calls", Kind::Count),
        ]);
        let mut table = Table::new(name, "Instructions of the patched procedures", &columns);
        let mut rows: Vec<(&LoggedRow, &LoggedTotal)> = self.rows.iter().collect();
        rows.sort_by_key(|(row, total)| (std::cmp::Reverse(total.instructions), **row));
        let whole: u64 = rows.iter().map(|(_, total)| total.instructions).sum();
        let numbers = |total: &LoggedTotal| {
            let length = match total.blocks {
                0 => Value::Missing,
                blocks => Value::Real(total.instructions as f64 / blocks as f64),
            };
            let LoggedTotal { instructions, blocks, entries } = *total;
            [count(instructions), share(instructions, whole), count(blocks), length, count(entries)]
        };
        for (row, total) in &rows {
            table.row(cells(**row, images, image_names).into_iter().chain(numbers(total)).collect());
        }
        let sum = |field: fn(&LoggedTotal) -> u64| rows.iter().map(|(_, total)| field(total)).sum();
        let total = LoggedTotal {
            instructions: whole,
            blocks: sum(|one| one.blocks),
            entries: sum(|one| one.entries),
        };
        let texts = (0..texts).map(|at| if at == 0 { Value::Text("total".into()) } else { Value::Missing });
        table.total_row(texts.chain(numbers(&total)).collect());
        add_notes(&mut table, found, state);
        table
    }
}

/// The first cells of a row, which are names.
fn cells(row: LoggedRow, images: &[LoggedImage], image_names: &[String]) -> Vec<Value> {
    let image = |number: usize| Value::Text(image_names[number].clone());
    let name =
        |number: usize, procedure: u32| images[number].program().procedures[procedure as usize].name.clone();
    match row {
        LoggedRow::Function(number, procedure) => vec![Value::Text(name(number, procedure)), image(number)],
        LoggedRow::Block(number, block) => {
            let procedure = images[number].program().blocks[block as usize].procedure;
            let address = Value::Integer(images[number].address(block) as i64);
            vec![address, Value::Text(name(number, procedure)), image(number)]
        }
        LoggedRow::Thread(process, thread) => {
            vec![Value::Text(process.to_string()), Value::Integer(thread as i64)]
        }
    }
}

/// Adds notes on what is in no row: earlier records, damage, interruptions.
fn add_notes(table: &mut Table, found: &Reconstruction, state: LogState) {
    let mut note = format!("{} records", number(state.held));
    if state.made > state.held {
        note += &format!(", the last ones of {}", number(state.made));
    }
    table.notes.push(note + ". Procedures that could not be patched, and other images, are not included.");
    let told = [
        (found.torn, "records were never completed, because their threads were killed"),
        (found.foreign, "records are of no record point of the images: the log is damaged"),
        (
            found.interruptions,
            "times control went elsewhere than the code says: to the handler of a signal, or records are missing",
        ),
    ];
    for (times, what) in told.into_iter().filter(|(times, _)| *times > 0) {
        table.notes.push(format!("{} {what}.", number(times)));
    }
}
