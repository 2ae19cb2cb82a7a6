//! Alpha's numbers of signals, commands, options and limits.

use crate::abi::arguments::FcntlArgument;
use crate::abi::signals::ActionFlags;

/// The host's numbers of Alpha's signals 1 to 31. SIGEMT (7) stands for the host's SIGSTKFLT.
#[rustfmt::skip]
pub const SIGNALS: [i32; 31] = [
    libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT,
    libc::SIGSTKFLT, libc::SIGFPE, libc::SIGKILL, libc::SIGBUS, libc::SIGSEGV, libc::SIGSYS,
    libc::SIGPIPE, libc::SIGALRM, libc::SIGTERM, libc::SIGURG, libc::SIGSTOP, libc::SIGTSTP,
    libc::SIGCONT, libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU, libc::SIGIO, libc::SIGXCPU,
    libc::SIGXFSZ, libc::SIGVTALRM, libc::SIGPROF, libc::SIGWINCH, libc::SIGPWR, libc::SIGUSR1,
    libc::SIGUSR2,
];

/// `SA_*`.
pub const ACTION_FLAGS: ActionFlags = ActionFlags {
    on_stack: 1,
    restart: 2,
    no_child_stop: 4,
    no_defer: 8,
    reset_handler: 0x10,
    no_child_wait: 0x20,
    information: 0x40,
};

/// fcntl commands: Alpha's number, the host's, and the third argument.
#[rustfmt::skip]
pub const FCNTL_COMMANDS: &[(i32, i32, FcntlArgument)] = &[
    (0, libc::F_DUPFD, FcntlArgument::Value),
    (1, libc::F_GETFD, FcntlArgument::Value),
    (2, libc::F_SETFD, FcntlArgument::Value),
    (3, libc::F_GETFL, FcntlArgument::FlagsOut),
    (4, libc::F_SETFL, FcntlArgument::Flags),
    (5, libc::F_SETOWN, FcntlArgument::Value),
    (6, libc::F_GETOWN, FcntlArgument::Value),
    (7, libc::F_GETLK, FcntlArgument::Lock(false)),
    (8, libc::F_SETLK, FcntlArgument::Lock(false)),
    (9, libc::F_SETLKW, FcntlArgument::Lock(true)),
    (10, F_SETSIG, FcntlArgument::Signal),
    (11, F_GETSIG, FcntlArgument::SignalOut),
    (15, F_SETOWN_EX, FcntlArgument::Bytes(8)),
    (16, F_GETOWN_EX, FcntlArgument::Bytes(8)),
    (36, libc::F_OFD_GETLK, FcntlArgument::Lock(false)),
    (37, libc::F_OFD_SETLK, FcntlArgument::Lock(false)),
    (38, libc::F_OFD_SETLKW, FcntlArgument::Lock(true)),
    (1024, libc::F_SETLEASE, FcntlArgument::LockType),
    (1025, libc::F_GETLEASE, FcntlArgument::LockTypeOut),
    (1026, libc::F_NOTIFY, FcntlArgument::Value),
    (1030, libc::F_DUPFD_CLOEXEC, FcntlArgument::Value),
    (1031, libc::F_SETPIPE_SZ, FcntlArgument::Value),
    (1032, libc::F_GETPIPE_SZ, FcntlArgument::Value),
    (1033, libc::F_ADD_SEALS, FcntlArgument::Value),
    (1034, libc::F_GET_SEALS, FcntlArgument::Value),
];

// asm-generic/fcntl.h.
const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;
const F_SETOWN_EX: i32 = 15;
const F_GETOWN_EX: i32 = 16;

/// `l_type`: F_RDLCK, F_WRLCK, F_UNLCK.
pub const LOCK_TYPES: [(u16, i32); 3] = [(1, libc::F_RDLCK), (2, libc::F_WRLCK), (8, libc::F_UNLCK)];

/// SOL_SOCKET.
pub const SOCKET_LEVEL: u64 = 0xffff;

/// Options of SOL_SOCKET: Alpha's number and the host's. Options whose values contain pointers (socket filters) are
/// omitted.
#[rustfmt::skip]
pub const SOCKET_OPTIONS: &[(u64, i32)] = &[
    (0x0001, libc::SO_DEBUG), (0x0004, libc::SO_REUSEADDR), (0x0008, libc::SO_KEEPALIVE),
    (0x0010, libc::SO_DONTROUTE), (0x0020, libc::SO_BROADCAST), (0x0080, libc::SO_LINGER),
    (0x0100, libc::SO_OOBINLINE), (0x0200, libc::SO_REUSEPORT), (0x1001, libc::SO_SNDBUF),
    (0x1002, libc::SO_RCVBUF), (0x1007, libc::SO_ERROR), (0x1008, libc::SO_TYPE),
    (0x100a, libc::SO_SNDBUFFORCE), (0x100b, libc::SO_RCVBUFFORCE), (0x1010, libc::SO_RCVLOWAT),
    (0x1011, libc::SO_SNDLOWAT), (0x1012, libc::SO_RCVTIMEO), (0x1013, libc::SO_SNDTIMEO),
    (0x1014, libc::SO_ACCEPTCONN), (0x1028, libc::SO_PROTOCOL), (0x1029, libc::SO_DOMAIN),
    (11, libc::SO_NO_CHECK), (12, libc::SO_PRIORITY), (14, libc::SO_BSDCOMPAT), (17, libc::SO_PASSCRED),
    (18, libc::SO_PEERCRED), (25, libc::SO_BINDTODEVICE), (27, libc::SO_DETACH_FILTER),
    (28, libc::SO_PEERNAME), (29, libc::SO_TIMESTAMP), (30, libc::SO_PEERSEC), (34, libc::SO_PASSSEC),
    (35, libc::SO_TIMESTAMPNS), (36, libc::SO_MARK), (37, libc::SO_TIMESTAMPING), (40, libc::SO_RXQ_OVFL),
    (42, libc::SO_PEEK_OFF), (43, libc::SO_NOFCS), (44, libc::SO_LOCK_FILTER),
    (46, libc::SO_BUSY_POLL), (49, libc::SO_INCOMING_CPU), (56, libc::SO_INCOMING_NAPI_ID),
    (57, libc::SO_COOKIE), (59, libc::SO_PEERGROUPS), (60, libc::SO_ZEROCOPY), (62, libc::SO_BINDTOIFINDEX),
];

/// Resource limits with different numbers: Alpha's and the host's.
pub const RESOURCES: &[(u64, u32)] =
    &[(6, libc::RLIMIT_NOFILE), (7, libc::RLIMIT_AS), (8, libc::RLIMIT_NPROC), (9, libc::RLIMIT_MEMLOCK)];

/// The host's number of advice for madvise: MADV_DONTNEED is 6, and MADV_SPACEAVAIL (5) has no effect.
pub fn host_advice(advice: u64) -> Option<i32> {
    match advice {
        4 => None,
        5 => Some(libc::MADV_NORMAL),
        6 => Some(libc::MADV_DONTNEED),
        other => i32::try_from(other).ok(),
    }
}
