//! Programs on a whole Alpha system: builds a Linux kernel ([`kernel`]), runs programs on it in qemu-system-alpha
//! ([`machine`]), and records everything that the processor executes, the kernel and PALcode among it, as a trace
//! ([`convert()`]). docs/design/system.md is the design.

mod convert;
mod cpio;
pub mod job;
pub mod kernel;
pub mod machine;
pub mod network;
mod palcode;
pub mod prepared;
pub mod stream;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

pub use convert::{Converted, GuestImages, UNKNOWN_SYSTEM_CALL, convert, count, exact_blocks};
pub use palcode::{PalEntry, Palcode};

/// The name of the instruction set of traces of this system.
pub const INSTRUCTION_SET: &str = "alpha-system";

/// Advice for [`Error::Hidden`].
const WAY_OUT: &str = "work in another folder, and give files another place there with HOST:GUEST";

/// Why something could not be done with the guest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The emulator, or a file of it, is not installed.
    #[error("there is no {tool}: install it, on Debian with `apt-get install {package}`")]
    NoEmulator {
        /// The command.
        tool: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// The kernel cannot be built.
    #[error(transparent)]
    Build(#[from] workloads::build::Error),
    /// The files for the guest do not fit into its memory.
    #[error(
        "{files} bytes of files do not fit into a guest with {memory} bytes of memory: give it more with --memory"
    )]
    TooLarge {
        /// Bytes of the files.
        files: u64,
        /// Bytes of the guest's memory.
        memory: u64,
    },
    /// A path is where the guest has a file system of the kernel's.
    #[error("{}: the guest has its own {folder}, which hides it: {}", path.display(), WAY_OUT)]
    Hidden {
        /// The path in the guest.
        path: PathBuf,
        /// The folder of the guest's.
        folder: &'static str,
    },
    /// The disk's file system cannot be made.
    #[error("cannot make a file system on a disk of {bytes} bytes: {output}")]
    FileSystem {
        /// Bytes of the disk.
        bytes: u64,
        /// The messages of the command that makes it.
        output: String,
    },
    /// The emulator failed.
    #[error("the emulator failed with {status}: {output}")]
    Emulator {
        /// Its status.
        status: ExitStatus,
        /// Its last messages.
        output: String,
    },
    /// The guest ended without a result.
    #[error("the guest's system ended before the program did; the last lines of its console are:\n{console}")]
    Guest {
        /// The end of the console's text.
        console: String,
    },
    /// The user interrupted the guest.
    #[error("the guest was interrupted")]
    Interrupted,
    /// The stream cannot be read.
    #[error(transparent)]
    Stream(#[from] stream::StreamError),
    /// A program is none of the guest's.
    #[error("{}: not an Alpha program whose libraries can be found", .0.display())]
    NoProgram(PathBuf),
    /// A name of a plan is in no image.
    #[error("neither the kernel nor an image of the programs has a {kind} '{name}'")]
    NoName {
        /// The kind of thing that it names.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The trace's file cannot be made.
    #[error(transparent)]
    Output(#[from] output_files::OutputError),
    /// The program was never started.
    #[error("the guest ended before it started the program")]
    NotStarted,
    /// The program did not end.
    #[error("the guest ended before the program did")]
    Incomplete,
    /// An image cannot be read.
    #[error(transparent)]
    Image(#[from] image::Error),
    /// The kernel's image is not one that was built for this.
    #[error("{}: the kernel has no symbol {symbol}", .path.display())]
    NoSymbol {
        /// The image.
        path: PathBuf,
        /// The symbol.
        symbol: &'static str,
    },
    /// The trace cannot be written.
    #[error("cannot write the trace: {0}")]
    Write(io::Error),
    /// Temporary files, and files for the guest.
    #[error("cannot prepare the guest: {0}")]
    Files(io::Error),
}
