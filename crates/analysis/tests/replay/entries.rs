//! Results by mode, by why the kernel was entered and by system call, on random executions whose reasons are known.

use std::collections::BTreeMap;
use std::convert::Infallible;

use events::record::{CALLSYS, ExceptionKind, Mark};
use machine::InstructionCounts;
use pathlength_analysis::call_tree::{EntryRows, WithCallTree, entry_tables};
use pathlength_analysis::replay::{Replay, ReplayOrder, Selection};
use table::{Table, Value};
use trace::ExecutionMode;

use crate::made::{Item, Made, Thread};

const PALCODE: u64 = 0xffff_fc00_0000_0000;
const KERNEL: u64 = 0xffff_fc00_0031_0000;
const PROGRAM: u64 = 0x1000;
const RETSYS: u32 = 0x3d;
const RTI: u32 = 0x3f;
/// Blocks of each mode, of one instruction, two and so on.
const BLOCKS: usize = 3;

/// An execution that is being made, with what is executed for each reason.
#[derive(Default)]
struct Maker {
    random: fastrand::Rng,
    items: Vec<Item>,
    entries: BTreeMap<String, u64>,
    /// By reason and mode.
    instructions: BTreeMap<(String, &'static str), u64>,
}

impl Maker {
    fn execute(&mut self, mode: ExecutionMode, reason: &str) {
        let block = self.random.usize(..BLOCKS);
        self.items.push(Item::Block(mode as usize * BLOCKS + block, vec![]));
        *self.instructions.entry((reason.into(), mode.name())).or_default() += block as u64 + 1;
    }

    fn mark(&mut self, mark: Mark) {
        self.items.push(Item::Mark(mark));
    }

    /// The kernel works for a reason, and is interrupted now and then.
    fn in_kernel(&mut self, reason: &str, depth: u32) {
        *self.entries.entry(reason.into()).or_default() += 1;
        self.execute(ExecutionMode::Pal, reason);
        self.mark(Mark::PalReturn);
        for _ in 0..self.random.u32(1..4) {
            self.execute(ExecutionMode::Kernel, reason);
            if depth < 3 && self.random.u32(..3) == 0 {
                self.exception(depth + 1);
            }
            if self.random.u32(..4) == 0 {
                // A call of PALcode that enters nothing.
                self.mark(Mark::PalCall(0x35));
                self.execute(ExecutionMode::Pal, reason);
                self.mark(Mark::PalReturn);
            }
        }
        self.mark(Mark::PalCall(if reason.starts_with("call") { RETSYS } else { RTI }));
        self.execute(ExecutionMode::Pal, reason);
        self.mark(Mark::PalReturn);
    }

    fn exception(&mut self, depth: u32) {
        let kinds = [ExceptionKind::ClockInterrupt, ExceptionKind::PageFault];
        let kind = kinds[self.random.usize(..kinds.len())];
        self.mark(Mark::Exception(kind));
        self.in_kernel(kind.name(), depth);
    }

