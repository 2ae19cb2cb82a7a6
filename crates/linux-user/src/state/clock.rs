//! Clocks: the virtual one, and conversions.

use guest_memory::Memory;

use crate::state::fd;

/// Nanoseconds per second.
pub const SECOND: u64 = 1_000_000_000;
/// 2026-01-01T00:00:00Z, the start of the virtual calendar, in seconds since 1970.
pub const BEGINNING: u64 = 1_767_225_600;
/// The virtual monotonic clock at the start of a program, in seconds.
pub const UPTIME: u64 = 1000;

/// The step, in nanoseconds, by which the virtual clock advances while the program waits for others. A shorter wait
/// does not advance it.
pub const STEP: u64 = 10_000_000;

/// The virtual time that has passed in addition to that of instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualClock {
    pub(crate) slept: u64,
    /// The host's time waited that has not filled a step.
    pub(crate) waiting: u64,
}

/// True for a host call in which a program waits for a user or another process, but not for its own threads, whose
/// instructions the clock counts, for the end of its children, or for disks.
pub fn for_somebody_else(number: libc::c_long, arguments: &[u64; 6], memory: &Memory) -> bool {
    let of_descriptor = || {
        let is_stream = |kind| ![libc::S_IFREG, libc::S_IFDIR, libc::S_IFBLK].contains(&kind);
        fd::kind(arguments[0] as i32).is_some_and(is_stream)
    };
    match number {
        libc::SYS_read | libc::SYS_readv => of_descriptor(),
        // Only a futex in shared memory can be woken by another process.
        libc::SYS_futex => {
            let word = memory.guest(arguments[0] as *const u8);
            memory.region_at(word).is_some_and(|(_, region)| region.shared)
        }
        libc::SYS_ppoll
        | libc::SYS_pselect6
        | libc::SYS_epoll_pwait2
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_accept4
        | libc::SYS_semtimedop
        | libc::SYS_msgrcv
        | libc::SYS_msgsnd
        | libc::SYS_mq_timedreceive
        | libc::SYS_mq_timedsend
        | libc::SYS_rt_sigsuspend
        | libc::SYS_rt_sigtimedwait
        | libc::SYS_flock
        | libc::SYS_fcntl => true,
        _ => false,
    }
}

/// Nanoseconds on a clock of the host.
pub fn host_time(clock: i32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// The two words of a timespec.
pub fn timespec(nanoseconds: u64) -> [u64; 2] {
    [nanoseconds / SECOND, nanoseconds % SECOND]
}

/// The two words of a timeval.
pub fn timeval(nanoseconds: u64) -> [u64; 2] {
    [nanoseconds / SECOND, nanoseconds % SECOND / 1000]
}
