//! Delivers signals to the guest: takes the default action, or writes a frame on the stack and sets the program
//! counter to the handler. Frames have the layout of Linux's `arch/alpha/kernel/signal.c` (`struct sigframe`, `struct
//! rt_sigframe`, `asm/sigcontext.h`).

use crate::abi::layout::{Record, u32_at, u64_at};
use crate::calls::call::{Call, Outcome};
use crate::state::control::Control;
use crate::state::kernel::Kernel;
use crate::state::lock::KernelGuard;
use crate::state::signals::{self, AlternateStack, DEFAULT, Default, IGNORE, SignalAction, flag, number};
use crate::state::threads::Thread;
use alpha::cpu::{Cpu, Exception, register};
use alpha::float::control::signal_code;
use host::{Errno, SignalInformation};
use memory::{Memory, SEGV_ACCERR, SEGV_MAPERR};

/// The host's SIGFPE.
pub const SIGFPE: i32 = libc::SIGFPE;

/// A system call that is about to return, which a signal may restart.
pub struct Returning {
    /// v0 before the call.
    pub v0: u64,
    /// a3 before the call.
    pub a3: u64,
    /// The error of the call.
    pub error: Option<Errno>,
}

impl Returning {
    const NOTHING: Returning = Returning { v0: 0, a3: 0, error: None };

    /// Restores the registers so that the call is made again, if the handler (None: there is none) permits it.
    fn restart(&mut self, cpu: &mut Cpu, action: Option<&SignalAction>) {
        let Some(error) = self.error.take().filter(|error| error.is_restart()) else { return };
        let wanted = action.is_none_or(|action| action.flags & flag::RESTART != 0);
        if error == Errno::RESTART_ALWAYS || error == Errno::RESTART && wanted || action.is_none() {
            cpu.r[register::V0] = self.v0;
            cpu.r[register::A3] = self.a3;
            cpu.pc = cpu.pc.wrapping_sub(4);
        }
    }
}

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

impl Thread {
    /// Delivers the recorded signal. Called between two instructions when [`host::pending`] is true.
    pub fn deliver(&mut self, kernel: &mut KernelGuard, cpu: &mut Cpu, memory: &Memory) -> Control {
        self.after_call(kernel, cpu, memory, Returning::NOTHING)
    }

    /// Delivers pending signals before a system call returns to the guest.
    pub(crate) fn after_call(
        &mut self,
        kernel: &mut KernelGuard,
        cpu: &mut Cpu,
        memory: &Memory,
        mut call: Returning,
    ) -> Control {
        while let Some(mut information) = self.next_signal(kernel) {
            let (signal, pc) = (signals::alpha(information.signal()), cpu.pc);
            let wanted = self.consult(kernel, cpu, signal);
            if cpu.pc != pc {
                // The debugger has set the program counter: the call is not restarted.
                call.error = None;
            }
            match wanted {
                None => continue,
                Some(wanted) if wanted == signal => {}
                Some(wanted) => information = signals::sent(wanted),
            }
            let control = self.act(kernel, cpu, memory, &information, &mut call);
            if control != Control::Continue {
                return control;
            }
        }
        if let Some(mask) = self.signals.saved_mask.take() {
            self.signals.set_mask(mask);
        }
        call.restart(cpu, None);
        Control::Continue
    }

    /// The next signal that is not blocked.
    fn next_signal(&mut self, kernel: &mut Kernel) -> Option<SignalInformation> {
        let mask = self.signals.mask;
        let blocked =
            |information: &SignalInformation| mask & host::bit(signals::alpha(information.signal())) != 0;
        if let Some(information) = host::take() {
            let again = blocked(&information);
            if again && host::is_fault(information.signal()) {
                self.signals.hold(&kernel.actions, information);
            } else if again {
                // It was blocked after it was recorded: queue it in the host's kernel again.
                host::requeue(&information);
            }
            self.signals.set_mask(mask);
            if !again {
                kernel.note_expiry(&information);
                return Some(information);
            }
        }
        let held = &mut self.signals.held;
        let index = held.iter().position(|information| !blocked(information))?;
        Some(held.remove(index))
    }