    fn program(&mut self) {
        for _ in 0..self.random.u32(1..30) {
            self.execute(ExecutionMode::User, "(programs)");
            match self.random.u32(..4) {
                0 => self.exception(0),
                1 => {
                    let number = self.random.u32(..4);
                    self.mark(Mark::SystemCall(number));
                    self.mark(Mark::PalCall(CALLSYS));
                    self.in_kernel(&call_name(number), 0);
                }
                _ => {}
            }
        }
    }
}

fn call_name(number: u32) -> String {
    format!("call{number}")
}

/// Counts of a trace, as tables.
fn table(made: &Made, rows: EntryRows, selection: &Selection) -> Table {
    made.replay(selection, |shown| {
        let header = shown.replay.dictionary.trace.header();
        let mut model = WithCallTree::of_entries(InstructionCounts::new(), header, call_name);
        let replay = Replay { order: ReplayOrder::Time, ..shown.replay };
        let Ok(problems) = replay.run_consumer(&mut model, &mut |_| Ok::<(), Infallible>(()));
        assert!(problems.is_empty());
        entry_tables(rows, &model, &[("", &model.model)]).remove(0)
    })
}

/// The value in a column of each row, without the total.
fn column(table: &Table, name: &str) -> BTreeMap<String, u64> {
    let at = table.columns.iter().position(|column| column.name == name).unwrap();
    let rows = &table.rows[..table.rows.len() - usize::from(table.total)];
    let cell = |row: &Vec<Value>| match (&row[0], &row[at]) {
        (Value::Text(name), Value::Integer(count)) => Some((name.clone(), *count as u64)),
        _ => None,
    };
    rows.iter().filter_map(cell).collect()
}

fn total(table: &Table, name: &str) -> u64 {
    let at = table.columns.iter().position(|column| column.name == name).unwrap();
    match table.rows.last().unwrap()[at] {
        Value::Integer(count) => count as u64,
        ref other => panic!("{other:?}"),
    }
}

fn made(seed: u64) -> (Made, Maker) {
    let addresses = [PROGRAM, KERNEL, PALCODE];
    let blocks = addresses.iter().flat_map(|start| {
        (0..BLOCKS).map(move |block| (start + 0x40 * block as u64, vec![0x47ff_041f; block + 1]))
    });
    let mut maker = Maker { random: fastrand::Rng::with_seed(seed), ..Maker::default() };
    let threads = (0..2).map(|process| {
        maker.program();
        Thread { process, items: std::mem::take(&mut maker.items) }
    });
    let threads = threads.collect();
    let palcode = Some((PALCODE, PALCODE + 0x1000));
    (Made { palcode, blocks: blocks.collect(), threads, ..Made::default() }, maker)
}

/// The expected sums, by the names of rows.
fn sums(maker: &Maker, name: impl Fn(&str, &'static str) -> String) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for ((reason, mode), count) in &maker.instructions {
        *sums.entry(name(reason, mode)).or_default() += count;
    }
    sums
}

#[test]
fn results_are_those_of_the_modes_and_reasons() {
    let is_call = |reason: &str| reason.starts_with("call");
    let mut nested = 0;
    for seed in 0..30 {
        let (made, maker) = made(seed);
        let all: u64 = maker.instructions.values().sum();
        let whole = Selection::default();
        let modes = table(&made, EntryRows::Mode, &whole);
        assert_eq!(column(&modes, "instructions"), sums(&maker, |_, mode| mode.into()), "{seed}");
        let reasons = table(&made, EntryRows::Reason, &whole);
        let reason_name =
            |reason: &str| if is_call(reason) { "system call".into() } else { reason.to_string() };
        assert_eq!(column(&reasons, "instructions"), sums(&maker, |reason, _| reason_name(reason)), "{seed}");
        let mut entries = BTreeMap::new();
        for (reason, count) in &maker.entries {
            *entries.entry(reason_name(reason)).or_default() += count;
        }
        assert_eq!(column(&reasons, "entries"), entries, "{seed}");
        let calls = table(&made, EntryRows::SystemCall, &whole);
        let call_row = |reason: &str| match reason {
            "(programs)" => reason.to_string(),
            _ if is_call(reason) => reason.to_string(),
            _ => "(no system call)".into(),
        };
        assert_eq!(column(&calls, "instructions"), sums(&maker, |reason, _| call_row(reason)), "{seed}");
        for table in [&modes, &reasons, &calls] {
            assert_eq!(total(table, "instructions"), all, "{seed}");
        }
        // A selected mode has what it has in the whole.
        let kernel = Selection { modes: vec![ExecutionMode::Kernel], ..Selection::default() };
        let kernel = table(&made, EntryRows::Reason, &kernel);
        let expected: u64 = maker
            .instructions
            .iter()
            .filter(|((_, mode), _)| *mode == "kernel")
            .map(|(_, count)| count)
            .sum();
        assert_eq!(total(&kernel, "instructions"), expected, "{seed}");
        nested += maker.entries.get("page fault").copied().unwrap_or(0);
    }
    assert!(nested > 50, "{nested}");
}
