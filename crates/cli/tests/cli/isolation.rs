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
    let trace = format!("trace --unit main -o {}", file.display());
    for (how, is_old) in [(trace.as_str(), false), ("run", true)] {
        let mut command = support::command(&format!("{how} :ev56/races"));
        if is_old {
            forbid_openat2(&mut command);
        }
        // Its outputs are pipes, which nobody can truncate.
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{how}: {output:?}");
    }
}

/// Makes a host before Linux 5.6 of this one, for a command: openat2 is no system call.
fn forbid_openat2(command: &mut std::process::Command) {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        // The number is the first field of `struct seccomp_data`.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_openat2 as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: the function makes two calls, which are safe after fork; the filter outlives them.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            let is_set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0;
            if is_set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
}
