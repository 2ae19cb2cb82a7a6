//! System calls. Most go to the kernel as they are; those that concern code, memory of the translator, signals, threads and processes are
//! handled here.

use std::os::unix::ffi::OsStrExt;

use super::actions::KernelSignalAction;
use super::clone::CloneRequest;
use super::program_memory::{BAD_ADDRESS, read, read_text, write, write_bytes};
use super::run::AfterCall;
use super::state::{CodeAndMemory, TranslatorProcess};
use super::thread::ProgramThread;
use crate::area::{RAX, RCX};
use crate::glue;

const PAGE: u64 = 4096;
/// Bytes of the instruction `syscall`.
const SYSCALL: u64 = 2;
/// Numbers of registers.
const R11: u8 = 11;
const ARGUMENTS: [usize; 6] = [7, 6, 2, 10, 8, 9];
/// Functions of `arch_prctl` (asm/prctl.h).
const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const ARCH_GET_GS: u64 = 0x1004;
const ARCH_SHSTK_ENABLE: u64 = 0x5001;
/// The end of user addresses.
const ADDRESS_LIMIT: u64 = 1 << 47;

/// The outcome of a handled call.
pub(super) enum Outcome {
    /// The result, or a negative error number.
    Result(i64),
    /// All registers have been set.
    Restored,
    /// A signal comes first; the call is made again after it.
    Again,
    /// The thread ends with a status.
    End(i32),
}

/// A result of an operation with an error number.
fn result(outcome: Result<u64, i32>) -> Outcome {
    Outcome::Result(outcome.map_or_else(|error| -i64::from(error), |value| value as i64))
}

/// A handler of a system call: of its number and arguments.
type CallHandler = fn(&mut ProgramThread, i64, &[u64; 6]) -> Outcome;

/// The system calls that do not go to the kernel as they are.
const HANDLED: [(i64, CallHandler); 23] = [
    (libc::SYS_mmap, ProgramThread::map),
    (libc::SYS_munmap, ProgramThread::unmap),
    (libc::SYS_mprotect, ProgramThread::protect),
    (libc::SYS_pkey_mprotect, ProgramThread::protect),
    (libc::SYS_mremap, ProgramThread::remap),
    (libc::SYS_brk, |_, _, &[end, ..]| {
        Outcome::Result(TranslatorProcess::get().code().memory.set_break(end) as i64)
    }),
    (libc::SYS_arch_prctl, |thread, _, &[function, value, ..]| result(thread.arch_prctl(function, value))),
    (libc::SYS_rt_sigaction, |thread, _, &[signal, new, old, size, ..]| {
        result(thread.set_action(signal, new, old, size))
    }),
    (libc::SYS_rt_sigprocmask, |thread, _, &[how, new, old, size, ..]| {
        thread.change_mask(how, new, old, size)
    }),
    (libc::SYS_rt_sigreturn, |thread, _, _| thread.return_from_signal()),
    (libc::SYS_sigaltstack, |thread, _, &[new, old, ..]| result(thread.change_stack(new, old))),
    (libc::SYS_set_tid_address, |thread, _, &[address, ..]| {
        thread.clear_at_end = address;
        // SAFETY: no arguments.
        Outcome::Result(unsafe { libc::syscall(libc::SYS_gettid) })
    }),
    // A program without restartable sequences makes system calls instead.
    (libc::SYS_rseq, |_, _, _| Outcome::Result(-i64::from(libc::ENOSYS))),
    (libc::SYS_clone, |thread, _, &[flags, stack, parent, child, tls, _]| {
        thread.clone_call(CloneRequest::of_clone(flags, stack, parent, child, tls))
    }),
    (libc::SYS_fork, |thread, _, _| thread.clone_call(CloneRequest::of_fork(0))),
    (libc::SYS_vfork, |thread, _, _| {
        thread.clone_call(CloneRequest::of_fork((libc::CLONE_VM | libc::CLONE_VFORK) as u64))
    }),
    (libc::SYS_clone3, |thread, _, &[address, size, ..]| match CloneRequest::of_clone3(address, size) {
        Ok(request) => thread.clone_call(request),
        Err(error) => Outcome::Result(-i64::from(error)),
    }),
    (libc::SYS_exit, |_, _, &[status, ..]| Outcome::End(status as i32)),
    (libc::SYS_readlink, |thread, number, arguments| {
        let &[path, buffer, size, ..] = arguments;
        thread.read_link(number, arguments, path, buffer, size)
    }),
    (libc::SYS_readlinkat, |thread, number, arguments| {
        let &[_, path, buffer, size, ..] = arguments;
        thread.read_link(number, arguments, path, buffer, size)
    }),
    // They replace or end the process.
    (libc::SYS_execve, ProgramThread::pass),
    (libc::SYS_execveat, ProgramThread::pass),
    (libc::SYS_exit_group, ProgramThread::pass_counted),
];

