//! The reference model: every instruction is considered in every cycle.

use std::collections::{BTreeMap, HashSet};

use pathlength_machine::{ExecutionOrder, Machine, OutOfOrder, UnknownStores};

use super::memory::{LINE, serve};
use super::paths::{Dynamic, Redirect};

/// A number for each fetched instruction: those of wrong paths included, younger ones have larger ones.
type Sequence = u64;

struct Entry {
    sequence: Sequence,
    /// The index of the instruction in program order; of a wrong path, that of its branch.
    index: usize,
    /// The number of the instruction in its wrong path.
    wrong: Option<usize>,
    what: Dynamic,
    fetched: u64,
    dispatched: Option<u64>,
    issued: Option<u64>,
    must_wait: bool,
    /// The older entries that write its sources, and a store's data.
    producers: [Option<Sequence>; 3],
    /// When memory is asked, once it is issued; and when its line was requested or found.
    translated: Option<u64>,
    is_waiting: bool,
    /// If software has to fill the TLB for its access: the cycle in which it would complete if it had hit.
    traps: Option<u64>,
    /// The store that supplies a load, or that it conflicts with.
    supplier: Option<(Sequence, bool)>,
    conflict: Option<Sequence>,
    completed: Option<u64>,
    known: Option<u64>,
    data: Option<u64>,
    retired: Option<u64>,
    arrives: Option<u64>,
    written: Option<u64>,
}

struct LineRequest {
    sequence: Sequence,
    line: u64,
    requested: u64,
    arrives: u64,
    level: u8,
}

pub struct Ticks<'a> {
    core: &'a OutOfOrder,
    program: &'a [Dynamic],
    /// Latencies beyond L1's, of instructions and of data.
    beyond: [Vec<u64>; 2],
    /// The latencies of the first caches, of instructions and of data.
    hits: [u64; 2],
    memory_level: u8,
    /// The instructions whose accesses have trapped, so that software has filled the TLB.
    trapped: HashSet<usize>,
    /// An instruction is fetched whose line software translates: the cycle in which it would be dispatched.
    code_trap: Option<u64>,
    now: u64,
    entries: Vec<Entry>,
    next_sequence: Sequence,
    requests: Vec<LineRequest>,
    /// Instruction lines: who requested them, the line, and the cycle in which they arrive.
    code_lines: Vec<(Sequence, u64, u64)>,
    /// Of the table of loads that wait: who has set an entry.
    waits: Vec<Option<Sequence>>,
    /// Wrong paths have no access to what a TLB misses.
    software_refill: bool,
    // The fetch stage.
    next: usize,
    wrong: Option<(usize, usize)>,
    restart: Option<u64>,
    fetched: u64,
    slots: u32,
    last_byte: u64,
    line: u64,
    /// The line when the wrong path began.
    right_line: u64,
    pub retired: BTreeMap<usize, u64>,
    pub wrong_issued: u64,
    /// Whether instructions were fetched again after traps.
    pub has_trapped: bool,
    /// Cycles by the number of instructions dispatched in them; the last number stands for more, too.
    pub dispatched: [u64; 9],
    /// The cycle in which the last store was written, and the stores that were written in it.
    last_written: (u64, u32),
    /// Instructions that retired in this cycle.
    retired_now: u32,
    ended: Vec<Entry>,
}

