//! A snooping bus with split transactions: when its address lines, its data lines and the banks of memory are free.

use std::collections::VecDeque;

use super::interconnect::InterconnectClock;
use crate::description::Bus;
use crate::memory::coherence::Exchange;

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transaction {
    /// A line comes from memory.
    Memory,
    /// A dirty line comes from another processor's cache, and is not written to memory.
    Transfer,
    /// The same, and it is written to memory at the same time.
    TransferAndUpdate,
    /// Other copies are invalidated: there are no data.
    Upgrade,
    /// A dirty line goes to memory. Nobody waits for it.
    WriteBack,
    /// Other nodes are asked for a line, or told to invalidate it.
    Remote,
}

impl Transaction {
    /// All, in order.
    pub const ALL: [Transaction; 6] = [
        Transaction::Memory,
        Transaction::Transfer,
        Transaction::TransferAndUpdate,
        Transaction::Upgrade,
        Transaction::WriteBack,
        Transaction::Remote,
    ];

    fn has_data(self) -> bool {
        self != Transaction::Upgrade
    }
}

/// What was counted of transactions of a kind. Times are picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCounts {
    /// Their number.
    pub count: u64,
    /// From the requests to the times at which processors can continue.
    pub latency: u64,
    /// The part of it that they would not have had on an idle bus.
    pub waited: u64,
    /// The longest of these latencies.
    pub longest: u64,
}

/// How a bus was used. Times are picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusUse {
    /// By [`Transaction`].
    pub transactions: [TransactionCounts; 6],
    /// How long the address lines were occupied.
    pub address: u64,
    /// How long the data lines were.
    pub data: u64,
    /// How long each bank of memory was.
    pub banks: Vec<u64>,
}

/// The bus. Times are picoseconds since the beginning.
#[derive(Clone, Debug)]
pub struct BusClock {
    cycle: u64,
    arbitration: u64,
    address: u64,
    data: u64,
    memory: u64,
    transfer: u64,
    bank: u64,
    outstanding: usize,
    /// When they are free.
    address_free: u64,
    data_free: u64,
    banks_free: Vec<u64>,
    /// When the data of transactions that have not ended have come.
    open: VecDeque<u64>,
    used: BusUse,
}

impl BusClock {
    /// A bus on which nothing happens.
    pub fn new(bus: &Bus) -> BusClock {
        let cycle = picoseconds(bus.clock_mhz);
        let times = |cycles: u32| cycle.saturating_mul(cycles.into());
        let banks = vec![0; bus.banks as usize];
        BusClock {
            cycle,
            arbitration: times(bus.arbitration),
            address: times(bus.address),
            data: times(bus.data),
            memory: times(bus.memory),
            transfer: times(bus.transfer),
            bank: times(bus.bank),
            outstanding: bus.outstanding as usize,
            address_free: 0,
            data_free: 0,
            open: VecDeque::new(),
            used: BusUse { banks: banks.clone(), ..BusUse::default() },
            banks_free: banks,
        }
    }

    /// How it was used so far.
    pub fn used(&self) -> &BusUse {
        &self.used
    }

    /// Resets what was counted.
    pub fn reset_counts(&mut self) {
        let banks = vec![0; self.banks_free.len()];
        self.used = BusUse { banks, ..BusUse::default() };
    }

    /// A request at a time, for a line of this number in memory. Returns when the processor can continue.
    pub fn request(&mut self, now: u64, transaction: Transaction, line: u64) -> u64 {
        let start = if transaction.has_data() { self.admitted(now) } else { now };
        let address = (start + self.arbitration).max(self.address_free);
        let answered = address + self.address;
        self.address_free = answered;
        self.used.address += self.address;
        let bank = (line % self.banks_free.len() as u64) as usize;
        let ready = match transaction {
            Transaction::Upgrade => return self.count(now, transaction, answered),
            Transaction::Memory => self.occupy_bank(bank, answered) + self.memory,
            Transaction::Transfer | Transaction::TransferAndUpdate => answered + self.transfer,
            Transaction::WriteBack | Transaction::Remote => answered,
        };
        let data = ready.max(self.data_free);
        self.data_free = data + self.data;
        self.used.data += self.data;
        if matches!(transaction, Transaction::TransferAndUpdate | Transaction::WriteBack) {
            self.occupy_bank(bank, data);
        }
        self.open.push_back(self.data_free);
        if self.open.len() > self.outstanding {
            self.open.pop_front();
        }
        self.count(now, transaction, data + self.cycle)
    }

    /// A request at a time for which other nodes are needed. Its answer is deferred: it occupies the bus, but is not in the order
    /// of addresses, and keeps no other transaction waiting. Returns when the processor can continue.
    pub fn request_remote(
        &mut self,
        now: u64,
        node: usize,
        exchange: &Exchange,
        interconnect: &mut InterconnectClock,
    ) -> u64 {
        let address = (now + self.arbitration).max(self.address_free);
        let answered = address + self.address;
        self.address_free = answered;
        self.used.address += self.address;
        self.used.data += self.data;
        let end = interconnect.exchange(answered, node, exchange) + self.cycle;
        let unloaded = self.unloaded(Transaction::Remote) + interconnect.unloaded(exchange);
        self.count_one(now, Transaction::Remote, end, unloaded)
    }

    /// The time at which there are few enough open transactions for another one. A processor that waited to begin may ask for a later
    /// time than the next one, so that what has ended by then is not forgotten; but data come in order, so that only the last
    /// ones count.
    fn admitted(&self, now: u64) -> u64 {
        match self.open.front() {
            Some(&end) if self.open.len() == self.outstanding => end.max(now),
            _ => now,
        }
    }

    /// Occupies a bank from a time on, or from when it is free; returns that.
    fn occupy_bank(&mut self, bank: usize, from: u64) -> u64 {
        let start = from.max(self.banks_free[bank]);
        self.banks_free[bank] = start + self.bank;
        self.used.banks[bank] += self.bank;
        start
    }

    /// The latency of a transaction on an idle bus; without what other nodes take for it.
    pub fn unloaded(&self, transaction: Transaction) -> u64 {
        let data = match transaction {
            Transaction::Upgrade => 0,
            Transaction::Memory => self.memory + self.cycle,
            Transaction::Transfer | Transaction::TransferAndUpdate => self.transfer + self.cycle,
            Transaction::WriteBack | Transaction::Remote => self.cycle,
        };
        self.arbitration + self.address + data
    }

    fn count(&mut self, now: u64, transaction: Transaction, end: u64) -> u64 {
        self.count_one(now, transaction, end, self.unloaded(transaction))
    }

    fn count_one(&mut self, now: u64, transaction: Transaction, end: u64, unloaded: u64) -> u64 {
        let latency = end - now;
        let counts = &mut self.used.transactions[transaction as usize];
        counts.count += 1;
        counts.latency += latency;
        counts.waited += latency - unloaded;
        counts.longest = counts.longest.max(latency);
        end
    }
}

/// A time in picoseconds.
pub fn nanoseconds(time: f64) -> u64 {
    (time * 1e3).round() as u64
}

/// The time of a cycle in picoseconds, which are whole.
pub fn picoseconds(clock_mhz: f64) -> u64 {
    ((1e6 / clock_mhz).round() as u64).max(1)
}