/// Whether a system call goes to the kernel as it is.
pub(super) fn is_plain(number: i64) -> bool {
    HANDLED.iter().all(|(handled, _)| *handled != number)
}

impl ProgramThread {
    /// Makes the system call of the registers.
    pub(super) fn system_call(&mut self) -> AfterCall {
        let area = self.area();
        let number = area.registers[usize::from(RAX)];
        let arguments = ARGUMENTS.map(|register| area.registers[register]);
        let handled = HANDLED.iter().find(|(handled, _)| *handled == number as i64);
        let outcome = match handled {
            Some((_, handler)) => handler(self, number as i64, &arguments),
            None => self.pass(number as i64, &arguments),
        };
        let next = self.next;
        let area = self.area();
        if !matches!(outcome, Outcome::Again) {
            area.add_system_call(number);
        }
        match outcome {
            Outcome::Result(value) => {
                area.registers[usize::from(RAX)] = value as u64;
                area.registers[usize::from(RCX)] = next;
                area.registers[usize::from(R11)] = area.flags;
            }
            Outcome::Restored => {}
            Outcome::Again => self.next = next - SYSCALL,
            Outcome::End(status) => return AfterCall::End(status),
        }
        AfterCall::Continue
    }

    /// Lets the kernel make a call, which may write to pages whose code was translated.
    pub(super) fn pass(&mut self, number: i64, arguments: &[u64; 6]) -> Outcome {
        match self.pass_once(number, arguments) {
            Outcome::Result(value) if value == -i64::from(BAD_ADDRESS) && release_protected() => {
                self.pass_once(number, arguments)
            }
            outcome => outcome,
        }
    }

    /// The same of a call that writes to no memory, while the code is locked.
    fn pass_once(&mut self, number: i64, arguments: &[u64; 6]) -> Outcome {
        // SAFETY: calls that concern memory are checked before; others write only where the program says.
        match unsafe { glue::call(number as u64, arguments) } {
            glue::NOT_BEGUN => Outcome::Again,
            value => Outcome::Result(value),
        }
    }

    fn map(&mut self, number: i64, arguments: &[u64; 6]) -> Outcome {
        let &[address, length, protection, flags, descriptor, offset] = arguments;
        let mut process = TranslatorProcess::get().code();
        let is_fixed = flags as i32 & libc::MAP_FIXED != 0;
        if is_fixed && process.is_own(address, length) {
            return Outcome::Result(-i64::from(libc::ENOMEM));
        }
        let outcome = self.pass_once(number, arguments);
        let Outcome::Result(start @ 0..) = outcome else { return outcome };
        let (start, end) = (start as u64, (start as u64).saturating_add(length).next_multiple_of(PAGE));
        process.forget(start, end);
        if protection as i32 & libc::PROT_EXEC != 0 {
            let is_file = flags as i32 & libc::MAP_ANONYMOUS == 0;
            let name =
                is_file.then(|| std::fs::read_link(format!("/proc/self/fd/{}", descriptor as i32)).ok());
            let image = match name.flatten() {
                Some(path) => {
                    TranslatorProcess::get().results.add_image(start, offset, path.as_os_str().as_bytes());
                    process.images += 1;
                    process.images - 1
                }
                None => crate::memory::NO_IMAGE,
            };
            process.memory.add_code(start, end, protection as i32 & libc::PROT_WRITE != 0, image);
        }
        outcome
    }

