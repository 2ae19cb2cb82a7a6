//! Address spaces against a plain model with frames of memory, page tables and counts of who has a frame.

use std::collections::{BTreeMap, HashMap};

use events::record::MappingEvent;
use fastrand::Rng;
use pathlength_machine::AddressSpaces;

const PAGE: u64 = 8192;

/// What a page shows: an object and its page there, and whether stores are seen by others.
type Shown = (u32, u64, bool);

#[derive(Clone, Default)]
struct PlainProcess {
    shows: BTreeMap<u64, Shown>,
    frames: BTreeMap<u64, usize>,
}

#[derive(Default)]
struct Plain {
    processes: Vec<PlainProcess>,
    /// By frame, how many processes have it.
    counts: Vec<u32>,
    objects: HashMap<(u32, u64), usize>,
}

impl Plain {
    fn frame(&mut self) -> usize {
        self.counts.push(1);
        self.counts.len() - 1
    }

    fn of_object(&mut self, object: u32, page: u64) -> usize {
        let next = self.counts.len();
        let frame = *self.objects.entry((object, page)).or_insert(next);
        if frame == next {
            self.counts.push(1);
        }
        frame
    }

    fn access(&mut self, process: usize, page: u64, is_store: bool) -> usize {
        let shown = self.processes[process].shows.get(&page).copied();
        if let Some((object, at, true)) = shown {
            return self.of_object(object, at);
        }
        match (self.processes[process].frames.get(&page).copied(), shown) {
            (Some(frame), _) if !is_store || self.counts[frame] == 1 => frame,
            (Some(frame), _) => {
                self.counts[frame] -= 1;
                let copy = self.frame();
                self.processes[process].frames.insert(page, copy);
                copy
            }
            (None, Some((object, at, _))) if !is_store => self.of_object(object, at),
            (None, _) => {
                let frame = self.frame();
                self.processes[process].frames.insert(page, frame);
                frame
            }
        }
    }

    fn map(&mut self, process: usize, page: u64, shown: Option<Shown>) {
        let process = &mut self.processes[process];
        // The same mapping again, as after a change of protection, is no other memory.
        if shown.is_some() && process.shows.get(&page) == shown.as_ref() {
            return;
        }
        if let Some(frame) = process.frames.remove(&page) {
            self.counts[frame] -= 1;
        }
        match shown {
            Some(shown) => drop(process.shows.insert(page, shown)),
            None => drop(process.shows.remove(&page)),
        }
    }

    fn fork(&mut self, parent: usize) {
        let child = self.processes[parent].clone();
        child.frames.values().for_each(|&frame| self.counts[frame] += 1);
        self.processes.push(child);
    }
}

/// Marks of a mapped range.
fn map(spaces: &mut AddressSpaces, process: u32, first: u64, pages: u64, (object, at, shared): Shown) {
    let object = if shared { MappingEvent::Shared(object) } else { MappingEvent::Private(object) };
    let marks = [
        MappingEvent::Start(first * PAGE),
        MappingEvent::Size(pages * PAGE),
        object,
        MappingEvent::Offset(at * PAGE),
    ];
    marks.into_iter().for_each(|mark| spaces.mark(process, mark));
}

#[test]
fn physical_addresses_are_the_same_exactly_where_frames_are() {
    let (mut shared, mut copied) = (0, 0);
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let (mut spaces, mut plain) = (AddressSpaces::new(), Plain::default());
        plain.processes.push(PlainProcess::default());
        let (mut physical_pages, mut frames) = (HashMap::new(), HashMap::new());
        for _ in 0..rng.usize(1..400) {
            let process = rng.usize(0..plain.processes.len());
            let first = rng.u64(1..24);
            match rng.u32(0..20) {
                0 if plain.processes.len() < 6 => {
                    plain.fork(process);
                    let child = plain.processes.len() as u32 - 1;
                    spaces.mark(child, MappingEvent::Copied(process as u32));
                }
                1 => {
                    let (pages, at) = (rng.u64(1..6), rng.u64(0..3));
                    let (object, is_shared) = (rng.u32(0..3), rng.bool());
                    let is_shared = is_shared && object != 0;
                    map(&mut spaces, process as u32, first, pages, (object, at, is_shared));
                    for index in 0..pages {
                        let shown = (object != 0).then_some((object, at + index, is_shared));
                        plain.map(process, first + index, shown);
                    }
                }
                _ => {
                    let (is_store, byte) = (rng.bool(), rng.u64(0..PAGE));
                    let before = plain.counts.len();
                    let frame = plain.access(process, first, is_store);
                    let physical = spaces.physical_address(process as u32, first * PAGE + byte, is_store);
                    assert_eq!(physical % PAGE, byte);
                    let page = physical / PAGE;
                    assert_eq!(*physical_pages.entry(frame).or_insert(page), page, "seed {seed}");
                    assert_eq!(*frames.entry(page).or_insert(frame), frame, "seed {seed}");
                    shared += u32::from(plain.objects.values().any(|&other| other == frame));
                    copied += u32::from(is_store && frame == before && plain.processes.len() > 1);
                }
            }
        }
    }
    assert!(shared > 1000 && copied > 1000, "{shared} {copied}");
}

#[test]
fn without_marks_processes_share_nothing() {
    let mut spaces = AddressSpaces::new();
    let addresses: Vec<u64> =
        (0..3).map(|process| spaces.physical_address(process, 0x1_2000_0000, true)).collect();
    assert_eq!(addresses[0], 0x1_2000_0000);
    assert!(addresses[1] != addresses[0] && addresses[2] != addresses[1]);
    assert_eq!(spaces.shared_object(0, 0x1_2000_0000), None);
}
