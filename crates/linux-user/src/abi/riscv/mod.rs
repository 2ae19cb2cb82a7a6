//! RISC-V's Linux ABI (RV64, LP64D): registers of system calls, and numbers and layouts, which are the generic ones of Linux.

mod exceptions;
mod flags;
mod hardware;
mod numbers;
mod requests;
mod signal_frame;
mod stat;
mod table;
#[cfg(test)]
mod tests;

use guest_memory::{Fault, Layout, Memory};
use host::Errno;
use riscv::{LoadReservation, RiscvCpu, RiscvException, register};

use super::arguments::{FcntlArgument, IoctlArgument};
use super::flags::FlagBits;
use super::layout::{GuestStructure, HOST_TERMIOS, u64_at};
use super::signals::{ActionFlags, ExceptionSignal, SignalAction, SignalDescription, SignalFrame};
use super::{Abi, SignalReturn};
use crate::calls::call::{self, CallOutcome};
use crate::calls::signal_calls::{action_of, change_action};

/// A system call in progress.
type Call<'a, 'b> = call::Call<'a, 'b, RiscvCpu>;

/// Bytes of the address space of a user's program: 256 GiB, as with page tables of three levels (Sv39).
const ADDRESS_SPACE: u64 = 1 << 38;

/// The address of the code that returns from signal handlers: the last page.
const SIGNAL_RETURN: u64 = ADDRESS_SPACE - 4096;

impl Abi for RiscvCpu {
    type ProcessState = ();
    /// a0.
    type ResultRegisters = u64;
    type TrapArguments = ();

    const LAYOUT: Layout = Layout {
        page: 4096,
        bytes: ADDRESS_SPACE,
        map_base: 0x20_0000_0000,
        large_page: 2 << 20,
        large_base: 0x38_0000_0000,
    };
    const ELF_MACHINE: u16 = 243;
    const MACHINE_NAME: &'static str = "riscv64";
    /// A bit for each extension of one letter: A, C, D, F, I, M.
    const HARDWARE_CAPABILITIES: u64 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 8 | 1 << 12;
    const SYSROOT: &'static str = "/usr/riscv64-linux-gnu";
    const C_LIBRARY: &'static str = "RISC-V's C library (Debian: apt-get install libc6-riscv64-cross)";
    /// `li a7, 139; ecall`: programs that unwind their stacks know handlers' callers by these words.
    const SIGNAL_RETURN: Option<SignalReturn> =
        Some(SignalReturn { address: SIGNAL_RETURN, code: [0x08b0_0893, 0x0000_0073] });

    const ERRORS: &'static [(i32, i32)] = &[];
    const SIGNALS: &'static [i32; 31] = &numbers::SIGNALS;
    const SIGNAL_DESCRIPTIONS: &'static [SignalDescription] = super::generic_signals::GENERIC_SIGNALS;
    const ACTION_FLAGS: ActionFlags = numbers::ACTION_FLAGS;
    const MASK_OPERATIONS: [i32; 3] = [0, 1, 2];
    const SMALLEST_SIGNAL_STACK: u64 = 2048;
    const OPEN: &'static FlagBits = &flags::OPEN;
    const DESCRIPTOR: &'static FlagBits = &flags::DESCRIPTOR;
    const SOCKET_TYPE: &'static FlagBits = &flags::SOCKET_TYPE;
    const MAP: &'static FlagBits = &flags::MAP;
    const MAP_FIXED: u64 = 0x10;
    const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
    const MAP_VALIDATED: u64 = flags::MAP_VALIDATED;
    const LOCK_ALL: &'static FlagBits = &flags::LOCK_ALL;
    const SYNC: &'static FlagBits = &flags::SYNC;
    const FCNTL_COMMANDS: &'static [(i32, i32, FcntlArgument)] = numbers::FCNTL_COMMANDS;
    const LOCK_TYPES: [(u16, i32); 3] = [(0, libc::F_RDLCK), (1, libc::F_WRLCK), (2, libc::F_UNLCK)];
    const IOCTL_REQUESTS: &'static [(u64, u64, IoctlArgument)] = requests::REQUESTS;
    const TERMIOS_BYTES: usize = HOST_TERMIOS;
    const SOCKET_LEVEL: u64 = 1;
    const SOCKET_OPTIONS: &'static [(u64, i32)] = numbers::SOCKET_OPTIONS;
    const RESOURCES: &'static [(u64, u32)] = &[];
    const UNLIMITED: u64 = u64::MAX;
    const IPC_64: u64 = 0;

