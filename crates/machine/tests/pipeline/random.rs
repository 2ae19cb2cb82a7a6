//! Random programs: the model and the reference model attribute the same cycles to the same causes.

use std::collections::BTreeMap;

use events::{Block, Consumer, Thread};
use isa::{Alpha, InstructionSet};
use pathlength_machine::pipeline::InstructionClass;
use pathlength_machine::{Cause, Machine, TimingModel};
use proptest::prelude::*;
use testing::sample;

use super::assembler::assemble;
use super::memory::{ByAddress, LEVEL_1, LEVEL_2, LEVEL_3, UNTRANSLATED, VARIED};
use super::mixed_lengths::MixedLengths;
use super::slots::Executed;
use super::ticks::Ticks;

/// An instruction without an address.
#[derive(Clone, Debug)]
struct Plain {
    text: String,
    class: InstructionClass,
    sources: Vec<(u8, bool)>,
    destination: Option<u8>,
    /// Whether it accesses memory, and stores.
    access: Option<bool>,
}

/// Kinds of instructions: mnemonic, class, form.
const KINDS: &[(&str, InstructionClass, Form)] = &[
    ("ldq", InstructionClass::Load, Form::Load),
    ("ldl", InstructionClass::Load, Form::Load),
    ("ldq", InstructionClass::Load, Form::Load),
    ("ldt", InstructionClass::FloatLoad, Form::FloatLoad),
    ("stq", InstructionClass::Store, Form::Store),
    ("stl", InstructionClass::Store, Form::Store),
    ("stt", InstructionClass::FloatStore, Form::FloatStore),
    ("addq", InstructionClass::Add, Form::Operate),
    ("subl", InstructionClass::Add, Form::Operate),
    ("bis", InstructionClass::Logical, Form::Operate),
    ("and", InstructionClass::Logical, Form::Operate),
    ("sll", InstructionClass::Shift, Form::Operate),
    ("zapnot", InstructionClass::Shift, Form::Operate),
    ("cmpult", InstructionClass::Compare, Form::Operate),
    ("cmoveq", InstructionClass::ConditionalMove, Form::ConditionalMove),
    ("mull", InstructionClass::MultiplyLong, Form::Operate),
    ("mulq", InstructionClass::MultiplyQuad, Form::Operate),
    ("umulh", InstructionClass::MultiplyHigh, Form::Operate),
    ("addt", InstructionClass::FloatAdd, Form::FloatOperate),
    ("cmpteq", InstructionClass::FloatAdd, Form::FloatOperate),
    ("mult", InstructionClass::FloatMultiply, Form::FloatOperate),
    ("cpys", InstructionClass::FloatCopy, Form::FloatOperate),
    ("divs", InstructionClass::FloatDivideSingle, Form::FloatOperate),
    ("unop", InstructionClass::Nothing, Form::Nothing),
    ("mb", InstructionClass::MemoryBarrier, Form::Nothing),
    ("wmb", InstructionClass::MemoryHint, Form::Nothing),
    ("trapb", InstructionClass::TrapBarrier, Form::Nothing),
];

#[derive(Clone, Copy)]
enum Form {
    Load,
    FloatLoad,
    Store,
    FloatStore,
    Operate,
    ConditionalMove,
    FloatOperate,
    Nothing,
}

/// Few registers, so that instructions depend on each other.
fn plain() -> impl Strategy<Value = Plain> {
    (0..KINDS.len() + 40, 1u8..7, 1u8..7, 1u8..7).prop_map(|(kind, a, b, c)| {
        // Most are those of common programs.
        let (name, class, form) = KINDS[if kind < KINDS.len() { kind } else { kind % 15 }];
        let float = |register: u8| register + 32;
        let plain = |text, sources, destination, access| Plain { text, class, sources, destination, access };
        match form {
            Form::Load => plain(format!("{name} r{a},0(r{b})"), vec![(b, false)], Some(a), Some(false)),
            Form::FloatLoad => {
                plain(format!("{name} f{a},0(r{b})"), vec![(b, false)], Some(float(a)), Some(false))
            }
            Form::Store => {
                plain(format!("{name} r{a},0(r{b})"), vec![(a, true), (b, false)], None, Some(true))
            }
            Form::FloatStore => {
                plain(format!("{name} f{a},0(r{b})"), vec![(float(a), true), (b, false)], None, Some(true))
            }
            Form::Operate => {
                plain(format!("{name} r{a},r{b},r{c}"), vec![(a, false), (b, false)], Some(c), None)
            }
            Form::ConditionalMove => {
                plain(format!("{name} r{a},r{b},r{c}"), vec![(a, true), (b, false)], Some(c), None)
            }
            Form::FloatOperate => {
                let sources = vec![(float(a), false), (float(b), false)];
                plain(format!("{name} f{a},f{b},f{c}"), sources, Some(float(c)), None)
            }
            Form::Nothing => plain(name.into(), vec![], None, None),
        }
    })
}

