//! Counts of a recorded transfer: instructions and misses by function, and by component of the kernel.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use analysis::components::Components;
use analysis::models::{self, InstructionResults};
use analysis::names::{FunctionName, Names};
use analysis::replay::{Accesses, Dictionary, Filter, Replay, ReplayOrder, Selection};
use events::BlockId;
use machine::{Caches, Machine};
use table::Table;
use trace::Trace;

use super::LinuxStep;
use crate::system::StudyError;
use crate::system::measure::whole;

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
    /// The part that is counted.
    pub part: TransferredPart,
    /// The names of what is counted; instructions are the first.
    pub columns: Vec<String>,
    /// Counts by function, the most instructions first.
    pub functions: Vec<(Arc<FunctionName>, Vec<u64>)>,
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
        let mut total = vec![0; self.columns.len()];
        self.functions.iter().for_each(|(_, counts)| add(&mut total, counts));
        total
    }
}

/// Counts a trace, which has the counted part alone.
pub fn count(path: &Path, step: LinuxStep, part: TransferredPart) -> Result<LinuxTransfer, StudyError> {
    let trace = Trace::open(path)?;
    let names = Names::of_trace(&trace);
    let (dictionary, accesses) = (Dictionary::new(&trace, &names), Accesses::new(&trace));
    let filter = Filter::new(&Selection::default(), &dictionary)
        .map_err(|error| StudyError::Trace(error.to_string()))?;
    let replay =
        Replay { dictionary: &dictionary, accesses: &accesses, filter: &filter, order: ReplayOrder::Time };
    let mut caches = Caches::new(&Machine::find(MACHINE).expect("the machine is built in"));
    let Ok(problems) = replay.run_consumer(&mut caches, &mut |_| Ok::<(), Infallible>(()));
    whole(problems)?;
    let columns: Vec<String> = caches.columns().into_iter().map(|column| column.name).collect();
    let mut functions: HashMap<Arc<FunctionName>, Vec<u64>> = HashMap::new();
    for (id, block) in trace.blocks().iter().enumerate() {
        let rows = caches.rows(id as BlockId).into_iter().flatten();
        for (address, row) in block.addresses().zip(rows) {
            let name = names.name(block.image, address);
            add(functions.entry(name).or_insert_with(|| vec![0; columns.len()]), &row);
        }
    }
    Ok(LinuxTransfer {
        step,
        part,
        components: components(&functions, &Components::find(Path::new("linux")).expect("built-in rules")),
        functions: sorted(functions),
        structures: models::structures(&[("", models::SummedOverProcesses(vec![&caches]))], false),
        columns,
    })
}

/// Sums of components, by their names.
fn components(functions: &HashMap<Arc<FunctionName>, Vec<u64>>, rules: &Components) -> Vec<ComponentCounts> {
    let mut components: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (name, counts) in functions {
        let sums = components.entry(rules.of(name, None).to_string()).or_default();
        sums.resize(counts.len(), 0);
        add(sums, counts);
    }
    components.into_iter().collect()
}

/// Functions, those with the most instructions first.
fn sorted(functions: HashMap<Arc<FunctionName>, Vec<u64>>) -> Vec<(Arc<FunctionName>, Vec<u64>)> {
    let mut sorted: Vec<_> = functions.into_iter().collect();
    sorted.sort_by(|a, b| b.1[0].cmp(&a.1[0]).then_with(|| a.0.cmp(&b.0)));
    sorted
}

fn add(sum: &mut [u64], more: &[u64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
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
        let rows: [(&str, &str, u64, u64); 4] = [
            ("__copy_user", "vmlinux", 10, 4),
            ("do_csum", "vmlinux", 30, 1),
            ("csum_partial", "vmlinux", 5, 0),
            ("main", "transfer", 7, 2),
        ];
        let of_row = |(function, image, instructions, misses): (&str, &str, u64, u64)| {
            let name = FunctionName { function: function.into(), image: image.into() };
            (Arc::new(name), vec![instructions, misses])
        };
        let functions = rows.map(of_row).into();
        let transfer = LinuxTransfer {
            step: STEPS[0],
            part: TransferredPart::default(),
            columns: ["instructions", "dcache misses"].map(String::from).into(),
            components: components(&functions, &Components::find(Path::new("linux")).unwrap()),
            functions: sorted(functions),
            structures: Table::new("structures", "", &[]),
        };
        assert_eq!(transfer.columns, ["instructions", "dcache misses"]);
        assert_eq!(transfer.component("checksum"), [35, 1]);
        assert_eq!(transfer.component("copy"), [10, 4]);
        assert_eq!(transfer.component("transfer"), [7, 2]);
        assert_eq!(transfer.component("TCP"), [0, 0]);
        assert_eq!(transfer.total(), [52, 7]);
        assert_eq!(transfer.functions[0].0.function, "do_csum");
    }
}
