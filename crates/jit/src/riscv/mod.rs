//! RISC-V as a target of the compiler: its registers. Instructions are not translated yet, so that the engine interprets.

use std::mem::offset_of;

use guest::DecodedBlock;
use guest_memory::Memory;
use riscv::{RiscvCpu, RiscvDecodedInstruction, register};

use crate::emit::{Emit, Emitter};
use crate::host::assembler::HostRegister;
use crate::target::{Exits, GuestAccess, Target};

impl Target for RiscvCpu {
    const HELD: &'static [(u8, HostRegister)] = &[];
    const ZERO: u8 = register::ZERO as u8;
    const SINK: u8 = register::SINK as u8;
    const INTEGERS: usize = offset_of!(RiscvCpu, x);
    const HOST: usize = offset_of!(RiscvCpu, host);
    const INSTRUCTIONS: usize = offset_of!(RiscvCpu, instructions);
    const ADDRESS_MASK: i32 = !1;

    fn integers(&mut self) -> &mut [u64] {
        &mut self.x[..register::SINK]
    }

    fn exits(_: &DecodedBlock<RiscvCpu>) -> Exits {
        Exits { to: Vec::new(), is_open: false }
    }

    fn access(_: &RiscvDecodedInstruction) -> Option<GuestAccess> {
        None
    }

    fn checked_base(_: &RiscvDecodedInstruction) -> Option<u8> {
        None
    }

    fn changed(_: &RiscvDecodedInstruction) -> Option<u8> {
        None
    }
}

impl Emit for RiscvCpu {
    type OutOfLine = ();

    fn emit(_: &mut Emitter<Self>, _: &DecodedBlock<Self>, _: usize) -> Option<usize> {
        unreachable!("no block is compiled")
    }

    fn emit_out_of_line(_: &mut Emitter<Self>, (): ()) {}

    fn execute_or_undo(&mut self, _: &RiscvDecodedInstruction, _: &Memory) -> bool {
        false
    }
}
