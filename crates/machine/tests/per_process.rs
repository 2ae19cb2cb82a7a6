//! Models of processes that have ended are merged: the results are the sums of the models that each process would have kept.

use events::{Block, Consumer, Thread};
use pathlength_machine::{
    Caches, Cycles, Holds, InstructionCounts, Machine, MergeableModel, MissClass, MissRatioCurves,
    PerProcess, SiteCycles, TimingModel,
};

/// Blocks: two loads and an addition; a store and a conditional branch; a call; a return.
const BLOCKS: [&[u32]; 4] = [
    &[0xa41e_0000, 0xa43e_0010, 0x4020_0401],
    &[0xb41e_0008, 0xe420_0003],
    &[0x4040_0402, 0xd340_0010],
    &[0x6bfa_8001],
];
const ACCESSES: [usize; 4] = [2, 1, 0, 0];
const PROCESSES: u32 = 12;

/// A pseudo-random number below a limit.
fn random(seed: &mut u64, limit: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % limit
}

/// Lets a model observe processes, of which several run at the same time; blocks become known while they do.
fn observe(model: &mut impl Consumer) {
    let mut seed = 7;
    let mut defined = 0;
    let mut alive: Vec<u32> = Vec::new();
    let mut next = 0;
    while next < PROCESSES || !alive.is_empty() {
        if next < PROCESSES && alive.len() < 4 {
            alive.push(next);
            next += 1;
        }
        if defined < 2 || random(&mut seed, 3) == 0 {
            let copy = defined / BLOCKS.len();
            let address = 0x1_2000_0000 + 0x40 * defined as u64 + 0x2000 * copy as u64;
            model.define(&Block::new(&isa::Alpha, address, BLOCKS[defined % BLOCKS.len()]));
            defined += 1;
        }
        let index = random(&mut seed, alive.len() as u64) as usize;
        let process = alive[index];
        let mut records = Vec::new();
        for _ in 0..20 {
            let block = random(&mut seed, defined as u64);
            records.push(!block);
            let accesses = ACCESSES[block as usize % ACCESSES.len()];
            records.extend((0..accesses).map(|_| 0x11_f000 + 8 * random(&mut seed, 4096)));
        }
        model.executed(Thread { process, number: process }, &records);
        if random(&mut seed, 6) == 0 {
            model.process_ended(alive.swap_remove(index));
        }
    }
}

/// The models that were merged into one, and those that each process kept.
fn both<M: MergeableModel>(make: impl Fn() -> M + Copy + Send + 'static) -> (M, Vec<M>) {
    let (mut merging, mut keeping) = (PerProcess::merging(make), PerProcess::new(make));
    observe(&mut merging);
    observe(&mut keeping);
    // Nothing is left of processes but their totals.
    assert!(merging.models().is_empty() && merging.all_models().count() == 1);
    let totals = merging.totals();
    let kept: Vec<Vec<u64>> = keeping.models().values().map(M::totals).collect();
    assert_eq!(totals.values().cloned().collect::<Vec<_>>(), kept);
    assert!(kept.len() > PROCESSES as usize / 2 && kept.iter().any(|totals| totals[0] != kept[0][0]));
    assert!(keeping.models().keys().eq(totals.keys()));
    (merging.into_merged().unwrap(), keeping.into_models().into_values().collect())
}

#[test]
fn misses_are_the_sums_of_all_processes() {
    for name in ["alphastation500", "present-day"] {
        let make = move || Caches::new(&Machine::find(name).unwrap());
        let (merged, kept) = both(make);
        let sum = |of: &dyn Fn(&Caches) -> u64| kept.iter().map(of).sum::<u64>();
        assert_eq!(merged.instructions(), sum(&Caches::instructions));
        for (index, one) in merged.structures().into_iter().enumerate() {
            assert_eq!(one.accesses, sum(&|caches| caches.structures()[index].accesses), "{}", one.name);
            assert_eq!(one.misses, sum(&|caches| caches.structures()[index].misses), "{}", one.name);
            for (kind, lines) in one.traffic.into_iter().flatten().enumerate() {
                let of = |caches: &Caches| caches.structures()[index].traffic.unwrap()[kind];
                assert_eq!(lines, sum(&of), "{}", one.name);
            }
            for block in 0..100 {
                let misses = |caches: &Caches| {
                    MissClass::ALL
                        .map(|class| caches.misses_of(index, class, block).sum::<u64>())
                        .iter()
                        .sum()
                };
                assert_eq!(misses(&merged), sum(&misses));
                assert_eq!(merged.executions(block), sum(&|caches| caches.executions(block)));
            }
        }
    }
}

#[test]
fn cycles_are_the_sums_of_all_processes() {
    for name in ["alphastation500", "dec3000", "alpha21264", "present-day-core"] {
        let make = move || TimingModel::new(&Machine::find(name).unwrap()).unwrap();
        let (merged, kept) = both(make);
        let mut cycles = Cycles::default();
        kept.iter().for_each(|time| cycles.add(&time.cycles()));
        assert_eq!(merged.cycles(), cycles, "{name}");
        let predictions = |time: &TimingModel| {
            let counts = time.predictions();
            [counts.branches, counts.jumps, counts.returns].map(|one| [one.executed, one.mispredicted])
        };
        for kind in 0..3 {
            for column in 0..2 {
                let sum: u64 = kept.iter().map(|time| predictions(time)[kind][column]).sum();
                assert_eq!(predictions(&merged)[kind][column], sum, "{name}");
            }
        }
        assert_eq!(merged.replays(), kept.iter().map(|time| time.replays()).sum::<u64>());
        for block in 0..100 {
            let of = |site: &SiteCycles| [site.issuing, site.front_end_stall, site.back_end_stall];
            let own: Vec<_> = merged.sites(block).iter().map(of).collect();
            for (position, own) in own.iter().enumerate() {
                for (kind, cycles) in own.iter().enumerate() {
                    let sum: u64 = kept.iter().map(|time| of(&time.sites(block)[position])[kind]).sum();
                    assert_eq!(*cycles, sum, "{name}: block {block}, instruction {position}");
                }
            }
            assert_eq!(merged.executions(block), kept.iter().map(|time| time.executions(block)).sum::<u64>());
        }
    }
}

#[test]
fn curves_and_instructions_are_the_sums_of_all_processes() {
    let make =
        || MissRatioCurves::new(64, 1 << 20, &[Holds::Instructions, Holds::Data, Holds::Both]).unwrap();
    let (merged, kept) = both(make);
    for (index, curve) in merged.curves().into_iter().enumerate() {
        for (position, point) in curve.points.into_iter().enumerate() {
            let sum: u64 = kept.iter().map(|one| one.curves()[index].points[position].misses).sum();
            assert_eq!(point.misses, sum);
        }
    }
    let (merged, kept) = both(InstructionCounts::new);
    for block in 0..100 {
        assert_eq!(merged.executions(block), kept.iter().map(|one| one.executions(block)).sum::<u64>());
    }
}
