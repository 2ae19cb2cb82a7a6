//! A PCI bus: transactions are events, the cycles within them are computed.
//!
//! A transaction has an address phase, a stall of its target, data phases of a cycle each, and a turnaround cycle. The arbiter
//! decides in the first cycle in which the bus is free and a master requests it, in turn; arbitration takes its time only if the
//! bus was idle, because it is hidden behind the transaction before. A master whose latency timer has expired gives up the bus
//! after a data phase if another one requests it, at the end of a line if it writes and invalidates lines.

use std::collections::VecDeque;

use super::{BusTransaction, EndedTransaction, InterconnectCounts, MASTERS, Master, TransactionKind};
use crate::clock::{HardwareClock, NEVER, Picoseconds};
use crate::description::BusDescription;

/// A bus with its masters.
#[derive(Clone, Debug)]
pub struct PciBus<P> {
    clock: HardwareClock,
    width: u64,
    timing: PciTiming,
    masters: [MasterQueue<P>; MASTERS],
    last: usize,
    state: BusState,
    /// The first cycle in which another transaction may begin.
    free: u64,
    counts: InterconnectCounts,
}

/// Durations in cycles.
#[derive(Clone, Copy, Debug)]
struct PciTiming {
    arbitration: u64,
    address: u64,
    turnaround: u64,
    retry: u64,
    retry_interval: u64,
    latency_timer: Option<u64>,
    line: u64,
}

/// The transactions that a master wants, in order.
#[derive(Clone, Debug)]
struct MasterQueue<P> {
    waiting: VecDeque<BusTransaction<P>>,
    /// The cycle in which the first one requests the bus.
    requested: u64,
    /// The time at which the target of the first one, a read, has its data, once it was tried.
    data_ready: Option<Picoseconds>,
}

#[derive(Clone, Copy, Debug)]
enum BusState {
    /// Nobody requests it.
    Idle,
    /// The arbiter decides in this cycle.
    Deciding(u64),
    /// A master has it.
    Owned(Ownership),
}

#[derive(Clone, Copy, Debug)]
struct Ownership {
    master: usize,
    /// The cycle of the address phase.
    start: u64,
    /// The first cycle with data; the end, if the target retries.
    first_data: u64,
    /// The cycle after the last one with data.
    end: u64,
    is_retried: bool,
}

impl<P: Copy> PciBus<P> {
    /// A bus without transactions.
    pub fn new(description: &BusDescription) -> PciBus<P> {
        let master = MasterQueue { waiting: VecDeque::new(), requested: 0, data_ready: None };
        PciBus {
            clock: HardwareClock::of_mhz(description.clock_mhz),
            width: u64::from(description.bits / 8),
            timing: PciTiming {
                arbitration: description.arbitration.into(),
                address: description.address.into(),
                turnaround: description.turnaround.into(),
                retry: description.retry.into(),
                retry_interval: description.retry_interval.into(),
                latency_timer: description.latency_timer.map(u64::from),
                line: description.line.into(),
            },
            masters: [master.clone(), master.clone(), master],
            last: MASTERS - 1,
            state: BusState::Idle,
            free: 0,
            counts: InterconnectCounts::default(),
        }
    }

    /// Requests a transaction behind the master's others. The arbiter sees the request at the next edge of the clock.
    pub fn request(&mut self, now: Picoseconds, master: Master, transaction: BusTransaction<P>) {
        let queue = &mut self.masters[master as usize];
        queue.waiting.push_back(transaction);
        if queue.waiting.len() > 1 {
            return;
        }
        let cycle = self.clock.edge(now);
        queue.requested = cycle;
        match self.state {
            BusState::Owned(ref mut ownership) if ownership.master != master as usize => {
                let queue = &self.masters[ownership.master];
                let timing = &self.timing;
                cut(ownership, cycle, timing, &queue.waiting[0], self.width);
            }
            BusState::Owned(_) => {}
            BusState::Idle | BusState::Deciding(_) => self.await_request(),
        }
    }

    /// The time of the next event.
    pub fn next(&self) -> Picoseconds {
        match self.state {
            BusState::Idle => NEVER,
            BusState::Deciding(cycle) => self.clock.duration(cycle),
            BusState::Owned(ownership) => self.clock.duration(ownership.end),
        }
    }

