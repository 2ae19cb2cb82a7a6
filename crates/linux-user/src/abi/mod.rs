//! The Linux ABI of a guest: the trait [`Abi`], and a folder for each guest that implements it. System calls whose numbers,
//! layouts or results are those of one guest have their handlers in its folder, too.

mod alpha;
pub(crate) mod arguments;
pub(crate) mod flags;
pub(crate) mod generic_signals;
#[cfg(test)]
mod header_constants;
pub(crate) mod layout;
mod riscv;
pub(crate) mod signals;
pub(crate) mod sysroots;

use std::fmt::Debug;

use guest::CallingConvention;
use guest_memory::{Fault, Layout, Memory};
use host::{Errno, SignalInformation};

use arguments::{FcntlArgument, IoctlArgument};
use flags::FlagBits;
use layout::{GuestStructure, HOST_TERMIOS};
use signals::{ActionFlags, ExceptionSignal, LAST, SignalDescription, SignalFrame};

/// The Linux ABI of a guest: the registers of system calls, numbers and flags, and layouts of structures that differ
/// between guests. Numbers that are not listed are the same in all guests and in the host.
pub trait Abi: CallingConvention + Clone + Debug + 'static {
    /// The state of a process that only this guest's system calls have.
    type ProcessState: Default + Send;
    /// The registers that the result of a system call overwrites.
    type ResultRegisters: Copy + Default;
    /// The words on an exception that a signal frame has in addition to siginfo.
    type TrapArguments: Copy + Default;

    /// The layout of its address space.
    const LAYOUT: Layout;
    /// `e_machine` of its images.
    const ELF_MACHINE: u16;
    /// The machine's name (uname).
    const MACHINE_NAME: &'static str;
    /// `AT_HWCAP`.
    const HARDWARE_CAPABILITIES: u64;
    /// The code to which signal handlers return, if the engine maps it.
    const SIGNAL_RETURN: Option<SignalReturn> = None;
    /// The directory in which Debian installs the guest's C library.
    const SYSROOT: &'static str;
    /// Its C library, and how to install it.
    const C_LIBRARY: &'static str;

    /// Errors with different numbers: the host's and the guest's.
    const ERRORS: &'static [(i32, i32)];
    /// The host's numbers of the guest's signals 1 to 31. Real-time signals are the same on both sides.
    const SIGNALS: &'static [i32; 31];
    /// The signals that can end a program, except real-time signals.
    const SIGNAL_DESCRIPTIONS: &'static [SignalDescription];
    /// `SA_*`.
    const ACTION_FLAGS: ActionFlags;
    /// SIG_BLOCK, SIG_UNBLOCK and SIG_SETMASK.
    const MASK_OPERATIONS: [i32; 3];
    /// The smallest size in bytes of an alternate stack (MINSIGSTKSZ).
    const SMALLEST_SIGNAL_STACK: u64;
    /// `O_*` of open and fcntl.
    const OPEN: &'static FlagBits;
    /// The flags of calls that make descriptors: O_CLOEXEC, O_NONBLOCK, O_DIRECT, and bit 0 for EFD_SEMAPHORE.
    const DESCRIPTOR: &'static FlagBits;
    /// A socket's type with SOCK_NONBLOCK and SOCK_CLOEXEC in it.
    const SOCKET_TYPE: &'static FlagBits;
    /// `MAP_*` of mmap, without MAP_FIXED_NOREPLACE and MAP_FIXED.
    const MAP: &'static FlagBits;
    /// MAP_FIXED.
    const MAP_FIXED: u64;
    /// MAP_FIXED_NOREPLACE.
    const MAP_FIXED_NOREPLACE: u64;
    /// The flags that MAP_SHARED_VALIDATE accepts (`LEGACY_MAP_MASK` in include/linux/mman.h).
    const MAP_VALIDATED: u64;
    /// `MCL_*` of mlockall.
    const LOCK_ALL: &'static FlagBits;
    /// `MS_*` of msync.
    const SYNC: &'static FlagBits;
    /// fcntl's commands: the guest's number, the host's, and the third argument.
    const FCNTL_COMMANDS: &'static [(i32, i32, FcntlArgument)];
    /// `l_type` of a lock: the guest's number and the host's.
    const LOCK_TYPES: [(u16, i32); 3];
    /// ioctl's requests: the guest's number, the host's, and the third argument.
    const IOCTL_REQUESTS: &'static [(u64, u64, IoctlArgument)];
    /// Bytes of a termios.
    const TERMIOS_BYTES: usize;
    /// SOL_SOCKET.
    const SOCKET_LEVEL: u64;
    /// The options of SOL_SOCKET: the guest's number and the host's.
    const SOCKET_OPTIONS: &'static [(u64, i32)];
    /// Resource limits with different numbers: the guest's and the host's.
    const RESOURCES: &'static [(u64, u32)];
    /// RLIM_INFINITY.
    const UNLIMITED: u64;
    /// The flag in commands of System V IPC that asks for the current structures; 0 if there are no others.
    const IPC_64: u64;

    /// The host's number of advice for madvise; None if it does not exist.
    fn host_advice(advice: u64) -> Option<i32>;
    /// Converts a termios of the host for the guest.
    fn guest_termios(host: &[u8; HOST_TERMIOS]) -> GuestStructure;
    /// Converts a termios of the guest, of [`Abi::TERMIOS_BYTES`], for the host.
    fn host_termios(guest: &[u8]) -> GuestStructure;

    /// The contents of /proc/cpuinfo; None for the host's.
    fn processor_information(&self) -> Option<String> {
        None
    }

    /// The number of the system call that the registers request.
    fn system_call_number(&self) -> u64;
    /// The arguments of a system call.
    fn system_call_arguments(&self) -> [u64; 6];
    /// The registers that the result of a system call will overwrite.
    fn result_registers(&self) -> Self::ResultRegisters;
    /// Sets the result of a system call.
    fn set_result(&mut self, result: Result<u64, Errno>);
    /// Restores the registers of before a system call, so that it is made again.
    fn restart_call(&mut self, before: Self::ResultRegisters);
    /// fork has returned: sets the registers in which it has a further result.
    fn set_fork_result(&mut self, is_child: bool);
    /// Applies the effects that a return from the kernel has on the processor.
    fn return_to_guest(&mut self);

    /// Sets the registers for the start of a program. Counters are kept, and so is the part for compiled code, of which
    /// some below the system call has yet to be left.
    fn start_program(&mut self, entry: u64, stack_pointer: u64);
    /// The registers of a thread that clone creates, apart from stack and thread pointers.
    fn new_thread(&self) -> Self;
    /// Sets the stack pointer.
    fn set_stack_pointer(&mut self, address: u64);
    /// Sets the thread pointer.
    fn set_thread_pointer(&mut self, address: u64);

    /// The signal of an exception.
    fn exception_signal(
        &self,
        memory: &Memory,
        exception: Self::Exception,
    ) -> ExceptionSignal<Self::TrapArguments>;
    /// The address of the access that raised an exception, if that was the reason.
    fn faulting_address(exception: Self::Exception) -> Option<u64>;
    /// Enters a signal's handler: writes a frame on its stack and sets the registers.
    fn enter_handler(
        &mut self,
        memory: &Memory,
        frame: &SignalFrame<Self::TrapArguments>,
    ) -> Result<(), Fault>;

    /// The guest's number of an error.
    fn guest_error(error: Errno) -> u64 {
        if error.is_restart() {
            return Self::guest_error(Errno(libc::EINTR));
        }
        let found = Self::ERRORS.iter().find(|(host, _)| *host == error.0);
        found.map_or(error.0, |(_, guest)| *guest) as u64
    }

    /// The host's number of an error that the guest has given.
    fn host_error(guest: u32) -> Errno {
        let found = Self::ERRORS.iter().find(|(_, number)| *number as u32 == guest);
        Errno(found.map_or(guest as i32, |(host, _)| *host))
    }

    /// How users see a signal, if it is a described one.
    fn describe_signal(signal: i32) -> Option<SignalDescription> {
        Self::SIGNAL_DESCRIPTIONS.iter().copied().find(|one| one.number == signal)
    }

    /// The host's number of a signal; None if it does not exist.
    fn host_signal(guest: i32) -> Option<i32> {
        match guest {
            1..=31 => Some(Self::SIGNALS[guest as usize - 1]),
            32..=LAST => Some(guest),
            _ => None,
        }
    }

    /// The guest's number of a signal.
    fn guest_signal(host: i32) -> i32 {
        Self::SIGNALS.iter().position(|&number| number == host).map_or(host, |index| index as i32 + 1)
    }

    /// Converts a mask of signals to the host's.
    fn host_mask(guest: u64) -> u64 {
        map_mask(guest, |signal| Self::host_signal(signal).expect("1 to 64"))
    }

    /// Converts the host's mask of signals to the guest's.
    fn guest_mask(host: u64) -> u64 {
        map_mask(host, Self::guest_signal)
    }

    /// A siginfo for the guest.
    fn guest_information(information: &SignalInformation) -> GuestStructure {
        let mut words = information.0;
        let error = Errno((words[0] >> 32) as i32);
        words[0] =
            u64::from(Self::guest_signal(information.signal()) as u32) | Self::guest_error(error) << 32;
        if signals::has_signal_as_status(information) {
            words[3] = words[3] >> 32 << 32 | u64::from(Self::guest_signal(words[3] as i32) as u32);
        }
        GuestStructure::new().u64s(&words)
    }
}

/// The code to which signal handlers return, in a page of its own.
pub struct SignalReturn {
    /// Its address: the page's.
    pub address: u64,
    /// Its words.
    pub code: [u32; 2],
}

fn map_mask(mask: u64, number: impl Fn(i32) -> i32) -> u64 {
    (1..=LAST).filter(|&signal| mask & host::bit(signal) != 0).fold(0, |all, s| all | host::bit(number(s)))
}
