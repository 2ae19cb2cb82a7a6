//! Runs the guest: qemu-system-alpha with the kernel that was built.

use std::fs::{self, File, Permissions};
use std::io::{self, PipeReader, Read};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host::interrupt::InterruptGuard;
use output_files::ScratchFolder;
use session::scratch::temporary_folder;

use crate::Error;
use crate::job::{GuestJob, GuestResult};
use crate::kernel::GuestKernel;
use crate::network::GuestNetwork;
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
/// Makes the guest's file system.
const MAKE_FILE_SYSTEM: &str = "mke2fs";
/// Its identity, so that two of them are equal.
const FILE_SYSTEM_ID: &str = "70617468-6c65-6e67-7468-000000000000";
/// Bytes that the guest passes on at once, at most.
const LONGEST_OUTPUT: usize = 1 << 16;
/// Lines of the console that are shown when the guest fails.
const CONSOLE_LINES: usize = 25;

/// The hardware of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestHardware {
    /// Bytes of its memory.
    pub memory: u64,
    /// Its processors.
    pub processors: u32,
    /// Bytes of its disk; 0 if there is none.
    pub disk: u64,
    /// Its network, for which the kernel must have been built.
    pub network: Option<GuestNetwork>,
}

/// Where a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// Gets what the program writes, while it runs.
pub type OutputSink<'a> = dyn FnMut(OutputStream, &[u8]) + Send + 'a;

/// A guest with a job, ready to run as often as wanted.
#[derive(Debug)]
pub struct VirtualMachine {
    kernel: GuestKernel,
    palcode: Palcode,
    hardware: GuestHardware,
    outputs: usize,
    /// The first file system, disk, console, recording and plugin.
    folder: ScratchFolder,
}

/// The treatment of events that do not follow from the guest's instructions: interrupts, input, time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Determinism {
    /// Time is the host's.
    None,
    /// Time is counted in instructions, and events are recorded.
    Record,
    /// Events come from the recording.
    Replay,
}

/// The accesses to memory that the recorder reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportedAccesses {
    /// The address of each.
    All,
    /// The number of each block's, but the addresses of blocks that begin in this range. The guest must have one processor.
    NumberBut(Range<u64>),
}

impl VirtualMachine {
    /// Prepares a job.
    pub fn new(
        kernel: &GuestKernel,
        job: &GuestJob,
        hardware: GuestHardware,
    ) -> Result<VirtualMachine, Error> {
        let memory = hardware.memory;
        let palcode = Palcode::find()?;
        let folder = temporary_folder("system").map_err(Error::Files)?;
        let files = job.file_system(&kernel.init, hardware.network).map_err(Error::Files)?;
        if files.len() as u64 > memory / 2 {
            return Err(Error::TooLarge { files: files.len() as u64, memory });
        }
        fs::write(folder.path().join("files.cpio"), files).map_err(Error::Files)?;
        let plugin = folder.path().join("recorder.so");
        fs::write(&plugin, RECORDER).map_err(Error::Files)?;
        fs::set_permissions(&plugin, Permissions::from_mode(0o700)).map_err(Error::Files)?;
        Ok(VirtualMachine { kernel: kernel.clone(), palcode, hardware, outputs: job.outputs.len(), folder })
    }

    /// The PALcode that the guest runs on.
    pub fn palcode(&self) -> &Palcode {
        &self.palcode
    }

    /// Runs the job, as fast as the emulator can.
    pub fn run(&self, sink: &mut OutputSink) -> Result<GuestResult, Error> {
        self.observed(Determinism::None, None, sink)
    }

    /// Runs the job once, records it, and repeats it: `consume` gets the stream of the recorder from the repetition. The
    /// emulator cannot repeat what several processors do: there the recorder is part of the only run.
    pub fn trace<T: Send>(
        &self,
        consume: impl FnOnce(PipeReader) -> Result<T, Error> + Send,
        sink: &mut OutputSink,
    ) -> Result<(GuestResult, T), Error> {
        if self.hardware.processors == 1 {
            let result = self.record(sink)?;
            return Ok((result, self.replay(ReportedAccesses::All, consume)?));
        }
        let observed = |stream: OwnedFd| self.observed(Determinism::None, Some(stream), sink);
        with_stream(consume, observed).map(|(value, result)| (result, value))
    }

    /// Runs the job and records what its repetition needs.
    pub fn record(&self, sink: &mut OutputSink) -> Result<GuestResult, Error> {
        self.observed(Determinism::Record, None, sink)
    }

    /// Repeats the recorded run. `consume` gets the stream of the recorder while the guest runs.
    pub fn replay<T: Send>(
        &self,
        reported: ReportedAccesses,
        consume: impl FnOnce(PipeReader) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let execute = |stream: OwnedFd| {
            let stream = Some((stream, reported));
            self.execute(Determinism::Replay, Connections { line: None, stream })
        };
        with_stream(consume, execute).map(|(value, ())| value)
    }

