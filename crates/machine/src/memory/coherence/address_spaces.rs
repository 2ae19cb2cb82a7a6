//! Which addresses of processes are the same memory: by the marks of what they map, and by what fork copies.
//!
//! A **physical address** numbers a byte of memory: the same for all who share it, and different for different memory. A page
//! that several processes have from a fork, or that shows a file privately, is the same for all of them until one of them
//! stores to it: from then on this one has a page of its own. The last one that has a page keeps it.

use std::collections::{BTreeMap, HashMap};

use events::record::MappingEvent;

use crate::memory::hierarchy::Hierarchy;

/// Logarithm of the size of a page, which is copied as a whole: Alpha's.
const PAGE_SHIFT: u32 = 13;
const PAGE: u64 = 1 << PAGE_SHIFT;
/// Entries of a process's cache of translations.
const RECENT: usize = 256;
/// The greatest number of processes: a damaged trace may name any.
const MOST_PROCESSES: u32 = 1 << 18;
/// The first address spaces that belong to objects, and to what processes copy after they were forked.
const OBJECTS: u32 = 1 << 18;
const COPIES: u32 = 1 << 19;

/// The address spaces of all processes.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    processes: Vec<AddressSpace>,
    /// How many processes have a page from a fork, by its physical address.
    holders: HashMap<u64, u32>,
    /// The number of address spaces for copies that were given out.
    copies: u32,
}

/// An address space.
#[derive(Debug)]
struct AddressSpace {
    /// The number in the physical addresses of pages that it gets from now on.
    number: u32,
    /// The ranges that show objects, by the first address.
    ranges: BTreeMap<u64, ObjectRange>,
    /// The pages of its own, or of a fork, by their number.
    pages: HashMap<u64, MemoryPage>,
    recent: Box<[Translation; RECENT]>,
    /// The range whose marks have come so far.
    next: ObjectRange,
    next_start: u64,
}

/// A range of addresses that shows an object, or memory of its own if that is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ObjectRange {
    end: u64,
    object: u32,
    offset: u64,
    is_shared: bool,
}

/// A page.
#[derive(Clone, Copy, Debug)]
struct MemoryPage {
    physical: u64,
    /// Other processes may have it, too: a store makes a copy.
    is_copied_on_write: bool,
}

/// A translation that was used: a page's number, its physical address, and whether it can be stored to.
#[derive(Clone, Copy, Debug)]
struct Translation {
    page: u64,
    physical: u64,
    is_writable: bool,
}

const UNUSED: Translation = Translation { page: u64::MAX, physical: 0, is_writable: false };

impl AddressSpace {
    fn new(number: u32) -> AddressSpace {
        AddressSpace {
            number,
            ranges: BTreeMap::new(),
            pages: HashMap::new(),
            recent: Box::new([UNUSED; RECENT]),
            next: ObjectRange::default(),
            next_start: 0,
        }
    }

    /// The object that an address shows, with the offset in it.
    fn object(&self, address: u64) -> Option<(ObjectRange, u64)> {
        object_at(&self.ranges, address)
    }

    /// Takes a range out of all others.
    fn remove(&mut self, start: u64, end: u64) {
        for at in [start, end] {
            let Some((&first, &range)) = self.ranges.range(..at).next_back() else { continue };
            if range.end > at {
                let offset = range.offset.wrapping_add(at - first);
                self.ranges.insert(at, ObjectRange { offset, ..range });
                self.ranges.insert(first, ObjectRange { end: at, ..range });
            }
        }
        self.ranges.retain(|first, _| !(start..end).contains(first));
    }
}

fn object_at(ranges: &BTreeMap<u64, ObjectRange>, address: u64) -> Option<(ObjectRange, u64)> {
    let (start, range) = ranges.range(..=address).next_back()?;
    (address < range.end).then(|| (*range, range.offset.wrapping_add(address - start)))
}

/// The physical address of a page's first byte, which belongs to an address space.
fn page_address(space: u32, page_start: u64) -> u64 {
    page_start ^ Hierarchy::asid_bits(space)
}

impl AddressSpaces {
    /// Of processes that have mapped nothing yet.
    pub fn new() -> AddressSpaces {
        AddressSpaces::default()
    }

    fn at(&mut self, process: u32) -> &mut AddressSpace {
        let index = process.min(MOST_PROCESSES - 1) as usize;
        let next = self.processes.len() as u32;
        self.processes.extend((next..=index as u32).map(AddressSpace::new));
        &mut self.processes[index]
    }

    /// The physical address that a process accesses at an address of its own. A store may make a copy of the page.
    #[inline]
    pub fn physical_address(&mut self, process: u32, address: u64, is_store: bool) -> u64 {
        let page = address >> PAGE_SHIFT;
        if let Some(space) = self.processes.get(process as usize) {
            let recent = space.recent[page as usize % RECENT];
            if recent.page == page && (recent.is_writable || !is_store) {
                return recent.physical | address & (PAGE - 1);
            }
        }
        let translation = self.translate(process, page, is_store);
        self.at(process).recent[page as usize % RECENT] = translation;
        translation.physical | address & (PAGE - 1)
    }

