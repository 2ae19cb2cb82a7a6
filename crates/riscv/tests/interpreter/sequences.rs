//! Random sequences of instructions: registers, flags and memory after them must be those of qemu-riscv64.

use std::collections::BTreeMap;

use isa::{InstructionSet, Riscv, RiscvExtensions, RiscvInstruction, RiscvOp, RiscvOperands, decode_riscv};

use crate::program::{DATA, Program, addi, load, store};

/// The extensions that QEMU 7.2 has, and the same as a processor of QEMU.
const OLDER: (&str, &str) = (
    "rv64gc_zihintpause_zfh_zba_zbb_zbc_zbkb_zbkx_zbs",
    "rv64,Zfh=true,zba=true,zbb=true,zbc=true,zbs=true,zbkb=true,zbkx=true",
);
/// Of QEMU 10, which the environment variable `PATHLENGTH_QEMU_10` may name.
const NEWER: (&str, &str) = (
    "rv64gc_zihintpause_zfh_zba_zbb_zbc_zbkb_zbkx_zbs_zicond_zcb_zacas_zabha_zfa_zawrs_zimop_zcmop",
    "max,zacas=true,zabha=true,zbkb=true,zbkx=true,zfh=true,zimop=true,zcmop=true,zcb=true",
);

/// Registers that hold addresses of memory that sequences access: the stack pointer, the first one of compressed instructions,
/// and the last ones. Sequences do not write them.
const BASES: [u8; 4] = [2, 8, 30, 31];
/// Words of the state before and after a sequence: integer registers from 1 to 29, floating-point registers, the status.
const STATE: u64 = 64;
/// Bytes that sequences access; the bases are the middle.
const SCRATCH: u64 = 4096;
const SEQUENCES: u64 = 1500;
const LENGTH: usize = 12;

/// Values at which instructions behave differently.
fn integer(random: &mut fastrand::Rng) -> u64 {
    let power = 1u64 << random.u32(..64);
    let value = match random.u8(..6) {
        0 => random.u64(..),
        1 => random.u64(..16),
        2 => power.wrapping_sub(1),
        3 => power,
        4 => random.u32(..) as i32 as u64,
        _ => random.u64(..) & random.u64(..) & random.u64(..),
    };
    if random.bool() { value } else { value.wrapping_neg() }
}

/// A floating-point number of a format of 16, 32 or 64 bits, in a register; now and then without its box.
fn float(random: &mut fastrand::Rng) -> u64 {
    let (bits, fraction) = [(16, 10), (32, 23), (64, 52)][random.usize(..3)];
    let mask = u64::MAX >> (64 - bits);
    let exponents = (1u64 << (bits - 1 - fraction)) - 1;
    let middle = exponents / 2;
    let exponent = match random.u8(..8) {
        0 => 0,
        1 => exponents,
        2 => 1,
        3 => exponents - 1,
        4 => middle + random.u64(..66).min(middle),
        _ => middle + random.u64(..4),
    };
    let ones = (1 << fraction) - 1;
    let fraction_bits = match random.u8(..5) {
        0 => 0,
        1 => ones,
        2 => 1 << random.u32(..fraction),
        _ => random.u64(..) & ones,
    };
    let value = u64::from(random.bool()) << (bits - 1) | exponent << fraction | fraction_bits;
    if random.u8(..16) == 0 { value } else { value | !mask }
}

/// Whether an instruction may be in a sequence: it continues with the next one, accesses only the memory for sequences, and does not
/// change the rounding mode.
fn is_plain(instruction: &RiscvInstruction) -> bool {
    use RiscvOperands::*;
    let RiscvInstruction { op, rd, rs1, immediate, .. } = *instruction;
    let keeps_bases = op.has_float_result() || !BASES.contains(&rd);
    let is_rounded =
        matches!(op.operands(), FdFs1Fs2Fs3Round | FdFs1Fs2Round | FdFs1Round | RdFs1Round | FdRs1Round);
    let has_mode = !is_rounded || !matches!(instruction.rounding(), 5 | 6);
    let is_allowed = match op.operands() {
        Branch | RdTarget | RdRs1Jump | Block => false,
        Nothing => matches!(op, RiscvOp::Pause | RiscvOp::WrsSto),
        Csr | CsrImm => instruction.csr() == 1,
        RdMemory | Rs2Memory | FdMemory | Fs2Memory => {
            BASES.contains(&rs1) && (-1024..1024).contains(&immediate)
        }
        Atomic | LoadReserved => BASES.contains(&rs1),
        _ => true,
    };
    // The address of an instruction differs from that in the other program; compressed ones are at any even address.
    is_allowed && keeps_bases && has_mode && !matches!(op, RiscvOp::Auipc | RiscvOp::AmocasQ)
}

