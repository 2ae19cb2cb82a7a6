//! Sampled timing models against complete ones, on random walks through random programs.

#[path = "pipeline/assembler.rs"]
mod assembler;

use assembler::assemble;
use events::{Block, Consumer, Thread};
use pathlength_machine::{
    Estimate, Machine, MergeableModel, Model, SampledCycles, SamplingPlan, TimingModel,
};
use testing::sample;

const START: u64 = 0x1_2000_0000;
const DATA: u64 = 0x2_0000_0000;
const MACHINES: [&str; 3] = ["alphastation500", "alpha21264", "present-day-core"];

/// Blocks of random lengths with loads, stores and branches. Each goes on to the next one, or to the one that its branch names.
fn program(random: &mut fastrand::Rng) -> Vec<Block> {
    let bodies: Vec<usize> = (0..60).map(|_| random.usize(1..12)).collect();
    let starts: Vec<u64> = bodies
        .iter()
        .scan(START, |at, body| Some(std::mem::replace(at, *at + 4 * (*body as u64 + 1))))
        .collect();
    let mut blocks = Vec::new();
    for (number, &body) in bodies.iter().enumerate() {
        let mut one = || match random.u32(..8) {
            0..2 => "ldq r1,0(r2)",
            2 => "stq r3,8(r4)",
            3 => "mulq r1,r3,r5",
            _ => "addq r1,r5,r3",
        };
        let mut text: Vec<String> = (0..body).map(|_| one().to_string()).collect();
        let end = starts[number] + 4 * body as u64 + 4;
        let target =
            if number + 1 == bodies.len() { starts[0] } else { starts[random.usize(..bodies.len())] };
        text.push(format!("bne r1,{}", target as i64 - end as i64));
        blocks.push(Block::new(&isa::Alpha, starts[number], assemble(&text.join(";"))));
    }
    blocks
}

/// The records of a walk. How far data lie apart changes every few thousand instructions.
fn walk(random: &mut fastrand::Rng, blocks: &[Block], instructions: u64) -> Vec<u64> {
    let (mut records, mut at, mut executed, mut phase_ends, mut spread) = (Vec::new(), 0, 0, 0, 1);
    while executed < instructions {
        if executed >= phase_ends {
            phase_ends = executed + random.u64(2000..20_000);
            spread = [512, 4096, 1 << 14][random.usize(..3)];
        }
        let block = &blocks[at];
        records.push(!(at as u64));
        let accesses = block.words.iter().filter(|&&word| isa::decode(word).unwrap().access_size().is_some());
        records.extend(accesses.map(|_| DATA + 8 * random.u64(..spread)));
        executed += block.words.len() as u64;
        let target = || {
            let displacement = i64::from(block.words.last().unwrap() << 11) << 32 >> 43;
            let address = block.end().wrapping_add_signed(4 * displacement);
            blocks.iter().position(|block| block.address == address).unwrap()
        };
        let is_last = at + 1 == blocks.len();
        at = if is_last || random.u32(..8) < 1 + at as u32 % 3 { target() } else { at + 1 };
    }
    records
}

fn model(machine: &str, blocks: &[Block]) -> TimingModel {
    let mut model = TimingModel::new(&Machine::find(machine).unwrap()).unwrap();
    blocks.iter().for_each(|block| model.define(block));
    model
}

fn sampled(machine: &str, blocks: &[Block], plan: SamplingPlan, records: &[u64]) -> TimingModel {
    let mut model = model(machine, blocks).with_sampling(plan);
    model.executed(Thread::default(), records);
    model
}

/// A random program, and a walk through it.
fn random_walk(seed: u64, instructions: u64) -> (Vec<Block>, Vec<u64>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let blocks = program(&mut random);
    let records = walk(&mut random, &blocks, instructions);
    (blocks, records)
}

#[test]
fn a_sample_of_everything_is_the_whole() {
    let (blocks, records) = random_walk(1, 50_000);
    for machine in MACHINES {
        let mut complete = model(machine, &blocks);
        complete.executed(Thread::default(), &records);
        let found = sampled(machine, &blocks, SamplingPlan::with_period(1), &records).sampled().unwrap();
        let Estimate { value, error } = found.per_instruction();
        let cycles = complete.cycles();
        assert_eq!((found.measured, error), (cycles.instructions(), 0.0), "{machine}");
        // The last cycle may not be over.
        let missing = cycles.total() as f64 - value * found.measured as f64;
        assert!((-1e-6..1.0 + 1e-6).contains(&missing), "{machine}: {missing}");
        let sum: f64 = found.causes().map(|(_, estimate)| estimate.value).sum();
        assert!((sum - value).abs() < 1e-9, "{machine}");
    }
}

