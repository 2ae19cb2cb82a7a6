//! Signal frames, with the layout of Linux's `arch/alpha/kernel/signal.c` (`struct sigframe`, `struct rt_sigframe`,
//! `asm/sigcontext.h`).

use alpha::cpu::{Cpu, register};
use guest_memory::{Fault, Memory};
use host::Errno;

use crate::abi::Abi;
use crate::abi::layout::{GuestStructure, u32_at, u64_at};
use crate::abi::signals::{self, AlternateStack};
use crate::state::control::Control;

use super::numbers::ACTION_FLAGS;
use super::{Call, CallOutcome};

/// Sizes in bytes, and offsets in 8-byte words of a sigcontext.
const CONTEXT_BYTES: usize = 648;
const INFORMATION_BYTES: u64 = 128;
const USER_CONTEXT_BYTES: usize = 704;
/// Offset of the sigcontext in a ucontext: after flags, link, mask and stack.
const CONTEXT_IN_USER_CONTEXT: u64 = 48;
const PC: usize = 2;
const INTEGERS: usize = 4;
const FLOATS: usize = 37;
const FPCR: usize = 69;
const MASK: usize = 1;

/// Addresses of a frame and of the code in it.
struct FrameAddresses {
    frame: u64,
    return_code: u64,
}

/// A frame in which an exception is described by `sc_traparg_a0` to `a2`.
pub type SignalFrame<'a> = signals::SignalFrame<'a, [u64; 3]>;

impl SignalFrame<'_> {
    /// The address for a frame of `bytes`.
    fn address(&self, cpu: &Cpu, bytes: usize) -> u64 {
        let top = self.stack_end(cpu.r[register::SP], ACTION_FLAGS.on_stack);
        top.wrapping_sub(bytes as u64) & !31
    }

    /// `struct sigcontext`.
    fn context(&self, cpu: &Cpu) -> GuestStructure {
        const USER_MODE: u64 = 8;
        let on_stack = u64::from(self.stack.size > 0 && self.stack.holds(cpu.r[register::SP]));
        GuestStructure::new()
            .u64s(&[on_stack, self.saved_mask, cpu.pc, USER_MODE])
            .u64s(&cpu.r[..31])
            .u64s(&[0, 0])
            .u64s(&cpu.f[..31])
            .u64s(&[0, cpu.fpcr, 0, 0, 0, 0, 0])
            .u64s(&self.trap_arguments)
            .zeros_to(CONTEXT_BYTES)
    }

    /// `struct sigframe`; the handler's second and third arguments are 0 and the sigcontext.
    fn plain(&self, cpu: &Cpu, memory: &Memory) -> Result<(FrameAddresses, u64, u64), Fault> {
        const SIGRETURN: u32 = 103;
        let record = self.context(cpu).u32s(&return_code(SIGRETURN)).zeros_to(CONTEXT_BYTES + 16);
        let frame = self.address(cpu, record.bytes().len());
        memory.write(frame, record.bytes())?;
        Ok((FrameAddresses { frame, return_code: frame + CONTEXT_BYTES as u64 }, 0, frame))
    }

    /// `struct rt_sigframe`; the handler's second and third arguments are siginfo and ucontext.
    fn with_information(&self, cpu: &Cpu, memory: &Memory) -> Result<(FrameAddresses, u64, u64), Fault> {
        const RT_SIGRETURN: u32 = 351;
        let stack = self.stack.record(cpu.r[register::SP]);
        let record = Cpu::guest_information(self.information)
            .u64s(&[0, 0, self.saved_mask])
            .raw(stack.bytes())
            .raw(self.context(cpu).bytes())
            .u64s(&[self.saved_mask])
            .u32s(&return_code(RT_SIGRETURN))
            .zeros_to(INFORMATION_BYTES as usize + USER_CONTEXT_BYTES + 16);
        let frame = self.address(cpu, record.bytes().len());
        memory.write(frame, record.bytes())?;
        let user_context = frame + INFORMATION_BYTES;
        let return_code = user_context + USER_CONTEXT_BYTES as u64;
        Ok((FrameAddresses { frame, return_code }, frame, user_context))
    }
}

/// Writes the frame and sets the registers for the handler.
pub fn enter_handler(cpu: &mut Cpu, memory: &Memory, frame: &SignalFrame) -> Result<(), Fault> {
    let action = frame.action;
    let (address, second, third) = match action.flags & ACTION_FLAGS.information {
        0 => frame.plain(cpu, memory)?,
        _ => frame.with_information(cpu, memory)?,
    };
    cpu.r[register::RA] = if action.restorer == 0 { address.return_code } else { action.restorer };
    cpu.r[register::PV] = action.handler;
    cpu.pc = action.handler;
    cpu.r[register::A0] = frame.signal as u64;
    cpu.r[register::A0 + 1] = second;
    cpu.r[register::A0 + 2] = third;
    cpu.r[register::SP] = address.frame;
    Ok(())
}

/// `mov $30,$16; lda $0,number($31); callsys`
fn return_code(number: u32) -> [u32; 3] {
    [0x47fe_0410, 0x201f_0000 + number, 0x0000_0083]
}

/// Restores the registers from a sigcontext.
fn restore(call: &mut Call, context: u64, mask: Option<u64>) -> Result<(), Errno> {
    let bytes: [u8; CONTEXT_BYTES] = call.read(context)?;
    let word = |index: usize| u64_at(&bytes, 8 * index);
    call.cpu.pc = word(PC) & !3;
    for register in 0..31 {
        call.cpu.r[register] = word(INTEGERS + register);
        call.cpu.f[register] = word(FLOATS + register);
    }
    call.cpu.fpcr = word(FPCR);
    call.thread.signals.set_mask(mask.unwrap_or(word(MASK)));
    call.registers_set = true;
    Ok(())
}

/// An unreadable frame ends the process, as in Linux.
fn or_killed(call: &mut Call, restored: Result<(), Errno>) -> CallOutcome {
    if restored.is_err() {
        call.control = Control::Killed { signal: Cpu::guest_signal(libc::SIGSEGV) };
    }
    Ok(0)
}

/// sigreturn(sigcontext)
pub fn sigreturn(call: &mut Call) -> CallOutcome {
    let context = call.arguments[0];
    let restored = restore(call, context, None);
    or_killed(call, restored)
}

/// rt_sigreturn(rt_sigframe)
pub fn rt_sigreturn(call: &mut Call) -> CallOutcome {
    let user_context = call.arguments[0].wrapping_add(INFORMATION_BYTES);
    let restored = restore_all(call, user_context);
    or_killed(call, restored)
}

fn restore_all(call: &mut Call, user_context: u64) -> Result<(), Errno> {
    let stack: [u8; 24] = call.read(user_context.wrapping_add(24))?;
    let mask = call.read_u64(user_context.wrapping_add(USER_CONTEXT_BYTES as u64 - 8))?;
    restore(call, user_context.wrapping_add(CONTEXT_IN_USER_CONTEXT), Some(mask))?;
    let flags = u32_at(&stack, 8) & AlternateStack::AUTODISARM;
    if flags != 0 {
        let (start, size) = (u64_at(&stack, 0), u64_at(&stack, 16));
        call.thread.signals.stack = AlternateStack { start, size, flags };
    }
    Ok(())
}
