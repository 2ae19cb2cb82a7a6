//! Simulates the fetches, loads and stores of records.

use std::mem::take;

use events::UnfilteredAccess;
use events::record::Event;

use super::MissTally;
use crate::memory::block_template::{BlockTemplate, BlockTemplates, TemplateAccess};
use crate::memory::hierarchy::AddressMap;
use crate::{Hierarchy, Request, WritePolicy};

/// The parts of [`Caches`](super::Caches) that records change.
pub struct CacheSimulation<'a> {
    pub templates: &'a BlockTemplates,
    pub hierarchy: &'a mut Hierarchy,
    pub tally: &'a mut MissTally,
}

impl CacheSimulation<'_> {
    /// Simulates records, where `STORES` is the write policy of L1.
    pub fn run<const STORES: u8>(&mut self, records: &[u64]) {
        let templates = self.templates;
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
                    self.drain();
                    self.tally.executed(take(&mut instructions), take(&mut accesses));
                    self.tally.mark(mark, self.hierarchy);
                    continue;
                }
                Event::Access(_) => break,
            };
            let Some(count) = templates.accesses_of(block) else { break };
            let Some((addresses, rest)) = rest.split_at_checked(count) else { break };
            words = rest;
            let Some(template) = templates.get(block) else { break };
            template.executions.update(|times| times + 1);
            instructions += u64::from(template.instructions);
            accesses += count as u64;
            // Mostly L1 has all instruction lines of the block. Then its accesses are simulated without regard to lines.
            let mut fetched = 0;
            while is_order_free && fetched < template.lines {
                let address = templates.line_address(template, fetched);
                now += 1;
                if !self.hierarchy.fetch_fast(address_maps[0], address, now) {
                    // Accesses may come before lines after the first.
                    if fetched > 0 {
                        break;
                    }
                    now = self.fetch_miss(template.first_site, address, now);
                }
                fetched += 1;
            }
            now = if fetched == template.lines {
                self.access::<STORES>(
                    address_maps[1],
                    template.first_site,
                    templates.accesses(template),
                    addresses,
                    now,
                )
            } else {
                self.fetch_and_access::<STORES>(template, fetched, addresses, now)
            };
        }
        self.tally.executed(instructions, accesses);
        self.hierarchy.set_now(now);
        self.drain();
    }

    /// Sends deferred misses through the next levels.
    #[inline(always)]
    pub fn drain(&mut self) {
        if !self.hierarchy.is_drained() {
            self.drain_deferred();
        }
    }

    #[inline(never)]
    fn drain_deferred(&mut self) {
        let (hierarchy, sites) = (&mut *self.hierarchy, self.templates.sites());
        let requests = [Request::Fetch, Request::Load, Request::Store];
        let l1_caches = requests.map(|request| (hierarchy.caches_of(request)[0], request));
        let mut counts = l1_caches.map(|(cache, request)| self.tally.lend(cache, request, sites));
        let misses = hierarchy.drain(
            counts.each_mut().map(|counts| &mut counts[..]),
            |hierarchy, request, site, served| {
                self.tally.count_misses_from(1, hierarchy, request, site, sites, served);
            },
        );
        for (((cache, request), counts), misses) in l1_caches.into_iter().zip(counts).zip(misses) {
            self.tally.take_back(cache, request, counts, misses);
        }
    }

    /// Simulates L1 for an access that compiled code reports, at the time that compiled code has come to, and defers the
    /// rest. Returns false, having changed nothing, if the access cannot be deferred.
    #[inline(always)]
    pub fn try_defer_reported(&mut self, reported: UnfilteredAccess) -> bool {
        let (address, now) = self.hierarchy.reported_access(reported);
        let request = match (reported.index, reported.is_store) {
            (0, _) => Request::Fetch,
            (_, false) => Request::Load,
            (_, true) => Request::Store,
        };
        !self.hierarchy.splits(address, address.wrapping_add(reported.more.into()))
            && self.hierarchy.defer(request, address, reported.instruction, now)
    }

    /// Simulates an access that compiled code reports.
    #[inline(always)]
    pub fn reported_access<const STORES: u8>(&mut self, reported: UnfilteredAccess, address: u64) {
        let now = self.hierarchy.now();
        let now = if reported.index == 0 {
            self.miss(Request::Fetch, reported.instruction, address, now + 1)
        } else {
            let access = TemplateAccess::new(0, reported.more, reported.is_store);
            self.access::<STORES>(
                self.hierarchy.address_maps()[1],
                reported.instruction,
                &[access],
                &[address],
                now,
            )
        };
        self.hierarchy.set_now(now);
    }

    /// Simulates the fetches and accesses of a block in program order; `fetched` lines are fetched already.
    #[cold]
    #[inline(never)]
    fn fetch_and_access<const STORES: u8>(
        &mut self,
        template: &BlockTemplate,
        fetched: u32,
        addresses: &[u64],
        mut now: u64,
    ) -> u64 {
        let address_maps = self.hierarchy.address_maps();
        let mut accesses = self.templates.accesses(template);
        let mut addresses = addresses;
        for (number, line) in (0..).zip(self.templates.lines(template.own_lines())) {
            now += 1;
            if number >= fetched && !self.hierarchy.fetch_fast(address_maps[0], line.address, now) {
                now = self.fetch_miss(line.site, line.address, now);
            }
            let (of_line, others) = accesses.split_at(line.accesses as usize);
            let (own_addresses, other_addresses) = addresses.split_at(of_line.len());
            now = self.access::<STORES>(address_maps[1], template.first_site, of_line, own_addresses, now);
            (accesses, addresses) = (others, other_addresses);
        }
        now
    }

    /// A fetch that the hit filter does not serve.
    #[cold]
    #[inline(never)]
    fn fetch_miss(&mut self, site: u32, address: u64, now: u64) -> u64 {
        self.miss(Request::Fetch, site, address, now)
    }

    /// An access that the hit filter does not serve: deferred if possible. Returns the time after it.
    #[inline(always)]
    fn miss(&mut self, request: Request, site: u32, address: u64, now: u64) -> u64 {
        match self.hierarchy.defer(request, address, site, now) {
            true => now,
            false => self.miss_now(request, site, address, now),
        }
    }

    /// The same through all levels at once, after all deferred misses.
    #[inline(always)]
    fn miss_now(&mut self, request: Request, site: u32, address: u64, now: u64) -> u64 {
        self.hierarchy.set_now(now);
        self.drain();
        self.hierarchy.set_site(site);
        let served = match request {
            Request::Fetch => self.hierarchy.fetch_slow(address),
            _ => self.hierarchy.data_slow(address, request == Request::Store),
        };
        self.tally.count_misses(self.hierarchy, request, site, self.templates.sites(), served);
        self.hierarchy.now()
    }

    /// Simulates consecutive accesses of a block to data; `first_site` is the site of its first instruction.
    #[inline(always)]
    fn access<const STORES: u8>(
        &mut self,
        address_map: AddressMap,
        first_site: u32,
        accesses: &[TemplateAccess],
        addresses: &[u64],
        mut now: u64,
    ) -> u64 {
        for (&access, &address) in accesses.iter().zip(addresses) {
            now += 1;
            self.store_through::<STORES>(first_site, access);
            if !self.hierarchy.data_fast(STORES, address_map, address, access.is_store(), now) {
                now = self.data_miss(first_site, access, address, now);
            }
            let last = address.wrapping_add(access.last_byte());
            if self.hierarchy.splits(address, last) {
                now = self.access_second_line::<STORES>(address_map, first_site, access, last, now);
            }
        }
        now
    }

    /// Stores that the hit filter serves reach the next level where L1 writes them through: it has to know their site.
    #[inline(always)]
    fn store_through<const STORES: u8>(&mut self, first_site: u32, access: TemplateAccess) {
        if STORES == WritePolicy::Through as u8 && access.is_store() {
            self.hierarchy.set_site(first_site + access.position());
        }
    }

    /// An access to data that the hit filter does not serve.
    #[cold]
    #[inline(never)]
    fn data_miss(&mut self, first_site: u32, access: TemplateAccess, address: u64, now: u64) -> u64 {
        let request = if access.is_store() { Request::Store } else { Request::Load };
        self.miss(request, first_site + access.position(), address, now)
    }

    /// The part of an access that crosses into the next line.
    #[cold]
    #[inline(never)]
    fn access_second_line<const STORES: u8>(
        &mut self,
        address_map: AddressMap,
        first_site: u32,
        access: TemplateAccess,
        last: u64,
        now: u64,
    ) -> u64 {
        let now = now + 1;
        self.store_through::<STORES>(first_site, access);
        let is_hit = self.hierarchy.data_fast(STORES, address_map, last, access.is_store(), now);
        if is_hit { now } else { self.data_miss(first_site, access, last, now) }
    }
}
