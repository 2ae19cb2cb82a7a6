//! RISC-V's decoder and disassembler against GNU objdump.
//!
//! objdump 2.40 does not know some extensions, and its text depends on the architecture in the image's attributes, so that the
//! words are put into an object file. Systematic exceptions are in [`explained`].

use pathlength_isa::{InstructionSet, Riscv, RiscvExtensions, RiscvOp, decode_riscv};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Command;

const OBJDUMP: &str = "riscv64-linux-gnu-objdump";
/// What objdump 2.40 knows of the extensions in the table.
const ARCHITECTURE: &str = "rv64i2p1_m2p0_a2p1_f2p2_d2p2_c2p0_zicsr2p0_zifencei2p0_zihintpause2p0_zicbom1p0_zicboz1p0_zawrs1p0\
    _zfh1p0_zfhmin1p0_zba1p0_zbb1p0_zbc1p0_zbkb1p0_zbkx1p0_zbs1p0";

/// What objdump writes with these arguments.
fn objdump(arguments: &[&str]) -> String {
    let output = Command::new(OBJDUMP).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{OBJDUMP}: {e}: install binutils-riscv64-linux-gnu"));
    assert!(output.status.success(), "{OBJDUMP}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("objdump writes text")
}

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
    compare(&objdump(&["-d", "-z", &path]), count);
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

/// Words of each operation, with all kinds of registers and constants.
#[test]
fn words_of_each_operation() {
    let mut random = fastrand::Rng::with_seed(2);
    let known: RiscvExtensions = ARCHITECTURE.parse().expect("a set");
    let (mut words, mut met) = (Vec::new(), HashSet::new());
    while words.len() < 100_000 {
        let opcode = random.u32(..32) << 2 | 3;
        let registers = [random.u32(..), 0, u32::MAX, 5 << 15, 1 << 7 | 1 << 15][random.usize(..5)];
        let function = random.u32(..) & 0xfe00_7000 | random.u32(..4) << 25;
        let word = opcode | registers & 0x1fff_8f80 | function;
        if let Some(instruction) = decode_riscv(word).filter(|found| found.is_in(known)) {
            met.insert(instruction.op);
            words.push(word);
        }
    }
    let is_known =
        |op: &RiscvOp| words.iter().any(|&word| decode_riscv(word).is_some_and(|found| found.op == *op));
    let missed: Vec<_> = RiscvOp::ALL.into_iter().filter(|op| !met.contains(op) && is_known(op)).collect();
    assert!(missed.is_empty() && met.len() > 200, "{missed:?} were not compared; {} were", met.len());
    compare_words("riscv-operations", words.into_iter(), 100_000);
}

#[test]
fn a_library() {
    let path = "/usr/riscv64-linux-gnu/lib/libc.so.6";
    let text = objdump(&["-d", "-z", path]);
    compare(&text, 250_000);
}
