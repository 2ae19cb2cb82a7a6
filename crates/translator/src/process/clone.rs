//! New threads and processes.

use std::sync::atomic::{AtomicU32, Ordering};

use super::calls::{Outcome, is_plain};
use super::program_memory::{read_bytes, write};
use super::state::TranslatorProcess;
use super::thread::ProgramThread;
use crate::area::{RAX, RCX, RSP, ThreadArea, VECTORS, vectors_size};
use crate::glue;

/// Bytes of a translator's stack in a thread.
const STACK: usize = 512 << 10;
/// Flags of a call that creates a thread, as C libraries make it.
const THREAD: u64 =
    (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD) as u64;
/// Flags that are not supported: namespaces and descriptors of processes need no more than that the kernel gets them.
const EXIT_SIGNAL: u64 = 0xff;

/// The request of `clone`, `clone3`, `fork` or `vfork`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CloneRequest {
    flags: u64,
    exit_signal: u64,
    stack: u64,
    parent_tid: u64,
    child_tid: u64,
    tls: u64,
    pidfd: u64,
}

impl CloneRequest {
    /// Of `clone`.
    pub fn of_clone(flags: u64, stack: u64, parent_tid: u64, child_tid: u64, tls: u64) -> CloneRequest {
        CloneRequest {
            flags: flags & 0xffff_ffff & !EXIT_SIGNAL,
            exit_signal: flags & EXIT_SIGNAL,
            stack,
            parent_tid,
            child_tid,
            tls,
            pidfd: parent_tid,
        }
    }

    /// Of `fork` and `vfork`.
    pub fn of_fork(flags: u64) -> CloneRequest {
        CloneRequest { flags, exit_signal: libc::SIGCHLD as u64, ..CloneRequest::default() }
    }

    /// Of `clone3`: the address and the size of its structure.
    pub fn of_clone3(address: u64, size: u64) -> Result<CloneRequest, i32> {
        const LEAST: u64 = 64;
        const KNOWN: usize = 88;
        if size < LEAST {
            return Err(libc::EINVAL);
        }
        if size > 4096 {
            return Err(libc::E2BIG);
        }
        let mut bytes = read_bytes(address, size as usize)?;
        bytes.resize(bytes.len().max(KNOWN), 0);
        let word =
            |index: usize| u64::from_le_bytes(bytes[8 * index..8 * index + 8].try_into().unwrap_or_default());
        if word(8) != 0 {
            // The numbers of the new process are chosen by the caller.
            return Err(libc::EPERM);
        }
        Ok(CloneRequest {
            flags: word(0),
            pidfd: word(1),
            child_tid: word(2),
            parent_tid: word(3),
            exit_signal: word(4),
            stack: if word(5) == 0 { 0 } else { word(5) + word(6) },
            tls: word(7),
        })
    }

    fn has(&self, flag: i32) -> bool {
        self.flags & flag as u32 as u64 != 0
    }
}

impl ProgramThread {
    /// Makes a thread or a process.
    pub(super) fn clone_call(&mut self, request: CloneRequest) -> Outcome {
        if request.flags & THREAD == THREAD {
            return self.new_thread(request);
        }
        let shares_memory = request.has(libc::CLONE_VM);
        if shares_memory && !request.has(libc::CLONE_VFORK) || request.has(libc::CLONE_THREAD) {
            return Outcome::Result(-i64::from(libc::EINVAL));
        }
        if !self.hold_signals() {
            return Outcome::Again;
        }
        let outcome = if shares_memory { self.new_borrower(request) } else { self.new_process(request) };
        self.set_mask(self.signals.mask);
        outcome
    }

    /// The registers of a child as the call returns there.
    fn return_in_child(&mut self, request: &CloneRequest) {
        let next = self.next;
        let area = self.area();
        area.registers[usize::from(RAX)] = 0;
        area.registers[usize::from(RCX)] = next;
        area.registers[11] = area.flags;
        if request.stack != 0 {
            area.registers[usize::from(RSP)] = request.stack;
        }
        if request.has(libc::CLONE_SETTLS) {
            area.fs = request.tls;
        }
    }

