//! The most frequent miss by itself, for speed: the nearest cache does not have a line, the next one does, the
//! page is translated, and nothing has to be written. What happens is what [`super::flow`] says, which does all
//! else.

use super::{Hierarchy, Request, Served};
use crate::description::{Replacement, Write};

/// Structures of a side whose nearest cache replaces the least recently used line and has nothing beside it.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    nearest: usize,
    next: usize,
    buffer: Option<usize>,
    /// What stores do.
    stores: Write,
}

impl Hierarchy {
    /// Those of a side, if they are so.
    pub(super) fn simple(&self, side: usize) -> Option<Near> {
        let path = &self.paths[side];
        let &[nearest, next, ..] = &path.caches[..] else { return None };
        let buffer = path.buffers.first().copied();
        let cache = &self.caches[nearest];
        let is_lru = cache.tags.replacement() == Replacement::Lru;
        let is_alone =
            !cache.can_have_lines_beside() && cache.includes.is_empty() && cache.allocates_for(side);
        (is_lru && is_alone).then_some(Near { nearest, next, buffer, stores: cache.write })
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
        let mut marks = front.marks();
        let slot = nearest.tags.choose(key, marks.used);
        let is_waiting = !nearest.writes.is_empty() && nearest.writes.contains(&key);
        if marks.changed[slot] || is_waiting || nearest.tags.find(key).is_some() {
            return None;
        }
        let next_slot = next.tags.find(next_key)?;

        next.counts.requests[request as usize] += 1;
        next.touch_alone(next_slot, now, false);
        nearest.counts.misses[request as usize] += 1;
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
        Some(Served { missed: 1, level: 1, untranslated: 0 })
    }
}
