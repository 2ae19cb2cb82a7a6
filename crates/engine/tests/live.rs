//! A consumer receives the same events while a program runs as from a trace of the same run.

mod guest;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use events::record::{Entries, Entry, Mark, RecordShape};
use events::{Block, Consumer, MappedImage, Thread};
use guest::Guest;
use pathlength_engine::{ClassPlan, Plan, ProgramEnd, Recorder, RunCounter, SystemSettings, UnitPlan};
use trace::Trace;

/// Calls `work` from one thread or several, at different depths, until it has made many accesses.
const SOURCE: &str = r#"
#include <unistd.h>
long table[1 << 12];
long __attribute__((noinline)) work(long n) {
    long sum = 0;
    for (long i = 0; i < 200 * (n + 1); i++) {
        table[(i * 7 + n) & 4095] += i;
        sum += table[(i * i) & 4095];
    }
    if (n & 1) getppid();
    return sum;
}
void *__attribute__((noinline)) body(void *number) {
    long sum = 0;
    for (int i = 0; i < 100; i++) sum += work((long)number + i % 3);
    return (void *)sum;
}
"#;

/// An event, independent of the numbers of blocks.
#[derive(Clone, Debug, PartialEq)]
enum Happened {
    /// A block's address and words, and its addresses.
    Executed(u64, Vec<u32>, Vec<u64>),
    Marked(Mark),
}

/// Collects all events, in the parts in which they are reported.
#[derive(Default)]
struct Kept {
    images: Vec<MappedImage>,
    blocks: Vec<Block>,
    shapes: Vec<RecordShape>,
    /// With the number of the thread.
    happened: Vec<(u32, Happened)>,
}

impl Consumer for Kept {
    fn map(&mut self, image: &MappedImage) {
        self.images.push(image.clone());
    }

    fn define(&mut self, block: &Block) {
        assert!(block.image.is_none_or(|image| self.images.len() > image as usize), "its image is known");
        self.shapes.push(RecordShape::new(&isa::Alpha, &block.words, false));
        self.blocks.push(block.clone());
    }

    fn executed(&mut self, thread: Thread, records: &[u64]) {
        assert_eq!(thread.process, 0);
        let mut entries = Entries::new(records, &self.shapes);
        for entry in entries.by_ref() {
            match entry {
                Entry::Execution(one) => {
                    let Block { address, words, .. } = self.blocks[one.block as usize].clone();
                    let addresses = one.addresses.to_vec();
                    self.happened.push((thread.number, Happened::Executed(address, words, addresses)));
                }
                // While a program runs there are no marks of order and of mappings.
                Entry::Mark(Mark::Order(_) | Mark::Mapping(_)) => {}
                Entry::Mark(mark) => self.happened.push((thread.number, Happened::Marked(mark))),
            }
        }
        assert_eq!(entries.rest(), [0u64; 0], "records are whole, and their blocks defined");
    }
}

/// Closes descriptors of the engine once the program has started, which then reuses the numbers.
struct Closing(Vec<std::fs::File>);

impl Consumer for Closing {
    fn define(&mut self, _: &Block) {
        self.0.clear();
    }

    fn executed(&mut self, _: Thread, _: &[u64]) {}
}

fn guest() -> Guest {
    Guest::with_threads(SOURCE, &["-O1"])
}

/// The tested plans.
fn plans() -> Vec<Plan> {
    let unit = |skip, units| UnitPlan { function: "work".into(), skip, units };
    let location = |text: &str| Some(text.parse().unwrap());
    vec![
        Plan::default(),
        Plan { unit: Some(unit(7, Some(20))), ..Plan::default() },
        Plan { unit: Some(unit(0, None)), ..Plan::default() },
        Plan { from: location("main"), until: location("50000"), ..Plan::default() },
        Plan { from: location("1000000"), ..Plan::default() },
    ]
}

#[test]
fn numbers_of_closed_descriptors_are_the_programs() {
    let guest = guest();
    let files = (0..20).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    let closing = Arc::new(Mutex::new(Closing(files)));
    // The dynamic loader opens libraries, and fails if it cannot close them.
    let observed = closing.clone();
    guest.run(["1"], |writer| Recorder::live(Plan::default(), writer, observed, false, None).unwrap());
    assert!(closing.lock().unwrap().0.is_empty());
}

