//! Tables of parts of an execution: of the classes of units of work, and of what is outside of units.

use std::process::ExitCode;

use analysis::models::{ClassResults, DividedByClass, InstructionResults, tables_of_classes};
use machine::MergeableModel;
use serde::{Deserialize, Serialize};
use table::Table;

use crate::console::Console;
use crate::simulation::{Simulated, Simulation};

/// A part of an execution, and its name.
pub type ClassPart<P> = (String, P);

/// A table before its rows are sorted and shortened.
#[derive(Serialize, Deserialize)]
pub(super) enum RowTable {
    /// A table of everything.
    Whole(Table),
    /// A table for each class, each with its first rows; and the table of the whole execution.
    OfClasses(Vec<ClassPart<Table>>, Table),
}

impl RowTable {
    /// Whether it is one of parts of the execution.
    pub fn is_divided(&self) -> bool {
        matches!(self, RowTable::OfClasses(..))
    }

    /// The table of everything.
    pub fn whole(self) -> Table {
        let (RowTable::Whole(table) | RowTable::OfClasses(_, table)) = self;
        table
    }

    /// The table with sorted and shortened rows.
    pub fn arranged(self, console: &dyn Console) -> anyhow::Result<Table> {
        let arrange = |mut table: Table| {
            console.arrange(std::slice::from_mut(&mut table))?;
            Ok(table)
        };
        match self {
            RowTable::Whole(table) => arrange(table),
            RowTable::OfClasses(parts, whole) => {
                let parts = parts.into_iter().map(|(class, table)| Ok((class, arrange(table)?)));
                Ok(tables_of_classes(parts.collect::<anyhow::Result<_>>()?, whole))
            }
        }
    }
}

/// A table of all classes for each machine, with these names. `tables` makes those of a part of the execution on machines.
pub(super) fn divided_tables<M: InstructionResults + MergeableModel>(
    divided: &DividedByClass<M>,
    names: &[&str],
    tables: impl Fn(&[(&str, &ClassResults<M>)]) -> Vec<Table>,
) -> Vec<RowTable> {
    let whole: Vec<_> = (0..names.len()).map(|machine| divided.whole(machine)).collect();
    let whole: Vec<_> = names.iter().copied().zip(&whole).collect();
    let of_machine = |(machine, whole): (usize, Table)| {
        let parts = divided.parts(machine).into_iter();
        let parts = parts.map(|part| (part.name.clone(), tables(&[(names[machine], &part)]).remove(0)));
        RowTable::OfClasses(parts.collect(), whole)
    };
    tables(&whole).into_iter().enumerate().map(of_machine).collect()
}

/// Writes a table of all classes for each machine. `tables` makes those of a part of the execution on machines.
pub fn write_divided<S, M: InstructionResults + MergeableModel>(
    simulation: &Simulation,
    simulated: &Simulated<S>,
    divided: &DividedByClass<M>,
    tables: impl Fn(&[(&str, &ClassResults<M>)]) -> Vec<Table>,
) -> anyhow::Result<ExitCode> {
    simulated.check_classes(simulation, &divided.classes)?;
    simulated.write_rows(simulation, divided_tables(divided, &simulation.machine_names(), tables))
}

/// Writes a table of these parts of the execution, each with the name of its class; `whole` is the same of everything. Each class has
/// its first rows.
pub fn write_classes<S>(
    simulation: &Simulation,
    simulated: &Simulated<S>,
    parts: impl Iterator<Item = ClassPart<Table>>,
    whole: Table,
) -> anyhow::Result<ExitCode> {
    simulated.write_rows(simulation, vec![RowTable::OfClasses(parts.collect(), whole)])
}

impl<S> Simulated<S> {
    /// Writes tables whose rows are sorted and shortened each by itself. Returns the exit status.
    pub(super) fn write_rows(
        &self,
        simulation: &Simulation,
        tables: Vec<RowTable>,
    ) -> anyhow::Result<ExitCode> {
        let console = simulation.console;
        let tables = tables.into_iter().map(|table| table.arranged(console));
        self.write_as_they_are(console, tables.collect::<anyhow::Result<_>>()?)?;
        self.finish(simulation)
    }
}
