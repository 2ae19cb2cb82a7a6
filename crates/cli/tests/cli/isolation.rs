//! A program does its worst to all descriptors that are not its own: nothing of the command's is among them.

use std::os::unix::process::CommandExt;

use trace::Trace;

use crate::support::{self, outcome, run};

#[test]
fn a_program_finds_no_descriptor_of_the_command_and_damages_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.trace");
    let commands = ["run", "count", "caches", "time", "strides", &format!("trace -o {}", file.display())];
    for command in commands {
        let mut command = support::command(&format!("{command} :ev56/reaches"));
        // What the tests themselves were started with is not the command's.
        // SAFETY: a plain system call, without memory.
        unsafe {
            command.pre_exec(|| {
                libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
                Ok(())
            });
        }
        let shown = format!("{command:?}");
        let outcome = outcome(command);
        let printed = outcome.quiet_success();
        assert!(printed.contains("reached 0\n"), "{shown}: {printed}");
    }
    let trace = Trace::open(&file).unwrap();
    assert_eq!(trace.problems(), []);
    run(&format!("check {}", file.display())).quiet_success();
}

/// Another process of the program exchanges a link that is checked and then opened.
#[test]
fn a_name_that_changes_leads_to_no_descriptor_of_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file.trace");
    let ways = ["read", "by path", "with threads", "by path with threads"].map(|way| format!("{way}: 1 1"));
    let expected: String = ways
        .iter()
        .map(String::as_str)
        .chain(["truncate: 1"])
        .map(|way| format!("{way}, others 0\n"))
        .collect();
    for how in [format!("trace --unit main -o {}", file.display()), "run".into()] {
        // Its outputs are pipes, which nobody can truncate.
        let output = support::command(&format!("{how} :ev56/races")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{how}: {output:?}");
    }
}
