//! The instructions of counters.

use isa::encode::{self, EncodeError};
use isa::{Op, encode::SecondOperand::Register as R};

use super::Update;
use super::registers::{CANDIDATES, Set};
use crate::program::{Anchor, CodeBlockId, GP, ImageCounter, LiftedInstruction, Reference, SP, ZERO};
use crate::unwind::{FrameAddress, NO_ROW, UnwindingTables};

/// The action of inserted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertedAction {
    /// Adds one to a counter.
    Count(u32),
    /// Keeps the distance to the address in a register.
    Keep(u32, u8),
    /// Adds one to the counter of the address in a register, in the procedure with this entry.
    CountTarget(u32, u8, CodeBlockId),
}

/// The state in which it is executed.
#[derive(Clone, Copy, Debug)]
pub struct InsertedState {
    /// The registers that it must not overwrite.
    pub live: Set,
    /// Whether the global pointer is in its register.
    pub has_pointer: bool,
    /// The frame.
    pub frame: u32,
}

/// Bytes of the stack for registers that are saved; the stack pointer is a multiple of 16.
const SAVED_BYTES: i16 = 16;

impl InsertedState {
    /// Two registers that may be overwritten, and how many of them must be saved.
    fn registers(&self, busy: Option<u8>) -> ([u8; 2], usize) {
        let free = |&register: &u8| self.live & 1 << register == 0 && Some(register) != busy;
        let used = |register: &u8| !free(register) && Some(*register) != busy;
        // The scratch register of stubs comes last: where it is saved, a branch from afar could not lead through a stub.
        let saved = CANDIDATES.iter().rev().copied().filter(used);
        let mut all = CANDIDATES.iter().copied().filter(free).chain(saved);
        let pair = [all.next(), all.next()].map(|one| one.unwrap_or(ZERO));
        (pair, pair.iter().filter(|register| !free(register)).count())
    }

    /// How many registers must be saved for an action, and whether the pointer is missing: the less, the better.
    pub fn cost(&self) -> (usize, bool) {
        (self.registers(None).1, !self.has_pointer)
    }
}

/// The instructions.
pub fn code(
    action: InsertedAction,
    update: Update,
    state: InsertedState,
    frames: &mut UnwindingTables,
) -> Vec<LiftedInstruction> {
    let busy = match action {
        InsertedAction::Count(_) => None,
        InsertedAction::Keep(_, register) | InsertedAction::CountTarget(_, register, _) => Some(register),
    };
    let ([a, b], saved) = state.registers(busy);
    let mut code = InsertedCode { words: Vec::new(), update };
    match encode_action(&mut code, action, state.has_pointer, a, b) {
        Ok(()) => {}
        Err(error) => unreachable!("the instructions of counters have legal operands: {error}"),
    }
    // Registers that are saved come last in the pair.
    saving(&[a, b][2 - saved..], code.words, state.frame, frames)
}

/// Instructions, with registers saved around them, two at most.
pub fn saving(
    registers: &[u8],
    mut code: Vec<(u32, Reference)>,
    frame: u32,
    frames: &mut UnwindingTables,
) -> Vec<LiftedInstruction> {
    let mut inner = frame;
    if !registers.is_empty() {
        inner = moved(frames, frame);
        let stack =
            |op, register, displacement| encode::memory(op, register, SP, displacement).unwrap_or_default();
        let slots = || registers.iter().zip([0, 8]);
        let mut all = vec![(stack(Op::Lda, SP, -SAVED_BYTES), Reference::None)];
        all.extend(slots().map(|(&register, at)| (stack(Op::Stq, register, at), Reference::None)));
        all.append(&mut code);
        all.extend(slots().map(|(&register, at)| (stack(Op::Ldq, register, at), Reference::None)));
        all.push((stack(Op::Lda, SP, SAVED_BYTES), Reference::None));
        code = all;
    }
    let instruction = |(index, (word, reference)): (usize, (u32, Reference))| {
        let frame = if index == 0 { frame } else { inner };
        LiftedInstruction { reference, ..LiftedInstruction::new(word, frame) }
    };
    code.into_iter().enumerate().map(instruction).collect()
}

/// The frame with the stack pointer moved.
fn moved(frames: &mut UnwindingTables, frame: u32) -> u32 {
    if frame == NO_ROW {
        return frame;
    }
    let mut row = frames.rows[frame as usize].clone();
    if let FrameAddress::Register(register, offset) = &mut row.frame_address
        && *register == u16::from(SP)
    {
        *offset += i64::from(SAVED_BYTES);
    }
    frames.number(row)
}

struct InsertedCode {
    words: Vec<(u32, Reference)>,
    update: Update,
}

impl InsertedCode {
    fn push(&mut self, word: u32) {
        self.words.push((word, Reference::None));
    }

    fn high(&mut self, word: u32, offset: u32, anchor: Anchor) {
        self.words.push((word, Reference::CounterHigh(ImageCounter { offset, anchor })));
    }

    fn low(&mut self, word: u32, offset: u32, anchor: Anchor) {
        self.words.push((word, Reference::CounterLow(ImageCounter { offset, anchor })));
    }

    /// Adds one to the counter whose address, less the lower half of a distance, is in `base`.
    fn add_one(
        &mut self,
        base: u8,
        value: u8,
        offset: u32,
        anchor: impl Fn(u8) -> Anchor,
    ) -> Result<(), EncodeError> {
        for (word, index) in self.update.instructions(value, base)?.into_iter().zip(0..) {
            match index {
                0 | 2 => self.low(word, offset, anchor(index)),
                _ => self.push(word),
            }
        }
        Ok(())
    }
}

fn encode_action(
    code: &mut InsertedCode,
    action: InsertedAction,
    has_pointer: bool,
    a: u8,
    b: u8,
) -> Result<(), EncodeError> {
    match action {
        InsertedAction::Count(offset) if has_pointer => {
            code.high(encode::memory(Op::Ldah, a, GP, 0)?, offset, Anchor::GlobalPointer);
            code.add_one(a, b, offset, |_| Anchor::GlobalPointer)
        }
        InsertedAction::Count(offset) => {
            code.push(encode::branch(Op::Br, a, 0)?);
            code.high(encode::memory(Op::Ldah, a, a, 0)?, offset, Anchor::Instruction(0));
            code.add_one(a, b, offset, |more| Anchor::Instruction(1 + more))
        }
        InsertedAction::Keep(offset, register) => {
            code.push(encode::branch(Op::Br, a, 0)?);
            // The address is relative to this instruction, so that it does not depend on where the image is loaded.
            code.high(encode::memory(Op::Ldah, b, a, 0)?, offset, Anchor::Instruction(0));
            code.push(encode::operate(Op::Subq, register, R(a), a)?);
            code.low(encode::memory(Op::Stq, a, b, 0)?, offset, Anchor::Instruction(2));
            Ok(())
        }
        InsertedAction::CountTarget(offset, register, entry) => {
            code.push(encode::branch(Op::Br, a, 0)?);
            code.push(encode::operate(Op::Subq, register, R(a), b)?);
            code.push(encode::operate(Op::S4addq, b, R(a), b)?);
            code.high(encode::memory(Op::Ldah, b, b, 0)?, offset, Anchor::Scaled(2, entry));
            code.add_one(b, a, offset, |more| Anchor::Scaled(3 + more, entry))
        }
    }
}
