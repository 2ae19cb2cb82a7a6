//! The stores that a load may find in the store queue.

/// A store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueuedStore {
    pub address: u64,
    pub bytes: u8,
    /// When its address is known.
    pub known: u64,
    /// When its data are there.
    pub data: u64,
    /// When it is written to L1: later stores are written later.
    pub written: u64,
}

/// The last stores in program order, and a table that says which of them may have stored at an address.
pub(super) struct StoreQueue {
    /// At a store's number: as many as the queue has entries.
    stores: Vec<QueuedStore>,
    /// The number of stores so far.
    count: u64,
    /// By the low bits of an aligned quadword's address: the number, from 1, of the last store to it, or to another one with
    /// the same bits.
    last: Vec<u64>,
}

const QUADWORDS: usize = 1 << 10;

impl StoreQueue {
    pub fn new(entries: u32) -> StoreQueue {
        StoreQueue {
            stores: vec![QueuedStore::default(); entries as usize],
            count: 0,
            last: vec![0; QUADWORDS],
        }
    }

    fn quadwords(address: u64, bytes: u8) -> [usize; 2] {
        let last = address.wrapping_add(u64::from(bytes.max(1)) - 1);
        [address, last].map(|address| (address >> 3) as usize % QUADWORDS)
    }

    /// Adds a store, the youngest.
    pub fn add(&mut self, store: QueuedStore) {
        let slot = self.count as usize % self.stores.len();
        self.stores[slot] = store;
        self.count += 1;
        for quadword in StoreQueue::quadwords(store.address, store.bytes) {
            self.last[quadword] = self.count;
        }
    }

    /// The youngest store that overlaps a load's bytes, if it is not written in this cycle.
    #[inline(always)]
    pub fn find(&self, address: u64, bytes: u8, cycle: u64) -> Option<QueuedStore> {
        let last = StoreQueue::quadwords(address, bytes).map(|quadword| self.last[quadword]);
        let last = last[0].max(last[1]);
        if last == 0 || self.count - last >= self.stores.len() as u64 {
            return None;
        }
        if self.store(last).written <= cycle { None } else { self.search(last, address, bytes, cycle) }
    }

    fn store(&self, number: u64) -> QueuedStore {
        self.stores[(number - 1) as usize % self.stores.len()]
    }

    fn search(&self, last: u64, address: u64, bytes: u8, cycle: u64) -> Option<QueuedStore> {
        let oldest = self.count.saturating_sub(self.stores.len() as u64);
        let stores = (oldest + 1..=last).rev().map(|number| self.store(number));
        stores.take_while(|store| store.written > cycle).find(|store| store.overlaps(address, bytes))
    }
}

impl QueuedStore {
    fn overlaps(&self, address: u64, bytes: u8) -> bool {
        address.wrapping_sub(self.address) < self.bytes.into()
            || self.address.wrapping_sub(address) < bytes.into()
    }

    /// Whether it stores all of a load's bytes.
    pub fn contains(&self, address: u64, bytes: u8) -> bool {
        let offset = address.wrapping_sub(self.address);
        offset < self.bytes.into() && offset + u64::from(bytes) <= self.bytes.into()
    }
}
