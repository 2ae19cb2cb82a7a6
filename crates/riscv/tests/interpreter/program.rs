//! Static programs, made word by word, and their execution by qemu-riscv64 and by the interpreter.

use std::process::Command;

use guest::Stop;
use guest::interpreter::{self, InterpreterExit, Limits};
use guest_memory::{Layout, Memory, RegionBacking};
use isa::RiscvExtensions;
use pathlength_riscv::{RiscvBlockCache, RiscvCpu, register};

/// Where the code is.
pub const CODE: u64 = 0x1_0000;
/// Where the data are, which the program writes to its standard output when it ends.
pub const DATA: u64 = 0x100_0000;

/// A program: instructions, and data.
pub struct Program {
    pub code: Vec<u8>,
    pub data: Vec<u8>,
}

impl Program {
    pub fn new(data: Vec<u8>) -> Program {
        Program { code: Vec::new(), data }
    }

    /// Appends an instruction of two or four bytes.
    pub fn push(&mut self, word: u32) {
        self.code.extend(&word.to_le_bytes()[..isa::riscv_length(word) as usize]);
    }

    /// Sets a register to an address below 2 GiB.
    pub fn load_address(&mut self, rd: u32, address: u64) {
        let upper = (address as u32).wrapping_add(0x800) & 0xffff_f000;
        self.push(upper | rd << 7 | 0x37);
        self.push(addi(rd, rd, (address as u32).wrapping_sub(upper) as i32));
    }

    /// Writes the data, and ends the program.
    pub fn finish(&mut self) {
        let length = self.data.len() as u64;
        self.load_address(11, DATA);
        self.load_address(12, length);
        for (rd, value) in [(17, 64), (10, 1)] {
            self.push(addi(rd, 0, value));
        }
        self.push(ECALL);
        for (rd, value) in [(17, 93), (10, 0)] {
            self.push(addi(rd, 0, value));
        }
        self.push(ECALL);
    }

    /// As an ELF file with two segments.
    fn image(&self) -> Vec<u8> {
        const START: usize = 0x1000;
        let data_start = (START + self.code.len()).next_multiple_of(0x1000);
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend([2, 0, 243, 0, 1, 0, 0, 0]);
        for word in [CODE, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        // Flags (compressed instructions, doubles in registers); sizes and numbers of headers.
        file.extend([5, 0, 0, 0, 64, 0, 56, 0, 2, 0, 64, 0, 0, 0, 0, 0]);
        let segments = [(5u32, START, CODE, self.code.len()), (6, data_start, DATA, self.data.len())];
        for (flags, offset, address, length) in segments {
            file.extend(1u32.to_le_bytes());
            file.extend(flags.to_le_bytes());
            let words = [offset as u64, address, address, length as u64, length as u64, 0x1000];
            file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        file.resize(START, 0);
        file.extend(&self.code);
        file.resize(data_start, 0);
        file.extend(&self.data);
        file
    }

    /// The data after its execution by qemu-riscv64.
    pub fn run_by_qemu(&self, name: &str, qemu: &str, cpu: &str) -> Vec<u8> {
        use std::os::unix::fs::PermissionsExt;
        let path = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(&path, self.image()).expect("a writable target directory");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("an own file");
        let output = Command::new(qemu).args(["-cpu", cpu, &path]).output();
        let output = output.unwrap_or_else(|error| panic!("{qemu}: {error}: run ./setup"));
        assert!(
            output.status.success(),
            "{path}: {:?} {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// The same by the interpreter, and the processor at the end.
    pub fn run(&self, extensions: RiscvExtensions) -> (Vec<u8>, RiscvCpu) {
        let memory = memory();
        let map = |start: u64, bytes: &[u8]| {
            let length = (bytes.len() as u64 + 4096).next_multiple_of(4096);
            memory.map_anonymous(start, length, 7, false, RegionBacking::Anonymous).expect("a mapping");
            memory.write(start, bytes).expect("mapped memory");
        };
        map(CODE, &self.code);
        map(DATA, &self.data);
        let mut cpu = RiscvCpu { pc: CODE, extensions, ..RiscvCpu::default() };
        let mut cache = RiscvBlockCache::new(extensions);
        loop {
            match interpreter::run(&mut cpu, &memory, &mut cache, Limits::default(), &mut (), || false) {
                InterpreterExit::Stop(Stop::SystemCall) if cpu.x[register::A7] == 64 => {}
                InterpreterExit::Stop(Stop::SystemCall) => break,
                other => panic!("{other:?} at {:#x}", cpu.pc),
            }
        }
        let mut data = vec![0; self.data.len()];
        memory.read(DATA, &mut data).expect("mapped memory");
        (data, cpu)
    }
}

/// An empty address space.
pub fn memory() -> Memory {
    let layout =
        Layout { page: 4096, bytes: 1 << 38, map_base: 1 << 36, large_page: 1 << 21, large_base: 1 << 37 };
    Memory::new(layout).expect("address space")
}

pub const ECALL: u32 = 0x73;

pub fn addi(rd: u32, rs1: u32, value: i32) -> u32 {
    (value as u32) << 20 | rs1 << 15 | rd << 7 | 0x13
}

/// `ld` or `fld` (opcode 3 or 7).
pub fn load(opcode: u32, rd: u32, base: u32, displacement: u32) -> u32 {
    displacement << 20 | base << 15 | 3 << 12 | rd << 7 | opcode
}

/// `sd` or `fsd` (opcode 0x23 or 0x27).
pub fn store(opcode: u32, source: u32, base: u32, displacement: u32) -> u32 {
    (displacement >> 5) << 25 | source << 20 | base << 15 | 3 << 12 | (displacement & 31) << 7 | opcode
}
