//! The most frequent miss by itself, for speed: the nearest cache does not have a line, the next one does, or it
//! was fetched ahead, the page is translated, and nothing has to be written. What happens is what [`super::flow`]
//! says, which does all else.

use super::{Hierarchy, Request, Served};
use crate::description::{Prefetch, Replacement, Write};

/// Structures of a side whose nearest cache replaces the least recently used line and has nothing beside it but
/// what it fetches ahead.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    nearest: usize,
    next: usize,
    buffer: Option<usize>,
    /// What stores do.
    stores: Write,
    /// How many lines are fetched ahead.
    stream: u32,
}

impl Hierarchy {
    /// Those of a side, if they are so.
    pub(super) fn simple(&self, side: usize) -> Option<Near> {
        let path = &self.paths[side];
        let &[nearest, next, ..] = &path.caches[..] else { return None };
        let buffer = path.buffers.first().copied();
        let cache = &self.caches[nearest];
        let is_lru = cache.tags.replacement() == Replacement::Lru;
        // What is fetched ahead may take lines from a cache, but not the only slot that a line can be in.
        let stream = match cache.prefetch {
            None => 0,
            Some(Prefetch::Stream(lines)) if cache.tags.is_direct() => lines,
            Some(_) => return None,
        };
        let is_alone = !cache.can_have_victims() && cache.includes.is_empty() && cache.allocates_for(side);
        (is_lru && is_alone).then_some(Near { nearest, next, buffer, stores: cache.write, stream })
    }

    /// Serves an access in the way that is described above, or does nothing.
    #[inline(always)]
    pub(super) fn go_near(
        &mut self,
        now: u64,
        side: usize,
        address: u64,
        request: Request,
    ) -> Option<Served> {
        let near = self.near[side]?;
        let is_change = request == Request::Store && near.stores == Write::Back;
        if request == Request::Store && near.stores == Write::Through {
            return None;
        }
        let translated = match near.buffer {
            Some(buffer) => Some((buffer, self.buffers[buffer].known(address)?)),
            None => None,
        };
        let [nearest, next] = self.caches.get_disjoint_mut([near.nearest, near.next]).ok()?;
        let front = &mut self.fronts[side];
        let (key, next_key) = (address >> nearest.shift, address >> next.shift);
        let marks = front.marks();
        let slot = nearest.tags.choose(key, marks.used);
        let is_waiting = !nearest.writes.is_empty() && nearest.writes.contains(&key);
        if marks.changed[slot] || is_waiting || nearest.tags.find(key).is_some() {
            return None;
        }
        let taken = if near.stream > 0 { nearest.take_from_stream(key) } else { None };
        let next_slot = if taken.is_none() { Some(next.tags.find(next_key)?) } else { None };
        nearest.counts.misses[request as usize] += 1;
        if let Some(next_slot) = next_slot {
            next.counts.requests[request as usize] += 1;
            next.touch_alone(next_slot, now, false);
        }
        if near.stream > 0 {
            self.now = now;
            self.go_ahead(side, 0, address, taken, near.stream);
        }
        let nearest = &mut self.caches[near.nearest];
        let mut marks = self.fronts[side].marks();
        let left = nearest.tags.replace(slot, key, &mut marks);
        if let Some((buffer, slot)) = translated {
            let buffer = &mut self.buffers[buffer];
            buffer.touch_slot(slot, address >> buffer.shift, now, Some(&mut self.fronts[side]));
        }
        // The page of what left was used when that was, before it is forgotten.
        let left_use = self.fronts[side].forget(left.key);
        let (tags, mut marks) = self.caches[near.nearest].marked(&mut self.fronts);
        tags.touch(slot, now, is_change, &mut marks);
        let before = self.fronts[side].learn(key, slot);
        self.note_page(side, left_use);
        self.note_page(side, before);
        Some(Served { missed: 1, level: u8::from(taken.is_none()), untranslated: 0 })
    }
}