    /// Runs the job and passes its output on while it runs, and the rest when it has ended.
    fn observed(
        &self,
        determinism: Determinism,
        stream: Option<OwnedFd>,
        sink: &mut OutputSink,
    ) -> Result<GuestResult, Error> {
        let (reader, writer) = io::pipe().map_err(Error::Files)?;
        let (executed, passed) = std::thread::scope(|scope| {
            let passing = scope.spawn(|| {
                let passed = pass_on(reader, sink);
                (passed, sink)
            });
            let stream = stream.map(|stream| (stream, ReportedAccesses::All));
            let executed = self.execute(determinism, Connections { line: Some(writer.into()), stream });
            (executed, passing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        executed?;
        let mut disk = File::open(self.path("disk")).map_err(Error::Files)?;
        let result = match GuestResult::read(&mut disk).map_err(Error::Files)? {
            Some(result) if result.files.len() == self.outputs => result,
            _ => return Err(Error::Guest { console: self.console() }),
        };
        let ([output, errors], sink) = passed;
        for (stream, all, passed) in
            [(OutputStream::Output, &result.output, output), (OutputStream::Errors, &result.errors, errors)]
        {
            sink(stream, all.get(passed..).unwrap_or_default());
        }
        Ok(result)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The last lines of the console.
    fn console(&self) -> String {
        let text = fs::read(self.path("console")).unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&text))
    }

    /// Makes the disk with the file system; its contents are part of what a recording repeats.
    fn make_file_system(&self) -> Result<(), Error> {
        let path = self.path("file-system");
        let disk = File::create(&path).map_err(Error::Files)?;
        disk.set_len(self.hardware.disk).map_err(Error::Files)?;
        let mut command = Command::new(MAKE_FILE_SYSTEM);
        command.args(["-q", "-F", "-t", "ext4", "-U", FILE_SYSTEM_ID, "-E"]);
        command.arg(format!("hash_seed={FILE_SYSTEM_ID},lazy_itable_init=0,lazy_journal_init=0")).arg(&path);
        // Its times are part of it, too.
        command.env("E2FSPROGS_FAKE_TIME", "946684800");
        // Where only administrators look.
        command.env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin");
        let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NoEmulator { tool: MAKE_FILE_SYSTEM, package: "e2fsprogs" },
            _ => Error::Files(error),
        })?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(Error::FileSystem { bytes: self.hardware.disk, output: last_lines(&text) })
    }

