//! Records go through the hierarchy.

use trace::record::Event;

use super::Tally;
use crate::script::{Access, Script, Scripts};
use crate::{Hierarchy, Request, Served};

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
        let mut words = records;
        while let Some((&word, rest)) = words.split_first() {
            words = rest;
            let block = match Event::new(word) {
                Event::Block(block) => block,
                Event::Mark(mark) => {
                    self.tally.mark(mark);
                    continue;
                }
                Event::Access(_) => break,
            };
            let Some(script) = scripts.get(block) else { break };
            let Some((addresses, rest)) = rest.split_at_checked(script.accesses as usize) else { break };
            words = rest;
            script.executions.update(|times| times + 1);
            self.tally.instructions += u64::from(script.instructions);
            self.tally.accesses += u64::from(script.accesses);
            self.execute::<STORES>(script, addresses);
        }
    }

    /// A block was executed. Mostly the nearest cache has all its instructions; then its accesses follow each
    /// other without looking at lines.
    #[inline(always)]
    fn execute<const STORES: u8>(&mut self, script: &Script, addresses: &[u64]) {
        let mut fetched = 0;
        if self.hierarchy.is_order_free() {
            while fetched < script.lines {
                let address = self.scripts.line_address(script, fetched);
                if !self.hierarchy.fetch_near(address) {
                    break;
                }
                fetched += 1;
            }
        }
        if fetched == script.lines {
            let accesses = self.scripts.accesses(script);
            self.access::<STORES>(script.first_site, accesses, addresses);
        } else {
            self.fetch_and_access::<STORES>(script, fetched, addresses);
        }
    }

    /// The lines and accesses of a block in their order, where the first lines are fetched already.
    #[cold]
    #[inline(never)]
    fn fetch_and_access<const STORES: u8>(&mut self, script: &Script, fetched: u32, addresses: &[u64]) {
        let mut accesses = self.scripts.accesses(script);
        let mut addresses = addresses;
        for (number, line) in (0..).zip(self.scripts.lines(script.own_lines())) {
            // The first one that is not fetched yet was not there.
            let is_absent = number == fetched && self.hierarchy.is_order_free();
            if number >= fetched && (is_absent || !self.hierarchy.fetch_near(line.address)) {
                let served = self.hierarchy.fetch_far(line.address);
                self.note(Request::Fetch, line.site, served);
            }
            let (of_line, others) = accesses.split_at(line.accesses as usize);
            let (where_to, other_addresses) = addresses.split_at(of_line.len());
            self.access::<STORES>(script.first_site, of_line, where_to);
            (accesses, addresses) = (others, other_addresses);
        }
    }

    /// Accesses to data, one behind the other, of a block whose instructions have sites from this one on.
    #[inline(always)]
    fn access<const STORES: u8>(&mut self, first_site: u32, accesses: &[Access], addresses: &[u64]) {
        for (&does, &address) in accesses.iter().zip(addresses) {
            if !self.hierarchy.data_near::<STORES>(address, does.is_store()) {
                self.access_far(first_site, does, address);
            }
            // What is aligned crosses nothing.
            if address & does.more() != 0 {
                self.access_second::<STORES>(first_site, does, address);
            }
        }
    }

    /// An access to what is not in the nearest cache.
    #[cold]
    #[inline(never)]
    fn access_far(&mut self, first_site: u32, does: Access, address: u64) {
        let served = self.hierarchy.data_far(address, does.is_store());
        let request = if does.is_store() { Request::Store } else { Request::Load };
        self.note(request, first_site + does.position(), served);
    }

    /// The part of an unaligned access behind the end of a line, if it is to be asked for.
    #[cold]
    #[inline(never)]
    fn access_second<const STORES: u8>(&mut self, first_site: u32, does: Access, address: u64) {
        let last = address.wrapping_add(does.more());
        if self.hierarchy.crosses(address, last) && !self.hierarchy.data_near::<STORES>(last, does.is_store())
        {
            self.access_far(first_site, does, last);
        }
    }

    #[inline]
    fn note(&mut self, request: Request, site: u32, served: Served) {
        self.tally.note(self.hierarchy, request, site, self.scripts.sites(), served);
    }
}
