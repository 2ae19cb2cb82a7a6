//! With GDB itself, which finds the program and its libraries through us.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Debugged, eventually};
use crate::support::{ends_within, file, text};

const PROGRAM: &str = ":ev56/debugged";

/// A running GDB.
struct Gdb {
    child: Child,
    output: File,
}

impl Gdb {
    /// Lets GDB connect and carry out commands.
    fn start(debugged: &Debugged, commands: &str) -> Gdb {
        let output = file();
        let target = format!("target remote {}", debugged.address);
        let mut command = Command::new("gdb-multiarch");
        command.args(["-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", &target]);
        command.args(commands.split("; ").flat_map(|line| ["-ex", line]));
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output.try_clone().unwrap());
        Gdb { child: command.spawn().expect("gdb-multiarch is needed: run ./setup"), output }
    }

    /// Ctrl-C.
    fn interrupt(&self) {
        // SAFETY: GDB has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) }, 0);
    }

    /// What it has said when it is through.
    fn said(mut self) -> String {
        if ends_within(&mut self.child, Duration::from_secs(60)).is_none() {
            self.child.kill().unwrap();
            panic!("GDB goes on: {}", text(&self.output));
        }
        text(&self.output)
    }
}

fn gdb(debugged: &Debugged, commands: &str) -> String {
    Gdb::start(debugged, commands).said()
}

/// As [`gdb`], with an interrupt after each `echo going on\n`, when the program runs again.
fn gdb_interrupted(debugged: &Debugged, commands: &str) -> String {
    let gdb = Gdb::start(debugged, commands);
    for round in 1..=commands.split("; ").filter(|&command| command == GOING_ON).count() {
        eventually("goes on", || text(&gdb.output).matches("going on\n").count() == round);
        eventually("works", || debugged.works());
        gdb.interrupt();
    }
    gdb.said()
}

/// The text before a command that is to be interrupted.
const GOING_ON: &str = "echo going on\\n";

/// Asserts that the parts are in the text, in this order.
#[track_caller]
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else { panic!("no {part:?} where it should be in:\n{text}") };
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn breakpoints_backtraces_and_values() {
    let debugged = Debugged::new(&format!("{PROGRAM} sum"));
    let said = gdb(
        &debugged,
        "info sharedlibrary; break add; continue; backtrace; continue 3; print a; print $a0; finish; tbreak add if a == 8; delete 1; continue; info symbol $pc; info sharedlibrary; info auxv; continue",
    );
    assert_in_order(
        &said,
        &[
            "ld-linux",
            "Breakpoint 1, add (a=0, b=0)",
            "#0  add",
            "#1  0x",
            " in sum (n=10)",
            " in main (argc=2",
            "Breakpoint 1, add (a=3, b=3)",
            "$1 = 3",
            "$2 = 3",
            "Value returned is $3 = 6",
            "Temporary breakpoint 2, add (a=8, b=28)",
            "add + ",
            "in section .text",
            "libc.so.6.1",
            "AT_ENTRY",
            "exited with code 03",
        ],
    );
    assert_eq!(debugged.ending(), (3, "45 constant\n".into()));
}

/// The builds of a program whose functions are called through pointers, and by callers that share their global pointer
/// and enter after the instructions that compute it.
const ENTRIES: [&str; 4] = ["entries-O0-g", "entries-O1-g", "entries-O2-g", "entries-O2-g0"];

/// What the program prints.
const ENTERED: &str = "45 87\n";

