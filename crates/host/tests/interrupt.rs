//! Signals that interrupt work. They are handled by the whole process, so that this is the only test of its program.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::time::{Duration, Instant};

use pathlength_host::interrupt::InterruptGuard;

#[test]
fn a_signal_ends_a_command_with_all_its_processes_and_is_forgotten_later() {
    let guard = InterruptGuard::new();
    assert!(!guard.is_interrupted());
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 100 & wait"]).process_group(0);
    let began = Instant::now();
    let mut shell = shell.spawn().unwrap();
    let group = -(shell.id() as i32);
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: accesses no memory.
        unsafe { libc::kill(libc::getpid(), libc::SIGINT) };
    });
    let status = guard.wait(&mut shell).unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert!(began.elapsed() < Duration::from_secs(50));
    assert!(guard.is_interrupted());
    // The shell's child was killed, too. It is an orphan now: the group is gone when init has reaped it.
    let is_gone = || {
        std::thread::sleep(Duration::from_millis(10));
        // SAFETY: accesses no memory.
        unsafe { libc::kill(group, 0) != 0 }
    };
    assert!((0..1000).any(|_| is_gone()));
    drop(guard);
    assert!(!InterruptGuard::new().is_interrupted());
}
