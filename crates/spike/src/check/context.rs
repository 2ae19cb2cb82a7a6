//! The facts that a proof collects on all paths: the expressions, accesses to the frame, loads, and the instructions that were
//! executed.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet as HashSet;

use super::convention::SP;
use super::term::{Node, OffsetTerm, TermNumber, Terms};

/// The facts that a proof collects on all paths.
#[derive(Debug)]
pub struct ProofContext {
    /// The expressions.
    pub terms: Terms,
    /// The memory that both images see.
    pub memory: TermNumber,
    /// The stack pointer at the entry.
    pub stack: TermNumber,
    /// Where each image saves registers, relative to the stack pointer at the entry.
    pub saves: [BTreeSet<(i64, u8)>; 2],
    /// Where the original saves registers in its own frame, not in that of an inlined call.
    pub own_saves: BTreeSet<i64>,
    /// Other accesses to that frame: distance and bytes.
    pub accesses: BTreeSet<(i64, u8)>,
    /// An access to a saved register that is no restore.
    pub overlap: Option<i64>,
    /// Whether the frame may hold anything but saved registers, or its address be known elsewhere.
    pub is_frame_used: bool,
    /// Loads that the optimized image carries out, since the last action, and the registers that unwinders find there.
    pub new_loads: Vec<(TermNumber, u64)>,
    /// Addresses of the optimized image's instructions that were executed.
    pub covered: HashSet<u64>,
    /// Whether each image has accessed memory below the stack pointer since the last action.
    pub is_below_stack: [bool; 2],
}

impl ProofContext {
    /// Nothing is known yet.
    pub fn new(mut terms: Terms) -> ProofContext {
        let stack = terms.symbol(Node::Entry(SP, None));
        let memory = terms.fresh();
        ProofContext {
            terms,
            memory,
            stack,
            saves: Default::default(),
            own_saves: BTreeSet::new(),
            accesses: BTreeSet::new(),
            overlap: None,
            is_frame_used: false,
            new_loads: Vec::new(),
            covered: HashSet::default(),
            is_below_stack: [false; 2],
        }
    }

    /// The distance of an address from the stack pointer at the entry, if it is known.
    pub fn in_frame(&self, address: OffsetTerm) -> Option<i64> {
        (address.symbol == self.stack).then_some(address.offset as i64)
    }
}
