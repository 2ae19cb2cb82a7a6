//! Runs the guest: qemu-system-alpha with the kernel that was built.

use std::fs::{self, File, Permissions};
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::interrupt::Caught;
use tempfile::TempDir;

use crate::Error;
use crate::job::{GuestJob, GuestResult};
use crate::kernel::GuestKernel;
use crate::palcode::Palcode;
use crate::stream::StreamError;

/// The emulator, and Debian's package that has it.
const EMULATOR: &str = "qemu-system-alpha";
const PACKAGE: &str = "qemu-system-misc";
/// The plugin.
const RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.so"));
/// Virtual nanoseconds of an instruction, as a power of two: 250 MHz.
const INSTRUCTION_SHIFT: u32 = 2;
/// The size of the disk on which the guest leaves its result. Only what is written takes space on the host.
const DISK_BYTES: u64 = 4 << 30;
/// The instructions by which the guest says that the recorded part begins and ends, as `init.c` has them.
pub(crate) const BEGIN: u32 = 0x23ff_504c;
pub(crate) const END: u32 = 0x23ff_504d;
/// Lines of the console that are shown when the guest fails.
const CONSOLE_LINES: usize = 25;

/// A guest with a job, ready to run as often as wanted.
#[derive(Debug)]
pub struct VirtualMachine {
    kernel: GuestKernel,
    palcode: Palcode,
    /// Bytes of the guest's memory.
    memory: u64,
    outputs: usize,
    /// The first file system, disk, console, recording and plugin.
    folder: TempDir,
}

/// What becomes of events that do not follow from the guest's instructions: interrupts, input, time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Determinism {
    /// Time is the host's.
    None,
    /// Time is counted in instructions, and events are recorded.
    Record,
    /// Events come from the recording.
    Replay,
}

impl VirtualMachine {
    /// Prepares a job. `memory` is the size of the guest's memory in bytes.
    pub fn new(kernel: &GuestKernel, job: &GuestJob, memory: u64) -> Result<VirtualMachine, Error> {
        let palcode = Palcode::find()?;
        let folder = tempfile::Builder::new().prefix("pathlength-system-").tempdir().map_err(Error::Files)?;
        let files = job.file_system(&kernel.init).map_err(Error::Files)?;
        if files.len() as u64 > memory / 2 {
            return Err(Error::TooLarge { files: files.len() as u64, memory });
        }
        fs::write(folder.path().join("files.cpio"), files).map_err(Error::Files)?;
        let plugin = folder.path().join("recorder.so");
        fs::write(&plugin, RECORDER).map_err(Error::Files)?;
        fs::set_permissions(&plugin, Permissions::from_mode(0o700)).map_err(Error::Files)?;
        Ok(VirtualMachine { kernel: kernel.clone(), palcode, memory, outputs: job.outputs.len(), folder })
    }

    /// The PALcode that the guest runs on.
    pub fn palcode(&self) -> &Palcode {
        &self.palcode
    }

    /// Runs the job, as fast as the emulator can.
    pub fn run(&self) -> Result<GuestResult, Error> {
        self.result(self.execute(Determinism::None, None)?)
    }

    /// Runs the job and records what its repetition needs.
    pub fn record(&self) -> Result<GuestResult, Error> {
        self.result(self.execute(Determinism::Record, None)?)
    }

