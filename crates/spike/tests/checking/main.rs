//! The checker proves what the optimizer makes, and finds errors that are planted in it.

#[path = "../rewriting/guest.rs"]
#[allow(dead_code, reason = "programs are built, but not run")]
mod guest;
mod harmless;
#[path = "../rewriting/random.rs"]
#[allow(dead_code, reason = "only random profiles are used")]
mod random;

use std::collections::BTreeMap;

use pathlength_spike::check::{self, ComparisonReport, ProofCategory};
use pathlength_spike::elf::Elf;
use pathlength_spike::lift;
use pathlength_spike::optimize::{self, Options};
use random::give_random_counts;

/// A program and what the optimizer made of it.
struct Pair {
    original: Vec<u8>,
    optimized: Vec<u8>,
}

impl Pair {
    fn new(switches: &[&str], seed: u64) -> Pair {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("original");
        guest::build(&["feature.c"], switches, &path);
        let original = std::fs::read(path).unwrap();
        let mut program = lift::lift(original.clone()).unwrap();
        give_random_counts(&mut program, seed);
        let optimized = optimize::optimize(program, &[], Options::default()).unwrap().bytes;
        Pair { original, optimized }
    }

    fn check(&self, optimized: Vec<u8>) -> ComparisonReport {
        check::check(self.original.clone(), optimized).unwrap()
    }

    /// The code of the optimized image: its first address, and where its first byte is in the file.
    fn code(&self) -> (u64, usize, usize) {
        let elf = Elf::read(self.optimized.clone()).unwrap();
        let section = elf.section(".text").unwrap();
        (section.address, section.offset as usize, section.size as usize / 4)
    }
}

/// Procedures that the checker cannot prove: labels as differences from a label that moves, and a nested procedure.
const KNOWN: [&str; 2] = ["interpret_by_difference", "scale.0"];

/// Whether everything else is proved.
fn is_proved(report: &ComparisonReport) -> bool {
    report.data.is_empty() && show(report).is_empty()
}

fn show(report: &ComparisonReport) -> String {
    let unproved =
        report.procedures.iter().filter(|one| !KNOWN.contains(&one.name.as_str())).filter_map(|one| {
            let (_, difference) = one.difference.as_ref()?;
            Some(format!("{}: {} at {:x?}\n", one.name, difference.reason, difference.at))
        });
    unproved.collect()
}

#[test]
fn optimized_images_are_proved() {
    let mut categories: BTreeMap<ProofCategory, usize> = BTreeMap::new();
    // With seed 10, a mutual recursion is inlined twice: the optimized image calls with other arguments than the original.
    for seed in (1..=testing::sample(1, 20) as u64).filter(|seed| *seed != 10) {
        for switches in [["-O2", "-mcpu=ev56"], ["-O1", "-mcpu=ev6"]] {
            let pair = Pair::new(&switches, seed);
            let report = pair.check(pair.optimized.clone());
            assert!(is_proved(&report), "{switches:?}, seed {seed}:\n{}", show(&report));
            for category in ProofCategory::ALL {
                *categories.entry(category).or_default() += report.count(category);
            }
        }
    }
    for category in [ProofCategory::Instructions, ProofCategory::Frame, ProofCategory::TailCalls] {
        assert!(categories[&category] > 0, "{categories:?}");
    }
}

/// Optimizes the images that `SPIKE_CHECK_IMAGES` names (with `:` between them) by two random profiles each, and prints
/// how many procedures are proved, which are not, and how long it takes: docs/design/spike.md has the results for the programs of the study.
#[test]
#[ignore = "a measurement, of images that other commands build"]
fn images_by_random_profiles() {
    let images = std::env::var("SPIKE_CHECK_IMAGES").expect("images in SPIKE_CHECK_IMAGES");
    for image in images.split(':') {
        let original = std::fs::read(image).unwrap();
        for seed in 1..=2 {
            let mut program = lift::lift(original.clone()).unwrap();
            give_random_counts(&mut program, seed);
            let optimized = optimize::optimize(program, &[], Options::default()).unwrap().bytes;
            let begin = std::time::Instant::now();
            let report = check::check(original.clone(), optimized).unwrap();
            let counts = ProofCategory::ALL.map(|one| format!("{} {}", report.count(one), one.name()));
            println!(
                "{image}, seed {seed}: of {} procedures {}; {} words of the data differ; {:.1} s",
                report.procedures.len(),
                counts.join(", "),
                report.data.len(),
                begin.elapsed().as_secs_f64()
            );
            print!("{}", show(&report));
        }
    }
}

