//! The bus, beside one that was written independently: a loop over all cycles.

use pathlength_adapter::interconnect::{BusTransaction, Master, PciBus, TransactionKind};
use pathlength_adapter::{AdapterDescription, BusDescription};

const MASTERS: [Master; 3] = [Master::Host, Master::Adapter, Master::Peer];

/// A transaction, and the cycle in which its master first wants it.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    time: u64,
    master: usize,
    transaction: BusTransaction<usize>,
}

/// The use of a bus cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Use {
    Idle,
    Arbitration { left: u64, owner: usize },
    Overhead { left: u64, owner: usize },
    Data { owner: usize },
    Stopping { left: u64, owner: usize },
    Turnaround { left: u64 },
}

/// A bus that is simulated cycle by cycle. Ends of transactions, by number, in cycles.
fn cycle_by_cycle(description: &BusDescription, wanted: &[Wanted], cycle_time: u64) -> Vec<(usize, u64)> {
    let width = u64::from(description.bits / 8);
    let mut queues: [Vec<BusTransaction<usize>>; 3] = Default::default();
    // The cycle from which the first of each queue requests the bus, and the time when its data are there.
    let (mut asks, mut there) = ([0_u64; 3], [None::<u64>; 3]);
    let (mut last, mut now, mut ends) = (2, 0_u64, Vec::new());
    let (mut state, mut began, mut lost_since) = (Use::Idle, 0, None::<u64>);
    let mut next = 0;
    while ends.len() < wanted.len() {
        while next < wanted.len() && wanted[next].time.div_ceil(cycle_time) <= now {
            let Wanted { time, master, transaction } = wanted[next];
            if queues[master].is_empty() {
                asks[master] = time.div_ceil(cycle_time);
            }
            queues[master].push(transaction);
            next += 1;
        }
        let asking = |master: usize| !queues[master].is_empty() && asks[master] <= now;
        // The state at the start of this cycle.
        if let Use::Turnaround { left: 0 } = state {
            state = Use::Idle;
        }
        if state == Use::Idle
            && let Some(owner) = (1..=3).map(|turn| (last + turn) % 3).find(|&master| asking(master))
        {
            last = owner;
            let left = (asks[owner] + u64::from(description.arbitration)).saturating_sub(now);
            state = Use::Arbitration { left, owner };
        }
        if let Use::Arbitration { left: 0, owner } = state {
            let transaction = &queues[owner][0];
            (began, lost_since) = (now, None);
            let is_early = transaction.fetch > 0 && there[owner].is_none_or(|time| now * cycle_time < time);
            state = match is_early {
                true => Use::Stopping { left: u64::from(description.address + description.retry), owner },
                false => Use::Overhead { left: u64::from(description.address) + transaction.stall, owner },
            };
        }
        if let Use::Overhead { left: 0, owner } = state {
            state = Use::Data { owner };
        }
        // Somebody else wants the bus.
        if let Use::Overhead { owner, .. } | Use::Data { owner } = state
            && lost_since.is_none()
            && (0..3).any(|other| other != owner && asking(other))
        {
            lost_since = Some(now);
        }
        // The cycle itself.
        now += 1;
        let free = |description: &BusDescription| Use::Turnaround { left: u64::from(description.turnaround) };
        state = match state {
            Use::Idle => Use::Idle,
            Use::Arbitration { left, owner } => Use::Arbitration { left: left - 1, owner },
            Use::Turnaround { left } => Use::Turnaround { left: left - 1 },
            Use::Overhead { left, owner } => Use::Overhead { left: left - 1, owner },
            Use::Stopping { left: 1, owner } => {
                there[owner].get_or_insert(now * cycle_time + queues[owner][0].fetch);
                asks[owner] = now + u64::from(description.retry_interval.max(description.turnaround));
                free(description)
            }
            Use::Stopping { left, owner } => Use::Stopping { left: left - 1, owner },
            Use::Data { owner } => {
                let transaction = &mut queues[owner][0];
                let bytes = (width - transaction.address % width).min(transaction.bytes.into());
                transaction.address += bytes;
                transaction.bytes -= bytes as u32;
                let at_line = transaction.address.is_multiple_of(description.line.into());
                let may_stop = transaction.kind != TransactionKind::WriteInvalidate || at_line;
                let timer = description.latency_timer.map(u64::from);
                let expired = timer.is_some_and(|timer| now >= began + timer)
                    && lost_since.is_some_and(|since| now > since);
                if transaction.bytes == 0 {
                    ends.push((transaction.purpose, now));
                    queues[owner].remove(0);
                    there[owner] = None;
                    asks[owner] = now;
                    free(description)
                } else if expired && may_stop {
                    asks[owner] = now;
                    free(description)
                } else {
                    state
                }
            }
        };
    }
    ends
}