/// Words of each instruction that may be in a sequence.
fn pool(extensions: RiscvExtensions) -> Vec<Vec<u32>> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut pool: BTreeMap<&'static str, Vec<u32>> = BTreeMap::new();
    for _ in 0..6_000_000 {
        let any = random.u32(..);
        // Half of the words have a base where an access has it, and a small displacement.
        let base = u32::from(BASES[random.usize(..BASES.len())]);
        let near = any & !(31 << 15) & !(1 << 31) & !(1 << 30) | base << 15;
        let word = if random.bool() { near } else { any };
        let word = if isa::riscv_length(word) == 2 { word & 0xffff } else { word };
        let Some(found) = decode_riscv(word).filter(|found| found.is_in(extensions) && is_plain(found))
        else {
            continue;
        };
        let words = pool.entry(found.mnemonic()).or_default();
        if words.len() < 200 {
            words.push(word);
        }
    }
    assert!(pool.len() > 230, "{} instructions", pool.len());
    pool.into_values().collect()
}

/// A program of sequences, each of which begins with the registers' values in the data and ends with storing them there.
fn program(sequences: &[Vec<u32>], random: &mut fastrand::Rng) -> Program {
    let mut data = Vec::new();
    for _ in 0..sequences.len() {
        data.extend((0..29).flat_map(|_| integer(random).to_le_bytes()));
        data.extend((0..32).flat_map(|_| float(random).to_le_bytes()));
        let status = u64::from(random.u8(..5)) << 5 | u64::from(random.u8(..2));
        data.extend([status, 0, 0].map(u64::to_le_bytes).concat());
    }
    data.extend((0..SCRATCH / 8).flat_map(|_| integer(random).to_le_bytes()));
    let mut program = Program::new(data);
    let middle = DATA + sequences.len() as u64 * STATE * 8 + SCRATCH / 2;
    for (sequence, number) in sequences.iter().zip(0u64..) {
        program.load_address(31, DATA + number * STATE * 8);
        // A store-conditional that fails, since the address is another one: no load-reserved before the sequence counts.
        program.push(3 << 27 | 31 << 15 | 3 << 12 | 0x2f);
        program.push(load(3, 1, 31, 8 * 61));
        // fscsr ra
        program.push(3 << 20 | 1 << 15 | 1 << 12 | 0x73);
        for n in 0..32 {
            program.push(load(7, n, 31, 8 * (29 + n)));
        }
        for n in 1..30 {
            program.push(load(3, n, 31, 8 * (n - 1)));
        }
        program.load_address(31, middle);
        for base in [2, 8, 30] {
            program.push(addi(base, 31, 0));
        }
        sequence.iter().for_each(|&word| program.push(word));
        program.load_address(31, DATA + number * STATE * 8);
        for n in 0..32 {
            program.push(store(0x27, n, 31, 8 * (29 + n)));
        }
        for n in 1..30 {
            program.push(store(0x23, n, 31, 8 * (n - 1)));
        }
        // frcsr ra
        program.push(3 << 20 | 2 << 12 | 1 << 7 | 0x73);
        program.push(store(0x23, 1, 31, 8 * 61));
    }
    program.finish();
    program
}

