//! A system call in progress: its arguments, and their conversion for the host.

use std::ffi::CString;

use crate::abi::Abi;
use crate::abi::flags::FlagBits;
use crate::abi::layout::GuestStructure;
use crate::proc_files;
use crate::reserved::{self, CheckedArguments};
use crate::state::clock::{for_somebody_else, host_time};
use crate::state::control::Control;
use crate::state::lock::KernelGuard;
use crate::state::threads::Task;
use guest_memory::Memory;
use host::Errno;

/// The result of a system call.
pub type CallOutcome = Result<u64, Errno>;

/// Maximum length of a path with its NUL, as in Linux.
const PATH_MAX: usize = 4096;

/// The host's calls that open a file by its name: the file may be one of /proc that must be replaced.
const OPENS: [libc::c_long; 3] = [libc::SYS_openat, libc::SYS_openat2, libc::SYS_open_by_handle_at];

/// The conversion of an argument for the host.
#[derive(Clone, Copy)]
pub enum Argument {
    /// A constant; uses up no argument of the guest.
    Is(i64),
    /// The guest's next argument, unchanged.
    Number,
    /// A path: looked up under the sysroot first. NULL stays NULL.
    Path,
    /// A string. NULL stays NULL.
    Text,
    /// A pointer to a buffer whose size is the guest's following argument.
    Buffer,
    /// A pointer to this many bytes; NULL stays NULL.
    Bytes(u64),
    /// Flags.
    Flags(&'static FlagBits),
    /// A `clockid_t`, resource or the like with the same numbers on both sides, of which only the low 32 bits count.
    Int,
}

/// Whether a call that a signal interrupted is restarted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RestartRule {
    /// If the handler has SA_RESTART (signal(7)).
    Restarts,
    /// Never: EINTR.
    Fails,
}

/// A system call in progress.
pub struct Call<'a, 'b, G: Abi> {
    /// The process's kernel state.
    pub kernel: &'a mut KernelGuard<'b, G>,
    /// The thread's kernel state.
    pub thread: &'a mut Task<G>,
    /// The processor.
    pub cpu: &'a mut G,
    /// The guest's memory.
    pub memory: &'a Memory,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// Number of instructions that the thread has executed.
    pub instructions: u64,
    /// The time of the virtual clock when the call began.
    pub began: u64,
    /// Nanoseconds of the host that the call has waited for other processes or users, and that have not been added to
    /// the virtual clock.
    pub waited: u64,
    /// The action for the engine after the call.
    pub control: Control,
    /// Whether the registers of the result are set already, as by sigreturn.
    pub registers_set: bool,
}

impl<G: Abi> Call<'_, '_, G> {
    /// An argument as a C `int`.
    pub fn int(&self, index: usize) -> i32 {
        self.arguments[index] as i32
    }

    /// The host's pointer for a guest pointer; NULL stays NULL.
    pub fn pointer(&self, address: u64, bytes: u64) -> Result<u64, Errno> {
        if address == 0 {
            return Ok(0);
        }
        self.memory.host(address, bytes).map(|pointer| pointer as u64).ok_or(Errno(libc::EFAULT))
    }

    /// A string argument; EFAULT for NULL, ENAMETOOLONG if it exceeds the maximum of a path.
    pub fn text(&self, index: usize) -> Result<CString, Errno> {
        let bytes = self.memory.read_string(self.arguments[index], PATH_MAX)?;
        // The string ends at its first NUL, so it contains none.
        bytes.and_then(|bytes| CString::new(bytes).ok()).ok_or(Errno(libc::ENAMETOOLONG))
    }

    /// A path argument, converted to the host's path.
    pub fn path(&self, index: usize) -> Result<CString, Errno> {
        Ok(self.kernel.host_path(self.text(index)?))
    }

