//! A processor on a bus: its time, what it waits for, and the records that it executes next.

use events::{BlockId, Thread};

use super::bus::Transaction;

/// A cause for which a processor's time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProcessorCause {
    /// It executes instructions, with data from its own caches.
    Busy,
    /// It waits for a line from memory.
    Memory,
    /// It waits for a dirty line from another processor's cache.
    Transfer,
    /// It waits for a line of instructions.
    Instructions,
    /// It waits for other nodes.
    Remote,
    /// It has as many transactions outstanding as it can.
    Outstanding,
    /// It executes a memory barrier, and waits for its transactions to end.
    Barrier,
    /// It executes a system call.
    System,
    /// It has nothing to execute.
    Idle,
}

impl ProcessorCause {
    /// All causes, in order.
    pub const ALL: [ProcessorCause; 9] = [
        ProcessorCause::Busy,
        ProcessorCause::Memory,
        ProcessorCause::Transfer,
        ProcessorCause::Instructions,
        ProcessorCause::Remote,
        ProcessorCause::Outstanding,
        ProcessorCause::Barrier,
        ProcessorCause::System,
        ProcessorCause::Idle,
    ];

    /// The cause of waiting for a transaction.
    fn of(transaction: Transaction) -> ProcessorCause {
        match transaction {
            Transaction::Remote => ProcessorCause::Remote,
            // Nobody waits for the last two.
            Transaction::Memory | Transaction::Upgrade | Transaction::WriteBack => ProcessorCause::Memory,
            Transaction::Transfer | Transaction::TransferAndUpdate => ProcessorCause::Transfer,
        }
    }
}

/// Counts of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorCounts {
    /// Instructions.
    pub instructions: u64,
    /// Picoseconds, by [`ProcessorCause`].
    pub time: [u64; 9],
    /// Transactions on the bus that it waited for or began.
    pub transactions: u64,
    /// Units of work that ended.
    pub units: u64,
}

impl ProcessorCounts {
    /// Adds those of another processor.
    pub fn add(&mut self, other: &ProcessorCounts) {
        self.instructions += other.instructions;
        self.time.iter_mut().zip(other.time).for_each(|(sum, time)| *sum += time);
        self.transactions += other.transactions;
        self.units += other.units;
    }

    /// The difference to earlier ones.
    pub(super) fn since(&self, earlier: &ProcessorCounts) -> ProcessorCounts {
        ProcessorCounts {
            instructions: self.instructions - earlier.instructions,
            time: std::array::from_fn(|cause| self.time[cause] - earlier.time[cause]),
            transactions: self.transactions - earlier.transactions,
            units: self.units - earlier.units,
        }
    }

    /// All of its time in picoseconds.
    pub fn whole(&self) -> u64 {
        self.time.iter().sum()
    }
}

/// A transaction that has not ended.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    end: u64,
    transaction: Transaction,
    /// The instructions of the processor before it, and whether it was a load's.
    instructions: u64,
    is_load: bool,
}

/// A block of which some lines have not been fetched, or some accesses not been made.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBlock {
    pub block: BlockId,
    /// The next instruction line.
    pub line: u64,
    /// Where the records have the address of the next access, and its number in the block.
    pub at: usize,
    pub access: usize,
}

/// A processor.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessorState {
    pub time: u64,
    pub thread: Thread,
    pub words: Vec<u64>,
    pub at: usize,
    pub open: Option<OpenBlock>,
    /// The instruction line that was fetched last.
    pub line: Option<u64>,
    /// Instructions of the last block, which a sample has not counted: those of its accesses come before.
    pub not_sampled: u64,
    /// Nothing can be executed until another processor has executed something.
    pub is_idle: bool,
    pub counts: ProcessorCounts,
    outstanding: Vec<Outstanding>,
    executed: u64,
}

impl ProcessorState {
    pub fn is_done(&self) -> bool {
        self.open.is_none() && self.at == self.words.len()
    }

    /// Time passes.
    pub fn spend(&mut self, time: u64, cause: ProcessorCause) {
        self.time += time;
        self.counts.time[cause as usize] += time;
    }

    /// Waits until a time, if that has not come.
    pub fn wait_until(&mut self, time: u64, cause: ProcessorCause) {
        self.spend(time.saturating_sub(self.time), cause);
    }

    /// Instructions are executed; those behind loads that missed fit into a window, or wait for them.
    pub fn execute(&mut self, instructions: u64, time: u64, window: u32) {
        self.executed += instructions;
        self.counts.instructions += instructions;
        self.spend(time, ProcessorCause::Busy);
        let first_in_window = self.executed.saturating_sub(window.into());
        let mut index = 0;
        while let Some(&Outstanding { end, transaction, instructions, is_load }) = self.outstanding.get(index)
        {
            index += 1;
            if is_load && instructions < first_in_window {
                self.wait_until(end, ProcessorCause::of(transaction));
            }
        }
        self.retire();
    }

    /// Instructions are executed between the windows of a sample.
    pub fn warm(&mut self, instructions: u64, time: u64) {
        self.executed += instructions;
        self.counts.instructions += instructions;
        self.spend(time, ProcessorCause::Busy);
    }

    fn retire(&mut self) {
        let now = self.time;
        self.outstanding.retain(|one| one.end > now);
    }

    /// Waits until another transaction can begin.
    pub fn admit(&mut self, limit: u32) {
        self.retire();
        while self.outstanding.len() >= limit as usize {
            let first = self.outstanding.iter().map(|one| one.end).min().expect("there is one");
            self.wait_until(first, ProcessorCause::Outstanding);
            self.retire();
        }
    }

    /// A transaction has begun that ends at a time. A load waits for it if no instruction may be executed before.
    pub fn begin(&mut self, end: u64, transaction: Transaction, is_load: bool, window: u32) {
        self.counts.transactions += 1;
        if is_load && window == 0 {
            return self.wait_until(end, ProcessorCause::of(transaction));
        }
        self.outstanding.push(Outstanding { end, transaction, instructions: self.executed, is_load });
    }

    /// A transaction for instructions has begun, which the processor needs before it continues.
    pub fn fetch(&mut self, end: u64) {
        self.counts.transactions += 1;
        self.wait_until(end, ProcessorCause::Instructions);
    }

    /// Waits for all transactions.
    pub fn drain(&mut self, cause: ProcessorCause) {
        let last = self.outstanding.iter().map(|one| one.end).max().unwrap_or(0);
        self.wait_until(last, cause);
        self.retire();
    }
}
