//! Alignment faults as tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use events::BlockId;
use trace::Trace;

use super::{AccessedData, AlignmentFaults, AlignmentTotals, FaultCounts, Offsets, UnitFaults};
use crate::models::{ExecutionPart, InstructionResults, UnitResults};
use crate::names::FunctionName;
use crate::source::SourceFiles;
use crate::units::sorted_by_number;
use table::{Column, Kind, Table, Value};

/// Instructions with which Linux 6.1 for Alpha carries out an unaligned access, those of PALcode included: by `pathlength system
/// count` of loops with 1,000 and 3,000 unaligned `ldq` (227.4 of the kernel and 37.0 of PALcode each) or `stq` (226.0 and
/// 37.0). The kernel's messages on the first accesses of a program are not in it.
pub const FIX_UP_INSTRUCTIONS: u64 = 264;

/// The columns of every table of a model's results.
const COLUMNS: [&str; 4] = ["instructions", "faults", "made safe", "crossing"];

impl AlignmentTotals {
    pub(super) fn row(self) -> [u64; 4] {
        [self.instructions, self.faults, self.safe, self.crossing]
    }
}

impl InstructionResults for FaultCounts {
    const WHAT: &str = "Alignment faults";
    const UNIT_EVENT: usize = 1;

    fn unit_results(&self) -> Vec<UnitResults> {
        let results = |unit: &UnitFaults| UnitResults {
            number: unit.number,
            thread: unit.thread,
            row: unit.totals.row().into(),
        };
        self.units.iter().map(results).collect()
    }

    fn units(&self, name: &str, title: &str) -> Table {
        let mut table = Table::new(name, title, &[("unit", Kind::Count), ("thread", Kind::Count)]);
        table.columns.extend(InstructionResults::columns(self));
        for unit in sorted_by_number(&self.units, |unit| unit.number) {
            let numbers = [unit.number, unit.thread.into()].into_iter().chain(unit.totals.row());
            table.row(numbers.map(Into::into).collect());
        }
        table
    }

    fn columns(&self) -> Vec<Column> {
        COLUMNS.map(|name| Column { name: name.into(), kind: Kind::Count }).into()
    }

    fn weight(&self, row: &[u64]) -> u64 {
        row[1]
    }

    fn rows(&self, block: BlockId) -> Option<Vec<Vec<u64>>> {
        let executions = *self.executions.get(block as usize).filter(|&&executions| executions > 0)?;
        let checked = &self.blocks[block as usize];
        let mut rows = vec![vec![executions, 0, 0, 0]; checked.instructions as usize];
        for pair in &checked.pairs {
            rows[pair.index as usize][2] += executions;
        }
        for (access, counted) in self.accesses(block) {
            rows[access.index as usize][1] += counted.faults;
            rows[access.index as usize][3] += counted.crossing;
        }
        rows[0][1] += self.fix_ups.before(block).iter().sum::<u64>();
        Some(rows)
    }
}

/// One row: all that was executed.
pub fn summary(faults: &AlignmentFaults) -> Table {
    let columns = [
        ("instructions", Kind::Count),
        ("alignment faults", Kind::Count),
        ("per 1,000 instructions", Kind::Real(3)),
        ("per unit", Kind::Real(1)),
        ("made safe", Kind::Count),
        ("crossing", Kind::Count),
        ("fix-up instructions", Kind::Count),
        ("longer path", Kind::Percent(1)),
    ];
    let mut table = Table::new("summary", "Alignment faults", &columns);
    let totals = faults.counts.totals();
    let units = &faults.counts.units;
    let of_units: u64 = units.iter().map(|unit| unit.totals.faults).sum();
    let carried_out = faults.counts.fix_ups.instructions;
    // Those of a whole system are among its instructions.
    let (fix_ups, others) = match carried_out {
        0 => (totals.faults * FIX_UP_INSTRUCTIONS, totals.instructions),
        _ => (carried_out, totals.instructions - carried_out),
    };
    table.row(vec![
        totals.instructions.into(),
        totals.faults.into(),
        Value::from(1000.0 * totals.faults as f64 / totals.instructions as f64),
        Value::from(of_units as f64 / units.len() as f64),
        totals.safe.into(),
        totals.crossing.into(),
        fix_ups.into(),
        Value::from(100.0 * fix_ups as f64 / others as f64),
    ]);
    table.notes.push(match carried_out {
        0 => format!(
            "fix-up instructions: those of the operating system that carry the accesses out, {FIX_UP_INSTRUCTIONS} for each \
             as measured on Linux 6.1; longer path: what they add to the instructions executed."
        ),
        _ => "fix-up instructions: those of kernel and PALcode in this trace, from a fault until control returns; longer path: \
              what they add to the others."
            .into(),
    });
    table.notes.push(
        "made safe: accesses to unaligned types that the compiler divided into two; crossing: those of them \
         whose data lay in two quadwords."
            .into(),
    );
    table
}

