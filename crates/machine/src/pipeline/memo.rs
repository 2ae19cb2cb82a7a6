//! The courses that pieces took, each in a state, and the state that it led to.
//!
//! A pipeline's states between two pieces are few, and programs repeat themselves: nearly always a piece begins in
//! a state in which it began before, and memory answers as it did then. Then it does as it did.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::mem;

use super::course::{Course, Details, Sum};
use super::front::Entry;
use super::hear::Heard;
use super::issue::SiteCycles;
use super::state::State;

/// Courses, and states, that are remembered at most.
const MOST: usize = 1 << 17;
const MOST_STATES: usize = 1 << 15;

/// Where a piece begins: in which state, and how it is entered; and its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Beginning {
    state_and_entry: u32,
    piece: u32,
}

/// What a piece does from a beginning on, having heard something of memory. As long as a line of the host's cache.
#[repr(align(64))]
pub(super) struct Transition {
    beginning: Beginning,
    /// The first of what was heard, and how much that was.
    first: Heard,
    count: u8,
    /// Its details are of no account to what follows.
    is_plain: bool,
    to: u32,
    /// How often, but for those in the sum.
    uncounted: u64,
    pub course: Course,
}

const _: () = assert!(mem::size_of::<Transition>() == 64);

/// What is seldom looked at.
struct Behind {
    heard: Box<[Heard]>,
    /// Executions that are in the sum.
    counted: u64,
    details: Details,
}

/// What was found so far.
pub(super) struct Memo {
    states: Vec<State>,
    numbers: HashMap<State, u32, BuildHasherDefault<Mixer>>,
    /// The current state.
    state: u32,
    transitions: Vec<Transition>,
    /// What is behind each of them.
    behind: Vec<Behind>,
    /// Finds transitions by their beginnings and what was heard: their numbers, from 1. Half of it is free.
    table: Vec<u32>,
    /// Transitions some of whose executions are not in the sum.
    uncounted: Vec<u32>,
    sum: Sum,
}

impl Memo {
    /// Nothing was found but a state, which is the current one.
    pub fn new(state: State) -> Memo {
        let mut memo = Memo {
            states: Vec::new(),
            numbers: HashMap::default(),
            state: 0,
            transitions: Vec::new(),
            behind: Vec::new(),
            table: vec![0; 2],
            uncounted: Vec::new(),
            sum: Sum::default(),
        };
        memo.enter(state);
        memo
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.states[self.state as usize]
    }

    /// Where a piece begins that is entered now.
    #[inline(always)]
    pub fn beginning(&self, entry: Entry, piece: u32) -> Beginning {
        Beginning { state_and_entry: self.state * Entry::COUNT + entry as u32, piece }
    }

    /// The number of a transition, if it is known. It is probably this one.
    #[inline(always)]
    pub fn find(&self, beginning: Beginning, heard: &[Heard], probably: u32) -> Option<u32> {
        if self.is(probably, beginning, heard) { Some(probably) } else { self.look_up(beginning, heard) }
    }

    /// Whether a transition has this number.
    #[inline(always)]
    fn is(&self, number: u32, beginning: Beginning, heard: &[Heard]) -> bool {
        let Some(transition) = self.transitions.get(number as usize) else { return false };
        transition.beginning == beginning
            && transition.count as usize == heard.len()
            && heard.first().is_none_or(|&first| first == transition.first)
            && (heard.len() < 2 || *self.behind[number as usize].heard == *heard)
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

    /// The course of a transition, and its details if they are of account to what follows.
    #[inline(always)]
    pub fn course(&self, number: u32) -> (&Course, Option<&Details>) {
        let transition = &self.transitions[number as usize];
        let details = (!transition.is_plain).then(|| &self.behind[number as usize].details);
        (&transition.course, details)
    }

    /// A transition is made once more.
    #[inline(always)]
    pub fn repeat(&mut self, number: u32) {
        let transition = &mut self.transitions[number as usize];
        if transition.uncounted == 0 {
            self.uncounted.push(number);
        }
        transition.uncounted += 1;
        self.state = transition.to;
    }

    /// A piece took a course that led to a state. If it begins there for the first time the course is remembered,
    /// and this says the number of the transition; if it is not remembered, the details.
    pub fn add(
        &mut self,
        beginning: Option<Beginning>,
        heard: &[Heard],
        details: Details,
        state: State,
    ) -> Result<u32, Details> {
        let has_room = !self.is_full();
        self.enter(state);
        let course = Course::of(&details).filter(|_| has_room);
        let (Some(beginning), Some(course), Ok(count)) = (beginning, course, u8::try_from(heard.len()))
        else {
            self.sum.add(&details, 1);
            return Err(details);
        };
        let number = self.transitions.len() as u32;
        self.transitions.push(Transition {
            beginning,
            first: heard.first().copied().unwrap_or(Heard::Nothing),
            count,
            is_plain: details.lines.is_empty() && details.compared.is_empty(),
            to: self.state,
            uncounted: 0,
            course,
        });
        self.behind.push(Behind { heard: heard.into(), counted: 0, details });
        if 2 * self.transitions.len() <= self.table.len() {
            self.note(number);
        } else {
            self.table = vec![0; 2 * self.table.len()];
            (0..=number).for_each(|number| self.note(number));
        }
        self.repeat(number);
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

    fn enter(&mut self, state: State) {
        self.state = match self.numbers.get(&state) {
            Some(&number) => number,
            None => {
                let number = self.states.len() as u32;
                self.numbers.insert(state.clone(), number);
                self.states.push(state);
                number
            }
        };
    }

    /// Whether no more can be remembered.
    pub fn is_full(&self) -> bool {
        self.transitions.len() == MOST || self.states.len() >= MOST_STATES
    }

    /// Forgets all but the current state and what was spent.
    pub fn forget(&mut self) {
        let mut rest = Memo::new(self.state().clone());
        rest.sum = self.count().clone();
        *self = rest;
    }

    /// Adds what the instructions of a piece cost by these transitions.
    pub fn add_sites(&self, transitions: &[u32], sites: &mut [SiteCycles]) {
        for &number in transitions {
            let Behind { counted, details, .. } = &self.behind[number as usize];
            details.add_sites(counted + self.transitions[number as usize].uncounted, sites);
        }
    }

    /// What was spent.
    pub fn count(&mut self) -> &Sum {
        for number in self.uncounted.drain(..) {
            let uncounted = mem::take(&mut self.transitions[number as usize].uncounted);
            let Behind { counted, details, .. } = &mut self.behind[number as usize];
            self.sum.add(details, uncounted);
            *counted += uncounted;
        }
        &self.sum
    }

    /// The same, without taking note of it.
    pub fn counted(&self) -> Sum {
        let mut sum = self.sum.clone();
        for &number in &self.uncounted {
            sum.add(&self.behind[number as usize].details, self.transitions[number as usize].uncounted);
        }
        sum
    }
}

/// Where the search for a transition starts.
#[inline(always)]
fn place(beginning: Beginning, heard: &[Heard]) -> usize {
    let mut mixer = Mixer::default();
    mixer.write_u64(u64::from(beginning.state_and_entry) << 32 | u64::from(beginning.piece));
    heard.iter().for_each(|one| one.hash(&mut mixer));
    (mixer.finish() >> 32) as usize
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
