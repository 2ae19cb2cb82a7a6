//! Delivery of signals to the program, as the kernel would do it. `handler.rs` receives them.

use std::sync::atomic::Ordering;

use super::actions::{DEFAULT, FAULTS, IGNORE, KernelSignalAction, SIGNALS, bit, set_action};
use super::frame;
use super::state::TranslatorProcess;
use super::thread::{ProgramThread, set_kernel_mask};
use crate::area::{SIGNAL_STACK, SIGNAL_STACK_SIZE, SignalInbox};
use crate::code::CodeFault;

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
        let action = TranslatorProcess::get().actions().of(signal);
        let is_blocked = is_fault && self.signals.mask & bit(signal) != 0;
        match action.handler {
            IGNORE if !is_fault => return self.set_mask(self.signals.mask),
            DEFAULT | IGNORE => return self.take_default(signal, is_fault),
            _ if is_blocked => return self.take_default(signal, true),
            _ => {}
        }
        if action.flags & libc::SA_RESETHAND as u64 != 0 {
            let reset = KernelSignalAction { handler: DEFAULT, ..action };
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
        set_action(signal, &KernelSignalAction::default());
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
        *inbox = SignalInbox { signal, is_fault: true, information, fault, ..SignalInbox::EMPTY };
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
