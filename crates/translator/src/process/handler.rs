//! The handler of signals. It receives all that the program handles, and faults. It notes the signal, blocks further ones, and sees to it
//! that the thread leaves translated code at the entry of a block, to which it goes by single steps; there all registers are the program's.

use std::sync::atomic::Ordering;

use super::actions::{FAULTS, KernelSignalAction, bit, set_action};
use super::state::TranslatorProcess;
use crate::area::{SIGNAL, SignalInbox, ThreadArea};
use crate::code::is_translated_code;
use crate::glue;

/// The flag of the processor for single steps.
const TRAP_FLAG: u64 = 1 << 8;
/// `TRAP_TRACE` and `SEGV_ACCERR`.
const TRAP_TRACE: i32 = 2;
const SEGV_ACCERR: i32 = 2;
/// Registers in the kernel's `sigcontext`, by their numbers in encodings.
const CONTEXT_REGISTERS: [usize; 16] = [
    libc::REG_RAX as usize,
    libc::REG_RCX as usize,
    libc::REG_RDX as usize,
    libc::REG_RBX as usize,
    libc::REG_RSP as usize,
    libc::REG_RBP as usize,
    libc::REG_RSI as usize,
    libc::REG_RDI as usize,
    libc::REG_R8 as usize,
    libc::REG_R9 as usize,
    libc::REG_R10 as usize,
    libc::REG_R11 as usize,
    libc::REG_R12 as usize,
    libc::REG_R13 as usize,
    libc::REG_R14 as usize,
    libc::REG_R15 as usize,
];
const RIP: usize = libc::REG_RIP as usize;
const EFLAGS: usize = libc::REG_EFL as usize;

/// An interrupted thread: its area, and the registers and the mask to which the handler returns.
struct Interruption<'a> {
    area: &'a mut ThreadArea,
    registers: &'a mut [i64; 23],
    mask: &'a mut u64,
}

/// The handler of all signals, on its own stack, with FS of the translator.
///
/// # Safety
/// Called by the glue with what the kernel passes to a handler, in a thread that has an area.
pub(crate) unsafe extern "C" fn handle(
    signal: i32,
    information: *const [u64; 16],
    context: *mut libc::ucontext_t,
) {
    // SAFETY: the kernel's structures; the area is the thread's, whose other code does not run now. Glue and translated code access single
    // fields only, which the compiler does not cache over `enter` and `call`.
    let (mut interruption, information) = unsafe {
        let context = &mut *context;
        let mask = (&raw mut context.uc_sigmask).cast::<u64>();
        let interruption = Interruption {
            area: &mut *glue::area(),
            registers: &mut context.uc_mcontext.gregs,
            mask: &mut *mask,
        };
        (interruption, &*information)
    };
    let code = information[1] as i32;
    if signal == libc::SIGTRAP && code == TRAP_TRACE && interruption.area.inbox.is_stepping {
        interruption.step();
    } else if FAULTS & bit(signal) != 0 && code > 0 {
        interruption.fault(signal, information);
    } else {
        interruption.receive(signal, information);
    }
}

