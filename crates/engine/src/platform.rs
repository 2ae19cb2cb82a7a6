//! The guest that the engine runs: its processor, and the kernel with its ABI. Other modules name no guest.

pub use alpha::cpu::Cpu;
use guest_memory::Memory;
use isa::InstructionSet;

/// The guest's instruction set.
pub const INSTRUCTION_SET: &dyn InstructionSet = <Cpu as guest::Guest>::INSTRUCTION_SET;

/// A block of the guest's instructions.
pub type DecodedBlock = guest::DecodedBlock<Cpu>;
/// Blocks of the guest's instructions.
pub type BlockCache = guest::BlockCache<Cpu>;
/// Why an instruction of the guest could not complete.
pub type Exception = <Cpu as guest::Guest>::Exception;

/// The kernel state of a process.
pub type Kernel = linux_user::Kernel<Cpu>;
/// The kernel state, behind the lock that the threads of a process share.
pub type SharedKernel = linux_user::SharedKernel<Cpu>;
/// The kernel state, while a thread holds the lock.
pub type KernelGuard<'a> = linux_user::KernelGuard<'a, Cpu>;
/// The kernel state of a thread.
pub type Task = linux_user::Task<Cpu>;
/// How a process ends or is replaced.
pub type ProcessEnding = linux_user::ProcessEnding<Cpu>;
/// How a program ended.
pub type ProgramEnd = linux_user::ProgramEnd<Cpu>;
/// The end of a program by a signal.
pub type Crash = linux_user::Crash<Cpu>;

/// Reserves the memory of a process.
pub fn reserve_memory() -> std::io::Result<Memory> {
    Memory::new(<Cpu as linux_user::Abi>::LAYOUT)
}

/// The name of a system call, or its number if it has no name.
pub fn system_call_name(number: u32) -> String {
    linux_user::system_call_name::<Cpu>(number)
}

/// Ends this process by one of the guest's signals, so that its parent sees that signal.
pub fn die(signal: i32) -> ! {
    linux_user::die::<Cpu>(signal)
}