    /// Repeats the recorded run. `consume` gets the stream of the recorder while the guest runs.
    pub fn replay<T: Send>(
        &self,
        consume: impl FnOnce(PipeReader) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let (reader, writer) = io::pipe().map_err(Error::Files)?;
        std::thread::scope(|scope| {
            let consumer = scope.spawn(|| consume(reader));
            let executed = self.execute(Determinism::Replay, Some(writer.into()));
            let consumed = consumer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (consumed, executed) {
                // The stream ends early because the guest does.
                (Err(Error::Stream(StreamError::Incomplete)), Err(error)) => Err(error),
                // A consumer that stops early ends the guest.
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                (Ok(value), Ok(())) => Ok(value),
            }
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn result(&self, (): ()) -> Result<GuestResult, Error> {
        let mut disk = File::open(self.path("disk")).map_err(Error::Files)?;
        match GuestResult::read(&mut disk).map_err(Error::Files)? {
            Some(result) if result.files.len() == self.outputs => Ok(result),
            _ => Err(Error::Guest { console: self.console() }),
        }
    }

    /// The last lines of the console.
    fn console(&self) -> String {
        let text = fs::read(self.path("console")).unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&text))
    }

    fn execute(&self, determinism: Determinism, stream: Option<OwnedFd>) -> Result<(), Error> {
        // The disk's contents are part of what a recording repeats.
        let disk = File::create(self.path("disk")).map_err(Error::Files)?;
        disk.set_len(DISK_BYTES).map_err(Error::Files)?;
        let interrupt = Caught::new();
        let mut errors = tempfile::tempfile().map_err(Error::Files)?;
        let mut command = Command::new(EMULATOR);
        self.describe(&mut command, determinism);
        let mut inherited = Vec::new();
        if let Some(stream) = stream {
            let memory = self.guest_memory()?;
            let out = rustix::io::dup(&stream).map_err(|error| Error::Files(error.into()))?;
            let fields = format!(
                "out={:x},ram={:x},size={:x},switch={:x},begin={BEGIN:x},end={END:x},{}",
                out.as_raw_fd(),
                memory.as_raw_fd(),
                self.memory,
                self.palcode.switch_context(),
                self.kernel.offsets
            );
            command.arg("-plugin").arg(format!("{},{fields}", self.path("recorder.so").display()));
            let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
            let object =
                format!("memory-backend-file,id=memory,size={},mem-path={path},share=on", self.memory);
            command.args(["-object", &object, "-machine", "memory-backend=memory"]);
            inherited.extend([out, memory]);
        }
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors.try_clone().map_err(Error::Files)?);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoEmulator { tool: EMULATOR, package: PACKAGE },
            _ => Error::Files(error),
        })?;
        drop(inherited);
        let status = interrupt.wait(&mut child).map_err(Error::Files)?;
        interrupt.check().map_err(|_| Error::Interrupted)?;
        if status.success() {
            return Ok(());
        }
        let mut text = String::new();
        let read =
            io::Seek::rewind(&mut errors).and_then(|()| io::Read::read_to_string(&mut errors, &mut text));
        read.map_err(Error::Files)?;
        Err(Error::Emulator { status, output: last_lines(&text) })
    }

    /// Options of the emulator.
    fn describe(&self, command: &mut Command, determinism: Determinism) {
        let megabytes = format!("{}M", self.memory >> 20);
        command.args(["-M", "clipper", "-cpu", "ev67", "-m", &megabytes, "-nodefaults", "-no-reboot"]);
        command.args(["-vga", "none", "-net", "none", "-display", "none", "-monitor", "none"]);
        command.arg("-serial").arg(format!("file:{}", self.path("console").display()));
        command.arg("-kernel").arg(&self.kernel.image);
        command.arg("-initrd").arg(self.path("files.cpio"));
        command.args(["-append", "console=ttyS0 panic=-1"]);
        // The clock of the machine begins with each run.
        command.args(["-rtc", "base=2000-01-01,clock=vm"]);
        let disk = format!("file={},format=raw,if=none,cache=unsafe", self.path("disk").display());
        let recording = self.path("recording");
        let recorded =
            |mode: &str| format!("shift={INSTRUCTION_SHIFT},rr={mode},rrfile={}", recording.display());
        let time = match determinism {
            Determinism::None => {
                command.args(["-drive", &format!("{disk},id=disk")]);
                command.args(["-device", "virtio-blk-pci,drive=disk"]);
                return;
            }
            Determinism::Record => recorded("record"),
            Determinism::Replay => recorded("replay"),
        };
        command.args(["-icount", &time, "-drive", &format!("{disk},id=image")]);
        command.args(["-drive", "driver=blkreplay,if=none,image=image,id=disk"]);
        command.args(["-device", "virtio-blk-pci,drive=disk"]);
    }

    /// A file with the guest's memory, which the recorder reads.
    fn guest_memory(&self) -> Result<OwnedFd, Error> {
        let memory = rustix::fs::memfd_create("guest", rustix::fs::MemfdFlags::empty());
        let memory = memory.map_err(|error| Error::Files(error.into()))?;
        rustix::fs::ftruncate(&memory, self.memory).map_err(|error| Error::Files(error.into()))?;
        Ok(memory)
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

/// Whether the emulator is installed.
pub fn is_installed() -> bool {
    Command::new(EMULATOR)
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// A file that belongs to the emulator, in the folders where it looks.
pub(crate) fn emulator_file(name: &str) -> Result<PathBuf, Error> {
    let folders = ["/usr/share/qemu", "/usr/local/share/qemu"];
    let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    found.ok_or(Error::NoEmulator { tool: EMULATOR, package: PACKAGE })
}
