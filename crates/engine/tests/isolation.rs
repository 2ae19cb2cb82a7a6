//! A program must not reach the engine that runs it, by any of the kernel's interfaces to memory.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;

use alpha::cpu::{Cpu, register};
use linux::{self, Control, Kernel, Settings, SharedKernel, Thread};
use memory::{Backing, Memory};

const PAGE: u64 = <Cpu as linux::Abi>::LAYOUT.page;
const ADDRESS_SPACE: u64 = <Cpu as linux::Abi>::LAYOUT.bytes;

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
    thread: Thread<Cpu>,
    cpu: Cpu,
    memory: Memory,
}

impl Guest {
    fn new() -> Guest {
        let memory = pathlength_engine::reserve_memory().unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        memory.map_anonymous(SCRATCH, ROOM + PAGE, protection, false, Backing::Anonymous).unwrap();
        let cpu = Cpu { pc: SCRATCH, ..Cpu::default() };
        let thread = Thread::first();
        let kernel = SharedKernel::new(Kernel::new(Settings::default(), &thread));
        Guest { kernel, thread, cpu, memory }
    }

    fn call(&mut self, number: u64, arguments: [u64; 6]) -> Result<u64, u64> {
        self.cpu.r[register::V0] = number;
        self.cpu.r[register::A0..register::A0 + 6].copy_from_slice(&arguments);
        let mut kernel = self.kernel.lock();
        let control = linux::system_call(&mut kernel, &mut self.thread, &mut self.cpu, &self.memory);
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
    let places = [
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
    for place in places.into_iter().chain(reserved) {
        assert_eq!(guest.call(PREAD, [file, TEXT, 8, place, 0, 0]), Err(EIO), "{place:#x}");
        assert_eq!(guest.call(PWRITE, [file, TEXT, 8, place, 0, 0]), Err(EIO), "{place:#x}");
        for (at, word) in [(0, TEXT), (8, 8), (16, place), (24, 8)] {
            guest.memory.store::<8>(SCRATCH + at, word).unwrap();
        }
        for number in [READV, WRITEV] {
            let result = guest.call(number, [process, SCRATCH, 1, SCRATCH + 16, 1, 0]);
            assert_eq!(result, Err(EFAULT), "{number} {place:#x}");
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
