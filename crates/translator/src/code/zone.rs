//! The code cache: zones of memory, each within reach of the code that is translated into it, so that operands relative to the
//! instruction pointer need no more than another displacement.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::emitter::reaches;

/// Bytes of a zone.
const ZONE_SIZE: u64 = 64 << 20;
/// The room that the translation of a trace needs at most.
pub(super) const TRACE_ROOM: u64 = 1 << 20;
/// How far from the code a zone is looked for, in order.
const DISTANCES: [i64; 10] = [-512, -1024, -1536, 512, 1024, 1536, -128, 128, -1792, 1792];
/// How far code may be from the whole of its zone, so that it reaches operands that are near it, too.
const REACH: u64 = 0x7c00_0000;
/// The lowest address of a zone.
const LOWEST: u64 = 1 << 20;

/// Zones at most.
const MAX_ZONES: usize = 64;

/// The first addresses of all zones, for handlers of signals, which must not wait for a lock; 0 if there are no more.
static STARTS: [AtomicU64; MAX_ZONES] = [const { AtomicU64::new(0) }; MAX_ZONES];

/// Whether an address is in the code cache.
pub(crate) fn is_translated_code(address: u64) -> bool {
    let starts = STARTS.iter().map(|start| start.load(Ordering::Acquire)).take_while(|&start| start != 0);
    starts.into_iter().any(|start| (start..start + ZONE_SIZE).contains(&address))
}

/// Memory for translated code, which is filled from its start.
#[derive(Debug)]
pub(super) struct CodeZone {
    /// Its first address.
    pub start: u64,
    /// The next free byte.
    pub at: u64,
    /// The blocks in it, by the address of their code.
    pub blocks: Vec<(u64, u32)>,
}

impl CodeZone {
    /// A new zone within reach of an address, if there is memory.
    pub fn near(address: u64) -> Option<CodeZone> {
        let aligned = address & !0xffff;
        let candidates = DISTANCES.iter().map(|&distance| aligned.wrapping_add_signed(distance << 20));
        let usable = candidates.filter(|start| (LOWEST..1 << 47).contains(start));
        let mut mapped = usable.filter_map(|start| map(start, libc::MAP_FIXED_NOREPLACE));
        mapped.next().and_then(CodeZone::new)
    }

    /// A new zone where the kernel likes.
    pub fn anywhere() -> io::Result<CodeZone> {
        let start = map(0, 0).ok_or_else(io::Error::last_os_error)?;
        CodeZone::new(start).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
    }

    fn new(start: u64) -> Option<CodeZone> {
        let free = STARTS.iter().find(|one| one.load(Ordering::Relaxed) == 0)?;
        free.store(start, Ordering::Release);
        Some(CodeZone { start, at: start, blocks: Vec::new() })
    }

    /// Whether code at an address can be translated into this zone.
    pub fn serves(&self, address: u64) -> bool {
        self.start.abs_diff(address) < REACH && (self.start + ZONE_SIZE).abs_diff(address) < REACH
    }

    /// Whether another trace fits.
    pub fn has_room(&self) -> bool {
        self.at + TRACE_ROOM <= self.start + ZONE_SIZE
    }

    /// The addresses of the zone.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.start + ZONE_SIZE).contains(&address)
    }

    /// Whether it has memory in a range.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.start + ZONE_SIZE
    }

    /// The block whose code contains an address, with the address of its code.
    pub fn block_at(&self, address: u64) -> Option<(u64, u32)> {
        let after = self.blocks.partition_point(|&(start, _)| start <= address);
        self.blocks.get(after.checked_sub(1)?).copied()
    }
}

fn map(start: u64, flags: i32) -> Option<u64> {
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, which replaces none.
    let at = unsafe { libc::mmap(start as *mut _, ZONE_SIZE as usize, protection, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at as u64)
}

/// Whether code of a zone at `from` reaches a target by 32 bits.
pub(super) fn in_reach(from: u64, to: u64) -> bool {
    reaches(from, to)
}
