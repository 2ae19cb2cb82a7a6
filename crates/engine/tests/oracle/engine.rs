//! Our side of a comparison: the engine in a process of its own, which reports every instruction.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use alpha::cpu::Cpu;
use events::{BlockId, Counts, LoadedImage, ProcessEnd, Unit};
use guest::{BlockCache, DecodedBlock};
use guest_memory::Memory;
use pathlength_engine::{
    Configuration, Debugged, Instrumentation, Observer, Platform, Process, SystemSettings, UnitCounter,
    UnitOfWork,
};
use serde::{Deserialize, Serialize};

use crate::guest::SYSROOT;

/// A program to run on either side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<String>,
    /// Where the two sides have their working directories, `ours` and `qemu`.
    pub directory: PathBuf,
    pub cpu: String,
    pub detail: Detail,
    /// The function that is the unit of work.
    pub unit: Option<String>,
}

/// The facts that are reported of each instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// Nothing.
    Nothing,
    /// Its address.
    Addresses,
    /// Its address and all registers before it.
    Registers,
}

impl Run {
    /// A run without arguments and environment on a processor that has everything.
    pub fn new(program: PathBuf, detail: Detail) -> Run {
        let directory = program.parent().expect("an absolute path").to_path_buf();
        let cpu = "ev67".into();
        Run { program, arguments: vec![], environment: vec![], directory, cpu, detail, unit: None }
    }

    /// The working directory of one side; the names are equally long, because a program may ask.
    pub fn working_directory(&self, side: &str) -> PathBuf {
        let directory = self.directory.join(side);
        std::fs::create_dir_all(&directory).expect("writable");
        directory
    }

    /// The file that keeps what one side wrote.
    pub fn output(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Integer registers 0 to 30, floating-point registers 0 to 30, FPCR.
pub const REGISTERS: usize = 63;
pub const FPCR: usize = 62;
/// t9 and t10, whose values at the start are a quirk of qemu's: it copies the kernel's register
/// frame of a system call as if it were an array of the registers.
const T9: usize = 23;
const T10: usize = 24;

/// One instruction that was completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub address: u64,
    /// The instruction; 0 from qemu, which does not tell.
    pub word: u32,
    /// Before the instruction; empty unless asked for.
    pub registers: Vec<u64>,
}

/// The summary after the run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Summary {
    pub end: String,
    pub instructions: u64,
    pub counts: Counts,
    pub units: Vec<Unit>,
}

/// The engine at work.
pub struct Engine {
    child: Child,
    steps: BufReader<std::io::PipeReader>,
    run: Run,
    thread: u64,
}

const REQUEST: &str = "PATHLENGTH_ORACLE_REQUEST";