    /// Reads a fixed number of bytes.
    pub fn read<const N: usize>(&self, address: u64) -> Result<[u8; N], Errno> {
        let mut bytes = [0; N];
        self.memory.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a 64-bit number.
    pub fn read_u64(&self, address: u64) -> Result<u64, Errno> {
        Ok(u64::from_le_bytes(self.read(address)?))
    }

    /// Reads a 32-bit number.
    pub fn read_u32(&self, address: u64) -> Result<u32, Errno> {
        Ok(u32::from_le_bytes(self.read(address)?))
    }

    /// Writes a structure.
    pub fn write(&mut self, address: u64, record: &GuestStructure) -> Result<(), Errno> {
        Ok(self.memory.write(address, record.bytes())?)
    }

    /// Converts the guest's arguments as listed, and makes the host's call.
    pub fn pass(&mut self, number: libc::c_long, arguments: &[Argument]) -> CallOutcome {
        let converted = self.convert(arguments)?;
        self.host_unlocked(number, converted.words)
    }

    /// As [`Call::pass`], for a call that may block.
    pub fn pass_wait(
        &mut self,
        number: libc::c_long,
        arguments: &[Argument],
        interrupted: RestartRule,
    ) -> CallOutcome {
        let converted = self.convert(arguments)?;
        self.wait(number, converted.words, interrupted)
    }

    /// Makes a host call that may block, without the kernel lock. Its arguments point into the guest's window, or to
    /// memory of the caller that outlives the call.
    pub fn wait(
        &mut self,
        number: libc::c_long,
        arguments: [u64; 6],
        interrupted: RestartRule,
    ) -> CallOutcome {
        let checked = Self::check(number, &arguments)?;
        self.wait_checked(number, checked.words, interrupted)
    }

    /// As [`Call::wait`], for arguments that name no descriptor of the engine, unless the caller has chosen it.
    pub fn wait_checked(
        &mut self,
        number: libc::c_long,
        arguments: [u64; 6],
        interrupted: RestartRule,
    ) -> CallOutcome {
        let is_dilated = self.kernel.is_dilated();
        if is_dilated && self.kernel.deferred_reads.defers(number, &arguments) {
            return Err(Errno(libc::EAGAIN));
        }
        let is_timed = self.kernel.is_virtual() && for_somebody_else(number, &arguments, self.memory);
        let from = is_timed.then(|| host_time(libc::CLOCK_MONOTONIC));
        // SAFETY: the caller's promise, kept by the handlers of this module's siblings.
        let result = self.kernel.released(|| unsafe { host::wait(number, arguments) });
        if is_dilated && let Ok(result) = result {
            self.kernel.deferred_reads.note(number, &arguments, result);
        }
        if let Some(from) = from {
            self.waited += host_time(libc::CLOCK_MONOTONIC).saturating_sub(from);
            let expiry = host::recorded().and_then(|information| self.kernel.expiry(&information));
            if self.kernel.note_readable_timers() || expiry.is_some() {
                // It lasted until the end of the timeout.
                self.waited = 0;
            }
            if is_dilated {
                self.waited = 0;
            }
        }
        match result {
            Err(Errno(libc::EINTR)) if interrupted == RestartRule::Restarts => Err(Errno::RESTART),
            // No signal for the guest but a kick by another thread, which the guest must not notice.
            Err(Errno(libc::EINTR)) if host::pending() && !host::is_recorded() => Err(Errno::RESTART_ALWAYS),
            Ok(descriptor) if OPENS.contains(&number) => {
                proc_files::replace(self.kernel, self.thread, self.cpu, self.memory, descriptor)
            }
            other => other,
        }
    }

    /// Makes a host call that does not wait for other processes but may take long, without the kernel lock. The
    /// caller promises the same as for [`Call::wait`].
    pub fn host_unlocked(&mut self, number: libc::c_long, arguments: [u64; 6]) -> CallOutcome {
        let checked = Self::check(number, &arguments)?;
        // SAFETY: the caller's promise, kept by the handlers of this module's siblings.
        let result = self.kernel.released(|| unsafe { host::call(number, checked.words) });
        match result {
            Ok(descriptor) if OPENS.contains(&number) => {
                proc_files::replace(self.kernel, self.thread, self.cpu, self.memory, descriptor)
            }
            other => other,
        }
    }

    /// Makes a short host call. The caller promises the same as for [`Call::wait`].
    pub fn host(&self, number: libc::c_long, arguments: [u64; 6]) -> CallOutcome {
        debug_assert!(!OPENS.contains(&number), "files are opened by `wait`, which looks at what was opened");
        let checked = Self::check(number, &arguments)?;
        // SAFETY: the caller's promise, kept by the handlers of this module's siblings.
        unsafe { host::call(number, checked.words) }
    }

    /// Fails if a call names a descriptor of the engine.
    fn check(number: libc::c_long, arguments: &[u64; 6]) -> Result<CheckedArguments, Errno> {
        // SAFETY: paths for the host are strings of the engine: `Argument::Path` and `Call::path`.
        unsafe { reserved::check(number, arguments) }
    }

    fn convert(&self, arguments: &[Argument]) -> Result<ConvertedArguments, Errno> {
        let mut converted = ConvertedArguments { words: [0; 6], _strings: Vec::new() };
        let mut keep = |string: CString| {
            let pointer = string.as_ptr() as u64;
            converted._strings.push(string);
            pointer
        };
        let mut index = 0;
        for (slot, argument) in converted.words.iter_mut().zip(arguments) {
            if let Argument::Is(value) = argument {
                *slot = *value as u64;
                continue;
            }
            let value = self.arguments[index];
            *slot = match argument {
                Argument::Path | Argument::Text if value == 0 => 0,
                Argument::Path => keep(self.path(index)?),
                Argument::Text => keep(self.text(index)?),
                Argument::Buffer => self.pointer(value, self.arguments[index + 1])?,
                Argument::Bytes(bytes) => self.pointer(value, *bytes)?,
                Argument::Flags(bits) => bits.host(value),
                Argument::Int => value as i32 as u64,
                Argument::Number | Argument::Is(_) => value,
            };
            index += 1;
        }
        Ok(converted)
    }
}

/// Converted arguments for the host.
struct ConvertedArguments {
    words: [u64; 6],
    /// The memory to which pointers among the words point.
    _strings: Vec<CString>,
}
