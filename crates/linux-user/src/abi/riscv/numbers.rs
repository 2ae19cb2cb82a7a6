//! The generic numbers of signals, commands and options (`asm-generic/signal.h`, `fcntl.h`, `socket.h`), which are the host's, too.

use crate::abi::arguments::FcntlArgument;
use crate::abi::signals::ActionFlags;

/// The host's numbers of signals 1 to 31.
#[rustfmt::skip]
pub const SIGNALS: [i32; 31] = [
    libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT,
    libc::SIGBUS, libc::SIGFPE, libc::SIGKILL, libc::SIGUSR1, libc::SIGSEGV, libc::SIGUSR2,
    libc::SIGPIPE, libc::SIGALRM, libc::SIGTERM, libc::SIGSTKFLT, libc::SIGCHLD, libc::SIGCONT,
    libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGURG, libc::SIGXCPU,
    libc::SIGXFSZ, libc::SIGVTALRM, libc::SIGPROF, libc::SIGWINCH, libc::SIGIO, libc::SIGPWR,
    libc::SIGSYS,
];

/// `SA_*`.
pub const ACTION_FLAGS: ActionFlags = ActionFlags {
    no_child_stop: 1,
    no_child_wait: 2,
    information: 4,
    on_stack: 0x0800_0000,
    restart: 0x1000_0000,
    no_defer: 0x4000_0000,
    reset_handler: 0x8000_0000,
};

// asm-generic/fcntl.h.
const F_SETSIG: i32 = 10;
const F_GETSIG: i32 = 11;
const F_SETOWN_EX: i32 = 15;
const F_GETOWN_EX: i32 = 16;

/// A command with the same number on both sides.
const fn same(command: i32, third: FcntlArgument) -> (i32, i32, FcntlArgument) {
    (command, command, third)
}

/// fcntl commands: the guest's number, the host's, and the third argument.
pub const FCNTL_COMMANDS: &[(i32, i32, FcntlArgument)] = &[
    same(libc::F_DUPFD, FcntlArgument::Value),
    same(libc::F_GETFD, FcntlArgument::Value),
    same(libc::F_SETFD, FcntlArgument::Value),
    same(libc::F_GETFL, FcntlArgument::FlagsOut),
    same(libc::F_SETFL, FcntlArgument::Flags),
    same(libc::F_SETOWN, FcntlArgument::Value),
    same(libc::F_GETOWN, FcntlArgument::Value),
    same(libc::F_GETLK, FcntlArgument::Lock(false)),
    same(libc::F_SETLK, FcntlArgument::Lock(false)),
    same(libc::F_SETLKW, FcntlArgument::Lock(true)),
    same(F_SETSIG, FcntlArgument::Signal),
    same(F_GETSIG, FcntlArgument::SignalOut),
    same(F_SETOWN_EX, FcntlArgument::Bytes(8)),
    same(F_GETOWN_EX, FcntlArgument::Bytes(8)),
    same(libc::F_OFD_GETLK, FcntlArgument::Lock(false)),
    same(libc::F_OFD_SETLK, FcntlArgument::Lock(false)),
    same(libc::F_OFD_SETLKW, FcntlArgument::Lock(true)),
    same(libc::F_SETLEASE, FcntlArgument::LockType),
    same(libc::F_GETLEASE, FcntlArgument::LockTypeOut),
    same(libc::F_NOTIFY, FcntlArgument::Value),
    same(libc::F_DUPFD_CLOEXEC, FcntlArgument::Value),
    same(libc::F_SETPIPE_SZ, FcntlArgument::Value),
    same(libc::F_GETPIPE_SZ, FcntlArgument::Value),
    same(libc::F_ADD_SEALS, FcntlArgument::Value),
    same(libc::F_GET_SEALS, FcntlArgument::Value),
];

/// An option with the same number on both sides.
const fn option(number: i32) -> (u64, i32) {
    (number as u64, number)
}

/// Options of SOL_SOCKET. Options whose values contain pointers (socket filters) are omitted.
#[rustfmt::skip]
pub const SOCKET_OPTIONS: &[(u64, i32)] = &[
    option(libc::SO_DEBUG), option(libc::SO_REUSEADDR), option(libc::SO_TYPE), option(libc::SO_ERROR),
    option(libc::SO_DONTROUTE), option(libc::SO_BROADCAST), option(libc::SO_SNDBUF), option(libc::SO_RCVBUF),
    option(libc::SO_KEEPALIVE), option(libc::SO_OOBINLINE), option(libc::SO_NO_CHECK),
    option(libc::SO_PRIORITY), option(libc::SO_LINGER), option(libc::SO_BSDCOMPAT), option(libc::SO_REUSEPORT),
    option(libc::SO_PASSCRED), option(libc::SO_PEERCRED), option(libc::SO_RCVLOWAT),
    option(libc::SO_SNDLOWAT), option(libc::SO_RCVTIMEO), option(libc::SO_SNDTIMEO),
    option(libc::SO_BINDTODEVICE), option(libc::SO_DETACH_FILTER), option(libc::SO_PEERNAME),
    option(libc::SO_TIMESTAMP), option(libc::SO_ACCEPTCONN), option(libc::SO_PEERSEC),
    option(libc::SO_SNDBUFFORCE), option(libc::SO_RCVBUFFORCE), option(libc::SO_PASSSEC),
    option(libc::SO_TIMESTAMPNS), option(libc::SO_MARK), option(libc::SO_TIMESTAMPING),
    option(libc::SO_PROTOCOL), option(libc::SO_DOMAIN), option(libc::SO_RXQ_OVFL), option(libc::SO_PEEK_OFF),
    option(libc::SO_NOFCS), option(libc::SO_LOCK_FILTER), option(libc::SO_BUSY_POLL),
    option(libc::SO_INCOMING_CPU), option(libc::SO_INCOMING_NAPI_ID), option(libc::SO_COOKIE),
    option(libc::SO_PEERGROUPS), option(libc::SO_ZEROCOPY), option(libc::SO_BINDTOIFINDEX),
];
