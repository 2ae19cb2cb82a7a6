//! The summary is what an obviously right recount finds, on random traces and filters.

use std::collections::{BTreeMap, BTreeSet};

use events::record::{Mark, Shape};
use isa::Flags;
use pathlength_analysis::mix;
use pathlength_analysis::replay::Selection;
use pathlength_analysis::replay::summary::{Summary, SummarySettings};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use table::{Table, Value};

use crate::made::{Item, Made, Thread};

/// An access: address, bytes, whether it writes.
pub type Access = (u64, u64, bool);

/// An instruction that was executed.
#[derive(Clone, Debug)]
pub struct One {
    pub process: u32,
    pub thread: usize,
    pub pc: u64,
    pub word: u32,
    pub access: Option<Access>,
    pub is_selected: bool,
    /// Whether it is the last of a block.
    is_last: bool,
    /// Whether the next block of the thread follows, and nothing is between.
    is_followed: bool,
}

/// Everything that was executed, instruction by instruction.
pub fn expand(made: &Made, selection: &Selection) -> Vec<One> {
    let mut all = Vec::new();
    for (thread, Thread { process, items }) in made.threads.iter().enumerate() {
        let mut ones: Vec<One> = Vec::new();
        let mut unit = None;
        for item in items {
            match item {
                Item::Mark(Mark::UnitBegins(number)) => unit = Some(*number),
                Item::Mark(Mark::UnitEnds(_) | Mark::UnitLeft(_) | Mark::UnitCut(_)) => unit = None,
                Item::Mark(Mark::Gap | Mark::Discontinuity) => {
                    ones.iter_mut().last().into_iter().for_each(|last| last.is_followed = false);
                }
                Item::Mark(_) => {}
                Item::Block(block, addresses) => {
                    let (address, words) = &made.blocks[*block];
                    let mut addresses = addresses.iter();
                    for (pc, &word) in (*address..).step_by(4).zip(words) {
                        let access = isa::decode(word).and_then(|instruction| {
                            let size = u64::from(instruction.access_size()?);
                            Some((*addresses.next().unwrap(), size, instruction.op.is(Flags::STORE)))
                        });
                        let number = ones.len() as u64 + 1;
                        let is_selected = is_selected(selection, pc, number, unit, access);
                        let (process, is_last) = (*process, false);
                        ones.push(One {
                            process,
                            thread,
                            pc,
                            word,
                            access,
                            is_selected,
                            is_last,
                            is_followed: true,
                        });
                    }
                    ones.iter_mut().last().into_iter().for_each(|last| last.is_last = true);
                }
            }
        }
        ones.iter_mut().last().into_iter().for_each(|last| last.is_followed = false);
        all.extend(ones);
    }
    all
}

fn is_selected(
    selection: &Selection,
    pc: u64,
    number: u64,
    unit: Option<u64>,
    access: Option<Access>,
) -> bool {
    let touches = |(address, size, _): Access| {
        let range = selection.data_range.as_ref().unwrap();
        (address..address + size).any(|byte| range.contains(&byte))
    };
    selection.range.as_ref().is_none_or(|range| range.contains(&pc))
        && selection.instructions.as_ref().is_none_or(|range| range.contains(&number))
        && selection.units.as_ref().is_none_or(|units| unit.is_some_and(|unit| units.contains(&unit)))
        && (selection.data_range.is_none() || access.is_some_and(touches))
}

/// A load, a store, or something else that does not transfer control.
fn word() -> impl Strategy<Value = u32> {
    let opcode = proptest::sample::select(vec![0x0au32, 0x0b, 0x0e, 0x28, 0x29, 0x2a, 0x2c, 0x2d]);
    let other =
        proptest::sample::select(vec![0x47f0_0410, 0x47ff_041f, 0x23de_ffc0, 0x6000_4000, 0x0400_0000]);
    prop_oneof![
        3 => (opcode, 0u32..32).prop_map(|(opcode, register)| opcode << 26 | register << 21 | 30 << 16),
        2 => other,
    ]
}

