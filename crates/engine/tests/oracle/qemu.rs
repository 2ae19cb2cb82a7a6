//! The oracle: qemu-alpha, which logs every instruction before it executes it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::engine::{Detail, REGISTERS, Run, Step};
use crate::guest::{SYSROOT, preload};

/// A running qemu-alpha.
pub struct Qemu {
    child: Child,
    log: BufReader<std::io::PipeReader>,
    line: Vec<u8>,
    run: Run,
    /// Logged, but not known to have completed before the next line.
    pending: Option<Step>,
    /// The last system calls and signals, for messages.
    pub news: Vec<String>,
}

impl Qemu {
    /// Starts it so that the guest sees the same machine as on the engine: it gets the same IDs; time and random
    /// numbers come from `guests/preload.c`.
    pub fn start(run: &Run, [process, thread]: [u64; 2]) -> Qemu {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let log = match run.detail {
            Detail::Nothing => "strace",
            Detail::Addresses => "nochain,exec,strace",
            Detail::Registers => "nochain,exec,cpu,fpu,strace",
        };
        let mut command = Command::new("qemu-alpha");
        command.env_clear();
        command.env("LD_PRELOAD", preload(&run.directory));
        command.env("ORACLE_PID", process.to_string()).env("ORACLE_TID", thread.to_string());
        command.args(["-L", SYSROOT, "-seed", "0", "-cpu", &run.cpu]);
        command.args([
            "-U",
            "LD_PRELOAD",
            "-U",
            "ORACLE_PID",
            "-U",
            "ORACLE_TID",
            "-D",
            "/proc/self/fd/0",
            "-d",
            log,
        ]);
        if run.detail != Detail::Nothing {
            command.arg("-singlestep");
        }
        // qemu gives the guest its environment in reverse.
        command.args(run.environment.iter().rev().flat_map(|variable| ["-E", variable]));
        command.arg(&run.program).args(&run.arguments).current_dir(run.working_directory("qemu"));
        command.stdin(Stdio::from(writer));
        command.stdout(File::create(run.output("qemu.stdout")).expect("writable"));
        command.stderr(File::create(run.output("qemu.stderr")).expect("writable"));
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot run qemu-alpha: {error}; Debian: apt-get install qemu-user")
        });
        let log = BufReader::with_capacity(1 << 16, reader);
        Qemu { child, log, line: Vec::new(), run: run.clone(), pending: None, news: Vec::new() }
    }

    fn next_line(&mut self) -> bool {
        self.line.clear();
        self.log.read_until(b'\n', &mut self.line).expect("the log is readable") > 0
    }

    /// The next instruction that was completed; None at the program's end.
    pub fn step(&mut self) -> Option<Step> {
        while self.next_line() {
            if let Some(at) = find(&self.line, b"Trace ") {
                self.note(at);
                let step = self.instruction(at);
                if let Some(completed) = self.pending.replace(step) {
                    return Some(completed);
                }
            } else if find(&self.line, b"Stopped execution of TB chain").is_some() {
                // Logged, but interrupted before it was executed.
                self.pending = None;
            } else {
                self.note(self.line.len());
                let faults = ["--- SIGSEGV", "--- SIGBUS", "--- SIGILL"];
                if faults.iter().any(|fault| self.line.starts_with(fault.as_bytes())) {
                    self.pending = None;
                }
            }
        }
        self.pending.take()
    }

    /// Keeps the beginning of a system call's or signal's line for messages.
    fn note(&mut self, until: usize) {
        let text = String::from_utf8_lossy(&self.line[..until]).trim().to_owned();
        if !text.is_empty() {
            if self.news.len() == 8 {
                self.news.remove(0);
            }
            self.news.push(text);
        }
    }

    /// `Trace 0: 0xHOST [CS/PC/flags/cflags]`, then lines of registers if they were asked for.
    fn instruction(&mut self, at: usize) -> Step {
        let bracket = at + find(&self.line[at..], b"[").expect("a bracket in a trace line");
        let address = hexadecimal(&self.line[bracket + 18..bracket + 34]);
        let mut registers = Vec::new();
        if self.run.detail == Detail::Registers {
            registers.reserve(REGISTERS);
            while self.next_line() && self.line.len() > 1 {
                // Columns of 25: a name of 8, 16 digits, a blank.
                let columns = self.line.chunks(25).filter(|column| column.len() > 24);
                registers.extend(columns.filter(|c| named(c)).map(|c| hexadecimal(&c[8..24])));
            }
            assert_eq!(registers.len(), REGISTERS, "registers of qemu's log at {address:#x}");
        }
        Step { address, word: 0, registers }
    }

    /// The guest's standard output and how it ended.
    pub fn finish(mut self) -> (String, String) {
        while self.step().is_some() {}
        let status = self.child.wait().expect("a child");
        let text = |name| {
            String::from_utf8_lossy(&std::fs::read(self.run.output(name)).unwrap_or_default()).into_owned()
        };
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => format!("status {code}"),
            (_, signal) => format!("signal {}", signal.unwrap_or(0)),
        };
        assert!(!text("qemu.stderr").contains("cannot be preloaded"), "{}", text("qemu.stderr"));
        (text("qemu.stdout"), end)
    }
}

/// Whether a column is a register, as opposed to the program counter and qemu's own state of locks.
fn named(column: &[u8]) -> bool {
    ![b"PC ", b"loc"].iter().any(|other| column.starts_with(*other))
}

fn find(line: &[u8], what: &[u8]) -> Option<usize> {
    line.windows(what.len()).position(|window| window == what)
}

fn hexadecimal(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |value, digit| {
        value << 4 | u64::from(if *digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 })
    })
}
