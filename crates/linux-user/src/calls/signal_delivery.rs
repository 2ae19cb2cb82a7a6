//! Delivers signals to the guest: takes the default action, or has the guest's ABI enter the handler.

use crate::abi::Abi;
use crate::abi::signals::{AlternateStack, DEFAULT, IGNORE, SignalAction, SignalFrame};
use crate::state::control::Control;
use crate::state::kernel::Kernel;
use crate::state::lock::KernelGuard;
use crate::state::signals::{self, Default};
use crate::state::threads::Task;
use guest_memory::Memory;
use host::{Errno, SignalInformation};

/// A system call that is about to return, which a signal may restart.
pub struct ReturningCall<G: Abi> {
    /// The registers before the call.
    pub before: G::ResultRegisters,
    /// The error of the call.
    pub error: Option<Errno>,
}

impl<G: Abi> ReturningCall<G> {
    /// No call.
    fn nothing() -> ReturningCall<G> {
        ReturningCall { before: G::ResultRegisters::default(), error: None }
    }

    /// Restores the registers so that the call is made again, if the handler (None: there is none) permits it.
    fn restart(&mut self, cpu: &mut G, action: Option<&SignalAction>) {
        let Some(error) = self.error.take().filter(|error| error.is_restart()) else { return };
        let wanted = action.is_none_or(|action| action.flags & G::ACTION_FLAGS.restart != 0);
        if error == Errno::RESTART_ALWAYS || error == Errno::RESTART && wanted || action.is_none() {
            cpu.restart_call(self.before);
        }
    }
}

impl<G: Abi> Task<G> {
    /// Delivers the recorded signal. Called between two instructions when [`host::pending`] is true.
    pub fn deliver(&mut self, kernel: &mut KernelGuard<G>, cpu: &mut G, memory: &Memory) -> Control {
        self.after_call(kernel, cpu, memory, ReturningCall::nothing())
    }

