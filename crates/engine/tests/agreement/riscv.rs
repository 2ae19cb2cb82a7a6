//! RISC-V programs on the engine: the test programs of the other guest, too, which must behave as natively, or as under
//! qemu-riscv64; and programs of one guest that execute those of the other.

use crate::agreement;

macro_rules! programs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            agreement::agree_on_riscv(stringify!($name));
        })*
    };
}

programs! {
    integer
    floating
    files
    signals
    feature_code
    feature_faults
    feature_signals
    feature_stacks
    thread_locks
    thread_memory
}

macro_rules! other_programs {
    ($($name:ident)*) => {
        $(#[test]
        #[ignore = "takes minutes with the others"]
        fn $name() {
            agreement::agree_on_riscv(stringify!($name));
        })*
    };
}

other_programs! {
    bytes
    sort
    time
    sockets
    events
    sharing
    surroundings
    executing
    limits
    processes
    threads
    thread_contention
    thread_files
    thread_futexes
    thread_library
    thread_processes
    thread_signals
    feature_arithmetic
    feature_clone
    feature_clone_shared
    feature_descriptors
    feature_discard
    feature_forged
    feature_processes
    feature_reach
    feature_registers
    feature_self
    feature_signal_files
    feature_tap
    feature_unaligned
    kernel_contents
    newer_calls
    timed_waits
    trampolines
    trampolines_late
}

/// Prints where it is, and executes the program of its first argument with the others: in its place, in a process of its own, or in
/// a forked process that has threads.
const RELAY: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
static void *wait_for_ever(void *unused) { for (;;) pause(); return unused; }
int main(int count, char **arguments) {
    struct utsname names;
    uname(&names);
    printf("%s %d", names.machine, count);
    struct sigaction action;
    sigaction(SIGUSR1, NULL, &action);
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    printf(" %d %d\n", action.sa_handler == SIG_IGN, sigismember(&blocked, SIGUSR2));
    fflush(stdout);
    if (count < 3) return 7;
    signal(SIGUSR1, SIG_IGN);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    pthread_t thread;
    if (strchr(arguments[1], 't')) pthread_create(&thread, NULL, wait_for_ever, NULL);
    if (strchr(arguments[1], 'f') && fork() != 0) {
        int status;
        wait(&status);
        printf("%s: its child exited with %d\n", names.machine, WEXITSTATUS(status));
        return 8;
    }
    execv(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 9;
}
"#;

#[test]
fn programs_of_each_guest_execute_those_of_the_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("relay.c");
    std::fs::write(&source, RELAY).expect("writable");
    let [alpha, riscv] = ["alpha", "riscv64"].map(|machine| {
        let program = directory.path().join(machine);
        let mut compiler = std::process::Command::new(format!("{machine}-linux-gnu-gcc"));
        let built = compiler.arg("-pthread").arg("-o").arg(&program).arg(&source).status();
        assert!(built.expect("a compiler for each guest").success());
        program.to_str().expect("UTF-8").to_owned()
    });
    let cases = [
        (vec![&*alpha, "x", &*riscv], "alpha 3 0 0\nriscv64 1 1 1\n", 7),
        (vec![&*riscv, "t", &*alpha, "x", &*riscv], "riscv64 5 0 0\nalpha 3 1 1\nriscv64 1 1 1\n", 7),
        (
            vec![&*alpha, "tf", &*riscv, "f", &*alpha],
            "alpha 5 0 0\nriscv64 3 1 1\nalpha 1 1 1\nriscv64: its child exited with 7\nalpha: its child exited with 8\n",
            8,
        ),
    ];
    for (command, expected, status) in cases {
        for way in ["0", "count0"] {
            let mut engine = std::process::Command::new(agreement::engine());
            let output = engine.env("PATHLENGTH_HOT", way).args(&command).output().expect("the engine runs");
            let written = String::from_utf8_lossy(&output.stdout).into_owned();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                (written.as_str(), output.status.code()),
                (expected, Some(status)),
                "{command:?} {said}"
            );
        }
    }
}
