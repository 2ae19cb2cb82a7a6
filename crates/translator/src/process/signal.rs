//! Signals. A handler of the translator receives all that the program handles, and faults. It notes the signal, blocks further ones, and
//! sees to it that the thread leaves translated code at the entry of a block, to which it goes by single steps; there all registers are the
//! program's. The thread then delivers the signal as the kernel would (`frame.rs`).

use std::sync::atomic::Ordering;

use super::TranslatorProcess;
use super::frame;
use super::run::ProgramThread;
use crate::area::{SIGNAL, SIGNAL_STACK, SIGNAL_STACK_SIZE, SignalInbox, ThreadArea};
use crate::code::{CodeFault, is_translated_code};
use crate::glue;

/// Numbers of signals: 1 to 64.
const SIGNALS: usize = 64;
/// The default and the ignoring action.
const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;
/// `SA_RESTORER`, of which `libc` has no name.
pub(super) const SA_RESTORER: u64 = 0x0400_0000;
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

/// Signals of faults, which the translator never blocks.
const FAULTS: u64 =
    bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL) | bit(libc::SIGFPE) | bit(libc::SIGTRAP);

/// The bit of a signal in a mask.
pub(super) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The kernel's structure of an action.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct SignalAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// The program's actions.
#[derive(Clone)]
pub(crate) struct SignalActions([SignalAction; SIGNALS + 1]);

fn set_action(signal: i32, action: &SignalAction) {
    // SAFETY: the structure is the kernel's; the handler is the translator's.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action, 0, size_of::<u64>()) };
}

impl SignalActions {
    /// Those that the program inherits: some may be ignored. The C library ignores SIGPIPE in programs in Rust; the program does not.
    pub fn inherited() -> SignalActions {
        let mut all = [SignalAction::default(); SIGNALS + 1];
        for (signal, action) in (0..).zip(&mut all).skip(1) {
            let mut found = SignalAction::default();
            // SAFETY: writes the structure.
            unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, 0, &mut found, size_of::<u64>()) };
            if found.handler == IGNORE && signal != libc::SIGPIPE {
                action.handler = IGNORE;
            }
        }
        set_action(libc::SIGPIPE, &SignalAction::default());
        SignalActions(all)
    }

    /// Makes the kernel do what the action of a signal needs.
    fn install(&self, signal: i32) {
        let action = &self.0[signal as usize];
        let is_fault = FAULTS & bit(signal) != 0;
        if !is_fault && matches!(action.handler, DEFAULT | IGNORE) {
            let kept = libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT;
            set_action(
                signal,
                &SignalAction {
                    handler: action.handler,
                    flags: action.flags & kept as u64,
                    ..SignalAction::default()
                },
            );
            return;
        }
        let (handler, restorer) = glue::handler_addresses();
        let kept = (libc::SA_RESTART | libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT) as u64;
        let own = (libc::SA_SIGINFO | libc::SA_ONSTACK) as u64 | SA_RESTORER;
        set_action(
            signal,
            &SignalAction { handler, flags: own | action.flags & kept, restorer, mask: !FAULTS },
        );
    }

    /// The system call `rt_sigaction`. Returns the former action.
    pub fn set(&mut self, signal: i32, action: Option<SignalAction>) -> Result<SignalAction, i32> {
        let is_fixed = action.is_some() && matches!(signal, libc::SIGKILL | libc::SIGSTOP);
        if !(1..=SIGNALS as i32).contains(&signal) || is_fixed {
            return Err(libc::EINVAL);
        }
        let former = self.0[signal as usize];
        if let Some(action) = action {
            let fixed = bit(libc::SIGKILL) | bit(libc::SIGSTOP);
            self.0[signal as usize] = SignalAction { mask: action.mask & !fixed, ..action };
            self.install(signal);
        }
        Ok(former)
    }
}

/// What a thread has of signals, beside its inbox.
#[derive(Debug)]
pub(crate) struct ThreadSignals {
    /// The program's mask. The kernel's lacks the signals of faults, and has all others while a signal waits for delivery.
    pub mask: u64,
    /// The program's alternate stack: its address, size and flags.
    pub stack: [u64; 3],
}

impl ThreadSignals {
    /// No mask, and no alternate stack.
    pub fn new() -> ThreadSignals {
        ThreadSignals { mask: 0, stack: [0, 0, libc::SS_DISABLE as u64] }
    }

    /// Whether a stack pointer is on the alternate stack.
    pub fn is_on_stack(&self, pointer: u64) -> bool {
        let [start, size, flags] = self.stack;
        flags & libc::SS_DISABLE as u64 == 0 && pointer > start && pointer - start <= size
    }
}

/// Sets the kernel's mask of this thread. Returns the former one.
fn set_kernel_mask(mask: u64) -> u64 {
    let mut former = 0u64;
    // SAFETY: reads and writes the two masks.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &mask, &mut former, size_of::<u64>())
    };
    former
}

