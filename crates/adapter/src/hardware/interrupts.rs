//! Interrupts of two classes, each with a delay that its service writes.

use super::command::HostEvent;
use super::parts::agenda::Actor;
use super::{Hardware, Picoseconds};
use crate::clock::{NANOSECOND, NEVER};

const ACTORS: [Actor; 2] = [Actor::FirstInterrupt, Actor::SecondInterrupt];

impl Hardware {
    /// Something has happened of a class.
    pub(super) fn raise(&mut self, class: usize) {
        if self.description.interrupts.is_none() || self.interrupts[class].is_pending {
            return;
        }
        self.interrupts[class].is_pending = true;
        self.schedule_interrupt(class);
    }

    /// The host writes the delay of a class, in ns, which begins now and ends the service.
    pub(super) fn hold_off(&mut self, class: usize, delay: u32) {
        let line = &mut self.interrupts[class];
        line.armed = self.now + Picoseconds::from(delay) * NANOSECOND;
        line.is_served = false;
        self.schedule_interrupt(class);
    }

    /// The host has read the causes: what has happened so far is known.
    pub(super) fn cause_read(&mut self) {
        for class in 0..self.interrupts.len() {
            self.interrupts[class].is_pending = false;
            self.schedule_interrupt(class);
        }
    }

    fn schedule_interrupt(&mut self, class: usize) {
        let line = &self.interrupts[class];
        let time = if line.is_pending && !line.is_served { line.armed.max(self.now) } else { NEVER };
        self.agenda.set(ACTORS[class], time);
    }

    pub(super) fn interrupt(&mut self, class: usize) {
        self.interrupts[class].is_pending = false;
        self.interrupts[class].is_served = true;
        self.schedule_interrupt(class);
        self.counts.interrupts += 1;
        self.events.push_back(HostEvent::Interrupt(class));
    }
}
