//! What compiled code of a program that runs and the hierarchy share, beside what is in [`Near`](super::Near).

use trace::{Lookaside, Unusual, Words};

use super::{DATA, Hierarchy, INSTRUCTIONS};
use crate::description::Write;

/// Words of both.
#[derive(Debug)]
pub struct Shared {
    now: Words,
    /// The address of who hears the program.
    consumer: Words,
    records: Words,
}

impl Shared {
    /// And for each side, with so many slots, the words of what is known, of entries, and of times.
    pub fn new([code, data]: [usize; 2]) -> (Shared, [[Words; 3]; 2]) {
        const KNOWN: usize = Lookaside::KNOWN;
        let [known, known_data, entries, entries_data, times, times_data, now, consumer, records] =
            Words::together([KNOWN, KNOWN, code, data, code, data, 1, 1, Lookaside::ROOM]);
        let words = [[known, entries, times], [known_data, entries_data, times_data]];
        (Shared { now, consumer, records }, words)
    }
}

impl Hierarchy {
    /// What compiled code needs to see for itself what is known. `unusual` is told of the rest. Nothing where stores are
    /// written through: each has more to do than to note a time, and telling one by one takes longer than records.
    pub(crate) fn lookaside(
        &self,
        unusual: unsafe extern "C" fn(consumer: *mut u8, what: u64),
    ) -> Option<Lookaside> {
        let Shared { now, consumer, records } = self.shared.as_ref().filter(|_| self.is_order_free())?;
        let [code, data] = [INSTRUCTIONS, DATA].map(|side| self.near[side].side());
        let marks = match self.stores {
            Write::Ignored => None,
            Write::Back => Some(self.near[DATA].entries()),
            Write::Through => return None,
        };
        let (now, consumer, keep) = (now.address(), consumer.address(), now.keep());
        Some(Lookaside { records: records.address(), now, code, data, marks, unusual, consumer, keep })
    }

    /// Goes on from the time that compiled code has come to, `before` its next use.
    #[inline(always)]
    pub(crate) fn take_time(&mut self, before: u64) {
        if let Some(shared) = &self.shared {
            self.now = self.now.max(shared.now[0] + before);
        }
    }

    /// Lets compiled code go on from the time, and tell a consumer.
    #[inline(always)]
    pub(crate) fn give_time(&mut self, consumer: *mut u8) {
        if let Some(shared) = &mut self.shared {
            shared.now[0] = self.now;
            shared.consumer[0] = consumer.expose_provenance() as u64;
        }
    }

    /// The address of a use that compiled code tells, and its time.
    #[inline(always)]
    pub(crate) fn told(&self, what: Unusual) -> (u64, u64) {
        let now = self.shared.as_ref().map_or(0, |shared| shared.now[0]);
        (self.recorded(what.index), now + u64::from(what.number))
    }

    /// A word of the record of the block that is executed.
    #[inline(always)]
    pub(crate) fn recorded(&self, index: u16) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.records[usize::from(index)])
    }
}
