//! Loading a program.

use std::ffi::OsString;
use std::path::Path;

use alpha::cpu::{Cpu, register};
use linux::Kernel;
use linux::loader::{self, LoadError, Program};
use memory::Memory;

/// Why a program could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The guest's address space could not be reserved.
    #[error(
        "cannot reserve 4 TiB of address space for the program: {0}; raise the limit (ulimit -v unlimited) and \
         allow overcommitment (sysctl vm.overcommit_memory=0)"
    )]
    Memory(std::io::Error),
}

/// Loads a program into empty memory and sets the registers for its start.
pub(super) fn load(
    memory: &Memory,
    kernel: &mut Kernel,
    cpu: &mut Cpu,
    path: &Path,
    arguments: &[OsString],
    environment: &[OsString],
) -> Result<(), LoadError> {
    let program = Program {
        path,
        name: path.as_os_str(),
        arguments,
        environment,
        stack_bytes: kernel.stack_bytes(),
        random: kernel.random_bytes(),
    };
    let loaded = loader::load(&program, memory, kernel.sysroot(), |path| kernel.locate(path))?;
    kernel.started(path, arguments, &loaded);
    // Compiled code below this system call has yet to be left.
    let (instructions, unaligned, host) = (cpu.instructions, cpu.unaligned, cpu.host.clone());
    *cpu = Cpu { instructions, unaligned, host, ..Cpu::default() };
    cpu.pc = loaded.entry;
    cpu.r[register::SP] = loaded.stack.pointer;
    Ok(())
}
