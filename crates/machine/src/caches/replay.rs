//! Records go through the hierarchy.

use std::mem::take;

use trace::Unusual;
use trace::record::Event;

use super::Tally;
use crate::hierarchy::AddressMap;
use crate::script::{Access, Script, Scripts};
use crate::{Hierarchy, Request};

/// What works on records.
pub struct Replay<'a> {
    pub scripts: &'a Scripts,
    pub hierarchy: &'a mut Hierarchy,
    pub tally: &'a mut Tally,
}

impl Replay<'_> {
    /// Executions and marks, where stores do what `STORES` says.
    pub fn run<const STORES: u8>(&mut self, records: &[u64]) {
        let scripts = self.scripts;
        let address_maps = self.hierarchy.address_maps();
        let is_order_free = self.hierarchy.is_order_free();
        let mut words = records;
        let mut now = self.hierarchy.now();
        let (mut instructions, mut accesses) = (0, 0);
        while let Some((&word, rest)) = words.split_first() {
            words = rest;
            let block = match Event::new(word) {
                Event::Block(block) => block,
                Event::Mark(mark) => {
                    self.go_on();
                    self.tally.executed(take(&mut instructions), take(&mut accesses));
                    self.tally.mark(mark);
                    continue;
                }
                Event::Access(_) => break,
            };
            let Some(count) = scripts.accesses_of(block) else { break };
            let Some((addresses, rest)) = rest.split_at_checked(count) else { break };
            words = rest;
            let Some(script) = scripts.get(block) else { break };
            script.executions.update(|times| times + 1);
            instructions += u64::from(script.instructions);
            accesses += count as u64;
            // Mostly the nearest cache has all its instructions; then its accesses follow each other without looking
            // at lines.
            let mut fetched = 0;
            while is_order_free && fetched < script.lines {
                let address = scripts.line_address(script, fetched);
                now += 1;
                if !self.hierarchy.fetch_fast(address_maps[0], address, now) {
                    // Accesses come before other lines than the first.
                    if fetched > 0 {
                        break;
                    }
                    now = self.fetch_far(script.first_site, address, now);
                }
                fetched += 1;
            }
            now = if fetched == script.lines {
                self.access::<STORES>(
                    address_maps[1],
                    script.first_site,
                    scripts.accesses(script),
                    addresses,
                    now,
                )
            } else {
                self.fetch_and_access::<STORES>(script, fetched, addresses, now)
            };
        }
        self.tally.executed(instructions, accesses);
        self.hierarchy.set_now(now);
        self.go_on();
    }

    /// What waits goes through the levels behind the nearest.
    #[inline(always)]
    pub fn go_on(&mut self) {
        if !self.hierarchy.is_drained() {
            self.go_on_behind();
        }
    }

    #[inline(never)]
    fn go_on_behind(&mut self) {
        let (hierarchy, sites) = (&mut *self.hierarchy, self.scripts.sites());
        let nearest = [Request::Fetch, Request::Load].map(|request| hierarchy.caches_of(request)[0]);
        let mut counts = nearest.map(|cache| self.tally.lend(cache, sites));
        let misses = hierarchy.drain(
            counts.each_mut().map(|counts| &mut counts[..]),
            |hierarchy, request, site, served| {
                self.tally.note_from(1, hierarchy, request, site, sites, served);
            },
        );
        for ((cache, counts), misses) in nearest.into_iter().zip(counts).zip(misses) {
            self.tally.take_back(cache, counts, misses);
        }
    }

    /// A use of memory that is not known, while compiled code has the time, if what the nearest structures do is all
    /// that need be done now; false if it is not, and nothing was done.
    #[inline(always)]
    pub fn unusual_later(&mut self, what: Unusual) -> bool {
        let (address, now) = self.hierarchy.reported_access(what);
        let request = match (what.index, what.is_store) {
            (0, _) => Request::Fetch,
            (_, false) => Request::Load,
            (_, true) => Request::Store,
        };
        !self.hierarchy.splits(address, address.wrapping_add(what.more.into()))
            && self.hierarchy.defer(request, address, what.instruction, now)
    }

    /// A use of memory at an address that is not known, or perhaps more than one.
    #[inline(always)]
    pub fn unusual<const STORES: u8>(&mut self, what: Unusual, address: u64) {
        let now = self.hierarchy.now();
        let now = if what.index == 0 {
            self.far(Request::Fetch, what.instruction, address, now + 1)
        } else {
            let access = Access::new(0, what.more, what.is_store);
            self.access::<STORES>(
                self.hierarchy.address_maps()[1],
                what.instruction,
                &[access],
                &[address],
                now,
            )
        };
        self.hierarchy.set_now(now);
    }

    /// The lines and accesses of a block in their order, where the first lines are fetched already.
    #[cold]
    #[inline(never)]
    fn fetch_and_access<const STORES: u8>(
        &mut self,
        script: &Script,
        fetched: u32,
        addresses: &[u64],
        mut now: u64,
    ) -> u64 {
        let address_maps = self.hierarchy.address_maps();
        let mut accesses = self.scripts.accesses(script);
        let mut addresses = addresses;
        for (number, line) in (0..).zip(self.scripts.lines(script.own_lines())) {
            now += 1;
            if number >= fetched && !self.hierarchy.fetch_fast(address_maps[0], line.address, now) {
                now = self.fetch_far(line.site, line.address, now);
            }
            let (of_line, others) = accesses.split_at(line.accesses as usize);
            let (where_to, other_addresses) = addresses.split_at(of_line.len());
            now = self.access::<STORES>(address_maps[1], script.first_site, of_line, where_to, now);
            (accesses, addresses) = (others, other_addresses);
        }
        now
    }

    /// A fetch of what is not in the nearest cache.
    #[cold]
    #[inline(never)]
    fn fetch_far(&mut self, site: u32, address: u64, now: u64) -> u64 {
        self.far(Request::Fetch, site, address, now)
    }

    /// What the nearest structures do not have is asked for. Returns the time then.
    #[inline(always)]
    fn far(&mut self, request: Request, site: u32, address: u64, now: u64) -> u64 {
        match self.hierarchy.defer(request, address, site, now) {
            true => now,
            false => self.go_now(request, site, address, now),
        }
    }

    /// The same through all levels now, behind all that waits.
    #[inline(always)]
    fn go_now(&mut self, request: Request, site: u32, address: u64, now: u64) -> u64 {
        self.hierarchy.set_now(now);
        self.go_on();
        let served = match request {
            Request::Fetch => self.hierarchy.fetch_slow(address),
            _ => self.hierarchy.data_slow(address, request == Request::Store),
        };
        self.tally.note(self.hierarchy, request, site, self.scripts.sites(), served);
        self.hierarchy.now()
    }

    /// Accesses to data, one behind the other, of a block whose instructions have sites from this one on.
    #[inline(always)]
    fn access<const STORES: u8>(
        &mut self,
        lens: AddressMap,
        first_site: u32,
        accesses: &[Access],
        addresses: &[u64],
        mut now: u64,
    ) -> u64 {
        for (&does, &address) in accesses.iter().zip(addresses) {
            now += 1;
            if !self.hierarchy.data_fast(STORES, lens, address, does.is_store(), now) {
                now = self.access_far(first_site, does, address, now);
            }
            let last = address.wrapping_add(does.more());
            if self.hierarchy.splits(address, last) {
                now = self.access_second::<STORES>(lens, first_site, does, last, now);
            }
        }
        now
    }

    /// An access to what is not in the nearest cache.
    #[cold]
    #[inline(never)]
    fn access_far(&mut self, first_site: u32, does: Access, address: u64, now: u64) -> u64 {
        let request = if does.is_store() { Request::Store } else { Request::Load };
        self.far(request, first_site + does.position(), address, now)
    }

    /// The part of an access that is in another line.
    #[cold]
    #[inline(never)]
    fn access_second<const STORES: u8>(
        &mut self,
        lens: AddressMap,
        first_site: u32,
        does: Access,
        last: u64,
        now: u64,
    ) -> u64 {
        let now = now + 1;
        let is_near = self.hierarchy.data_fast(STORES, lens, last, does.is_store(), now);
        if is_near { now } else { self.access_far(first_site, does, last, now) }
    }
}
