//! The guests that the engine runs: processors with the kernel's ABI and compiled code for them. Other modules take a guest as a
//! type parameter, or by its [`GuestDescription`], and name none.

use std::fmt::Display;
use std::marker::PhantomData;
use std::path::Path;

use guest::{CallingConvention, DebuggerRegisters, Observer};
use guest_memory::Memory;
use isa::InstructionSet;
use linux_user::{Abi, SystemCalls};

use crate::program_state::ProgramState;

/// A guest that the engine runs.
pub trait Platform: SystemCalls + DebuggerRegisters<Model: Display> + jit::Emit + Default {
    /// The model of the processor that a configuration requests.
    fn model(requested: isa::Processors) -> Self::Model;
}

impl Platform for alpha::cpu::Cpu {
    fn model(requested: isa::Processors) -> isa::CpuModel {
        requested.alpha
    }
}

impl Platform for riscv::RiscvCpu {
    fn model(requested: isa::Processors) -> isa::RiscvExtensions {
        requested.riscv
    }
}

/// An observer of programs of any guest.
pub trait ProgramObserver: Observer<alpha::cpu::Cpu> + Observer<riscv::RiscvCpu> {}

impl<O: Observer<alpha::cpu::Cpu> + Observer<riscv::RiscvCpu>> ProgramObserver for O {}

/// A program of one of the guests.
pub(crate) enum AnyGuestProgram {
    /// Of Alpha.
    Alpha(Box<ProgramState<alpha::cpu::Cpu>>),
    /// Of RISC-V.
    Riscv(Box<ProgramState<riscv::RiscvCpu>>),
}

/// Evaluates an expression with the [`ProgramState`] of a program, whatever its guest.
macro_rules! with_guest {
    ($program:expr, $state:ident => $what:expr) => {
        match $program {
            $crate::platform::AnyGuestProgram::Alpha($state) => $what,
            $crate::platform::AnyGuestProgram::Riscv($state) => $what,
        }
    };
}
pub(crate) use with_guest;

/// Evaluates an expression with the type of the guest that has a machine in its ELF header; of the first one if none has it.
macro_rules! with_machine {
    ($machine:expr, $guest:ident, $variant:ident => $what:expr) => {
        match $machine {
            Some(<riscv::RiscvCpu as linux_user::Abi>::ELF_MACHINE) => {
                type $guest = riscv::RiscvCpu;
                use $crate::platform::AnyGuestProgram::Riscv as $variant;
                $what
            }
            _ => {
                type $guest = alpha::cpu::Cpu;
                use $crate::platform::AnyGuestProgram::Alpha as $variant;
                $what
            }
        }
    };
}
pub(crate) use with_machine;

/// All guests. The first is that of files which name none.
const GUESTS: [&dyn GuestDescription; 2] =
    [&Described::<alpha::cpu::Cpu>::NEW, &Described::<riscv::RiscvCpu>::NEW];

/// The registers by which chains of calls are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRegisters {
    /// The stack pointer's number.
    pub stack_pointer: u8,
    /// The frame pointer's.
    pub frame_pointer: u8,
    /// The number of the register with the return address.
    pub return_address: u8,
    /// The bits of an instruction's address.
    pub address_mask: u64,
}

/// Properties of a guest, for code that has no type parameter for it.
pub trait GuestDescription: Sync {
    /// Its instruction set.
    fn instruction_set(&self) -> &'static dyn InstructionSet;
    /// Its machine in ELF headers.
    fn machine(&self) -> u16;
    /// The directory in which Debian installs its C library.
    fn sysroot(&self) -> &'static str;
    /// The name of the processor that a configuration requests.
    fn processor_name(&self, requested: isa::Processors) -> String;
    /// The name of a system call, or its number if it has no name.
    fn system_call_name(&self, number: u32) -> String;
    /// The host's number of a signal, if it exists.
    fn host_signal(&self, signal: i32) -> Option<i32>;
    /// Whether a function has a second entry, by its first two words.
    fn has_second_entry(&self, first: u32, second: u32) -> bool;
    /// The description of the target in GDB's XML.
    fn debugger_description(&self) -> &'static str;
    /// How many registers GDB numbers, and the number of the program counter.
    fn debugger_registers(&self) -> (usize, usize);
    /// The registers by which chains of calls are followed.
    fn frame_registers(&self) -> FrameRegisters;
}

/// The description of a guest.
struct Described<G>(PhantomData<fn() -> G>);

impl<G> Described<G> {
    const NEW: Described<G> = Described(PhantomData);
}

impl<G: Platform> GuestDescription for Described<G> {
    fn instruction_set(&self) -> &'static dyn InstructionSet {
        G::INSTRUCTION_SET
    }

    fn machine(&self) -> u16 {
        <G as Abi>::ELF_MACHINE
    }

    fn sysroot(&self) -> &'static str {
        <G as Abi>::SYSROOT
    }

    fn processor_name(&self, requested: isa::Processors) -> String {
        G::model(requested).to_string()
    }

    fn system_call_name(&self, number: u32) -> String {
        linux_user::system_call_name::<G>(number)
    }

    fn host_signal(&self, signal: i32) -> Option<i32> {
        <G as Abi>::host_signal(signal)
    }

    fn has_second_entry(&self, first: u32, second: u32) -> bool {
        G::has_second_entry(first, second)
    }

    fn debugger_description(&self) -> &'static str {
        G::TARGET_DESCRIPTION
    }

    fn debugger_registers(&self) -> (usize, usize) {
        (G::REGISTERS, G::PROGRAM_COUNTER)
    }

    fn frame_registers(&self) -> FrameRegisters {
        FrameRegisters {
            stack_pointer: <G as CallingConvention>::STACK_POINTER,
            frame_pointer: <G as CallingConvention>::FRAME_POINTER,
            return_address: <G as CallingConvention>::RETURN_ADDRESS,
            address_mask: !(G::INSTRUCTION_SET.code_alignment() - 1),
        }
    }
}

/// The description of a guest whose type is known.
pub(crate) fn describe<G: Platform>() -> &'static dyn GuestDescription {
    guest_of(G::INSTRUCTION_SET)
}

/// The guest with an instruction set; the first one if no guest has it.
pub fn guest_of(set: &dyn InstructionSet) -> &'static dyn GuestDescription {
    let has = |guest: &&dyn GuestDescription| guest.instruction_set().name() == set.name();
    GUESTS.into_iter().find(has).unwrap_or(GUESTS[0])
}

/// The guest that runs a program: that of the file's machine, or of the interpreter that a script names. The first one if no guest
/// runs it.
pub fn guest_of_program(program: &Path, sysroot: Option<&Path>) -> &'static dyn GuestDescription {
    let machine = linux_user::guest_machine(program, sysroot);
    GUESTS.into_iter().find(|guest| Some(guest.machine()) == machine).unwrap_or(GUESTS[0])
}

/// The name of a system call of the guest with an instruction set, or its number if it has no name.
pub fn system_call_name(set: &dyn InstructionSet, number: u32) -> String {
    guest_of(set).system_call_name(number)
}

/// Reserves the memory of a process: of the first guest, for checks of what the host allows.
pub fn reserve_memory() -> std::io::Result<Memory> {
    Memory::new(<alpha::cpu::Cpu as Abi>::LAYOUT)
}

/// Ends this process by one of the host's signals, so that its parent sees that signal.
pub fn die(signal: i32) -> ! {
    linux_user::die(signal)
}
