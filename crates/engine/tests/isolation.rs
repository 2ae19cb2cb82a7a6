//! A program must not reach the engine that runs it, by any of the kernel's interfaces to memory.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;

use alpha::cpu::{Cpu, register};
use guest_memory::{Memory, RegionBacking};
use linux_user::{self, Control, Kernel, SharedKernel, SystemSettings, Task};

const PAGE: u64 = <Cpu as linux_user::Abi>::LAYOUT.page;
const ADDRESS_SPACE: u64 = <Cpu as linux_user::Abi>::LAYOUT.bytes;

const SCRATCH: u64 = 0x10_0000;
const TEXT: u64 = SCRATCH + PAGE;
const ROOM: u64 = 64 * PAGE;

const READ: u64 = 3;
const CLOSE: u64 = 6;
const OPEN: u64 = 45;
const PREAD: u64 = 349;
const PWRITE: u64 = 350;
const READV: u64 = 504;
const WRITEV: u64 = 505;
const EIO: u64 = 5;
const EFAULT: u64 = 14;

struct Guest {
    kernel: SharedKernel<Cpu>,
    thread: Task<Cpu>,
    cpu: Cpu,
    memory: Memory,
}

impl Guest {
    fn new() -> Guest {
        let memory = pathlength_engine::reserve_memory().unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        memory.map_anonymous(SCRATCH, ROOM + PAGE, protection, false, RegionBacking::Anonymous).unwrap();
        let cpu = Cpu { pc: SCRATCH, ..Cpu::default() };
        let thread = Task::first();
        let kernel = SharedKernel::new(Kernel::new(SystemSettings::default(), &thread));
        Guest { kernel, thread, cpu, memory }
    }

    fn call(&mut self, number: u64, arguments: [u64; 6]) -> Result<u64, u64> {
        self.cpu.r[register::V0] = number;
        self.cpu.r[register::A0..register::A0 + 6].copy_from_slice(&arguments);
        let mut kernel = self.kernel.lock();
        let control = linux_user::system_call(&mut kernel, &mut self.thread, &mut self.cpu, &self.memory);
        assert_eq!(control, Control::Continue);
        let value = self.cpu.r[register::V0];
        if self.cpu.r[register::A3] == 0 { Ok(value) } else { Err(value) }
    }

    fn open(&mut self, path: &str, flags: u64) -> Result<u64, u64> {
        self.memory.write(SCRATCH, &[path.as_bytes(), b"\0"].concat()).unwrap();
        self.call(OPEN, [SCRATCH, flags, 0, 0, 0, 0])
    }

    /// The contents of a file, as far as they can be read and fit into the buffer.
    fn contents(&mut self, path: &str) -> Result<Vec<u8>, u64> {
        // Alpha's O_NONBLOCK.
        let file = self.open(path, 4)?;
        let read = self.call(READ, [file, TEXT, ROOM, 0, 0, 0]);
        self.call(CLOSE, [file, 0, 0, 0, 0, 0])?;
        let mut bytes = vec![0; read? as usize];
        self.memory.read(TEXT, &mut bytes).unwrap();
        Ok(bytes)
    }
}

static CONSTANT: [u64; 4] = [0x0123_4567_89ab_cdef; 4];

#[test]
fn no_window_shows_the_engines_memory() {
    let mut guest = Guest::new();
    let heap = Box::new([0x5555_aaaa_5555_aaaau64; 4]);
    let stack = std::hint::black_box([0xaaaa_5555_aaaa_5555u64; 4]);
    let addresses = [
        heap.as_ptr() as u64,
        stack.as_ptr() as u64,
        CONSTANT.as_ptr() as u64,
        Guest::new as *const () as u64,
    ];
    let process = u64::from(std::process::id());
    let file = guest.open("/proc/self/mem", 2).unwrap();
    // The window itself is the guest's.
    guest.memory.store::<8>(TEXT, 42).unwrap();
    assert_eq!(guest.call(PREAD, [file, SCRATCH, 8, TEXT, 0, 0]), Ok(8));
    assert_eq!(guest.memory.load::<8>(SCRATCH), Ok(42));
    let reserved = [0, PAGE, SCRATCH - PAGE, ADDRESS_SPACE - PAGE, ADDRESS_SPACE, ADDRESS_SPACE + PAGE];
    for address in addresses.into_iter().chain(reserved) {
        assert_eq!(guest.call(PREAD, [file, TEXT, 8, address, 0, 0]), Err(EIO), "{address:#x}");
        assert_eq!(guest.call(PWRITE, [file, TEXT, 8, address, 0, 0]), Err(EIO), "{address:#x}");
        for (at, word) in [(0, TEXT), (8, 8), (16, address), (24, 8)] {
            guest.memory.store::<8>(SCRATCH + at, word).unwrap();
        }
        for number in [READV, WRITEV] {
            let result = guest.call(number, [process, SCRATCH, 1, SCRATCH + 16, 1, 0]);
            assert_eq!(result, Err(EFAULT), "{number} {address:#x}");
        }
    }
    assert_eq!(
        (*heap, stack, CONSTANT),
        ([0x5555_aaaa_5555_aaaa; 4], [0xaaaa_5555_aaaa_5555; 4], [0x0123_4567_89ab_cdef; 4])
    );
}

