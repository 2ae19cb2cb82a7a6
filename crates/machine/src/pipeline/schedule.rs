//! Pieces whose instructions need not wait for anything from outside: when each one is issued is the same each
//! time. It is found by issuing the piece once on an empty scoreboard, and holds whenever all operands are ready
//! by then.

use std::mem;

use super::board::{BEGINNING, Board, FRESH, LastStore, Register};
use super::class::NONE;
use super::issue::{Issue, SiteCycles};
use super::memory::{Misses, WriteBuffer};
use super::piece::Piece;
use super::rules::{LOAD, STORE};

/// Schedules that a piece has at most, and accesses that a piece has which has any.
const MOST: usize = 8;
const MOST_ACCESSES: usize = 64;

/// When a piece's instructions are issued. Times are since the last cycle before the piece.
pub(super) struct Schedule {
    /// What was issued in that cycle already: units, and how many.
    used: u16,
    open: u16,
    /// What is left in the last cycle, and when that is.
    last_used: u16,
    last_open: u16,
    last: u16,
    /// When nothing waits for any register.
    ready: u16,
    stores: u16,
    first_load: Option<u16>,
    /// Loads before the first store.
    first_store: u16,
    /// How often it was applied.
    executions: u64,
    /// Registers that are read, registers that are written, registers that it leaves, cycles, and accesses, and
    /// where each kind of them ends.
    uses: Box<[Use]>,
    ends: [u16; 4],
    /// When its last group arrived, if that is not the first.
    arrived: Option<u16>,
    has_neighbours: bool,
    seldom: Box<Seldom>,
}

/// What is seldom looked at.
struct Seldom {
    /// Pairs of a store and a load in the next cycle, by their numbers.
    neighbours: Vec<(u8, u8)>,
    /// What each instruction takes whenever the schedule is applied.
    sites: Vec<SiteCycles>,
}

/// A use of a register, and when; also a number of cycles, and what they are spent for.
#[derive(Clone, Copy)]
struct Use {
    time: u16,
    register: u8,
    /// The column of the latencies; the class; or the cause.
    kind: u8,
}

impl Schedule {
    /// Operands, which must be there by then.
    fn reads(&self) -> &[Use] {
        &self.uses[..self.ends[0] as usize]
    }

    /// Registers that are written, which must be free by then; with the class of what writes them first.
    fn writes(&self) -> &[Use] {
        &self.uses[self.ends[0] as usize..self.ends[1] as usize]
    }

    /// When what writes a register last was issued; with its class.
    fn results(&self) -> &[Use] {
        &self.uses[self.ends[1] as usize..self.ends[2] as usize]
    }

    /// Cycles, with their causes.
    fn cycles(&self) -> &[Use] {
        &self.uses[self.ends[2] as usize..self.ends[3] as usize]
    }

    /// When accesses are issued.
    fn accesses(&self) -> &[Use] {
        &self.uses[self.ends[3] as usize..]
    }

    /// Adds what instructions took whenever it was applied.
    pub fn add_sites(&self, sites: &mut [SiteCycles]) {
        for (sum, site) in sites.iter_mut().zip(&self.seldom.sites) {
            sum.issuing += site.issuing * self.executions;
            sum.dry += site.dry * self.executions;
            sum.frozen += site.frozen * self.executions;
        }
    }
}

impl Issue {
    /// Issues a piece whose group has arrived, if a schedule holds for it.
    #[inline]
    pub fn apply_one_of(&mut self, piece: &mut Piece, addresses: &[u64]) -> bool {
        if !piece.is_plain || self.waits_for_data(piece) {
            return false;
        }
        let used = self.board.used;
        // Nothing joins the instructions that were issued before a new group, however many they are.
        let open = if used == FRESH { 0 } else { self.board.open as u16 };
        let found =
            piece.schedules.iter().position(|schedule| schedule.used == used && schedule.open == open);
        let place = match found {
            Some(place) => place,
            None if piece.schedules.len() < MOST && piece.accesses.len() <= MOST_ACCESSES => {
                let Some(schedule) = self.rehearse(piece, used, open) else { return false };
                piece.schedules.push(schedule);
                piece.schedules.len() - 1
            }
            None => return false,
        };
        let own = piece.own(addresses);
        if !self.holds(&piece.schedules[place], own) {
            return false;
        }
        piece.schedules[place].executions += 1;
        self.apply(&piece.schedules[place], piece, own);
        true
    }

