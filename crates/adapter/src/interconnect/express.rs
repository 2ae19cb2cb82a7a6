//! PCI Express: a direction each way, and reads whose data come as a transaction of their own, so that many are under way.

use std::collections::VecDeque;

use super::{BusTransaction, EndedTransaction, InterconnectCounts, Master, TransactionKind};
use crate::clock::{HardwareClock, NEVER, Picoseconds};
use crate::description::BusDescription;

/// The two directions of a link.
#[derive(Clone, Debug)]
pub struct Express<P> {
    clock: HardwareClock,
    width: u64,
    header: u64,
    gap: u64,
    to_host: Direction<P>,
    to_adapter: Direction<P>,
    counts: InterconnectCounts,
}

/// A direction, which sends in order.
#[derive(Clone, Debug)]
struct Direction<P> {
    /// The cycle in which it is free.
    free: u64,
    /// Packets in flight, with the cycle in which each arrives.
    carried: VecDeque<InFlight<P>>,
    /// Reads whose target has no data yet, with the cycle in which it has them; they will be carried.
    fetched: VecDeque<InFlight<P>>,
}

#[derive(Clone, Copy, Debug)]
struct InFlight<P> {
    cycle: u64,
    master: Master,
    transaction: BusTransaction<P>,
}

impl<P: Copy> Direction<P> {
    /// Takes the direction for some cycles, as soon as it is free. Gives the cycle in which they end.
    fn occupy(&mut self, from: u64, cycles: u64, gap: u64) -> u64 {
        let end = self.free.max(from) + cycles;
        self.free = end + gap;
        end
    }

    fn next(&self) -> u64 {
        let first = |queue: &VecDeque<InFlight<P>>| queue.front().map_or(u64::MAX, |one| one.cycle);
        first(&self.carried).min(first(&self.fetched))
    }

    /// Appends to a queue. A queue is in order: nothing overtakes.
    fn append(queue: &mut VecDeque<InFlight<P>>, mut one: InFlight<P>) {
        one.cycle = one.cycle.max(queue.back().map_or(0, |last| last.cycle));
        queue.push_back(one);
    }
}

impl<P: Copy> Express<P> {
    /// A link without transactions.
    pub fn new(description: &BusDescription) -> Express<P> {
        let direction = || Direction { free: 0, carried: VecDeque::new(), fetched: VecDeque::new() };
        Express {
            clock: HardwareClock::of_mhz(description.clock_mhz),
            width: u64::from(description.bits / 8),
            header: description.address.into(),
            gap: description.turnaround.into(),
            to_host: direction(),
            to_adapter: direction(),
            counts: InterconnectCounts::default(),
        }
    }

    /// Requests a transaction. The data of a read take the other direction after its stall and fetch.
    pub fn request(&mut self, now: Picoseconds, master: Master, transaction: BusTransaction<P>) {
        let now = self.clock.edge(now);
        let data = u64::from(transaction.bytes).div_ceil(self.width);
        let is_host = matches!(master, Master::Host);
        let is_read = transaction.kind == TransactionKind::Read;
        let cycles = self.header + if is_read { 0 } else { data };
        self.counts.operations += 1;
        self.counts.host_operations += u64::from(is_host);
        self.counts.data_cycles += data;
        self.counts.busy_cycles += cycles;
        self.counts.bytes += u64::from(transaction.bytes);
        let (there, back) = match is_host {
            true => (&mut self.to_adapter, &mut self.to_host),
            false => (&mut self.to_host, &mut self.to_adapter),
        };
        let cycle = there.occupy(now, cycles, self.gap) + transaction.stall;
        match is_read {
            true => {
                let cycle = cycle + self.clock.edge(transaction.fetch);
                Direction::append(&mut back.fetched, InFlight { cycle, master, transaction });
            }
            false => Direction::append(&mut there.carried, InFlight { cycle, master, transaction }),
        }
    }

    /// The time of the next event.
    pub fn next(&self) -> Picoseconds {
        match self.to_host.next().min(self.to_adapter.next()) {
            u64::MAX => NEVER,
            cycle => self.clock.duration(cycle),
        }
    }

    /// Makes the next event happen: a target has data, or a transaction ends.
    pub fn advance(&mut self) -> Option<EndedTransaction<P>> {
        let is_to_host = self.to_host.next() <= self.to_adapter.next();
        let direction = if is_to_host { &mut self.to_host } else { &mut self.to_adapter };
        let cycle = direction.next();
        if direction.fetched.front().is_some_and(|one| one.cycle == cycle) {
            let one = direction.fetched.pop_front().expect("it was seen");
            let cycles = self.header + u64::from(one.transaction.bytes).div_ceil(self.width);
            self.counts.busy_cycles += cycles;
            let cycle = direction.occupy(cycle, cycles, self.gap);
            Direction::append(&mut direction.carried, InFlight { cycle, ..one });
            return None;
        }
        let InFlight { master, transaction, .. } = direction.carried.pop_front()?;
        Some(EndedTransaction { master, transaction })
    }

    /// The counts so far.
    pub fn counts(&self) -> InterconnectCounts {
        self.counts
    }

    /// The link's clock.
    pub fn clock(&self) -> HardwareClock {
        self.clock
    }
}
