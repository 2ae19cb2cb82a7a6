//! The kinds of instructions that a summary counts separately.

use isa::{Flags, Format, Instruction};

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
    /// For instruction words, each once.
    pub fn of(words: &[u32]) -> Kinds {
        let mut kinds = Kinds::default();
        words.iter().for_each(|&word| kinds.add_word(word));
        kinds
    }

    /// Counts an instruction word.
    pub fn add_word(&mut self, word: u32) {
        self.add(EventKind::Instruction, 1);
        let Some(instruction) = isa::decode(word) else { return };
        if instruction.access_size().is_some() {
            let is_store = instruction.op.is(Flags::STORE);
            self.add(if is_store { EventKind::Store } else { EventKind::Load }, 1);
            self.add(EventKind::Locked, u64::from(instruction.op.is(Flags::LOCKED)));
        }
        if let Some(kind) = transfer(instruction) {
            self.add(kind, 1);
        }
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

/// How an instruction transfers control, if it does.
fn transfer(instruction: Instruction) -> Option<EventKind> {
    let op = instruction.op;
    match op.format() {
        Format::Pal => (instruction.name() == "callsys").then_some(EventKind::System),
        Format::Branch | Format::MemoryJump => Some(match () {
            () if op.is(Flags::CONDITIONAL) => EventKind::Conditional,
            () if op.is(Flags::CALL) => EventKind::Call,
            () if op.is(Flags::RETURN) => EventKind::Return,
            () if op.format() == Format::Branch => EventKind::Branch,
            () => EventKind::Jump,
        }),
        _ => None,
    }
}