fn by_events(
    description: &BusDescription,
    wanted: &[Wanted],
    cycle_time: u64,
) -> (Vec<(usize, u64)>, [u64; 2]) {
    let mut bus = PciBus::new(description);
    let (mut ends, mut next) = (Vec::new(), 0);
    while ends.len() < wanted.len() {
        // Requests at the time of an event come before it.
        if next < wanted.len() && wanted[next].time <= bus.next() {
            let Wanted { time, master, transaction } = wanted[next];
            bus.request(time, MASTERS[master], transaction);
            next += 1;
            continue;
        }
        let time = bus.next();
        if let Some(ended) = bus.advance() {
            assert_eq!(time % cycle_time, 0);
            ends.push((ended.transaction.purpose, time / cycle_time));
        }
    }
    (ends, [bus.counts().cut, bus.counts().retries])
}

fn random_bus(random: &mut fastrand::Rng) -> BusDescription {
    let mut bus = AdapterDescription::find("dart").unwrap().bus;
    bus.bits = *random.choice(&[32, 64]).unwrap();
    bus.arbitration = random.u32(0..4);
    bus.address = random.u32(1..3);
    bus.turnaround = random.u32(0..3);
    bus.retry = random.u32(1..4);
    bus.retry_interval = random.u32(0..9);
    bus.latency_timer = random.bool().then(|| random.u32(0..40));
    bus
}

fn random_transactions(random: &mut fastrand::Rng, number: usize, cycle_time: u64) -> Vec<Wanted> {
    let mut time = 0;
    let most = *random.choice(&[10, 100, 1000]).unwrap();
    (0..number)
        .map(|purpose| {
            time += random.u64(0..most) * if random.bool() { cycle_time } else { 1_000 };
            let kind = *random
                .choice(&[TransactionKind::Read, TransactionKind::Write, TransactionKind::WriteInvalidate])
                .unwrap();
            let is_whole = kind == TransactionKind::WriteInvalidate;
            let transaction = BusTransaction {
                kind,
                address: random.u64(0..64) * if is_whole { 64 } else { 1 },
                bytes: if is_whole { random.u32(1..5) * 64 } else { random.u32(1..520) },
                stall: random.u64(0..20),
                fetch: if kind == TransactionKind::Read && random.bool() {
                    random.u64(1..800_000)
                } else {
                    0
                },
                purpose,
            };
            Wanted { time, master: random.usize(0..3), transaction }
        })
        .collect()
}

#[test]
fn transactions_end_in_the_cycles_of_an_independent_bus() {
    let mut random = fastrand::Rng::with_seed(4);
    let cycle_time = 30_303;
    let mut seen = [0; 2];
    for run in 0..testing::sample(300, 20_000) {
        let description = random_bus(&mut random);
        let wanted = random_transactions(&mut random, 60, cycle_time);
        let (ends, counts) = by_events(&description, &wanted, cycle_time);
        assert_eq!(ends, cycle_by_cycle(&description, &wanted, cycle_time), "run {run}: {description:?}");
        seen = [seen[0] + counts[0], seen[1] + counts[1]];
    }
    assert!(seen.iter().all(|&number| number > 1000), "too few were cut or retried: {seen:?}");
}
