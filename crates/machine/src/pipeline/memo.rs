//! The courses that pieces took, each in a state, and the state that it led to.
//!
//! A pipeline's states between two pieces are few, and programs repeat themselves: nearly always a piece begins in
//! a state in which it began before, and memory answers as it did then. Then it does as it did.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;
use std::ops::Range;

use super::course::{Compared, Costs, Course, Details, Known, StoreTime};
use super::cycles::Cause;
use super::front::Entry;
use super::hear::Heard;
use super::issue::SiteCycles;
use super::state::State;

/// Transitions, the instructions that they issue, and states, of which no more are remembered.
const MOST: usize = 1 << 17;
const MOST_INSTRUCTIONS: usize = 1 << 21;
const MOST_STATES: usize = 1 << 15;

/// Where a piece begins: in which state, and how it is entered; and its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Beginning {
    state_and_entry: u32,
    piece: u32,
}

impl Beginning {
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self.state_and_entry) << 32 | u64::from(self.piece)
    }
}

/// What a piece does from a beginning on, having heard something of memory. It fills a line of the host's cache.
#[repr(align(64))]
struct Transition {
    beginning: Beginning,
    /// The first of what was heard as a word, or 0, and how much that was.
    first: u64,
    count: u8,
    holds: Holds,
    settles_in: u16,
    to: u32,
    executions: u64,
    /// The transition that was made last behind this one: one having heard nothing, and one having heard something.
    next: [u32; 2],
    course: Course,
}

const _: () = assert!(mem::size_of::<Transition>() == 64);

/// How much a course says of what was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    All,
    /// All but lines and what was compared.
    Most,
    /// Nor what was spent, and stores.
    Little,
}

/// What is seldom looked at of a transition.
struct Behind {
    /// Where its lines are, what was compared, and stores that have no room in the course.
    lines: Range<u32>,
    compared: Range<u32>,
    stores: Range<u32>,
    heard: Box<[Heard]>,
    costs: Box<Costs>,
    /// The transition of the same piece before this one, from 1; 0 if this is the first.
    before: u32,
}

/// A state by its number, and the cycles until nothing is left of it that matters, or [`NEVER`].
#[derive(Clone, Copy)]
struct At {
    state: u32,
    settles_in: u16,
}

const NEVER: u16 = u16::MAX;

/// Stands for no transition.
const NONE: u32 = u32::MAX;

/// What was found so far.
pub(super) struct Memo {
    /// The first one is that in which nothing is left of what was before.
    states: Vec<State>,
    numbers: HashMap<State, At, BuildHasherDefault<Mixer>>,
    /// The current state, and instructions that were issued in the last cycle.
    at: At,
    open: u8,
    transitions: Vec<Transition>,
    /// What is seldom looked at of them.
    behind: Vec<Behind>,
    /// The transition that led to the current state, or [`NONE`].
    previous: u32,
    /// The stores of courses that have many, the lines that courses leave on their way, and what they compare.
    stores: Vec<StoreTime>,
    lines: Vec<u32>,
    compared: Vec<Compared>,
    /// The instructions that all transitions issue.
    instructions: usize,
    /// Finds transitions by their beginnings and what was heard: their numbers, from 1. Half of it is free.
    table: Vec<u32>,
}

impl Memo {
    /// Nothing was found but a state in which nothing is left of what was before, which is the current one.
    pub fn new(settled: State) -> Memo {
        let mut memo = Memo {
            states: Vec::new(),
            numbers: HashMap::default(),
            at: At { state: 0, settles_in: 0 },
            open: 0,
            transitions: Vec::new(),
            behind: Vec::new(),
            previous: NONE,
            stores: Vec::new(),
            lines: Vec::new(),
            compared: Vec::new(),
            instructions: 0,
            table: vec![0; 2],
        };
        memo.enter(settled, Some(0));
        memo
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.states[self.at.state as usize]
    }

    /// The time at which the next group does not arrive before, and why, if the last instruction trapped.
    pub fn restart_after(&self, last: u64) -> Option<(u64, Cause)> {
        if self.at.settles_in == NEVER { self.state().restart_after(last) } else { None }
    }

