//! Alpha's Linux ABI, much of which is OSF/1's: registers of system calls, numbers, layouts, and calls of its own.

mod directories;
mod errno;
mod exceptions;
mod flags;
mod information;
mod numbers;
mod signal_calls;
mod signal_descriptions;
mod signal_frame;
mod stat;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod times;
mod two_results;
mod unimplemented;

use alpha::cpu::{Cpu, Exception, LoadLock, register};
use guest_memory::{Fault, Layout, Memory};
use host::Errno;

use super::Abi;
use super::arguments::{FcntlArgument, IoctlArgument};
use super::flags::FlagBits;
use super::layout::{GuestStructure, HOST_TERMIOS};
use super::signals::{ActionFlags, ExceptionSignal, SignalDescription};
use crate::calls::call;
use crate::calls::call::CallOutcome;
use signal_frame::SignalFrame;

/// A system call in progress.
type Call<'a, 'b> = call::Call<'a, 'b, Cpu>;

/// The state of a process that only Alpha's calls have.
#[derive(Default)]
pub struct AlphaProcessState {
    /// Unaligned access control bits of osf_setsysinfo.
    unaligned_control: u64,
}

impl Abi for Cpu {
    type ProcessState = AlphaProcessState;
    /// v0 and a3.
    type ResultRegisters = [u64; 2];
    /// `sc_traparg_a0` to `a2`.
    type TrapArguments = [u64; 3];

    /// Of 42 bits, as Linux sets TASK_SIZE. The search for free ranges begins where qemu-alpha's does, so that registers can
    /// be compared with qemu-alpha's.
    /// Large pages have as many pages as the largest granularity hint.
    const LAYOUT: Layout = Layout {
        page: 8192,
        bytes: 1 << 42,
        map_base: 0x40_0000_0000,
        large_page: 512 * 8192,
        large_base: 0x300_0000_0000,
    };
    const ELF_MACHINE: u16 = 0x9026;
    const MACHINE_NAME: &'static str = "alpha";
    const HARDWARE_CAPABILITIES: u64 = 0;
    const SYSROOT: &'static str = "/usr/alpha-linux-gnu";
    const C_LIBRARY: &'static str = "Alpha's C library (Debian: apt-get install libc6.1-alpha-cross)";

    const ERRORS: &'static [(i32, i32)] = errno::ERRORS;
    const SIGNALS: &'static [i32; 31] = &numbers::SIGNALS;
    const SIGNAL_DESCRIPTIONS: &'static [SignalDescription] = signal_descriptions::SIGNAL_DESCRIPTIONS;
    const ACTION_FLAGS: ActionFlags = numbers::ACTION_FLAGS;
    const MASK_OPERATIONS: [i32; 3] = [1, 2, 3];
    const SMALLEST_SIGNAL_STACK: u64 = 4096;
    const OPEN: &'static FlagBits = &flags::OPEN;
    const DESCRIPTOR: &'static FlagBits = &flags::DESCRIPTOR;
    const SOCKET_TYPE: &'static FlagBits = &flags::SOCKET_TYPE;
    const MAP: &'static FlagBits = &flags::MAP;
    const MAP_FIXED: u64 = 0x100;
    const MAP_FIXED_NOREPLACE: u64 = 0x20_0000;
    const MAP_VALIDATED: u64 = flags::MAP_VALIDATED;
    const LOCK_ALL: &'static FlagBits = &flags::LOCK_ALL;
    const SYNC: &'static FlagBits = &flags::SYNC;
    const FCNTL_COMMANDS: &'static [(i32, i32, FcntlArgument)] = numbers::FCNTL_COMMANDS;
    const LOCK_TYPES: [(u16, i32); 3] = numbers::LOCK_TYPES;
    const IOCTL_REQUESTS: &'static [(u64, u64, IoctlArgument)] = terminal::REQUESTS;
    const TERMIOS_BYTES: usize = terminal::TERMIOS as usize;
    const SOCKET_LEVEL: u64 = numbers::SOCKET_LEVEL;
    const SOCKET_OPTIONS: &'static [(u64, i32)] = numbers::SOCKET_OPTIONS;
    const RESOURCES: &'static [(u64, u32)] = numbers::RESOURCES;
    const UNLIMITED: u64 = i64::MAX as u64;
    const IPC_64: u64 = 0x100;

    fn host_advice(advice: u64) -> Option<i32> {
        numbers::host_advice(advice)
    }

    fn guest_termios(host: &[u8; HOST_TERMIOS]) -> GuestStructure {
        terminal::guest_termios(host)
    }

    fn host_termios(guest: &[u8]) -> GuestStructure {
        terminal::host_termios(guest)
    }

    fn system_call_number(&self) -> u64 {
        self.r[register::V0]
    }

    fn system_call_arguments(&self) -> [u64; 6] {
        std::array::from_fn(|index| self.r[register::A0 + index])
    }

    fn result_registers(&self) -> [u64; 2] {
        [self.r[register::V0], self.r[register::A3]]
    }

    /// a3 is 0 and v0 the result, or a3 is 1 and v0 the error number.
    fn set_result(&mut self, result: Result<u64, Errno>) {
        let registers = match result {
            Ok(value) => (value, 0),
            Err(error) => (Cpu::guest_error(error), 1),
        };
        (self.r[register::V0], self.r[register::A3]) = registers;
    }

    fn restart_call(&mut self, before: [u64; 2]) {
        [self.r[register::V0], self.r[register::A3]] = before;
        self.pc = self.pc.wrapping_sub(4);
    }

    /// OSF/1's second result distinguishes the child from the parent.
    fn set_fork_result(&mut self, is_child: bool) {
        self.r[register::A4] = u64::from(is_child);
    }

    /// The return from the kernel clears the lock flag.
    fn return_to_guest(&mut self) {
        self.lock = LoadLock::NONE;
    }

    fn start_program(&mut self, entry: u64, stack_pointer: u64) {
        let (instructions, unaligned, host) = (self.instructions, self.unaligned, self.host.clone());
        *self = Cpu { model: self.model, instructions, unaligned, host, pc: entry, ..Cpu::default() };
        self.r[register::SP] = stack_pointer;
    }

    fn new_thread(&self) -> Cpu {
        let mut cpu = Cpu { lock: LoadLock::NONE, instructions: 0, unaligned: 0, ..self.clone() };
        (cpu.r[register::V0], cpu.r[register::A3], cpu.r[register::A4]) = (0, 0, 1);
        cpu
    }

    fn set_stack_pointer(&mut self, address: u64) {
        self.r[register::SP] = address;
    }

    fn set_thread_pointer(&mut self, address: u64) {
        self.unique = address;
    }

    fn exception_signal(&self, memory: &Memory, exception: Exception) -> ExceptionSignal<[u64; 3]> {
        exceptions::exception_signal(self, memory, exception)
    }

    fn faulting_address(exception: Exception) -> Option<u64> {
        match exception {
            Exception::Memory(fault) => Some(fault.address),
            Exception::Unaligned(address) => Some(address),
            _ => None,
        }
    }

    fn enter_handler(&mut self, memory: &Memory, frame: &SignalFrame) -> Result<(), Fault> {
        signal_frame::enter_handler(self, memory, frame)
    }
}