impl<'a> Ticks<'a> {
    pub fn new(machine: &'a Machine, program: &'a [Dynamic], software_refill: bool) -> Ticks<'a> {
        let beyond = [true, false].map(|side| {
            let path = machine.caches.iter().filter(|cache| cache.holds.has(side));
            let path: Vec<f64> = path.map(|cache| cache.latency).collect();
            let memory = machine.memory.latency_ns * machine.processor.clock_mhz / 1000.0;
            let hidden = if side { 1.0 } else { path[0] };
            (0..8)
                .map(|level| (path.get(level).unwrap_or(&memory) - hidden).max(0.0).round() as u64)
                .collect()
        });
        let hit =
            |side: bool| machine.caches.iter().find(|cache| cache.holds.has(side)).unwrap().latency as u64;
        let core = machine.out_of_order.as_ref().unwrap();
        Ticks {
            core,
            program,
            software_refill,
            beyond,
            hits: [hit(true), hit(false)],
            trapped: HashSet::new(),
            code_trap: None,
            memory_level: machine.caches.iter().filter(|cache| cache.holds.has(false)).count() as u8,
            now: 0,
            entries: Vec::new(),
            next_sequence: 0,
            requests: Vec::new(),
            code_lines: Vec::new(),
            waits: vec![None; core.loads.wait_table as usize],
            next: 0,
            wrong: None,
            restart: None,
            fetched: 0,
            slots: 0,
            last_byte: 0,
            line: u64::MAX,
            right_line: u64::MAX,
            retired: BTreeMap::new(),
            wrong_issued: 0,
            has_trapped: false,
            dispatched: [0; 9],
            last_written: (0, 0),
            retired_now: 0,
            ended: Vec::new(),
        }
    }

    /// The cycle in which each instruction retires.
    pub fn run(mut self) -> Ticks<'a> {
        while self.retired.len() < self.program.len() {
            self.resolve();
            self.dispatch();
            self.issue();
            self.access();
            self.retire();
            self.resolve();
            self.fetch();
            self.now += 1;
            assert!(self.now < 1_000_000, "the reference model hangs at {}", self.retired.len());
        }
        self
    }

    fn entry(&self, sequence: Sequence) -> &Entry {
        let all = self.entries.iter().chain(&self.ended);
        all.into_iter().find(|entry| entry.sequence == sequence).unwrap()
    }

    /// Whether the branch of a wrong path is executed.
    fn is_over(&self, entry: &Entry) -> bool {
        entry.wrong.is_some() && self.branch_is_resolved(entry.index, self.now)
    }

    fn branch_is_resolved(&self, index: usize, now: u64) -> bool {
        let branch =
            self.entries.iter().chain(&self.ended).find(|one| one.index == index && one.wrong.is_none());
        branch.and_then(|one| one.completed).is_some_and(|completed| completed <= now)
    }

    /// Ends wrong paths whose branches are executed, and replays loads.
    fn resolve(&mut self) {
        if let Some((branch, _)) = self.wrong
            && self.branch_is_resolved(branch, self.now)
        {
            self.wrong = None;
            self.entries.retain(|entry| entry.wrong.is_none() || entry.index != branch);
            let branch = self.entries.iter().chain(&self.ended).find(|one| one.index == branch).unwrap();
            let completed = branch.completed;
            // A line that the wrong path waits for is not waited for any more.
            self.fetched = branch.fetched;
            self.line = self.right_line;
            self.restart = Some(completed.unwrap() + u64::from(self.core.fetch.redirect));
        }
        let trapped = self.entries.iter().find(|load| {
            let known = load.conflict.and_then(|store| self.entry(store).known);
            load.wrong.is_none() && known.is_some_and(|known| known <= self.now)
        });
        if let Some(load) = trapped {
            let known = self.entry(load.conflict.unwrap()).known.unwrap();
            self.fetch_again(load.sequence, known + u64::from(self.core.loads.replay));
        }
    }

    /// An instruction of the right path, and all younger ones, are fetched again from a cycle on.
    fn fetch_again(&mut self, sequence: Sequence, from: u64) {
        let first = self.entry(sequence);
        let (index, address, fetched) = (first.index, first.what.address, first.fetched);
        self.fetched = fetched;
        self.entries.retain(|entry| entry.sequence < sequence);
        self.requests.retain(|request| request.sequence < sequence);
        // The effects of younger instructions are discarded.
        self.waits.iter_mut().for_each(|set| *set = set.filter(|&set| set <= sequence));
        // The line of the instruction itself was requested when it was fetched first.
        self.code_lines.retain(|line| line.0 <= sequence);
        (self.next, self.wrong, self.code_trap) = (index, None, None);
        self.line = address / LINE;
        self.restart = Some(from);
    }

    /// The latency of an instruction, of a load that hits.
    fn latency(&self, what: &Dynamic) -> u64 {
        let rules = what.rules(self.core);
        match what.is_of_loads() {
            true => self.hits[1] + u64::from(rules.beyond_cache),
            false => rules.latency.unwrap_or(1).into(),
        }
    }

    /// Cycles from the fetch of an instruction to its dispatch.
    fn stages(&self) -> u64 {
        self.hits[0] + u64::from(self.core.fetch.stages)
    }

    /// Cycles for which an access waits for its translation, and whether it traps.
    fn translation(&self, entry: &Entry) -> (u64, bool) {
        let cycles = serve(entry.what.accessed()).translation;
        let is_filled = entry.wrong.is_none() && self.trapped.contains(&entry.index);
        if is_filled { (0, false) } else { (cycles.into(), self.software_refill && cycles > 0) }
    }

    fn dispatch(&mut self) {
        let count = self.dispatch_some() as usize;
        self.dispatched[count.min(8)] += u64::from(count > 0);
    }

    /// Dispatches the oldest instructions that can be; returns their number.
    fn dispatch_some(&mut self) -> u32 {
        let mut count = 0;
        let now = self.now;
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if entry.dispatched.is_some() {
                continue;
            }
            if count == self.core.dispatch
                || entry.fetched + self.stages() > now
                || !self.has_room(&entry.what)
            {
                return count;
            }
            let sequence = entry.sequence;
            let what = entry.what.clone();
            let writer = |register: Option<isa::Register>| {
                let register = register?;
                let older = self.entries.iter().filter(|one| one.sequence < sequence);
                older.filter(|one| one.what.destination == Some(register)).map(|one| one.sequence).max()
            };
            let producers = [writer(what.sources[0]), writer(what.sources[1]), writer(what.data)];
            let must_wait = match self.waits.len() {
                0 => false,
                length => {
                    what.wrong_address.is_none()
                        && self.waits[(what.address >> 2) as usize % length].is_some()
                }
            };
            let entry = &mut self.entries[index];
            entry.producers = producers;
            entry.must_wait = must_wait && entry.wrong.is_none();
            entry.dispatched = Some(now);
            count += 1;
        }
        count
    }

    fn has_room(&self, what: &Dynamic) -> bool {
        let core = self.core;
        let all = || self.entries.iter().chain(&self.ended).filter(|one| one.dispatched.is_some());
        let taken = |is_of: &dyn Fn(&Entry) -> bool, until: &dyn Fn(&Entry) -> Option<u64>| {
            all().filter(|one| is_of(one) && until(one).is_none_or(|until| until >= self.now)).count() as u32
        };
        let retired: &dyn Fn(&Entry) -> Option<u64> = &|one| one.retired;
        let is_float = |what: &Dynamic| matches!(what.destination, Some(isa::Register::Float(_)));
        let fits = |is_wanted: bool, limit: u32, taken: u32| !is_wanted || taken < limit;
        let writes = what.destination.is_some();
        let registers = |float: bool| {
            taken(&|one| one.what.destination.is_some() && is_float(&one.what) == float, retired)
        };
        let integers = core.integer_registers.unwrap_or(core.reorder_buffer);
        let floats = core.float_registers.unwrap_or(core.reorder_buffer);
        fits(true, core.reorder_buffer, taken(&|_| true, retired))
            && fits(writes && !is_float(what), integers, registers(false))
            && fits(writes && is_float(what), floats, registers(true))
            && fits(what.is_load(), core.loads.queue, taken(&|one| one.what.is_load(), retired))
            && fits(what.is_store(), core.stores.queue, taken(&|one| one.what.is_store(), &|one| one.written))
            && what.rules(core).station.as_ref().is_none_or(|name| {
                let own = |one: &Entry| one.what.rules(core).station.as_ref() == Some(name);
                taken(&own, &|one| one.issued) < core.stations[name]
            })
    }

    fn issue(&mut self) {
        let mut taken: Vec<&str> = Vec::new();
        let now = self.now;
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if !self.is_ready(index) {
                continue;
            }
            let (what, sequence) = (entry.what.clone(), entry.sequence);
            let rules = what.rules(self.core);
            let mut free =
                self.core_ports().into_iter().filter(|port| rules.ports.iter().any(|one| one == port));
            let port = free.find(|port| !taken.contains(port));
            if !rules.ports.is_empty() {
                let Some(port) = port else { continue };
                taken.push(port);
            }
            let conflict = self.conflict(index);
            let is_wrong = entry.wrong.is_some();
            self.wrong_issued += u64::from(is_wrong);
            let latency = self.latency(&what);
            let (translation, traps) = if what.accesses() { self.translation(entry) } else { (0, false) };
            let entry = &mut self.entries[index];
            entry.issued = Some(now);
            match (what.is_load(), what.is_store(), is_wrong) {
                (true, _, true) if what.wrong_address == Some(None) => entry.completed = Some(now + latency),
                (true, _, true) if traps => {}
                (true, ..) => {
                    if conflict.is_some() {
                        entry.conflict = conflict;
                        let size = self.waits.len();
                        if size > 0 {
                            self.waits[(what.address >> 2) as usize % size].get_or_insert(sequence);
                        }
                    } else if traps {
                        entry.traps = Some(now + latency);
                    } else {
                        entry.translated = Some(now + translation);
                    }
                }
                (_, true, true) => entry.completed = Some(now + latency),
                (_, true, false) if traps => entry.traps = Some(now + latency),
                (_, true, false) => entry.known = Some(now + latency + translation),
                _ => entry.completed = Some(now + latency),
            }
            // Known in the same cycle, as those of younger instructions may depend on it.
            self.finish();
        }
    }

    fn core_ports(&self) -> Vec<&'a str> {
        let mut ports = Vec::new();
        for port in self.core.classes.values().flat_map(|class| &class.ports) {
            if !ports.contains(&port.as_str()) {
                ports.push(port.as_str());
            }
        }
        ports
    }

    fn is_ready(&self, index: usize) -> bool {
        let (entry, now, core) = (&self.entries[index], self.now, self.core);
        let Some(dispatched) = entry.dispatched else { return false };
        if entry.issued.is_some()
            || now < dispatched + u64::from(core.dispatch_to_issue)
            || self.is_over(entry)
        {
            return false;
        }
        let done = |time: Option<u64>| time.is_some_and(|time| time <= now);
        let older = || self.entries[..index].iter().chain(&self.ended);
        let produced = |one: &Option<Sequence>| one.is_none_or(|one| done(self.entry(one).completed));
        let order =
            |one: &Entry| if one.wrong.is_some() { ExecutionOrder::Free } else { one.what.rules(core).order };
        let rules = entry.what.rules(core);
        let waits = entry.must_wait || core.loads.unknown_stores == UnknownStores::Wait;
        let known = |one: &Entry| done(if one.wrong.is_some() { one.completed } else { one.known });
        entry.producers[..2].iter().all(produced)
            && older().filter(|one| order(one) == ExecutionOrder::All).all(|one| done(one.completed))
            && (!entry.what.accesses()
                || older().filter(|one| order(one) == ExecutionOrder::Memory).all(|one| done(one.completed)))
            && (!(entry.what.is_load() && waits) || older().filter(|one| one.what.is_store()).all(known))
            && (order(entry) == ExecutionOrder::Free
                || older().all(|one| one.retired.is_some_and(|retired| retired < now)))
            && (order(entry) != ExecutionOrder::Memory
                || older()
                    .filter(|one| one.what.is_store())
                    .all(|one| one.written.is_some_and(|at| at < now)))
            && rules.occupies.as_ref().is_none_or(|own| {
                let unit = |one: &&Entry| {
                    one.what.rules(core).occupies.as_ref().is_some_and(|one| one.unit == own.unit)
                };
                older().filter(unit).all(|one| {
                    let cycles = one.what.rules(core).occupies.as_ref().unwrap().cycles;
                    one.issued.is_some_and(|issued| issued + u64::from(cycles) <= now)
                })
            })
    }

    /// The youngest older store that is not written, and overlaps a load.
    fn overlapping(&self, index: usize) -> Option<&Entry> {
        let load = &self.entries[index];
        if load.wrong.is_some() {
            return None;
        }
        let stores = self.entries[..index].iter().chain(&self.ended).filter(|one| one.what.is_store());
        let issued = load.issued.unwrap_or(self.now);
        let waiting = stores.filter(|one| one.written.is_none_or(|written| written > issued));
        waiting.filter(|one| one.what.overlaps(&load.what)).max_by_key(|one| one.sequence)
    }

    fn conflict(&self, index: usize) -> Option<Sequence> {
        if !self.entries[index].what.is_load() || self.core.loads.unknown_stores == UnknownStores::Wait {
            return None;
        }
        let store = self.overlapping(index)?;
        store.known.is_none_or(|known| known > self.now).then_some(store.sequence)
    }

    /// Memory is asked, in program order: by loads that are issued, and by stores that have retired.
    fn access(&mut self) {
        let now = self.now;
        let mut indices: Vec<(Sequence, bool, usize)> = Vec::new();
        indices.extend(self.ended.iter().enumerate().map(|(index, one)| (one.sequence, true, index)));
        indices.extend(self.entries.iter().enumerate().map(|(index, one)| (one.sequence, false, index)));
        indices.sort_unstable();
        for (sequence, has_ended, index) in indices {
            let entry = if has_ended { &self.ended[index] } else { &self.entries[index] };
            let is_load = entry.what.is_load() && entry.completed.is_none() && entry.supplier.is_none();
            let asks = match entry.what.is_store() {
                true => entry.retired.map(|retired| retired + 1).filter(|_| entry.arrives.is_none()),
                false => entry.translated.filter(|_| is_load),
            };
            if asks.is_none_or(|asks| asks > now) || self.is_over(entry) {
                continue;
            }
            let is_first = asks == Some(now);
            if is_first
                && !has_ended
                && let Some(store) = self.overlapping(index)
            {
                let supplier = (store.sequence, store.what.contains(&entry.what));
                self.entries[index].supplier = Some(supplier);
                continue;
            }
            let latency = if entry.what.is_load() { self.latency(&entry.what) } else { 0 };
            let (dispatched, address) = (entry.dispatched.unwrap(), entry.what.accessed());
            let Some(arrives) = self.line(sequence, address, dispatched, latency, !entry.is_waiting) else {
                let entry = if has_ended { &mut self.ended[index] } else { &mut self.entries[index] };
                entry.is_waiting = true;
                continue;
            };
            let entry = if has_ended { &mut self.ended[index] } else { &mut self.entries[index] };
            if entry.what.is_store() {
                entry.arrives = Some(arrives)
            } else {
                entry.completed = Some(arrives)
            }
            self.finish();
        }
        self.finish();
    }

    /// Finds or requests a line: when its data are there; none if too many are outstanding.
    fn line(
        &mut self,
        sequence: Sequence,
        address: u64,
        dispatched: u64,
        latency: u64,
        is_first: bool,
    ) -> Option<u64> {
        let (now, line) = (self.now, address / LINE);
        let older = || self.requests.iter().filter(|one| one.sequence < sequence && one.arrives > dispatched);
        let open = || older().filter(|one| one.requested <= now && one.arrives > now);
        if is_first {
            if let Some(arrives) = open().filter(|one| one.line == line).map(|one| one.arrives).min() {
                return Some(arrives.max(now + latency));
            }
            if serve(address).level == 0 {
                return Some(now + latency);
            }
        }
        let level = serve(address).level;
        let loads = &self.core.loads;
        let from_memory = open().filter(|one| one.level >= self.memory_level).count() as u32;
        let is_memory_full = level >= self.memory_level
            && from_memory >= loads.outstanding_memory.unwrap_or(loads.outstanding);
        if open().count() as u32 >= loads.outstanding || is_memory_full {
            return None;
        }
        let arrives = now + latency + self.beyond[1][level as usize];
        self.requests.push(LineRequest { sequence, line, requested: now, arrives, level });
        Some(arrives)
    }

    /// Computes the times that follow from others.
    fn finish(&mut self) {
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if entry.completed.is_some() {
                continue;
            }
            if entry.what.is_store()
                && let (Some(known), Some(issued)) = (entry.known, entry.issued)
            {
                let produced = entry.producers[2].map_or(Some(0), |one| self.entry(one).completed);
                let issued = issued + self.latency(&entry.what);
                let data = produced.map(|produced| produced.max(issued));
                let entry = &mut self.entries[index];
                entry.data = data;
                entry.completed = data.map(|data| data.max(known));
            } else if let Some((store, contains)) = entry.supplier {
                let (store, translated) = (self.entry(store), entry.translated.unwrap());
                let latency = self.latency(&entry.what);
                let partial = u64::from(self.core.loads.partial_forward);
                let forward = u64::from(self.core.loads.forward);
                let completed = match contains {
                    true => store.data.map(|data| data.max(translated) + forward),
                    false => store.written.map(|written| (written + partial).max(translated) + latency),
                };
                self.entries[index].completed = completed;
            }
        }
        // Stores are written in order.
        for entry in self.ended.iter_mut().filter(|one| one.what.is_store() && one.written.is_none()) {
            let Some(arrives) = entry.arrives else { return };
            let (last, count) = self.last_written;
            let written = arrives.max(if count == self.core.stores.writes { last + 1 } else { last });
            self.last_written = (written, if written == last { count + 1 } else { 1 });
            entry.written = Some(written);
        }
    }

    fn retire(&mut self) {
        self.retired_now = 0;
        while self.retired_now < self.core.retire {
            let Some(first) = self.entries.first() else { return };
            if first.wrong.is_none() && first.traps.is_some_and(|traps| traps <= self.now) {
                let (translation, _) = self.translation(first);
                let (sequence, index) = (first.sequence, first.index);
                self.fetch_again(sequence, self.now + translation);
                self.trapped.insert(index);
                self.has_trapped = true;
                return;
            }
            if first.wrong.is_some() || first.completed.is_none_or(|completed| completed > self.now) {
                return;
            }
            let mut first = self.entries.remove(0);
            first.retired = Some(self.now);
            self.retired_now += 1;
            self.retired.insert(first.index, self.now);
            if first.what.rules(self.core).order == ExecutionOrder::System {
                self.restart = Some(self.now + u64::from(self.core.system_call));
            }
            self.ended.push(first);
        }
    }

    fn fetch(&mut self) {
        loop {
            let (index, wrong, what, redirect) = match self.wrong {
                Some((branch, number)) => {
                    let path = self.program[branch].wrong_path();
                    let Some(what) = path.get(number) else { return };
                    let begins_line = (what.address + 3) / LINE != self.line;
                    if self.software_refill && begins_line && serve(what.address).translation > 0 {
                        return;
                    }
                    (branch, Some(number), what.clone(), what.redirect.clone())
                }
                None => {
                    let Some(what) = self.program.get(self.next) else { return };
                    // A call of the system retires first.
                    let before =
                        self.next.checked_sub(1).filter(|&before| self.program[before].stops(self.core));
                    if before.is_some_and(|before| !self.retired.contains_key(&before)) {
                        return;
                    }
                    (self.next, None, what.clone(), what.redirect.clone())
                }
            };
            let waiting = self.entries.iter().filter(|one| one.dispatched.is_none()).count() as u32;
            if self.fetched > self.now || waiting >= self.core.fetch.buffer {
                return;
            }
            if self.restart.is_some_and(|restart| self.now < restart) {
                return;
            }
            let line = (what.address + 3) / LINE;
            let chunk = 4 * u64::from(self.core.fetch.width);
            let leaves = self.core.fetch.aligned && (what.address + 3) / chunk != self.last_byte / chunk;
            let begins =
                self.restart.is_some() || self.slots == self.core.fetch.width || leaves || line != self.line;
            if begins && self.now <= self.fetched {
                return;
            }
            let is_untranslated = line != self.line && serve(what.address).translation > 0;
            if self.software_refill && wrong.is_none() && is_untranslated {
                // It would be dispatched then; the trap is taken when it would be the oldest.
                let dispatched = *self
                    .code_trap
                    .get_or_insert(self.now + self.hits[0] + u64::from(self.core.fetch.stages));
                let is_oldest = self.entries.is_empty() && self.retired_now < self.core.retire;
                if self.now < dispatched || !is_oldest {
                    return;
                }
                self.code_trap = None;
            }
            if begins || self.now > self.fetched {
                self.slots = 0;
            }
            (self.restart, self.last_byte, self.slots) = (None, what.address + 3, self.slots + 1);
            self.fetched = self.now;
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            if line != self.line {
                self.fetch_line(sequence, what.address);
                self.line = line;
            }
            self.entries.push(Entry {
                sequence,
                index,
                wrong,
                what: what.clone(),
                fetched: self.fetched,
                dispatched: None,
                issued: None,
                must_wait: false,
                producers: [None; 3],
                translated: None,
                is_waiting: false,
                traps: None,
                supplier: None,
                conflict: None,
                completed: None,
                known: None,
                data: None,
                retired: None,
                arrives: None,
                written: None,
            });
            match (wrong, redirect) {
                (None, Redirect::Wrong(..)) => {
                    self.wrong = Some((index, 0));
                    self.right_line = self.line;
                    self.next += 1;
                    let Redirect::Wrong(lost, _) = &what.redirect else { unreachable!() };
                    self.restart = lost.map(|lost| self.fetched + 1 + lost);
                }
                (wrong, redirect) => {
                    match wrong {
                        Some(number) => self.wrong = Some((index, number + 1)),
                        None => self.next += 1,
                    }
                    self.restart = match redirect {
                        Redirect::Lost(lost) => Some(self.fetched + 1 + lost),
                        _ => None,
                    };
                }
            }
        }
    }

    fn fetch_line(&mut self, sequence: Sequence, address: u64) {
        let (now, line) = (self.now, address / LINE);
        let served = serve(address);
        let translated = now + u64::from(served.translation);
        let own = self.code_lines.iter().filter(|one| one.1 == line && one.2 > now);
        let earlier = own.map(|one| one.2).next();
        let requested = (served.level > 0).then(|| translated + self.beyond[0][served.level as usize]);
        let arrives = match (earlier, requested) {
            (Some(earlier), Some(requested)) => translated.max(earlier).min(requested),
            (Some(earlier), None) => translated.max(earlier),
            (None, Some(requested)) => requested,
            (None, None) => translated,
        };
        if arrives > translated {
            self.code_lines.push((sequence, line, arrives));
        }
        self.fetched = arrives.max(now);
    }
}
