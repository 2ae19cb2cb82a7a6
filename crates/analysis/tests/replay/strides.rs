//! Strides are what an obviously right recount finds, on random traces and filters, with every option.

use std::collections::BTreeMap;

use events::Block;
use pathlength_analysis::models::ExecutionPart;
use pathlength_analysis::replay::Selection;
use pathlength_analysis::strides::{Bins, Patterns, StrideRange, StrideRows, StrideSettings, Strides};
use proptest::prelude::*;
use table::{Kind, Value};

use crate::made::{FUNCTIONS, Item, Made, Thread, words};
use crate::recount::{One, expand, made, selection};

/// By what the references are of, and whether they store: the references, and by steps and bins how often.
type Counts = BTreeMap<(String, bool), (u64, BTreeMap<(u32, StrideRange), u64>)>;

/// The bin of a stride, looked for one after the other.
fn bin(options: StrideSettings, stride: i64, size: u64) -> StrideRange {
    let distance = stride.unsigned_abs() / if options.bins.in_elements { size } else { 1 };
    let sign = if options.bins.is_signed && stride < 0 { -1 } else { 1 };
    let mut bins: Vec<(u64, Option<u64>)> = (0..128).map(|one| (one, Some(one))).collect();
    bins.extend([128, 256, 512, 1024, 2048, 4096, 8192, 16384].map(|one| (one, Some(2 * one - 1))));
    bins.push((32768, None));
    let of = bins.into_iter().find(|(from, to)| distance >= *from && to.is_none_or(|to| distance <= to));
    let (from, to) = of.unwrap();
    StrideRange { near: sign * from as i64, far: to.map(|to| sign * to as i64) }
}