    /// Whether anything in a piece waits for data that are far; nothing waits for where stores go.
    #[inline(always)]
    fn waits_for_data(&self, piece: &Piece) -> bool {
        let questions = piece.first_access..piece.first_access + piece.accesses.len();
        self.served.far(questions).any(|(number, served)| !piece.accesses[number].1 || served.translation > 0)
    }

    /// Whether a schedule holds now.
    #[inline]
    fn holds(&mut self, schedule: &Schedule, addresses: &[u64]) -> bool {
        let board = &self.board;
        let now = board.last;
        let mut is_ready = board.blocked_until < now + u64::from(schedule.used == FRESH);
        if board.ready > now + u64::from(schedule.used == FRESH) {
            for one in schedule.reads() {
                let register = &board.registers[one.register as usize % 64];
                let ready = register.issued + self.rules.latency(register.class, one.kind);
                is_ready &= ready <= now + u64::from(one.time);
            }
            for one in schedule.writes() {
                let register = &board.registers[one.register as usize % 64];
                let ready = register.issued + self.rules.order(register.class, one.kind);
                is_ready &= ready <= now + u64::from(one.time);
            }
        }
        if !is_ready || schedule.accesses().is_empty() {
            return is_ready;
        }
        if let Some(first_load) = schedule.first_load {
            let rules_end = board.last_store.time + u64::from(self.loads.not_after_store).max(1);
            is_ready = board.misses.until <= now
                && (rules_end < now + u64::from(first_load) || self.is_after_store(schedule, addresses));
        }
        let same = |&(store, load): &(u8, u8)| {
            (addresses[store as usize] ^ addresses[load as usize]) & LastStore::COMPARED == 0
        };
        is_ready
            && board.barrier <= now
            && !(schedule.has_neighbours && schedule.seldom.neighbours.iter().any(same))
            && (schedule.stores == 0 || self.board.write_buffer.has_room(schedule.stores.into(), now))
    }

    /// Whether the loads before a piece's first store owe nothing to the store before the piece.
    #[inline(never)]
    fn is_after_store(&self, schedule: &Schedule, addresses: &[u64]) -> bool {
        let loads = schedule.accesses().iter().zip(addresses).take(schedule.first_store.into());
        loads.into_iter().all(|(load, &address)| {
            let time = self.board.last + u64::from(load.time);
            self.is_far_from_store(time, address)
        })
    }

    /// Issues a piece by a schedule.
    #[inline]
    fn apply(&mut self, schedule: &Schedule, piece: &Piece, addresses: &[u64]) {
        let now = self.board.last;
        if schedule.used == FRESH {
            self.board.cycles.0[self.board.open] += 1;
        }
        for one in schedule.cycles() {
            self.board.cycles.0[one.kind as usize] += u64::from(one.time);
        }
        for result in schedule.results() {
            self.board.registers[result.register as usize % 64] =
                Register::produced(result.kind, now + u64::from(result.time));
        }
        if schedule.stores > 0 {
            let accesses = schedule.accesses().iter().zip(&piece.accesses).enumerate();
            for (number, (one, _)) in accesses.filter(|(_, (_, access))| access.1) {
                let served = self.served.get(piece.first_access + number);
                self.finish_store(addresses[number], now + u64::from(one.time), served);
            }
        }
        self.board.ready = self.board.ready.max(now + u64::from(schedule.ready));
        if let Some(arrived) = schedule.arrived {
            let last = piece.address.wrapping_add(4 * (piece.length as u64 - 1));
            self.front.place = self.front.first_of(last, now + u64::from(arrived));
        }
        self.board.last = now + u64::from(schedule.last);
        self.board.used = schedule.last_used;
        self.board.open = schedule.last_open.into();
    }