    /// A copy of the area, for a child.
    fn new_area(&mut self) -> std::io::Result<*mut ThreadArea> {
        let area = ThreadArea::new(glue::addresses(), is_plain)?;
        let own = self.area();
        // SAFETY: the area is new; vector registers have their size in both.
        unsafe {
            (*area).registers = own.registers;
            (*area).fs = own.fs;
            (*area).flags = own.flags;
            let (from, to) = (own.address as usize + VECTORS, area as usize + VECTORS);
            std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, vectors_size());
        }
        Ok(area)
    }

    fn new_thread(&mut self, request: CloneRequest) -> Outcome {
        let process = TranslatorProcess::get();
        let failed = |_| Outcome::Result(-i64::from(libc::EAGAIN));
        let area = match self.new_area() {
            Ok(area) => area,
            Err(error) => return failed(error),
        };
        let slot = match process.results.attach(area) {
            Ok(slot) => slot,
            Err(error) => return failed(error),
        };
        let mut child = ProgramThread::new(area, slot, self.next);
        child.is_first = false;
        child.signals.mask = self.signals.mask;
        child.return_in_child(&request);
        if request.has(libc::CLONE_CHILD_CLEARTID) {
            child.clear_at_end = request.child_tid;
        }
        if !self.hold_signals() {
            return Outcome::Again;
        }
        // 0 until the child has its number.
        let number = std::sync::Arc::new(AtomicU32::new(0));
        let of_child = std::sync::Arc::clone(&number);
        let spawned =
            std::thread::Builder::new().stack_size(STACK).spawn(move || child.begin(&request, &of_child));
        let outcome = match spawned {
            Ok(_) => {
                while number.load(Ordering::Acquire) == 0 {
                    std::thread::yield_now();
                }
                // The child has told its number to its parent: later it may have ended, and cleared it.
                Outcome::Result(number.load(Ordering::Acquire).into())
            }
            Err(error) => failed(error),
        };
        self.set_mask(self.signals.mask);
        outcome
    }

    /// A thread begins, with all signals blocked.
    fn begin(mut self, request: &CloneRequest, number: &AtomicU32) {
        // SAFETY: the area lives as long as the thread.
        unsafe { glue::set_area(self.area) };
        // SAFETY: no arguments.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        if request.has(libc::CLONE_CHILD_SETTID) {
            let _ = write(request.child_tid, &tid);
        }
        if request.has(libc::CLONE_PARENT_SETTID) {
            let _ = write(request.parent_tid, &tid);
        }
        number.store(tid, Ordering::Release);
        self.begin_signals();
        let status = self.run_to_end();
        if self.is_first {
            // It has forked, and is the only thread of the new process.
            // SAFETY: ends the thread.
            unsafe { libc::syscall(libc::SYS_exit, status) };
        }
        self.hold_signals();
        let process = TranslatorProcess::get();
        let blocks = process.code().code.block_count();
        process.results.retire(self.slot, blocks);
        self.tell_end();
        // SAFETY: the thread executes no translated code any more; its handler's stack stays until then.
        unsafe { libc::munmap(self.area.cast(), crate::area::AREA_SIZE) };
    }

    /// Tells other threads that wait for the end of this one.
    pub(super) fn tell_end(&mut self) {
        if self.clear_at_end != 0 && write(self.clear_at_end, &0u32).is_ok() {
            // SAFETY: wakes threads that wait at an address of the program.
            unsafe { libc::syscall(libc::SYS_futex, self.clear_at_end, libc::FUTEX_WAKE, i32::MAX) };
        }
    }

    /// A process with a copy of the memory.
    fn new_process(&mut self, request: CloneRequest) -> Outcome {
        let process = TranslatorProcess::get();
        // No other thread of the copy will unlock what it locked.
        let (code, actions) = (process.code(), process.actions());
        let plain = request.flags
            & !(libc::CLONE_CHILD_SETTID
                | libc::CLONE_CHILD_CLEARTID
                | libc::CLONE_PARENT_SETTID
                | libc::CLONE_SETTLS) as u64;
        let child = if plain == 0 && request.exit_signal == libc::SIGCHLD as u64 {
            // SAFETY: the C library sees to its own locks; those of the translator are held.
            i64::from(unsafe { libc::fork() })
        } else {
            let arguments = [plain | request.exit_signal, 0, request.pidfd, 0, 0, 0];
            let [a, b, c, d, e, _] = arguments;
            // SAFETY: the child continues on a copy of this stack.
            unsafe { libc::syscall(libc::SYS_clone, a, b, c, d, e) }
        };
        drop((code, actions));
        if child < 0 {
            return Outcome::Result(-i64::from(
                std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN),
            ));
        }
        if child > 0 {
            process.results.add_fork();
            if request.has(libc::CLONE_PARENT_SETTID) {
                let _ = write(request.parent_tid, &(child as u32));
            }
            return Outcome::Result(child);
        }
        process.results.detach(self.area);
        self.is_first = true;
        self.clear_at_end = if request.has(libc::CLONE_CHILD_CLEARTID) { request.child_tid } else { 0 };
        self.return_in_child(&request);
        if request.has(libc::CLONE_CHILD_SETTID) {
            // SAFETY: no arguments.
            let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
            let _ = write(request.child_tid, &tid);
        }
        Outcome::Restored
    }

    /// A process that borrows the memory until it executes another program or ends (`vfork`). It runs with an area and a stack of its own,
    /// while this thread waits.
    fn new_borrower(&mut self, request: CloneRequest) -> Outcome {
        let Ok(area) = self.new_area() else { return Outcome::Result(-i64::from(libc::ENOMEM)) };
        let mut child = ProgramThread::new(area, 0, self.next);
        child.signals.mask = self.signals.mask;
        child.signals.stack = self.signals.stack;
        child.return_in_child(&request);
        let process = TranslatorProcess::get();
        process.results.add_fork();
        let Ok(stack) = crate::area::map_memory(STACK, libc::PROT_READ | libc::PROT_WRITE) else {
            return Outcome::Result(-i64::from(libc::ENOMEM));
        };
        let flags = request.flags
            & !((libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::CLONE_SETTLS) as u64);
        let argument = &raw mut child;
        // The child's actions of signals are its own.
        let actions = process.actions().clone();
        // SAFETY: the child has a stack of its own, and ends by itself; this thread waits meanwhile, so that `child` lives.
        let result = unsafe {
            libc::clone(
                run_borrower,
                (stack + STACK) as *mut _,
                flags as i32 | request.exit_signal as i32,
                argument.cast(),
                request.parent_tid,
            )
        };
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN);
        *process.actions() = actions;
        // SAFETY: the child has ended, or executes another program.
        unsafe {
            libc::munmap(stack as *mut _, STACK);
            libc::munmap(area.cast(), crate::area::AREA_SIZE);
        }
        Outcome::Result(if result < 0 { -i64::from(error) } else { result.into() })
    }
}

/// The child of `vfork`.
extern "C" fn run_borrower(child: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `new_borrower` passes it, and waits.
    let child = unsafe { &mut *child.cast::<ProgramThread>() };
    // SAFETY: the area lives until `new_borrower` continues.
    unsafe { glue::set_area(child.area) };
    child.begin_signals();
    child.run_to_end()
}
