//! Files of /proc that must describe the guest instead of the engine. They are recognised by what was opened, since
//! they have many names.

use std::fmt::Write as _;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::abi::Abi;
use crate::process_memory::runs_engine;
use crate::state::kernel::Kernel;
use crate::state::threads::Thread;
use crate::{memory_file, proc_status, reserved};
use host::Errno;
use memory::{Backing, Memory, Region};

/// Files that show the engine's memory, registers, reads and times, and that a kernel may be built without.
const ABSENT: [&str; 13] = [
    "smaps",
    "smaps_rollup",
    "numa_maps",
    "pagemap",
    "clear_refs",
    "syscall",
    "stack",
    "map_files",
    "io",
    "sched",
    "schedstat",
    "timers",
    "latency",
];
/// Process and file name of an open file, by its link in /proc/self/fd: `/proc/PID/NAME` or
/// `/proc/PID/task/TID/NAME`, wherever /proc is mounted.
fn process_file(link: &[u8]) -> Option<(u32, &str)> {
    let mut parts = std::str::from_utf8(link).ok()?.rsplit('/');
    let name = parts.next()?;
    let process = parts.next()?.parse().ok()?;
    match (parts.next(), parts.next().and_then(|process| process.parse().ok())) {
        (Some("task"), Some(process)) => Some((process, name)),
        _ => Some((process, name)),
    }
}

/// True for the ID of this process or of one of its threads.
fn is_own(process: u32) -> bool {
    process == std::process::id() || Path::new(&format!("/proc/self/task/{process}")).exists()
}

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
    caller: &Thread<G>,
    memory: &Memory,
    descriptor: u64,
) -> Result<u64, Errno> {
    let number = descriptor as RawFd;
    if !reserved::is_proc_file(number) {
        return Ok(descriptor);
    }
    let flags = flags_of(number);
    if flags & libc::O_PATH != 0 {
        return Ok(descriptor);
    }
    let Some(link) = reserved::link_of(number) else { return Ok(descriptor) };
    // SAFETY: the guest has not received the descriptor yet. If it cannot be replaced it must be closed.
    let mut opened = unsafe { std::fs::File::from_raw_fd(number) };
    let Some((process, name)) = process_file(&link) else {
        let name = std::str::from_utf8(&link).ok().and_then(|link| link.strip_prefix("/proc/"));
        return match name.and_then(|name| proc_status::of_system(kernel, name)) {
            Some(contents) => put(in_memory(&link, contents.as_bytes(), flags)?, opened, flags),
            None => Ok(opened.into_raw_fd() as u64),
        };
    };
    let own = is_own(process);
    if !own && !runs_engine(process) {
        return Ok(opened.into_raw_fd() as u64);
    }
    let instead = match name {
        "mem" => {
            kernel.opened_memory = true;
            let process = if own { std::process::id() } else { process };
            memory_file::open(process, flags)?
        }
        "maps" | "auxv" if !own => return Err(Errno(libc::EACCES)),
        "stat" | "status" | "statm" | "limits" => {
            let mut content = Vec::new();
            opened.read_to_end(&mut content)?;
            let content = String::from_utf8_lossy(&content);
            let contents = match name {
                _ if own => proc_status::contents(kernel, caller, memory, name, &content),
                "stat" => proc_status::stat_of_other(&content),
                "status" => proc_status::status_of_other::<G>(&content),
                "statm" => "0 0 0 0 0 0 0\n".into(),
                _ => content.into(),
            };
            in_memory(&link, contents.as_bytes(), flags)?
        }
        _ if ABSENT.contains(&name) => return Err(Errno(libc::ENOENT)),
        _ => match kernel.own_contents(memory, name).filter(|_| own) {
            Some(contents) => in_memory(&link, &contents, flags)?,
            None => return Ok(opened.into_raw_fd() as u64),
        },
    };
    put(instead, opened, flags)
}

/// Gives a file the number of the one that was opened.
fn put(instead: OwnedFd, opened: std::fs::File, flags: i32) -> Result<u64, Errno> {
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
