//! The compiler's assembler: bytes describe a program of instructions and jumps, whose disassembly by an independent
//! disassembler must be what was written.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| jit::check_assembler(bytes));
