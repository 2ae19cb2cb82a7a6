//! Files of /proc that must describe the guest instead of the engine. They are recognised by what was opened
//! ([`procfs`]), since they have many names.

use std::fmt::Write as _;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use crate::abi::Abi;
use crate::memory_file;
use crate::procfs::{self, Entry};
use crate::state::kernel::Kernel;
use host::Errno;
use memory::{Backing, Memory, Region};

/// What the guest may see of a process's folder without change: files and folders that show nothing of an engine's
/// memory and registers. A kernel may be built without any other.
const HARMLESS: &[&str] = &[
    "", "arch_status", "attr", "auxv", "autogroup", "cgroup", "children", "cmdline", "comm", "coredump_filter",
    "cpu_resctrl_groups", "cpuset", "environ", "fd", "fdinfo", "gid_map", "io", "ksm_merging_pages", "ksm_stat", "latency",
    "limits", "loginuid", "maps", "mountinfo", "mounts", "mountstats", "net", "ns", "oom_adj", "oom_score",
    "oom_score_adj", "patch_state", "personality", "projid_map", "sched", "schedstat", "sessionid", "setgroups",
    "stat", "statm", "status", "task", "timens_offsets", "timers", "timerslack_ns", "uid_map", "wchan",
];
/// General files that show all memory.
const WHOLE_MEMORY: &[&str] = &["kcore", "kpagecgroup", "kpagecount", "kpageflags", "vmcore"];
/// The fields of stat that are addresses (proc_pid_stat(5)), counted from 1.
const ADDRESSES: [usize; 12] = [26, 27, 28, 29, 30, 45, 46, 47, 48, 49, 50, 51];
/// The field of stat with the size of the address space in bytes.
const ADDRESS_SPACE_BYTES: usize = 23;

/// The flags with which a descriptor was opened, as far as they can be queried.
fn flags_of(descriptor: RawFd) -> i32 {
    // SAFETY: no pointers are passed.
    let (flags, own) =
        unsafe { (libc::fcntl(descriptor, libc::F_GETFL), libc::fcntl(descriptor, libc::F_GETFD)) };
    flags | if own & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 }
}

/// Replaces a /proc file that the guest has just opened by one with the contents that the guest may see. A file that is
/// not in the engine's own /proc is refused, since nobody knows what it shows.
pub fn replace<G: Abi>(kernel: &mut Kernel<G>, memory: &Memory, descriptor: u64) -> Result<u64, Errno> {
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
    let (id, name) = match procfs::identify(number) {
        Some(Entry::Of(id, name)) => (id, name),
        Some(Entry::General(name)) if WHOLE_MEMORY.contains(&&*name) => return Err(Errno(libc::EPERM)),
        Some(Entry::General(_)) => return Ok(opened.into_raw_fd() as u64),
        None => {
            kernel.name_refused("open", "a file in a /proc that was mounted later", "EACCES");
            return Err(Errno(libc::EACCES));
        }
    };
    let own = procfs::is_own(id);
    let is_engine = || own || procfs::runs_engine(id);
    let link = format!("/proc/{id}/{name}");
    let instead = match &*name {
        "mem" if is_engine() => {
            kernel.opened_memory = true;
            let process = if own { std::process::id() } else { id };
            if !own && !procfs::has_our_ids() {
                return Err(Errno(libc::EACCES));
            }
            memory_file::open(process, flags)?
        }
        "mem" => return Ok(opened.into_raw_fd() as u64),
        "maps" | "auxv" if !own && is_engine() => return Err(Errno(libc::EACCES)),
        "stat" => {
            let mut content = Vec::new();
            opened.read_to_end(&mut content)?;
            let bytes = own.then(|| memory.mapped_bytes());
            in_memory(link.as_bytes(), &guest_stat(&content, bytes), flags)?
        }
        _ if name.starts_with("fdinfo/") && is_engine() => {
            let mut content = String::new();
            opened.read_to_string(&mut content)?;
            in_memory(link.as_bytes(), guest_descriptor::<G>(&content).as_bytes(), flags)?
        }
        _ if !HARMLESS.contains(&name.split('/').next().unwrap_or_default()) && is_engine() => {
            return Err(Errno(libc::ENOENT));
        }
        _ => match kernel.own_contents(memory, &name).filter(|_| own) {
            Some(contents) => in_memory(link.as_bytes(), &contents, flags)?,
            None => return Ok(opened.into_raw_fd() as u64),
        },
    };
    // SAFETY: both descriptors are open and ours; the number is the one that the guest receives.
    let placed = unsafe { libc::dup3(instead.as_raw_fd(), number, flags & libc::O_CLOEXEC) };
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

/// What is known of a descriptor (fdinfo in proc_pid_fdinfo(5)), with flags and signals in the guest's numbering.
fn guest_descriptor<G: Abi>(content: &str) -> String {
    let line = |line: &str| {
        let (field, value) = line.split_once(":\t").unwrap_or((line, ""));
        let converted = match field {
            "flags" => u64::from_str_radix(value, 8).map(|flags| format!("flags:\t0{:o}", G::OPEN.guest(flags))),
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

/// A process's stat with 0 for the engine's addresses, as a reader without permission sees it.
fn guest_stat(content: &[u8], bytes: Option<u64>) -> Vec<u8> {
    let text = String::from_utf8_lossy(content);
    // The second field is a name in parentheses that may contain any character.
    let Some((name, rest)) = text.rsplit_once(')') else { return Vec::new() };
    let fields = rest.split_ascii_whitespace().enumerate().map(|(index, value)| match index + 3 {
        field if ADDRESSES.contains(&field) => "0".into(),
        ADDRESS_SPACE_BYTES => bytes.map_or_else(|| value.into(), |bytes| bytes.to_string()),
        _ => value.to_string(),
    });
    format!("{name}) {}\n", fields.collect::<Vec<_>>().join(" ")).into_bytes()
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

fn backing(region: &Region) -> (u64, String, u64, String) {
    use std::os::unix::fs::MetadataExt;
    match &region.backing {
        Backing::Anonymous => (0, "00:00".into(), 0, String::new()),
        Backing::Named(name) => (0, "00:00".into(), 0, (*name).into()),
        Backing::File { path, offset } => {
            let (device, inode) = std::fs::metadata(&**path).map_or((0, 0), |file| (file.dev(), file.ino()));
            let device = format!("{:02x}:{:02x}", libc::major(device), libc::minor(device));
            (*offset, device, inode, path.display().to_string())
        }
    }
}
