//! Programs of any instruction set in QEMU's emulators of user mode: a plugin reports what they execute, and [`record`] writes
//! it as a trace. docs/design/qemu-user.md is the design.

mod convert;
mod images;
pub mod stream;
mod transfers;

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, SystemTime};

use host::interrupt::InterruptGuard;
use isa::{DESCRIBED_SETS, DescribedSet, InstructionSet};
use object::{Architecture, Object};

use output_files::ScratchFolder;
use trace::{Header, Writer};

pub use convert::{ConvertedRun, convert};

/// The plugin.
const RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));
/// The prefix of the names of QEMU's emulators.
const EMULATORS: &str = "qemu-";
/// Between two looks at the emulator.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a program could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program cannot be read.
    #[error("{}: {error}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// It is no program of an instruction set that is known.
    #[error("{}: no program of {known}; a script is started by its interpreter: name that", path.display())]
    NoProgram {
        /// The file.
        path: PathBuf,
        /// The known instruction sets.
        known: String,
    },
    /// It is an Alpha program.
    #[error("{}: an Alpha program, which the engine records itself: pathlength trace -o FILE {}", .0.display(), .0.display())]
    Alpha(PathBuf),
    /// The emulator is not installed.
    #[error("there is no {0}: install it, on Debian with `apt-get install qemu-user`")]
    NoEmulator(String),
    /// The emulator cannot load the plugin.
    #[error("the emulator could not load the recorder; it needs QEMU 6.0 to 8.2 with plugins: {0}")]
    Plugin(String),
    /// The stream cannot be read.
    #[error(transparent)]
    Stream(#[from] stream::EmulatorStreamError),
    /// The stream names a thread that has not begun.
    #[error("the recorder's stream is damaged: thread {0} has not begun")]
    UnknownThread(u16),
    /// The trace's file cannot be made.
    #[error(transparent)]
    Output(#[from] output_files::OutputError),
    /// The trace cannot be written.
    #[error("cannot write the trace: {0}")]
    Write(io::Error),
    /// Temporary files and pipes.
    #[error("cannot start the emulator: {0}")]
    Start(io::Error),
    /// The user interrupted it.
    #[error("the program was interrupted")]
    Interrupted,
}

/// A program to record.
#[derive(Clone, Debug)]
pub struct EmulatedProgram {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Where its dynamic linker and libraries are searched first; by default where Debian's cross compilers have them.
    pub sysroot: Option<PathBuf>,
}

/// The name of an instruction set's architecture in the names of emulators.
fn architecture(set: &DescribedSet) -> &'static str {
    set.name().strip_prefix(EMULATORS).unwrap_or_default()
}

/// The set that describes the instructions of a program.
pub fn instruction_set(path: &Path) -> Result<&'static DescribedSet, Error> {
    let contents = fs::read(path).map_err(|error| Error::Program { path: path.into(), error })?;
    let name = object::File::parse(&contents[..]).ok().and_then(|file| match file.architecture() {
        Architecture::X86_64 => Some("x86_64"),
        Architecture::Aarch64 => Some("aarch64"),
        Architecture::Riscv64 => Some("riscv64"),
        Architecture::I386 => Some("i386"),
        Architecture::Arm => Some("arm"),
        Architecture::PowerPc64 if file.is_little_endian() => Some("ppc64le"),
        Architecture::S390x => Some("s390x"),
        Architecture::LoongArch64 => Some("loongarch64"),
        _ => None,
    });
    if contents.starts_with(b"\x7fELF") && contents.get(18..20) == Some(&[0x26, 0x90]) {
        return Err(Error::Alpha(path.into()));
    }
    let set = DESCRIBED_SETS.iter().find(|set| name == Some(architecture(set)));
    set.ok_or_else(|| {
        let known: Vec<_> = DESCRIBED_SETS.iter().map(architecture).collect();
        Error::NoProgram { path: path.into(), known: known.join(", ") }
    })
}

/// Runs a program in the emulator of its instruction set, with this process's input and output, and writes what it executes to a
/// trace, which replaces an older one once it is complete. Returns the program's status, too.
pub fn record(program: &EmulatedProgram, output: &Path) -> Result<(ExitStatus, ConvertedRun), Error> {
    let set = instruction_set(&program.path)?;
    let (file, name) = output_files::create(output)?;
    let folder =
        ScratchFolder::new(&std::env::temp_dir(), "pathlength-qemu-", 0o700).map_err(Error::Start)?;
    let plugin = folder.path().join("recorder.so");
    fs::write(&plugin, RECORDER).map_err(Error::Start)?;
    fs::set_permissions(&plugin, Permissions::from_mode(0o700)).map_err(Error::Start)?;
    let (reader, writer) = io::pipe().map_err(Error::Start)?;
    // The emulator inherits it.
    let out = rustix::io::dup(&writer).map_err(|error| Error::Start(error.into()))?;
    drop(writer);
    let emulator = set.name();
    let mut command = Command::new(emulator);
    command.arg("-plugin").arg(format!(
        "{},out={:x},execute={:x}",
        plugin.display(),
        out.as_raw_fd(),
        execute_call(set)
    ));
    if let Some(sysroot) = program.sysroot.clone().or_else(|| default_sysroot(set)) {
        command.arg("-L").arg(sysroot);
    }
    command.arg(&program.path).args(&program.arguments);
    let interrupt = InterruptGuard::new();
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoEmulator(emulator.into()),
        _ => Error::Start(error),
    })?;
    drop(out);
    let trace = Writer::new(file, &header(program, set, child.id())).map_err(Error::Write)?;
    let process = child.id();
    let (converted, status) = thread::scope(|scope| {
        let converting = scope.spawn(|| convert(reader, set, &trace, process));
        let status = wait(&mut child, &interrupt);
        (converting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), status)
    });
    if interrupt.is_interrupted() {
        return Err(Error::Interrupted);
    }
    let (converted, status) = (converted?, status.map_err(Error::Start)?);
    if converted.is_cut && converted.instructions == 0 {
        return Err(Error::Plugin(format!("{emulator} ended with {status}")));
    }
    name.commit()?;
    Ok((status, converted))
}

/// Waits for the emulator, and ends it if a signal asks this process to end. It shares this process's terminal, and with it its
/// process group.
fn wait(child: &mut Child, interrupt: &InterruptGuard) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.is_interrupted() {
            child.kill()?;
        }
        thread::sleep(PAUSE);
    }
}

fn header(program: &EmulatedProgram, set: &DescribedSet, process: u32) -> Header {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Header {
        program: program.path.clone(),
        arguments: program.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        instruction_set: set.name().into(),
        cpu: architecture(set).into(),
        time: time.map_or(0, |time| time.as_secs()),
        process,
        ..Header::default()
    }
}

/// Linux's number of `execve`.
fn execute_call(set: &DescribedSet) -> u32 {
    match architecture(set) {
        "x86_64" => 59,
        "i386" | "arm" | "ppc64le" | "s390x" => 11,
        _ => 221,
    }
}

/// Where Debian's cross compilers have the libraries, if it is there and not this machine's own.
fn default_sysroot(set: &DescribedSet) -> Option<PathBuf> {
    let name = architecture(set);
    let triple = match name {
        "arm" => "arm-linux-gnueabihf".into(),
        "i386" => "i686-linux-gnu".into(),
        "ppc64le" => "powerpc64le-linux-gnu".into(),
        _ => format!("{name}-linux-gnu"),
    };
    let folder = Path::new("/usr").join(triple);
    (name != std::env::consts::ARCH && folder.is_dir()).then_some(folder)
}
