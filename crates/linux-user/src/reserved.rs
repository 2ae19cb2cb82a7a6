//! The engine's own descriptors: their numbers, and the checks that keep the guest's calls away from them.
//!
//! Reserved numbers lie above every number that the guest can have. The guest's maximum limit of descriptors ends
//! where they begin, as if it were the kernel's upper limit (fs.nr_open), so that new descriptors of the guest are
//! below. Every host call that is made for the guest passes [`check`], which knows which arguments are descriptors
//! and which are paths. To the guest the reserved numbers appear as not open, and are not listed in /proc.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc as h;

use crate::procfs::{self, ProcEntry};
use host::Errno;

/// Number of reserved descriptors, if the limit allows that many.
const COUNT: u64 = 64;
/// The first number above all descriptors in use. It is kept low, since fork copies the table up to the highest
/// descriptor.
const TOP: u64 = 1 << 14;
/// Maximum number of symbolic links in a path (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// A soft and a hard limit of descriptors.
pub type HostLimit = [u64; 2];

/// The limit with which the engine started, and the first reserved number, which follows from it.
static BEGINNING: OnceLock<(HostLimit, RawFd)> = OnceLock::new();

fn beginning() -> (HostLimit, RawFd) {
    *BEGINNING.get_or_init(|| {
        let limit = change_limit(None);
        (limit, first_below(limit[1]))
    })
}

/// The first reserved number of an engine with this hard limit.
fn first_below(hard: u64) -> RawFd {
    let top = hard.min(TOP);
    (top - COUNT.min(top / 2)) as RawFd
}

/// The first number that is reserved in another process, if that runs on an engine. The hard limit of an engine's
/// process stays the one with which it started.
fn first_of(process: u32) -> RawFd {
    let mut limit = [0u64; 2];
    // SAFETY: the pointer is to 16 bytes that outlive the call.
    let result = unsafe { h::syscall(h::SYS_prlimit64, process, h::RLIMIT_NOFILE, 0, limit.as_mut_ptr()) };
    if result == 0 { first_below(limit[1]).min(first()) } else { first() }
}

/// Whether a number is that of a descriptor of the engine of another process.
pub fn is_reserved_of(process: u32, descriptor: u64) -> bool {
    descriptor as i32 >= first_of(process) && procfs::runs_engine(process)
}

/// The limit with which the engine started.
pub fn inherited_limit() -> HostLimit {
    beginning().0
}

/// The first reserved number.
pub fn first() -> RawFd {
    beginning().1
}

/// The reserved number of the file that the guest executes: the highest one.
pub fn executable_number() -> RawFd {
    beginning().0[1].min(TOP) as RawFd - 1
}

/// The reserved number of the directory /proc.
pub fn proc_number() -> RawFd {
    executable_number() - 1
}

/// Duplicates a descriptor to a given reserved number, with close-on-exec. None if the limit is too low.
pub fn duplicate_to(descriptor: &OwnedFd, number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the number is used for this alone; the new descriptor has no other owner.
    beyond_limit(|| unsafe {
        let placed = number >= first() && h::dup3(descriptor.as_raw_fd(), number, h::O_CLOEXEC) == number;
        placed.then(|| OwnedFd::from_raw_fd(number))
    })
}

/// Whether an argument is a descriptor with a reserved number.
pub fn is_reserved(descriptor: u64) -> bool {
    descriptor as i32 >= first()
}

