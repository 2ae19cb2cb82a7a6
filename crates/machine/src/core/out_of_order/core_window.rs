//! The part of a core's state that wrong paths change and give back.

use super::description::OutOfOrder;
use super::fetch::FetchState;
use super::rules::REGISTERS;
use super::window::{Queue, Station};

/// The part of the core's state that a wrong path changes and gives back.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub fetch: FetchState,
    /// Of the instructions that wait for dispatch: the cycle of their dispatch.
    pub buffer: Queue,
    /// The cycle of the last dispatch, and the instructions dispatched in it.
    pub dispatched: (u64, u32),
    pub reorder: Queue,
    /// Registers for renaming: integer and floating-point.
    pub renamed: [Queue; 2],
    pub loads: Queue,
    pub stores: Queue,
    pub stations: Vec<Station>,
    /// When an instruction that needs a register can be issued.
    pub ready: [u64; REGISTERS],
    /// When each unit that is not pipelined is free.
    pub units: Vec<u64>,
    /// When the addresses of all stores are known.
    pub known_stores: u64,
    /// When the last store is written, and the stores that are written in that cycle.
    pub written: (u64, u32),
    /// When the last memory barrier, and the last barrier of traps, is executed.
    pub barriers: [u64; 2],
    /// When the last instruction is executed: of a branch, when it is resolved.
    pub executed: u64,
}

impl Window {
    /// The window of an idle core.
    pub fn new(core: &OutOfOrder) -> Window {
        let renamed = [core.integer_registers, core.float_registers];
        Window {
            fetch: FetchState::new(),
            buffer: Queue::new(core.fetch.buffer),
            dispatched: (0, 0),
            reorder: Queue::new(core.reorder_buffer),
            // Without a limit of their own, there are as many as instructions in the window.
            renamed: renamed.map(|registers| Queue::new(registers.unwrap_or(core.reorder_buffer))),
            loads: Queue::new(core.loads.queue),
            stores: Queue::new(core.stores.queue),
            stations: core.stations.values().map(|&entries| Station::new(entries)).collect(),
            ready: [0; REGISTERS],
            units: vec![0; core.units().len()],
            known_stores: 0,
            written: (0, 0),
            barriers: [0; 2],
            executed: 0,
        }
    }

    /// Copies another window into this one.
    pub fn copy_from(&mut self, other: &Window) {
        let Window { buffer, reorder, renamed, loads, stores, stations, units, .. } = self;
        let queues = [buffer, reorder, loads, stores].into_iter().chain(renamed);
        let [integers, floats] = &other.renamed;
        let others = [&other.buffer, &other.reorder, &other.loads, &other.stores, integers, floats];
        queues.zip(others).for_each(|(own, other)| own.copy_from(other));
        stations.iter_mut().zip(&other.stations).for_each(|(own, other)| own.copy_from(other));
        units.clone_from(&other.units);
        (self.fetch, self.dispatched, self.ready) = (other.fetch, other.dispatched, other.ready);
        (self.known_stores, self.written, self.barriers) =
            (other.known_stores, other.written, other.barriers);
        self.executed = other.executed;
    }
}
