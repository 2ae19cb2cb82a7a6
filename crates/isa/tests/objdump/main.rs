//! The decoder and disassembler against GNU objdump.
//!
//! Systematic exceptions, all of them in [`explained`]: objdump knows instructions that exist in
//! PALmode only, refuses a literal for `sextb` and `sextw`, and does not know `clrfen`.

mod riscv;

use pathlength_isa::{Op, decode, decode_op};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Command;

const OBJDUMP: &str = "alpha-linux-gnu-objdump";

/// The output of the objdump of an architecture.
fn objdump(program: &str, arguments: &[&str]) -> String {
    let target = program.trim_end_matches("-objdump");
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{program}: {e}: install binutils-{target}"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("objdump writes text")
}

/// Address, word and text of every instruction that objdump lists.
fn listing(text: &str) -> impl Iterator<Item = (u64, u32, String)> {
    text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, '\t');
        let address = u64::from_str_radix(fields.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let bytes: String = fields.next()?.split_whitespace().rev().collect();
        let word = u32::from_str_radix(&bytes, 16).ok()?;
        Some((address, word, without_symbol(&fields.next()?.replace('\t', " "))))
    })
}

/// The text with a target as in an image without symbols: `0x1230` for `1230 <main+0x10>`.
fn without_symbol(text: &str) -> String {
    let Some((text, _)) = text.split_once(" <") else { return text.trim().into() };
    let start = text.rfind([' ', ',']).map_or(0, |separator| separator + 1);
    format!("{}0x{}", &text[..start], &text[start..])
}

/// Whether a difference is one of the known ones.
fn explained(word: u32, theirs: &str) -> bool {
    let palmode = matches!(word >> 26, 0x19 | 0x1b | 0x1d..=0x1f);
    let sign_extension = word >> 26 == 0x1c && word >> 6 & 0x3f == 0;
    let literal = word >> 12 & 1 == 1 && theirs.starts_with(".long");
    palmode && decode(word).is_none() || sign_extension && literal || word == 0xae
}

/// Compares a listing with our own text; `count` is the number of instructions it must have.
fn compare(text: &str, count: usize) {
    let (mut seen, mut wrong, mut report) = (0, 0, String::new());
    for (address, word, theirs) in listing(text) {
        seen += 1;
        let ours = match decode(word) {
            Some(instruction) => instruction.disassemble(address).to_string(),
            None => format!(".long {}", if word == 0 { "0".into() } else { format!("{word:#x}") }),
        };
        if ours != theirs && !explained(word, &theirs) {
            wrong += 1;
            if wrong <= 40 {
                writeln!(report, "{word:08x} ours {ours:32} objdump {theirs}").expect("a string");
            }
        }
    }
    assert!(seen >= count, "objdump listed {seen} instructions of {count}");
    assert_eq!(wrong, 0, "of {seen} instructions\n{report}");
}

/// Compares these words as raw code.
fn compare_words(name: &str, words: &[u32]) {
    let path = format!("{}/{name}.bin", env!("CARGO_TARGET_TMPDIR"));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&path, bytes).expect("a writable target directory");
    compare(&objdump(OBJDUMP, &["-D", "-z", "-b", "binary", "-m", "alpha:ev6", &path]), words.len());
}

/// Random words: the test is the same every time.
fn random(count: usize) -> impl Iterator<Item = u32> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..count).map(move |_| random.u32(..))
}

#[test]
fn random_words() {
    compare_words("random", &random(1_000_000).collect::<Vec<_>>());
}

/// Every opcode that has an operation with every 11-bit function, and every combination of register
/// fields that matters.
fn every_function() -> Vec<u32> {
    let registers = [(1, 2, 3), (31, 2, 3), (1, 31, 3), (1, 2, 31), (31, 31, 3), (31, 2, 31), (1, 31, 31)];
    let same = [(31, 31, 31), (31, 0, 3), (1, 1, 1), (1, 1, 3), (3, 1, 3), (1, 3, 3)];
    let words = registers.into_iter().chain(same).flat_map(|(a, b, c)| {
        let functions = (0x10..0x1e).flat_map(|opcode| (0..2048).map(move |f| opcode << 26 | f << 5));
        functions.map(move |word| word | a << 21 | b << 16 | c)
    });
    words.collect()
}

/// PAL calls, miscellaneous instructions and jumps with every value of their low 16 bits.
fn every_low_half() -> Vec<u32> {
    let upper = [0x0000, 0x6022, 0x63e2, 0x63ff, 0x6be2, 0x6bfa];
    upper.into_iter().flat_map(|upper| (0..0x1_0000).map(move |lower| upper << 16 | lower)).collect()
}

/// Every opcode with a displacement, and unassigned ones.
fn every_opcode() -> Vec<u32> {
    let operands = [0, 0x001f_ffff, 0x03ff_0000, 0x03ff_ffff, 0x03e2_0004, 0x005f_8000, 0x0042_7fff];
    (0..64).flat_map(|opcode| operands.map(|operands| opcode << 26 | operands)).collect()
}

#[test]
fn systematic_words() {
    let words = [every_function(), every_low_half(), every_opcode()].concat();
    let met: HashSet<Op> = words.iter().filter_map(|word| decode_op(*word)).collect();
    let missed: Vec<_> = Op::ALL.into_iter().filter(|op| !met.contains(op)).collect();
    assert!(missed.is_empty(), "{missed:?} were not compared with objdump");
    compare_words("systematic", &words);
}

#[test]
fn c_library_and_loader() {
    for (library, count) in [("libc.so.6.1", 100_000), ("ld-linux.so.2", 10_000)] {
        let path = format!("/usr/alpha-linux-gnu/lib/{library}");
        compare(&objdump(OBJDUMP, &["-d", "-z", "-m", "alpha:ev6", &path]), count);
    }
}
