//! Memory: latencies of each level, outstanding misses, stores that loads take data from, TLB misses, instruction misses.

use isa::InstructionClass::{Jump, Load, Store};
use pathlength_machine::pipeline::ServedBy;
use pathlength_machine::{Holds, OutOfOrder, Replacement, TimingModel};

use super::described::{Core, execution, share_units, width};
use super::loops::{Alike, DATA, Program, each, each_of};
use super::{Described, Expected, MicroBenchmark, bench};

/// Levels of the machines that come with the crate.
const LEVELS: usize = 4;

/// All of them.
pub fn all() -> Vec<MicroBenchmark> {
    let mut list = Vec::new();
    for level in 0..LEVELS {
        list.push(bench(
            "Memory, cycles each",
            format!("a chain of loads, level {}", level + 1),
            move |described, core| {
                let latency = *described.latencies(false).get(level)?;
                let lines = Lines::of(described, level)?;
                let text = "ldq r1,0(r1)";
                let measured = each(
                    || TimingModel::new(&described.machine).unwrap(),
                    text,
                    48,
                    move |one| lines.address(one),
                );
                Some((measured, Expected::Exactly(latency.max(replayed(core, described.hit(), level)))))
            },
        ));
    }
    // As many lines as may be outstanding are requested in the time of one.
    list.push(bench("Memory, cycles each", "independent loads from memory", |described, core| {
        let Core::OutOfOrder(own) = core else { return None };
        let levels = described.latencies(false);
        // More than the load queue holds.
        let lines =
            Lines { number: 48.max(own.loads.queue as u64 + 24), ..Lines::of(described, levels.len() - 1)? };
        let most = own.loads.outstanding.min(own.loads.outstanding_memory.unwrap_or(u32::MAX));
        let text = "ldq rNUMBER,0(r20)";
        let measured =
            each(|| TimingModel::new(&described.machine).unwrap(), text, 48, move |one| lines.address(one));
        Some((measured, Expected::Exactly(levels.last()? / f64::from(most))))
    }));
    // Each goes to the next level by way of the write buffer, which is never empty: one after the other.
    list.push(bench(
        "Memory, cycles each",
        "stores to one line after the other, write buffer",
        |described, core| {
            let Core::InOrder(pipeline) = core else { return None };
            let l1 = described.machine.caches.iter().find(|cache| cache.holds != Holds::Instructions)?;
            l1.write_buffer?;
            let memory = || Alike { fetch: ServedBy::default(), access: ServedBy::default() };
            let (line, model) = (l1.line, || TimingModel::with_memory(&described.machine, memory()).unwrap());
            let measured = each(model, "stq r21,0(r20)", 24, move |access| DATA + line * access);
            let drained = f64::from(pipeline.stores.drain_cycles);
            Some((measured, Expected::Between(0.99 * drained, 1.01 * drained)))
        },
    ));
    for (name, text, overlap) in FORWARDS {
        list.push(bench("A store and a load after it, cycles of a pair", *name, move |described, core| {
            let expected = forwarded(described, core, *overlap);
            Some((each_of(&without_clearing(described), text, 8), Expected::Exactly(expected)))
        }));
    }
    list.extend(translations());
    for level in 0..LEVELS {
        list.push(bench(
            "Instructions, cycles of a taken branch",
            format!("to a line of level {}", level + 1),
            move |described, core| {
                let latency = *described.latencies(true).get(level)?;
                let fetch = ServedBy { level: level as u8, ..ServedBy::default() };
                // The cycle in which a line is fetched is the first of its latency; a line of L1 is there in this cycle.
                let beyond = if level == 0 { 0.0 } else { latency - 1.0 };
                Some((branches(described, fetch), Expected::Exactly(1.0 + taken(core) + beyond)))
            },
        ));
    }
    list
}

fn taken(core: &Core) -> f64 {
    match core {
        Core::InOrder(pipeline) => pipeline.taken.into(),
        Core::OutOfOrder(core) => core.fetch.taken.into(),
    }
}

