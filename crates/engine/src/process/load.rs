//! Loading a program.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::platform::Platform;
use guest_memory::Memory;
use linux_user::Kernel;
use linux_user::loader::{self, LoadError, ProgramToLoad};

/// Why a program could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Nobody may execute its file.
    #[error("{}: you have no permission to execute it; give it with chmod +x", .0.display())]
    NotExecutable(PathBuf),
    /// The guest's address space could not be reserved.
    #[error(
        "cannot reserve 4 TiB of address space for the program: {0}; raise the limit (ulimit -v unlimited) and \
         allow overcommitment (sysctl vm.overcommit_memory=0)"
    )]
    Memory(std::io::Error),
}

/// Fails unless the user may execute a file, as execve(2) does.
pub(super) fn check_permission(program: &Path) -> Result<(), Error> {
    let path = CString::new(program.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: the path is NUL-terminated.
    match unsafe { libc::access(path.as_ptr(), libc::X_OK) } {
        0 => Ok(()),
        _ => Err(Error::NotExecutable(program.into())),
    }
}

/// Loads a program into empty memory and sets the registers for its start.
pub(super) fn load<G: Platform>(
    memory: &Memory,
    kernel: &mut Kernel<G>,
    cpu: &mut G,
    path: &Path,
    arguments: &[OsString],
    environment: &[OsString],
) -> Result<(), LoadError> {
    let file = kernel.substitute(path, path);
    let program = ProgramToLoad {
        path,
        file: &file,
        name: path.as_os_str(),
        arguments,
        environment,
        stack_bytes: kernel.stack_bytes(),
        random: kernel.random_bytes(),
    };
    let loaded = loader::load::<G>(&program, memory, kernel.sysroot(), |path| kernel.locate_loader(path))?;
    kernel.started(path, arguments, &loaded);
    cpu.start_program(loaded.entry, loaded.stack.pointer);
    Ok(())
}