fn recount(all: &[One], options: StrideSettings, name: impl Fn(&One) -> String) -> Counts {
    let mut before: BTreeMap<(String, bool, usize), Vec<u64>> = BTreeMap::new();
    let mut counts = Counts::new();
    for one in all.iter().filter(|one| one.is_selected) {
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
fn counted(
    made: &Made,
    by: StrideRows,
    selection: &Selection,
    options: StrideSettings,
    name: &str,
) -> Counts {
    made.replay(selection, |shown| {
        let mut patterns = Patterns::new(shown.replay.dictionary, by, &[], options);
        shown.to(&mut patterns);
        let mut counts = Counts::new();
        let (short, long) = (patterns.table(ExecutionPart::Whole), patterns.histograms(ExecutionPart::Whole));
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
            let range =
                StrideRange { near: integer(near), far: (*far != Value::Missing).then(|| integer(far)) };
            let (_, strides) = counts.get_mut(&key(row)).unwrap();
            let count = integer(count) as u64;
            assert!(strides.insert((integer(step) as u32, range), count).is_none(), "a bin is there twice");
        }
        counts
    })
}

fn options() -> impl Strategy<Value = StrideSettings> {
    let threshold = prop_oneof![Just(0), Just(128), 1u64..0x4000];
    (1u32..9, threshold, any::<bool>(), any::<bool>()).prop_map(
        |(depth, threshold, is_signed, in_elements)| StrideSettings {
            depth,
            threshold,
            bins: Bins { is_signed, in_elements },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn strides_agree_with_a_recount(made in made(), selection in selection(), options in options()) {
        let all = expand(&made, &selection);
        let by_instruction = counted(&made, StrideRows::Instruction, &selection, options, "address");
        prop_assert_eq!(by_instruction, recount(&all, options, instruction));
        let function = |one: &One| function(&made, one.pc);
        let by_function = counted(&made, StrideRows::Function, &selection, options, "function");
        prop_assert_eq!(by_function, recount(&all, options, function));
        // There is no image, and all lines are not known.
        let by_line = counted(&made, StrideRows::Line, &selection, options, "function");
        prop_assert_eq!(by_line, recount(&all, options, function));
        let together = counted(&made, StrideRows::All, &selection, options, "of");
        prop_assert_eq!(together, recount(&all, options, |_| "all".into()));
        // All accesses are relative to the stack pointer.
        let by_array = counted(&made, StrideRows::Array, &selection, options, "array");
        prop_assert_eq!(by_array, recount(&all, options, |_| "(stack)".into()));
    }

    /// The same while a program runs: no trace, no names. What moves in lockstep is found out.
    #[test]
    fn live_strides_agree_with_a_recount(program in program(), options in options(), seed: u64) {
        let made = program.run(seed);
        let (mut strides, mut lines) = (Strides::new(options), Strides::new(options));
        for (address, words) in &made.blocks {
            let block = Block::new(&isa::Alpha, *address, words.clone());
            strides.define(&block);
            lines.define_groups(&block, false, |site| Some((site.address / 16) as u32));
        }
        // Threads take turns.
        let turns = made.threads.iter().map(|thread| thread.items.len().div_ceil(TURN)).max().unwrap_or(0);
        for turn in 0..turns {
            for (thread, Thread { items, .. }) in (0..).zip(&made.threads) {
                let words = items.chunks(TURN).nth(turn).map(words).unwrap_or_default();
                strides.executed(thread, &words);
                lines.executed(thread, &words);
            }
        }
        let all = expand(&made, &Selection::default());
        // Groups of instructions have nothing in lockstep.
        let live: Counts = lines.series().map(|series| {
            let counts = series.strides().map(|one| ((one.step, one.range), one.count)).collect();
            ((series.group.to_string(), series.is_store), (series.references, counts))
        }).collect();
        prop_assert_eq!(live, recount(&all, options, |one| (one.pc / 16).to_string()));
        // By address and word of the first block that has the instruction.
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
        let live: Counts = strides.series().map(|series| {
            let counts = series.strides().map(|one| ((one.step, one.range), one.count)).collect();
            ((names[series.group as usize].clone(), series.is_store), (series.references, counts))
        }).collect();
        prop_assert_eq!(live, recount(&all, options, name));
    }
}

/// Blocks that a thread executes before it is another one's turn.
const TURN: usize = 5;

/// Code before and after some of it was changed; and the parts of it that each thread executes, in order: whether
/// after the change, from where, and how many instructions.
#[derive(Clone, Debug)]
struct Program {
    code: [Vec<u32>; 2],
    threads: Vec<Vec<(bool, usize, usize)>>,
}

/// Instructions of a program.
const CODE: usize = 20;

/// An instruction that accesses memory, or writes a register that others access memory by, or does neither.
fn instruction_word() -> impl Strategy<Value = u32> {
    use proptest::sample::select;
    let memory = select(vec![0x0au32, 0x0b, 0x0e, 0x0f, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x23]);
    let displacement = select(vec![0u32, 0, 8, 16, 3, 0xfff0]);
    let registers = (select(vec![1u32, 2, 3, 30, 31]), select(vec![1u32, 2, 30, 31]));
    // lda, ldah
    let address = select(vec![0x08u32, 0x09]);
    let memory = prop_oneof![6 => memory, 1 => address];
    let memory = (memory, registers, displacement).prop_map(|(opcode, (ra, rb), displacement)| {
        // No program has addresses below 0.
        let displacement = if rb == 31 { displacement & 0x7fff } else { displacement };
        opcode << 26 | ra << 21 | rb << 16 | displacement
    });
    // addq t0,t0,t0; cmovne t2,t0,t1; mulq sp,t0,sp; ftoit f1,t1; addt f1,f2,f1; rduniq; rpcc t0; unop
    let other = select(vec![
        0x4021_0401u32,
        0x4461_04c2,
        0x4fc1_041e,
        0x703f_0e02,
        0x5822_1401,
        0x9e,
        0x6020_c000,
        0x2ffe_0000,
    ]);
    prop_oneof![4 => memory, 1 => other]
}

fn program() -> impl Strategy<Value = Program> {
    let code = proptest::collection::vec(instruction_word(), CODE);
    let changes = proptest::collection::vec((0..CODE, instruction_word()), 0..3);
    let piece = (proptest::bool::weighted(0.2), 0..CODE, 1..CODE);
    // A few parts, repeatedly.
    let pieces = proptest::collection::vec(piece, 1..8);
    let executed = proptest::collection::vec(proptest::collection::vec(any::<usize>(), 0..80), 1..4);
    (code, changes, pieces, executed).prop_map(|(code, changes, pieces, executed)| {
        let mut later = code.clone();
        changes.into_iter().for_each(|(index, word)| later[index] = word);
        let piece = |which: usize| pieces[which % pieces.len()];
        let threads = executed.into_iter().map(|which| which.into_iter().map(piece).collect()).collect();
        Program { code: [code, later], threads }
    })
}

impl Program {
    /// Executes it; what registers get is left to chance, but often the same.
    fn run(&self, mut seed: u64) -> Made {
        let mut random = move |limit: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % limit
        };
        let mut value = move || match random(4) {
            0 => 0x8000 + random(0x2000),
            1 => 0x8000 + 8 * random(3),
            _ => 0x8000,
        };
        let mut made = Made::default();
        for pieces in &self.threads {
            let mut registers = [(); 32].map(|()| value());
            let mut items = Vec::new();
            for &(is_later, start, length) in pieces {
                let code = &self.code[usize::from(is_later)];
                let words = &code[start..(start + length).min(CODE)];
                let block = (0x1000 + 4 * start as u64, words.to_vec());
                let known = made.blocks.iter().position(|one| *one == block);
                let number = known.unwrap_or(made.blocks.len());
                if known.is_none() {
                    made.blocks.push(block);
                }
                let mut addresses = Vec::new();
                for &word in words {
                    registers[31] = 0;
                    let (ra, rb) = (word >> 21 & 31, word >> 16 & 31);
                    let one = isa::decode(word).unwrap();
                    if one.access_size().is_some() {
                        addresses.push(one.effective_address(registers[rb as usize]));
                    }
                    match word >> 26 {
                        0 => registers.iter_mut().for_each(|register| *register = value()),
                        0x08..=0x0b | 0x18 | 0x28..=0x2b | 0x2e => registers[ra as usize] = value(),
                        0x10..=0x13 | 0x1c => registers[(word & 31) as usize] = value(),
                        _ => {}
                    }
                }
                items.push(Item::Block(number, addresses));
            }
            made.threads.push(Thread { process: 0, items });
        }
        made
    }
}

/// The greatest numbers of a trace.
#[test]
fn blocks_may_be_long() {
    let mut strides = Strides::new(StrideSettings::default());
    // ldq t0,0(t0)
    strides.define(&Block::new(&isa::Alpha, 0x1000, vec![0xa421_0000; 1 << 16]));
    assert_eq!(strides.series().count(), 0);
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
    let all = expand(&made, &Selection::default());
    for (threshold, depth, in_elements) in
        [(0, 5, false), (128, 5, false), (128, 1, true), (10, 3, true), (0, 8, true), (0, 2, false)]
    {
        let bins = Bins { is_signed: true, in_elements };
        let options = StrideSettings { threshold, depth, bins };
        let by_instruction =
            counted(&made, StrideRows::Instruction, &Selection::default(), options, "address");
        assert_eq!(by_instruction, recount(&all, options, instruction));
        let together = counted(&made, StrideRows::All, &Selection::default(), options, "of");
        assert_eq!(together, recount(&all, options, |_| "all".into()));
    }
}
