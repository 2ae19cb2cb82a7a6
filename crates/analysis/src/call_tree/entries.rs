//! The nodes of why the kernel was entered.

use std::collections::HashMap;

use events::record::Mark;
use trace::{ExecutionMode, Header};

use super::{CallTree, NodeId};
use crate::kernel_entries::{EntryReason, KernelEntries, UNKNOWN_CALL};

/// The rows of a table of a whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRows {
    /// Modes of the processor.
    Mode,
    /// Reasons why the kernel was entered.
    Reason,
    /// System calls; and everything else.
    SystemCall,
}

/// The nodes of reasons.
pub struct EntryNodes {
    pub(super) header: Header,
    call_name: fn(u32) -> String,
    threads: HashMap<u32, KernelEntries>,
    /// None is the reason for which programs are executed.
    pub(super) nodes: HashMap<Option<EntryReason>, NodeId>,
}

/// The row of what programs execute.
const PROGRAMS: &str = "(programs)";
/// In a table of system calls, the row of what is executed for none.
const NO_CALL: &str = "(no system call)";

impl EntryNodes {
    pub fn new(header: &Header, call_name: fn(u32) -> String) -> EntryNodes {
        EntryNodes { header: header.clone(), call_name, threads: HashMap::new(), nodes: HashMap::new() }
    }

    /// The node of the next execution of a thread, of a block at this address.
    pub fn node(&mut self, thread: u32, address: u64, tree: &mut CallTree) -> NodeId {
        let entries = self.threads.entry(thread).or_default();
        let reason = match self.header.mode(address) {
            ExecutionMode::User => {
                entries.in_program();
                None
            }
            ExecutionMode::Kernel | ExecutionMode::Pal => Some(entries.reason()),
        };
        self.reason_node(reason, tree)
    }

    pub fn mark(&mut self, thread: u32, mark: Mark, tree: &mut CallTree) {
        if let Some(reason) = self.threads.entry(thread).or_default().mark(mark) {
            let node = self.reason_node(Some(reason), tree);
            tree.count_call(node);
        }
    }

    fn reason_node(&mut self, reason: Option<EntryReason>, tree: &mut CallTree) -> NodeId {
        *self.nodes.entry(reason).or_insert_with(|| tree.named(None, &format!("{reason:?}")))
    }

    /// The row that what is executed for a reason, in a mode, is added to.
    pub(super) fn row(&self, rows: EntryRows, reason: Option<EntryReason>, mode: ExecutionMode) -> String {
        match (rows, reason) {
            (EntryRows::Mode, _) => mode.name().into(),
            (_, None) => PROGRAMS.into(),
            (EntryRows::Reason, Some(reason)) => reason.name(),
            (EntryRows::SystemCall, Some(EntryReason::SystemCall(UNKNOWN_CALL))) => "(unknown)".into(),
            (EntryRows::SystemCall, Some(EntryReason::SystemCall(number))) => (self.call_name)(number),
            (EntryRows::SystemCall, Some(_)) => NO_CALL.into(),
        }
    }
}
