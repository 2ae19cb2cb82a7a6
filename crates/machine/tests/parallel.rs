//! Models that share an execution have the counts of models that observe it alone.

use events::record::{Event, Mark};
use events::{Block, Consumer, Thread};
use pathlength_machine::{Caches, Machine, Model, ParallelModels, WarmUp};

/// Records of two threads that walk over memory, in units of work.
fn records(random: &mut fastrand::Rng) -> Vec<(Thread, Vec<u64>)> {
    let part = |number| {
        let thread = Thread { process: 0, number: random.u32(0..2) };
        let mut words = vec![Event::Mark(Mark::UnitBegins(number)).word()];
        for _ in 0..random.usize(1..3000) {
            words.extend([Event::Block(0).word(), random.u64(0x1_0000..0x9_0000) & !7]);
        }
        words.push(Event::Mark(Mark::UnitEnds(number)).word());
        (thread, words)
    };
    (0..200).map(part).collect()
}

#[test]
fn parallel_models_count_as_single_ones() {
    let machines = ["alphastation500", "dec3000", "present-day"].map(|name| Machine::find(name).unwrap());
    let records = records(&mut fastrand::Rng::with_seed(7));
    // ldq v0,16(sp)
    let block = Block::new(&isa::Alpha, 0x1_2000_0000, vec![0xa41e_0010]);
    for warm_up in [0, 20] {
        let alone = machines.each_ref().map(|machine| {
            let mut model = WarmUp::new(Caches::new(machine), 0..warm_up);
            model.define(&block);
            records.iter().for_each(|(thread, words)| model.executed(*thread, words));
            model.model
        });
        for has_threads in [false, true] {
            let mut models = ParallelModels::new(machines.iter().map(Caches::new).collect());
            assert!(!has_threads || models.use_worker_thread().unwrap());
            let mut models = WarmUp::new(models, 0..warm_up);
            models.define(&block);
            records.iter().for_each(|(thread, words)| models.executed(*thread, words));
            let models = models.model.into_models();
            for (model, alone) in models.iter().zip(&alone) {
                assert!(alone.structures().iter().any(|one| one.misses > 1000));
                assert_eq!((model.structures(), model.units()), (alone.structures(), alone.units()));
            }
        }
    }
}
