//! Runs static programs without an operating system, but for `exit`: prints each one's exit code.
use guest::{
    Stop,
    interpreter::{self, InterpreterExit, Limits},
};
use guest_memory::{Layout, Memory, RegionBacking};
use pathlength_riscv::{RiscvBlockCache, RiscvCpu};

fn main() {
    let layout =
        Layout { page: 4096, bytes: 1 << 38, map_base: 1 << 36, large_page: 1 << 21, large_base: 1 << 37 };
    let memory = Memory::new(layout).expect("memory");
    let mut failed = 0;
    for path in std::env::args().skip(1) {
        memory.clear();
        let elf = std::fs::read(&path).expect("a file");
        let u64_at = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap());
        let u16_at = |at: usize| u16::from_le_bytes(elf[at..at + 2].try_into().unwrap());
        let (table, count) = (u64_at(32) as usize, u16_at(56) as usize);
        for header in (0..count).map(|n| table + 56 * n).filter(|h| elf[*h..h + 4] == [1, 0, 0, 0]) {
            let (offset, start, file, size) = (
                u64_at(header + 8) as usize,
                u64_at(header + 16),
                u64_at(header + 32) as usize,
                u64_at(header + 40),
            );
            let first = start & !4095;
            let end = (start + size + 4095) & !4095;
            memory.map_anonymous(first, end - first, 7, false, RegionBacking::Anonymous).expect("mapped");
            memory.write(start, &elf[offset..offset + file]).expect("written");
        }
        let mut cpu =
            RiscvCpu { pc: u64_at(24), extensions: isa::RiscvExtensions::ALL, ..RiscvCpu::default() };
        let stack = 1 << 35;
        memory.map_anonymous(stack, 1 << 20, 3, false, RegionBacking::Anonymous).expect("a stack");
        cpu.x[2] = stack + (1 << 19);
        let mut cache = RiscvBlockCache::new(cpu.extensions);
        let outcome = loop {
            match interpreter::run(&mut cpu, &memory, &mut cache, Limits::default(), &mut (), || false) {
                InterpreterExit::Stop(Stop::InstructionBarrier) => cache.invalidate(),
                InterpreterExit::Stop(Stop::SystemCall) if cpu.x[17] == 93 => break format!("{}", cpu.x[10]),
                other => break format!("{other:?} at {:#x}", cpu.pc),
            }
        };
        if outcome != "0" {
            failed += 1;
            println!("{path}: {outcome}; test {}", cpu.x[3]);
        }
    }
    println!("{failed} failed");
}
