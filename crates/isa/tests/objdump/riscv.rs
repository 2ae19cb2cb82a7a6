//! RISC-V's decoder and disassembler against GNU objdump.
//!
//! objdump 2.40 does not know some extensions, and its text depends on the architecture in the image's attributes, so that the
//! words are put into an object file. Systematic exceptions are in [`explained`].

use pathlength_isa::{InstructionSet, Riscv, RiscvExtensions, RiscvOp, decode_riscv};
use std::collections::HashMap;
use std::fmt::Write as _;

use super::objdump;

const OBJDUMP: &str = "riscv64-linux-gnu-objdump";
/// The extensions of the table that objdump 2.40 knows.
const ARCHITECTURE: &str = "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0_zifencei2p0_zihintpause2p0_zicbom1p0_zicboz1p0_zawrs1p0\
    _zfh1p0_zfhmin1p0_zba1p0_zbb1p0_zbc1p0_zbkb1p0_zbkx1p0_zbs1p0";

/// An object file with this code and the attributes of an architecture.
fn object_file(code: &[u8], architecture: &str) -> Vec<u8> {
    const NAMES: &[u8] = b"\0.text\0.riscv.attributes\0.shstrtab\0";
    const HEADER: usize = 64;
    // Version, vendor's subsection, the file's attributes: Tag_RISCV_arch (5) and its text.
    let tag = [&[5][..], architecture.as_bytes(), &[0]].concat();
    let file = [&[1][..], &(tag.len() as u32 + 5).to_le_bytes(), &tag].concat();
    let attributes = [&b"A"[..], &(file.len() as u32 + 10).to_le_bytes(), b"riscv\0", &file].concat();
    let sections = [(1u32, 1u32, 6u64, code), (7, 0x7000_0003, 0, &attributes), (25, 3, 0, NAMES)];
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(HEADER, 0);
    let mut headers = vec![0; HEADER];
    for (name, kind, flags, contents) in sections {
        let words = [flags, 0, file.len() as u64, contents.len() as u64, 0, 2, 0];
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        headers.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        file.extend(contents);
    }
    let start = (file.len() as u64).to_le_bytes();
    file[16..24].copy_from_slice(&[1, 0, 243, 0, 1, 0, 0, 0]);
    file[40..48].copy_from_slice(&start);
    // Flags: compressed instructions, doubles in registers; then the sizes and numbers of headers.
    file[48..64].copy_from_slice(&[5, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 4, 0, 3, 0]);
    [file, headers].concat()
}

/// The text with a target as in an image without symbols, and without a comment.
fn without_symbol(text: &str) -> String {
    let text = text.split(" #").next().unwrap_or_default();
    let Some((text, _)) = text.split_once(" <") else { return text.trim().into() };
    let start = text.rfind([' ', ',']).map_or(0, |separator| separator + 1);
    format!("{}0x{}", &text[..start], &text[start..])
}

/// Address, word, number of bytes and text of every instruction that objdump lists.
fn listing(text: &str) -> impl Iterator<Item = (u64, u32, String)> {
    text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, '\t');
        let address = u64::from_str_radix(fields.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let word = u32::from_str_radix(fields.next()?.trim(), 16).ok()?;
        Some((address, word, without_symbol(&fields.next()?.replace('\t', " "))))
    })
}

/// The text with the shorter name that objdump 2.40 has for an operation on a constant: `add` for `addi`.
fn shortened(text: &str) -> String {
    let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
    let short = match name {
        "addiw" | "slliw" | "srliw" | "sraiw" | "roriw" => name.replacen("iw", "w", 1),
        "sltiu" => "sltu".into(),
        "slli.uw" => name.into(),
        _ => name.strip_suffix('i').unwrap_or(name).into(),
    };
    format!("{short} {operands}")
}

/// Whether a difference is one of the known ones.
fn explained(word: u32, theirs: &str) -> bool {
    // The word 0 is no instruction by intent; the sum of the stack pointer and 0 is reserved.
    let is_reserved = word == 0 && theirs == "unimp" || word == 0x6101;
    let Some(instruction) = decode_riscv(word) else { return is_reserved };
    use RiscvOp::*;
    let known: RiscvExtensions = ARCHITECTURE.parse().expect("a set");
    // Hints, whose compressed forms it writes as such.
    let is_hint = word & 3 != 3
        && (theirs.starts_with("c.") || theirs.starts_with("add "))
        && (instruction.rd == 0 || instruction.immediate == 0);
    // Processors ignore the fields that it wants to be 0; exact conversions round in no way.
    let has_ignored = matches!(instruction.op, Fence | FenceI | FcvtDW | FcvtDWu | FcvtDS | FcvtSH | FcvtDH)
        && theirs.starts_with(".4byte");
    // It names the registers of the system.
    let is_control_register = matches!(instruction.op, Csrrw | Csrrs | Csrrc | Csrrwi | Csrrsi | Csrrci)
        && !matches!(instruction.csr(), 1..=3 | 0xc00..=0xc1f);
    !instruction.is_in(known) || is_hint || has_ignored || is_control_register
}

