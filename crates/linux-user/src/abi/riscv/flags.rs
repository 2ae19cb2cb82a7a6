//! The generic flag words of Linux (`asm-generic/fcntl.h`, `asm-generic/mman.h`).

use crate::abi::flags::FlagBits;

#[cfg(target_arch = "x86_64")]
const HOST_LARGEFILE: u64 = 0o100000;
#[cfg(target_arch = "aarch64")]
const HOST_LARGEFILE: u64 = 0o400000;

/// `O_*` of open and fcntl. Hosts such as aarch64 have others for four of them.
pub const OPEN: FlagBits = FlagBits {
    pairs: &[
        (0o40000, libc::O_DIRECT as u64),
        (0o100000, HOST_LARGEFILE),
        (0o200000, libc::O_DIRECTORY as u64),
        (0o400000, libc::O_NOFOLLOW as u64),
    ],
    same: (libc::O_ACCMODE
        | libc::O_CREAT
        | libc::O_EXCL
        | libc::O_NOCTTY
        | libc::O_TRUNC
        | libc::O_APPEND
        | libc::O_NONBLOCK
        | libc::O_SYNC
        | libc::O_ASYNC
        | libc::O_NOATIME
        | libc::O_CLOEXEC
        | libc::O_PATH
        | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64,
};

/// The flags that eventfd, signalfd, timerfd, epoll, pipe2 and dup3 take: O_CLOEXEC, O_NONBLOCK,
/// O_DIRECT, and bit 0 for EFD_SEMAPHORE.
pub const DESCRIPTOR: FlagBits = FlagBits {
    pairs: &[(0o40000, libc::O_DIRECT as u64)],
    same: (libc::O_CLOEXEC | libc::O_NONBLOCK | 1) as u64,
};

/// A socket's type with SOCK_NONBLOCK and SOCK_CLOEXEC in it.
pub const SOCKET_TYPE: FlagBits =
    FlagBits { pairs: &[], same: (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK | 0xf) as u64 };

/// `MAP_*` of mmap, without MAP_FIXED_NOREPLACE and MAP_FIXED, which the engine handles itself.
pub const MAP: FlagBits = FlagBits {
    pairs: &[],
    same: (libc::MAP_ANONYMOUS
        | libc::MAP_LOCKED
        | libc::MAP_NORESERVE
        | libc::MAP_POPULATE
        | libc::MAP_HUGETLB) as u64
        | 0xf,
};

/// Types, MAP_FIXED, MAP_ANONYMOUS, MAP_GROWSDOWN to MAP_HUGETLB, and the sizes of large pages.
pub const MAP_VALIDATED: u64 = 0x7c07_f933;

/// `MCL_*` of mlockall.
pub const LOCK_ALL: FlagBits = FlagBits { pairs: &[], same: 7 };

/// `MS_*` of msync.
pub const SYNC: FlagBits = FlagBits { pairs: &[], same: 7 };
