//! Deferred misses: where no timing depends on an access, L1 misses are queued and go through the next levels
//! in batches. Those see the same requests in the same order, and their state is in the host's caches
//! meanwhile.

use std::mem::take;

use super::l1::L1Outcome;
use super::request::At;
use super::tags::Evicted;
use super::{DATA, Hierarchy, INSTRUCTIONS, Request, Served, side_of};
use crate::description::WritePolicy;

/// The associativity of L1 for which misses can be deferred.
const WAYS: usize = 8;
/// The longest queue.
const QUEUE_LENGTH: usize = 256;

/// An L1 miss, or the write-back of the line that it evicted.
#[derive(Clone, Copy, Debug)]
struct Miss {
    tagged_address: u64,
    /// The instruction.
    site: u32,
    /// The processor's request; or [`Request::WritePolicy`] for the write-back of the line whose number `tagged_address` is.
    request: Request,
}

/// The queue, the oldest first.
#[derive(Debug)]
pub struct DeferredMisses {
    misses: Box<[Miss; QUEUE_LENGTH + 1]>,
    count: usize,
}

impl Default for DeferredMisses {
    fn default() -> DeferredMisses {
        let none = Miss { tagged_address: 0, site: 0, request: Request::Write };
        DeferredMisses { misses: Box::new([none; QUEUE_LENGTH + 1]), count: 0 }
    }
}

impl Hierarchy {
    /// Whether L1 misses may be deferred.
    pub(super) fn can_defer(&self) -> bool {
        let has_fast_path = |side: usize| {
            let simple = self.simple[side]
                .filter(|simple| !simple.has_stream && (side == INSTRUCTIONS || simple.allocates_on_write));
            simple.is_some() && self.l1[side].has_fast_path(WAYS)
        };
        self.is_order_free() && has_fast_path(INSTRUCTIONS) && has_fast_path(DATA)
    }

    /// Fetches, loads or stores within one line: L1 is updated now, the rest is left to [`Hierarchy::drain`].
    /// Returns false, having changed nothing, if this access cannot be deferred or the queue is full.
    #[inline(always)]
    pub(crate) fn defer(&mut self, request: Request, address: u64, site: u32, now: u64) -> bool {
        if !self.may_defer || self.deferred.count >= QUEUE_LENGTH {
            return false;
        }
        let side = side_of(request);
        let tagged_address = address ^ self.address_maps[side].asid;
        let makes_dirty = request == Request::Store && self.stores == WritePolicy::Back;
        match self.l1[side].access_fast::<WAYS>(tagged_address, makes_dirty, now) {
            L1Outcome::TlbMiss => return false,
            L1Outcome::Hit => {}
            L1Outcome::Miss(evicted) => {
                let DeferredMisses { misses, count } = &mut self.deferred;
                misses[*count] = Miss { tagged_address, site, request };
                // Branch-free: whether the evicted line was dirty is unpredictable.
                let (evicted, is_dirty) =
                    evicted.map_or((0, false), |evicted| (evicted.key, evicted.is_dirty));
                misses[*count + 1] = Miss { tagged_address: evicted, site, request: Request::Write };
                *count += 1 + usize::from(is_dirty);
            }
        }
        true
    }

    /// Whether the queue is empty.
    pub(crate) fn is_drained(&self) -> bool {
        self.deferred.count == 0
    }

    /// Sends the queue through the next levels. L1's misses, of instructions and of data, are counted by site
    /// in `l1_misses`, and returned, both by the kind of request; `note` is called for those that the next level misses too.
    pub(crate) fn drain(
        &mut self,
        l1_misses: [&mut [u64]; Request::OF_PROCESSOR],
        mut note: impl FnMut(&Hierarchy, Request, u32, Served),
    ) -> [u64; Request::OF_PROCESSOR] {
        let count = take(&mut self.deferred.count);
        let mut requests = [0; Request::COUNT];
        let paths = self
            .simple
            .map(|simple| simple.map(|simple| (simple.index, simple.next_level)).unwrap_or_default());
        for number in 0..count {
            let Miss { tagged_address, site, request } = self.deferred.misses[number];
            let side = side_of(request);
            let (index, next_level) = paths[side];
            self.site = site;
            if request == Request::Write {
                self.evict(At { side, depth: 0, index }, Evicted { key: tagged_address, is_dirty: true });
                continue;
            }
            requests[request as usize] += 1;
            l1_misses[request as usize][site as usize] += 1;
            let Some(next_level) = next_level else { continue };
            let cache = &mut self.caches[next_level];
            self.now += 1;
            if !cache.tags.touch(tagged_address >> cache.shift, false, self.now) {
                cache.counts.misses[request as usize] += 1;
                let served =
                    self.allocate_at(At { side, depth: 1, index: next_level }, tagged_address, request);
                note(self, request, site, served);
            }
        }
        for request in Request::ALL {
            let (index, next_level) = paths[side_of(request)];
            self.caches[index].counts.misses[request as usize] += requests[request as usize];
            if let Some(next_level) = next_level {
                self.caches[next_level].counts.requests[request as usize] += requests[request as usize];
            }
        }
        let [fetches, loads, stores, ..] = requests;
        [fetches, loads, stores]
    }
}