    /// Reports a signal to the debugger, if there is one. Returns the signal to deliver.
    fn consult(&self, kernel: &mut KernelGuard, cpu: &mut Cpu, signal: i32) -> Option<i32> {
        match kernel.debugger.clone() {
            Some(debugger) => kernel.released(|| debugger.signal(self.address().id, cpu, signal)),
            None => Some(signal),
        }
    }

    /// Takes the guest's action for a signal.
    fn act(
        &mut self,
        kernel: &mut Kernel,
        cpu: &mut Cpu,
        memory: &Memory,
        information: &SignalInformation,
        call: &mut Returning,
    ) -> Control {
        let signal = signals::alpha(information.signal());
        let action = kernel.actions.get(signal);
        match action.handler {
            IGNORE => Control::Continue,
            DEFAULT => match signals::default(signal) {
                Default::Ignore => Control::Continue,
                Default::Stop => {
                    // SAFETY: no preconditions.
                    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
                    Control::Continue
                }
                Default::Terminate => Control::Killed { signal },
            },
            _ => {
                call.restart(cpu, Some(&action));
                self.enter(kernel, cpu, memory, signal, &action, information, [0; 3])
            }
        }
    }

    /// Raises the signal of an exception. The program counter is at the instruction that raised it, or, for an
    /// arithmetic trap, after it, as in hardware. Linux passes handlers the address after the instruction also for
    /// illegal instructions and PALcode traps.
    pub fn raise(
        &mut self,
        kernel: &mut KernelGuard,
        cpu: &mut Cpu,
        memory: &Memory,
        exception: Exception,
    ) -> Control {
        let fault = fault_of(cpu, memory, exception);
        let signal = signals::alpha(fault.signal);
        match self.consult(kernel, cpu, signal) {
            None => return Control::Continue,
            Some(wanted) if wanted == signal => {}
            Some(wanted) => {
                let mut call = Returning::NOTHING;
                return self.act(kernel, cpu, memory, &signals::sent(wanted), &mut call);
            }
        }
        let action = kernel.actions.get(signal);
        let blocked = self.signals.mask & host::bit(signal) != 0;
        if blocked || action.handler == DEFAULT || action.handler == IGNORE {
            return Control::Killed { signal };
        }
        cpu.pc = fault.pc;
        let information = SignalInformation::new(fault.signal, fault.code, &[fault.address, fault.trap]);
        self.enter(kernel, cpu, memory, signal, &action, &information, fault.arguments)
    }

    /// Raises a fault's signal after the current system call.
    pub(crate) fn send_fault(&mut self, kernel: &Kernel, signal: i32, code: i32, address: u64) {
        self.signals.hold(&kernel.actions, SignalInformation::new(signal, code, &[address]));
    }

    /// Writes the frame and sets the registers for the handler.
    #[allow(clippy::too_many_arguments)]
    fn enter(
        &mut self,
        kernel: &mut Kernel,
        cpu: &mut Cpu,
        memory: &Memory,
        signal: i32,
        action: &SignalAction,
        information: &SignalInformation,
        trap_arguments: [u64; 3],
    ) -> Control {
        let saved = self.signals.saved_mask.unwrap_or(self.signals.mask);
        let frame = Frame { saved, stack: self.signals.stack, action, trap_arguments };
        let entered = match action.flags & flag::SIGINFO {
            0 => frame.plain(cpu, memory),
            _ => frame.with_information(cpu, memory, information),
        };
        let Ok((address, second, third)) = entered else {
            return self.no_frame(kernel, cpu, memory, signal);
        };
        self.signals.saved_mask = None;
        cpu.r[register::RA] = if action.restorer == 0 { address.return_code } else { action.restorer };
        cpu.r[register::PV] = action.handler;
        cpu.pc = action.handler;
        cpu.r[register::A0] = signal as u64;
        cpu.r[register::A0 + 1] = second;
        cpu.r[register::A0 + 2] = third;
        cpu.r[register::SP] = address.frame;
        if action.flags & flag::RESETHAND != 0 {
            kernel.actions.set(signal, SignalAction { handler: DEFAULT, ..*action });
        }
        if self.signals.stack.flags & AlternateStack::AUTODISARM != 0 {
            self.signals.stack = AlternateStack::NONE;
        }
        let own = if action.flags & flag::NODEFER == 0 { host::bit(signal) } else { 0 };
        self.signals.set_mask(self.signals.mask | action.mask | own);
        Control::Continue
    }

