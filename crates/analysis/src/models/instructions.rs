//! Executed instructions, loads and stores.

use events::BlockId;
use machine::{InstructionCounts, UnitInstructions};

use super::{InstructionResults, UnitResults};
use crate::units::sorted_by_number;
use table::{Column, Kind, Table};

/// The counted events.
const EVENTS: [&str; 3] = ["instructions", "loads", "stores"];

impl InstructionResults for InstructionCounts {
    const WHAT: &str = "Instructions";

    fn unit_results(&self) -> Vec<UnitResults> {
        let results = |unit: &UnitInstructions| UnitResults {
            number: unit.number,
            thread: unit.thread,
            row: vec![unit.instructions, unit.loads, unit.stores],
        };
        InstructionCounts::units(self).iter().map(results).collect()
    }

    fn units(&self, name: &str, title: &str) -> Table {
        let columns = [("unit", Kind::Count), ("thread", Kind::Count)];
        let mut table = Table::new(name, title, &columns);
        table.columns.extend(InstructionResults::columns(self));
        for unit in sorted_by_number(InstructionCounts::units(self), |unit| unit.number) {
            let counts = [unit.number, unit.thread.into(), unit.instructions, unit.loads, unit.stores];
            table.row(counts.map(Into::into).into());
        }
        table
    }

    fn columns(&self) -> Vec<Column> {
        EVENTS.map(|name| Column { name: name.into(), kind: Kind::Count }).into()
    }

    fn weight(&self, row: &[u64]) -> u64 {
        row[0]
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        let executions = Some(self.executions(block)).filter(|&executions| executions > 0)?;
        let row = |access: &[bool; 2]| {
            vec![executions, executions * u64::from(access[0]), executions * u64::from(access[1])]
        };
        Some(self.accesses(block).iter().map(row).collect())
    }
}