/// Whether a descriptor is of a file that only engines have open, for more than its path: this one, or, if the file has no
/// name, that of any process. Another process's engine has named files, too, but those the guest may open by their names.
pub fn is_engines_file(descriptor: RawFd) -> bool {
    let Some(file) = found_at(descriptor) else { return false };
    let identity = (file.st_dev, file.st_ino);
    let is_same = |number| found_at(number).is_some_and(|found| (found.st_dev, found.st_ino) == identity);
    let has_it = |number: RawFd| {
        // SAFETY: no pointers are passed.
        let is_by_path = || unsafe { h::fcntl(number, h::F_GETFL) & h::O_PATH != 0 };
        number != descriptor && is_same(number) && !is_by_path()
    };
    let numbers = |folder: &str| -> Vec<RawFd> {
        let names = beyond_limit(|| procfs::entries(folder));
        names.into_iter().filter_map(|name| name.parse().ok()).collect()
    };
    let is_own = || (first()..first() + COUNT as RawFd).any(has_it);
    let is_of = |process: u32| {
        let first = first_of(process);
        let folder = format!("{process}/fd");
        let mut reserved = numbers(&folder).into_iter().filter(|&number| number >= first);
        reserved.any(|number| procfs::target(&format!("{folder}/{number}")) == Some(identity))
    };
    let is_anothers = || file.st_nlink == 0 && procfs::engines().into_iter().any(is_of);
    (is_own() || is_anothers())
        && !numbers("thread-self/fd").into_iter().any(|number| number < first() && has_it(number))
}

/// Whether a descriptor is of the file that the guest executes.
pub fn is_executable(descriptor: RawFd) -> bool {
    let identity = |number| found_at(number).map(|found| (found.st_dev, found.st_ino));
    identity(descriptor).is_some_and(|file| identity(executable_number()) == Some(file))
}

/// The status of an open file.
fn found_at(descriptor: RawFd) -> Option<h::stat> {
    let mut found = MaybeUninit::<h::stat>::uninit();
    // SAFETY: the structure is ours, and valid if the call succeeds.
    unsafe { (h::fstat(descriptor, found.as_mut_ptr()) == 0).then(|| found.assume_init()) }
}

/// Fails for a descriptor with a reserved number.
pub fn check_descriptor(descriptor: u64) -> Result<(), Errno> {
    if is_reserved(descriptor) { Err(Errno(h::EBADF)) } else { Ok(()) }
}

/// Sets the host's limit of descriptors, and returns the previous one.
pub fn change_limit(new: Option<HostLimit>) -> HostLimit {
    let mut old = [0u64; 2];
    let new = new.as_ref().map_or(0, |new| new.as_ptr() as u64);
    // SAFETY: the pointers are to 16 bytes each that outlive the call, or null.
    unsafe { h::syscall(h::SYS_prlimit64, 0, h::RLIMIT_NOFILE, new, old.as_mut_ptr()) };
    old
}

/// Duplicates a descriptor to a reserved number, with close-on-exec. None if the descriptor is not open or the limit
/// is too low.
pub fn high_copy(descriptor: RawFd) -> Option<OwnedFd> {
    let first = first();
    // SAFETY: duplicates a number; the new descriptor has no other owner.
    beyond_limit(|| unsafe {
        let number = h::fcntl(descriptor, h::F_DUPFD_CLOEXEC, first);
        (number >= 0).then(|| OwnedFd::from_raw_fd(number))
    })
}

/// Runs a function with the engine's limit of descriptors, since the guest may have used up its own.
pub fn beyond_limit<T>(what: impl FnOnce() -> T) -> T {
    let limit = change_limit(None);
    change_limit(Some([limit[1], limit[1]]));
    let result = what();
    change_limit(Some(limit));
    result
}

/// Moves a descriptor to a reserved number. If there is none, it keeps its number.
pub fn out_of_reach(descriptor: OwnedFd) -> OwnedFd {
    high_copy(descriptor.as_raw_fd()).unwrap_or(descriptor)
}

/// Number of [`DescriptorOwner`]s in this process.
static OWNERS: AtomicUsize = AtomicUsize::new(0);

/// Held by a part of the engine that closes reserved descriptors before its process ends. As long as it is held, no
/// process with the same table of descriptors can be started: its copy of the owner would close them for both.
pub struct DescriptorOwner(());

impl DescriptorOwner {
    /// Registers an owner.
    #[expect(clippy::new_without_default, reason = "each value is counted")]
    pub fn new() -> DescriptorOwner {
        OWNERS.fetch_add(1, Ordering::Relaxed);
        DescriptorOwner(())
    }

    /// Whether there are any in this process.
    pub(crate) fn is_anywhere() -> bool {
        OWNERS.load(Ordering::Relaxed) != 0
    }
}