#[test]
fn a_consumer_hears_what_a_trace_says() {
    let guest = guest();
    for plan in plans() {
        let (expected, _) = guest.record::<Kept, _>(["3"], &plan);
        assert!(expected.happened.len() > 1000, "{plan:?}");
        for is_parallel in [false, true] {
            let (observed, trace) = guest.observe::<Kept, _>(["3"], &plan, is_parallel);
            assert!(observed.happened == expected.happened, "{plan:?}, parallel: {is_parallel}");
            // The definitions are those in the trace without records.
            assert_eq!((trace.chunks(), trace.problems()), (&[][..], &[][..]));
            assert!(trace.blocks() == observed.blocks && trace.images() == observed.images, "{plan:?}");
            assert!(trace.functions().iter().any(|function| function.name == "work"));
        }
    }
}

/// How often each thread executed each block in `work`; threads are not identified.
fn in_work(kept: &Kept, trace: &Trace) -> Vec<BTreeMap<(u64, Vec<u32>), u64>> {
    let function = trace.functions().iter().find(|function| function.name == "work").unwrap();
    let code = function.address..function.address + function.size;
    let mut threads: BTreeMap<u32, BTreeMap<_, u64>> = BTreeMap::new();
    for (thread, one) in &kept.happened {
        if let Happened::Executed(address, words, _) = one
            && code.contains(address)
        {
            *threads.entry(*thread).or_default().entry((*address, words.clone())).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = threads.into_values().collect();
    counts.sort();
    counts
}

#[test]
fn a_consumer_hears_all_threads() {
    let guest = guest();
    let (expected, trace) = guest.record::<Kept, _>(["8", "threads"], &Plan::default());
    let expected = in_work(&expected, &trace);
    assert_eq!(expected.len(), 8);
    for is_parallel in [false, true] {
        let (observed, trace) = guest.observe::<Kept, _>(["8", "threads"], &Plan::default(), is_parallel);
        assert_eq!(in_work(&observed, &trace), expected, "parallel: {is_parallel}");
    }
    let plan = Plan { unit: plans()[2].unit.clone(), ..Plan::default() };
    let (observed, _) = guest.observe::<Kept, _>(["8", "threads"], &plan, true);
    let begun =
        observed.happened.iter().filter(|(_, one)| matches!(one, Happened::Marked(Mark::UnitBegins(_))));
    assert_eq!(begun.count(), 800);
}

/// Every third or two of three calls of `work` call `getppid`.
#[test]
fn recorded_units_have_classes() {
    let guest = guest();
    let unit = Some(UnitPlan { function: "work".into(), skip: 7, units: Some(20) });
    let plain = Plan { unit, ..Plan::default() };
    let classes = ClassPlan { functions: Vec::new(), rules: vec!["getppid()".parse().unwrap()] };
    let plan = Plan { classes: Some(classes), ..plain.clone() };
    let (recorded, trace) = guest.record::<Kept, _>(["3"], &plan);
    assert!(recorded.happened == guest.record::<Kept, _>(["3"], &plain).0.happened);
    let (numbers, classes): (Vec<u64>, Vec<&str>) =
        trace.unit_classes().iter().map(|(unit, class)| (*unit, class.as_str())).unzip();
    assert_eq!(numbers, (7..27).collect::<Vec<u64>>());
    assert_eq!(BTreeSet::from_iter(&classes), BTreeSet::from([&"getppid", &"work"]));
    assert_eq!(classes[3..], classes[..17]);
}

/// Also while threads execute loops without system calls.
#[test]
fn the_number_of_instructions_grows_while_a_program_runs() {
    let loops = "void *body(void *number) { for (volatile long i = 0; i < 200000000; i++); return number; }";
    let guest = Guest::with_threads(loops, &["-O1"]);
    let executed = Arc::new(AtomicU64::new(0));
    let settings = SystemSettings { executed: Some(executed.clone()), ..SystemSettings::default() };
    let mut process = guest.process_with(["2", "threads"], settings);
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !is_over.load(Ordering::Relaxed) {
                seen.insert(executed.load(Ordering::Relaxed));
                std::thread::sleep(Duration::from_millis(20));
            }
            seen
        });
        assert!(matches!(process.run(&mut RunCounter::default()), Ok(ProgramEnd::Exited(0))));
        is_over.store(true, Ordering::Relaxed);
        watch.join().unwrap()
    });
    let amid = seen.range(10_000_000..2_800_000_000).count();
    assert!(amid > 0, "{seen:?}");
}
