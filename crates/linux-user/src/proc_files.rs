//! Files of /proc that must describe the guest instead of the engine. They are recognised by what was opened
//! ([`procfs`]), since they have many names.

use std::fmt::Write as _;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::abi::Abi;
use crate::procfs::{self, ProcEntry};
use crate::state::kernel::Kernel;
use crate::state::threads::Task;
use crate::{memory_file, proc_status};
use guest_memory::{Memory, MemoryRegion, RegionBacking};
use host::Errno;

/// The entries of a process's folder that the guest may see: files and folders that show nothing of an engine's memory,
/// registers, reads and times, or that are converted. A kernel may be built without any other.
#[rustfmt::skip]
const SHOWN: &[&str] = &[
    "", "arch_status", "attr", "auxv", "autogroup", "cgroup", "children", "cmdline", "comm", "coredump_filter",
    "cpu_resctrl_groups", "cpuset", "environ", "fd", "fdinfo", "gid_map", "limits", "loginuid", "maps", "mem",
    "mountinfo", "mounts", "mountstats", "net", "ns", "oom_adj", "oom_score", "oom_score_adj", "patch_state",
    "personality", "projid_map", "sessionid", "setgroups", "stat", "statm", "status", "task", "timens_offsets",
    "timerslack_ns", "uid_map", "wchan",
];
/// General files that show all memory.
const WHOLE_MEMORY: &[&str] = &["kcore", "kpagecgroup", "kpagecount", "kpageflags", "vmcore"];

/// The flags with which a descriptor was opened, as far as they can be queried.
fn flags_of(descriptor: RawFd) -> i32 {
    // SAFETY: no pointers are passed.
    let (flags, own) =
        unsafe { (libc::fcntl(descriptor, libc::F_GETFL), libc::fcntl(descriptor, libc::F_GETFD)) };
    flags | if own & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 }
}

/// Replaces a /proc file that the guest has just opened by one with the contents that the guest may see.
pub fn replace<G: Abi>(
    kernel: &mut Kernel<G>,
    caller: &Task<G>,
    cpu: &G,
    memory: &Memory,
    descriptor: u64,
) -> Result<u64, Errno> {
    let number = descriptor as RawFd;
    if !procfs::is_file(number) {
        return Ok(descriptor);
    }
    let flags = flags_of(number);
    if flags & libc::O_PATH != 0 {
        return Ok(descriptor);
    }
    // SAFETY: the guest has not received the descriptor yet. If it cannot be replaced it must be closed.
    let mut opened = unsafe { std::fs::File::from_raw_fd(number) };
    let entry = procfs::identify(number);
    if let Some(instead) = stand_in(kernel, entry.as_ref(), flags)? {
        return put(instead, opened, flags);
    }
    let link = procfs::link_of(number).unwrap_or_default();
    let converted = match entry {
        Some(ProcEntry::Of(id, name)) => converted(kernel, caller, memory, (id, &name), &mut opened)?,
        Some(ProcEntry::General(name)) => proc_status::of_system(kernel, cpu, &name).map(String::into_bytes),
        None => None,
    };
    match converted {
        Some(contents) => put(in_memory(&link, &contents, flags)?, opened, flags),
        None => Ok(opened.into_raw_fd() as u64),
    }
}

/// The file that the guest gets when it opens one that shows memory: None for a file that shows none. Fails if it must not get
/// anything; so does a file that is not in the engine's own /proc, since nobody knows what it shows.
pub fn stand_in<G: Abi>(
    kernel: &mut Kernel<G>,
    entry: Option<&ProcEntry>,
    flags: i32,
) -> Result<Option<OwnedFd>, Errno> {
    let (id, name) = match entry {
        Some(ProcEntry::Of(id, name)) => (*id, name.as_str()),
        Some(ProcEntry::General(name)) if WHOLE_MEMORY.contains(&&**name) => return Err(Errno(libc::EPERM)),
        Some(ProcEntry::General(_)) => return Ok(None),
        None => {
            kernel.name_refused("open", "a file in a /proc that was mounted later", "EACCES");
            return Err(Errno(libc::EACCES));
        }
    };
    let own = procfs::is_own(id);
    let is_engine = || own || procfs::runs_engine(id);
    let folder = name.split('/').next().unwrap_or_default();
    match name {
        "mem" if is_engine() => {
            if !own && !procfs::has_our_ids() {
                return Err(Errno(libc::EACCES));
            }
            kernel.opened_memory = true;
            Ok(Some(memory_file::open(if own { std::process::id() } else { id }, flags)?))
        }
        "maps" | "auxv" if !own && is_engine() => Err(Errno(libc::EACCES)),
        _ if !SHOWN.contains(&folder) && is_engine() => Err(Errno(libc::ENOENT)),
        _ => Ok(None),
    }
}