impl Engine {
    pub fn start(run: &Run) -> Engine {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let directory = run.working_directory("ours");
        let child = Command::new(std::env::current_exe().expect("the test's own path"))
            .args(["--exact", "engine::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(REQUEST, serde_json::to_string(run).expect("plain data"))
            .current_dir(directory)
            .stdin(Stdio::from(writer))
            .stdout(Stdio::null())
            .stderr(File::create(run.output("engine.stderr")).expect("writable"))
            .spawn()
            .expect("the test runs again");
        let steps = BufReader::with_capacity(1 << 16, reader);
        let mut engine = Engine { child, steps, run: run.clone(), thread: 0 };
        engine.thread = engine.word().unwrap_or_else(|| panic!("{}", engine.stderr()));
        engine
    }

    /// The ids of the guest's process and thread, which are the engine's.
    pub fn ids(&self) -> [u64; 2] {
        [self.child.id().into(), self.thread]
    }

    /// The engine's output to standard error.
    fn stderr(&self) -> String {
        std::fs::read_to_string(self.run.output("engine.stderr")).unwrap_or_default()
    }

    fn word(&mut self) -> Option<u64> {
        let mut bytes = [0; 8];
        self.steps.read_exact(&mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// The next instruction; None at the program's end.
    pub fn step(&mut self) -> Option<Step> {
        let address = self.word()?;
        let word = self.word().expect("an instruction") as u32;
        let count = if self.run.detail == Detail::Registers { REGISTERS } else { 0 };
        let registers = (0..count).map(|_| self.word().expect("all registers")).collect();
        Some(Step { address, word, registers })
    }

    /// Stops it; what it wrote to standard error.
    pub fn abandon(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.stderr()
    }

    /// The guest's standard output and what there is to say.
    pub fn finish(mut self) -> (String, Summary) {
        let mut rest = Vec::new();
        self.steps.read_to_end(&mut rest).expect("readable");
        let status = self.child.wait().expect("a child");
        let file = |name: &str| std::fs::read(self.run.output(name)).unwrap_or_default();
        let text = |name: &str| String::from_utf8_lossy(&file(name)).into_owned();
        assert!(status.success(), "the engine failed: {status} {}", text("engine.stderr"));
        let summary = serde_json::from_slice(&file("engine.summary")).expect("a summary");
        (text("engine.stdout"), summary)
    }
}

/// The engine's process. Its standard input is where the steps go.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    let Ok(request) = std::env::var(REQUEST) else { return };
    let run: Run = serde_json::from_str(&request).expect("a request");
    let stdout = File::create(run.output("engine.stdout")).expect("writable");
    let null = File::open("/dev/null").expect("readable");
    // Descriptor 3 is qemu's log on the other side: a guest's first file is 4 on both.
    // SAFETY: the descriptors are this process's own, and nobody else uses 3.
    let stream = unsafe {
        libc::dup2(0, 1000);
        libc::dup2(null.as_raw_fd(), 0);
        libc::dup2(stdout.as_raw_fd(), 1);
        drop((null, stdout));
        libc::dup2(1000, 3);
        libc::close(1000);
        File::from_raw_fd(3)
    };
    let summary = execute(&run, stream);
    std::fs::write(run.output("engine.summary"), serde_json::to_vec(&summary).expect("plain data"))
        .expect("writable");
    std::process::exit(0);
}

fn execute(run: &Run, stream: File) -> Summary {
    let mut process = Process::new(&Configuration {
        program: run.program.clone(),
        name: None,
        arguments: run.arguments.iter().map(Into::into).collect(),
        environment: run.environment.iter().map(Into::into).collect(),
        model: run.cpu.parse().expect("a processor"),
        settings: SystemSettings { sysroot: Some(SYSROOT.into()), ..SystemSettings::default() },
    })
    .expect("the program loads");
    if run.detail == Detail::Registers {
        let state = process.state::<Cpu>().expect("a program of Alpha");
        state.cpu.r[T9] = 8;
        state.cpu.r[T10] = state.cpu.pc;
        state.cache.limit(1);
    }
    let mut units = Vec::new();
    let work = UnitOfWork {
        functions: vec![run.unit.clone().unwrap_or("none".into())],
        gauges: vec![],
        ..UnitOfWork::default()
    };
    let counter = UnitCounter::new(
        work,
        Box::new(|_: u32, _: Option<&str>, unit| {
            units.push(unit);
            true
        }),
    );
    let mut stream = BufWriter::with_capacity(1 << 16, stream);
    // SAFETY: no preconditions.
    let thread = unsafe { libc::gettid() } as u64;
    stream.write_all(&thread.to_le_bytes()).and_then(|()| stream.flush()).expect("the test reads");
    let mut recorder = Recorder { counter, stream, detail: run.detail, pending: None };
    let end = process.run(&mut recorder).expect("the program runs");
    let counts = recorder.counter.total.counts();
    drop(recorder);
    Summary { end: describe(&end), instructions: process.instructions(), counts, units }
}

/// An end as the other side can tell it, too.
fn describe(end: &pathlength_engine::ProgramEnd) -> String {
    use pathlength_engine::ProgramEnd;
    match end {
        ProgramEnd::Exited(status) => format!("status {}", status & 0xff),
        ProgramEnd::Killed(crash) => format!("signal {}", crash.signal),
    }
}

/// Counts, and reports what was completed: a block when the next one begins, because until then it may
/// be cut.
struct Recorder<'a> {
    counter: UnitCounter<'a>,
    stream: BufWriter<File>,
    detail: Detail,
    pending: Option<Pending>,
}

struct Pending {
    address: u64,
    words: Vec<u32>,
    registers: Vec<u64>,
}

impl Recorder<'_> {
    fn flush(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        for (address, word) in (pending.address..).step_by(4).zip(pending.words) {
            for word in [address, word.into()].iter().chain(&pending.registers) {
                // A broken pipe: the other end saw a difference and has left.
                self.stream.write_all(&word.to_le_bytes()).expect("the test reads on");
            }
        }
    }
}

impl<G: Platform> Instrumentation<G> for Recorder<'_> {}

impl<G: Platform> Debugged<G> for Recorder<'_> {}

impl<G: Platform> Observer<G> for Recorder<'_> {
    fn enter(&mut self, id: BlockId, cache: &BlockCache<G>, cpu: &G, memory: &Memory) {
        let block = cache.block(id);
        self.counter.enter(id, cache, cpu, memory);
        self.flush();
        let registers = match self.detail {
            Detail::Nothing => return,
            Detail::Addresses => vec![],
            Detail::Registers => {
                // As GDB numbers them: without the two that are zero.
                let words = cpu.registers();
                [&words[..31], &words[32..63], &words[63..64]].concat()
            }
        };
        self.pending = Some(Pending { address: block.address, words: block.words.clone(), registers });
    }

    fn truncated(&mut self, entered: BlockId, executed: Option<(BlockId, &DecodedBlock<G>)>) {
        self.counter.truncated(entered, executed);
        if let Some(pending) = &mut self.pending {
            pending.words.truncate(executed.map_or(0, |(_, block)| block.words.len()));
        }
    }

    fn system_call(&mut self, number: u32) {
        Observer::<G>::system_call(&mut self.counter, number);
    }

    fn mapped(&mut self, image: &LoadedImage) {
        Observer::<G>::mapped(&mut self.counter, image);
    }

    fn thread(&self) -> Self {
        unreachable!("the programs compared have one thread")
    }

    fn exits(&mut self, how: ProcessEnd, cpu: &G, memory: &Memory, cache: &BlockCache<G>) {
        self.flush();
        self.counter.exits(how, cpu, memory, cache);
    }
}