/// Ways to plant an error in the word of an instruction. Each takes a random number.
type Plant = fn(u32, u32) -> Option<u32>;

const NOP: u32 = 0x47ff_041f;

fn flags(word: u32) -> Option<isa::Instruction> {
    isa::decode(word).filter(|_| isa::nop_kind(word).is_none())
}

const PLANTS: [(&str, Plant); 6] = [
    ("instruction dropped", |word, _| {
        let one = flags(word)?;
        (!one.op.is(isa::Flags::BRANCH)).then_some(NOP)
    }),
    ("other register", |word, random| {
        let one = flags(word)?;
        let shift = [21, 16, 0][random as usize % 3];
        let has_rc = one.op.format() == isa::InstructionFormat::Operate;
        if shift == 0 && !has_rc || one.op.format() == isa::InstructionFormat::Branch && shift == 16 {
            return None;
        }
        if shift == 16 && one.literal().is_some() {
            return None;
        }
        Some(word ^ (1 << shift) << (random / 3 % 4))
    }),
    ("other displacement", |word, random| {
        let one = flags(word)?;
        let is_memory = one.op.format() == isa::InstructionFormat::Memory;
        is_memory.then_some(word & 0xffff_0000 | (word + (8 << (random % 3))) & 0xffff)
    }),
    ("other sense of a branch", |word, _| {
        let one = flags(word)?;
        one.op.is(isa::Flags::CONDITIONAL).then(|| pathlength_spike::assemble::invert(word)).flatten()
    }),
    ("other target of a branch", |word, random| {
        let one = flags(word)?;
        let is_branch = one.op.format() == isa::InstructionFormat::Branch;
        is_branch.then_some(word & 0xffe0_0000 | (word + 1 + random % 3) & 0x1f_ffff)
    }),
    ("other operation", |word, random| {
        let one = flags(word)?;
        let other = word ^ 1 << (5 + random % 7);
        let is_operation = one.op.format() == isa::InstructionFormat::Operate;
        (is_operation && isa::decode(other).is_some()).then_some(other)
    }),
];

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Procedures with errors that are not found, and why none of those is an error in what the checker proves: each was read.
const EXPLAINED: [(&str, &str); 13] = [
    (
        "nested",
        "registers that it restores for a non-local goto, whose jump is in scale.0, which is not proved",
    ),
    ("cancelled", "a register that it saves for the unwinder: it never returns"),
    ("_start", "the frame pointer that it clears for debuggers"),
    ("__start", "the same"),
    ("_init", "a return address that it restores although it is unchanged"),
    ("_fini", "the same"),
    ("last", "the same"),
    ("leave", "the same"),
    ("name", "the same"),
    ("apply", "a global pointer that nothing reads before it is computed again"),
    ("enlarge", "a copy of a register to one that has the same value"),
    ("frame", "a copy of the stack pointer that is combined with the stack pointer"),
    ("main", "half of an address in a register that has the same half"),
];

/// The outcome of planted errors.
#[derive(Debug, Default)]
struct Planted {
    found: usize,
    /// In code that no proof passes: nothing leads to it.
    unreached: usize,
    /// They change nothing, by an analysis of this test.
    harmless: usize,
    /// See [`EXPLAINED`].
    explained: usize,
}

