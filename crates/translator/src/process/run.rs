//! The loop of a thread: it enters translated code, and does what translated code was left for.

use super::state::{TranslatorProcess, give_up};
use super::thread::ProgramThread;
use crate::area::{INDIRECT, SIGNAL};
use crate::code::{CodeFault, TranslationExit};
use crate::glue;

/// The continuation of a thread after a system call.
pub(super) enum AfterCall {
    /// It continues.
    Continue,
    /// It ends with a status.
    End(i32),
}

impl ProgramThread {
    /// Runs the program. The first thread ends the process.
    pub fn run(mut self) -> ! {
        // SAFETY: the area lives as long as the process.
        unsafe { glue::set_area(self.area) };
        self.begin_signals();
        let status = self.run_to_end();
        self.tell_end();
        // SAFETY: ends this thread alone; others of the program continue.
        unsafe { libc::syscall(libc::SYS_exit, status) };
        unreachable!("a thread that has ended")
    }

    /// Runs until the thread ends. Returns its status.
    pub(super) fn run_to_end(&mut self) -> i32 {
        let mut origin = None;
        loop {
            if self.has_signal() {
                self.deliver();
                origin = None;
            }
            match self.resume(origin) {
                Ok(()) => {}
                Err(fault) => {
                    self.raise_fault(fault);
                    origin = None;
                    continue;
                }
            }
            // SAFETY: `resume` is the entry of a translation.
            unsafe { glue::enter() };
            origin = None;
            match self.area().exit {
                SIGNAL => self.next = self.address_after_signal(),
                INDIRECT => {
                    let area = self.area();
                    self.next = area.target.wrapping_sub(area.key);
                    origin = Some(ExitOrigin::Indirect);
                }
                exit => {
                    let exit = exit as u32;
                    let kind = TranslatorProcess::get().code().code.exit(exit);
                    match kind {
                        TranslationExit::Direct { target, .. } => {
                            self.next = target;
                            origin = Some(ExitOrigin::Direct(exit));
                        }
                        TranslationExit::SystemCall(next) => {
                            self.next = next;
                            if let AfterCall::End(status) = self.system_call() {
                                return status;
                            }
                        }
                        TranslationExit::Unsupported(address) => unsupported(address),
                    }
                }
            }
        }
    }

    /// Finds the translation of the next instruction, and links the exit by which translated code was left to it.
    fn resume(&mut self, origin: Option<ExitOrigin>) -> Result<(), CodeFault> {
        if let Some(entry) = self.once.take() {
            self.area().resume = entry;
            return Ok(());
        }
        let mut process = TranslatorProcess::get().code();
        let process = &mut *process;
        let (code, memory) = (&mut process.code, &mut process.memory);
        let block = code.block(self.next, memory)?;
        match origin {
            Some(ExitOrigin::Direct(exit)) => code.link(exit, block),
            Some(ExitOrigin::Indirect) => {
                let entry = code.indirect_entry(block);
                let next = self.next;
                self.area().add_target(next, entry);
            }
            None => {}
        }
        let entry = code.entry(block);
        self.area().resume = entry;
        Ok(())
    }

    /// The address at which a thread was interrupted for a signal: that of a block, or that at which it was to enter translated code.
    fn address_after_signal(&mut self) -> u64 {
        match std::mem::take(&mut self.area().inbox.address) {
            0 => self.next,
            address => address,
        }
    }
}

/// The exit by which translated code was left.
#[derive(Clone, Copy, Debug)]
enum ExitOrigin {
    Direct(u32),
    Indirect,
}

/// Ends the process at an instruction that cannot be translated.
fn unsupported(address: u64) -> ! {
    let text = format!(
        "the instruction at {address:#x} cannot be translated: it uses GS, another code segment, or the system calls of 32-bit programs"
    );
    give_up(TranslatorProcess::get().results, &text)
}
