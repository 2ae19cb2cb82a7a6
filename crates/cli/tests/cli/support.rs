//! Guest programs, and a way to run the command that always ends.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Longer than any command here takes on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The switches of the two builds.
const BUILDS: [(&str, &[&str]); 2] =
    [("ev5", &["-mcpu=ev5", "-mno-bwx"]), ("ev56", &["-mcpu=ev56", "-mbwx"])];

/// The path of a guest program, made once: `ev5/modes`, `ev56/libhalf.so`.
pub fn guest(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(make_guests).join(name)
}

fn make_guests() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    for (build, switches) in BUILDS {
        let folder = folder.join(build);
        std::fs::create_dir_all(&folder).unwrap();
        compile(&folder, switches, "calls.c", "calls", &[]);
        compile(&folder, switches, "columns.f90", "columns", &[]);
        compile(&folder, switches, "crossing.c", "crossing", &["-pthread"]);
        compile(&folder, switches, "debugged.c", "debugged", &["-O0", "-pthread"]);
        compile(&folder, switches, "debugged.c", "anywhere", &["-O0", "-pthread", "-fPIE", "-pie"]);
        for (name, more) in [("-O0", "-g"), ("-O1", "-g"), ("-O2", "-g"), ("-O2", "-g0")] {
            compile(&folder, switches, "entries.c", &format!("entries{name}{more}"), &[name, more]);
        }
        compile(&folder, switches, "dies.c", "dies", &[]);
        compile(&folder, switches, "family.c", "family", &["-O1", "-pthread"]);
        compile(&folder, switches, "answers.c", "answers", &[]);
        compile(&folder, switches, "faults.c", "faults", &[]);
        compile(&folder, switches, "forks.c", "forks", &[]);
        compile(&folder, switches, "half.c", "libhalf.so", &["-fPIC", "-shared"]);
        compile(&folder, switches, "halves.c", "halves", &["-L.", "-lhalf", "-Wl,-rpath,$ORIGIN"]);
        compile(&folder, switches, "heap.c", "heap", &["-pthread", "-fno-builtin"]);
        compile(&folder, switches, "labels.s", "labels", &[]);
        compile(&folder, switches, "large.c", "large", &[]);
        compile(&folder, switches, "leaves.cc", "leaves", &[]);
        compile(&folder, switches, "late.c", "late", &["-pthread"]);
        compile(&folder, switches, "loads.c", "loads", &["-ldl"]);
        compile(&folder, switches, "locks.c", "locks", &["-pthread"]);
        compile(&folder, switches, "modes.c", "modes", &[]);
        compile(&folder, switches, "odd.c", "odd", &[]);
        compile(&folder, switches, "plan.c", "plan", &[]);
        compile(&folder, switches, "races.c", "races", &["-pthread"]);
        compile(&folder, switches, "reaches.c", "reaches", &[]);
        compile(&folder, switches, "requests.c", "requests", &["-pthread"]);
        compile(&folder, switches, "sampled.c", "sampled", &["-O1"]);
        compile(&folder, switches, "shared.c", "shared", &["-pthread"]);
        compile(&folder, switches, "transfers.c", "transfers", &[]);
        compile(&folder, switches, "shares.c", "shares", &[]);
        compile(&folder, switches, "shmem_index.c dynahash.c", "postgres", &[]);
        compile(&folder, switches, "skips.c", "skips", &[]);
        compile(&folder, switches, "store.cc", "store", &[]);
        compile(&folder, switches, "sleeps.c", "sleeps", &[]);
        compile(&folder, switches, "stacks.c", "stacks", &[]);
        compile(&folder, switches, "stores.c", "stores", &[]);
        compile(&folder, switches, "system.c", "system", &[]);
        compile(&folder, switches, "statements.c", "statements", &["-pthread"]);
        compile(&folder, switches, "threads.c", "threads", &["-pthread"]);
        compile(&folder, switches, "timers.c", "timers", &[]);
        compile(&folder, switches, "tiny.c", "tiny", &[]);
        compile(&folder, switches, "variables.c", "variables", &[]);
        compile(&folder, switches, "walks.c", "walks", &[]);
        compile(&folder, switches, "words.c", "words", &[]);
    }
    folder
}

fn compile(folder: &Path, build: &[&str], source: &str, output: &str, more: &[&str]) {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/guests");
    let compiler = match source.rsplit_once('.') {
        Some((_, "f90")) => "alpha-linux-gnu-gfortran",
        Some((_, "cc")) => "alpha-linux-gnu-g++",
        _ => "alpha-linux-gnu-gcc",
    };
    let mut command = Command::new(compiler);
    command.current_dir(folder).args(["-O1", "-g", "-w"]).args(build).args(["-o", output]);
    command.args(source.split(' ').map(|name| guests.join(name)));
    let made = command.args(more).output().expect("the cross compilers are needed: run ./setup");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// How a command ended and what it wrote.
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// A format was named: tables have standard output for themselves.
    pub has_format: bool,
}

