//! The view of unwinders at an instruction: the tables of an image say where the caller's frame and registers are, and the state
//! of the symbolic execution says what is there. What they find by the original's tables they must find by the optimized image's.

use super::context::ProofContext;
use super::convention::{PRESERVED, RA, SP, bit, registers};
use super::machine::{ImageCode, SymbolicMachine};
use super::term::{Node, OffsetTerm};
use crate::unwind::{FrameAddress, UnwindRow, UnwindRule};

/// The known registers of a frame. Those of a caller's frame are known as far as a row says where they are.
type KnownValue = [Option<OffsetTerm>; 64];

impl SymbolicMachine {
    /// The registers of the procedure's caller that an unwinder finds from the instruction at an address on: preserved ones, the
    /// return address and the stack pointer.
    pub fn unwound(&self, address: u64, code: &ImageCode, context: &mut ProofContext) -> u64 {
        let mut known: KnownValue = self.registers.map(Some);
        let mut at = address;
        // Calls that are carried out here have frames of their own.
        for _ in 0..=self.inlined.len() {
            let Some(caller) = code.unwinding.row(at).and_then(|row| self.caller(row, &known, context))
            else {
                return 0;
            };
            known = caller;
            at = known[RA as usize].and_then(OffsetTerm::as_address).unwrap_or_default().wrapping_sub(1);
        }
        let is_found = |&register: &u8| {
            let side = Some(code.side).filter(|_| PRESERVED & bit(register) != 0);
            known[register as usize] == Some(context.terms.value(Node::Entry(register, side)))
        };
        registers(PRESERVED | bit(RA) | bit(SP)).filter(is_found).fold(0, |set, register| set | bit(register))
    }

    /// The registers of the caller of a frame.
    fn caller(&self, row: &UnwindRow, known: &KnownValue, context: &ProofContext) -> Option<KnownValue> {
        let register = |number: u16| known.get(usize::from(number)).copied().flatten();
        let frame = match row.frame_address {
            FrameAddress::Register(number, offset) => register(number)?.plus(offset as u64),
            FrameAddress::Expression(_) => return None,
        };
        let saved = |offset: i64| self.slot(context.in_frame(frame.plus(offset as u64))?);
        let mut caller = *known;
        caller[SP as usize] = Some(frame);
        for (number, rule) in &row.registers {
            let Some(value) = caller.get_mut(usize::from(*number)) else { continue };
            *value = match rule {
                UnwindRule::Offset(offset) => saved(*offset),
                UnwindRule::ValueOffset(offset) => Some(frame.plus(*offset as u64)),
                UnwindRule::Register(other) => register(*other),
                UnwindRule::Undefined | UnwindRule::Expression(_) | UnwindRule::ValueExpression(_) => None,
            };
        }
        Some(caller)
    }
}