    #[cold]
    fn translate(&mut self, process: u32, page: u64, is_store: bool) -> Translation {
        let start = page << PAGE_SHIFT;
        let space = self.at(process);
        let own = page_address(space.number, start);
        let object = space.object(start);
        let of_object =
            |offset: u64, object: u32| page_address(OBJECTS + object % OBJECTS, offset & !(PAGE - 1));
        if let Some((range, offset)) = object.filter(|(range, _)| range.is_shared) {
            return Translation { page, physical: of_object(offset, range.object), is_writable: true };
        }
        let known = space.pages.get(&page).copied();
        match (known, object) {
            (Some(MemoryPage { physical, is_copied_on_write: false }), _) => {
                Translation { page, physical, is_writable: true }
            }
            (Some(MemoryPage { physical, .. }), _) if !is_store => {
                Translation { page, physical, is_writable: false }
            }
            (Some(MemoryPage { physical, .. }), _) => {
                let holders = self.holders.get_mut(&physical).filter(|holders| **holders > 1);
                let is_last = holders.is_none();
                holders.into_iter().for_each(|holders| *holders -= 1);
                let physical = if is_last { physical } else { own };
                self.at(process).pages.insert(page, MemoryPage { physical, is_copied_on_write: false });
                Translation { page, physical, is_writable: true }
            }
            (None, Some((range, offset))) if !is_store => {
                Translation { page, physical: of_object(offset, range.object), is_writable: false }
            }
            (None, _) => {
                space.pages.insert(page, MemoryPage { physical: own, is_copied_on_write: false });
                Translation { page, physical: own, is_writable: true }
            }
        }
    }

    /// The object that an address of a process shows to several processes, with the offset in it.
    pub fn shared_object(&self, process: u32, address: u64) -> Option<(u32, u64)> {
        let (range, offset) = self.processes.get(process as usize)?.object(address)?;
        range.is_shared.then_some((range.object, offset))
    }

    /// Follows a mark of a process.
    #[cold]
    pub fn mark(&mut self, process: u32, mark: MappingEvent) {
        let space = self.at(process);
        match mark {
            MappingEvent::Start(address) => space.next_start = address,
            MappingEvent::Size(bytes) => space.next.end = space.next_start.saturating_add(bytes),
            MappingEvent::Shared(object) => (space.next.object, space.next.is_shared) = (object, true),
            MappingEvent::Private(object) => (space.next.object, space.next.is_shared) = (object, false),
            MappingEvent::Offset(offset) => {
                space.next.offset = offset;
                self.map(process);
            }
            MappingEvent::Copied(parent) if parent != process => self.copy(parent, process),
            MappingEvent::Copied(_) => {}
            MappingEvent::Gone => {
                let number = self.next_copy();
                let space = std::mem::replace(self.at(process), AddressSpace::new(number));
                self.release(space.pages.into_values().collect());
            }
        }
    }

    /// A process does not have these pages any more.
    fn release(&mut self, pages: Vec<MemoryPage>) {
        for page in pages.iter().filter(|page| page.is_copied_on_write) {
            if let Some(holders) = self.holders.get_mut(&page.physical) {
                *holders = holders.saturating_sub(1);
            }
        }
    }

    /// Maps the range whose marks have come: pages that showed something else are gone.
    fn map(&mut self, process: u32) {
        let space = self.at(process);
        let (start, range) = (space.next_start, space.next);
        if range.end <= start {
            return;
        }
        let AddressSpace { pages, ranges, .. } = space;
        let mut gone = Vec::new();
        pages.retain(|number, page| {
            let address = number << PAGE_SHIFT;
            let offset = range.offset.wrapping_add(address.wrapping_sub(start));
            let shown = (range.object, offset, range.is_shared);
            let is_same = |(old, offset): (ObjectRange, u64)| (old.object, offset, old.is_shared) == shown;
            let stays =
                !(start..range.end).contains(&address) || object_at(ranges, address).is_some_and(is_same);
            if !stays {
                gone.push(*page);
            }
            stays
        });
        space.remove(start, range.end);
        if range.object != 0 {
            space.ranges.insert(start, range);
        }
        space.recent.fill(UNUSED);
        if !gone.is_empty() {
            // What comes to these addresses later is other memory.
            let next = self.next_copy();
            self.at(process).number = next;
            self.release(gone);
        }
    }

    /// A process was forked: it has the pages of its parent until one of them stores to them.
    fn copy(&mut self, parent: u32, process: u32) {
        let next = self.next_copy();
        let space = self.at(parent);
        // What the parent copies from now on is not what its child has.
        space.number = next;
        space.pages.values_mut().for_each(|page| page.is_copied_on_write = true);
        space.recent.fill(UNUSED);
        let (pages, ranges) = (space.pages.clone(), space.ranges.clone());
        for page in pages.values() {
            *self.holders.entry(page.physical).or_insert(1) += 1;
        }
        let space = self.at(process);
        (space.pages, space.ranges) = (pages, ranges);
        space.recent.fill(UNUSED);
    }

    /// A number for an address space that has not been used.
    fn next_copy(&mut self) -> u32 {
        self.copies = (self.copies + 1) % COPIES;
        COPIES + self.copies
    }
}