impl Outcome {
    /// As a shell has it: the exit status, or 128 and the signal.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().expect("a status or a signal"))
    }

    /// What a program printed, and then the tables of a command that succeeded and said nothing else; which of them is
    /// on standard error depends on the options.
    pub fn quiet_success(self) -> String {
        let is_quiet = !self.stderr.lines().any(|line| line.starts_with("pathlength: "));
        assert!(self.code() == 0 && is_quiet, "{}: {}{}", self.code(), self.stdout, self.stderr);
        match self.has_format {
            true => self.stderr + &self.stdout,
            false => self.stdout + &self.stderr,
        }
    }

    /// The same of a command that failed when the program had printed this.
    pub fn failure_after(self, printed: &str) -> String {
        assert_eq!(self.stdout, printed);
        self.failure()
    }

    /// The same of a command that said nothing else but notes for readers of its tables.
    pub fn noted_success(mut self) -> String {
        let other = |line: &&str| !line.starts_with("pathlength: note: ");
        self.stderr = self.stderr.split_inclusive('\n').filter(other).collect();
        self.quiet_success()
    }

    /// The one sentence of a command that failed: nothing else may be on standard error.
    pub fn failure(self) -> String {
        self.failure_with(1)
    }

    /// The same with another exit status.
    pub fn failure_with(self, code: i32) -> String {
        assert_eq!(self.code(), code, "{}", self.stderr);
        let sentence = self.stderr.strip_prefix("pathlength: ").expect(&self.stderr);
        assert!(sentence.ends_with('\n') && sentence.lines().count() == 1, "{sentence}");
        assert!(!says_twice(sentence), "{sentence}");
        sentence.trim_end().to_owned()
    }
}

/// Whether a part of the message is there two times.
fn says_twice(message: &str) -> bool {
    let mut parts: Vec<&str> = message.trim_end().split([':', ';']).map(str::trim).collect();
    let all = parts.len();
    parts.sort_unstable();
    parts.dedup();
    parts.len() != all
}

/// The command under test.
pub fn pathlength<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pathlength"));
    command.args(arguments).stdin(Stdio::null()).env_remove("LD_LIBRARY_PATH");
    // It ends with the thread of its test, however that ends.
    // SAFETY: the function makes one call, which is safe after fork.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command
}

/// Runs it to its end.
pub fn outcome(mut command: Command) -> Outcome {
    let (stdout, stderr) = (file(), file());
    command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let status = ends_within(&mut child, PATIENCE).unwrap_or_else(|| {
        child.kill().unwrap();
        panic!("{command:?} has not ended after {PATIENCE:?}");
    });
    let has_format = command.get_args().any(|word| word == "--format");
    Outcome { status, stdout: text(&stdout), stderr: text(&stderr), has_format }
}

/// Waits so long for a process.
pub fn ends_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if start.elapsed() > time {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An anonymous file for output: unlike a pipe it is never full.
pub fn file() -> File {
    tempfile::tempfile().unwrap()
}

/// Runs the command with its output into a pipe, of which only the beginning is read.
pub fn ends_when_nobody_reads(words: &str) {
    let mut child = command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let status = ends_within(&mut child, PATIENCE).unwrap();
    let stderr = std::io::read_to_string(child.stderr.unwrap()).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""), "{words}");
}

/// The streams of a command that are a terminal; others are files that nobody reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Streams {
    All,
    Output,
    Error,
}

/// Runs the command on a terminal with this number of columns. Returns its exit status, and what it wrote to it.
pub fn on_terminal(mut command: Command, columns: u16, streams: Streams) -> (i32, String) {
    let (mut ours, mut its) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointers are valid, and descriptors are owned by the files below.
    let (ours, its) = unsafe {
        assert_eq!(libc::openpty(&mut ours, &mut its, std::ptr::null_mut(), std::ptr::null(), &size), 0);
        (File::from_raw_fd(ours), File::from_raw_fd(its))
    };
    let terminal = || Stdio::from(its.try_clone().unwrap());
    let stream = |is_terminal| if is_terminal { terminal() } else { Stdio::from(file()) };
    command.stdin(terminal()).env("TERM", "xterm");
    command.stdout(stream(streams != Streams::Error)).stderr(stream(streams != Streams::Output));
    let mut child = command.spawn().unwrap();
    // The terminal ends with its last writer.
    drop((command, its));
    let reader = std::thread::spawn(move || {
        let (mut written, mut part, mut ours) = (Vec::new(), [0; 4096], ours);
        while let Ok(length @ 1..) = ours.read(&mut part) {
            written.extend_from_slice(&part[..length]);
        }
        String::from_utf8(written).unwrap()
    });
    let status = ends_within(&mut child, PATIENCE).expect("it ends");
    (status.code().unwrap_or(-1), reader.join().unwrap())
}

/// What was written to the file. Keeps the position of the next write.
pub fn text(file: &File) -> String {
    let mut text = vec![0; file.metadata().unwrap().len() as usize];
    let read = file.read_at(&mut text, 0).unwrap();
    text.truncate(read);
    String::from_utf8(text).unwrap()
}

/// Runs the command with these words, of which those with a colon are guests: `count :ev5/modes work`.
pub fn run(words: &str) -> Outcome {
    outcome(command(words))
}

/// The command of [`run`].
pub fn command(words: &str) -> Command {
    pathlength(words.split_whitespace().map(|word| match word.strip_prefix(':') {
        Some(name) => guest(name).into_os_string(),
        None => word.into(),
    }))
}

/// The rows of CSV, the header among them, without the column that marks totals.
pub fn csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = marked_csv(text);
    if rows.first().is_some_and(|header| header.last().is_some_and(|last| last == "is_total")) {
        rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    rows
}

/// The same with the column that marks totals, if the table has a total.
pub fn marked_csv(text: &str) -> Vec<Vec<String>> {
    text.lines().map(cells).collect()
}

/// The cells of a line; those with commas are quoted.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().expect("there is one").push(c),
        }
    }
    cells
}

/// What a directory holds, in order.
pub fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The same bytes with a missing end, some bytes set or a bit flipped, again and again.
pub fn damaged(whole: &[u8], mut seed: u64) -> impl Iterator<Item = Vec<u8>> {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let mut bytes = whole.to_vec();
        let at = (seed >> 33) as usize % bytes.len();
        match seed >> 32 & 3 {
            0 => bytes.truncate(at),
            1 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
            _ => bytes[at] ^= 1 << (seed >> 60 & 7),
        }
        bytes
    })
}
