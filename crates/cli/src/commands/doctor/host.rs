//! What the engine needs of the host: each check does what the engine does.

use std::fs;
use std::path::Path;

use super::Check;

/// The kernel's default. A program of many mappings may need more.
const USUAL_MAPPINGS: u64 = 65_530;

/// Less than this is soon full: traces, builds and their sources.
const FREE_SPACE: u64 = 1 << 30;

/// All checks of the host.
pub fn checks() -> Vec<Check> {
    let [address_space, direct] = memory();
    vec![
        address_space,
        memory_files(),
        proc_files(),
        direct,
        executable_memory(),
        mappings(),
        dispatch(),
        host_programs(),
        temporary_files(),
        disk_space(),
        processors(),
    ]
}

/// The reservation of a program's address space, and whether it is at the program's own addresses.
fn memory() -> [Check; 2] {
    let reserved = engine::reserve_memory();
    let is_direct =
        reserved.as_ref().is_ok_and(|memory| memory.host(1 << 16, 1) == Some((1 << 16) as *mut u8));
    let found = reserved.map(|_| "reserved".to_string()).map_err(|error| error.to_string());
    [
        Check::needed("address space of 4 TiB", "every program", found)
            .get("ulimit -v unlimited; sysctl vm.overcommit_memory=0"),
        Check::optional(
            "addresses from 64 KiB",
            "compiled code",
            is_direct.then(|| "free".into()).ok_or("taken".into()),
        )
        .get("sysctl vm.mmap_min_addr=65536; without a sanitizer or valgrind"),
    ]
}

/// Files in memory: shared counters of recordings, and files of /proc as programs see them.
fn memory_files() -> Check {
    // SAFETY: the name ends with a zero byte.
    let descriptor = unsafe { libc::memfd_create(c"doctor".as_ptr(), libc::MFD_CLOEXEC) };
    let found = if descriptor < 0 {
        Err(std::io::Error::last_os_error().to_string())
    } else {
        // SAFETY: the descriptor is this function's own.
        unsafe { libc::close(descriptor) };
        Ok("works".into())
    };
    Check::needed("memfd_create", "traces, files of /proc", found)
        .get("Linux 3.17 or later; a sandbox (seccomp) that permits it")
}

fn proc_files() -> Check {
    let found =
        fs::read_link("/proc/self/exe").map(|_| "mounted".to_string()).map_err(|error| error.to_string());
    Check::needed("/proc", "programs and their processes", found).get("mount -t proc proc /proc")
}

/// Memory that is written and then executed, as compiled code is.
fn executable_memory() -> Check {
    const BYTES: usize = 4096;
    // SAFETY: a new mapping at an address of the kernel's choice, which is removed again.
    let is_permitted = unsafe {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let page = libc::mmap(std::ptr::null_mut(), BYTES, access, kind, -1, 0);
        let is_mapped = page != libc::MAP_FAILED;
        let is_executable = is_mapped && libc::mprotect(page, BYTES, libc::PROT_READ | libc::PROT_EXEC) == 0;
        if is_mapped {
            libc::munmap(page, BYTES);
        }
        is_executable
    };
    let found = match (cfg!(target_arch = "x86_64"), is_permitted) {
        (true, true) => Ok("permitted".into()),
        (true, false) => Err("not permitted".into()),
        (false, _) => Err(format!("{}: interpreted", std::env::consts::ARCH)),
    };
    Check::optional("executable memory", "compiled code", found)
        .get("an x86-64 host that permits it (SELinux: execmem)")
}

fn mappings() -> Check {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count").map_err(|error| error.to_string());
    let found = text.and_then(|text| {
        let limit: u64 = text.trim().parse().map_err(|_| text.clone())?;
        if limit >= USUAL_MAPPINGS { Ok(limit.to_string()) } else { Err(limit.to_string()) }
    });
    Check::optional("vm.max_map_count", "programs with many mappings", found)
        .get(format!("sysctl vm.max_map_count={USUAL_MAPPINGS}"))
}

/// Interception of the host's system calls in a process that shares state with its parent.
fn dispatch() -> Check {
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    const OFF: libc::c_ulong = 0;
    // SAFETY: this turns off what is off.
    let result = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, OFF, 0, 0, 0) };
    let found =
        if result == 0 { Ok("works".into()) } else { Err(std::io::Error::last_os_error().to_string()) };
    Check::optional("syscall user dispatch", "clone with shared descriptors", found)
        .get("Linux 5.11 or later; a sandbox (seccomp) that permits it")
}

fn host_programs() -> Check {
    let command = std::env::current_exe().map(|path| [path.into_os_string()]);
    let prepared = command.and_then(|command| interpose::environment(&command));
    let found = prepared.map(|_| "prepared".to_string()).map_err(|error| error.to_string());
    Check::optional("LD_PRELOAD library", "Alpha programs started by the host's", found)
        .get("a HOME or XDG_CACHE_HOME that only its user can write to")
}

fn temporary_files() -> Check {
    let folder = std::env::temp_dir();
    let is_writable = is_writable(&folder);
    let found =
        if is_writable { Ok(folder.display().to_string()) } else { Err(format!("{}", folder.display())) };
    Check::needed("temporary files", "traces, counts of processes", found)
        .get("TMPDIR=DIR, a directory to write to")
}

fn is_writable(folder: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the path ends with a zero byte.
    std::ffi::CString::new(folder.as_os_str().as_bytes())
        .is_ok_and(|path| unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } == 0)
}

fn disk_space() -> Check {
    // SAFETY: the structure is plain numbers, which the call sets; the path ends with a zero byte.
    let (result, space) = unsafe {
        let mut space: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(c".".as_ptr(), &raw mut space), space)
    };
    let free = space.f_bavail * space.f_frsize;
    let found = match result {
        0 if free >= FREE_SPACE => Ok(format!("{} MiB free", free >> 20)),
        0 => Err(format!("{} MiB free", free >> 20)),
        _ => Err(std::io::Error::last_os_error().to_string()),
    };
    Check::optional("disk space, here", "traces, builds", found).get("1 GiB")
}

fn processors() -> Check {
    let number = std::thread::available_parallelism().map_or(1, usize::from);
    let found = if number > 1 { Ok(number.to_string()) } else { Err(number.to_string()) };
    Check::optional("processors", "caches and time in half the time", found).get("2")
}
