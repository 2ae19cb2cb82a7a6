//! Memory operations of each byte on its way, as the paper counts them and as caches leave them: by the size of buffers.

use machine::{Coherence, CoherentMemory, Machine};

/// The memory operations of a path with buffers of a size.
#[derive(Clone, Debug)]
pub struct MemoryOperations {
    pub direction: &'static str,
    pub path: &'static str,
    /// Operations for each byte, as the paper counts them.
    pub printed: u32,
    /// KB of the application's buffers, and of the stack's.
    pub kilobytes: u64,
    /// For each line of data: lines filled for loads and for stores, and dirty lines written back.
    pub load_fills: f64,
    pub store_fills: f64,
    pub write_backs: f64,
    /// Lines that the device read from memory or wrote to it, and those that a cache supplied or took.
    pub device_memory: f64,
    pub device_caches: f64,
}

impl MemoryOperations {
    /// Operations of the memory for each line.
    pub fn memory(&self) -> f64 {
        self.load_fills + self.store_fills + self.write_backs + self.device_memory
    }
}

/// The buffers that data are in.
#[derive(Clone, Copy)]
enum PathBuffer {
    Application,
    Stack,
}

use PathBuffer::{Application, Stack};

/// A step of a packet's path.
#[derive(Clone, Copy)]
enum PathStep {
    Load(PathBuffer),
    Store(PathBuffer),
    /// A load from the first and a store to the second.
    CopyBetween(PathBuffer, PathBuffer),
    DeviceRead(PathBuffer),
    DeviceWrite(PathBuffer),
}

use PathStep::{CopyBetween, DeviceRead, DeviceWrite, Load, Store};

/// A path: its direction, its name, and its steps; whether the device writes into a cache.
struct DataPath {
    direction: &'static str,
    name: &'static str,
    steps: &'static [PathStep],
    has_direct_cache_access: bool,
}

const fn path(direction: &'static str, name: &'static str, steps: &'static [PathStep]) -> DataPath {
    DataPath { direction, name, steps, has_direct_cache_access: false }
}

const PATHS: [DataPath; 9] = [
    path(
        "send",
        "traditional (Figure 2)",
        &[Store(Application), CopyBetween(Application, Stack), Load(Stack), DeviceRead(Stack)],
    ),
    path(
        "send",
        "checksums by hardware",
        &[Store(Application), CopyBetween(Application, Stack), DeviceRead(Stack)],
    ),
    path("send", "DART (Figure 3)", &[Store(Application), DeviceRead(Application)]),
    path(
        "receive",
        "traditional",
        &[DeviceWrite(Stack), Load(Stack), CopyBetween(Stack, Application), Load(Application)],
    ),
    path(
        "receive",
        "checksums by hardware",
        &[DeviceWrite(Stack), CopyBetween(Stack, Application), Load(Application)],
    ),
    path("receive", "DART", &[DeviceWrite(Application), Load(Application)]),
    DataPath {
        has_direct_cache_access: true,
        ..path("receive", "DART, direct cache access", &[DeviceWrite(Application), Load(Application)])
    },
    path("serve", "through memory (Figure 5)", &[DeviceWrite(Stack), DeviceRead(Stack)]),
    path("serve", "peer to peer (Figure 6)", &[]),
];

/// The machine, whose outermost cache has 4 MB.
pub const MACHINE: &str = "alphaserver4100";

/// KB of the application's buffers; the stack's have as many.
const KILOBYTES: [u64; 7] = [64, 512, 1024, 2048, 4096, 8192, 16384];

const PACKET: u64 = 8192;

impl PathStep {
    /// Operations, as the paper counts them.
    fn printed(self) -> u32 {
        if matches!(self, CopyBetween(..)) { 2 } else { 1 }
    }

    /// Executes the step for a line at an offset of the buffers.
    fn apply(self, memory: &mut CoherentMemory, offset: u64, bytes: u64) {
        let at = |buffer: PathBuffer| match buffer {
            Application => 0x1000_0000 + offset,
            Stack => 0x1000_0000 + bytes + offset,
        };
        match self {
            Load(from) => {
                memory.access(0, at(from), 8, false);
            }
            Store(to) => {
                memory.access(0, at(to), 8, true);
            }
            CopyBetween(from, to) => {
                memory.access(0, at(from), 8, false);
                memory.access(0, at(to), 8, true);
            }
            DeviceRead(from) => {
                memory.device_read(at(from));
            }
            DeviceWrite(to) => {
                memory.device_write(0, at(to), memory.line_size() as u16);
            }
        }
    }
}

