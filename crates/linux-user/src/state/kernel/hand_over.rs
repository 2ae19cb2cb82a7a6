//! The state of a process that executes a program of another guest.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use super::Kernel;
use crate::abi::Abi;
use crate::state::forks::Forks;
use crate::state::signals::Signals;
use crate::state::threads::{Task, Threads};

impl<G: Abi> Kernel<G> {
    /// The state for a program of another guest, once [`Kernel::execute`] has been called. Its only thread is the calling one.
    pub fn hand_over<H: Abi>(&mut self, first: &Task<G>) -> (Kernel<H>, Task<H>) {
        let task = Task {
            signals: Signals::new(H::guest_mask(G::host_mask(first.signals.mask))),
            clear_at_end: 0,
            address: first.address,
            number: 0,
            reported: 0,
        };
        let kernel = Kernel {
            instructions: self.instructions,
            unaligned: self.unaligned,
            forks: std::mem::replace(&mut self.forks, Forks::new()),
            children: self.children,
            ordinal: self.ordinal,
            process: self.process,
            parent: None,
            threads: Threads::new(&task),
            settings: self.settings.clone(),
            sysroot_machine: self.sysroot_machine,
            executable: take(&mut self.executable),
            command: take(&mut self.command),
            arguments: take(&mut self.arguments),
            stack: take(&mut self.stack),
            heap: take(&mut self.heap),
            actions: self.actions.hand_over(),
            held: take(&mut self.held),
            clock: self.clock,
            random_state: self.random_state,
            abi: H::ProcessState::default(),
            originals: take(&mut self.originals),
            interpreter: 0..0,
            images: Vec::new(),
            attached: BTreeMap::new(),
            named: BTreeSet::new(),
            refused: take(&mut self.refused),
            limits: self.limits,
            timers: take(&mut self.timers),
            contexts: take(&mut self.contexts),
            deferred_reads: take(&mut self.deferred_reads),
            special: take(&mut self.special),
            opened_memory: self.opened_memory,
            opened_netlink: self.opened_netlink,
            shares_descriptors: self.shares_descriptors,
            debugger: None,
        };
        (kernel, task)
    }
}