impl ProgramThread {
    /// Prepares the present thread for signals.
    pub(super) fn begin_signals(&mut self) {
        let start = self.area().address as usize + SIGNAL_STACK;
        let stack = libc::stack_t { ss_sp: start as *mut _, ss_flags: 0, ss_size: SIGNAL_STACK_SIZE };
        // SAFETY: part of the area, which lives as long as the thread.
        unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) };
        if self.is_first {
            let actions = TranslatorProcess::get().actions();
            (1..=SIGNALS as i32)
                .filter(|&signal| FAULTS & bit(signal) != 0)
                .for_each(|signal| actions.install(signal));
            self.signals.mask = set_kernel_mask(!FAULTS);
        }
        self.set_mask(self.signals.mask);
    }

    /// Sets the program's mask, with which signals may come.
    pub(super) fn set_mask(&mut self, mask: u64) {
        self.signals.mask = mask & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
        set_kernel_mask(self.signals.mask & !FAULTS);
    }

    /// Blocks all signals until `set_mask`. False if one waits for delivery already.
    pub(super) fn hold_signals(&mut self) -> bool {
        set_kernel_mask(!FAULTS);
        !self.has_signal()
    }

    /// Whether a signal waits for delivery.
    pub(super) fn has_signal(&mut self) -> bool {
        self.area().pending.load(Ordering::Relaxed) != 0
    }

    /// Delivers the signal in the inbox, at `next`.
    pub(super) fn deliver(&mut self) {
        let inbox = &mut self.area().inbox;
        let (signal, is_fault) = (inbox.signal, inbox.is_fault);
        let (information, fault) = (inbox.information, inbox.fault);
        inbox.signal = 0;
        inbox.is_stepping = false;
        let is_code_write = std::mem::take(&mut inbox.is_code_write);
        self.area().pending.store(0, Ordering::Relaxed);
        if is_code_write {
            self.execute_once();
            return;
        }
        let action = TranslatorProcess::get().actions().0[signal as usize];
        let is_blocked = is_fault && self.signals.mask & bit(signal) != 0;
        match action.handler {
            IGNORE if !is_fault => return self.set_mask(self.signals.mask),
            DEFAULT | IGNORE => return self.take_default(signal, is_fault),
            _ if is_blocked => return self.take_default(signal, true),
            _ => {}
        }
        if action.flags & libc::SA_RESETHAND as u64 != 0 {
            let reset = SignalAction { handler: DEFAULT, ..action };
            let _ = TranslatorProcess::get().actions().set(signal, Some(reset));
        }
        let Ok(handler) = frame::push(self, signal, &action, &information, is_fault.then_some(fault)) else {
            return self.take_default(libc::SIGSEGV, true);
        };
        self.next = handler;
        let own = if action.flags & libc::SA_NODEFER as u64 == 0 { bit(signal) } else { 0 };
        self.set_mask(self.signals.mask | action.mask | own);
    }

    /// The default action of a signal that the kernel passed to the handler: most end the process.
    pub(super) fn take_default(&mut self, signal: i32, is_fault: bool) {
        let is_harmless = matches!(signal, libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT);
        if is_harmless && !is_fault {
            return self.set_mask(self.signals.mask);
        }
        set_action(signal, &SignalAction::default());
        // SAFETY: sends the signal to this thread.
        unsafe {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal);
        }
        set_kernel_mask(self.signals.mask & !bit(signal));
        // Signals that stop the process come here, too.
        TranslatorProcess::get().actions().install(signal);
        self.set_mask(self.signals.mask);
    }

    /// An instruction that cannot be fetched or decoded.
    pub(super) fn raise_fault(&mut self, fault: CodeFault) {
        const PAGE_FAULT: u64 = 14;
        const INVALID_OPCODE: u64 = 6;
        /// Of a page fault by the program, when it fetches an instruction.
        const USER_FETCH: u64 = 4 | 16;
        const ILL_ILLOPN: u64 = 2;
        const SEGV_MAPERR: u64 = 1;
        let next = self.next;
        let (signal, code, fault) = match fault {
            CodeFault::NotExecutable => (libc::SIGSEGV, SEGV_MAPERR, [USER_FETCH, PAGE_FAULT, next]),
            CodeFault::Undefined => (libc::SIGILL, ILL_ILLOPN, [0, INVALID_OPCODE, 0]),
        };
        let mut information = [0; 16];
        information[0] = signal as u64;
        information[1] = code;
        information[2] = next;
        // A signal that waits is delivered after the fault.
        if !self.hold_signals() {
            return;
        }
        let inbox = &mut self.area().inbox;
        *inbox = SignalInbox { signal, is_fault: true, information, fault, ..empty_inbox() };
        self.deliver();
    }

    /// Executes the next instruction by a translation that is used once.
    fn execute_once(&mut self) {
        let once = {
            let mut process = TranslatorProcess::get().code();
            let process = &mut *process;
            process.code.translate_once(self.next, &process.memory).map(|block| process.code.entry(block))
        };
        self.set_mask(self.signals.mask);
        if let Ok(entry) = once {
            self.once = Some(entry);
        }
    }
}

fn empty_inbox() -> SignalInbox {
    SignalInbox {
        signal: 0,
        is_fault: false,
        is_stepping: false,
        is_code_write: false,
        address: 0,
        last_step: 0,
        information: [0; 16],
        fault: [0; 3],
    }
}

/// What interrupted a thread.
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
        *inbox = SignalInbox { signal, information: *information, ..empty_inbox() };
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
        if !is_translated_code(at) {
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
        self.registers[RIP] = glue::leave_address() as i64;
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
        if at == glue::leave_address() {
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
            set_action(signal, &SignalAction::default());
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
            set_action(signal, &SignalAction::default());
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
            ..empty_inbox()
        };
        self.area.pending.store(1, Ordering::Relaxed);
        *self.mask = !FAULTS;
        self.leave_at(address);
    }
}
