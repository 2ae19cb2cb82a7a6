//! Addresses in the order of time, and as if processes had been on other processors.

use events::record::Mark;
use isa::Op;
use isa::encode::memory;
use pathlength_analysis::replay::{Addresses, Replay, ReplayOrder, Selection};
use table::{Table, Value};

use crate::made::{Item, Made, Shown, Thread};

/// The example of a talk on CC-NUMA machines: which process accessed what, in the order of time.
const TRACED: [(u32, u64); 11] = [
    (128, 0x1230),
    (128, 0x1240),
    (321, 0x8820),
    (161, 0x4210),
    (161, 0x4220),
    (421, 0x0500),
    (321, 0x8830),
    (6, 0x0070),
    (421, 0x0510),
    (161, 0x4230),
    (6, 0x0080),
];

/// Its processes, as they first appear: they are numbered from 0 in a trace.
const PROCESSES: [u32; 5] = [128, 321, 161, 421, 6];

fn made() -> Made {
    let load = memory(Op::Ldq, 1, 2, 0).unwrap();
    let mut threads: Vec<Thread> = (0..5).map(|process| Thread { process, items: Vec::new() }).collect();
    for ((process, address), time) in TRACED.into_iter().zip(1..) {
        let thread = PROCESSES.iter().position(|known| *known == process).unwrap();
        threads[thread].items.push(Item::Mark(Mark::Order(time)));
        threads[thread].items.push(Item::Block(0, vec![address]));
    }
    Made { blocks: vec![(0x1000, vec![load])], threads, ..Made::default() }
}

/// A load: its processor if the table has it, its process by its number in the example, its address.
type Load = (Option<u64>, u32, u64);

fn loads(shown: &Shown, order: ReplayOrder) -> Vec<Load> {
    let Replay { dictionary, accesses, filter, .. } = shown.replay;
    let shown = Shown { replay: Replay { dictionary, accesses, filter, order } };
    let mut rows = Vec::new();
    let mut addresses = Addresses::new(&shown.replay, "addresses", |piece: &Table| {
        rows.extend(piece.rows.clone());
        Ok(())
    });
    shown.to(&mut addresses);
    addresses.finish().unwrap();
    let number = |value: &Value| match value {
        Value::Integer(number) => *number as u64,
        _ => panic!("{value:?}"),
    };
    let load = |row: &Vec<Value>| {
        let (processor, rest) = row.split_at(row.len() - 5);
        (processor.first().map(number), PROCESSES[number(&rest[0]) as usize], number(&rest[3]))
    };
    rows.iter().filter(|row| row.contains(&"load".into())).map(load).collect()
}

#[test]
fn addresses_come_in_the_order_of_time_and_by_process() {
    let load = |(process, address)| (None, process, address);
    made().replay(&Selection::default(), |shown| {
        assert_eq!(loads(shown, ReplayOrder::Time), TRACED.map(load));
    });
    for (number, process) in (0..).zip(PROCESSES) {
        let selection = Selection { threads: vec![(number, None)], ..Selection::default() };
        made().replay(&selection, |shown| {
            let own: Vec<Load> = TRACED.into_iter().filter(|one| one.0 == process).map(load).collect();
            assert_eq!(loads(shown, ReplayOrder::Time), own);
        });
    }
}

#[test]
fn processes_can_be_put_on_other_processors() {
    made().replay(&Selection::default(), |shown| {
        for (processors, quantum) in [(1, 1), (1, 100), (2, 1), (2, 2), (5, 1), (9, 100)] {
            let all = loads(shown, ReplayOrder::Processors { processors, quantum });
            assert_eq!(all.len(), TRACED.len());
            for process in PROCESSES {
                // Each is on one processor, and does what it did.
                let own: Vec<&Load> = all.iter().filter(|one| one.1 == process).collect();
                assert!(own.iter().all(|one| one.0 == own[0].0 && one.0.unwrap() < processors.into()));
                let traced = TRACED.iter().filter(|one| one.0 == process);
                assert!(own.iter().map(|one| one.2).eq(traced.map(|one| one.1)));
            }
        }
    });
}