impl Drop for DescriptorOwner {
    fn drop(&mut self) {
        OWNERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The kinds of the arguments of the host's calls, in order: `d` a descriptor; `a` a directory, to which the
/// following path is relative; `p` a path; `l` a path whose last component is not followed if it is a link; `f` flags
/// that say whether the first path's last component is followed; `o` flags of open, which say it, too; `h` a pointer to
/// openat2's `struct open_how`, whose first word they are. Arguments without a letter, or with `-`, are none of these.
#[rustfmt::skip]
const KINDS: &[(&str, &[h::c_long])] = &[
    ("d", &[
        h::SYS_read, h::SYS_write, h::SYS_pread64, h::SYS_pwrite64, h::SYS_readv, h::SYS_writev, h::SYS_preadv,
        h::SYS_pwritev, h::SYS_preadv2, h::SYS_pwritev2, h::SYS_lseek, h::SYS_close, h::SYS_fsync,
        h::SYS_fdatasync, h::SYS_ftruncate, h::SYS_fallocate, h::SYS_fadvise64, h::SYS_readahead,
        h::SYS_sync_file_range, h::SYS_syncfs, h::SYS_flock, h::SYS_fchdir, h::SYS_fchmod, h::SYS_fchown,
        h::SYS_fcntl, h::SYS_ioctl, h::SYS_getdents64, h::SYS_fstatfs, h::SYS_dup, h::SYS_bind, h::SYS_listen,
        h::SYS_accept4, h::SYS_connect, h::SYS_shutdown, h::SYS_sendto, h::SYS_recvfrom, h::SYS_sendmsg,
        h::SYS_recvmsg, h::SYS_sendmmsg, h::SYS_recvmmsg, h::SYS_getsockname, h::SYS_getpeername,
        h::SYS_getsockopt, h::SYS_setsockopt, h::SYS_epoll_pwait, h::SYS_signalfd4, h::SYS_inotify_rm_watch,
        h::SYS_timerfd_settime, h::SYS_timerfd_gettime, h::SYS_fgetxattr, h::SYS_fsetxattr, h::SYS_flistxattr,
        h::SYS_fremovexattr, h::SYS_pidfd_send_signal, h::SYS_pidfd_getfd, h::SYS_process_madvise,
        h::SYS_vmsplice, h::SYS_setns, h::SYS_mq_timedsend, h::SYS_mq_timedreceive, h::SYS_mq_notify,
        h::SYS_mq_getsetattr, h::SYS_epoll_pwait2, h::SYS_process_mrelease,
        h::SYS_open_by_handle_at,
    ]),
    ("dd", &[h::SYS_dup3, h::SYS_sendfile, h::SYS_tee]),
    ("d-d", &[h::SYS_epoll_ctl, h::SYS_splice, h::SYS_copy_file_range]),
    ("---d", &[h::SYS_perf_event_open]),
    ("---dd", &[h::SYS_kcmp]),
    ("dp", &[h::SYS_inotify_add_watch]),
    ("d--ap", &[h::SYS_fanotify_mark]),
    ("apo", &[h::SYS_openat]),
    ("aph", &[h::SYS_openat2]),
    ("ap", &[h::SYS_faccessat, h::SYS_fchmodat]),
    ("apf", &[h::SYS_statx]),
    ("ap-f", &[h::SYS_faccessat2, h::SYS_newfstatat, h::SYS_utimensat]),
    ("ap--f", &[h::SYS_fchownat]),
    ("al--f", &[h::SYS_name_to_handle_at]),
    ("al", &[h::SYS_unlinkat, h::SYS_mkdirat, h::SYS_mknodat, h::SYS_readlinkat]),
    ("alalf", &[h::SYS_linkat]),
    ("alal", &[h::SYS_renameat2]),
    ("-al", &[h::SYS_symlinkat]),
    ("pp", &[h::SYS_mount]),
    ("p", &[
        h::SYS_chdir, h::SYS_chroot, h::SYS_truncate, h::SYS_statfs, h::SYS_execve, h::SYS_umount2,
        h::SYS_setxattr, h::SYS_getxattr, h::SYS_listxattr, h::SYS_removexattr,
    ]),
    ("l", &[h::SYS_lsetxattr, h::SYS_lgetxattr, h::SYS_llistxattr, h::SYS_lremovexattr]),
    ("", &[
        h::SYS_adjtimex, h::SYS_capget, h::SYS_capset, h::SYS_clock_adjtime, h::SYS_unshare, h::SYS_mq_open,
        h::SYS_mq_unlink, h::SYS_sched_getattr, h::SYS_sched_setattr, h::SYS_mbind, h::SYS_get_mempolicy,
        h::SYS_set_mempolicy, h::SYS_migrate_pages, h::SYS_move_pages, h::SYS_io_setup, h::SYS_io_destroy,
        h::SYS_io_getevents, h::SYS_io_cancel, h::SYS_futex_waitv, h::SYS_clock_getres, h::SYS_clock_gettime, h::SYS_clock_nanosleep,
        h::SYS_clock_settime, h::SYS_close_range, h::SYS_epoll_create1, h::SYS_eventfd2, h::SYS_futex,
        h::SYS_getcpu, h::SYS_getcwd, h::SYS_getegid, h::SYS_geteuid, h::SYS_getgid, h::SYS_getpid, h::SYS_getuid, h::SYS_getitimer, h::SYS_getpgid,
        h::SYS_getppid, h::SYS_getpriority, h::SYS_getrandom, h::SYS_getresgid, h::SYS_getresuid,
        h::SYS_getrusage, h::SYS_getsid, h::SYS_gettid, h::SYS_getgroups, h::SYS_setgroups,
        h::SYS_inotify_init1, h::SYS_ioprio_get, h::SYS_ioprio_set, h::SYS_kill, h::SYS_madvise,
        h::SYS_membarrier, h::SYS_memfd_create, h::SYS_mincore, h::SYS_mlock, h::SYS_mlock2, h::SYS_munlock,
        h::SYS_msgctl, h::SYS_msgget, h::SYS_msgrcv, h::SYS_msgsnd, h::SYS_msync, h::SYS_pidfd_open,
        h::SYS_pipe2, h::SYS_ppoll, h::SYS_prctl, h::SYS_prlimit64, h::SYS_process_vm_readv,
        h::SYS_process_vm_writev, h::SYS_pselect6, h::SYS_rt_sigpending, h::SYS_rt_sigqueueinfo,
        h::SYS_rt_sigsuspend, h::SYS_rt_sigtimedwait, h::SYS_rt_tgsigqueueinfo, h::SYS_sched_get_priority_max,
        h::SYS_sched_get_priority_min, h::SYS_sched_getaffinity, h::SYS_sched_getparam,
        h::SYS_sched_getscheduler, h::SYS_sched_rr_get_interval, h::SYS_sched_setaffinity,
        h::SYS_sched_setparam, h::SYS_sched_setscheduler, h::SYS_sched_yield, h::SYS_semctl, h::SYS_semget,
        h::SYS_semtimedop, h::SYS_setdomainname, h::SYS_setfsgid, h::SYS_setfsuid, h::SYS_setgid,
        h::SYS_sethostname, h::SYS_setitimer, h::SYS_setpgid, h::SYS_setpriority, h::SYS_setregid,
        h::SYS_setresgid, h::SYS_setresuid, h::SYS_setreuid, h::SYS_setsid, h::SYS_settimeofday,
        h::SYS_setuid, h::SYS_shmat, h::SYS_shmctl, h::SYS_shmdt, h::SYS_shmget, h::SYS_socket,
        h::SYS_socketpair, h::SYS_sync, h::SYS_sysinfo, h::SYS_syslog, h::SYS_tgkill, h::SYS_timer_create,
        h::SYS_timer_delete, h::SYS_timer_getoverrun, h::SYS_timer_gettime, h::SYS_timer_settime,
        h::SYS_timerfd_create, h::SYS_times, h::SYS_tkill, h::SYS_umask, h::SYS_vhangup, h::SYS_wait4,
        h::SYS_waitid,
    ]),
];

/// The same by the host's call number.
static BY_NUMBER: [Option<&str>; 512] = {
    let mut by_number = [None; 512];
    let mut group = 0;
    while group < KINDS.len() {
        let (kinds, numbers) = KINDS[group];
        let mut index = 0;
        while index < numbers.len() {
            let number = numbers[index] as usize;
            assert!(by_number[number].is_none(), "a call is listed twice");
            by_number[number] = Some(kinds);
            index += 1;
        }
        group += 1;
    }
    by_number
};

/// The kinds of a host call's arguments, as [`KINDS`] states them.
pub fn kinds(number: h::c_long) -> Option<&'static str> {
    usize::try_from(number).ok().and_then(|number| *BY_NUMBER.get(number)?)
}

/// The arguments with which a host call may be made for the guest, and the memory to which they point.
#[derive(Debug)]
pub struct CheckedArguments {
    /// The arguments.
    pub words: [u64; 6],
    _paths: Vec<CString>,
}

/// A directory and a path relative to it, in place of those that the guest named.
#[derive(Debug)]
pub struct Instead {
    /// The directory.
    pub directory: RawFd,
    /// The path.
    pub path: CString,
}

impl Instead {
    /// The path for a call that takes no directory, which is /proc.
    pub fn absolute(&self) -> CString {
        CString::new([b"/proc/", self.path.as_bytes()].concat()).expect("no NUL inside")
    }
}

/// Fails if a host call for the guest names a descriptor of the engine: EBADF, or ENOENT if a path does. A path that
/// leads to the engine's executable is replaced by one to the guest's.
///
/// # Safety
/// Path arguments of the host's call must be NUL-terminated strings or null, and openat2's `struct open_how` readable.
pub unsafe fn check(number: h::c_long, arguments: &[u64; 6]) -> Result<CheckedArguments, Errno> {
    let mut checked = CheckedArguments { words: *arguments, _paths: Vec::new() };
    let Some(kinds) = kinds(number) else {
        // A call without an entry: no argument may be a reserved descriptor.
        let ours = |&argument: &u64| is_reserved(argument) && argument < TOP;
        return if arguments.iter().any(ours) { Err(Errno(h::EBADF)) } else { Ok(checked) };
    };
    let mut directory = None;
    let mut flags = 0;
    for (kind, &argument) in kinds.bytes().zip(arguments) {
        match kind {
            b'f' => flags |= argument as i32,
            // SAFETY: the caller's promise.
            b'h' => flags |= open_flags(unsafe { *(argument as *const u64) }),
            b'o' => flags |= open_flags(argument),
            _ => {}
        }
    }
    for (index, (kind, &argument)) in kinds.bytes().zip(arguments).enumerate() {
        match kind {
            b'd' => check_descriptor(argument)?,
            b'a' => directory = Some(index),
            b'p' | b'l' => {
                // SAFETY: the caller's promise.
                let path = (argument != 0).then(|| unsafe { CStr::from_ptr(argument as *const h::c_char) });
                let follows =
                    if kind == b'p' { h::AT_SYMLINK_NOFOLLOW & !flags } else { h::AT_SYMLINK_FOLLOW & flags };
                let from = directory.map_or(h::AT_FDCWD, |index: usize| arguments[index] as RawFd);
                if let Some(instead) = check_path(from, path.unwrap_or_default(), follows != 0)? {
                    let path = match directory {
                        Some(directory) => {
                            checked.words[directory] = instead.directory as u64;
                            instead.path
                        }
                        None => instead.absolute(),
                    };
                    checked.words[index] = path.as_ptr() as u64;
                    checked._paths.push(path);
                }
                (directory, flags) = (None, 0);
            }
            _ => {}
        }
    }
    Ok(checked)
}

/// AT_SYMLINK_NOFOLLOW if flags of open say it.
fn open_flags(flags: u64) -> i32 {
    if flags as i32 & h::O_NOFOLLOW != 0 { h::AT_SYMLINK_NOFOLLOW } else { 0 }
}

/// Fails if a path leads to a descriptor of the engine; `follows` if a link in the last component is followed. Returns
/// a path to the guest's executable in place of one to its engine's.
pub fn check_path(directory: RawFd, path: &CStr, follows: bool) -> Result<Option<Instead>, Errno> {
    let mut path = path.to_bytes().to_vec();
    if path.first() != Some(&b'/') {
        check_descriptor(directory as u64)?;
    }
    for _ in 0..MOST_LINKS {
        if names_ours(directory, &path) {
            return Err(Errno(h::ENOENT));
        }
        let target = if follows && !path.is_empty() { read_link(directory, &path) } else { None };
        let Some(target) = target else { break };
        if procfs::is_folder(directory, folder_of(&path)) {
            match link_entry(directory, &path)? {
                ProcEntry::Of(id, name) if name == "exe" && procfs::runs_engine(id) => {
                    let proc = procfs::directory().ok_or(Errno(h::EACCES))?.as_raw_fd();
                    return Ok(Some(Instead { directory: proc, path: procfs::executable(id) }));
                }
                // The kernel follows it to the object itself.
                ProcEntry::Of(..) => break,
                ProcEntry::General(_) => {}
            }
        }
        if target.starts_with(b"/") {
            path = target;
        } else {
            path.truncate(folder_of(&path).len());
            path.extend(target);
        }
    }
    Ok(None)
}

/// The part of a path before the last component.
pub fn folder_of(path: &[u8]) -> &[u8] {
    &path[..path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)]
}