    /// Instructions that were issued in the last cycle.
    pub fn open(&self) -> usize {
        self.open.into()
    }

    /// So many cycles pass. Says whether nothing is left then of what was before, which is the current state then.
    pub fn settle(&mut self, cycles: u64) -> bool {
        let settles = cycles > 0 && self.at.settles_in != NEVER && cycles >= u64::from(self.at.settles_in);
        if settles {
            (self.at, self.open, self.previous) = (At { state: 0, settles_in: 0 }, 0, NONE);
        }
        settles
    }

    /// Where a piece begins that is entered now.
    #[inline(always)]
    pub fn beginning(&self, entry: Entry, piece: u32) -> Beginning {
        Beginning { state_and_entry: self.at.state * Entry::COUNT + entry as u32, piece }
    }

    /// The number of a transition, if it is known. Mostly it is the one that was made last behind the same one;
    /// where none led to the current state it is probably `recent`.
    #[inline(always)]
    pub fn find(&self, beginning: Beginning, heard: &[Heard], recent: u32) -> Option<u32> {
        let previous = self.transitions.get(self.previous as usize);
        let probably = previous.map_or(recent, |previous| previous.next[usize::from(!heard.is_empty())]);
        if self.is(probably, beginning, heard) { Some(probably) } else { self.look_up(beginning, heard) }
    }

    /// Whether a transition has this number.
    #[inline(always)]
    fn is(&self, number: u32, beginning: Beginning, heard: &[Heard]) -> bool {
        let Some(transition) = self.transitions.get(number as usize) else { return false };
        // All at once: which of them differs cannot be guessed.
        let differences = (transition.beginning.word() ^ beginning.word())
            | (transition.first ^ first_word(heard))
            | (u64::from(transition.count) ^ heard.len() as u64);
        differences == 0 && (heard.len() < 2 || *self.behind[number as usize].heard == *heard)
    }

    fn look_up(&self, beginning: Beginning, heard: &[Heard]) -> Option<u32> {
        let mut place = place(beginning, heard);
        loop {
            let number = self.table[place & (self.table.len() - 1)].checked_sub(1)?;
            if self.is(number, beginning, heard) {
                return Some(number);
            }
            place += 1;
        }
    }