    /// Makes the next event happen: the arbiter decides, or a transaction ends.
    pub fn advance(&mut self) -> Option<EndedTransaction<P>> {
        match self.state {
            BusState::Idle => None,
            BusState::Deciding(cycle) => {
                self.grant(cycle);
                None
            }
            BusState::Owned(ownership) => self.end(ownership),
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> InterconnectCounts {
        self.counts
    }

    /// The bus's clock.
    pub fn clock(&self) -> HardwareClock {
        self.clock
    }

    /// Waits for the first request.
    fn await_request(&mut self) {
        let requests = self.masters.iter().filter(|queue| !queue.waiting.is_empty());
        self.state = match requests.map(|queue| queue.requested).min() {
            None => BusState::Idle,
            Some(cycle) => BusState::Deciding(cycle.max(self.free)),
        };
    }

    fn grant(&mut self, cycle: u64) {
        let turns = (1..=MASTERS).map(|turn| (self.last + turn) % MASTERS);
        let is_requesting = |&master: &usize| {
            let queue = &self.masters[master];
            !queue.waiting.is_empty() && queue.requested <= cycle
        };
        let master = turns.clone().find(is_requesting).expect("the arbiter decides because of a request");
        let has_rival = turns.clone().any(|other| other != master && is_requesting(&other));
        let later = turns.filter(|&other| other != master && !self.masters[other].waiting.is_empty());
        let later = later.map(|other| self.masters[other].requested).min();
        let queue = &self.masters[master];
        let start = cycle.max(queue.requested + self.timing.arbitration);
        let transaction = &queue.waiting[0];
        let is_retried =
            transaction.fetch > 0 && queue.data_ready.is_none_or(|ready| self.clock.duration(start) < ready);
        let (first_data, phases) = match is_retried {
            true => (start + self.timing.address + self.timing.retry, 0),
            false => (start + self.timing.address + transaction.stall, phases(transaction, self.width)),
        };
        let mut ownership = Ownership { master, start, first_data, end: first_data + phases, is_retried };
        // A rival takes the grant away at once, or when it requests the bus; one that waits for its next try is known, too.
        if let Some(seen) = if has_rival { Some(start) } else { later } {
            cut(&mut ownership, seen.max(start), &self.timing, transaction, self.width);
        }
        self.last = master;
        self.state = BusState::Owned(ownership);
    }

    fn end(&mut self, ownership: Ownership) -> Option<EndedTransaction<P>> {
        let Ownership { master, start, first_data, end, is_retried } = ownership;
        self.free = end + self.timing.turnaround;
        self.counts.operations += 1;
        self.counts.host_operations += u64::from(master == Master::Host as usize);
        self.counts.busy_cycles += end - start;
        let queue = &mut self.masters[master];
        if is_retried {
            self.counts.retries += 1;
            let fetch = queue.waiting[0].fetch;
            queue.data_ready.get_or_insert(self.clock.duration(end) + fetch);
            queue.requested = end + self.timing.retry_interval.max(self.timing.turnaround);
            self.await_request();
            return None;
        }
        let transferred = end - first_data;
        self.counts.data_cycles += transferred;
        let transaction = &mut queue.waiting[0];
        let bytes = moved(transaction, transferred, self.width);
        self.counts.bytes += u64::from(bytes);
        let ended = (bytes == transaction.bytes).then_some(*transaction);
        if ended.is_some() {
            queue.waiting.pop_front();
            queue.data_ready = None;
        } else {
            self.counts.cut += 1;
            transaction.address += u64::from(bytes);
            transaction.bytes -= bytes;
        }
        queue.requested = end;
        self.await_request();
        let master = [Master::Host, Master::Adapter, Master::Peer][master];
        ended.map(|transaction| EndedTransaction { master, transaction })
    }
}

/// The number of data phases.
fn phases<P>(transaction: &BusTransaction<P>, width: u64) -> u64 {
    (transaction.address % width + u64::from(transaction.bytes)).div_ceil(width)
}

/// The bytes that a number of data phases move.
fn moved<P>(transaction: &BusTransaction<P>, transferred: u64, width: u64) -> u32 {
    let bytes = (transferred * width).saturating_sub(transaction.address % width);
    bytes.min(transaction.bytes.into()) as u32
}

/// Ends a transaction early because another master's request is seen in a cycle.
fn cut<P>(
    ownership: &mut Ownership,
    seen: u64,
    timing: &PciTiming,
    transaction: &BusTransaction<P>,
    width: u64,
) {
    let Some(timer) = timing.latency_timer else { return };
    if ownership.is_retried {
        return;
    }
    let earliest = (ownership.start + timer).max(seen + 1).max(ownership.first_data + 1);
    let mut end = earliest;
    if transaction.kind == TransactionKind::WriteInvalidate {
        let offset = transaction.address % timing.line / width;
        let phases = (offset + end - ownership.first_data).next_multiple_of(timing.line / width);
        end = ownership.first_data + phases - offset;
    }
    ownership.end = ownership.end.min(end);
}
