//! The kinds of instructions that a summary counts separately.

use events::Block;
use isa::{ControlTransfer, InstructionSet, TransferKind, TransferTarget};

/// A kind of instruction, or something that an instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Any.
    Instruction,
    /// One that reads memory.
    Load,
    /// One that writes memory.
    Store,
    /// A load-locked or store-conditional one, which is a load or a store too.
    Locked,
    /// A conditional branch.
    Conditional,
    /// A conditional branch that was taken.
    Taken,
    /// An unconditional branch that does not call.
    Branch,
    /// A jump that neither calls nor returns.
    Jump,
    /// A call.
    Call,
    /// A return.
    Return,
    /// A call of the system.
    System,
    /// An access whose address is not a multiple of its size.
    Unaligned,
}

impl EventKind {
    /// Every kind, with the name of what it counts.
    pub const ALL: [(EventKind, &'static str); 12] = [
        (EventKind::Instruction, "instructions"),
        (EventKind::Load, "loads"),
        (EventKind::Store, "stores"),
        (EventKind::Locked, "locked ones of both"),
        (EventKind::Conditional, "conditional branches"),
        (EventKind::Taken, "taken ones of these"),
        (EventKind::Branch, "unconditional branches"),
        (EventKind::Jump, "jumps"),
        (EventKind::Call, "calls"),
        (EventKind::Return, "returns"),
        (EventKind::System, "system calls"),
        (EventKind::Unaligned, "unaligned accesses"),
    ];
}

/// Counts by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds([u64; EventKind::ALL.len()]);

impl Kinds {
    /// For the instructions of a block, each once.
    pub fn of(block: &Block) -> Kinds {
        let mut kinds = Kinds::default();
        block.words.iter().for_each(|&word| kinds.add_times(&Kinds::of_word(block.instruction_set, word), 1));
        kinds
    }

    /// For an instruction word.
    pub fn of_word(set: &dyn InstructionSet, word: u32) -> Kinds {
        let mut kinds = Kinds::default();
        kinds.add(EventKind::Instruction, 1);
        let Some(summary) = set.summary(word) else { return kinds };
        for access in summary.accesses() {
            kinds.add(if access.is_store { EventKind::Store } else { EventKind::Load }, 1);
            kinds.add(EventKind::Locked, u64::from(access.is_locked));
        }
        kinds.add(EventKind::System, u64::from(summary.is_system_call));
        if let Some(transfer) = summary.transfer {
            kinds.add(transfer_kind(transfer), 1);
        }
        kinds
    }

    /// Adds to the count of a kind.
    #[inline]
    pub fn add(&mut self, kind: EventKind, count: u64) {
        self.0[kind as usize] += count;
    }

    /// Adds other counts, multiplied by `times`.
    pub fn add_times(&mut self, others: &Kinds, times: u64) {
        self.0.iter_mut().zip(others.0).for_each(|(sum, other)| *sum += times * other);
    }

    /// The count of a kind.
    pub fn get(&self, kind: EventKind) -> u64 {
        self.0[kind as usize]
    }
}

/// How an instruction transfers control.
fn transfer_kind(transfer: ControlTransfer) -> EventKind {
    match (transfer.kind, transfer.target) {
        _ if transfer.is_conditional => EventKind::Conditional,
        (TransferKind::Call, _) => EventKind::Call,
        (TransferKind::Return, _) => EventKind::Return,
        (TransferKind::Jump, TransferTarget::Relative(_)) => EventKind::Branch,
        (TransferKind::Jump, TransferTarget::Register { .. }) => EventKind::Jump,
    }
}