/// The engine's mappings.
fn mappings() -> Vec<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let range = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    maps.lines().filter_map(range).filter(|range| range.start > ADDRESS_SPACE * 2).collect()
}

/// Every number as which a part of the text or words can be read.
fn numbers(bytes: &[u8]) -> BTreeSet<u64> {
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split(|character: char| !character.is_ascii_hexdigit());
    let read = parts.flat_map(|part| [part.parse().ok(), u64::from_str_radix(part, 16).ok()]);
    words.chain(read.flatten()).collect()
}

#[test]
fn no_file_of_proc_tells_where_the_engine_is() {
    let mut guest = Guest::new();
    let mappings = mappings();
    let process = std::process::id();
    let mut seen = 0;
    for folder in ["/proc/self".into(), format!("/proc/{process}"), format!("/proc/self/task/{process}")] {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| !kind.is_file()) || path.ends_with("mem") {
                continue;
            }
            let Ok(bytes) = guest.contents(path.to_str().unwrap()) else { continue };
            seen += 1;
            let reported = numbers(&bytes);
            let ours = mappings.iter().find_map(|range| reported.range(range.clone()).next());
            assert_eq!(ours, None, "{path:?}: {}", String::from_utf8_lossy(&bytes));
        }
    }
    assert!(seen > 30, "{seen}");
}

/// O_RDWR.
const READ_WRITE: u64 = 2;
/// Alpha's O_PATH.
const PATH_ONLY: u64 = 0o40000000;
const EPERM: u64 = 1;
const EACCES: u64 = 13;
const EINVAL: u64 = 22;
const ENOPROTOOPT: u64 = 42;

impl Guest {
    /// Asserts that a file, if the guest gets it, shows nothing of the engine.
    fn assert_shows_nothing(&mut self, path: &str) {
        let address = CONSTANT.as_ptr() as u64;
        if let Ok(file) = self.open(path, READ_WRITE) {
            for number in [PREAD, PWRITE] {
                assert_ne!(self.call(number, [file, TEXT, 8, address, 0, 0]), Ok(8), "{path}");
            }
            self.call(CLOSE, [file, 0, 0, 0, 0, 0]).unwrap();
        }
    }

    fn set_text(&mut self, at: u64, text: &str) -> u64 {
        self.memory.write(at, &[text.as_bytes(), b"\0"].concat()).unwrap();
        at
    }
}

#[test]
fn no_name_leads_to_the_engines_memory() {
    let mut guest = Guest::new();
    let process = std::process::id();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/proc/self/mem", &link).unwrap();
    let names = [
        "/proc/thread-self/mem".into(),
        format!("/proc/{process}/task/{process}/mem"),
        "//proc//self/./mem".into(),
        "/proc/self/root/proc/self/mem".into(),
        "/dev/fd/../mem".into(),
        link.to_str().unwrap().into(),
    ];
    for name in &names {
        guest.assert_shows_nothing(name);
    }
    let file = guest.open("/proc/self/mem", PATH_ONLY).unwrap();
    for folder in ["/proc/self/fd", "/dev/fd"] {
        guest.assert_shows_nothing(&format!("{folder}/{file}"));
    }
}

