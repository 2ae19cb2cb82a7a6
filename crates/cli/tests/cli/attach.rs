//! `trace --attach`: recordings of running programs, which continue afterwards.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use events::record::{Entries, Entry, Mark};
use tempfile::TempDir;
use trace::Trace;

use crate::support::{Outcome, command, ends_within, outcome, pathlength, run};

/// Until a process runs this guest: then its handlers are there.
fn wait_for_name(child: &Child, guest: &str) {
    let name = format!("/proc/{}/comm", child.id());
    for _ in 0..500 {
        if std::fs::read_to_string(&name).is_ok_and(|name| name.trim_end() == guest) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("process {} never ran {guest}", child.id());
}

/// A program that runs until this is dropped.
struct Running(Child);

impl Running {
    fn new(words: &str) -> Running {
        let mut command = command(&format!("run {words}"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for_name(&child, "modes");
        Running(child)
    }

    fn attach(&self, folder: &TempDir, words: &str) -> Outcome {
        let file = folder.path().join("file.trace").display().to_string();
        let id = self.0.id().to_string();
        let words = ["trace", "-o", &file, "--attach", &id].into_iter().chain(words.split_whitespace());
        outcome(pathlength(words))
    }

    /// Whether it uses processor time.
    fn works(&self) -> bool {
        let ticks = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
            stat.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse::<u64>().unwrap()
        };
        let before = ticks();
        (0..100).any(|_| {
            sleep(Duration::from_millis(20));
            ticks() > before
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The trace in the folder: whether it is whole, its marks but for those of order and of mappings, and its instructions.
fn read(folder: &TempDir) -> (Vec<Mark>, u64) {
    let trace = Trace::open(&folder.path().join("file.trace")).unwrap();
    assert_eq!(trace.problems(), []);
    assert_eq!(trace.header().cpu, isa::CpuModel::Ev67.to_string());
    let (mut marks, mut words) = (Vec::new(), Vec::new());
    for chunk in 0..trace.chunks().len() {
        trace.read(chunk, &mut words).unwrap();
        for entry in Entries::new(&words, trace.shapes()) {
            if let Entry::Mark(mark) = entry
                && !matches!(mark, Mark::Order(_) | Mark::Mapping(_))
            {
                marks.push(mark);
            }
        }
    }
    (marks, trace.chunks().iter().map(|chunk| chunk.instructions).sum())
}

#[test]
fn units_of_a_running_program_are_recorded_and_it_goes_on() {
    let program = Running::new(":ev56/modes endless");
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        program.attach(&folder, "--unit work --skip 5 --units 3").quiet_success();
        let (marks, instructions) = read(&folder);
        let unit = |number| [Mark::Gap, Mark::UnitBegins(number), Mark::UnitEnds(number)];
        assert_eq!(marks, (5..8).flat_map(unit).collect::<Vec<_>>());
        assert!((100..1000).contains(&instructions), "{instructions}");
        assert!(program.works());
    }
    program.attach(&folder, "--until 100000").quiet_success();
    assert_eq!(read(&folder).1, 100_000);
    for place in ["work", "work+24"] {
        program.attach(&folder, &format!("--values --from {place} --until 1000")).quiet_success();
        assert_eq!(read(&folder).1, 1000);
        let trace = Trace::open(&folder.path().join("file.trace")).unwrap();
        let work = trace.functions().iter().find(|function| function.name == "work").unwrap();
        let offset = trace.blocks()[0].address - work.address;
        // A function may be entered after the instructions that compute its global pointer.
        assert!(if place == "work" { [0, 8].contains(&offset) } else { offset == 24 }, "{offset}");
    }
    assert!(program.works());
}

#[test]
fn control_c_ends_the_recording_and_not_the_program() {
    let program = Running::new(":ev56/modes endless");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.trace");
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let id = program.0.id().to_string();
        let _ = std::fs::remove_file(&file);
        let mut attach =
            pathlength(["trace".as_ref(), "-o".as_ref(), file.as_os_str(), "--attach".as_ref(), id.as_ref()]);
        let mut attach = attach.stderr(Stdio::null()).spawn().unwrap();
        wait_for_records(&file);
        // SAFETY: the child has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(attach.id() as i32, signal) }, 0);
        let status = ends_within(&mut attach, Duration::from_secs(20)).expect("the recording goes on");
        assert_eq!(status.code(), Some(0));
        assert!(read(&folder).1 > 1000);
        assert!(program.works());
    }
    // Killed, it cannot say goodbye; the program notices.
    std::fs::remove_file(&file).unwrap();
    let id = program.0.id().to_string();
    let mut attach =
        pathlength(["trace".as_ref(), "-o".as_ref(), file.as_os_str(), "--attach".as_ref(), id.as_ref()]);
    let mut attach = attach.spawn().unwrap();
    wait_for_records(&file);
    attach.kill().unwrap();
    attach.wait().unwrap();
    assert!(program.works());
    program.attach(&folder, "--unit work --units 1").quiet_success();
    assert_eq!(read(&folder).0.len(), 3);
}

/// Until records have arrived in a file.
fn wait_for_records(file: &Path) {
    for _ in 0..1000 {
        if Trace::open(file).is_ok_and(|trace| !trace.chunks().is_empty()) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("nothing is recorded");
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let program = Running::new(":ev56/modes endless");
    let failure = program.attach(&folder, "--unit wrok").failure();
    assert!(failure.contains("no image of the program has a function 'wrok'"), "{failure}");
    let failure = program.attach(&folder, "--from nowhere").failure();
    assert!(failure.contains("no image of the program has a symbol 'nowhere'"), "{failure}");
    assert!(!folder.path().join("file.trace").exists(), "nothing was recorded");
    let file = folder.path().join("file.trace").display().to_string();
    let failure = run(&format!("trace -o {file} --attach 4000000")).failure();
    assert!(failure.contains("there is no process 4000000"), "{failure}");
    let failure = run(&format!("trace -o {file} --attach {}", std::process::id())).failure();
    assert!(failure.contains("is no Alpha program"), "{failure}");
    // Process 1 belongs to us if we are root, and is never a program on the engine.
    let failure = run(&format!("trace -o {file} --attach 1")).failure();
    // SAFETY: no memory is involved.
    let reported = if unsafe { libc::geteuid() } == 0 { "is no Alpha program" } else { "process 1 " };
    assert!(failure.contains(reported), "{failure}");
    let mut zombie = std::process::Command::new("true").spawn().unwrap();
    let state = format!("/proc/{}/stat", zombie.id());
    while !std::fs::read_to_string(&state).unwrap().contains(") Z ") {
        sleep(Duration::from_millis(1));
    }
    let failure = run(&format!("trace -o {file} --attach {}", zombie.id())).failure();
    assert!(failure.contains("has ended; its parent has not waited for it"), "{failure}");
    zombie.wait().unwrap();
    // What cannot be recorded leaves no trace.
    assert_eq!(crate::support::listing(folder.path()), [""; 0]);
    assert_eq!(run(&format!("trace -o {file} --attach me")).code(), 2);
    let id = program.0.id();
    let failure = run(&format!("trace -o {}/none/file --attach {id}", folder.path().display())).failure();
    assert!(failure.contains("No such file or directory"), "{failure}");
    let failure = run(&format!("trace -o /dev/full --until 1000 --attach {id}")).failure();
    assert!(failure.contains("No space left on device"), "{failure}");
    assert!(program.works());
}

/// A program that sleeps in a system call can be attached to, and its trace is consistent.
#[test]
fn programs_in_system_calls_are_met_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.trace").display().to_string();
    for call in ["nanosleep", "read", "futex", "epoll"] {
        let mut command = command(&format!("run :ev56/sleeps {call}"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut program = Running(child);
        wait_for_name(&program.0, "sleeps");
        // Wakes it up now and then, until it is gone.
        let mut input = program.0.stdin.take().unwrap();
        let waking = std::thread::spawn(move || {
            while input.write_all(b".").is_ok() {
                sleep(Duration::from_millis(10));
            }
        });
        for plan in ["--until 200", "--unit work --units 2", "--until 333"] {
            program.attach(&folder, plan).quiet_success();
            run(&format!("check {file}")).quiet_success();
            assert!(program.0.try_wait().unwrap().is_none(), "{call} was interrupted");
        }
        drop(program);
        waking.join().unwrap();
    }
}

#[test]
fn a_program_that_ends_ends_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Running::new(":ev56/modes endless");
    let file = folder.path().join("file.trace");
    let id = program.0.id().to_string();
    let mut attach =
        pathlength(["trace".as_ref(), "-o".as_ref(), file.as_os_str(), "--attach".as_ref(), id.as_ref()]);
    let mut attach = attach.spawn().unwrap();
    wait_for_records(&file);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(program.0.id() as i32, libc::SIGTERM) }, 0);
    assert!(ends_within(&mut program.0, Duration::from_secs(20)).is_some());
    let status = ends_within(&mut attach, Duration::from_secs(20)).expect("the recording goes on");
    assert_eq!(status.code(), Some(0));
    assert!(read(&folder).1 > 1000);
}