    /// The course of a transition.
    #[inline(always)]
    pub fn known(&self, number: u32) -> Known<'_> {
        let Transition { course, holds, .. } = &self.transitions[number as usize];
        let mut known = Known { course, many_stores: &[], lines: &[], compared: &[], costs: None };
        if *holds != Holds::All {
            let Behind { lines, compared, stores, costs, .. } = &self.behind[number as usize];
            known.lines = &self.lines[lines.start as usize..lines.end as usize];
            known.compared = &self.compared[compared.start as usize..compared.end as usize];
            known.many_stores = &self.stores[stores.start as usize..stores.end as usize];
            known.costs = (*holds == Holds::Little).then_some(costs);
        }
        known
    }

    /// A transition is made once more. If none led to the current state it is `recent` from now on.
    #[inline(always)]
    pub fn repeat(&mut self, number: u32, has_heard: bool, recent: &mut u32) {
        let previous = self.transitions.get_mut(self.previous as usize);
        *previous.map_or(recent, |previous| &mut previous.next[usize::from(has_heard)]) = number;
        self.previous = number;
        let transition = &mut self.transitions[number as usize];
        transition.executions += 1;
        self.at = At { state: transition.to, settles_in: transition.settles_in };
        self.open = transition.course.open;
    }

    /// A piece took a course for the first time, having begun so, that led to the current state. It is remembered
    /// if it can be repeated; its number is told, or else what it cost is given back. `before` is the newest
    /// transition of the same piece.
    pub fn add(
        &mut self,
        beginning: Beginning,
        heard: &[Heard],
        details: Details,
        before: u32,
    ) -> Result<u32, Costs> {
        let course = Course::of(&details, self.open()).filter(|_| !self.is_full());
        let (Some((course, is_short)), Ok(count)) = (course, u8::try_from(heard.len())) else {
            return Err(details.costs);
        };
        let number = self.transitions.len() as u32;
        let Details { lines, compared, stores, costs, .. } = details;
        self.instructions += costs.sites.len();
        let lines = append(&mut self.lines, lines);
        let compared = append(&mut self.compared, compared);
        // A course's times are short.
        let stores = stores.into_iter().filter(|_| !is_short).map(|(store, time)| (store, time as u32));
        let stores = append(&mut self.stores, stores);
        let holds = match is_short {
            true if lines.is_empty() && compared.is_empty() => Holds::All,
            true => Holds::Most,
            false => Holds::Little,
        };
        self.transitions.push(Transition {
            beginning,
            first: first_word(heard),
            count,
            holds,
            settles_in: self.at.settles_in,
            to: self.at.state,
            executions: 1,
            next: [NONE; 2],
            course,
        });
        self.behind.push(Behind {
            heard: heard.into(),
            lines,
            compared,
            stores,
            costs: costs.into(),
            before,
        });
        self.previous = number;
        if 2 * self.transitions.len() <= self.table.len() {
            self.note(number);
        } else {
            self.table = vec![0; 2 * self.table.len()];
            (0..=number).for_each(|number| self.note(number));
        }
        Ok(number)
    }

    /// Puts a transition into the table.
    fn note(&mut self, number: u32) {
        let mask = self.table.len() - 1;
        let mut place =
            place(self.transitions[number as usize].beginning, &self.behind[number as usize].heard);
        while self.table[place & mask] != 0 {
            place += 1;
        }
        self.table[place & mask] = number + 1;
    }

    /// The current state is this one, of which nothing is left after so many cycles.
    pub fn enter(&mut self, state: State, settles_in: Option<u64>) {
        self.open = state.open as u8;
        self.previous = NONE;
        self.at = match self.numbers.get(&state) {
            Some(&at) => at,
            None => {
                let settles_in = settles_in.and_then(|cycles| cycles.try_into().ok()).unwrap_or(NEVER);
                let at = At { state: self.states.len() as u32, settles_in };
                self.numbers.insert(state.clone(), at);
                self.states.push(state);
                at
            }
        };
    }

    /// Whether no more can be remembered.
    pub fn is_full(&self) -> bool {
        self.transitions.len() >= MOST
            || self.instructions >= MOST_INSTRUCTIONS
            || self.states.len() >= MOST_STATES
    }

    /// Forgets all but the current state.
    pub fn forget(&mut self) {
        let settled = self.states[0].clone();
        let (state, at) = (self.state().clone(), self.at);
        *self = Memo::new(settled);
        self.enter(state, (at.settles_in != NEVER).then_some(at.settles_in.into()));
    }

    /// No transition was made so far.
    pub fn forget_executions(&mut self) {
        self.transitions.iter_mut().for_each(|transition| transition.executions = 0);
    }

    /// Adds what the instructions of a piece cost by its transitions, the newest of which is this.
    pub fn add_sites(&self, newest: u32, sites: &mut [SiteCycles]) {
        let mut number = newest as usize;
        while number != 0 {
            let Behind { costs, before, .. } = &self.behind[number - 1];
            costs.add_sites(self.transitions[number - 1].executions, sites);
            number = *before as usize;
        }
    }
}

/// Puts more behind a list. Says where it is.
fn append<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> Range<u32> {
    let first = list.len() as u32;
    list.extend(more);
    first..list.len() as u32
}

/// Where the search for a transition starts.
#[inline(always)]
fn place(beginning: Beginning, heard: &[Heard]) -> usize {
    let mut mixer = Mixer::default();
    mixer.write_u64(beginning.word());
    heard.iter().for_each(|one| mixer.write_u64(one.word()));
    (mixer.finish() >> 32) as usize
}

/// The first of what was heard as a word, or 0.
#[inline(always)]
fn first_word(heard: &[Heard]) -> u64 {
    heard.first().map_or(0, |first| first.word())
}

/// Hashes few words quickly, and always alike.
#[derive(Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline(always)]
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    #[inline(always)]
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    #[inline(always)]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline(always)]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