/// Compares a listing with our own text; `count` is the least number of instructions it must have.
fn compare(text: &str, count: usize) {
    let (mut seen, mut wrong, mut report) = (0, 0, String::new());
    for (address, word, theirs) in listing(text) {
        seen += 1;
        let ours = Riscv.disassemble(word, address);
        let is_none =
            theirs.starts_with(".2byte") || theirs.starts_with(".4byte") || theirs.starts_with("0x");
        let ours = ours.unwrap_or_else(|| if is_none { theirs.clone() } else { "none".into() });
        if ours != theirs && shortened(&ours) != theirs && !explained(word, &theirs) {
            wrong += 1;
            if wrong <= 60 {
                writeln!(report, "{word:08x} ours {ours:32} objdump {theirs}").expect("a string");
            }
        }
    }
    assert!(seen >= count, "objdump listed {seen} instructions of {count}");
    assert_eq!(wrong, 0, "of {seen} instructions\n{report}");
}

/// Compares these words as code.
fn compare_words(name: &str, words: impl Iterator<Item = u32>, count: usize) {
    let path = format!("{}/{name}.o", env!("CARGO_TARGET_TMPDIR"));
    let code: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&path, object_file(&code, ARCHITECTURE)).expect("a writable target directory");
    compare(&objdump(OBJDUMP, &["-d", "-z", &path]), count);
}

#[test]
fn random_words() {
    let mut random = fastrand::Rng::with_seed(1);
    compare_words("riscv-random", (0..100_000).map(|_| random.u32(..)), 100_000);
}

/// Each word of two bytes.
#[test]
fn words_of_two_bytes() {
    let halves = (0..0x1_0000).filter(|half| half & 3 != 3);
    let mut pairs: Vec<u32> = halves.collect();
    pairs.push(1);
    compare_words(
        "riscv-compressed",
        pairs.chunks_exact(2).map(|pair| pair[0] | pair[1] << 16),
        pairs.len() - 1,
    );
}

/// Words of each operation that objdump knows, with all kinds of registers and constants.
#[test]
fn words_of_each_operation() {
    const OF_EACH: usize = 600;
    // Zicond has 2, Zacas 5, Zabha 18, Zfa 22, and Zimop 2.
    const UNKNOWN_OPERATIONS: usize = 2 + 5 + 18 + 22 + 2;
    let mut random = fastrand::Rng::with_seed(2);
    let known: RiscvExtensions = ARCHITECTURE.parse().expect("a set");
    // Those of which there is one word, or few, come first.
    let few = [
        0x73,
        0x0010_0073,
        0x0100_000f,
        0x8330_000f,
        0x00d0_0073,
        0x01d0_0073,
        0x0015_200f,
        0x0025_200f,
        0x0045_200f,
        0x00b5_2533,
        0x4015_7553,
        0x4025_7553,
    ];
    let registers = [0, u32::MAX, 5 << 15, 1 << 7 | 1 << 15];
    let others = std::iter::repeat_with(move || {
        let (any, function) = (random.u32(..), random.u32(..) & 0xfe00_7000 | random.u32(..4) << 25);
        // Operations on one register have a small number in the field of the second source.
        let few_bits = any & !(0x1c << 20);
        let fields = [any, few_bits, few_bits, registers[random.usize(..4)]][random.usize(..4)];
        random.u32(..32) << 2 | 3 | fields & 0x1fff_8f80 | function
    });
    let bits = [0x6000, 0x6010, 0x6020, 0x6040, 0x6050, 0x2870, 0x6b80, 0x6870, 0x0800]
        .into_iter()
        .flat_map(|high| [0x1013, 0x5013, 0x101b, 0x403b].map(|low| high << 16 | low | 10 << 7 | 11 << 15));
    let (mut words, mut counts) = (Vec::new(), HashMap::new());
    for word in few.into_iter().chain(bits).chain(others.take(3_000_000)) {
        if let Some(found) = decode_riscv(word).filter(|found| found.is_in(known)) {
            let count = counts.entry(found.op).or_insert(0);
            *count += 1;
            if *count <= OF_EACH {
                words.push(word);
            }
        }
    }
    let missed: Vec<_> = RiscvOp::ALL.into_iter().filter(|op| !counts.contains_key(op)).collect();
    assert_eq!(missed.len(), UNKNOWN_OPERATIONS, "{missed:?} were not compared");
    let count = words.len();
    compare_words("riscv-operations", words.into_iter(), count);
}

#[test]
fn a_library() {
    let path = "/usr/riscv64-linux-gnu/lib/libc.so.6";
    let text = objdump(OBJDUMP, &["-d", "-z", path]);
    compare(&text, 250_000);
}