/// Which link of /proc a path is; ENOENT if it leads to the engine.
pub fn link_entry(directory: RawFd, path: &[u8]) -> Result<ProcEntry, Errno> {
    let entry = procfs::identify_link(directory, path)?;
    if let ProcEntry::Of(id, name) = &entry {
        let is_engines = match name.split_once('/') {
            Some(("fd", number)) => {
                let number = number.parse();
                number.is_ok_and(|number| is_reserved(number) || is_reserved_of(*id, number))
            }
            Some(("map_files", _)) => procfs::runs_engine(*id),
            _ => false,
        };
        if is_engines {
            return Err(Errno(h::ENOENT));
        }
    }
    Ok(entry)
}

/// Whether a path component in a folder of /proc is the number of a descriptor of the engine: an existing entry with
/// such a number that is not a folder, unlike those of processes and threads.
fn names_ours(directory: RawFd, path: &[u8]) -> bool {
    let mut start = 0;
    path.split(|&byte| byte == b'/').any(|part| {
        let (folder, end) = (start, start + part.len());
        start = end + 1;
        is_reserved_name(part) && procfs::is_folder(directory, &path[..folder]) && {
            let file_type = status(directory, &path[..end]).map(|status| status.st_mode & h::S_IFMT);
            file_type.is_some_and(|file_type| file_type != h::S_IFDIR)
        }
    })
}

