//! Words that compiled code of a running program and the hierarchy share, in addition to those in [`L1`](super::L1).

use events::{FilterTable, HitFilter, UnfilteredAccess, Words};

use super::{DATA, Hierarchy, INSTRUCTIONS};
use crate::description::WritePolicy;

/// The shared words.
#[derive(Debug)]
pub struct Shared {
    now: Words,
    /// The address of the consumer that compiled code calls.
    consumer: Words,
    records: Words,
}

impl Shared {
    /// With the words of each side's hit filter, cache entries and times; the caches have these numbers of slots.
    pub fn new([code, data]: [usize; 2]) -> (Shared, [[Words; 3]; 2]) {
        const FILTER_ENTRIES: usize = HitFilter::LINES;
        let [filter, known_data, entries, entries_data, times, times_data, now, consumer, records] =
            Words::together([FILTER_ENTRIES, FILTER_ENTRIES, code, data, code, data, 1, 1, HitFilter::ROOM]);
        let words = [[filter, entries, times], [known_data, entries_data, times_data]];
        (Shared { now, consumer, records }, words)
    }
}

impl Hierarchy {
    /// The hit filters for compiled code, which calls `on_unfiltered` for each access that
    /// they do not hold. None for write-through caches: each store has more to do there than to record a
    /// time, and calls for each take longer than records.
    pub(crate) fn hit_filter(
        &self,
        on_unfiltered: unsafe extern "C" fn(consumer: *mut u8, access: u64),
    ) -> Option<HitFilter> {
        let Shared { now, consumer, records } = self.shared.as_ref().filter(|_| self.is_order_free())?;
        let [code, data] = [INSTRUCTIONS, DATA].map(|side| self.l1[side].side());
        let dirty = match self.stores {
            WritePolicy::Ignored => None,
            WritePolicy::Back => Some(self.l1[DATA].entries()),
            WritePolicy::Through => return None,
        };
        let (now, consumer, keep) = (now.address(), consumer.address(), now.keep());
        let records = records.address();
        let table = FilterTable { records, now, code, data, dirty, on_unfiltered, consumer };
        // SAFETY: `Shared::new` allocates all of these words together, in arrays of these lengths, and this thread's
        // hierarchy reads or writes them only where it adopts and publishes the time.
        Some(unsafe { HitFilter::new(table, keep) })
    }

    /// Adopts the time that compiled code has come to, `before` its next use.
    #[inline(always)]
    pub(crate) fn adopt_time(&mut self, before: u64) {
        if let Some(shared) = &self.shared {
            self.now = self.now.max(shared.now[0] + before);
        }
    }

    /// Publishes the time to compiled code, and the consumer that it calls.
    #[inline(always)]
    pub(crate) fn publish_time(&mut self, consumer: *mut u8) {
        if let Some(shared) = &mut self.shared {
            shared.now[0] = self.now;
            shared.consumer[0] = consumer.expose_provenance() as u64;
        }
    }

    /// The address of an access that compiled code reports, and its time.
    #[inline(always)]
    pub(crate) fn reported_access(&self, what: UnfilteredAccess) -> (u64, u64) {
        let now = self.shared.as_ref().map_or(0, |shared| shared.now[0]);
        (self.recorded_word(what.index), now + u64::from(what.number))
    }

    /// A word of the record of the current block.
    #[inline(always)]
    pub(crate) fn recorded_word(&self, index: u16) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.records[usize::from(index)])
    }
}
