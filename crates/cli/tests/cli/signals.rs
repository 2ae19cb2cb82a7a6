//! Ctrl-C and the like while a program runs that would never end.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Outcome, command, ends_within, file, listing, text};

/// Sends the signal when the program runs.
fn interrupted(mut command: Command, signal: i32) -> Outcome {
    let (stdout, stderr) = (file(), file());
    command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
    // The tests themselves may run where signals are ignored, as by nohup.
    // SAFETY: the function makes one call, which is safe after fork.
    unsafe {
        command.pre_exec(move || {
            libc::signal(signal, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    wait_for_work(child.id());
    // SAFETY: the child has not been waited for, so the number is its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    let status = ends_within(&mut child, Duration::from_secs(20)).unwrap_or_else(|| {
        child.kill().unwrap();
        panic!("{command:?} goes on after signal {signal}");
    });
    let has_format = command.get_args().any(|word| word == "--format");
    Outcome { status, stdout: text(&stdout), stderr: text(&stderr), has_format }
}

/// Until the process has used a third of a second of processor time: then the guest is in its loop.
fn wait_for_work(process: u32) {
    for _ in 0..2000 {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let user = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11));
        if user.is_some_and(|ticks| ticks.parse::<u32>().unwrap() > 33) {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("the program does not run");
}

#[test]
fn what_was_recorded_until_the_signal_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.trace");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
        let outcome =
            interrupted(command(&format!("trace -o {} :ev5/modes endless", path.display())), signal);
        assert_eq!(outcome.status.signal(), Some(signal));
        let trace = trace::Trace::open(&path).unwrap();
        assert_eq!(trace.problems(), []);
        let recorded: u64 = trace.chunks().iter().map(|chunk| chunk.instructions).sum();
        assert!(recorded > 1_000_000, "{recorded}");
    }
}

#[test]
fn run_ends_by_the_signal_and_says_nothing() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let outcome = interrupted(command("run :ev5/modes endless"), signal);
        assert_eq!(
            (outcome.code(), outcome.stdout.as_str(), outcome.stderr.as_str()),
            (128 + signal, "", "")
        );
    }
}

#[test]
fn quit_tells_where_the_program_was() {
    let outcome = interrupted(command("run :ev5/modes endless"), libc::SIGQUIT);
    assert_eq!(outcome.code(), 128 + libc::SIGQUIT);
    assert!(outcome.stderr.contains("modes!work+") || outcome.stderr.contains("modes!main+"));
}

#[test]
fn count_shows_what_it_counted_so_far_and_ends_by_the_signal() {
    for words in ["count --by image", "count --unit work --by image"] {
        let outcome = interrupted(command(&format!("{words} --format csv :ev5/modes endless")), libc::SIGINT);
        assert_eq!(outcome.code(), 128 + libc::SIGINT);
        assert!(outcome.stderr.ends_with("the program was ended by SIGINT (interrupt)\n"));
        assert!(outcome.stdout.contains("\nmodes,"), "{}", outcome.stdout);
        assert!(outcome.stdout.lines().last().unwrap().starts_with("total,"));
    }
}

#[test]
fn models_show_partial_results_and_end_by_the_signal() {
    let words = [
        ("caches --machine alphastation500 --host-processors 1", "icache "),
        ("caches --machine qemu --by function", "work "),
        ("mrc --streams code", "fully associative"),
        ("time --host-processors 1", "replay trap "),
        ("time --by function", "work "),
        ("strides --by function", "work "),
    ];
    for (words, expected) in words {
        let outcome = interrupted(command(&format!("{words} :ev5/modes endless")), libc::SIGINT);
        assert_eq!(outcome.code(), 128 + libc::SIGINT, "{words}");
        assert!(outcome.stderr.ends_with("the program was ended by SIGINT (interrupt)\n"), "{words}");
        let (tables, _) = outcome.stderr.rsplit_once("pathlength: ").unwrap();
        assert!(tables.contains(expected), "{words}: {tables}");
        let note = tables.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            note.ends_with("A signal ended the program: these are its results until then."),
            "{words}: {note}"
        );
    }
}

#[test]
fn compare_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command("compare --format csv -o tables :ev5/modes :ev56/modes -- endless");
    command.current_dir(&folder);
    let outcome = interrupted(command, libc::SIGINT);
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (128 + libc::SIGINT, ""));
    assert!(listing(folder.path()).is_empty());
}