    fn unmap(&mut self, number: i64, arguments: &[u64; 6]) -> Outcome {
        let &[address, length, ..] = arguments;
        let mut process = TranslatorProcess::get().code();
        if process.is_own(address, length) {
            return Outcome::Result(-i64::from(libc::EINVAL));
        }
        let outcome = self.pass_once(number, arguments);
        if matches!(outcome, Outcome::Result(0)) {
            process.forget(address, address.saturating_add(length).next_multiple_of(PAGE));
        }
        outcome
    }

    fn protect(&mut self, number: i64, arguments: &[u64; 6]) -> Outcome {
        let &[address, length, protection, ..] = arguments;
        let mut process = TranslatorProcess::get().code();
        if process.is_own(address, length) {
            return Outcome::Result(-i64::from(libc::EACCES));
        }
        let outcome = self.pass_once(number, arguments);
        if matches!(outcome, Outcome::Result(0)) && length > 0 {
            let end = address.saturating_add(length).next_multiple_of(PAGE);
            let right = |right| protection as i32 & right != 0;
            if process.memory.protect(address, end, right(libc::PROT_EXEC), right(libc::PROT_WRITE)) {
                process.code.invalidate(address, end);
            }
        }
        outcome
    }

    fn remap(&mut self, number: i64, arguments: &[u64; 6]) -> Outcome {
        let &[address, old, new, flags, target, _] = arguments;
        let mut process = TranslatorProcess::get().code();
        let replaces = flags as i32 & libc::MREMAP_FIXED != 0;
        if process.is_own(address, old.max(1)) || replaces && process.is_own(target, new) {
            return Outcome::Result(-i64::from(libc::EINVAL));
        }
        let had_code = process.memory.overlaps(address, address.saturating_add(old));
        // The kernel moves memory with the same rights only.
        process.release(address, address.saturating_add(old));
        let outcome = self.pass_once(number, arguments);
        let Outcome::Result(start @ 0..) = outcome else { return outcome };
        process.forget(address, address.saturating_add(old).next_multiple_of(PAGE));
        let (start, end) = (start as u64, (start as u64).saturating_add(new).next_multiple_of(PAGE));
        process.forget(start, end);
        if had_code {
            process.memory.add_code(start, end, true, crate::memory::NO_IMAGE);
        }
        outcome
    }

    /// A call that does not return.
    fn pass_counted(&mut self, number: i64, arguments: &[u64; 6]) -> Outcome {
        self.area().add_system_call(number as u64);
        self.pass(number, arguments)
    }

    fn return_from_signal(&mut self) -> Outcome {
        match super::frame::pop(self) {
            Ok(mask) => self.set_mask(mask),
            Err(_) => self.end_by(libc::SIGSEGV),
        }
        Outcome::Restored
    }

    fn arch_prctl(&mut self, function: u64, value: u64) -> Result<u64, i32> {
        match function {
            ARCH_SET_FS if value >= ADDRESS_LIMIT => Err(libc::EPERM),
            ARCH_SET_FS => {
                self.area().fs = value;
                Ok(0)
            }
            ARCH_GET_FS => {
                let fs = self.area().fs;
                write(value, &fs).map(|()| 0)
            }
            // The translator has GS for itself.
            ARCH_SET_GS if value != 0 => Err(libc::EPERM),
            ARCH_SET_GS => Ok(0),
            ARCH_GET_GS => write(value, &0u64).map(|()| 0),
            ARCH_SHSTK_ENABLE => Err(libc::EOPNOTSUPP),
            _ => match self.pass(libc::SYS_arch_prctl, &[function, value, 0, 0, 0, 0]) {
                Outcome::Result(value @ 0..) => Ok(value as u64),
                Outcome::Result(error) => Err(-error as i32),
                _ => Err(libc::EINTR),
            },
        }
    }

    fn set_action(&mut self, signal: u64, new: u64, old: u64, size: u64) -> Result<u64, i32> {
        if size != 8 {
            return Err(libc::EINVAL);
        }
        let action = if new == 0 { None } else { Some(read::<KernelSignalAction>(new)?) };
        let former = TranslatorProcess::get().actions().set(signal as i32, action)?;
        if old != 0 {
            write(old, &former)?;
        }
        Ok(0)
    }