/// The differences between two results, with the sequence.
fn differences(ours: &[u8], theirs: &[u8], before: &[u8], sequences: &[Vec<u32>]) -> Vec<String> {
    let word =
        |bytes: &[u8], index: usize| u64::from_le_bytes(bytes[8 * index..][..8].try_into().expect("a word"));
    let mut all = Vec::new();
    for (number, sequence) in sequences.iter().enumerate() {
        let first = number * STATE as usize;
        let is_different = |&n: &usize| word(ours, first + n) != word(theirs, first + n);
        let different: Vec<usize> = (0..STATE as usize).filter(is_different).collect();
        if different.is_empty() {
            continue;
        }
        let mut text = format!("sequence {number}, status {:#x}:\n", word(before, first + 61));
        for &one in sequence {
            text += &format!("  {}\n", Riscv.disassemble(one, 0).expect("an instruction"));
        }
        for n in different {
            let name = if n < 29 { format!("x{}", n + 1) } else { format!("f{}", n as i64 - 29) };
            let [mine, other, old] = [ours, theirs, before].map(|bytes| word(bytes, first + n));
            text += &format!("  {name}: {mine:#x}, qemu-riscv64 {other:#x}, before {old:#x}\n");
        }
        all.push(text);
    }
    all
}

/// Random sequences of instructions of the pool.
fn sequences(pool: &[Vec<u32>], random: &mut fastrand::Rng) -> Vec<Vec<u32>> {
    let mut sequence = |number: u64| {
        // QEMU's store-conditional ignores the size of the load-reserved.
        let is_word = number.is_multiple_of(2);
        let fits = |word: &u32| match decode_riscv(*word).expect("an instruction").op {
            RiscvOp::LrW | RiscvOp::ScW => is_word,
            RiscvOp::LrD | RiscvOp::ScD => !is_word,
            _ => true,
        };
        let mut words = Vec::new();
        while words.len() < LENGTH {
            let candidates = &pool[random.usize(..pool.len())];
            let word = candidates[random.usize(..candidates.len())];
            // QEMU 10.0 leaves out a `froundnx` whose result is overwritten, and with it the flags.
            let is_last = words.len() + 1 == LENGTH;
            let is_left_out =
                Riscv.mnemonic(word).is_some_and(|name| name.starts_with("froundnx")) && !is_last;
            words.extend(Some(word).filter(|word| fits(word) && !is_left_out));
        }
        words
    };
    (0..SEQUENCES).map(&mut sequence).collect()
}

#[test]
fn random_sequences_are_executed_as_by_qemu() {
    let newer = std::env::var("PATHLENGTH_QEMU_10").ok();
    let (extensions, cpu) = if newer.is_some() { NEWER } else { OLDER };
    let qemu = newer.unwrap_or_else(|| "qemu-riscv64".into());
    let extensions: RiscvExtensions = extensions.parse().expect("a set");
    let mut pool = pool(extensions);
    if cpu == NEWER.1 {
        // QEMU 10.0 divides constants when it translates, and crashes if the quotient overflows.
        let divides = |word: u32| {
            Riscv.mnemonic(word).is_some_and(|name| name.starts_with("div") || name.starts_with("rem"))
        };
        pool.retain(|words| !divides(words[0]));
        // Its amocas to register 0 changes what later instructions take for 0.
        let is_wrong = |found: RiscvInstruction| found.mnemonic().starts_with("amocas") && found.rd == 0;
        pool.iter_mut().for_each(|words| words.retain(|&word| !decode_riscv(word).is_some_and(is_wrong)));
    }
    for seed in 0..testing::sample(1, 40) {
        let mut random = fastrand::Rng::with_seed(seed);
        let sequences = sequences(&pool, &mut random);
        let program = program(&sequences, &mut random);
        let theirs = program.run_by_qemu("riscv-sequences", &qemu, cpu);
        let (ours, _) = program.run(extensions);
        assert_eq!(ours.len(), theirs.len());
        let found = differences(&ours, &theirs, &program.data, &sequences);
        let shown = found[..found.len().min(6)].join("\n");
        assert!(found.is_empty(), "{} of {SEQUENCES} sequences differ:\n{shown}", found.len());
        let scratch = (SEQUENCES * STATE * 8) as usize;
        assert!(ours[scratch..] == theirs[scratch..], "memory differs");
    }
}
