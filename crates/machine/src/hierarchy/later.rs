//! What the nearest caches miss, on its way through the levels behind: later, many at once, where nobody waits for it.
//! The levels behind hear the same in the same order, and the host has their state at hand.

use std::mem::take;

use super::flow::At;
use super::near::Outcome;
use super::tags::Left;
use super::{DATA, Hierarchy, INSTRUCTIONS, Request, Served, side_of};
use crate::description::Write;

/// Ways of the nearest caches' sets, where misses can wait.
const WAYS: usize = 8;
/// Misses that wait, at most.
const MOST: usize = 256;

/// A miss of a nearest cache.
#[derive(Clone, Copy, Debug)]
struct Miss {
    place: u64,
    /// The instruction's.
    site: u32,
    /// The processor's; or [`Request::Write`], and a changed line's number in the place of an address: it had to leave.
    request: Request,
}

/// Misses that wait, the oldest first.
#[derive(Debug)]
pub struct Later {
    misses: Box<[Miss; MOST + 1]>,
    count: usize,
}

impl Default for Later {
    fn default() -> Later {
        let none = Miss { place: 0, site: 0, request: Request::Write };
        Later { misses: Box::new([none; MOST + 1]), count: 0 }
    }
}

impl Hierarchy {
    /// Whether what the nearest caches miss may wait.
    pub(super) fn can_wait(&self) -> bool {
        let is_quick = |side: usize| {
            let simple = self.simple[side]
                .filter(|simple| !simple.streams && (side == INSTRUCTIONS || simple.stores_too));
            simple.is_some() && self.near[side].is_quick(WAYS)
        };
        self.is_order_free() && is_quick(INSTRUCTIONS) && is_quick(DATA)
    }

    /// Instructions are fetched, or data read or written, within a line: what the nearest structures do happens now, and
    /// what follows has to wait for [`Hierarchy::go_on`]. False if nothing was done: it cannot wait, or enough does.
    #[inline(always)]
    pub(crate) fn go_later(&mut self, request: Request, address: u64, site: u32, now: u64) -> bool {
        if !self.may_wait || self.later.count >= MOST {
            return false;
        }
        let side = side_of(request);
        let place = address ^ self.lenses[side].space;
        let is_change = request == Request::Store && self.stores == Write::Back;
        match self.near[side].access_quickly::<WAYS>(place, is_change, now) {
            Outcome::Untranslated => return false,
            Outcome::Hit => {}
            Outcome::Missed(left) => {
                let Later { misses, count } = &mut self.later;
                misses[*count] = Miss { place, site, request };
                // Whether what left was changed cannot be guessed.
                let (left, is_changed) = left.map_or((0, false), |left| (left.key, left.is_changed));
                misses[*count + 1] = Miss { place: left, site, request: Request::Write };
                *count += 1 + usize::from(is_changed);
            }
        }
        true
    }

    /// Whether nothing waits.
    pub(crate) fn has_gone_on(&self) -> bool {
        self.later.count == 0
    }

    /// What waits goes on. The misses of the nearest caches, of instructions and of data, are counted by the site of the
    /// instruction, and returned; `note` is told of those that the caches behind miss, too.
    pub(crate) fn go_on(
        &mut self,
        nearest: [&mut [u64]; 2],
        mut note: impl FnMut(&Hierarchy, Request, u32, Served),
    ) -> [u64; 2] {
        let count = take(&mut self.later.count);
        let mut requests = [0; Request::COUNT];
        let paths =
            self.simple.map(|simple| simple.map(|simple| (simple.index, simple.behind)).unwrap_or_default());
        for number in 0..count {
            let Miss { place, site, request } = self.later.misses[number];
            let side = side_of(request);
            let (index, behind) = paths[side];
            if request == Request::Write {
                self.leave(At { side, depth: 0, index }, Left { key: place, is_changed: true });
                continue;
            }
            requests[request as usize] += 1;
            nearest[side][site as usize] += 1;
            let Some(behind) = behind else { continue };
            let cache = &mut self.caches[behind];
            self.now += 1;
            if !cache.tags.touch(place >> cache.shift, false, self.now) {
                cache.counts.misses[request as usize] += 1;
                let served = self.bring_in_behind(At { side, depth: 1, index: behind }, place, request);
                note(self, request, site, served);
            }
        }
        for request in Request::ALL {
            let (index, behind) = paths[side_of(request)];
            self.caches[index].counts.misses[request as usize] += requests[request as usize];
            if let Some(behind) = behind {
                self.caches[behind].counts.requests[request as usize] += requests[request as usize];
            }
        }
        let [fetches, loads, stores, ..] = requests;
        [fetches, loads + stores]
    }
}
