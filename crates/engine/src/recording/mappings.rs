//! The mappings of a process, as marks: which object from which offset on, shared or private.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use events::record::{LARGEST, MappingEvent, Mark};
use guest_memory::{Memory, MemoryRegion, RegionBacking};

use super::session::RecordingSession;
use crate::lock;

/// A range that shows an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MappedRange {
    start: u64,
    end: u64,
    object: u32,
    offset: u64,
    is_shared: bool,
}

/// The ranges of a process that are recorded.
#[derive(Debug)]
pub(super) struct RecordedMappings {
    /// The memory's generation when they were recorded.
    generation: AtomicU64,
    ranges: Mutex<BTreeSet<MappedRange>>,
}

/// A generation that no memory has.
const NEVER: u64 = u64::MAX;

impl Default for RecordedMappings {
    fn default() -> RecordedMappings {
        RecordedMappings { generation: AtomicU64::new(NEVER), ranges: Mutex::default() }
    }
}

impl RecordedMappings {
    /// The marks of what has changed since the last call.
    pub(super) fn changes(&self, memory: &Memory, session: &RecordingSession) -> Vec<Mark> {
        let generation = memory.mapping_generation();
        if self.generation.load(Ordering::Acquire) == generation {
            return Vec::new();
        }
        let mut known = lock(&self.ranges);
        let now = ranges(memory, session);
        let gone = known.difference(&now).map(|range| MappedRange { object: 0, offset: 0, ..*range });
        let gone = gone.map(|range| MappedRange { is_shared: false, ..range });
        let marks = gone.chain(now.difference(&known).copied()).flat_map(marks).collect();
        *known = now;
        self.generation.store(generation, Ordering::Release);
        marks
    }

    /// Another program begins: nothing is mapped.
    pub(super) fn forget(&self) {
        lock(&self.ranges).clear();
        self.generation.store(NEVER, Ordering::Release);
    }
}

/// The ranges that show objects. Neighbours that continue each other are one range, whatever their protection.
fn ranges(memory: &Memory, session: &RecordingSession) -> BTreeSet<MappedRange> {
    let mut ranges: Vec<MappedRange> = Vec::new();
    for (start, region) in memory.regions() {
        let Some(object) = region.object else { continue };
        let Some(number) = session.object(object.identity) else { continue };
        session.process.add_object(number, || name(&region));
        let MemoryRegion { end, shared: is_shared, .. } = region;
        let range = MappedRange { start, end, object: number, offset: object.offset, is_shared };
        match ranges.last_mut().filter(|last| is_continued_by(last, &range)) {
            Some(last) => last.end = end,
            None => ranges.push(range),
        }
    }
    ranges.into_iter().collect()
}

fn is_continued_by(range: &MappedRange, next: &MappedRange) -> bool {
    let is_same = (range.object, range.is_shared) == (next.object, next.is_shared);
    is_same && range.end == next.start && range.offset + (range.end - range.start) == next.offset
}

fn name(region: &MemoryRegion) -> String {
    match &region.backing {
        RegionBacking::File { path, .. } => path.to_string_lossy().into_owned(),
        RegionBacking::Named(_) => "System V shared memory".into(),
        RegionBacking::Anonymous => "anonymous shared memory".into(),
    }
}

fn marks(range: MappedRange) -> [Mark; 4] {
    let MappedRange { start, end, object, offset, is_shared } = range;
    let object = if is_shared { MappingEvent::Shared(object) } else { MappingEvent::Private(object) };
    [
        MappingEvent::Start(start),
        MappingEvent::Size(end - start),
        object,
        MappingEvent::Offset(offset & LARGEST),
    ]
    .map(Mark::Mapping)
}