#[test]
fn functional_warming_trains_predictors_as_the_core_does() {
    let (blocks, records) = random_walk(2, 100_000);
    for machine in MACHINES {
        let mut complete = model(machine, &blocks);
        complete.executed(Thread::default(), &records);
        let plan = SamplingPlan { period: 9000, window: 500, warm_up: 700 };
        let found = sampled(machine, &blocks, plan, &records);
        let mispredicted = complete.predictions().branches.mispredicted;
        assert!(mispredicted > 500, "{machine}: {mispredicted}");
        assert_eq!(found.predictions(), complete.predictions(), "{machine}");
    }
}

/// Of 99 % intervals, some 99 of 100 contain the exact value.
#[test]
fn intervals_contain_the_exact_value() {
    let walks = sample(10, 20);
    for machine in MACHINES {
        let contain = |seed: u64| {
            let (blocks, records) = random_walk(100 + seed, 300_000);
            let mut complete = model(machine, &blocks);
            complete.executed(Thread::default(), &records);
            let cycles = complete.cycles();
            let exact = cycles.total() as f64 / cycles.instructions() as f64;
            let plan = SamplingPlan { period: 3000, window: 500, warm_up: 1000 };
            let found = sampled(machine, &blocks, plan, &records).sampled().unwrap();
            let Estimate { value, error } = found.per_instruction();
            assert!(error < 0.5 * exact, "{machine}: {value} ± {error}, exactly {exact}");
            (value - exact).abs() <= error
        };
        let contained = (0..walks as u64).filter(|&seed| contain(seed)).count();
        assert!(contained + 1 >= walks as usize, "{machine}: {contained} of {walks}");
    }
}

/// Short processes miss most when they begin: windows must lie there as often as elsewhere.
#[test]
fn beginnings_and_ends_of_processes_are_sampled() {
    for machine in MACHINES {
        let (mut complete, mut samples): (Vec<_>, Vec<_>) = Default::default();
        for number in 0..60 {
            let (blocks, records) = random_walk(200 + number, 7000);
            let mut whole = model(machine, &blocks);
            whole.executed(Thread::default(), &records);
            complete.push(whole.cycles());
            let plan = SamplingPlan { period: 3000, window: 500, warm_up: 1000 };
            let mut sample = model(machine, &blocks).with_sampling(plan);
            sample.executed(Thread { process: number as u32, ..Thread::default() }, &records);
            samples.push(sample);
        }
        let exact = complete.iter().map(|cycles| cycles.total()).sum::<u64>() as f64
            / complete.iter().map(|cycles| cycles.instructions()).sum::<u64>() as f64;
        let merged = samples.into_iter().reduce(|mut all, ended| {
            all.merge(ended);
            all
        });
        let Estimate { value, error } = merged.unwrap().sampled().unwrap().per_instruction();
        assert!(error < 0.2 * exact, "{machine}: {value} ± {error}, exactly {exact}");
        assert!((value - exact).abs() <= error, "{machine}: {value} ± {error}, exactly {exact}");
    }
}

#[test]
fn samples_are_reset_and_merged() {
    let (blocks, records) = random_walk(3, 60_000);
    let plan = SamplingPlan { period: 5000, window: 500, warm_up: 500 };
    for machine in MACHINES {
        let of = |model: &TimingModel| -> SampledCycles { model.sampled().unwrap() };
        let mut own = sampled(machine, &blocks, plan, &records);
        let once = of(&own);
        assert_eq!(once.windows, 12);
        own.merge(sampled(machine, &blocks, plan, &records));
        let both = of(&own);
        assert_eq!((both.windows, both.measured, both.detailed), (24, 2 * once.measured, 2 * once.detailed));
        assert!((both.per_instruction().value - once.per_instruction().value).abs() < 1e-9);
        own.reset_counts();
        assert_eq!((of(&own).windows, of(&own).instructions), (0, 0));
        own.executed(Thread::default(), &records);
        assert_eq!(of(&own).windows, 12);
    }
}