impl Interruption<'_> {
    fn address(&self) -> u64 {
        self.registers[RIP] as u64
    }

    /// A signal that another process or thread has sent, or a timer.
    fn receive(&mut self, signal: i32, information: &[u64; 16]) {
        let inbox = &mut self.area.inbox;
        *inbox = SignalInbox { signal, information: *information, ..SignalInbox::EMPTY };
        self.area.pending.store(1, Ordering::Relaxed);
        *self.mask = !FAULTS;
        if let Some(diverted) = glue::diverted(self.address()) {
            self.registers[RIP] = diverted as i64;
        } else {
            self.go_to_entry();
        }
    }

    /// If the thread executes translated code: leaves it at the entry of a block, or goes there by single steps.
    fn go_to_entry(&mut self) {
        let at = self.address();
        if !is_translated_code(at) && !glue::is_plain_call(at) {
            return;
        }
        // The thread holds no lock while it executes translated code.
        let code = TranslatorProcess::get().code();
        match code.code.block_entered_at(at) {
            Some(address) => self.leave_at(address),
            None => {
                self.area.inbox.is_stepping = true;
                self.area.inbox.last_step = at;
                self.registers[EFLAGS] |= TRAP_FLAG as i64;
            }
        }
    }

    /// Lets the thread leave translated code, with the registers as they are, at an address of the program.
    fn leave_at(&mut self, address: u64) {
        self.area.inbox.address = address;
        self.area.exit = SIGNAL;
        self.registers[RIP] = glue::addresses().leave as i64;
        self.registers[EFLAGS] &= !(TRAP_FLAG as i64);
        self.area.inbox.is_stepping = false;
    }

    /// After a single step.
    fn step(&mut self) {
        let at = self.address();
        let stepped = self.area.inbox.last_step;
        // SAFETY: an address in the code cache, at which an instruction was executed.
        let code = unsafe { &*(stepped as *const [u8; 2]) };
        if matches!(code, [0x9c, _] | [0x66 | 0x48, 0x9c]) {
            // It has pushed the flags, with that of single steps.
            let pushed = self.registers[CONTEXT_REGISTERS[4]] as *mut u16;
            // SAFETY: the program's stack, to which the instruction has just written.
            unsafe { pushed.write_unaligned(pushed.read_unaligned() & !(TRAP_FLAG as u16)) };
        }
        if at == glue::addresses().leave {
            // Translated code is left anyway, and the thread sees that a signal waits.
            self.area.inbox.is_stepping = false;
            self.registers[EFLAGS] &= !(TRAP_FLAG as i64);
            return;
        }
        self.go_to_entry();
    }

    /// A fault of an instruction.
    fn fault(&mut self, signal: i32, information: &[u64; 16]) {
        let at = self.address();
        if !is_translated_code(at) {
            // A fault of the translator itself, by an address of the program that cannot be accessed: the kernel ends the process.
            set_action(signal, &KernelSignalAction::default());
            return;
        }
        let mut guard = TranslatorProcess::get().code();
        let shared = &mut *guard;
        let mut address = shared.code.block_entered_at(at);
        if address.is_none()
            && let Some(point) = shared.code.locate(at)
        {
            if let Some((register, slot)) = point.saved {
                self.registers[CONTEXT_REGISTERS[usize::from(register)]] = self.area.spilled[slot] as i64;
            }
            if shared.code.is_counted(&point) {
                self.area.add_count(point.block, -1);
            }
            if let Some(prefix) = shared.code.prefix(point.block, point.index) {
                self.area.add_count(prefix, 1);
            }
            address = Some(point.address);
        }
        let Some(address) = address else {
            set_action(signal, &KernelSignalAction::default());
            return;
        };
        let accessed = information[2];
        let is_denied = signal == libc::SIGSEGV && information[1] as i32 == SEGV_ACCERR;
        let written = if is_denied { shared.memory.unprotect(accessed) } else { None };
        if let Some(page) = written {
            shared.code.invalidate(page, page + 4096);
        }
        drop(guard);
        let fault =
            [libc::REG_ERR, libc::REG_TRAPNO, libc::REG_CR2].map(|it| self.registers[it as usize] as u64);
        // A signal for which the thread was executing single steps is sent again.
        if self.area.inbox.is_stepping {
            // SAFETY: sends a signal, which is blocked now, to this thread.
            unsafe {
                libc::syscall(
                    libc::SYS_rt_tgsigqueueinfo,
                    libc::getpid(),
                    libc::gettid(),
                    self.area.inbox.signal,
                    &self.area.inbox.information,
                )
            };
        }
        self.area.inbox = SignalInbox {
            signal,
            is_fault: true,
            is_code_write: written.is_some(),
            information: *information,
            fault,
            ..SignalInbox::EMPTY
        };
        self.area.pending.store(1, Ordering::Relaxed);
        *self.mask = !FAULTS;
        self.leave_at(address);
    }
}