    fn execute(&self, determinism: Determinism, connections: Connections) -> Result<(), Error> {
        if self.hardware.disk > 0 {
            self.make_file_system()?;
        }
        let disk = File::create(self.path("disk")).map_err(Error::Files)?;
        disk.set_len(DISK_BYTES).map_err(Error::Files)?;
        let interrupt = InterruptGuard::new();
        let mut errors = tempfile::tempfile().map_err(Error::Files)?;
        let mut command = Command::new(EMULATOR);
        self.describe(&mut command, determinism);
        let mut inherited = Vec::new();
        match connections.line {
            Some(line) => {
                let line = rustix::io::dup(&line).map_err(|error| Error::Files(error.into()))?;
                command.arg("-serial").arg(format!("file:/proc/self/fd/{}", line.as_raw_fd()));
                inherited.push(line);
            }
            None => drop(command.args(["-serial", "null"])),
        }
        if let Some((stream, reported)) = connections.stream {
            let memory = self.guest_memory()?;
            let out = rustix::io::dup(&stream).map_err(|error| Error::Files(error.into()))?;
            let mut fields = format!(
                "out={:x},ram={:x},size={:x},switch={:x},cpus={:x},begin={BEGIN:x},end={END:x},{}",
                out.as_raw_fd(),
                memory.as_raw_fd(),
                self.hardware.memory,
                self.palcode.switch_context(),
                self.hardware.processors,
                self.kernel.offsets
            );
            if let ReportedAccesses::NumberBut(Range { start, end }) = reported {
                fields += &format!(",counts=1,exact={start:x},exact_end={end:x}");
            }
            command.arg("-plugin").arg(format!("{},{fields}", self.path("recorder.so").display()));
            let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
            let object = format!(
                "memory-backend-file,id=memory,size={},mem-path={path},share=on",
                self.hardware.memory
            );
            command.args(["-object", &object, "-machine", "memory-backend=memory"]);
            inherited.extend([out, memory]);
        }
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors.try_clone().map_err(Error::Files)?);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_installed(),
            _ => Error::Files(error),
        })?;
        drop(inherited);
        let status = interrupt.wait(&mut child).map_err(Error::Files)?;
        if interrupt.is_interrupted() {
            return Err(Error::Interrupted);
        }
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
        let megabytes = format!("{}M", self.hardware.memory >> 20);
        command.args(["-smp", &self.hardware.processors.to_string()]);
        command.args(["-M", "clipper", "-cpu", "ev67", "-m", &megabytes, "-nodefaults", "-no-reboot"]);
        if let Some(network) = self.hardware.network {
            command.args(network.arguments(determinism != Determinism::None));
        }
        command.args(["-vga", "none", "-net", "none", "-display", "none", "-monitor", "none"]);
        command.arg("-serial").arg(format!("file:{}", self.path("console").display()));
        command.arg("-kernel").arg(&self.kernel.image);
        command.arg("-initrd").arg(self.path("files.cpio"));
        command.args(["-append", "console=ttyS0 panic=-1"]);
        // The clock of the machine begins with each run.
        command.args(["-rtc", "base=2000-01-01,clock=vm"]);
        let recording = self.path("recording");
        let recorded =
            |mode: &str| format!("shift={INSTRUCTION_SHIFT},rr={mode},rrfile={}", recording.display());
        match determinism {
            Determinism::None => {}
            Determinism::Record => drop(command.args(["-icount", &recorded("record")])),
            Determinism::Replay => drop(command.args(["-icount", &recorded("replay")])),
        }
        // The disk of the result, and that of the file system: vda and vdb.
        let disks = ["disk", "file-system"];
        for name in &disks[..if self.hardware.disk > 0 { 2 } else { 1 }] {
            let drive = format!("file={},format=raw,if=none,cache=unsafe", self.path(name).display());
            if determinism == Determinism::None {
                command.args(["-drive", &format!("{drive},id={name}")]);
            } else {
                command.args(["-drive", &format!("{drive},id={name}-image")]);
                command.args(["-drive", &format!("driver=blkreplay,if=none,image={name}-image,id={name}")]);
            }
            // Alpha's kernel cannot chain lists of segments: it repeats a request with more than a list has (128) for ever.
            command.args(["-device", &format!("virtio-blk-pci,drive={name},seg-max-adjust=off")]);
        }
    }

    /// A file with the guest's memory, which the recorder reads.
    fn guest_memory(&self) -> Result<OwnedFd, Error> {
        let memory = rustix::fs::memfd_create("guest", rustix::fs::MemfdFlags::empty());
        let memory = memory.map_err(|error| Error::Files(error.into()))?;
        rustix::fs::ftruncate(&memory, self.hardware.memory).map_err(|error| Error::Files(error.into()))?;
        Ok(memory)
    }
}

/// The emulator's outputs, beside files.
struct Connections {
    /// The serial line with the program's output.
    line: Option<OwnedFd>,
    /// The recorder's stream, and what it has of accesses.
    stream: Option<(OwnedFd, ReportedAccesses)>,
}

/// Bytes of the recorder's pipe: as many as Linux gives any user.
const PIPE_BYTES: usize = 1 << 20;

/// Executes the guest with a stream, which `consume` gets at the same time.
fn with_stream<T: Send, R>(
    consume: impl FnOnce(PipeReader) -> Result<T, Error> + Send,
    execute: impl FnOnce(OwnedFd) -> Result<R, Error>,
) -> Result<(T, R), Error> {
    let (reader, writer) = io::pipe().map_err(Error::Files)?;
    // A larger pipe saves switches between the two; users may not have one.
    let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| consume(reader));
        let executed = execute(writer.into());
        let consumed = consumer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (consumed, executed) {
            // The stream ends early because the guest does.
            (Err(Error::Stream(StreamError::Incomplete)), Err(error)) => Err(error),
            // A consumer that stops early ends the guest.
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            (Ok(value), Ok(result)) => Ok((value, result)),
        }
    })
}

/// Passes on what comes over the serial line, as `init.c` writes it, and returns the numbers of bytes.
fn pass_on(mut line: impl Read, sink: &mut OutputSink) -> [usize; 2] {
    let mut passed = [0; 2];
    let mut bytes = Vec::new();
    loop {
        let mut head = [0; 5];
        if line.read_exact(&mut head).is_err() {
            return passed;
        }
        let (index, stream) = match head[0] {
            b'o' => (0, OutputStream::Output),
            b'e' => (1, OutputStream::Errors),
            _ => break,
        };
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        bytes.resize(length.min(LONGEST_OUTPUT), 0);
        if length > LONGEST_OUTPUT || line.read_exact(&mut bytes).is_err() {
            break;
        }
        sink(stream, &bytes);
        passed[index] += length;
    }
    // The rest is not understood: it comes from the disk. But the emulator must be able to write.
    let _ = io::copy(&mut line, &mut io::sink());
    passed
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n")
}

/// The error of an emulator that is not there.
pub fn not_installed() -> Error {
    Error::NoEmulator { tool: EMULATOR, package: PACKAGE }
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
    found.ok_or_else(not_installed)
}
