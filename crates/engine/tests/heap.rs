//! The recorded heap events agree with the program's own output, and blocks never overlap.

mod guest;

use std::collections::BTreeMap;
use std::ffi::OsString;

use events::record::{Entries, Entry, Heap, Mark, RecordShape};
use events::{Block, Consumer, MappedImage, Thread};
use guest::Guest;
use pathlength_engine::{Plan, UnitPlan};

/// Prints each block that its functions allocate or free; the first argument selects the scenario.
const SOURCE: &str = r#"
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
void *reallocarray(void *, size_t, size_t);
static FILE *out;
#define SITE __attribute__((noinline, noclone))
static void *tell(const char *site, void *block, size_t size) {
    if (block) fprintf(out, "%s %lu %lu\n", site, (unsigned long)block, size);
    return block;
}
static void drop(void *block) {
    if (block) fprintf(out, "free %lu 0\n", (unsigned long)block);
    free(block);
}
static void *volatile keep;
SITE void *by_malloc(size_t n) { return tell("by_malloc", keep = malloc(n), n); }
SITE void *by_calloc(size_t n) { return tell("by_calloc", keep = calloc(n, 3), 3 * n); }
SITE void *by_realloc(void *old, size_t n) {
    if (old) fprintf(out, "free %lu 0\n", (unsigned long)old);
    void *new = realloc(old, n);
    /* What could not be made larger is as it was. */
    if (!new) { fprintf(out, "by_realloc 0 %lu\n", n); return old; }
    return tell("by_realloc", new, n);
}
SITE void *by_reallocarray(size_t n) { return tell("by_reallocarray", keep = reallocarray(0, n, 5), 5 * n); }
SITE void *by_aligned(size_t n) { return tell("by_aligned", keep = aligned_alloc(64, n), n); }
SITE void *by_memalign(size_t n) { return tell("by_memalign", keep = memalign(256, n), n); }
SITE void *by_posix(size_t n) { void *block = 0; posix_memalign(&block, 128, n); return tell("by_posix", block, n); }
SITE void work(long n) {
    drop(by_malloc(n + 1));
}
static void once(void) {
    void *blocks[7] = { by_malloc(100), by_calloc(50), by_realloc(0, 60), by_reallocarray(7),
                        by_aligned(640), by_memalign(33), by_posix(44) };
    blocks[2] = by_realloc(blocks[2], 70000);
    blocks[2] = by_realloc(blocks[2], 1L << 50);
    blocks[0] = by_realloc(blocks[0], 300000);
    for (int i = 0; i < 7; i++) drop(blocks[i]);
    drop(0);
    for (int i = 0; i < 20; i++) work(i);
}
static void *body(void *seed) {
    unsigned state = (unsigned)(long)seed;
    void *blocks[16] = {0};
    for (int i = 0; i < 3000; i++) {
        state = state * 1103515245u + 12345u;
        int which = state >> 16 & 15;
        free(blocks[which]);
        blocks[which] = malloc(16 + (state >> 20 & 255));
        memset(blocks[which], 1, 8);
    }
    for (int i = 0; i < 16; i++) free(blocks[i]);
    return 0;
}
int main(int count, char **arguments) {
    out = fopen(arguments[2], "w");
    if (!strcmp(arguments[1], "once")) once();
    if (!strcmp(arguments[1], "threads")) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, body, (void *)(i + 1));
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    }
    if (!strcmp(arguments[1], "fork")) {
        void *inherited = by_malloc(500);
        by_malloc(1000);
        fflush(out);
        if (fork() == 0) { free(inherited); keep = malloc(2000); _exit(0); }
        wait(0);
        free(inherited);
        keep = malloc(3000);
    }
    fflush(out);
    return 0;
}
"#;

/// A heap event: the allocating function or `free`, the block's address, and its size.
type Reported = (String, u64, u64);

/// Collects heap events.
#[derive(Default)]
struct Kept {
    images: Vec<MappedImage>,
    shapes: Vec<RecordShape>,
    /// The events, with the numbers of process and thread.
    marks: Vec<(Thread, Heap)>,
}

impl Consumer for Kept {
    fn map(&mut self, image: &MappedImage) {
        self.images.push(image.clone());
    }

    fn define(&mut self, block: &Block) {
        self.shapes.push(RecordShape::new(&isa::Alpha, &block.words, false));
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        let marks = Entries::new(records, &self.shapes).filter_map(|entry| match entry {
            Entry::Mark(Mark::Heap(heap)) => Some((thread, heap)),
            _ => None,
        });
        self.marks.extend(marks);
    }
}

/// The program, and the file to which it prints.
struct Telling(Guest);

impl Telling {
    fn new() -> Telling {
        Telling(Guest::new(SOURCE, &["-O2", "-fno-builtin", "-w"]))
    }

    fn arguments(&self, how: &str) -> [OsString; 2] {
        [how.into(), self.0.path("reported").into()]
    }