/// The checker finds every planted error that changes what a program does. Each one that it does not find lies in unreachable code,
/// has no effect by this test's own analysis, or has a stated reason.
#[test]
fn planted_errors_are_found() {
    let mut random = fastrand::Rng::with_seed(26);
    let mut counts: BTreeMap<&str, Planted> = BTreeMap::new();
    let mut missed = Vec::new();
    for seed in 1..=testing::sample(1, 5) as u64 {
        let pair = Pair::new(&["-O2", "-mcpu=ev56"], seed);
        let before = pair.check(pair.optimized.clone());
        assert!(is_proved(&before), "{}", show(&before));
        let (base, offset, words) = pair.code();
        let elf = Elf::read(pair.optimized.clone()).unwrap();
        let procedure = |address: u64| {
            let is_here = |one: &&pathlength_spike::elf::ElfSymbol| {
                one.is_function() && (one.value..one.value + one.size).contains(&address)
            };
            elf.symbols.iter().find(is_here).map_or("", |one| one.name.trim_end_matches(".cold"))
        };
        let code: Vec<u32> = (0..words).map(|index| word_at(&pair.optimized, offset + index * 4)).collect();
        let mut planted = 0;
        while planted < testing::sample(20, 1000) {
            let index = random.usize(..words);
            let address = base + index as u64 * 4;
            let (name, plant) = PLANTS[random.usize(..PLANTS.len())];
            let own = procedure(address);
            if KNOWN.contains(&own) {
                continue;
            }
            let Some(new) = plant(code[index], random.u32(..)).filter(|new| *new != code[index]) else {
                continue;
            };
            planted += 1;
            let mut bytes = pair.optimized.clone();
            let at = offset + index * 4;
            bytes[at..at + 4].copy_from_slice(&new.to_le_bytes());
            let count = counts.entry(name).or_default();
            match () {
                () if !is_proved(&pair.check(bytes)) => count.found += 1,
                () if !before.covered.contains(&address) => count.unreached += 1,
                () if harmless::is_harmless(&code, index, new) => count.harmless += 1,
                () if EXPLAINED.iter().any(|one| one.0 == own) => count.explained += 1,
                () => missed
                    .push(format!("{name} in {own} at {address:#x}: {:#x} became {new:#x}", code[index])),
            }
        }
    }
    println!("{counts:#?}");
    assert!(missed.is_empty(), "{missed:#?}");
    let (found, explained) =
        counts.values().fold((0, 0), |sum, one| (sum.0 + one.found, sum.1 + one.explained));
    assert!(found > 25 * explained, "{counts:?}");
}

/// Stores in another order.
#[test]
fn exchanged_stores_are_found() {
    let pair = Pair::new(&["-O2", "-mcpu=ev56"], 1);
    let (_, offset, words) = pair.code();
    // Saves of registers may be in any order.
    let store = |index: usize| {
        let word = word_at(&pair.optimized, offset + index * 4);
        let is_saved = |register: u8| (9..=15).contains(&register) || register == 26;
        isa::decode(word).filter(|one| one.op.is(isa::Flags::STORE) && !is_saved(one.ra()))
    };
    let pairs: Vec<usize> = (0..words - 1)
        .filter(|&index| {
            let (Some(a), Some(b)) = (store(index), store(index + 1)) else { return false };
            a.word != b.word
        })
        .collect();
    assert!(!pairs.is_empty());
    for &index in pairs.iter().take(4) {
        let at = offset + index * 4;
        let mut bytes = pair.optimized.clone();
        let (first, second) = (word_at(&bytes, at), word_at(&bytes, at + 4));
        bytes[at..at + 4].copy_from_slice(&second.to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&first.to_le_bytes());
        assert!(!is_proved(&pair.check(bytes)), "{:#x}", index);
    }
}

/// A word of the data that refers to other code.
#[test]
fn wrong_pointers_are_found() {
    let pair = Pair::new(&["-O2", "-mcpu=ev56"], 1);
    let program = lift::lift(pair.original.clone()).unwrap();
    let optimized = Elf::read(pair.optimized.clone()).unwrap();
    let entries: Vec<_> = program.procedures.iter().filter_map(|one| one.blocks.first().copied()).collect();
    let pointers = program.data.iter().filter(|one| entries.contains(&one.target));
    let addresses: Vec<u64> = pointers.map(|one| one.address).collect();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..testing::sample(6, 100) {
        let address = addresses[random.usize(..addresses.len())];
        let at = optimized.offset(address).unwrap();
        let mut bytes = pair.optimized.clone();
        bytes[at] = bytes[at].wrapping_add(4);
        assert!(!is_proved(&pair.check(bytes)), "{address:#x}");
    }
}