#[test]
fn no_namespace_nor_mount_leads_to_the_engines_memory() {
    const MOUNT: u64 = 302;
    const UNSHARE: u64 = 465;
    const SETNS: u64 = 501;
    let mut guest = Guest::new();
    // SAFETY: no preconditions.
    let is_root = unsafe { libc::geteuid() } == 0;
    let refused = Err(if is_root { EINVAL } else { EPERM });
    for (flags, expected) in [
        (libc::CLONE_NEWUSER, Err(EINVAL)),
        (libc::CLONE_NEWNS, refused),
        (libc::CLONE_NEWPID, refused),
        (libc::CLONE_NEWNS | libc::CLONE_NEWUSER, Err(EINVAL)),
    ] {
        assert_eq!(guest.call(UNSHARE, [flags as u64, 0, 0, 0, 0, 0]), expected, "{flags:#x}");
    }
    for (name, expected) in [("user", Err(EINVAL)), ("mnt", refused), ("pid", refused)] {
        let file = guest.open(&format!("/proc/self/ns/{name}"), 0).unwrap();
        let expected = if name == "user" && !is_root { Err(EINVAL) } else { expected };
        assert_eq!(guest.call(SETNS, [file, 0, 0, 0, 0, 0]), expected, "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, target, kind) = (SCRATCH, SCRATCH + 1024, SCRATCH + 2048);
    guest.set_text(target, folder.path().to_str().unwrap());
    for (from, name, flags) in
        [("proc", "proc", 0), ("/proc", "", libc::MS_BIND), ("/proc/self", "", libc::MS_BIND)]
    {
        guest.set_text(source, from);
        guest.set_text(kind, name);
        assert_eq!(guest.call(MOUNT, [source, target, kind, flags, 0, 0]), Err(EPERM), "{from}");
    }
    if !is_root {
        return;
    }
    // What others have mounted, in a namespace of this thread alone.
    let (other, bound, covered) =
        (folder.path().join("proc"), folder.path().join("mem"), "/proc/self/status");
    fs::create_dir(&other).unwrap();
    fs::write(&bound, "").unwrap();
    let mount = |from: &str, to: &str, kind: &str, flags: libc::c_ulong| {
        let [from, to, kind] = [from, to, kind].map(|text| std::ffi::CString::new(text).unwrap());
        // SAFETY: the arguments are strings.
        let result =
            unsafe { libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) };
        assert_eq!(result, 0, "{from:?}: {}", std::io::Error::last_os_error());
    };
    // SAFETY: no preconditions.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0);
    mount("none", "/", "", libc::MS_REC | libc::MS_PRIVATE);
    mount("proc", other.to_str().unwrap(), "proc", 0);
    mount("/proc/self/mem", bound.to_str().unwrap(), "", libc::MS_BIND);
    mount("/proc/self/mem", covered, "", libc::MS_BIND);
    let process = std::process::id();
    for path in [&format!("{}/{process}/mem", other.display()), bound.to_str().unwrap(), covered] {
        assert_eq!(guest.open(path, READ_WRITE), Err(EACCES), "{path}");
    }
    assert_eq!(guest.open(&format!("{}/{process}/maps", other.display()), 0), Err(EACCES));
    guest.assert_shows_nothing("/proc/self/mem");
}

#[test]
fn socket_options_hold_no_addresses() {
    const SOCKET: u64 = 97;
    const SETSOCKOPT: u64 = 105;
    const GETSOCKOPT: u64 = 118;
    let mut guest = Guest::new();
    let socket = guest.call(SOCKET, [2, 1, 0, 0, 0, 0]).unwrap();
    // A filter of one instruction, in the engine's memory.
    guest.memory.store::<8>(SCRATCH, 1).unwrap();
    guest.memory.store::<8>(SCRATCH + 8, CONSTANT.as_ptr() as u64).unwrap();
    for (level, option) in [(0, 64), (41, 64), (6, 35), (283, 4), (276, 1), (77, 1)] {
        guest.memory.store::<4>(SCRATCH + 16, 16).unwrap();
        let set = guest.call(SETSOCKOPT, [socket, level, option, SCRATCH, 16, 0]);
        let get = guest.call(GETSOCKOPT, [socket, level, option, SCRATCH, SCRATCH + 16, 0]);
        assert_eq!((set, get), (Err(ENOPROTOOPT), Err(ENOPROTOOPT)), "{level} {option}");
    }
    // Filters are converted, and their instructions are the guest's.
    for (level, option) in [(0xffff, 26), (0xffff, 51), (263, 22)] {
        let set = guest.call(SETSOCKOPT, [socket, level, option, SCRATCH, 16, 0]);
        assert_eq!(set, Err(EFAULT), "{level} {option}");
    }
    // SOL_SOCKET of the host.
    assert_eq!(guest.call(SETSOCKOPT, [socket, 1, 26, SCRATCH, 16, 0]), Err(EFAULT));
    assert_eq!(guest.call(SETSOCKOPT, [socket, 1, 2, SCRATCH, 16, 0]), Err(ENOPROTOOPT));
    // Plain options pass: TCP_NODELAY, IP_TOS, SO_REUSEADDR.
    for (level, option) in [(6, 1), (0, 1), (0xffff, 4)] {
        assert_eq!(guest.call(SETSOCKOPT, [socket, level, option, SCRATCH, 4, 0]), Ok(0), "{level} {option}");
    }
}

/// The file is found by a descriptor, but a root directory without /proc has no link to that.
#[test]
fn files_are_truncated_in_another_root_directory() {
    const TRUNCATE: u64 = 129;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "12345").unwrap();
    let file = fs::File::open(&path).unwrap();
    let mut guest = Guest::new();
    // SAFETY: no preconditions; only this thread's root directory changes below.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, 0);
    std::os::unix::fs::chroot(folder.path()).unwrap();
    guest.set_text(SCRATCH, "/file");
    assert_eq!(guest.call(TRUNCATE, [SCRATCH, 2, 0, 0, 0, 0]), Ok(0));
    assert_eq!(file.metadata().unwrap().len(), 2);
    guest.set_text(SCRATCH, "/missing");
    assert_eq!(guest.call(TRUNCATE, [SCRATCH, 2, 0, 0, 0, 0]), Err(2));
}