/// Whether a name in a folder of descriptors is one of the engine's.
pub fn is_reserved_name(name: &[u8]) -> bool {
    let number = std::str::from_utf8(name).ok().filter(|_| name.iter().all(u8::is_ascii_digit));
    number.and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number >= first() as u64)
}

fn status(directory: RawFd, path: &[u8]) -> Option<h::stat> {
    let path = CString::new(path).ok()?;
    let mut status = MaybeUninit::<h::stat>::uninit();
    // SAFETY: the path is NUL-terminated; the result is valid if the call succeeds.
    unsafe {
        let result = h::fstatat(directory, path.as_ptr(), status.as_mut_ptr(), h::AT_SYMLINK_NOFOLLOW);
        (result == 0).then(|| status.assume_init())
    }
}

/// The target of a link; None if it is none.
pub fn read_link(directory: RawFd, path: &[u8]) -> Option<Vec<u8>> {
    let path = CString::new(path).ok()?;
    let mut target = vec![0u8; h::PATH_MAX as usize];
    // SAFETY: the path is NUL-terminated, and the buffer has the stated size.
    let bytes = unsafe { h::readlinkat(directory, path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    target.truncate(usize::try_from(bytes).ok()?);
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_whether_a_last_link_is_followed() {
        use std::os::unix::ffi::OsStrExt;
        let (end, _other) = std::io::pipe().unwrap();
        let copy = out_of_reach(end.into());
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(format!("/proc/self/fd/{}", copy.as_raw_fd()), &link).unwrap();
        let link = CString::new(link.as_os_str().as_bytes()).unwrap();
        let (path, here) = (link.as_ptr() as u64, h::AT_FDCWD as u64);
        let (no, yes) = (h::AT_SYMLINK_NOFOLLOW as u64, h::AT_SYMLINK_FOLLOW as u64);
        let refused = Err(Errno(h::ENOENT));
        for (number, arguments, expected) in [
            (h::SYS_statx, [here, path, 0, 0, 0, 0], refused),
            (h::SYS_statx, [here, path, no, 0, 0, 0], Ok(())),
            (h::SYS_newfstatat, [here, path, 0, no, 0, 0], Ok(())),
            (h::SYS_utimensat, [here, path, 0, 0, 0, 0], refused),
            (h::SYS_utimensat, [here, path, 0, no, 0, 0], Ok(())),
            (h::SYS_fchownat, [here, path, 0, 0, no, 0], Ok(())),
            (h::SYS_fchownat, [here, path, 0, 0, 0, 0], refused),
            (h::SYS_linkat, [here, path, here, path, 0, 0], Ok(())),
            (h::SYS_linkat, [here, path, here, path, yes, 0], refused),
            (h::SYS_name_to_handle_at, [here, path, 0, 0, 0, 0], Ok(())),
            (h::SYS_name_to_handle_at, [here, path, 0, 0, yes, 0], refused),
            (h::SYS_unlinkat, [here, path, yes, 0, 0, 0], Ok(())),
        ] {
            // SAFETY: the path is a string.
            let checked = unsafe { check(number, &arguments) }.map(|_| ());
            assert_eq!(checked, expected, "{number} {arguments:x?}");
        }
    }

    #[test]
    fn a_copy_has_a_number_beyond_the_limit_and_the_limit_stays() {
        let before = change_limit(None);
        let (end, _other) = std::io::pipe().unwrap();
        let copy = out_of_reach(end.into());
        assert!(is_reserved(copy.as_raw_fd() as u64));
        assert_eq!(change_limit(None), before);
    }

    #[test]
    fn no_path_leads_to_a_reserved_number() {
        let (end, _other) = std::io::pipe().unwrap();
        let copy = out_of_reach(end.into());
        let ours = copy.as_raw_fd();
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, target: String| {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink(target, &path).unwrap();
            path.to_str().unwrap().to_string()
        };
        let process = std::process::id();
        let to_file = link("file", format!("/proc/self/fd/{ours}"));
        let again = link("again", "file".into());
        let to_folder = link("folder", "/dev/fd".into());
        let refused = [
            (format!("/proc/self/fd/{ours}"), false),
            (format!("/proc/{process}/fdinfo/{ours}"), false),
            (format!("/proc/thread-self/fd/{ours}"), false),
            (format!("/proc/self/task/{process}/../../fd/{ours}"), false),
            (format!("/dev/fd/{ours}"), false),
            (format!("{to_folder}/{ours}"), false),
            (to_file.clone(), true),
            (again, true),
        ];
        let check = |directory, path: &str, follows| {
            check_path(directory, &CString::new(path).unwrap(), follows).map(|_| ())
        };
        for (path, follows) in refused {
            assert_eq!(check(h::AT_FDCWD, &path, follows), Err(Errno(h::ENOENT)), "{path}");
        }
        let descriptors = std::fs::File::open("/proc/self/fd").unwrap();
        assert_eq!(check(descriptors.as_raw_fd(), &ours.to_string(), false), Err(Errno(h::ENOENT)));
        assert_eq!(check(ours, "name", false), Err(Errno(h::EBADF)));
        let plain = folder.path().join(ours.to_string());
        std::fs::write(&plain, "").unwrap();
        let allowed = ["/proc/self/fd/0", "/proc/self/fd", plain.to_str().unwrap()];
        for path in allowed {
            assert_eq!(check(h::AT_FDCWD, path, true), Ok(()), "{path}");
        }
        assert_eq!(check(h::AT_FDCWD, &to_file, false), Ok(()), "the link itself");
    }
}