/// How a block ends.
#[derive(Clone, Debug)]
enum End {
    Falls,
    Always(usize),
    If(u8, usize),
    Calls,
}

/// Consecutive blocks; the choices of a walk over them; the addresses of data.
#[derive(Clone, Debug)]
struct Program {
    /// The bits of the first address that say how instructions are served, and the number of its alignment's units.
    start: (u64, u64),
    blocks: Vec<(Vec<Plain>, End)>,
    walk: Vec<bool>,
    data: Vec<u64>,
}

fn program() -> impl Strategy<Value = Program> {
    let start = prop_oneof![
        4 => Just(0),
        4 => (0..64u64).prop_map(|line| VARIED | line << 20),
        1 => Just(LEVEL_1),
        1 => Just(LEVEL_2),
        1 => Just(UNTRANSLATED),
        1 => Just(UNTRANSLATED | LEVEL_3)
    ];
    let end = prop_oneof![
        Just(End::Falls),
        (0usize..8).prop_map(End::Always),
        (1u8..7, 0usize..8).prop_map(|(register, target)| End::If(register, target)),
        (1u8..7, 0usize..8).prop_map(|(register, target)| End::If(register, target)),
        Just(End::Calls)
    ];
    let level = prop_oneof![
        20 => Just(0),
        2 => Just(LEVEL_1),
        1 => Just(LEVEL_2),
        1 => Just(LEVEL_3),
        1 => Just(UNTRANSLATED)
    ];
    let address = (level, 0u64..32).prop_map(|(level, number)| level + 0x8000 + 4 * number);
    (
        (start, 0u64..16),
        prop::collection::vec((prop::collection::vec(plain(), 1..12), end), 1..6),
        prop::collection::vec(any::<bool>(), 1..100),
        prop::collection::vec(address, 1..40),
    )
        .prop_map(|((level, offset), mut blocks, walk, data)| {
            // The last block jumps to the first one, so that blocks are executed repeatedly.
            blocks.push((Vec::new(), End::Always(0)));
            Program { start: (level, offset), blocks, walk, data }
        })
}

/// The bytes of instructions.
fn bytes(set: &dyn InstructionSet, plains: &[Plain]) -> u64 {
    plains.iter().flat_map(|plain| assemble(&plain.text)).map(|word| set.length(word)).sum()
}

