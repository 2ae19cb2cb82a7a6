//! The semantics of each instruction (*The RISC-V Instruction Set Manual*, volume I). Integer operations are those of
//! [`isa::riscv_result`]. This is the reference that everything faster is compared with.

use std::sync::atomic::{Ordering, fence};

use guest::Break;
use guest_memory::Memory;
use isa::{CACHE_BLOCK, RiscvOp};

use crate::atomic;
use crate::cpu::{RiscvCpu, RiscvException, register::SINK};
use crate::csr;
use crate::decoded_instruction::RiscvDecodedInstruction;
use crate::float;

impl From<RiscvException> for Break<RiscvException> {
    #[cold]
    fn from(exception: RiscvException) -> Break<RiscvException> {
        Break::Exception(exception)
    }
}

/// Executes one instruction. `cpu.pc` must be the address of the instruction behind it; a transfer of control replaces it.
///
/// Always inlined into the loop that decides what runs next.
#[inline(always)]
pub fn execute(
    step: &RiscvDecodedInstruction,
    cpu: &mut RiscvCpu,
    memory: &Memory,
) -> Result<(), Break<RiscvException>> {
    let a = cpu.x[usize::from(step.rs1)];
    let second = cpu.x[usize::from(step.rs2)];
    let b = second.wrapping_add(step.immediate as u64);
    let address = a.wrapping_add(step.immediate as u64);
    let target = usize::from(step.rd);
    macro_rules! load {
        ($size:literal, $value:ident => $register:expr) => {{
            let $value = memory.load::<$size>(address)?;
            count_unaligned::<$size>(cpu, address);
            cpu.x[target] = $register
        }};
    }
    macro_rules! store {
        ($size:literal, $value:expr) => {{
            memory.store::<$size>(address, $value)?;
            count_unaligned::<$size>(cpu, address)
        }};
    }
    macro_rules! float_load {
        ($size:literal, $boxed:expr) => {{
            let value = memory.load::<$size>(address)?;
            count_unaligned::<$size>(cpu, address);
            cpu.f[target] = value | $boxed
        }};
    }
    macro_rules! branch_if {
        ($condition:expr) => {
            if $condition {
                cpu.pc = step.immediate as u64
            }
        };
    }
    use RiscvOp::*;
    match step.op {
        // Constants and control
        Lui | Auipc => cpu.x[target] = step.immediate as u64,
        Jal => {
            cpu.x[target] = cpu.pc;
            cpu.pc = step.immediate as u64;
        }
        Jalr => {
            cpu.x[target] = cpu.pc;
            cpu.pc = address & !1;
        }
        Beq => branch_if!(a == second),
        Bne => branch_if!(a != second),
        Blt => branch_if!((a as i64) < second as i64),
        Bge => branch_if!(a as i64 >= second as i64),
        Bltu => branch_if!(a < second),
        Bgeu => branch_if!(a >= second),
        // Memory
        Lb => load!(1, value => value as i8 as u64),
        Lh => load!(2, value => value as i16 as u64),
        Lw => load!(4, value => value as i32 as u64),
        Ld => load!(8, value => value),
        Lbu => load!(1, value => value),
        Lhu => load!(2, value => value),
        Lwu => load!(4, value => value),
        Sb => store!(1, second),
        Sh => store!(2, second),
        Sw => store!(4, second),
        Sd => store!(8, second),
        Flh => float_load!(2, 0xffff_ffff_ffff_0000),
        Flw => float_load!(4, 0xffff_ffff_0000_0000),
        Fld => float_load!(8, 0),
        Fsh => store!(2, cpu.f[usize::from(step.rs2)]),
        Fsw => store!(4, cpu.f[usize::from(step.rs2)]),
        Fsd => store!(8, cpu.f[usize::from(step.rs2)]),
        CboZero => memory.write(address & !(u64::from(CACHE_BLOCK) - 1), &[0; CACHE_BLOCK as usize])?,
        // Other threads and processes see the same memory.
        Fence | FenceTso => fence(Ordering::SeqCst),
        Pause | WrsNto | WrsSto => std::hint::spin_loop(),
        CboClean | CboFlush => {}
        // System
        Ecall => return Err(Break::SystemCall),
        FenceI => return Err(Break::InstructionBarrier),
        Ebreak => return Err(RiscvException::Breakpoint.into()),
        Csrrw | Csrrs | Csrrc | Csrrwi | Csrrsi | Csrrci => csr::execute(step, cpu)?,
        // Atomic
        LrW => cpu.x[target] = atomic::load_reserved::<4>(cpu, memory, a)?,
        LrD => cpu.x[target] = atomic::load_reserved::<8>(cpu, memory, a)?,
        ScW => cpu.x[target] = atomic::store_conditional::<4>(cpu, memory, a, second)?,
        ScD => cpu.x[target] = atomic::store_conditional::<8>(cpu, memory, a, second)?,
        op => match isa::riscv_result(op, a, b) {
            Some(result) => cpu.x[target] = result,
            None => execute_rare(step, cpu, memory)?,
        },
    }
    Ok(())
}

/// Executes an operation on memory, or on floating-point registers.
#[inline(never)]
fn execute_rare(
    step: &RiscvDecodedInstruction,
    cpu: &mut RiscvCpu,
    memory: &Memory,
) -> Result<(), Break<RiscvException>> {
    use isa::RiscvOperands::Atomic;
    if step.op.operands() != Atomic {
        return Ok(float::execute(step, cpu)?);
    }
    let (address, operand) = (cpu.x[usize::from(step.rs1)], cpu.x[usize::from(step.rs2)]);
    // Register 0 is 0 here, too.
    let expected = if usize::from(step.rd) == SINK { 0 } else { cpu.x[usize::from(step.rd)] };
    let result = match step.op.access_size() {
        Some(1) => atomic::execute::<1>(step.op, memory, address, operand, expected)?,
        Some(2) => atomic::execute::<2>(step.op, memory, address, operand, expected)?,
        Some(4) => atomic::execute::<4>(step.op, memory, address, operand, expected)?,
        Some(8) => atomic::execute::<8>(step.op, memory, address, operand, expected)?,
        _ => return Err(RiscvException::IllegalInstruction.into()),
    };
    cpu.x[usize::from(step.rd)] = result;
    Ok(())
}

/// A processor may trap on an unaligned access; the host makes it by itself. Those that fault are not counted, for they may be
/// executed again.
#[inline(always)]
fn count_unaligned<const SIZE: u64>(cpu: &mut RiscvCpu, address: u64) {
    cpu.unaligned += u64::from(address & (SIZE - 1) != 0);
}
