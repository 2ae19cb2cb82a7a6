//! Strides are what an obviously right recount finds, on random traces and filters, with every option.

use std::collections::BTreeMap;

use pathlength_analysis::replay::Wanted;
use pathlength_analysis::strides::{Bins, By, Options, Patterns, Range, Strides};
use pathlength_analysis::table::{Kind, Value};
use proptest::prelude::*;

use crate::made::{FUNCTIONS, Item, Made, Thread, words};
use crate::recount::{One, expand, made, wanted};

/// By what the references are of, and whether they store: the references, and by steps and bins how often.
type Counts = BTreeMap<(String, bool), (u64, BTreeMap<(u32, Range), u64>)>;

/// The bin of a stride, looked for one after the other.
fn bin(options: Options, stride: i64, size: u64) -> Range {
    let distance = stride.unsigned_abs() / if options.bins.in_elements { size } else { 1 };
    let sign = if options.bins.is_signed && stride < 0 { -1 } else { 1 };
    let mut bins: Vec<(u64, Option<u64>)> = (0..128).map(|one| (one, Some(one))).collect();
    bins.extend([128, 256, 512, 1024, 2048, 4096, 8192, 16384].map(|one| (one, Some(2 * one - 1))));
    bins.push((32768, None));
    let of = bins.into_iter().find(|(from, to)| distance >= *from && to.is_none_or(|to| distance <= to));
    let (from, to) = of.unwrap();
    Range { near: sign * from as i64, far: to.map(|to| sign * to as i64) }
}

fn recount(all: &[One], options: Options, name: impl Fn(&One) -> String) -> Counts {
    let mut before: BTreeMap<(String, bool, usize), Vec<u64>> = BTreeMap::new();
    let mut counts = Counts::new();
    for one in all.iter().filter(|one| one.wanted) {
        let Some((address, size, is_store)) = one.access else { continue };
        let before = before.entry((name(one), is_store, one.thread)).or_default();
        let (references, strides) = counts.entry((name(one), is_store)).or_default();
        *references += 1;
        for step in 1..=options.depth {
            let Some(index) = before.len().checked_sub(step as usize) else { break };
            let stride = address.wrapping_sub(before[index]).cast_signed();
            *strides.entry((step, bin(options, stride, size))).or_default() += 1;
            if stride.unsigned_abs() < options.threshold {
                break;
            }
        }
        before.push(address);
    }
    counts
}

/// Traces know the functions that blocks begin in.
fn function(made: &Made, pc: u64) -> String {
    let is_in = |pc: u64, start: u64| (start..start + 0x100).contains(&pc);
    let begins = |start| made.blocks.iter().any(|(address, _)| is_in(*address, start));
    let found = FUNCTIONS.iter().find(|(_, start)| is_in(pc, *start) && begins(*start));
    found.map_or_else(|| format!("{pc:#x}"), |(name, _)| (*name).into())
}

fn instruction(one: &One) -> String {
    format!("{:#x} {}", one.pc, isa::decode(one.word).unwrap().disassemble(one.pc))
}

/// Counts from the table with all strides; `name` is the column that the recount knows, an
/// address with the instruction in the next one.
fn counted(made: &Made, by: By, wanted: &Wanted, options: Options, name: &str) -> Counts {
    made.replay(wanted, |shown| {
        let mut patterns = Patterns::new(shown.replay.dictionary, by, &[], options);
        shown.to(&mut patterns);
        let mut counts = Counts::new();
        let (short, long) = (patterns.table(), patterns.histograms());
        let column = |name: &str| short.columns.iter().position(|column| column.name == name).unwrap();
        let [name, kind] = [name, "kind"].map(column);
        let key = |row: &[Value]| {
            let text = match (&row[name], short.columns[name].kind) {
                (Value::Text(text), _) => text.clone(),
                (Value::Integer(address), Kind::Address) => {
                    let Value::Text(text) = &row[name + 1] else { panic!("{row:?}") };
                    format!("{address:#x} {text}")
                }
                (value, _) => panic!("{value:?}"),
            };
            (text, row[kind] == "stores".into())
        };
        let integer = |value: &Value| match value {
            Value::Integer(number) => *number,
            value => panic!("{value:?}"),
        };
        for row in &short.rows {
            let references = integer(&row[kind + 1]) as u64;
            assert!(counts.insert(key(row), (references, BTreeMap::new())).is_none(), "a row is there twice");
        }
        for row in &long.rows {
            let [step, near, far, count] = [2, 3, 4, 5].map(|behind| &row[kind + behind]);
            let range = Range { near: integer(near), far: (*far != Value::Missing).then(|| integer(far)) };
            let (_, strides) = counts.get_mut(&key(row)).unwrap();
            let count = integer(count) as u64;
            assert!(strides.insert((integer(step) as u32, range), count).is_none(), "a bin is there twice");
        }
        counts
    })
}

