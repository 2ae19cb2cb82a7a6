//! Counts of a recorded transfer: instructions and misses by function, and by component of the kernel.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;

use analysis::components::Components;
use analysis::models::{self, OwnRows};
use analysis::names::{FunctionName, Names};
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder, Selection};
use machine::{Caches, Machine};
use table::{Kind, Table, Value};
use trace::Trace;

use super::{LinuxStep, LinuxStudyError};

/// The machine whose caches the transfers use: the 21164A of the guest's time, with three levels.
pub const MACHINE: &str = "alphastation500";

/// The counted part of a transfer, as the program reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferredPart {
    /// Bytes of the application.
    pub bytes: u64,
    /// Packets that the sender's interface sent, and their bytes.
    pub sent: [u64; 2],
    /// The same of what it received.
    pub received: [u64; 2],
    /// Calls with MSG_ZEROCOPY of which the kernel copied the data, and all of them.
    pub copied: Option<[u64; 2]>,
}

impl TransferredPart {
    /// The last part of the program's output; None if it is not right.
    pub fn last(output: &str) -> Option<TransferredPart> {
        let line = output.lines().last()?;
        let (bytes, _) = line.split_once(": ")?.1.split_once(" bytes right; ")?;
        let pair = |what: &str| {
            let numbers = line.split_once(what)?.1;
            let (packets, rest) = numbers.split_once(" packets, ")?;
            Some([packets.parse().ok()?, rest.split_once(" bytes")?.0.parse().ok()?])
        };
        let copied = || {
            let (copied, calls) =
                line.rsplit_once("; ")?.1.strip_suffix(" calls copied")?.split_once(" of ")?;
            Some([copied.parse().ok()?, calls.parse().ok()?])
        };
        let (sent, received) = (pair("; sent ")?, pair("; received ")?);
        Some(TransferredPart { bytes: bytes.parse().ok()?, sent, received, copied: copied() })
    }

    /// Packets that carry data or acknowledge it, in both directions.
    pub fn packets(&self) -> u64 {
        self.sent[0] + self.received[0]
    }
}

/// Sums of a component, by [`LinuxTransfer::columns`].
pub type ComponentCounts = (String, Vec<u64>);

/// The counts of a transfer.
#[derive(Clone, Debug)]
pub struct LinuxTransfer {
    /// The step of the ladder.
    pub step: LinuxStep,
    /// What was transferred.
    pub part: TransferredPart,
    /// The names of what is counted; instructions are the first.
    pub columns: Vec<String>,
    /// Counts by function, the most instructions first.
    pub functions: Vec<(FunctionName, Vec<u64>)>,
    /// Counts by component, in the order of their names.
    pub components: Vec<ComponentCounts>,
    /// Caches and TLBs with their accesses and misses.
    pub structures: Table,
}

impl LinuxTransfer {
    /// Sums of a component; zeros if nothing of it was executed.
    pub fn component(&self, name: &str) -> Vec<u64> {
        let found = self.components.iter().find(|(component, _)| component == name);
        found.map_or_else(|| vec![0; self.columns.len()], |(_, counts)| counts.clone())
    }

    /// Sums of everything.
    pub fn total(&self) -> Vec<u64> {
        sum(self.columns.len(), self.functions.iter().map(|(_, counts)| counts))
    }
}

fn sum<'a>(columns: usize, rows: impl Iterator<Item = &'a Vec<u64>>) -> Vec<u64> {
    let mut total = vec![0; columns];
    rows.for_each(|row| total.iter_mut().zip(row).for_each(|(total, value)| *total += value));
    total
}

/// Counts a trace, which has the counted part alone.
pub fn count(path: &Path, step: LinuxStep, part: TransferredPart) -> Result<LinuxTransfer, LinuxStudyError> {
    let trace = Trace::open(path)?;
    let names = Names::of_trace(&trace);
    let (dictionary, accesses) = (Dictionary::new(&trace, &names), Accesses::new(&trace));
    let filter = Filter::new(&Selection::default(), &dictionary)
        .map_err(|error| LinuxStudyError::Trace(error.to_string()))?;
    let replay =
        Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order: ReplayOrder::Time };
    let mut caches = Caches::new(&Machine::find(MACHINE).expect("the machine is built in"));
    let Ok(problems) = replay.run_consumer(&mut caches, &mut |_| Ok::<(), Infallible>(()));
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.into());
    }
    let structures = models::structures(&[("", models::SummedOverProcesses(vec![&caches]))], false);
    let table =
        models::by(OwnRows::Function, &[("", &caches)], &trace).pop().expect("a table of the machine");
    let rules = Components::find(Path::new("linux")).expect("built-in rules");
    Ok(LinuxTransfer::new(step, part, &table, structures, &rules))
}

