//! The stack pointer of a thread, as far as the addresses of its accesses show it.

use isa::{InstructionSet, IntegerResult, Register, SourceOperand, TransferKind};

/// The effect of a block's instructions on the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackUse {
    /// The access from whose address the stack pointer at the beginning of the block follows.
    before: Option<ShownBy>,
    change: StackChange,
    /// Bytes that the call at the end pushes, and its return pops.
    pushed: u8,
}

/// An access of a block by its number, and the difference from its address to the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShownBy {
    access: u32,
    difference: i64,
}

/// The stack pointer at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StackChange {
    /// It is that at the beginning and a constant.
    By(i64),
    /// It was set to a value, which this access shows.
    Set(Option<ShownBy>),
}

impl ShownBy {
    fn value(self, addresses: &[u64]) -> Option<u64> {
        addresses.get(self.access as usize).map(|address| address.wrapping_add_signed(self.difference))
    }
}

impl StackUse {
    /// Of a block of these instructions.
    pub(crate) fn new(set: &dyn InstructionSet, words: &[u32]) -> StackUse {
        if set.describes() { StackUse::described(set, words) } else { StackUse::of_registers(set, words) }
    }

    /// Of instructions whose registers are known.
    fn of_registers(set: &dyn InstructionSet, words: &[u32]) -> StackUse {
        let register = set.stack_pointer();
        let (mut before, mut change, mut access) = (None, StackChange::By(0), 0);
        for summary in words.iter().filter_map(|&word| set.summary(word)) {
            for memory in summary.accesses() {
                if memory.base == register && memory.mask == u64::MAX {
                    let difference = memory.displacement.wrapping_neg();
                    match &mut change {
                        StackChange::By(changed) => {
                            let difference = difference.wrapping_sub(*changed);
                            before.get_or_insert(ShownBy { access, difference });
                        }
                        StackChange::Set(shown) => *shown = Some(ShownBy { access, difference }),
                    }
                }
                access += 1;
            }
            let constant = match summary.result {
                Some((
                    written,
                    IntegerResult::Sum(SourceOperand::Register(base), SourceOperand::Constant(by)),
                )) if (written, base) == (register, register) => Some(by as i64),
                Some((
                    written,
                    IntegerResult::Difference(SourceOperand::Register(base), SourceOperand::Constant(by)),
                )) if (written, base) == (register, register) => Some((by as i64).wrapping_neg()),
                _ => None,
            };
            let is_written = summary.unknown >> register & 1 != 0
                || summary.written.contains(&Some(Register::Integer(register)))
                || summary.result.is_some_and(|(written, _)| written == register);
            match (&mut change, constant) {
                (StackChange::By(changed), Some(by)) => *changed = changed.wrapping_add(by),
                (StackChange::Set(Some(shown)), Some(by)) => {
                    shown.difference = shown.difference.wrapping_add(by);
                }
                (_, None) if is_written => change = StackChange::Set(None),
                _ => {}
            }
        }
        StackUse { before, change, pushed: 0 }
    }

    /// Of instructions whose registers are not known: calls that store their return address push it, and the returns pop it.
    fn described(set: &dyn InstructionSet, words: &[u32]) -> StackUse {
        let accesses = |word: u32| set.summary(word).into_iter().flat_map(|summary| summary.accesses());
        let unknown = StackUse { before: None, change: StackChange::Set(None), pushed: 0 };
        let Some((&last, earlier)) = words.split_last() else { return unknown };
        let first = earlier.iter().map(|&word| accesses(word).count()).sum::<usize>();
        let kind = set.summary(last).and_then(|summary| summary.transfer).map(|transfer| transfer.kind);
        let is_call = match kind {
            Some(TransferKind::Call) => true,
            Some(TransferKind::Return) => false,
            _ => return unknown,
        };
        match accesses(last).enumerate().filter(|(_, access)| access.is_store == is_call).last() {
            Some((index, access)) => {
                let difference = if is_call { 0 } else { access.size.into() };
                let shown = ShownBy { access: (first + index) as u32, difference };
                let pushed = if is_call { access.size } else { 0 };
                StackUse { change: StackChange::Set(Some(shown)), pushed, ..unknown }
            }
            None => unknown,
        }
    }
}

/// The stack pointer of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackPointer {
    /// At the present block, if it is known.
    now: Option<u64>,
    /// Whether it was set to a value since it was last known.
    is_set: bool,
}

impl StackPointer {
    /// It may be anything.
    pub(super) fn forget(&mut self) {
        *self = StackPointer::default();
    }

    /// At the beginning of the present block, if it is known.
    pub(super) fn now(&self) -> Option<u64> {
        self.now
    }

    /// Whether it is known, and was set to another value than constants gave it before.
    pub(super) fn is_set(&self) -> bool {
        self.is_set && self.now.is_some()
    }

    /// After the return from the present block's function, which a block called.
    pub(super) fn after_return(&self, caller: &StackUse) -> Option<u64> {
        self.now.map(|now| now.wrapping_add(caller.pushed.into()))
    }

    /// A block begins.
    pub(super) fn enter(&mut self, block: &StackUse, addresses: &[u64]) {
        if let Some(shown) = block.before.and_then(|before| before.value(addresses)) {
            self.is_set |= self.now.is_some_and(|now| now != shown);
            self.now = Some(shown);
        }
    }

    /// A block ends.
    pub(super) fn leave(&mut self, block: &StackUse, addresses: &[u64]) {
        match block.change {
            StackChange::By(by) => {
                self.is_set &= self.now.is_none();
                self.now = self.now.map(|now| now.wrapping_add_signed(by));
            }
            StackChange::Set(shown) => {
                self.is_set = true;
                self.now = shown.and_then(|shown| shown.value(addresses));
            }
        }
    }
}