    fn change_mask(&mut self, how: u64, new: u64, old: u64, size: u64) -> Outcome {
        if size != 8 {
            return Outcome::Result(-i64::from(libc::EINVAL));
        }
        let former = self.signals.mask;
        let mask = match new {
            0 => Ok(former),
            address => read::<u64>(address).and_then(|set| match how as i32 {
                libc::SIG_BLOCK => Ok(former | set),
                libc::SIG_UNBLOCK => Ok(former & !set),
                libc::SIG_SETMASK => Ok(set),
                _ => Err(libc::EINVAL),
            }),
        };
        let written =
            mask.and_then(|mask| if old == 0 { Ok(mask) } else { write(old, &former).map(|()| mask) });
        match written {
            Err(error) => Outcome::Result(-i64::from(error)),
            Ok(mask) if mask == former => Outcome::Result(0),
            Ok(_) if !self.hold_signals() => Outcome::Again,
            Ok(mask) => {
                self.set_mask(mask);
                Outcome::Result(0)
            }
        }
    }

    fn change_stack(&mut self, new: u64, old: u64) -> Result<u64, i32> {
        /// The least size that the kernel accepts without extended state.
        const LEAST: u64 = 2048;
        let pointer = self.area().registers[4];
        let is_used = self.signals.is_on_stack(pointer);
        let [start, size, flags] = self.signals.stack;
        if new != 0 {
            let [start, flags, size] = read::<[u64; 3]>(new)?;
            let mode = flags & 0xffff_ffff & !(1 << 31);
            if is_used {
                return Err(libc::EPERM);
            }
            if mode > 2 {
                return Err(libc::EINVAL);
            }
            let is_disabled = mode == libc::SS_DISABLE as u64;
            if !is_disabled && size < LEAST {
                return Err(libc::ENOMEM);
            }
            self.signals.stack = if is_disabled { [0, 0, mode] } else { [start, size, flags & 1 << 31] };
        }
        if old != 0 {
            let now = if is_used { libc::SS_ONSTACK as u64 } else { 0 };
            write(old, &[start, flags & 0xffff_ffff | now, size])?;
        }
        Ok(0)
    }

    /// Links to the executable of this process lead to the program.
    fn read_link(&mut self, number: i64, arguments: &[u64; 6], path: u64, buffer: u64, size: u64) -> Outcome {
        let is_executable =
            read_text(path, libc::PATH_MAX as usize).is_ok_and(|text| is_own_executable(&text));
        if !is_executable {
            return self.pass(number, arguments);
        }
        let name = TranslatorProcess::get().executable.as_os_str().as_bytes();
        let size = name.len().min(size as usize);
        result(write_bytes(buffer, &name[..size]).map(|()| size as u64))
    }

    /// Ends the process by a signal whose action cannot be taken.
    pub(super) fn end_by(&mut self, signal: i32) {
        let default = KernelSignalAction::default();
        let _ = TranslatorProcess::get().actions().set(signal, Some(default));
        self.hold_signals();
        self.take_default(signal, true);
    }
}

/// Whether a path names the executable of this process.
fn is_own_executable(path: &[u8]) -> bool {
    let own = format!("/proc/{}/exe", std::process::id());
    matches!(path, b"/proc/self/exe" | b"/proc/thread-self/exe") || path == own.as_bytes()
}

/// Lets the kernel write to pages whose code was translated. False if there are none.
fn release_protected() -> bool {
    TranslatorProcess::get().code().release(0, ADDRESS_LIMIT)
}

impl CodeAndMemory {
    /// Gives the program back the right to write to the pages of a range whose code was translated. False if there are none.
    fn release(&mut self, start: u64, end: u64) -> bool {
        let pages = self.memory.unprotect_range(start, end);
        for &page in &pages {
            self.code.invalidate(page, page + PAGE);
        }
        !pages.is_empty()
    }

    /// The program's memory in a range is no longer what it was.
    fn forget(&mut self, start: u64, end: u64) {
        if self.memory.overlaps(start, end) {
            self.memory.remove(start, end);
            self.code.invalidate(start, end);
        }
    }

    /// Whether a range has memory of the translator.
    fn is_own(&self, start: u64, length: u64) -> bool {
        let end = start.saturating_add(length);
        self.code.overlaps(start, end) || self.own.iter().any(|own| own.start < end && start < own.end)
    }
}