/// What may end a block: branches, a call, a return, a jump, a system call, or nothing of the kind.
const LAST: [u32; 8] =
    [0xe420_0002, 0xc3e0_0003, 0xd340_0010, 0x6bfa_8001, 0x6be0_0000, 0x83, 0x47f0_0410, 0xe420_0000];

pub fn made() -> impl Strategy<Value = Made> {
    let block = (0u64..0x120, vec(word(), 0..6), proptest::sample::select(LAST.to_vec()));
    let block = block.prop_map(|(slot, mut words, last)| {
        words.push(last);
        (0x1000 + 4 * slot, words)
    });
    let mark = prop_oneof![
        Just(Mark::Gap),
        Just(Mark::Discontinuity),
        (0u32..5).prop_map(Mark::SystemCall),
        (0u64..2).prop_map(Mark::UnitBegins),
        (0u64..4).prop_map(Mark::UnitEnds),
    ];
    let address = prop_oneof![0x8000u64..0x8080, 0x2_0000u64..0x2_4000, 0x8ff0u64..0x9010];
    let item = prop_oneof![
        6 => (any::<usize>(), vec(address, 8)).prop_map(|(block, addresses)| Item::Block(block, addresses)),
        1 => mark.prop_map(Item::Mark),
    ];
    let thread = (0u32..2, vec(item, 0..60)).prop_map(|(process, items)| Thread { process, items });
    (vec(block, 1..8), vec(thread, 1..4)).prop_map(|(mut blocks, mut threads)| {
        let mut seen = BTreeSet::new();
        blocks.retain(|(address, _)| seen.insert(*address));
        // Each execution gets as many addresses as its block has accesses.
        for thread in &mut threads {
            let mut unit = 0;
            for item in &mut thread.items {
                match item {
                    Item::Block(block, addresses) => {
                        *block %= blocks.len();
                        addresses
                            .truncate(Shape::new(&isa::Alpha, &blocks[*block].1, false).accesses as usize);
                    }
                    // Their numbers rise, by more than one where other threads do some.
                    Item::Mark(Mark::UnitBegins(number)) => {
                        unit += *number + 1;
                        *number = unit;
                    }
                    Item::Mark(_) => {}
                }
            }
        }
        Made { blocks, threads, ..Made::default() }
    })
}

pub fn selection() -> impl Strategy<Value = Selection> {
    let range = |from: u64, to: u64| (from..to, from..to).prop_map(|(a, b)| a.min(b)..=a.max(b));
    let all = (
        weighted(0.3, range(0x1000, 0x1480)),
        weighted(0.2, range(0x7ff0, 0x9020)),
        weighted(0.3, range(0, 200)),
        weighted(0.3, range(0, 12)),
    );
    all.prop_map(|(range, data_range, instructions, units)| Selection {
        range,
        data_range,
        instructions,
        units,
        ..Selection::default()
    })
}

fn summary(made: &Made, selection: &Selection, options: SummarySettings) -> Vec<Table> {
    made.replay(selection, |shown| {
        let mut summary = Summary::new(shown.replay.dictionary, shown.replay.accesses, options);
        shown.to(&mut summary);
        summary.tables(&|number| number.to_string())
    })
}

/// The cells of a table, as text.
fn cells(tables: &[Table], name: &str) -> Vec<Vec<String>> {
    let table = tables.iter().find(|table| table.name == name).unwrap();
    let cell = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:.6}"),
        Value::Missing => String::new(),
    };
    table.rows.iter().map(|row| row.iter().map(cell).collect()).collect()
}

pub fn is_conditional(word: u32) -> bool {
    isa::decode(word).is_some_and(|one| one.op.is(Flags::CONDITIONAL))
}

fn is_transfer(word: u32) -> bool {
    isa::decode(word).is_some_and(|one| one.op.is(Flags::BRANCH))
}

/// Whether control went elsewhere after this instruction than to the next address.
pub fn went_elsewhere(all: &[One], index: usize) -> bool {
    all[index].is_followed && all[index + 1].pc != all[index].pc + 4
}

