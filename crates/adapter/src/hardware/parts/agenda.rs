//! The times of the next events. Each part of the hardware has one event at most, so that a table of their times is the event
//! queue: with a dozen entries, finding the least is faster than a heap.

use std::collections::VecDeque;

use crate::clock::{NEVER, Picoseconds};

/// A part of the model with a next event. Of events at the same time, those of the first part happen first; the bus is the last,
/// so that its arbiter sees all requests of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(in crate::hardware) enum Actor {
    /// Data of a packet to send are in the data memory.
    Ready,
    /// The transmitter sends a cell.
    Slot,
    /// A cell arrives.
    Arrival,
    /// Credits arrive at the sender of cells.
    Credit,
    /// The remote end sends a cell.
    Remote,
    /// Data that go to the host have left the data memory.
    Fetched,
    /// The first class interrupts.
    FirstInterrupt,
    /// The second class interrupts.
    SecondInterrupt,
    /// The host's program goes on.
    Host,
    /// The bus.
    Bus,
}

const ACTORS: [Actor; 10] = [
    Actor::Ready,
    Actor::Slot,
    Actor::Arrival,
    Actor::Credit,
    Actor::Remote,
    Actor::Fetched,
    Actor::FirstInterrupt,
    Actor::SecondInterrupt,
    Actor::Host,
    Actor::Bus,
];

/// The times of all actors.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct Agenda([Picoseconds; ACTORS.len()]);

impl Agenda {
    pub(in crate::hardware) fn new() -> Agenda {
        Agenda([NEVER; ACTORS.len()])
    }

    /// Forgets the events of the adapter; those of its host and of the bus stay.
    pub(in crate::hardware) fn clear_adapter(&mut self) {
        let of_adapter = ACTORS.into_iter().filter(|actor| !matches!(actor, Actor::Host | Actor::Bus));
        of_adapter.for_each(|actor| self.set(actor, NEVER));
    }

    pub(in crate::hardware) fn set(&mut self, actor: Actor, time: Picoseconds) {
        self.0[actor as usize] = time;
    }

    /// The next event; none if nothing will happen.
    pub(in crate::hardware) fn first(&self) -> Option<(Picoseconds, Actor)> {
        let (mut first, mut time) = (0, self.0[0]);
        for (index, &other) in self.0.iter().enumerate().skip(1) {
            if other < time {
                (first, time) = (index, other);
            }
        }
        (time != NEVER).then_some((time, ACTORS[first]))
    }
}

/// Things that become due in the order in which they were put in.
#[derive(Clone, Debug)]
pub(in crate::hardware) struct Delayed<T>(VecDeque<(Picoseconds, T)>);

impl<T> Delayed<T> {
    pub(in crate::hardware) fn new() -> Delayed<T> {
        Delayed(VecDeque::new())
    }

    /// Puts a thing in. It is due not before the one in front of it.
    pub(in crate::hardware) fn push(&mut self, time: Picoseconds, thing: T) {
        let time = time.max(self.0.back().map_or(0, |(last, _)| *last));
        self.0.push_back((time, thing));
    }

    /// The time at which the first thing is due.
    pub(in crate::hardware) fn due(&self) -> Picoseconds {
        self.0.front().map_or(NEVER, |(time, _)| *time)
    }

    pub(in crate::hardware) fn pop(&mut self) -> Option<T> {
        self.0.pop_front().map(|(_, thing)| thing)
    }

    pub(in crate::hardware) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::hardware) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, thing)| thing)
    }

    pub(in crate::hardware) fn clear(&mut self) {
        self.0.clear();
    }
}