    /// Delivers pending signals before a system call returns to the guest.
    pub(crate) fn after_call(
        &mut self,
        kernel: &mut KernelGuard<G>,
        cpu: &mut G,
        memory: &Memory,
        mut call: ReturningCall<G>,
    ) -> Control {
        while let Some(mut information) = self.next_signal(kernel) {
            let (signal, pc) = (G::guest_signal(information.signal()), cpu.pc());
            let wanted = self.consult(kernel, cpu, signal);
            if cpu.pc() != pc {
                // The debugger has set the program counter: the call is not restarted.
                call.error = None;
            }
            match wanted {
                None => continue,
                Some(wanted) if wanted == signal => {}
                Some(wanted) => information = signals::sent::<G>(wanted),
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
    fn next_signal(&mut self, kernel: &mut Kernel<G>) -> Option<SignalInformation> {
        let mask = self.signals.mask;
        let blocked =
            |information: &SignalInformation| mask & host::bit(G::guest_signal(information.signal())) != 0;
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
        let index = held.iter().position(|information| !blocked(information));
        let information = match index {
            Some(index) => held.remove(index),
            None => kernel.take_held(!mask)?,
        };
        kernel.note_expiry(&information);
        Some(information)
    }

    /// Reports a signal to the debugger, if there is one. Returns the signal to deliver.
    fn consult(&self, kernel: &mut KernelGuard<G>, cpu: &mut G, signal: i32) -> Option<i32> {
        match kernel.debugger.clone() {
            Some(debugger) => kernel.released(|| debugger.signal(self.address().id, cpu, signal)),
            None => Some(signal),
        }
    }

    /// Takes the guest's action for a signal.
    fn act(
        &mut self,
        kernel: &mut Kernel<G>,
        cpu: &mut G,
        memory: &Memory,
        information: &SignalInformation,
        call: &mut ReturningCall<G>,
    ) -> Control {
        let signal = G::guest_signal(information.signal());
        let action = kernel.actions.get(signal);
        match action.handler {
            IGNORE => Control::Continue,
            DEFAULT => match signals::default::<G>(signal) {
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
                let arguments = G::TrapArguments::default();
                self.enter(kernel, cpu, memory, &action, information, arguments)
            }
        }
    }

    /// Raises the signal of an exception. The program counter is at the instruction that raised it, or after it, if
    /// the exception completes that.
    pub fn raise(
        &mut self,
        kernel: &mut KernelGuard<G>,
        cpu: &mut G,
        memory: &Memory,
        exception: G::Exception,
    ) -> Control {
        let fault = cpu.exception_signal(memory, exception);
        if fault.signal == libc::SIGBUS && memory.fill_tail(fault.address) {
            // The access is made again.
            return Control::Continue;
        }
        let signal = G::guest_signal(fault.signal);
        match self.consult(kernel, cpu, signal) {
            None => return Control::Continue,
            Some(wanted) if wanted == signal => {}
            Some(wanted) => {
                let mut call = ReturningCall::nothing();
                return self.act(kernel, cpu, memory, &signals::sent::<G>(wanted), &mut call);
            }
        }
        let action = kernel.actions.get(signal);
        let blocked = self.signals.mask & host::bit(signal) != 0;
        if blocked || action.handler == DEFAULT || action.handler == IGNORE {
            return Control::Killed { signal };
        }
        cpu.set_pc(fault.pc);
        let information = SignalInformation::new(fault.signal, fault.code, &[fault.address, fault.trap]);
        self.enter(kernel, cpu, memory, &action, &information, fault.trap_arguments)
    }

    /// Raises a fault's signal after the current system call.
    pub(crate) fn send_fault(&mut self, kernel: &Kernel<G>, signal: i32, code: i32, address: u64) {
        self.signals.hold(&kernel.actions, SignalInformation::new(signal, code, &[address]));
    }

    /// Enters a signal's handler.
    fn enter(
        &mut self,
        kernel: &mut Kernel<G>,
        cpu: &mut G,
        memory: &Memory,
        action: &SignalAction,
        information: &SignalInformation,
        trap_arguments: G::TrapArguments,
    ) -> Control {
        let signal = G::guest_signal(information.signal());
        let saved_mask = self.signals.saved_mask.unwrap_or(self.signals.mask);
        let stack = self.signals.stack;
        let frame = SignalFrame { signal, information, action, saved_mask, stack, trap_arguments };
        if cpu.enter_handler(memory, &frame).is_err() {
            return self.no_frame(kernel, cpu, memory, signal);
        }
        self.signals.saved_mask = None;
        if action.flags & G::ACTION_FLAGS.reset_handler != 0 {
            kernel.actions.set(signal, SignalAction { handler: DEFAULT, ..*action });
        }
        if self.signals.stack.flags & AlternateStack::AUTODISARM != 0 {
            self.signals.stack = AlternateStack::NONE;
        }
        let own = if action.flags & G::ACTION_FLAGS.no_defer == 0 { host::bit(signal) } else { 0 };
        self.signals.set_mask(self.signals.mask | action.mask | own);
        Control::Continue
    }

    /// There is no room for a frame: raises SIGSEGV, or ends the process if the signal was SIGSEGV.
    fn no_frame(&mut self, kernel: &mut Kernel<G>, cpu: &mut G, memory: &Memory, signal: i32) -> Control {
        let invalid_access = G::guest_signal(libc::SIGSEGV);
        let action = kernel.actions.get(invalid_access);
        let blocked = self.signals.mask & host::bit(invalid_access) != 0;
        if signal == invalid_access || blocked || action.handler == DEFAULT || action.handler == IGNORE {
            return Control::Killed { signal: invalid_access };
        }
        let information = SignalInformation::new(libc::SIGSEGV, libc::SI_KERNEL, &[]);
        self.enter(kernel, cpu, memory, &action, &information, G::TrapArguments::default())
    }
}