    fn host_advice(advice: u64) -> Option<i32> {
        i32::try_from(advice).ok()
    }

    fn guest_termios(host: &[u8; HOST_TERMIOS]) -> GuestStructure {
        GuestStructure::new().raw(host)
    }

    fn host_termios(guest: &[u8]) -> GuestStructure {
        GuestStructure::new().raw(guest)
    }

    fn processor_information(&self) -> Option<String> {
        Some(hardware::processor_information(self))
    }

    fn system_call_number(&self) -> u64 {
        self.x[register::A7]
    }

    fn system_call_arguments(&self) -> [u64; 6] {
        std::array::from_fn(|index| self.x[register::A0 + index])
    }

    fn result_registers(&self) -> u64 {
        self.x[register::A0]
    }

    /// a0 is the result, or the negated error number.
    fn set_result(&mut self, result: Result<u64, Errno>) {
        self.x[register::A0] = match result {
            Ok(value) => value,
            Err(error) => RiscvCpu::guest_error(error).wrapping_neg(),
        };
    }

    fn restart_call(&mut self, before: u64) {
        self.x[register::A0] = before;
        self.pc = self.pc.wrapping_sub(4);
    }

    fn set_fork_result(&mut self, _: bool) {}

    /// The return from the kernel ends a reservation.
    fn return_to_guest(&mut self) {
        self.reservation = LoadReservation::NONE;
    }

    fn start_program(&mut self, entry: u64, stack_pointer: u64) {
        let (instructions, unaligned, host) = (self.instructions, self.unaligned, self.host.clone());
        let extensions = self.extensions;
        *self = RiscvCpu { instructions, unaligned, host, extensions, pc: entry, ..RiscvCpu::default() };
        self.x[register::SP] = stack_pointer;
    }

    fn new_thread(&self) -> RiscvCpu {
        let reservation = LoadReservation::NONE;
        let mut cpu = RiscvCpu { reservation, instructions: 0, unaligned: 0, ..self.clone() };
        cpu.x[register::A0] = 0;
        cpu
    }

    fn set_stack_pointer(&mut self, address: u64) {
        self.x[register::SP] = address;
    }

    fn set_thread_pointer(&mut self, address: u64) {
        self.x[register::TP] = address;
    }

    fn exception_signal(&self, memory: &Memory, exception: RiscvException) -> ExceptionSignal<()> {
        exceptions::exception_signal(self, memory, exception)
    }

    fn faulting_address(exception: RiscvException) -> Option<u64> {
        match exception {
            RiscvException::Memory(fault) => Some(fault.address),
            RiscvException::Unaligned(address) => Some(address),
            RiscvException::IllegalInstruction | RiscvException::Breakpoint => None,
        }
    }

    fn enter_handler(&mut self, memory: &Memory, frame: &SignalFrame<()>) -> Result<(), Fault> {
        signal_frame::enter_handler(self, memory, frame)
    }
}

/// clone(flags, stack, parent's id address, thread pointer, child's id address)
fn clone(call: &mut Call) -> CallOutcome {
    call.arguments.swap(3, 4);
    crate::calls::clone::clone(call)
}

/// rt_sigaction(signal, action, old action, mask size): actions have no restorer.
fn rt_sigaction(call: &mut Call) -> CallOutcome {
    let [_, new, old, size, ..] = call.arguments;
    let signal = call.int(0);
    if size != 8 {
        return Err(Errno(libc::EINVAL));
    }
    let before = action_of(call, signal)?;
    if new != 0 {
        let bytes: [u8; 24] = call.read(new)?;
        let [handler, flags, mask] = [0, 8, 16].map(|offset| u64_at(&bytes, offset));
        change_action(call, signal, SignalAction { handler, mask, flags, restorer: 0 })?;
    }
    if old != 0 {
        call.write(old, &GuestStructure::new().u64s(&[before.handler, before.flags, before.mask]))?;
    }
    Ok(0)
}
