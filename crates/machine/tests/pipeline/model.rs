//! The timing model as a consumer: units of work, processes, and machines that are rejected.

use events::record::{Event, Mark};
use events::{Block, Consumer, Thread};
use pathlength_machine::pipeline::PerfectMemory;
use pathlength_machine::{Cause, Machine, Model, TimingModel};

use super::assembler::assemble;

fn perfect(machine: &str) -> TimingModel<PerfectMemory> {
    TimingModel::with_memory(&Machine::find(machine).unwrap(), PerfectMemory).unwrap()
}

fn mark(mark: Mark) -> u64 {
    Event::Mark(mark).word()
}

#[test]
fn units_have_the_cycles_of_their_process() {
    let mut on_thread = perfect("alphastation500");
    assert!(on_thread.use_worker_thread().unwrap());
    for time in [perfect("alphastation500"), on_thread] {
        check_units(time);
    }
}

fn check_units(mut time: TimingModel<PerfectMemory>) {
    // A shift each: a cycle; the group is a block.
    let words = assemble("sll r1,r2,r3; sll r1,r2,r4; sll r1,r2,r5; sll r1,r2,r6");
    time.define(&Block::new(&isa::Alpha, 0x1000, words));
    let [one, other] = [1, 2].map(|process| Thread { process, number: process });
    let work = |times: usize| vec![!0u64; times];
    let begin = |number| vec![mark(Mark::UnitBegins(number))];
    let end = |number| vec![mark(Mark::UnitEnds(number))];
    time.executed(one, &[begin(0), work(1)].concat());
    time.executed(other, &[begin(0), work(3)].concat());
    time.executed(one, &[work(1), end(0)].concat());
    let left = vec![mark(Mark::UnitCut(1))];
    time.executed(other, &[work(2), end(0), begin(1), left, begin(2), end(2)].concat());
    let units = time.units();
    let numbers = units.iter().map(|unit| (unit.process, unit.number, unit.instructions));
    assert_eq!(numbers.collect::<Vec<_>>(), [(1, 0, 8), (2, 0, 20), (2, 2, 0)]);
    // The last cycle of each run is over when the next one begins.
    let totals: Vec<u64> = units.iter().map(|unit| unit.cycles.total()).collect();
    assert!(totals[0].abs_diff(8) <= 2 && totals[1].abs_diff(20) <= 2 && totals[2] == 0, "{totals:?}");
    assert_eq!(time.cycles().total(), time.cycles().of(Cause::Issued(1)));
    assert_eq!(time.cycles().instructions(), 4 * 7);
}

#[test]
fn the_transition_cache_overflows() {
    const BLOCKS: u64 = 150_000;
    let mut time = perfect("alphastation500");
    let shift = assemble("sll r1,r2,r3");
    (0..BLOCKS).for_each(|block| time.define(&Block::new(&isa::Alpha, 0x1000 + 4 * block, shift.clone())));
    let records: Vec<u64> = (0..BLOCKS).map(|block| !block).collect();
    for _ in 0..3 {
        time.executed(Thread::default(), &records);
    }
    // A cycle each, for there is one unit.
    assert_eq!(time.cycles().of(Cause::Issued(1)), 3 * BLOCKS);
    assert_eq!(time.cycles().total(), 3 * BLOCKS);
    assert!((0..BLOCKS as u32).flat_map(|block| time.sites(block)).all(|site| site.issuing == 3));
}

/// The cycles of interleaved processes are the same with and without a worker thread.
#[test]
fn a_worker_thread_changes_nothing() {
    const BLOCKS: u64 = 500;
    let work = assemble("ldq r1,0(r2); addq r1,r3,r4; stq r4,8(r2); ldq r5,0(r6); bne r5,40");
    let mut times = [(); 2].map(|()| TimingModel::new(&Machine::find("alphastation500").unwrap()).unwrap());
    assert!(times[1].use_worker_thread().unwrap());
    for time in &mut times {
        (0..BLOCKS).for_each(|block| {
            time.define(&Block::new(&isa::Alpha, 0x1_2000_0000 + 20 * block, work.clone()))
        });
        let mut generator = fastrand::Rng::with_seed(1);
        let mut random = |below: u64| generator.u64(..below);
        let mut block = 0;
        for turn in 0..60 {
            let process = random(3) as u32;
            let length = if turn % 4 == 0 { random(40_000) } else { random(3) };
            let mut records = vec![mark(Mark::UnitBegins(turn))];
            for _ in 0..length {
                let addresses = [random(1 << 20), random(1 << 14), random(1 << 20)];
                // Most blocks fall through.
                block = if random(8) == 0 { random(BLOCKS) } else { (block + 1) % BLOCKS };
                records.push(!block);
                records.extend(addresses.map(|address| 0x1_4000_0000 + 8 * address));
            }
            records.push(mark(Mark::UnitEnds(turn)));
            time.executed(Thread { process, number: process }, &records);
            if turn % 5 == 0 {
                assert!(time.cycles().total() > 0);
            }
        }
    }
    let [one, other] = &times;
    assert_eq!(one.cycles(), other.cycles());
    assert_eq!(one.units(), other.units());
    assert_eq!(one.units().len(), 60);
    assert_eq!(one.predictions(), other.predictions());
    assert!((0..BLOCKS as u32).all(|block| one.sites(block) == other.sites(block)));
    assert!((0..BLOCKS as u32).all(|block| one.executions(block) == other.executions(block)));
}

#[test]
fn machines_without_pipeline_have_no_timing_model() {
    let error = TimingModel::new(&Machine::find("qemu").unwrap()).err().unwrap();
    assert!(error.to_string().contains("has no section [pipeline]"), "{error}");
}

#[test]
fn impossible_pipelines() {
    let cases = [
        ("[pipeline]\ngroup = 3", "pipeline.group: 3 is not 1, 2, 4 or 8 instructions"),
        ("[pipeline]\nleft_to_next = [\"E9\"]", "pipeline.left_to_next: no class is issued to \"E9\""),
        ("[pipeline.classes]\nload = { units = [] }", "pipeline.classes.load.units: 0 alternatives"),
        (
            "[pipeline.classes]\nloads = { units = [\"E0\"] }",
            "pipeline.classes.loads: there is no such class",
        ),
        ("[pipeline.loads]\noutstanding = 0", "pipeline.loads.outstanding: 0 is not 1 to 64"),
        ("[predictor]\nentries = 1000", "predictor.entries: 1000 is not a power of two"),
        ("[predictor]\nbits = 8", "predictor.bits: 8 is not 1 to 7"),
        ("[emulation]\nmicroseconds = -1", "emulation.microseconds: -1 is no time"),
    ];
    for (change, expected) in cases {
        let error = Machine::from_toml(&format!("base = \"alphastation500\"\n{change}")).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