/// The cycles of a branch to another line.
fn branches(described: &Described, fetch: ServedBy) -> f64 {
    let memory = Alike { fetch, access: ServedBy::default() };
    let time = TimingModel::with_memory(&described.machine, memory).unwrap();
    let distance = 0x1008;
    let blocks =
        [(0, format!("br r31,{}", distance - 4)), (distance as u64, format!("br r31,{}", -distance - 4))];
    Program::new(time, &blocks, |_| 0).cycles(&[0, 1]) / 2.0
}

/// A use in the shadow of a load that missed is replayed; it is issued that much later at least.
fn replayed(core: &Core, hit: f64, level: usize) -> f64 {
    match core {
        Core::InOrder(pipeline) if level > 0 => hit + f64::from(pipeline.loads.use_replay),
        _ => 0.0,
    }
}

/// Lines that only one level serves: they belong to the same set in all caches before it.
#[derive(Clone, Copy)]
struct Lines {
    number: u64,
    distance: u64,
}

impl Lines {
    fn of(described: &Described, level: usize) -> Option<Lines> {
        let caches = described.machine.caches.iter().filter(|cache| cache.holds != Holds::Instructions);
        let before: Vec<_> = caches.take(level).collect();
        let distance = before.iter().map(|cache| cache.size / u64::from(cache.ways)).max().unwrap_or(0);
        let ways = before.iter().map(|cache| u64::from(cache.ways)).max().unwrap_or(1);
        // Of a cache that replaces at random, so many that a line survives hardly ever.
        let is_random = before.iter().any(|cache| cache.replacement == Replacement::Random);
        let number = if is_random { 48 } else { 2 * ways };
        Some(Lines { number, distance })
    }

    fn address(self, access: u64) -> u64 {
        DATA + access % self.number * self.distance
    }
}

/// The machine whose table of loads that wait is not cleared.
fn without_clearing(described: &Described) -> Described {
    let mut machine = described.machine.clone();
    if let Some(core) = &mut machine.out_of_order {
        core.loads.wait_table_cycles = u32::MAX;
    }
    Described { name: described.name, machine }
}

/// How a load overlaps the store before it.
#[derive(Clone, Copy, PartialEq)]
enum Overlap {
    /// The store has all of its bytes.
    All,
    Some,
    None,
}

/// A store of what the last load has loaded, and a load that may depend on it.
const FORWARDS: &[(&str, &str, Overlap)] = &[
    ("stq; ldq", "stq r1,0(r20); ldq r1,0(r20)", Overlap::All),
    ("stl; ldl", "stl r1,0(r20); ldl r1,0(r20)", Overlap::All),
    ("stq; ldl", "stq r1,0(r20); ldl r1,0(r20)", Overlap::All),
    ("stq; ldl of the upper half", "stq r1,0(r20); ldl r1,4(r20)", Overlap::All),
    ("stl; ldq", "stl r1,0(r20); ldq r1,0(r20)", Overlap::Some),
    ("stl of the upper half; ldq", "stl r1,4(r20); ldq r1,0(r20)", Overlap::Some),
    ("stl; ldl of the upper half", "stl r1,0(r20); ldl r1,4(r20)", Overlap::None),
    ("stl of the upper half; ldl of the lower", "stl r1,4(r20); ldl r1,0(r20)", Overlap::None),
];

fn forwarded(described: &Described, core: &Core, overlap: Overlap) -> f64 {
    let hit = described.hit();
    match core {
        // The store waits for what was loaded; the load is replayed if it follows in the next cycle.
        Core::InOrder(pipeline) => {
            let replay = if overlap == Overlap::None { 0 } else { pipeline.loads.after_store_replay };
            f64::from(u8::from(share_units(pipeline, Store, Load))) + f64::from(replay) + hit
        }
        Core::OutOfOrder(core) => {
            // A store that is split is issued before its data are there.
            let stored = if core.stores.split { 0 } else { execution(core, Store).latency.unwrap_or(1) };
            match overlap {
                Overlap::All => f64::from(stored + core.loads.forward),
                // It retires, and is written in the next cycle; then the load is issued again.
                Overlap::Some => f64::from(stored + 1 + core.loads.partial_forward) + hit,
                Overlap::None => independent_pairs(core),
            }
        }
    }
}