/// The faults of a part of the execution in windows of the same number of instructions, those of all parts together.
pub fn over_time(faults: &AlignmentFaults, part: ExecutionPart) -> Table {
    let columns = [
        ("from instruction", Kind::Count),
        ("instructions", Kind::Count),
        ("faults", Kind::Count),
        ("per 1,000 instructions", Kind::Real(3)),
    ];
    let mut table = Table::new("rates", "Alignment faults over time", &columns);
    for (from, window) in faults.rates.windows(part) {
        table.row(vec![from.into(), window.instructions.into(), window.faults.into(), window.rate()]);
    }
    table
}

/// The rates in the same windows, with a column for each class of units of work, and one for what is outside of units.
pub fn rates_by_class(faults: &AlignmentFaults) -> Table {
    let mut table = Table::new("rates", "Alignment faults over time", &[("from instruction", Kind::Count)]);
    let mut rows: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    let parts = faults.parts();
    for (column, (name, part)) in parts.iter().enumerate() {
        table.columns.push(Column { name: name.clone(), kind: Kind::Real(3) });
        for (from, window) in faults.rates.windows(*part) {
            let row = rows.entry(from).or_insert_with(|| vec![Value::Missing; parts.len()]);
            row[column] = window.rate();
        }
    }
    for (from, rates) in rows {
        table.row(std::iter::once(from.into()).chain(rates).collect());
    }
    table
}

/// The properties that faults have in common.
#[derive(Clone, Debug, Default)]
struct FaultGroup {
    faults: u64,
    /// Executions of the faulting instructions.
    executions: u64,
    /// Whether one of them does not always fault.
    is_aligned_sometimes: bool,
    /// Sizes and kinds of the accesses: bytes, and whether they store.
    accesses: BTreeSet<(u8, bool)>,
    offsets: Offsets,
    /// Faults by data.
    data: BTreeMap<AccessedData, u64>,
    /// Faults by line.
    lines: BTreeMap<AlignmentLine, u64>,
}

/// A line of source, if it is known, and its function.
type AlignmentLine = (Option<(String, u32)>, Arc<FunctionName>);

impl FaultGroup {
    /// The size of the largest access.
    fn size(&self) -> u64 {
        self.accesses.iter().map(|&(size, _)| size.into()).max().unwrap_or(1)
    }