#[test]
fn breakpoints_at_functions_stop_either_way_in() {
    for name in ENTRIES {
        for kind in if name == "entries-O2-g" { &["break", "hbreak"][..] } else { &["break"] } {
            let debugged = Debugged::new(&format!(":ev56/{name}"));
            let rounds = "continue; print $a0; ".repeat(7);
            let said = gdb(&debugged, &format!("{kind} *add; {rounds}info breakpoints; continue"));
            let arguments = [1, 2, 3, 10, 1, 2, 23].iter().zip(1..);
            let arguments: Vec<String> =
                arguments.map(|(value, number)| format!("${number} = {value}")).collect();
            assert_in_order(&said, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
            assert_in_order(&said, &["already hit 7 times", "exited normally"]);
            assert_eq!(debugged.ending(), (0, ENTERED.into()), "{kind} {name}: {said}");
            // By name: where GDB puts it depends on the build.
            let debugged = Debugged::new(&format!(":ev56/{name}"));
            let said =
                gdb(&debugged, &format!("{kind} add; {}info breakpoints; continue", "continue; ".repeat(7)));
            assert_in_order(&said, &["already hit 7 times", "exited normally"]);
            assert_eq!(debugged.ending(), (0, ENTERED.into()), "{kind} {name}: {said}");
        }
    }
}

#[test]
fn a_function_that_was_entered_behind_its_beginning_seems_to_be_at_it() {
    for name in ENTRIES {
        let debugged = Debugged::new(&format!(":ev56/{name}"));
        let said = gdb(
            &debugged,
            "break *count_down if $a0 == 1; tbreak *add if $a0 == 3; continue; info symbol $pc; stepi 3; info symbol $pc; \
             continue; info symbol $pc; set var $t3 = 5; print $a0; print ((long (*)(long)) add)(4); print $a0; \
             print $pc == (long) count_down; stepi 3; info symbol $pc; finish; delete; continue",
        );
        assert_in_order(
            &said,
            &[
                "Temporary breakpoint 2",
                "add in section .text",
                "add + 12 in section .text",
                "Breakpoint 1",
                "count_down in section .text",
                "$1 = 1",
                "$2 = 21",
                "$3 = 1",
                "$4 = 1",
                "count_down + 12 in section .text",
                " in count_down (",
                "exited normally",
            ],
        );
        assert_eq!(debugged.ending(), (0, "53 103\n".into()), "{name}: {said}");
    }
}

/// A thread that enters by the first entry stops there, and not again at the second one.
#[test]
fn a_function_that_was_entered_at_its_beginning_stops_once() {
    for step in ["", "stepi; ", "stepi 2; "] {
        let debugged = Debugged::new(":ev56/entries-O2-g");
        let said = gdb(
            &debugged,
            &format!("break *add if $a0 == 10; continue; info symbol $pc; {step}continue; info breakpoints"),
        );
        assert_in_order(
            &said,
            &["Breakpoint 1", "add in section .text", "exited normally", "already hit 1 time"],
        );
        assert_eq!(debugged.ending(), (0, ENTERED.into()), "{said}");
    }
}

#[test]
fn a_step_into_a_function_that_is_entered_behind_its_beginning() {
    for name in ["entries-O0-g", "entries-O1-g", "entries-O2-g"] {
        let debugged = Debugged::new(&format!(":ev56/{name}"));
        let said = gdb(&debugged, "break forward; continue; step; step; finish; delete; continue");
        assert_in_order(&said, &["Breakpoint 1, forward", "add (n=", "exited normally"]);
        assert_eq!(debugged.ending(), (0, ENTERED.into()), "{name}: {said}");
    }
}

#[test]
fn breakpoints_in_code_that_is_compiled_already() {
    let debugged = Debugged::new(&format!("{PROGRAM} threads"));
    let said = gdb_interrupted(
        &debugged,
        "echo going on\\n; continue; break spin; continue; print counter > 0; delete; echo going on\\n; continue; kill",
    );
    assert_in_order(&said, &["SIGINT", "hit Breakpoint 1, spin ()", "$1 = 1", "SIGINT"]);
    assert_eq!(debugged.ending(), (128 + libc::SIGKILL, String::new()));
}

#[test]
fn what_is_written_is_what_the_program_finds() {
    let debugged = Debugged::new(&format!("{PROGRAM} sum"));
    let said = gdb(
        &debugged,
        "break add if a == 5; continue; set var constant[0] = 'C'; set var $fp = $fp; set var b = 1000; set var $f2 = 1.5; print $f2; print $zero = 1; print $zero; print total; print add(1, 2); continue",
    );
    assert_in_order(&said, &["Breakpoint 1, add (a=5, b=10)", "$1 = 1.5", "$3 = 0", "$4 = 10", "$5 = 3"]);
    assert_eq!(debugged.ending(), (3, "1035 Constant\n".into()));
}

#[test]
fn code_that_is_written_is_executed() {
    let debugged = Debugged::new(&format!("{PROGRAM} sum"));
    // addq a0, 1, v0; ret: where add() begins, after it has run often enough to be compiled, or not.
    let said = gdb(
        &debugged,
        "break *(add + 8) if $a0 == 7; continue; set var {int} $pc = 0x42003400; set var {int} ($pc + 4) = 0x6bfa8001; continue",
    );
    assert_in_order(&said, &["Breakpoint 1", "exited with code 03"]);
    assert_eq!(debugged.ending(), (3, "10 constant\n".into()));
}

#[test]
fn watchpoints() {
    let debugged = Debugged::new(&format!("{PROGRAM} watch"));
    let said = gdb(
        &debugged,
        "break main; continue; watch watched; continue; delete 2; rwatch watched; continue; delete 3; awatch watched; continue; continue; continue",
    );
    assert_in_order(
        &said,
        &[
            "Hardware watchpoint 2: watched",
            "Old value = 0",
            "New value = 5",
            "Hardware read watchpoint 3: watched",
            "Value = 5",
            "Hardware access (read/write) watchpoint 4: watched",
            "Old value = 5",
            "New value = 6",
            "Value = 6",
            "exited with code 03",
        ],
    );
    assert_eq!(debugged.ending(), (3, "6\n".into()));
}

#[test]
fn steps() {
    let debugged = Debugged::new(&format!("{PROGRAM} sum"));
    let said = gdb(
        &debugged,
        "break sum; continue; next; step; backtrace 1; print $first = $pc; stepi; print $pc - $first; nexti 2; print $pc - $first; finish; until 27; advance printf; continue",
    );
    assert_in_order(
        &said,
        &[
            "Breakpoint 1, sum",
            "add (a=0, b=0)",
            "$2 = 4",
            "$3 = 12",
            "Value returned is $4 = 0",
            "exited with code 03",
        ],
    );
    assert_eq!(debugged.ending(), (3, "45 constant\n".into()));
}

#[test]
fn interrupts_of_an_endless_loop() {
    let debugged = Debugged::new(&format!("{PROGRAM} endless"));
    let said = gdb_interrupted(
        &debugged,
        "echo going on\\n; continue; backtrace; stepi; echo going on\\n; continue; set var go_on = 1; continue",
    );
    assert_in_order(
        &said,
        &["received signal SIGINT", " in main (", "received signal SIGINT", "exited with code 03"],
    );
    assert_eq!(debugged.ending(), (3, String::new()));
}

#[test]
fn a_fault_stops_the_program_where_it_is() {
    let debugged = Debugged::new(&format!("{PROGRAM} crash"));
    let said = gdb(&debugged, "continue; print pointer; x/i $pc; continue");
    assert_in_order(
        &said,
        &["SIGSEGV", "crash (pointer=0x10)", "$1 = (int *) 0x10", "stl", "terminated with signal SIGSEGV"],
    );
    let outcome = debugged.outcome();
    assert_eq!(outcome.code(), 128 + libc::SIGSEGV);
    assert!(outcome.stderr.contains("ended by SIGSEGV (memory fault) at address 0x10"), "{}", outcome.stderr);
    // Past it.
    let debugged = Debugged::new(&format!("{PROGRAM} crash"));
    gdb(&debugged, "continue; set var $pc = $pc + 4; signal 0");
    assert_eq!(debugged.ending(), (3, "not crashed\n".into()));
}

#[test]
fn signals_are_told_and_passed_on_or_not() {
    for (commands, printed, stop) in [
        ("continue; continue", "got 30\n", "received signal SIGUSR1"),
        ("continue; signal 0", "got 0\n", "received signal SIGUSR1"),
        ("handle SIGUSR1 nostop noprint pass; continue", "got 30\n", "exited with code 03"),
        ("break handler; continue; continue; continue", "got 30\n", "Breakpoint 1, handler (signal=30)"),
        // One that did not arrive.
        (
            "break handler; break raise; continue; signal SIGUSR1; continue; signal 0",
            "got 30\n",
            "Breakpoint 1",
        ),
    ] {
        let debugged = Debugged::new(&format!("{PROGRAM} signal"));
        let said = gdb(&debugged, commands);
        assert!(said.contains(stop), "{commands:?}: {said}");
        assert_eq!(debugged.ending(), (3, printed.into()), "{commands:?}: {said}");
    }
    let debugged = Debugged::new(&format!("{PROGRAM} signal"));
    assert!(gdb(&debugged, "continue; signal SIGTERM").contains("terminated with signal SIGTERM"));
    assert_eq!(debugged.ending(), (128 + libc::SIGTERM, String::new()));
}

#[test]
fn threads() {
    let debugged = Debugged::new(&format!("{PROGRAM} threads"));
    let said = gdb_interrupted(
        &debugged,
        "echo going on\\n; continue; thread apply all -q print 7; info threads; break spin thread 3; continue; print $_thread; delete; thread 2; set scheduler-locking on; print $place = $pc; stepi; stepi; print $pc != $place; set scheduler-locking off; set var go_on = 1; continue",
    );
    assert_in_order(
        &said,
        &[
            "SIGINT",
            "$1 = 7",
            "$2 = 7",
            "$3 = 7",
            "1    Thread",
            "(debugged)",
            "2    Thread",
            "3    Thread",
            "Thread 3",
            "hit Breakpoint 1, spin",
            "$4 = 3",
            "$6 = 1",
            "exited with code 03",
        ],
    );
    assert_eq!(debugged.ending(), (3, "joined\n".into()));
}

#[test]
fn a_system_call_under_way_is_left_alone() {
    let mut debugged = Debugged::at("0", &format!("{PROGRAM} read"), Stdio::piped());
    let mut input = debugged.child.stdin.take().unwrap();
    let gdb = Gdb::start(&debugged, "continue; info symbol $pc; set var $t0 = 1; continue");
    let call = format!("/proc/{}/syscall", debugged.child.id());
    let reads = format!("{} 0x0 ", libc::SYS_read);
    eventually("reads", || std::fs::read_to_string(&call).unwrap().starts_with(&reads));
    gdb.interrupt();
    eventually("stops", || text(&gdb.output).contains("SIGINT"));
    input.write_all(b"x").unwrap();
    assert_in_order(
        &gdb.said(),
        &["SIGINT", "in section .text of", "Could not write register", "exited with code 03"],
    );
    assert_eq!(debugged.ending(), (3, "1 x\n".into()));
}

#[test]
fn children_and_successors() {
    let debugged = Debugged::new(&format!("{PROGRAM} fork"));
    let said = gdb(&debugged, "break sum; continue");
    assert!(!said.contains("Breakpoint 1, "), "{said}");
    assert_eq!(debugged.ending(), (3, "child 6\n".into()));
    let debugged = Debugged::new(&format!("{PROGRAM} execute"));
    let said = gdb(&debugged, "break sum; continue; continue; delete; continue");
    assert_in_order(&said, &["SIGTRAP", "Breakpoint 1, sum (n=10)", "exited with code 03"]);
    assert_eq!(debugged.ending(), (3, "45 constant\n".into()));
}

#[test]
fn detached_programs_go_on() {
    let debugged = Debugged::new(&format!("{PROGRAM} sum"));
    let said = gdb(&debugged, "break add; continue; detach");
    assert!(said.contains("detached"), "{said}");
    assert_eq!(debugged.ending(), (3, "45 constant\n".into()));
    // At the end of its commands GDB detaches.
    let debugged = Debugged::new(&format!("{PROGRAM} sum"));
    gdb(&debugged, "break add; continue");
    assert_eq!(debugged.ending(), (3, "45 constant\n".into()));
}

#[test]
fn symbols_of_position_independent_programs_and_libraries() {
    let debugged = Debugged::new(":ev56/anywhere sum");
    let said = gdb(&debugged, "break add if a == 2; continue; backtrace; delete; continue");
    assert_in_order(
        &said,
        &["Breakpoint 1, add (a=2, b=1)", " in sum (n=10)", " in main (", "exited with code 03"],
    );
    assert_eq!(debugged.ending(), (3, "45 constant\n".into()));
    let debugged = Debugged::new(":ev5/halves");
    let said = gdb(&debugged, "break half; continue; backtrace; delete; continue");
    assert_in_order(&said, &["Breakpoint 1, ", "half (number=", " in main () at ", "exited normally"]);
    assert_eq!(debugged.ending(), (0, String::new()));
}
