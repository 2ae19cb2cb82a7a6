//! Conversion tables of flag words whose bits differ on Alpha.

use crate::abi::flags::FlagBits;

#[cfg(target_arch = "x86_64")]
const HOST_LARGEFILE: u64 = 0o100000;
#[cfg(target_arch = "aarch64")]
const HOST_LARGEFILE: u64 = 0o400000;
/// The bit of O_SYNC that is not in O_DSYNC.
const HOST_SYNC: u64 = (libc::O_SYNC & !libc::O_DSYNC) as u64;
/// The bit of O_TMPFILE that is not in O_DIRECTORY.
const HOST_TMPFILE: u64 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;

/// `O_*` of open and fcntl.
pub const OPEN: FlagBits = FlagBits {
    pairs: &[
        (0o1000, libc::O_CREAT as u64),
        (0o2000, libc::O_TRUNC as u64),
        (0o4000, libc::O_EXCL as u64),
        (0o10000, libc::O_NOCTTY as u64),
        (0o4, libc::O_NONBLOCK as u64),
        (0o10, libc::O_APPEND as u64),
        (0o40000, libc::O_DSYNC as u64),
        (0o20000000, HOST_SYNC),
        (0o100000, libc::O_DIRECTORY as u64),
        (0o200000, libc::O_NOFOLLOW as u64),
        (0o400000, HOST_LARGEFILE),
        (0o2000000, libc::O_DIRECT as u64),
        (0o4000000, libc::O_NOATIME as u64),
        (0o10000000, libc::O_CLOEXEC as u64),
        (0o20000, libc::O_ASYNC as u64),
        (0o40000000, libc::O_PATH as u64),
        (0o100000000, HOST_TMPFILE),
    ],
    same: libc::O_ACCMODE as u64,
};

/// The flags that eventfd, signalfd, timerfd, epoll, pipe2 and dup3 take: O_CLOEXEC, O_NONBLOCK,
/// O_DIRECT, and bit 0 for EFD_SEMAPHORE.
pub const DESCRIPTOR: FlagBits = FlagBits {
    pairs: &[
        (0o10000000, libc::O_CLOEXEC as u64),
        (0o4, libc::O_NONBLOCK as u64),
        (0o2000000, libc::O_DIRECT as u64),
    ],
    same: 1,
};

/// A socket's type with SOCK_NONBLOCK and SOCK_CLOEXEC in it.
pub const SOCKET_TYPE: FlagBits = FlagBits {
    pairs: &[(0o10000000, libc::SOCK_CLOEXEC as u64), (0x4000_0000, libc::SOCK_NONBLOCK as u64)],
    same: 0xf,
};

/// `MAP_*` of mmap, without MAP_FIXED_NOREPLACE and MAP_FIXED, which the engine handles itself.
pub const MAP: FlagBits = FlagBits {
    pairs: &[
        (0x10, libc::MAP_ANONYMOUS as u64),
        (0x8000, libc::MAP_LOCKED as u64),
        (0x10000, libc::MAP_NORESERVE as u64),
        (0x20000, libc::MAP_POPULATE as u64),
        (0x100000, libc::MAP_HUGETLB as u64),
    ],
    same: 0xf,
};

/// Types, MAP_FIXED, MAP_ANONYMOUS, MAP_GROWSDOWN to MAP_HUGETLB, and the sizes of large pages.
pub const MAP_VALIDATED: u64 = 0x7c1f_f113;

/// `MCL_*` of mlockall.
pub const LOCK_ALL: FlagBits = FlagBits { pairs: &[(8192, 1), (16384, 2), (32768, 4)], same: 0 };

/// `MS_*` of msync.
pub const SYNC: FlagBits = FlagBits {
    pairs: &[(1, libc::MS_ASYNC as u64), (2, libc::MS_SYNC as u64), (4, libc::MS_INVALIDATE as u64)],
    same: 0,
};
