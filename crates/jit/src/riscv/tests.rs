//! Random programs of RISC-V, interpreted and compiled: the same registers, memory, counts and records.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use guest::Stop;
use guest_memory::{Layout, Memory, RegionBacking};
use isa::{InstructionSet, Riscv, RiscvExtensions, RiscvInstruction, decode_riscv};

use super::*;
use crate::test_runner::{ACCESSES, COUNTS, GuestRunner, MEMORY, OFF};

const CODE: u64 = 1 << 36;
const CODE_BYTES: u64 = 1 << 20;
/// The memory that programs access; base registers point to its middle.
const DATA: u64 = CODE + CODE_BYTES;
const DATA_BYTES: u64 = 8192;
const LAYOUT: Layout =
    Layout { page: 4096, bytes: 1 << 38, map_base: 1 << 36, large_page: 1 << 21, large_base: 1 << 37 };

/// Registers with addresses of the data, which random instructions do not write: two held ones, two others.
const BASES: [u8; 4] = [2, 8, 30, 31];
/// The counter of rounds, the register of a table of addresses, and the link register of the outer level.
const RESERVED: [u8; 4] = [27, 26, 1, 5];
const ROUNDS: u32 = 12;
/// The bits above a single in a register.
const BOX: u64 = 0xffff_ffff << 32;

/// Whether an instruction may be anywhere in a program.
fn is_plain(instruction: &RiscvInstruction) -> bool {
    use RiscvOperands::*;
    let RiscvInstruction { op, rd, rs1, immediate, .. } = *instruction;
    let keeps = op.has_float_result() || !BASES.contains(&rd) && !RESERVED.contains(&rd);
    let is_allowed = match op.operands() {
        Branch | RdTarget | RdRs1Jump | Block => false,
        Nothing => matches!(op, RiscvOp::Pause | RiscvOp::WrsSto),
        Csr | CsrImm => instruction.csr() == 1,
        RdMemory | Rs2Memory | FdMemory | Fs2Memory => {
            BASES.contains(&rs1) && (-1024..1024).contains(&immediate)
        }
        Atomic | LoadReserved => BASES.contains(&rs1) && op != RiscvOp::AmocasQ,
        _ => true,
    };
    let has_mode = instruction.rounding() != 5 && instruction.rounding() != 6;
    is_allowed && keeps && (has_mode || !op.mnemonic().starts_with('f'))
}

/// Words of each instruction, by name.
fn pool() -> Vec<Vec<u32>> {
    let mut random = fastrand::Rng::with_seed(3);
    let mut pool: BTreeMap<&'static str, Vec<u32>> = BTreeMap::new();
    for _ in 0..3_000_000 {
        let any = random.u32(..);
        let base = u32::from(BASES[random.usize(..BASES.len())]);
        let near = any & !(31 << 15) & !(1 << 31) & !(1 << 30) | base << 15;
        let word = if random.bool() { near } else { any };
        let word = if isa::riscv_length(word) == 2 { word & 0xffff } else { word };
        let Some(found) = decode_riscv(word).filter(is_plain) else { continue };
        let words = pool.entry(found.mnemonic()).or_default();
        if words.len() < 100 {
            words.push(word);
        }
    }
    assert!(pool.len() > 270, "{} instructions", pool.len());
    pool.into_values().collect()
}

/// A program being made.
struct RiscvProgram<'a> {
    code: Vec<u8>,
    pool: &'a [Vec<u32>],
    random: fastrand::Rng,
}

fn register_type(opcode: u32, function: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    opcode | rd << 7 | function << 12 | rs1 << 15 | rs2 << 20
}

fn immediate_type(opcode: u32, function: u32, rd: u32, rs1: u32, value: i32) -> u32 {
    register_type(opcode, function, rd, rs1, 0) | (value as u32) << 20
}

/// A store of a double word.
fn store(source: u32, base: u32, displacement: u32) -> u32 {
    register_type(0x23, 3, displacement & 31, base, source) | displacement >> 5 << 25
}