    /// The events that the program printed.
    fn said(&self) -> Vec<Reported> {
        let reported = std::fs::read_to_string(self.0.path("reported")).unwrap();
        let line = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[0].to_string(), words[1].parse().unwrap(), words[2].parse().unwrap())
        };
        reported.lines().map(line).collect()
    }

    fn record(&self, how: &str, plan: &Plan) -> (Kept, Vec<Reported>) {
        let (kept, trace) = self.0.record(self.arguments(how), plan);
        let report = trace::check::check(&trace);
        assert_eq!((report.listed, trace.problems()), (vec![], &[][..]));
        (kept, self.said())
    }

    fn observe(&self, how: &str, plan: &Plan, is_parallel: bool) -> (Kept, Vec<Reported>) {
        let (kept, _) = self.0.observe(self.arguments(how), plan, is_parallel);
        (kept, self.said())
    }

    /// The function `by_...` that contains an address.
    fn site(&self, kept: &Kept, address: u64) -> Option<String> {
        let mapped =
            kept.images.iter().find(|image| image.path.file_name() == self.0.program().file_name())?;
        let file = image::Image::open(&mapped.path).unwrap();
        let function = file.function_at(address.wrapping_sub(mapped.bias))?;
        function.name.starts_with("by_").then(|| function.name.clone())
    }

    /// The events in the marks, for blocks that the program's functions allocate.
    fn reported(&self, kept: &Kept) -> Vec<Reported> {
        let mut reported = Vec::new();
        let (mut caller, mut size) = (0, 0);
        let mut blocks = Vec::new();
        let mut last = 0;
        for (_, mark) in &kept.marks {
            match *mark {
                Heap::Caller(address) => caller = address,
                Heap::Size(bytes) => size = bytes,
                Heap::Block(address) => {
                    if let Some(site) = self.site(kept, caller - 4) {
                        reported.push((site, address, size));
                        blocks.push(if address == 0 { last } else { address });
                    }
                }
                Heap::Freed(address) => {
                    last = address;
                    if let Some(index) = blocks.iter().position(|&block| block == address) {
                        blocks.swap_remove(index);
                        reported.push(("free".into(), address, 0));
                    }
                }
                Heap::Gone => blocks.clear(),
                Heap::Copied(_) | Heap::Name(_) => {}
            }
        }
        reported
    }
}

fn plan() -> Plan {
    Plan { heap: true, ..Plan::default() }
}

#[test]
fn blocks_are_those_of_which_the_program_tells() {
    let guest = Telling::new();
    let unit = UnitPlan { function: "work".into(), skip: 5, units: Some(3) };
    let units = Plan { unit: Some(unit), ..plan() };
    // The heap is recorded also before recording of instructions begins, and where it is inactive.
    let main = Plan { from: Some("work".parse().unwrap()), ..plan() };
    for plan in [plan(), main] {
        let (kept, reported) = guest.record("once", &plan);
        assert!(reported.len() > 50, "{reported:?}");
        assert_eq!(guest.reported(&kept), reported, "{plan:?}");
        for is_parallel in [false, true] {
            let (kept, reported) = guest.observe("once", &plan, is_parallel);
            assert_eq!(guest.reported(&kept), reported, "{plan:?}");
        }
    }
    // Until the disk is full.
    let (kept, reported) = guest.record("once", &units);
    let observed = guest.reported(&kept);
    assert!(observed.len() > 30 && reported.starts_with(&observed), "{observed:?}");
    let (kept, _) = guest.record("once", &Plan::default());
    assert_eq!(kept.marks, []);
}

/// Processes the marks of all threads in order. Returns the number of blocks in each process at the end.
fn follow(kept: &Kept) -> BTreeMap<u32, usize> {
    let mut heaps: BTreeMap<u32, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut freed: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for &(thread, mark) in &kept.marks {
        let heap = heaps.entry(thread.process).or_default();
        match mark {
            Heap::Caller(_) | Heap::Name(_) => {}
            Heap::Size(bytes) => drop(sizes.insert(thread.number, bytes)),
            Heap::Block(0) => heap.extend([freed[&thread.number]]),
            Heap::Block(address) => {
                let end = address + sizes[&thread.number];
                let before = heap.range(..end).next_back();
                assert!(
                    before.is_none_or(|(_, &other)| other <= address),
                    "{address:x} overlaps {before:x?}"
                );
                heap.insert(address, end);
            }
            Heap::Freed(address) => {
                // When a thread ends, the C library once more frees what it kept for the thread.
                if let Some(end) = heap.remove(&address) {
                    freed.insert(thread.number, (address, end));
                }
            }
            Heap::Copied(parent) => {
                let copy = heaps[&parent].clone();
                heaps.insert(thread.process, copy);
            }
            Heap::Gone => heap.clear(),
        }
    }
    heaps.into_iter().map(|(process, heap)| (process, heap.len())).collect()
}

#[test]
fn blocks_of_threads_never_overlap() {
    let guest = Telling::new();
    for _ in 0..3 {
        let (kept, _) = guest.record("threads", &plan());
        let of = |meant: fn(&Heap) -> bool| kept.marks.iter().filter(|(_, mark)| meant(mark)).count();
        assert!(of(|mark| matches!(mark, Heap::Block(_))) >= 4 * 3000);
        assert!(of(|mark| matches!(mark, Heap::Freed(_))) >= 4 * 3000);
        let threads = 1 + kept.marks.iter().map(|(thread, _)| thread.number).max().unwrap();
        assert_eq!(threads, 5);
        follow(&kept);
        for is_parallel in [false, true] {
            follow(&guest.observe("threads", &plan(), is_parallel).0);
        }
    }
}

#[test]
fn forked_processes_have_their_parents_blocks() {
    let guest = Telling::new();
    let (kept, _) = guest.record("fork", &plan());
    // Each one frees the block of 500 bytes, and allocates another.
    let blocks = follow(&kept);
    assert_eq!((blocks.len(), blocks[&0]), (2, blocks[&1]), "{blocks:?}");
    let sizes = |process| {
        let of = kept.marks.iter().filter(move |(thread, _)| thread.process == process);
        of.filter_map(|(_, mark)| if let Heap::Size(bytes) = mark { Some(*bytes) } else { None })
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(1), [2000]);
    assert!(sizes(0).contains(&500) && sizes(0).ends_with(&[1000, 3000]), "{:?}", sizes(0));
}
