//! What out-of-order cores count beside cycles.

use machine::{Machine, NonOverlapped, OutOfOrderCounts, Resource, TimingModel};

use super::SummedOverProcesses;
use super::cycles::{percent, ratio};
use table::{Kind, Table, Value};

/// The cycles if nothing overlapped: each event at its full penalty, beside the cycles that were needed.
pub(super) fn non_overlapped(
    name: &str,
    title: &str,
    machine: &Machine,
    time: &SummedOverProcesses<TimingModel>,
) -> Table {
    let columns = [
        ("component", Kind::Text),
        ("events", Kind::Count),
        ("cycles each", Kind::Count),
        ("cycles", Kind::Count),
        ("per instruction", Kind::Real(3)),
    ];
    let mut table = Table::new(name, title, &columns);
    let sum: NonOverlapped = time.non_overlapped();
    let cycles = time.cycles();
    let instructions = cycles.instructions();
    let plain = |name: &str, cycles: u64| {
        let [name, none] = [name.into(), Value::Missing];
        vec![name, none.clone(), none, cycles.into(), ratio(cycles, instructions)]
    };
    table.row(plain("computation: cycles in which instructions retired", sum.computation));
    table.row(plain("resources: cycles in which full ones held dispatch", sum.resources));
    let mut events = vec![("mispredictions".to_string(), sum.branches)];
    for (is_code, what, misses) in [(true, "instructions", &sum.instructions), (false, "data", &sum.data)] {
        let levels = (1u8..).zip(misses).filter(|(_, one)| one.0 > 0);
        events.extend(
            levels.map(|(level, &one)| (format!("{what} from {}", machine.level_name(is_code, level)), one)),
        );
    }
    for (name, (number, each)) in events {
        let cycles = number * each;
        table.row(vec![name.into(), number.into(), each.into(), cycles.into(), ratio(cycles, instructions)]);
    }
    table.row(plain("instruction TLB misses", sum.translations[0]));
    table.row(plain("data TLB misses", sum.translations[1]));
    table.row(plain("all, if nothing overlapped", sum.total()));
    table.row(plain("measured", cycles.total()));
    table
}

/// What held dispatch, and what wrong paths did.
pub(super) fn speculation(name: &str, title: &str, time: &SummedOverProcesses<TimingModel>) -> Table {
    let columns =
        [("event", Kind::Text), ("count", Kind::Count), ("share", Kind::Percent(1)), ("of", Kind::Text)];
    let mut table = Table::new(name, title, &columns);
    let counts: OutOfOrderCounts = time.out_of_order();
    let cycles = time.cycles();
    for (resource, held) in Resource::ALL.into_iter().zip(counts.held) {
        let what = match resource {
            Resource::ReorderBuffer => "dispatch held: reorder buffer full",
            Resource::Registers => "dispatch held: no register for renaming",
            Resource::LoadQueue => "dispatch held: load queue full",
            Resource::StoreQueue => "dispatch held: store queue full",
            Resource::Station => "dispatch held: reservation station full",
        };
        table.row(vec![what.into(), held.into(), percent(held, cycles.total()), "cycles".into()]);
    }
    for (number, &dispatching) in (1u64..).zip(&counts.dispatched[1..]).filter(|(_, cycles)| **cycles > 0) {
        let what = format!("cycles in which {number} dispatched, wrong paths included");
        table.row(vec![
            what.into(),
            dispatching.into(),
            percent(dispatching, cycles.total()),
            "cycles".into(),
        ]);
    }
    if counts.targets[0] > 0 {
        let [executed, missed] = counts.targets;
        let row = ["branches that the target buffer did not have".into(), missed.into()];
        table.row(row.into_iter().chain([percent(missed, executed), "branches".into()]).collect());
    }
    let instructions = cycles.instructions();
    for (what, count) in [
        ("fetched on wrong paths", counts.wrong_fetched),
        ("issued on wrong paths", counts.wrong_issued),
        ("loads of wrong paths that accessed the cache", counts.wrong_loads),
        ("wrong paths that ended early", counts.lost_paths),
        ("loads that an older store supplied", counts.forwarded),
        ("loads replayed", counts.replays),
    ] {
        table.row(vec![what.into(), count.into(), percent(count, instructions), "instructions".into()]);
    }
    table
}
