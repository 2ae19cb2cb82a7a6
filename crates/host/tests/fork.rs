//! Forks with other flags than the C library's.

#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use pathlength_host::{CloneFlags, Errno};

/// The wait status of a child that runs `child`. A wait without __WCLONE does not find it.
fn status_of(how: CloneFlags, child: impl FnOnce() -> i32) -> i32 {
    let mask = pathlength_host::block_all();
    // SAFETY: nobody else forks, and the child ends in `child`.
    let process =
        unsafe { pathlength_host::fork(how) }.expect("a host with Syscall User Dispatch (Linux 5.11)");
    if process == 0 {
        pathlength_host::set_mask(0);
        // SAFETY: ends the child alone, by SIGALRM if it waits for a lock.
        unsafe {
            libc::alarm(10);
            libc::_exit(child())
        }
    }
    pathlength_host::set_mask(mask);
    let mut status = 0;
    // SAFETY: there is room for the status.
    unsafe {
        assert_eq!(libc::waitpid(process, &mut status, 0), -1, "it ends with SIGCHLD");
        assert_eq!(Errno::last(), Errno(libc::ECHILD));
        assert_eq!(libc::waitpid(process, &mut status, libc::__WCLONE), process);
    }
    status
}

/// Memory of many sizes, from the C library.
fn allocate() -> usize {
    let all: BTreeMap<usize, Vec<u8>> = (1..200).map(|size| (size, vec![1; 13 * size])).collect();
    all.values().map(Vec::len).sum()
}

/// Locks of the C library that other threads hold at the fork are free in the child.
#[test]
fn children_of_threaded_processes_have_sound_locks() {
    // All threads take the same locks.
    // SAFETY: no pointers are passed.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    let expected = allocate();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(allocate(), expected);
                }
            });
        }
        let forks = [0, libc::SIGURG].repeat(50).into_iter().map(|exit_signal| {
            let how = CloneFlags { flags: libc::CLONE_FS, exit_signal };
            status_of(how, || i32::from(allocate() != expected))
        });
        let failed = forks.into_iter().find(|&status| status != 0);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(failed, None, "a child's status");
    });
    assert_eq!(allocate(), expected);
}