    /// There is no room for a frame: raises SIGSEGV, or ends the process if the signal was SIGSEGV.
    fn no_frame(&mut self, kernel: &mut Kernel, cpu: &mut Cpu, memory: &Memory, signal: i32) -> Control {
        let action = kernel.actions.get(number::SEGV);
        let blocked = self.signals.mask & host::bit(number::SEGV) != 0;
        if signal == number::SEGV || blocked || action.handler == DEFAULT || action.handler == IGNORE {
            return Control::Killed { signal: number::SEGV };
        }
        let information = SignalInformation::new(libc::SIGSEGV, libc::SI_KERNEL, &[]);
        self.enter(kernel, cpu, memory, number::SEGV, &action, &information, [0; 3])
    }
}

/// Addresses of a frame and of the code in it.
struct Placed {
    frame: u64,
    return_code: u64,
}

/// The contents of a frame other than registers.
struct Frame<'a> {
    saved: u64,
    stack: AlternateStack,
    action: &'a SignalAction,
    trap_arguments: [u64; 3],
}

impl Frame<'_> {
    /// The address for a frame of `bytes`.
    fn place(&self, cpu: &Cpu, bytes: usize) -> u64 {
        let stack_pointer = cpu.r[register::SP];
        let on_alternate =
            self.action.flags & flag::ONSTACK != 0 && self.stack.size > 0 && !self.stack.holds(stack_pointer);
        let top = if on_alternate { self.stack.start.wrapping_add(self.stack.size) } else { stack_pointer };
        top.wrapping_sub(bytes as u64) & !31
    }

    /// `struct sigcontext`.
    fn context(&self, cpu: &Cpu) -> Record {
        const USER_MODE: u64 = 8;
        let on_stack = u64::from(self.stack.size > 0 && self.stack.holds(cpu.r[register::SP]));
        Record::new()
            .u64s(&[on_stack, self.saved, cpu.pc, USER_MODE])
            .u64s(&cpu.r[..31])
            .u64s(&[0, 0])
            .u64s(&cpu.f[..31])
            .u64s(&[0, cpu.fpcr, 0, 0, 0, 0, 0])
            .u64s(&self.trap_arguments)
            .zeros_to(CONTEXT_BYTES)
    }

    /// `struct sigframe`; the handler's second and third arguments are 0 and the sigcontext.
    fn plain(&self, cpu: &Cpu, memory: &Memory) -> Result<(Placed, u64, u64), Errno> {
        const SIGRETURN: u32 = 103;
        let record = self.context(cpu).u32s(&return_code(SIGRETURN)).zeros_to(CONTEXT_BYTES + 16);
        let frame = self.place(cpu, record.bytes().len());
        memory.write(frame, record.bytes())?;
        Ok((Placed { frame, return_code: frame + CONTEXT_BYTES as u64 }, 0, frame))
    }

    /// `struct rt_sigframe`; the handler's second and third arguments are siginfo and ucontext.
    fn with_information(
        &self,
        cpu: &Cpu,
        memory: &Memory,
        information: &SignalInformation,
    ) -> Result<(Placed, u64, u64), Errno> {
        const RT_SIGRETURN: u32 = 351;
        let stack = self.stack.record(cpu.r[register::SP]);
        let record = signals::alpha_information(information)
            .u64s(&[0, 0, self.saved])
            .raw(stack.bytes())
            .raw(self.context(cpu).bytes())
            .u64s(&[self.saved])
            .u32s(&return_code(RT_SIGRETURN))
            .zeros_to(INFORMATION_BYTES as usize + USER_CONTEXT_BYTES + 16);
        let frame = self.place(cpu, record.bytes().len());
        memory.write(frame, record.bytes())?;
        let user_context = frame + INFORMATION_BYTES;
        let return_code = user_context + USER_CONTEXT_BYTES as u64;
        Ok((Placed { frame, return_code }, frame, user_context))
    }
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
fn or_killed(call: &mut Call, restored: Result<(), Errno>) -> Outcome {
    if restored.is_err() {
        call.control = crate::Control::Killed { signal: number::SEGV };
    }
    Ok(0)
}