    /// "8-byte load, 8-byte store".
    fn describe_accesses(&self) -> String {
        let one = |&(size, is_store): &(u8, bool)| {
            format!("{size}-byte {}", if is_store { "store" } else { "load" })
        };
        self.accesses.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The key with most faults, and how many other keys there are.
fn most<K: Ord + Clone>(counts: &BTreeMap<K, u64>) -> Option<(K, usize)> {
    let (key, _) = counts.iter().max_by_key(|&(key, &count)| (count, std::cmp::Reverse(key)))?;
    Some((key.clone(), counts.len() - 1))
}

fn and_others(text: String, others: usize) -> String {
    match others {
        0 => text,
        1 => format!("{text} and another"),
        _ => format!("{text} and {others} others"),
    }
}

impl AlignmentFaults {
    /// Divides the faults of a part of the execution into groups. `key` is given the line and the data of faults. Whether an
    /// instruction always faults is a matter of all its executions, in whatever part.
    fn groups<K: Ord>(
        &self,
        part: ExecutionPart,
        trace: &Trace,
        key: impl Fn(&AlignmentLine, AccessedData) -> K,
    ) -> Vec<(K, FaultGroup)> {
        let mut groups: BTreeMap<K, FaultGroup> = BTreeMap::new();
        for ((id, number), by_data) in self.accesses(part) {
            let (block, executions) = (&trace.blocks()[id as usize], self.counts.executions[id as usize]);
            let Some((access, counted)) = self.counts.accesses(id).nth(number) else { continue };
            let line = self.line(block, block.address_of(access.index as usize));
            for (number, (&data, of_data)) in by_data.iter().enumerate() {
                let group = groups.entry(key(&line, data)).or_default();
                group.faults += of_data.faults;
                // Once for an instruction in a group, whatever it accesses.
                group.executions += if number == 0 { executions } else { 0 };
                group.is_aligned_sometimes |= counted.faults < executions;
                group.accesses.insert((access.size, access.is_store));
                group.offsets.join(of_data.offsets);
                *group.data.entry(data).or_default() += of_data.faults;
                *group.lines.entry(line.clone()).or_default() += of_data.faults;
            }
        }
        let mut groups: Vec<(K, FaultGroup)> = groups.into_iter().collect();
        groups.sort_by(|(a, of_a), (b, of_b)| of_b.faults.cmp(&of_a.faults).then_with(|| a.cmp(b)));
        groups
    }

    /// The lines whose accesses a whole system's kernel has carried out, with their faults.
    fn carried_out(&self, trace: &Trace) -> Vec<(AlignmentLine, u64)> {
        let of_block = |(id, block): (BlockId, &events::Block)| {
            let length = block.instruction_set.code_alignment();
            let distances = (1..).map(move |count| count * length);
            let lines = distances
                .zip(self.counts.fix_ups.before(id))
                .map(|(distance, &faults)| (self.line(block, block.address.wrapping_sub(distance)), faults));
            lines.collect::<Vec<_>>()
        };
        (0..).zip(trace.blocks()).flat_map(of_block).collect()
    }

    /// The line of an instruction.
    fn line(&self, block: &events::Block, address: u64) -> AlignmentLine {
        let location = self.names.location(block.image, address);
        let location = location.map(|at| (at.file, at.line.unwrap_or(0)));
        (location, self.names.name(block.image, address))
    }

    /// A change that would avoid the faults.
    fn suggestion(&self, group: &FaultGroup) -> String {
        let size = group.size();
        let variable = match most(&group.data) {
            Some(((array, None), 0)) => self.memory.arrays()[array as usize].variable.as_ref(),
            _ => None,
        };
        let offset = group.offsets.always(size).filter(|_| !group.is_aligned_sometimes);
        match (variable, offset) {
            (Some(variable), _) if !variable.address.is_multiple_of(size) => {
                format!("align {} to {size}", variable.name)
            }
            (_, Some(offset)) => {
                format!("always {offset} past a multiple of {size}: insert {}", size - offset)
            }
            (_, None) => "any address: use a packed type, or memcpy".into(),
        }
    }
}

/// The lines that fault, those with most faults first, with their source and what would avoid the faults.
pub fn by_line(faults: &AlignmentFaults, trace: &Trace) -> Table {
    let columns = [
        ("line", Kind::Text),
        ("function", Kind::Text),
        ("faults", Kind::Count),
        ("share", Kind::Percent(1)),
        ("of executions", Kind::Percent(1)),
        ("access", Kind::Text),
        ("aligned to", Kind::Count),
        ("data", Kind::Text),
        ("suggestion", Kind::Text),
        ("source", Kind::Code),
    ];
    let mut table = Table::new("lines", "Lines with alignment faults", &columns);
    let all = faults.counts.totals().faults as f64;
    let mut source = SourceFiles::new(&[]);
    let mut groups = faults.groups(ExecutionPart::Whole, trace, |line, _| line.clone());
    for (line, faults) in faults.carried_out(trace) {
        match groups.iter_mut().find(|(known, _)| *known == line) {
            Some((_, group)) => group.faults += faults,
            None => groups.push((line, FaultGroup { faults, ..FaultGroup::default() })),
        }
    }
    groups.sort_by(|(a, of_a), (b, of_b)| of_b.faults.cmp(&of_a.faults).then_with(|| a.cmp(b)));
    for ((location, function), group) in groups {
        // Of what a kernel has carried out, the access is not known.
        let is_known = !group.accesses.is_empty();
        let known = |value: Value| if is_known { value } else { Value::Missing };
        let text = location.as_ref().and_then(|(file, line)| source.line(file, *line));
        let data = most(&group.data)
            .map(|((array, member), others)| and_others(faults.memory.name(array, member), others));
        table.row(vec![
            location.map(|(file, line)| format!("{file}:{line}")).into(),
            function.function.clone().into(),
            group.faults.into(),
            Value::from(100.0 * group.faults as f64 / all),
            known(Value::from(100.0 * group.faults as f64 / group.executions as f64)),
            known(group.describe_accesses().into()),
            known(group.offsets.alignment().into()),
            data.into(),
            known(faults.suggestion(&group).into()),
            text.map(|text| text.trim().to_owned()).into(),
        ]);
    }
    table
}

/// The data whose accesses fault in a part of the execution, those with most faults first: variables, blocks of the heap, stacks.
pub fn by_data(faults: &AlignmentFaults, part: ExecutionPart, trace: &Trace) -> Table {
    let columns = [
        ("data", Kind::Text),
        ("where", Kind::Text),
        ("type", Kind::Text),
        ("faults", Kind::Count),
        ("share", Kind::Percent(1)),
        ("access", Kind::Text),
        ("aligned to", Kind::Count),
        ("accessed by", Kind::Text),
        ("suggestion", Kind::Text),
    ];
    let mut table = Table::new("data", "Data with alignment faults", &columns);
    let all = faults.rates.totals(part).faults as f64;
    for ((array, member), group) in faults.groups(part, trace, |_, data| data) {
        let name = faults.memory.name(array, member);
        let array = &faults.memory.arrays()[array as usize];
        let line = most(&group.lines).map(|((location, function), others)| {
            let line = location.map_or(function.function.clone(), |(file, line)| format!("{file}:{line}"));
            and_others(line, others)
        });
        table.row(vec![
            name.into(),
            array.location.clone().into(),
            array.shape.clone().into(),
            group.faults.into(),
            Value::from(100.0 * group.faults as f64 / all),
            group.describe_accesses().into(),
            group.offsets.alignment().into(),
            line.into(),
            faults.suggestion(&group).into(),
        ]);
    }
    table
}
