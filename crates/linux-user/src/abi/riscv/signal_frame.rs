//! Signal frames, with the layout of `struct rt_sigframe` in Linux's `arch/riscv/kernel/signal.c`.

use guest_memory::{Fault, Memory};
use host::Errno;
use riscv::{RiscvCpu, register};

use crate::abi::Abi;
use crate::abi::layout::{u32_at, u64_at};
use crate::abi::signals::{AlternateStack, SignalFrame};
use crate::state::control::Control;

use super::numbers::ACTION_FLAGS;
use super::{Call, CallOutcome, SIGNAL_RETURN};

/// Bytes of a siginfo, after which the ucontext begins.
const INFORMATION_BYTES: u64 = 128;
/// Offsets in a ucontext: of the stack, the mask and the sigcontext, which is aligned to 16 bytes.
const STACK: usize = 16;
const MASK: usize = 40;
const CONTEXT: usize = 176;
/// Offsets in a sigcontext: of the floating-point registers, after the program counter and 31 integer registers; and of fcsr.
const FLOATS: usize = 256;
const FCSR: usize = 512;
/// Bytes of a ucontext: the sigcontext's floating-point part has room for registers of 128 bits.
const USER_CONTEXT_BYTES: usize = CONTEXT + 784;

/// Writes the frame and sets the registers for the handler, whose second and third arguments are always siginfo and ucontext.
pub fn enter_handler(cpu: &mut RiscvCpu, memory: &Memory, frame: &SignalFrame<()>) -> Result<(), Fault> {
    let stack = frame.stack.record(cpu.x[register::SP]);
    let context = INFORMATION_BYTES as usize + CONTEXT;
    let record = RiscvCpu::guest_information(frame.information)
        .u64s(&[0, 0])
        .raw(stack.bytes())
        .u64s(&[frame.saved_mask])
        .zeros_to(context)
        .u64s(&[cpu.pc])
        .u64s(&cpu.x[1..32])
        .u64s(&cpu.f)
        .u32s(&[cpu.fcsr as u32])
        .zeros_to(INFORMATION_BYTES as usize + USER_CONTEXT_BYTES);
    let top = frame.stack_end(cpu.x[register::SP], ACTION_FLAGS.on_stack);
    let address = top.wrapping_sub(record.bytes().len() as u64) & !15;
    memory.write(address, record.bytes())?;
    cpu.x[register::RA] = SIGNAL_RETURN;
    cpu.pc = frame.action.handler;
    cpu.x[register::SP] = address;
    cpu.x[register::A0] = frame.signal as u64;
    cpu.x[register::A0 + 1] = address;
    cpu.x[register::A0 + 2] = address + INFORMATION_BYTES;
    Ok(())
}

/// rt_sigreturn(), with the frame at the stack pointer. An unreadable frame ends the process, as in Linux.
pub fn rt_sigreturn(call: &mut Call) -> CallOutcome {
    let user_context = call.cpu.x[register::SP].wrapping_add(INFORMATION_BYTES);
    if restore(call, user_context).is_err() {
        call.control = Control::Killed { signal: RiscvCpu::guest_signal(libc::SIGSEGV) };
    }
    Ok(0)
}

/// Restores the state from a ucontext.
fn restore(call: &mut Call, user_context: u64) -> Result<(), Errno> {
    let bytes: [u8; USER_CONTEXT_BYTES] = call.read(user_context)?;
    let context = &bytes[CONTEXT..];
    call.cpu.pc = u64_at(context, 0) & !1;
    for number in 1..32 {
        call.cpu.x[number] = u64_at(context, 8 * number);
    }
    for number in 0..32 {
        call.cpu.f[number] = u64_at(context, FLOATS + 8 * number);
    }
    call.cpu.fcsr = u64::from(u32_at(context, FCSR) & 0xff);
    call.thread.signals.set_mask(u64_at(&bytes, MASK));
    let flags = u32_at(&bytes, STACK + 8) & AlternateStack::AUTODISARM;
    if flags != 0 {
        let (start, size) = (u64_at(&bytes, STACK), u64_at(&bytes, STACK + 16));
        call.thread.signals.stack = AlternateStack { start, size, flags };
    }
    call.registers_set = true;
    Ok(())
}
