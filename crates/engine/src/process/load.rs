//! Loading a program.

use std::ffi::OsString;
use std::path::Path;

use crate::platform::{Cpu, Kernel};
use linux::Abi;
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
    let file = kernel.substitute(path, path);
    let program = Program {
        path,
        file: &file,
        name: path.as_os_str(),
        arguments,
        environment,
        stack_bytes: kernel.stack_bytes(),
        random: kernel.random_bytes(),
    };
    let loaded = loader::load::<Cpu>(&program, memory, kernel.sysroot(), |path| kernel.locate(path))?;
    kernel.started(path, arguments, &loaded);
    cpu.start_program(loaded.entry, loaded.stack.pointer);
    Ok(())
}