/// Every path with buffers of every size.
pub fn memory_operations() -> Vec<MemoryOperations> {
    let machine = Machine::find(MACHINE).expect("it comes with pathlength");
    let coherence = machine.coherence.as_ref().expect("it has several processors");
    let all = PATHS.iter().flat_map(|path| KILOBYTES.map(|kilobytes| (path, kilobytes)));
    all.map(|(path, kilobytes)| simulate(&machine, coherence, path, kilobytes)).collect()
}

/// Packets go through the buffers in turn, until the caches are in a steady state, and then twice more.
fn simulate(machine: &Machine, coherence: &Coherence, path: &DataPath, kilobytes: u64) -> MemoryOperations {
    let direct_cache_access = path.has_direct_cache_access;
    let mut memory = CoherentMemory::new(machine, &Coherence { direct_cache_access, ..coherence.clone() }, 1);
    let (bytes, line) = (kilobytes * 1024, memory.line_size());
    let round = |memory: &mut CoherentMemory| {
        for packet in (0..bytes).step_by(PACKET as usize) {
            for step in path.steps {
                for offset in (packet..packet + PACKET).step_by(line as usize) {
                    step.apply(memory, offset, bytes);
                }
            }
        }
    };
    (0..2).for_each(|_| round(&mut memory));
    memory.reset_counts();
    (0..2).for_each(|_| round(&mut memory));
    let (counts, devices) = (memory.counts(), memory.devices());
    let per_line = |count: u64| count as f64 / (2 * bytes / line) as f64;
    MemoryOperations {
        direction: path.direction,
        path: path.name,
        printed: path.steps.iter().map(|step| step.printed()).sum(),
        kilobytes,
        load_fills: per_line(counts.reads),
        store_fills: per_line(counts.reads_for_ownership),
        write_backs: per_line(counts.write_backs + counts.memory_updates),
        device_memory: per_line(devices.reads - devices.supplied + devices.writes - devices.placed),
        device_caches: per_line(devices.supplied + devices.placed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With buffers larger than the cache, and with small ones, as worked out by hand.
    #[test]
    fn large_buffers_have_the_operations_worked_out_by_hand() {
        let all = memory_operations();
        let of = |direction: &str, path: &str, kilobytes: u64| {
            let is_it = |one: &&MemoryOperations| {
                (one.direction, one.kilobytes) == (direction, kilobytes) && one.path.starts_with(path)
            };
            let one = all.iter().find(is_it).unwrap();
            let moved =
                [one.load_fills, one.store_fills, one.write_backs, one.device_memory, one.device_caches];
            (one.printed, moved)
        };
        // The application's line and the stack's are filled to be stored to, and written back later. The copy, the checksum and the
        // device find theirs in the cache.
        assert_eq!(of("send", "traditional", 16384), (5, [0.0, 2.0, 2.0, 0.0, 1.0]));
        assert_eq!(of("send", "checksums", 16384), (4, [0.0, 2.0, 2.0, 0.0, 1.0]));
        assert_eq!(of("send", "DART", 16384), (2, [0.0, 1.0, 1.0, 0.0, 1.0]));
        // All buffers are in the cache.
        assert_eq!(of("send", "traditional", 64), (5, [0.0, 0.0, 0.0, 0.0, 1.0]));
        // What the device writes is not in a cache, whatever its size.
        assert_eq!(of("receive", "traditional", 64), (5, [1.0, 0.0, 0.0, 1.0, 0.0]));
        assert_eq!(of("receive", "traditional", 16384), (5, [1.0, 1.0, 1.0, 1.0, 0.0]));
        assert_eq!(of("receive", "DART", 16384), (2, [1.0, 0.0, 0.0, 1.0, 0.0]));
        assert_eq!(of("receive", "DART, direct", 64), (2, [0.0, 0.0, 0.0, 0.0, 1.0]));
        assert_eq!(of("receive", "DART, direct", 16384), (2, [0.0, 0.0, 1.0, 0.0, 1.0]));
        assert_eq!(of("serve", "through", 64), (2, [0.0, 0.0, 0.0, 2.0, 0.0]));
        assert_eq!(of("serve", "peer", 64), (0, [0.0; 5]));
    }
}
