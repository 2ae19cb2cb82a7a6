//! Transfers of control.

use isa::{Flags, InstructionFormat, Op};

use super::*;
use alpha::pal;

impl Emitter<'_> {
    /// A transfer of control, which ends the block; false if the instruction is none.
    pub(crate) fn transfer(&mut self, step: &DecodedInstruction, at: usize, block: &DecodedBlock) -> bool {
        let (back, target) = (block.end(), step.immediate as u64);
        if step.op.is(Flags::CONDITIONAL) {
            self.end_record(block);
            let condition = self.condition(step);
            self.branch(condition, target, back);
            return true;
        }
        match step.op.format() {
            InstructionFormat::Branch | InstructionFormat::MemoryJump => self.end_record(block),
            InstructionFormat::Pal => {}
            _ => return false,
        }
        self.complete_sign_extensions();
        match step.op {
            Op::Br => {
                self.write_constant(step.c, back);
                self.continue_at(target);
            }
            Op::Bsr => self.call(target, step.c, back),
            Op::Jsr => self.call_register(step.b.into(), step.c, block),
            Op::Ret => self.return_to(step.b.into(), step.c, back),
            Op::Jmp | Op::JsrCoroutine => self.jump_register(step.b.into(), step.c, back),
            Op::CallPal => return self.call_pal(step, at, block),
            _ => return false,
        }
        true
    }

    fn call_pal(&mut self, step: &DecodedInstruction, at: usize, block: &DecodedBlock) -> bool {
        match step.immediate {
            pal::RDUNIQ | pal::WRUNIQ => return false,
            pal::CALLSYS => self.system_call(block),
            _ => {
                let fault = self.fault(at);
                self.assembler.jump(fault);
            }
        }
        true
    }

    /// A comparison and the branch behind it that ends the block, in one; false if there is none here.
    pub(crate) fn compare_and_branch(&mut self, block: &DecodedBlock, at: usize) -> bool {
        let [step, branch] = &block.instructions[at..] else { return false };
        // Lookups in the hit filter come between the two, and change flags.
        if self.lookup.is_some() {
            return false;
        }
        if branch.a != step.c || !matches!(branch.op, Op::Beq | Op::Bne) || step.c >= 31 {
            return false;
        }
        let Some(mut condition) = self.compare(step) else { return false };
        self.end_record(block);
        self.write_condition(step.c, condition);
        if branch.op == Op::Beq {
            condition = condition.opposite();
        }
        self.branch(condition, branch.immediate as u64, block.end());
        true
    }

    /// Sets the flags for a conditional branch; when it is taken.
    fn condition(&mut self, step: &DecodedInstruction) -> Condition {
        if step.op.is_float() {
            return self.float_condition(step);
        }
        match step.op {
            Op::Blbc | Op::Blbs => {
                self.test_low_bit(step.a);
                if step.op == Op::Blbs { Condition::NotEqual } else { Condition::Equal }
            }
            _ => {
                self.test(step.a);
                match step.op {
                    Op::Beq => Condition::Equal,
                    Op::Bne => Condition::NotEqual,
                    Op::Blt => Condition::Less,
                    Op::Ble => Condition::LessOrEqual,
                    Op::Bgt => Condition::Greater,
                    _ => Condition::GreaterOrEqual,
                }
            }
        }
    }

    /// Minus zero counts as zero; all else is ordered as its sign says.
    pub(crate) fn float_condition(&mut self, step: &DecodedInstruction) -> Condition {
        const MINUS_ZERO: u64 = 1 << 63;
        self.read_float(step.a, RAX);
        let (bound, condition) = match step.op {
            Op::Fbeq | Op::Fbne => {
                self.assembler.shift(Shift::Left, OperandSize::Quad, RAX, 1);
                self.assembler.test(OperandSize::Quad, RAX);
                return if step.op == Op::Fbeq { Condition::Equal } else { Condition::NotEqual };
            }
            Op::Fbgt => {
                self.assembler.test(OperandSize::Quad, RAX);
                return Condition::Greater;
            }
            Op::Fblt => (MINUS_ZERO, Condition::Above),
            Op::Fbge => (MINUS_ZERO, Condition::BelowOrEqual),
            // Less by one, zero is the greatest.
            _ => {
                self.assembler.address(OperandSize::Quad, RAX, MemoryOperand { base: RAX, displacement: -1 });
                (MINUS_ZERO - 1, Condition::AboveOrEqual)
            }
        };
        self.assembler.constant(RCX, bound);
        self.assembler.alu(Alu::Cmp, OperandSize::Quad, RAX, RCX);
        condition
    }

    /// The operand of the thread's unique value.
    pub(crate) fn unique() -> MemoryOperand {
        field::<Cpu>(offset_of!(Cpu, unique))
    }
}