/// The lengths of runs, and of basic blocks.
fn lengths(all: &[One]) -> [Vec<u64>; 2] {
    let (mut runs, mut blocks) = (Vec::new(), Vec::new());
    let (mut run, mut block) = (0, 0);
    for (index, one) in all.iter().enumerate() {
        let (mut ends_run, mut ends_block) = (!one.is_selected, !one.is_selected);
        if one.is_selected {
            run += 1;
            block += 1;
        }
        if one.is_last {
            let broken = !one.is_followed || went_elsewhere(all, index);
            ends_run |= broken || (is_transfer(one.word) && !is_conditional(one.word));
            ends_block |= broken || is_transfer(one.word) || one.word == 0x83;
        }
        if ends_run && run > 0 {
            runs.push(std::mem::take(&mut run));
        }
        if ends_block && block > 0 {
            blocks.push(std::mem::take(&mut block));
        }
    }
    [runs, blocks]
}

/// The bytes of instructions and of data, each with its process.
fn touched(ones: &[&One]) -> [BTreeSet<(u32, u64)>; 2] {
    let code = ones.iter().flat_map(|one| (one.pc..one.pc + 4).map(|byte| (one.process, byte)));
    let data = ones.iter().filter_map(|one| Some((one.process, one.access?)));
    let data = data
        .flat_map(|(process, (address, size, _))| (address..address + size).map(move |byte| (process, byte)));
    [code.collect(), data.collect()]
}

/// How many lines or pages of a size bytes lie in.
fn lines(bytes: &BTreeSet<(u32, u64)>, size: u64) -> u64 {
    bytes.iter().map(|(process, byte)| (process, byte / size)).collect::<BTreeSet<_>>().len() as u64
}