/// A store and a load that do not depend on each other.
fn independent_pairs(core: &OutOfOrder) -> f64 {
    let [stores, loads] = [Store, Load].map(|class| &execution(core, class).ports);
    let ports = match loads.iter().any(|port| stores.contains(port)) {
        true => 2.0 / loads.len() as f64,
        false => (1.0 / loads.len() as f64).max(1.0 / stores.len() as f64),
    };
    ports.max(1.0 / f64::from(core.stores.writes)).max(2.0 / width(core))
}

fn translations() -> Vec<MicroBenchmark> {
    const SECTION: &str = "TLB misses, cycles each";
    let served =
        |(cycles, traps): (f64, bool)| ServedBy { translation: cycles as u32, traps, ..ServedBy::default() };
    let measured = move |described: &Described, text: &str| {
        let access = served(described.translation(false));
        let memory = || Alike { fetch: ServedBy::default(), access };
        each(|| TimingModel::with_memory(&described.machine, memory()).unwrap(), text, 20, |_| DATA)
    };
    let chain = bench(SECTION, "a chain of loads", move |described, core| {
        let ((miss, traps), hit) = (described.translation(false), described.hit());
        let expected = match core {
            // After the trap, which is that of a load that retires, the load passes the pipeline again.
            Core::OutOfOrder(own) if traps => hit + miss + refetched(described, own),
            _ => hit + miss,
        };
        (miss > 0.0).then(|| (measured(described, "ldq r1,0(r1)"), Expected::Exactly(expected)))
    });
    let independent = bench(SECTION, "independent loads", move |described, core| {
        let (miss, traps) = described.translation(false);
        let expected = match core {
            // The pipeline waits, and issues a load then.
            Core::InOrder(_) => Expected::Exactly(1.0 + miss),
            // One trap after the other. Two loads are fetched again in one cycle, or one after the other.
            Core::OutOfOrder(own) if traps => {
                let each = miss + refetched(described, own);
                Expected::Between(each, each + 1.0)
            }
            // As many as the load queue has entries, from dispatch to the cycle after retirement.
            Core::OutOfOrder(own) => {
                let held = f64::from(own.dispatch_to_issue) + described.hit() + miss + 1.0;
                let each = core.cycles_each(Load).max(held / f64::from(own.loads.queue));
                // The measurement ends within a round of the queue.
                Expected::Between(0.95 * each, 1.05 * each)
            }
        };
        (miss > 0.0).then(|| (measured(described, "ldq rNUMBER,0(r20)"), expected))
    });
    let fetches = bench(SECTION, "taken branches", move |described, core| {
        let (miss, traps) = described.translation(true);
        let fetched = 1.0 + taken(core);
        let expected = match core {
            // The trap is taken when the branch before has retired, and the missing instruction would be dispatched.
            Core::OutOfOrder(own) if traps => {
                let stages = described.fetch_hit() + f64::from(own.fetch.stages);
                let retired = stages + f64::from(own.dispatch_to_issue) + core.latency(Jump, 0.0);
                miss + retired.max(fetched + stages)
            }
            _ => fetched + miss,
        };
        let measured = || branches(described, served(described.translation(true)));
        (miss > 0.0).then(|| (measured(), Expected::Exactly(expected)))
    });
    vec![chain, independent, fetches]
}

/// Cycles from the fetch of a load to its data.
fn refetched(described: &Described, core: &OutOfOrder) -> f64 {
    described.fetch_hit() + f64::from(core.fetch.stages + core.dispatch_to_issue) + described.hit()
}