    /// Issues a piece where nothing is waited for but what the piece itself computes.
    #[cold]
    #[inline(never)]
    fn rehearse(&mut self, piece: &Piece, used: u16, open: u16) -> Option<Schedule> {
        let mut empty = Board::new(Misses::new(32, 1), WriteBuffer::new(0, 1, 32));
        (empty.used, empty.open) = (used, open.into());
        let board = mem::replace(&mut self.board, empty);
        let answers = [&mut self.fetched, &mut self.served].map(mem::take);
        let arrived = BEGINNING + u64::from(used == FRESH);
        let first = self.front.first_of(piece.address, arrived);
        let place = mem::replace(&mut self.front.place, first);
        let own = piece.first..piece.first + piece.length;
        let sites = self.sites[own.clone()].to_vec();
        self.sites[own.clone()].fill(SiteCycles::default());
        // No two accesses are to the same data.
        let addresses: Vec<u64> = (0..piece.accesses.len() as u64).map(|number| 16 * number).collect();
        let mut rest = addresses.iter().copied();
        let times: Vec<u64> = (0..piece.length)
            .map(|place| {
                let address = piece.address.wrapping_add(4 * place as u64);
                self.execute(piece.first + place, address, place, &mut rest);
                self.board.last - BEGINNING
            })
            .collect();
        let schedule = self.record(piece, used, open, &times);
        self.board = board;
        [self.fetched, self.served] = answers;
        self.front.place = place;
        self.sites[own].copy_from_slice(&sites);
        schedule
    }

    /// What was found by issuing a piece at these times; nothing if that takes very long.
    fn record(&self, piece: &Piece, used: u16, open: u16, times: &[u64]) -> Option<Schedule> {
        let last = u16::try_from(self.board.last - BEGINNING).ok()?;
        let steps = &self.steps[piece.first..][..piece.length];
        let (mut reads, mut writes, mut accesses) = (Vec::new(), Vec::new(), Vec::new());
        let mut written = [false; 64];
        for (step, &time) in steps.iter().zip(times) {
            let time = time as u16;
            for (register, kind) in step.sources.into_iter().zip(step.columns) {
                let is_known = |read: &Use| read.register == register && read.kind == kind;
                if register != NONE && !written[register as usize] && !reads.iter().any(is_known) {
                    reads.push(Use { time, register, kind });
                }
            }
            if step.destination != NONE && !mem::replace(&mut written[step.destination as usize], true) {
                writes.push(Use { time, register: step.destination, kind: step.class });
            }
            if step.flags & (LOAD | STORE) != 0 {
                accesses.push(Use { time, register: NONE, kind: step.class });
            }
        }
        let results = writes.iter().map(|write| {
            let register = &self.board.registers[write.register as usize];
            let time = (register.issued - BEGINNING) as u16;
            Use { time, register: write.register, kind: register.class }
        });
        let results: Vec<Use> = results.collect();
        let cycles =
            self.board.cycles.0.iter().enumerate().filter(|&(index, &cycles)| index > 0 && cycles > 0);
        let cycles =
            cycles.map(|(index, &cycles)| Use { time: cycles as u16, register: NONE, kind: index as u8 });
        let (stores, loads): (Vec<_>, Vec<_>) = (0u8..)
            .zip(accesses.iter().zip(&piece.accesses))
            .map(|(number, (access, &(_, is_store)))| (number, access.time, is_store))
            .partition(|access| access.2);
        let neighbours = stores.iter().flat_map(|store| {
            let next = loads.iter().filter(|load| load.0 > store.0 && load.1 == store.1 + 1);
            next.map(|load| (store.0, load.0))
        });
        let neighbours: Vec<(u8, u8)> = neighbours.collect();
        let arrived = (self.front.place.arrived() - BEGINNING) as u16;
        let has_groups = self.front.begins_group(piece.address);
        let lists = [reads, writes, results, cycles.collect(), accesses];
        let mut end = 0;
        let ends = lists.each_ref().map(|list| {
            end += list.len() as u16;
            end
        });
        Some(Schedule {
            used,
            open,
            last_used: self.board.used,
            last_open: self.board.open as u16,
            last,
            ready: u16::try_from(self.board.ready.saturating_sub(BEGINNING)).ok()?,
            stores: stores.len() as u16,
            first_load: loads.first().map(|load| load.1),
            first_store: stores.first().map_or(loads.len() as u16, |store| store.0.into()),
            executions: 0,
            uses: lists.concat().into(),
            ends: [ends[0], ends[1], ends[2], ends[3]],
            arrived: has_groups.then_some(arrived),
            has_neighbours: !neighbours.is_empty(),
            seldom: Box::new(Seldom { neighbours, sites: self.sites[piece.first..][..piece.length].into() }),
        })
    }
}