/// The transfer of control after the last selected instruction is known, even if that is the last of a chunk.
#[test]
fn the_last_branch_is_taken() {
    // beq t0, 8 bytes on
    let block = |_| Item::Block(0, vec![]);
    let made = Made::thread(&[(0x1000, &[0xe420_0002])], (0..20).map(block).collect());
    for last in 1..20 {
        let selection = Selection { instructions: Some(1..=last), ..Selection::default() };
        let options = SummarySettings { line_sizes: vec![], page_sizes: vec![], window: u64::MAX };
        let kinds = cells(&summary(&made, &selection, options), "kinds");
        let taken = kinds.iter().find(|row| row[0] == "taken ones of these").unwrap();
        assert_eq!(taken[1], last.to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_summary_is_what_a_recount_finds(made in made(), selection in selection()) {
        let all = expand(&made, &selection);
        let selected: Vec<&One> = all.iter().filter(|one| one.is_selected).collect();
        let options = SummarySettings { line_sizes: vec![16, 64, 128], page_sizes: vec![4096, 8192], window: u64::MAX };
        let tables = summary(&made, &selection, options);
        let count = |is: &dyn Fn(&One) -> bool| selected.iter().filter(|one| is(one)).count() as u64;

        let mut mixed: BTreeMap<&str, u64> = BTreeMap::new();
        selected.iter().for_each(|one| *mixed.entry(mix::name(&isa::Alpha, one.word)).or_default() += 1);
        let rows = cells(&tables, "instructions");
        let rows = rows[..rows.len() - 1].iter();
        let found: BTreeMap<&str, u64> = rows.map(|row| (row[0].as_str(), row[2].parse().unwrap())).collect();
        prop_assert_eq!(found, mixed);

        let rows = cells(&tables, "kinds");
        let kinds: BTreeMap<&str, u64> = rows.iter().map(|row| (row[0].as_str(), row[1].parse().unwrap())).collect();
        let stores = |stores: bool| count(&|one| one.access.is_some_and(|(.., is_store)| is_store == stores));
        prop_assert_eq!((kinds["loads"], kinds["stores"]), (stores(false), stores(true)));
        let unaligned = count(&|one| one.access.is_some_and(|(address, size, _)| address % size != 0));
        prop_assert_eq!(kinds["unaligned accesses"], unaligned);
        prop_assert_eq!(kinds["conditional branches"], count(&|one| is_conditional(one.word)));
        let is_taken = |index: &usize| {
            let one = &all[*index];
            one.is_selected && one.is_last && is_conditional(one.word) && went_elsewhere(&all, *index)
        };
        prop_assert_eq!(kinds["taken ones of these"], (0..all.len()).filter(is_taken).count() as u64);

        let [runs, blocks] = lengths(&all);
        let rows = cells(&tables, "block-sizes");
        let total = rows.last().unwrap();
        prop_assert_eq!([&total[1], &total[3]], [&blocks.len().to_string(), &runs.len().to_string()]);
        for (row, size) in rows.iter().zip(1..=8) {
            let of = |lengths: &[u64]| lengths.iter().filter(|&&length| length == size).count().to_string();
            prop_assert_eq!([&row[1], &row[3]], [&of(&blocks), &of(&runs)]);
        }

        let [code, data] = touched(&selected);
        for row in cells(&tables, "line-use") {
            let bytes = if row[0] == "data" { &data } else { &code };
            let lines = lines(bytes, row[1].parse().unwrap());
            prop_assert_eq!([&row[3], &row[4]], [&lines.to_string(), &bytes.len().to_string()]);
        }
        let either = code.union(&data).copied().collect();
        for row in cells(&tables, "page-use") {
            let bytes = match row[1].as_str() { "data" => &data, "instructions" => &code, _ => &either };
            prop_assert_eq!(&row[2], &lines(bytes, row[0].parse().unwrap()).to_string());
        }

        let rows = cells(&tables, "threads");
        for (thread, Thread { process, .. }) in made.threads.iter().enumerate() {
            let before = made.threads[..thread].iter().filter(|other| other.process == *process).count();
            let row = rows.iter().find(|row| row[0] == format!("{process}.{before}"));
            let instructions = count(&|one| one.thread == thread);
            prop_assert_eq!(row.map_or(0, |row| row[2].parse().unwrap()), instructions);
        }
    }

    /// Windows share out the instructions, and each has the pages and lines that its own ones touch.
    #[test]
    fn windows_add_up(made in made(), window in 1u64..40) {
        let made = Made { threads: made.threads[..1].to_vec(), ..made };
        let all = expand(&made, &Selection::default());
        let options = SummarySettings { line_sizes: vec![32], page_sizes: vec![4096], window };
        let tables = summary(&made, &Selection::default(), options);
        let mut begin = 0;
        let mut in_windows = [0; 2];
        for row in cells(&tables, "working-set") {
            let numbers: Vec<u64> = row.iter().map(|cell| cell.parse().unwrap()).collect();
            prop_assert_eq!(numbers[0], begin as u64 + 1);
            let part: Vec<&One> = all[begin..begin + numbers[1] as usize].iter().collect();
            begin += part.len();
            // A window ends with the block in which it is full.
            prop_assert!(part.len() as u64 >= window || begin == all.len());
            let (last, before) = part.split_last().unwrap();
            let whole = before.iter().rposition(|one| one.is_last).map_or(0, |index| index as u64 + 1);
            prop_assert!(last.is_last && whole < window);
            let bytes = touched(&part);
            prop_assert_eq!(&numbers[2..], &[lines(&bytes[0], 4096), lines(&bytes[1], 4096)]);
            in_windows.iter_mut().zip(&bytes).for_each(|(sum, bytes)| *sum += lines(bytes, 32));
        }
        prop_assert_eq!(begin, all.len());
        let rows = cells(&tables, "line-use");
        let rows = rows.iter().filter(|row| row[2] == "a window");
        prop_assert_eq!(rows.map(|row| row[3].clone()).collect::<Vec<_>>(), in_windows.map(|sum| sum.to_string()));
    }
}

#[test]
fn of_nothing_there_are_tables_too() {
    let options = SummarySettings { line_sizes: vec![64], page_sizes: vec![8192], window: 100 };
    let tables = summary(&Made::default(), &Selection::default(), options);
    assert_eq!(cells(&tables, "threads"), [["total", "", "0", "0", "0", "0", "0", "0"]]);
    let notes: Vec<&String> = tables.iter().flat_map(|table| &table.notes).collect();
    assert!(!notes.is_empty() && notes.iter().all(|note| !note.contains("NaN")), "{notes:?}");
}