fn options() -> impl Strategy<Value = Options> {
    let threshold = prop_oneof![Just(0), Just(128), 1u64..0x4000];
    (1u32..9, threshold, any::<bool>(), any::<bool>()).prop_map(
        |(depth, threshold, is_signed, in_elements)| Options {
            depth,
            threshold,
            bins: Bins { is_signed, in_elements },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn strides_agree_with_a_recount(made in made(), wanted in wanted(), options in options()) {
        let all = expand(&made, &wanted);
        let by_instruction = counted(&made, By::Instruction, &wanted, options, "address");
        prop_assert_eq!(by_instruction, recount(&all, options, instruction));
        let function = |one: &One| function(&made, one.pc);
        let by_function = counted(&made, By::Function, &wanted, options, "function");
        prop_assert_eq!(by_function, recount(&all, options, function));
        // There is no image, and all lines are not known.
        let by_line = counted(&made, By::Line, &wanted, options, "function");
        prop_assert_eq!(by_line, recount(&all, options, function));
        let together = counted(&made, By::All, &wanted, options, "of");
        prop_assert_eq!(together, recount(&all, options, |_| "all".into()));
        // All accesses are relative to the stack pointer.
        let by_array = counted(&made, By::Array, &wanted, options, "array");
        prop_assert_eq!(by_array, recount(&all, options, |_| "(stack)".into()));
    }

    /// The same while a program runs: no trace, no names.
    #[test]
    fn strides_that_are_heard_agree_with_a_recount(made in made(), options in options()) {
        let mut strides = Strides::new(options);
        for (address, words) in &made.blocks {
            strides.define(*address, words);
        }
        for (thread, Thread { items, .. }) in (0..).zip(&made.threads) {
            items.chunks(5).for_each(|items| strides.executed(thread, &words(items)));
        }
        let all = expand(&made, &Wanted::default());
        // By address and word, of which the first block that has them tells which they are.
        let name = |one: &One| format!("{:#x} {:#x}", one.pc, one.word);
        let mut names = Vec::new();
        for (address, words) in &made.blocks {
            for (pc, &word) in (*address..).step_by(4).zip(words) {
                let name = format!("{pc:#x} {word:#x}");
                if isa::decode(word).is_some_and(|one| one.access_size().is_some()) && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let heard: Counts = strides.series().map(|series| {
            let counts = series.strides().map(|one| ((one.step, one.range), one.count)).collect();
            ((names[series.group as usize].clone(), series.is_store), (series.references, counts))
        }).collect();
        prop_assert_eq!(heard, recount(&all, options, name));
    }
}

/// Frequent series, whose counters are all there; and strides that are repeated for a while.
#[test]
fn long_series_agree_with_a_recount() {
    let blocks: [(u64, &[u32]); 2] =
        [(0x1000, &[0xa43e_0000, 0xb43e_0000, 0xc3e0_0000]), (0x1020, &[0xa03e_0000, 0xc3e0_0000])];
    let mut seed = 1u64;
    let mut random = move |limit: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % limit
    };
    let (mut address, mut stride) = (0x10_0000, 8);
    let items = (0..6000).map(|_| {
        if random(12) == 0 {
            stride = [0, 8, 8, 4, 24, 200, 4096, u64::MAX - 7][random(8) as usize];
            address = 0x10_0000 + random(0x4000);
        }
        address = address.wrapping_add(stride);
        match random(30) {
            0 => Item::Block(1, vec![address]),
            _ => Item::Block(0, vec![address, 0x10_0000 + random(0x100_0000)]),
        }
    });
    let made = Made::thread(&blocks, items.collect());
    let all = expand(&made, &Wanted::default());
    for (threshold, depth, in_elements) in
        [(0, 5, false), (128, 5, false), (128, 1, true), (10, 3, true), (0, 8, true), (0, 2, false)]
    {
        let bins = Bins { is_signed: true, in_elements };
        let options = Options { threshold, depth, bins };
        let by_instruction = counted(&made, By::Instruction, &Wanted::default(), options, "address");
        assert_eq!(by_instruction, recount(&all, options, instruction));
        let together = counted(&made, By::All, &Wanted::default(), options, "of");
        assert_eq!(together, recount(&all, options, |_| "all".into()));
    }
}