impl LinuxTransfer {
    /// Sums up a table of functions, whose columns of counts may be any.
    fn new(
        step: LinuxStep,
        part: TransferredPart,
        table: &Table,
        structures: Table,
        rules: &Components,
    ) -> LinuxTransfer {
        let counted: Vec<usize> =
            (0..table.columns.len()).filter(|&index| table.columns[index].kind == Kind::Count).collect();
        let rows = &table.rows[..table.rows.len() - usize::from(table.total)];
        let text = |value: &Value| match value {
            Value::Text(text) => text.clone(),
            _ => String::new(),
        };
        let number = |value: &Value| match value {
            Value::Integer(count) => (*count).try_into().unwrap_or(0),
            _ => 0,
        };
        let of_row = |row: &Vec<Value>| {
            let name = FunctionName { function: text(&row[0]), image: text(&row[1]) };
            (name, counted.iter().map(|&index| number(&row[index])).collect::<Vec<u64>>())
        };
        let mut functions: Vec<_> = rows.iter().map(of_row).collect();
        functions.sort_by(|a, b| b.1[0].cmp(&a.1[0]).then_with(|| a.0.cmp(&b.0)));
        let mut components: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (name, counts) in &functions {
            let sums = components.entry(rules.of(name, None).to_string()).or_default();
            sums.resize(counts.len(), 0);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let columns = counted.iter().map(|&index| table.columns[index].name.clone()).collect();
        LinuxTransfer {
            step,
            part,
            columns,
            functions,
            components: components.into_iter().collect(),
            structures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::STEPS;
    use super::*;

    #[test]
    fn the_last_part_must_be_right() {
        let line = "part 1: 1000 bytes right; sent 3 packets, 1300 bytes; received 2 packets, 132 bytes";
        let part = TransferredPart { bytes: 1000, sent: [3, 1300], received: [2, 132], copied: None };
        assert_eq!(TransferredPart::last(&format!("part 0: 5 bytes right\n{line}\n")), Some(part));
        assert_eq!(part.packets(), 5);
        let copied = format!("{line}; 0 of 16 calls copied");
        assert_eq!(TransferredPart::last(&copied), Some(TransferredPart { copied: Some([0, 16]), ..part }));
        for wrong in ["", &line.replace("right", "WRONG"), "part 1: 1000 bytes right; sent"] {
            assert_eq!(TransferredPart::last(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn functions_are_summed_up_by_component() {
        let mut table = Table::new(
            "functions",
            "",
            &[
                ("function", Kind::Text),
                ("image", Kind::Text),
                ("share", Kind::Percent(1)),
                ("instructions", Kind::Count),
                ("dcache misses", Kind::Count),
            ],
        );
        let rows: [(&str, &str, u64, u64); 4] = [
            ("__copy_user", "vmlinux", 10, 4),
            ("do_csum", "vmlinux", 30, 1),
            ("csum_partial", "vmlinux", 5, 0),
            ("main", "transfer", 7, 2),
        ];
        for (function, image, instructions, misses) in rows {
            table.row(vec![function.into(), image.into(), 1.0.into(), instructions.into(), misses.into()]);
        }
        table.total_row(vec![Value::Missing, "total".into(), 100.0.into(), 52_u64.into(), 7_u64.into()]);
        let rules = Components::find(Path::new("linux")).unwrap();
        let transfer = LinuxTransfer::new(
            STEPS[0],
            TransferredPart::default(),
            &table,
            Table::new("structures", "", &[]),
            &rules,
        );
        assert_eq!(transfer.columns, ["instructions", "dcache misses"]);
        assert_eq!(transfer.component("checksum"), [35, 1]);
        assert_eq!(transfer.component("copy"), [10, 4]);
        assert_eq!(transfer.component("transfer"), [7, 2]);
        assert_eq!(transfer.component("TCP"), [0, 0]);
        assert_eq!(transfer.total(), [52, 7]);
        assert_eq!(transfer.functions[0].0.function, "do_csum");
    }
}