/// The contents of a process's file for the guest, if they differ from those of the file that was opened.
fn converted<G: Abi>(
    kernel: &Kernel<G>,
    caller: &Task<G>,
    memory: &Memory,
    (id, name): (u32, &str),
    opened: &mut std::fs::File,
) -> Result<Option<Vec<u8>>, Errno> {
    let own = procfs::is_own(id);
    let is_descriptor = name.starts_with("fdinfo/");
    if !is_descriptor && !["stat", "status", "statm", "limits"].contains(&name) {
        return Ok(kernel.own_contents(memory, name).filter(|_| own));
    }
    if !own && !procfs::runs_engine(id) {
        return Ok(None);
    }
    let mut content = Vec::new();
    opened.read_to_end(&mut content)?;
    let content = String::from_utf8_lossy(&content);
    let contents: String = match name {
        _ if is_descriptor => guest_descriptor::<G>(&content),
        _ if own => proc_status::contents(kernel, caller, memory, name, &content),
        "stat" => proc_status::stat_of_other(&content),
        "status" => proc_status::status_of_other::<G>(&content),
        "statm" => "0 0 0 0 0 0 0\n".into(),
        _ => content.into(),
    };
    Ok(Some(contents.into_bytes()))
}

/// Gives a file the number of the one that was opened.
pub fn put(instead: OwnedFd, opened: impl AsRawFd + IntoRawFd, flags: i32) -> Result<u64, Errno> {
    // SAFETY: both descriptors are open and ours; the number is the one that the guest receives.
    let placed = unsafe { libc::dup3(instead.as_raw_fd(), opened.as_raw_fd(), flags & libc::O_CLOEXEC) };
    if placed < 0 { Err(Errno::last()) } else { Ok(opened.into_raw_fd() as u64) }
}

impl<G: Abi> Kernel<G> {
    /// The contents of a file of this process.
    fn own_contents(&self, memory: &Memory, name: &str) -> Option<Vec<u8>> {
        match name {
            "maps" => Some(maps(memory).into_bytes()),
            "cmdline" => {
                let arguments = self.arguments.iter();
                Some(arguments.flat_map(|argument| argument.iter().chain(&[0])).copied().collect())
            }
            "environ" => Some(contents(memory, &self.stack.environment)),
            "auxv" => Some(contents(memory, &self.stack.vector)),
            _ => None,
        }
    }
}

/// The information on a descriptor (fdinfo in proc_pid_fdinfo(5)), with flags and signals in the guest's numbering.
fn guest_descriptor<G: Abi>(content: &str) -> String {
    let line = |line: &str| {
        let (field, value) = line.split_once(":\t").unwrap_or((line, ""));
        let converted = match field {
            "flags" => {
                u64::from_str_radix(value, 8).map(|flags| format!("flags:\t0{:o}", G::OPEN.guest(flags)))
            }
            "sigmask" => {
                u64::from_str_radix(value, 16).map(|mask| format!("sigmask:\t{:016x}", G::guest_mask(mask)))
            }
            _ => return line.to_string() + "\n",
        };
        converted.unwrap_or_else(|_| line.into()) + "\n"
    };
    content.lines().map(line).collect()
}

/// The present contents of memory, which the program may have overwritten or unmapped.
fn contents(memory: &Memory, range: &Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    memory.read(range.start, &mut bytes).map_or(Vec::new(), |()| bytes)
}

/// A memory file with the name of the file for which it stands.
fn in_memory(name: &[u8], contents: &[u8], flags: i32) -> Result<OwnedFd, Errno> {
    let name = [name, b"\0"].concat();
    let close_on_exec = if flags & libc::O_CLOEXEC != 0 { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is NUL-terminated.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr().cast(), close_on_exec) };
    if descriptor < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the descriptor is new and ours.
    let mut file = unsafe { std::fs::File::from_raw_fd(descriptor) };
    file.write_all(contents)?;
    file.rewind()?;
    Ok(file.into())
}

/// The guest's regions in the format of /proc/PID/maps (proc(5)).
fn maps(memory: &Memory) -> String {
    let mut text = String::new();
    for (start, region) in memory.regions() {
        let (offset, device, inode, name) = backing(&region);
        let bits = [(1, 'r'), (2, 'w'), (4, 'x')];
        let protection: String = bits
            .iter()
            .map(|(bit, letter)| if region.protection & bit != 0 { *letter } else { '-' })
            .collect();
        let sharing = if region.shared { 's' } else { 'p' };
        let mut line =
            format!("{start:08x}-{:08x} {protection}{sharing} {offset:08x} {device} {inode} ", region.end);
        if !name.is_empty() {
            // The kernel pads to column 73.
            let _ = write!(line, "{:width$}{name}", "", width = 73usize.saturating_sub(line.len()));
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn backing(region: &MemoryRegion) -> (u64, String, u64, String) {
    use std::os::unix::fs::MetadataExt;
    match &region.backing {
        RegionBacking::Anonymous => (0, "00:00".into(), 0, String::new()),
        RegionBacking::Named(name) => (0, "00:00".into(), 0, (*name).into()),
        RegionBacking::File { path, offset } => {
            let (device, inode) = std::fs::metadata(&**path).map_or((0, 0), |file| (file.dev(), file.ino()));
            let device = format!("{:02x}:{:02x}", libc::major(device), libc::minor(device));
            (*offset, device, inode, path.display().to_string())
        }
    }
}