fn branch(function: u32, rs1: u32, rs2: u32, distance: i32) -> u32 {
    let d = distance as u32;
    let bits = (d >> 12 & 1) << 31 | (d >> 5 & 0x3f) << 25 | (d >> 1 & 15) << 8 | (d >> 11 & 1) << 7;
    register_type(0x63, function, 0, rs1, rs2) | bits
}

fn jump(rd: u32, distance: i32) -> u32 {
    let d = distance as u32;
    0x6f | rd << 7
        | (d >> 20 & 1) << 31
        | (d >> 1 & 0x3ff) << 21
        | (d >> 11 & 1) << 20
        | (d >> 12 & 0xff) << 12
}

impl RiscvProgram<'_> {
    fn push(&mut self, word: u32) {
        self.code.extend(&word.to_le_bytes()[..isa::riscv_length(word) as usize]);
    }

    fn set(&mut self, at: usize, word: u32) {
        self.code[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    fn plain(&mut self, count: usize) {
        for _ in 0..count {
            // Half of them are integer operations and accesses, which are compiled.
            let words = &self.pool[self.random.usize(..self.pool.len())];
            let word = words[self.random.usize(..words.len())];
            let is_float = decode_riscv(word).is_some_and(|found| found.mnemonic().starts_with('f'));
            if is_float && self.random.u8(..2) != 0 {
                continue;
            }
            let found = decode_riscv(word).expect("an instruction");
            // Rounding is often dynamic, and numbers that are compared are often equal.
            let word = match found.op.operands() {
                RiscvOperands::FdFs1Fs2Round | RiscvOperands::FdFs1Round if self.random.bool() => {
                    word | 7 << 12
                }
                RiscvOperands::RdFs1Fs2 if self.random.u8(..3) == 0 => {
                    word & !(31 << 20) | u32::from(found.rs1) << 20
                }
                _ => word,
            };
            // Its sources get new values now and then, and its result is seen in memory.
            for source in [found.rs1, found.rs2] {
                let displacement = 8 * self.random.i32(0..64);
                if is_float && self.random.bool() {
                    self.push(immediate_type(0x07, 3, source.into(), 2, displacement));
                } else if self.random.bool() && !BASES.contains(&source) && !RESERVED.contains(&source) {
                    self.push(immediate_type(0x03, 3, source.into(), 2, displacement));
                }
            }
            // Now and then no exception was recorded before, and those of the instruction are seen.
            let shows_flags = is_float && self.random.bool();
            if shows_flags {
                // csrwi fflags,0
                self.push(0x0010_5073);
            }
            self.push(word);
            if shows_flags {
                // csrr t2,fflags
                self.push(0x0010_23f3);
                let displacement = 512 + 8 * self.random.u32(..160);
                self.push(store(7, 31, displacement));
            }
            if found.op.has_float_result() {
                let displacement = 512 + 8 * self.random.u32(..160);
                self.push(store(found.rd.into(), 31, displacement) | 4);
            } else if self.random.bool() {
                let displacement = 512 + 8 * self.random.u32(..160);
                self.push(store(found.rd.into(), 31, displacement));
            }
        }
    }

    /// Two instructions that are compiled as one: constants, and extensions by shifts, also such that are none.
    fn pair(&mut self) {
        let rd = [7, 9, 11, 15, 28][self.random.usize(..5)];
        let rs1 = [rd, self.random.u32(..32)][self.random.usize(..2)];
        if self.random.bool() {
            let upper = [0x37, 0x17][self.random.usize(..2)];
            let (high, low) = (self.random.u32(..) & 0xffff_f000, self.random.i32(-2048..2048));
            self.push(upper | rd << 7 | high);
            let opcode = [0x13, 0x1b][self.random.usize(..2)];
            self.push(immediate_type(opcode, 0, rd, rd, low));
        } else {
            let left = [32, 48, 56, 33][self.random.usize(..4)];
            let right = [left, left, self.random.i32(0..64)][self.random.usize(..3)];
            let arithmetic = [0, 0x400][self.random.usize(..2)];
            self.push(immediate_type(0x13, 1, rd, rs1, left));
            self.push(immediate_type(0x13, 5, rd, rd, right | arithmetic));
        }
        let displacement = 512 + 8 * self.random.u32(..160);
        self.push(store(rd, 31, displacement));
    }

    /// A load-reserved and a store-conditional, whose success is seen; now and then not of the same size.
    fn reserved(&mut self) {
        let base = u32::from(BASES[self.random.usize(..BASES.len())]);
        let sizes = [2 + self.random.u32(..2), 2 + self.random.u32(..2)];
        self.push(register_type(0x2f, sizes[0], 7, base, 0) | 2 << 27);
        let between = self.random.usize(..3);
        self.plain(between);
        let (source, displacement) = (self.random.u32(..18), 512 + 8 * self.random.u32(..160));
        self.push(register_type(0x2f, sizes[1], 28, base, source) | 3 << 27);
        self.push(store(28, 31, displacement));
    }

    /// A run of instructions, over which a conditional branch may jump.
    fn part(&mut self) {
        if self.random.u8(..3) == 0 {
            self.reserved();
        }
        if self.random.bool() {
            self.pair();
        }
        let length = self.random.usize(..24);
        self.plain(length);
        let at = self.code.len();
        let (function, rs1, rs2) =
            ([0, 1, 4, 5, 6, 7][self.random.usize(..6)], self.random.u32(..32), self.random.u32(..32));
        let rs2 = if self.random.u8(..3) == 0 { 0 } else { rs2 };
        self.push(branch(function, rs1, rs2, 4));
        let length = self.random.usize(..16);
        self.plain(length);
        let distance = (self.code.len() - at) as i32;
        self.set(at, branch(function, rs1, rs2, distance));
    }

    /// A function, whose address it returns. It returns by ra, or by t0.
    fn function(&mut self, link: u32) -> usize {
        let at = self.code.len();
        for _ in 0..2 {
            self.part();
        }
        self.push(immediate_type(0x67, 0, 0, link, 0));
        at
    }

    /// A call of a function in one of the forms that compilers have.
    fn call(&mut self, function: usize, link: u32) {
        let distance = function as i32 - self.code.len() as i32;
        let upper = (distance + 0x800) >> 12;
        match self.random.u8(..4) {
            0 => self.push(jump(link, distance)),
            1 => {
                self.push(0x17 | link << 7 | (upper as u32) << 12);
                self.push(immediate_type(0x67, 0, link, link, distance - (upper << 12)));
            }
            2 => {
                // The address in a register, less a displacement.
                let before = distance - 64;
                let upper = (before + 0x800) >> 12;
                self.push(0x17 | 28 << 7 | (upper as u32) << 12);
                self.push(immediate_type(0x13, 0, 28, 28, before - (upper << 12)));
                self.push(immediate_type(0x67, 0, link, 28, 64));
            }
            _ => {
                // By a jump that is none of a call, as linkers' stubs make.
                self.push(jump(link, 8));
                let here = self.code.len();
                self.push(jump(0, 12));
                let distance = function as i32 - self.code.len() as i32;
                let upper = (distance + 0x800) >> 12;
                self.push(0x17 | 28 << 7 | (upper as u32) << 12);
                self.push(immediate_type(0x67, 0, 6, 28, distance - (upper << 12)));
                let behind = (self.code.len() - here) as i32;
                self.set(here, jump(0, behind));
            }
        }
    }
}

/// A program: functions, and a loop of runs of instructions, calls and branches. In its last round it accesses the address in a
/// register, which need not be mapped.
fn program(pool: &[Vec<u32>], seed: u64) -> (Vec<u8>, u64) {
    let mut program = RiscvProgram { code: Vec::new(), pool, random: fastrand::Rng::with_seed(seed) };
    let links = [1, 1, 5, 1];
    let functions = links.map(|link| program.function(link));
    let start = program.code.len();
    program.push(immediate_type(0x13, 0, 27, 0, ROUNDS as i32));
    let head = program.code.len();
    for _ in 0..24 {
        program.part();
        let number = program.random.usize(..functions.len());
        program.call(functions[number], links[number]);
        // The next address of the table, by a register that is held.
        program.push(immediate_type(0x03, 3, 15, 26, 0));
        program.push(immediate_type(0x03, 3, 14, 15, 16));
        program.push(immediate_type(0x13, 0, 26, 26, 8));
    }
    program.push(immediate_type(0x13, 0, 27, 27, -1));
    let distance = head as i32 - program.code.len() as i32;
    // The loop is longer than a branch reaches, perhaps.
    program.push(branch(0, 27, 0, 8));
    program.push(jump(0, distance - 4));
    program.push(0x73);
    (program.code, start as u64)
}

/// The state at the end of a program.
#[derive(PartialEq, Debug)]
struct RiscvEnd {
    x: Vec<u64>,
    f: [u64; 32],
    fcsr: u64,
    pc: u64,
    data: Vec<u8>,
    stop: Stop<riscv::RiscvException>,
    unaligned: Option<u64>,
    instructions: Option<u64>,
    executions: Vec<(u64, usize, u64)>,
    records: Vec<u64>,
}

/// Values at which instructions behave differently.
fn value(random: &mut fastrand::Rng) -> u64 {
    let power = 1u64 << random.u32(..64);
    let value = match random.u8(..8) {
        0 => random.u64(..),
        // A double and a boxed single, of few bits or of many.
        4 | 5 => {
            let number = f64::from(random.i32(-4..4)) * 2f64.powi(random.i32(-2..2));
            (if random.bool() { number } else { number / 3.0 }).to_bits()
        }
        6 | 7 => {
            let number = random.i32(-64..64) as f32 / [1.0, 8.0, 3.0][random.usize(..3)];
            return u64::from(number.to_bits()) | BOX;
        }
        1 => random.u64(..70),
        2 => power.wrapping_sub(random.u64(..2)),
        _ => random.u32(..) as i32 as u64,
    };
    if random.bool() { value } else { value.wrapping_neg() }
}

/// Runs a program; the fault comes with this access by the table, if the program makes so many.
fn run<const LEVEL: u8>(code: &[u8], start: u64, fault: usize, is_compiled: bool) -> (RiscvEnd, u32) {
    let memory = Memory::new(LAYOUT).expect("address space");
    let table = DATA + DATA_BYTES;
    for (at, bytes, protection) in [(CODE, CODE_BYTES, 7), (DATA, 4 * DATA_BYTES, 3)] {
        memory.map_anonymous(at, bytes, protection, false, RegionBacking::Anonymous).expect("memory");
    }
    memory.write(CODE, code).expect("the program fits");
    let mut random = fastrand::Rng::with_seed(start);
    let words: Vec<u8> = (0..DATA_BYTES / 8).flat_map(|_| value(&mut random).to_le_bytes()).collect();
    memory.write(DATA, &words).expect("memory");
    for number in 0..(2 * DATA_BYTES / 8) as usize {
        let bad = [0x10, CODE - 4096, u64::MAX - 64, 1 << 40][number % 4];
        let value = if number == fault { bad } else { DATA + random.u64(..512) };
        memory.store::<8>(table + 8 * number as u64, value).expect("memory");
    }
    let mut cpu = RiscvCpu { pc: CODE + start, extensions: RiscvExtensions::ALL, ..RiscvCpu::default() };
    for n in 1..32 {
        cpu.x[n] = random.u64(..) >> random.u32(..64);
        cpu.f[n] = if random.bool() { random.u64(..) } else { random.u64(..) | BOX };
    }
    for base in BASES {
        cpu.x[usize::from(base)] = DATA + DATA_BYTES / 2;
    }
    cpu.x[26] = table;
    cpu.fcsr = if start % 8 < 2 { random.u64(..5) << 5 } else { 0 };
    let runner = GuestRunner::<_, LEVEL>::new(cpu, RiscvExtensions::ALL, &memory, is_compiled).run();
    assert_eq!(runner.entered > 0, is_compiled);
    let mut executions: Vec<_> = runner
        .observer
        .executions
        .iter()
        .filter(|(_, times)| **times > 0)
        .map(|(&id, &times)| {
            let block = runner.cache.block(id);
            (block.address, block.instructions.len(), times)
        })
        .collect();
    executions.sort_unstable();
    let mut data = vec![0; DATA_BYTES as usize];
    memory.read(DATA, &mut data).expect("memory");
    let has_counts = LEVEL != OFF;
    let end = RiscvEnd {
        x: runner.guest.x[..32].to_vec(),
        f: runner.guest.f,
        fcsr: runner.guest.fcsr,
        pc: runner.guest.pc,
        data,
        stop: runner.ended.expect("the program ended"),
        unaligned: has_counts.then_some(runner.guest.unaligned),
        instructions: has_counts.then_some(runner.guest.instructions),
        executions: if LEVEL == COUNTS { executions } else { Vec::new() },
        records: runner.observer.records,
    };
    (end, runner.faults)
}

fn compare<const LEVEL: u8>(programs: u64) {
    let _only = MEMORY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    static POOL: LazyLock<Vec<Vec<u32>>> = LazyLock::new(pool);
    let (mut faults, mut systems) = (0, 0);
    for seed in 0..programs {
        let (code, start) = program(&POOL, seed);
        let fault = if seed % 3 == 0 { 80 + (seed % 150) as usize } else { usize::MAX };
        let (interpreted, _) = run::<LEVEL>(&code, start, fault, false);
        let (compiled, faulted) = run::<LEVEL>(&code, start, fault, true);
        faults += faulted;
        systems += u32::from(compiled.stop == Stop::SystemCall);
        if compiled != interpreted {
            let path = std::env::temp_dir().join(format!("riscv-{seed}.txt"));
            std::fs::write(&path, listing(&code)).expect("a writable folder");
            panic!("program {seed}, {}:\n{}", path.display(), differences(&compiled, &interpreted));
        }
    }
    assert!(faults > 0 && systems > 0, "{faults} faults, {systems} ends");
}

/// The differences between the ends of a program that was compiled and interpreted.
fn differences(compiled: &RiscvEnd, interpreted: &RiscvEnd) -> String {
    let mut text = String::new();
    for n in 0..32 {
        if compiled.x[n] != interpreted.x[n] {
            text += &format!("x{n}: {:#x}, interpreted {:#x}\n", compiled.x[n], interpreted.x[n]);
        }
        if compiled.f[n] != interpreted.f[n] {
            text += &format!("f{n}: {:#x}, interpreted {:#x}\n", compiled.f[n], interpreted.f[n]);
        }
    }
    for end in [compiled, interpreted] {
        let RiscvEnd { pc, stop, fcsr, unaligned, instructions, .. } = end;
        text += &format!(
            "pc {pc:#x} {stop:?} fcsr {fcsr:#x} unaligned {unaligned:?} instructions {instructions:?}\n"
        );
    }
    let is_same = [
        ("data", compiled.data == interpreted.data),
        ("records", compiled.records == interpreted.records),
        ("executions", compiled.executions == interpreted.executions),
    ];
    text + &format!("the same: {is_same:?}")
}

/// The program's instructions.
fn listing(code: &[u8]) -> String {
    let (mut at, mut text) = (0, String::new());
    while at < code.len() {
        let mut bytes = [0; 4];
        let have = (code.len() - at).min(4);
        bytes[..have].copy_from_slice(&code[at..at + have]);
        let word = u32::from_le_bytes(bytes);
        let length = isa::riscv_length(word);
        let word = if length == 2 { word & 0xffff } else { word };
        let address = CODE + at as u64;
        text += &format!("{address:x} {word:8x} {}\n", Riscv.disassemble(word, address).unwrap_or_default());
        at += length as usize;
    }
    text
}

#[test]
fn compiled_programs_end_as_interpreted_ones_without_counts() {
    compare::<OFF>(testing::sample(25, 600));
}

#[test]
fn compiled_programs_are_counted_as_interpreted_ones() {
    compare::<COUNTS>(testing::sample(25, 600));
}

#[test]
fn compiled_programs_have_the_records_of_interpreted_ones() {
    compare::<ACCESSES>(testing::sample(25, 600));
}