/// sigreturn(sigcontext)
pub fn sigreturn(call: &mut Call) -> Outcome {
    let context = call.arguments[0];
    let restored = restore(call, context, None);
    or_killed(call, restored)
}

/// rt_sigreturn(rt_sigframe)
pub fn rt_sigreturn(call: &mut Call) -> Outcome {
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

/// The signal of an exception.
struct Fault {
    /// The host's number.
    signal: i32,
    code: i32,
    address: u64,
    /// The trap's number (`si_trapno`).
    trap: u64,
    /// The program counter that the handler is passed.
    pc: u64,
    /// `sc_traparg_a0` to `a2`.
    arguments: [u64; 3],
}

// asm-generic/siginfo.h.
const ILL_ILLOPC: i32 = 1;
const BUS_ADRALN: i32 = 1;
const TRAP_BRKPT: i32 = 1;
const TRAP_UNK: i32 = 5;
const FPE_INTDIV: i32 = 1;
const FPE_INTOVF: i32 = 2;
const FPE_FLTDIV: i32 = 3;
const FPE_FLTOVF: i32 = 4;
const FPE_FLTUND: i32 = 5;
const FPE_FLTRES: i32 = 6;
const FPE_FLTINV: i32 = 7;
const FPE_FLTUNK: i32 = 14;

/// Signal, code and address are chosen as in `arch/alpha/kernel/traps.c` and `mm/fault.c`.
fn fault_of(cpu: &Cpu, memory: &Memory, exception: Exception) -> Fault {
    // The address after the instruction; for other exceptions the program counter is there already.
    let behind = cpu.pc.wrapping_add(4);
    let (signal, code, address, trap, pc, arguments) = match exception {
        Exception::Memory(fault) => {
            // The host reports SEGV_ACCERR for reserved pages, which are unmapped for the guest.
            let mapped = memory.region_at(fault.address).is_some();
            let code = match fault.signal {
                libc::SIGSEGV if mapped => SEGV_ACCERR,
                libc::SIGSEGV => SEGV_MAPERR,
                _ => fault.code,
            };
            let arguments = [fault.address, u64::from(mapped), u64::from(fault.write)];
            (fault.signal, code, fault.address, 0, cpu.pc, arguments)
        }
        Exception::Unaligned(address) => (libc::SIGBUS, BUS_ADRALN, address, 0, cpu.pc, [address, 0, 0]),
        Exception::IllegalInstruction => (libc::SIGILL, ILL_ILLOPC, behind, 0, behind, [4, 0, 0]),
        Exception::Breakpoint => (libc::SIGTRAP, TRAP_BRKPT, cpu.pc, 0, cpu.pc, [0; 3]),
        Exception::Bugcheck => (libc::SIGTRAP, TRAP_UNK, cpu.pc, 0, cpu.pc, [1, 0, 0]),
        Exception::Gentrap => {
            let trap = cpu.r[register::A0];
            let (signal, code) = gentrap(trap as i64);
            (signal, code, cpu.pc, trap, cpu.pc, [2, 0, 0])
        }
        Exception::Arithmetic { summary, registers } => {
            (libc::SIGFPE, signal_code(summary), cpu.pc, 0, cpu.pc, [summary, registers, 0])
        }
    };
    Fault { signal, code, address, trap, pc, arguments }
}

/// Signal and code of a software trap, by its number (`asm/gentrap.h`).
fn gentrap(trap: i64) -> (i32, i32) {
    const CODES: [i32; 7] =
        [FPE_INTOVF, FPE_INTDIV, FPE_FLTOVF, FPE_FLTDIV, FPE_FLTUND, FPE_FLTINV, FPE_FLTRES];
    match trap {
        -7..=-1 => (libc::SIGFPE, CODES[(-1 - trap) as usize]),
        -11 => (libc::SIGFPE, FPE_FLTUNK),
        _ => (libc::SIGTRAP, TRAP_UNK),
    }
}