/// Executes a program of an instruction set on both models.
fn both(
    machine: &Machine,
    set: &'static dyn InstructionSet,
    program: &Program,
) -> (BTreeMap<Cause, u64>, BTreeMap<Cause, u64>) {
    let count = program.blocks.len();
    let has_end = |end: &End| u64::from(!matches!(end, End::Falls));
    let (level, offset) = program.start;
    let mut starts = vec![level | (0x10000 + set.code_alignment() * offset)];
    for (plains, end) in &program.blocks {
        starts.push(starts.last().unwrap() + bytes(set, plains) + 4 * has_end(end));
    }
    let mut time = TimingModel::with_memory(machine, ByAddress).unwrap();
    let mut blocks = Vec::new();
    for (number, (plains, end)) in program.blocks.iter().enumerate() {
        let mut plains = plains.clone();
        let at = starts[number] + bytes(set, &plains);
        // Words count Alpha's distances.
        let to = |target: usize| {
            let distance = starts[target % count].wrapping_sub(at + 4) as i64;
            4 * distance / set.code_alignment() as i64
        };
        let branch = |text, class, sources| Plain { text, class, sources, destination: None, access: None };
        plains.extend(match *end {
            End::Falls => None,
            End::Always(target) => {
                Some(branch(format!("br r31,{}", to(target)), InstructionClass::Jump, vec![]))
            }
            End::If(register, target) => {
                let text = format!("bne r{register},{}", to(target));
                Some(branch(text, InstructionClass::Branch, vec![(register, true)]))
            }
            End::Calls => {
                let function = [131, 158, 159][number % 3];
                Some(branch(format!("call_pal {function}"), InstructionClass::CallPal, vec![]))
            }
        });
        let text: Vec<&str> = plains.iter().map(|plain| plain.text.as_str()).collect();
        time.define(&Block::new(set, starts[number], assemble(&text.join("; "))));
        let words = assemble(&text.join("; "));
        let sizes = words.iter().map(|&word| isa::decode(word).unwrap().access_size().unwrap_or(0));
        blocks.push(plains.into_iter().zip(sizes).collect::<Vec<_>>());
    }
    let mut data = program.data.iter().copied().cycle();
    let (mut executed, mut records) = (Vec::new(), Vec::new());
    let mut current = 0;
    for (execution, &choice) in program.walk.iter().enumerate() {
        records.push(!(current as u64));
        let mut address = starts[current];
        for (plain, size) in &blocks[current] {
            let length = bytes(set, std::slice::from_ref(plain));
            let access = plain.access.map(|is_store| (data.next().unwrap(), *size, is_store));
            records.extend(access.map(|access| access.0));
            executed.push(Executed {
                address,
                length,
                class: plain.class,
                sources: plain.sources.clone(),
                destination: plain.destination,
                access,
                target: match program.blocks[current].1 {
                    End::If(_, target) => Some(starts[target % count]),
                    _ => None,
                },
                block: execution,
            });
            address += length;
        }
        let next = match program.blocks[current].1 {
            End::Always(target) => target % count,
            End::If(_, target) if choice => target % count,
            _ => current + 1,
        };
        current = next;
    }
    time.executed(Thread::default(), &records);
    let found: BTreeMap<Cause, u64> = time.cycles().iter().collect();
    let sites: u64 = (0..count as u32)
        .flat_map(|block| time.sites(block))
        .map(|site| site.issuing + site.front_end_stall + site.back_end_stall)
        .sum();
    assert_eq!(sites, time.cycles().total(), "the cycles of all instructions are all cycles");
    assert_eq!(time.cycles().instructions(), executed.len() as u64);
    (found, Ticks::new(machine).run(machine, &executed))
}

fn check(name: &str, set: &'static dyn InstructionSet, program: &Program) -> Result<(), TestCaseError> {
    let (found, expected) = both(&Machine::find(name).unwrap(), set, program);
    prop_assert_eq!(found, expected);
    Ok(())
}

proptest! {
    // Rare cases need many programs.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(sample(500, 1500)),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_21164_is_as_the_reference_model(program in program()) {
        check("alphastation500", &Alpha, &program)?;
    }

    #[test]
    fn the_21064_is_as_the_reference_model(program in program()) {
        check("dec3000", &Alpha, &program)?;
    }

    #[test]
    fn instructions_of_two_and_four_bytes_are_as_in_the_reference_model(program in program()) {
        check("alphastation500", &MixedLengths, &program)?;
        check("dec3000", &MixedLengths, &program)?;
    }
}

/// A load that is replayed because of the store before it may find that its line was filled meanwhile, while other lines
/// are outstanding: then the load hits.
#[test]
fn a_filled_line_is_not_outstanding() {
    let load = |text: &str, base, destination| Plain {
        text: text.into(),
        class: InstructionClass::Load,
        sources: vec![(base, false)],
        destination: Some(destination),
        access: Some(false),
    };
    let store = Plain {
        text: "stq r1,0(r3)".into(),
        class: InstructionClass::Store,
        sources: vec![(1, true), (3, false)],
        destination: None,
        access: Some(true),
    };
    let program = Program {
        start: (0, 0),
        blocks: vec![(
            vec![
                load("ldq r6,0(r4)", 4, 6),
                load("ldq r2,0(r4)", 4, 2),
                store,
                load("ldq r1,0(r3)", 3, 1),
                load("ldq r5,0(r1)", 1, 5),
            ],
            End::Falls,
        )],
        walk: vec![false],
        data: vec![LEVEL_2 | 0x8000, LEVEL_1 | 0x8060, 0x8070, LEVEL_1 | 0x8070, 0x8000],
    };
    check("alphastation500", &Alpha, &program).unwrap();
}
