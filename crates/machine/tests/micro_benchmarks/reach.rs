//! How much caches and TLBs hold: contents only, on machines without pipelines, too.

use pathlength_machine::{Hierarchy, Holds, Machine, Replacement};

use super::{Described, Expected, MicroBenchmark};

/// All of them.
pub fn all() -> Vec<MicroBenchmark> {
    let section = "Reach: misses of each access, after the first time";
    let mut list = Vec::new();
    for (name, instructions) in [("data", false), ("instructions", true)] {
        for more in [0, 1] {
            let what = ["as many lines of a set as L1 has ways", "a line more"][more as usize];
            list.push(bench(section, format!("{name}, {what}"), move |machine| {
                lines(machine, instructions, more)
            }));
        }
        for more in [0, 1] {
            let what = ["as many pages as the first TLB has entries", "a page more"][more as usize];
            list.push(bench(section, format!("{name}, {what}"), move |machine| {
                pages(machine, instructions, more)
            }));
        }
    }
    list
}

fn bench(
    section: &'static str,
    name: String,
    case: impl Fn(&Machine) -> Option<(f64, Expected)> + 'static,
) -> MicroBenchmark {
    MicroBenchmark { name, section, case: Box::new(move |described: &Described| case(&described.machine)) }
}

fn serves(holds: Holds, instructions: bool) -> bool {
    holds == Holds::Both || (holds == Holds::Instructions) == instructions
}

/// All hit if they fit; of one more, none does with LRU or FIFO replacement, and some miss with others.
fn expected(more: u64, replacement: Replacement) -> Expected {
    match replacement {
        _ if more == 0 => Expected::Exactly(0.0),
        Replacement::Lru | Replacement::Fifo => Expected::Exactly(1.0),
        Replacement::Random | Replacement::NotLastUsed => Expected::Between(0.01, 1.0),
    }
}

fn lines(machine: &Machine, instructions: bool, more: u64) -> Option<(f64, Expected)> {
    let cache = machine.caches.iter().find(|cache| serves(cache.holds, instructions))?;
    let distance = cache.size / u64::from(cache.ways);
    let misses =
        misses(machine, instructions, u64::from(cache.ways) + more, distance, |served| served.cache_misses);
    Some((misses, expected(more, cache.replacement)))
}

fn pages(machine: &Machine, instructions: bool, more: u64) -> Option<(f64, Expected)> {
    let mut buffers = machine.translation_buffers.iter().filter(|buffer| serves(buffer.holds, instructions));
    let buffer = buffers.find(|buffer| buffer.level == 1)?;
    let misses = misses(machine, instructions, u64::from(buffer.entries) + more, buffer.page, |served| {
        served.tlb_misses
    });
    Some((misses, expected(more, buffer.replacement)))
}

fn misses(
    machine: &Machine,
    instructions: bool,
    number: u64,
    distance: u64,
    missed: impl Fn(pathlength_machine::Served) -> u8,
) -> f64 {
    let mut hierarchy = Hierarchy::new(machine);
    let mut pass = || {
        (0..number)
            .map(|number| 0x1_2000_0000 + number * distance)
            .filter(|&address| {
                let served = if instructions { hierarchy.fetch(address) } else { hierarchy.load(address, 8) };
                missed(served) > 0
            })
            .count()
    };
    pass();
    (0..8).map(|_| pass()).sum::<usize>() as f64 / (8 * number) as f64
}
