//! A thread of the program: its registers, and its signals.

use std::sync::atomic::Ordering;

use super::actions::{FAULTS, bit};
use crate::area::ThreadArea;

/// A thread of the program.
pub(crate) struct ProgramThread {
    /// Its area.
    pub(super) area: *mut ThreadArea,
    /// The slot of its counters.
    pub(super) slot: u32,
    /// The address of the instruction that it executes next.
    pub(super) next: u64,
    /// Its signals.
    pub(super) signals: ThreadSignals,
    /// The entry of a translation that is executed once, before anything else.
    pub(super) once: Option<u64>,
    /// Where the kernel of a thread that ends writes 0, and wakes a waiting thread.
    pub(super) clear_at_end: u64,
    /// Whether it is the first thread, whose end is the process's if there is no other.
    pub(super) is_first: bool,
}

// SAFETY: the area belongs to the thread that runs this.
unsafe impl Send for ProgramThread {}

/// A thread's signal mask and alternate stack, as the program set them.
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
pub(super) fn set_kernel_mask(mask: u64) -> u64 {
    let mut former = 0u64;
    // SAFETY: reads and writes the two masks.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &mask, &mut former, size_of::<u64>())
    };
    former
}

impl ProgramThread {
    /// A thread that begins at an address, with the registers in the area.
    pub fn new(area: *mut ThreadArea, slot: u32, next: u64) -> ProgramThread {
        let signals = ThreadSignals::new();
        ProgramThread { area, slot, next, signals, once: None, clear_at_end: 0, is_first: true }
    }

    /// The area.
    pub(super) fn area(&mut self) -> &mut ThreadArea {
        // SAFETY: the area lives as long as its thread, which is this one, and nothing else refers to it while translated code does not run.
        unsafe { &mut *self.area }
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
}
