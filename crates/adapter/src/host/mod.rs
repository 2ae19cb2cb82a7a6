//! Programs of the host, which drive an adapter.

mod cpu;
pub mod log;
mod regular;
mod replay;
mod ring;
mod traffic;

use crate::description::AdapterDescription;
use crate::faults::LinkFaults;
use crate::hardware::{FarEnd, Hardware, HostEvent};

pub use regular::{DataOrigin, TrafficDirection, TrafficError, TrafficResult, TrafficSettings};
pub use replay::{LogReplay, ReplayError, ReplayResult};
pub use ring::CommandRing;
pub use traffic::Traffic;

/// A program of the host: it learns events and drives the adapter.
pub trait AdapterProgram {
    /// Begins.
    fn start(&mut self, hardware: &mut Hardware);
    /// Learns an event.
    fn observe(&mut self, event: HostEvent, hardware: &mut Hardware);
    /// Whether there is nothing left to do.
    fn is_finished(&self) -> bool;
}

/// An adapter with the program that drives it.
#[derive(Clone, Debug)]
pub struct AdapterModel<H> {
    hardware: Hardware,
    host: H,
    is_started: bool,
}

/// Why a run ended before the program had finished: nothing will happen any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the adapter stands still at {time} ps before its program has finished: buffers or credits are exhausted for good"
)]
pub struct Stalled {
    /// The time of the last event.
    pub time: u64,
}

impl<H: AdapterProgram> AdapterModel<H> {
    /// A model at its start.
    ///
    /// # Panics
    ///
    /// If packets are to have contents, but the adapter has hidden buffers.
    pub fn new(
        description: &AdapterDescription,
        far_end: FarEnd,
        faults: LinkFaults,
        host: H,
    ) -> AdapterModel<H> {
        let has_contents = matches!(far_end, FarEnd::LoopWithContents(_));
        let is_exposed = description.buffering == crate::description::Buffering::Exposed;
        assert!(is_exposed || !has_contents, "hidden buffers have no contents in this model");
        AdapterModel { hardware: Hardware::new(description, far_end, faults), host, is_started: false }
    }

    /// The hardware.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// The program.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The program, when the run is over.
    pub fn into_host(self) -> H {
        self.host
    }

    /// Runs until the program has finished.
    pub fn run(&mut self) -> Result<(), Stalled> {
        while !self.host.is_finished() {
            if !self.step() {
                return Err(Stalled { time: self.hardware.now() });
            }
        }
        Ok(())
    }

    /// Makes the next event happen. False if nothing will happen any more.
    pub fn step(&mut self) -> bool {
        if !self.is_started {
            self.is_started = true;
            self.host.start(&mut self.hardware);
            return true;
        }
        let goes_on = self.hardware.step();
        while let Some(event) = self.hardware.next_event() {
            self.host.observe(event, &mut self.hardware);
        }
        goes_on
    }
}
