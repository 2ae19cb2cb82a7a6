//! Transfers of control.

use super::*;

/// The target of `auipc` and `jalr` at the end of a block: together they are a direct transfer.
pub(super) fn pair_target(instructions: &[RiscvDecodedInstruction]) -> Option<u64> {
    let [.., upper, jump] = instructions else { return None };
    let is_pair = upper.op == RiscvOp::Auipc && jump.op == RiscvOp::Jalr && jump.rs1 == upper.rd;
    is_pair.then(|| (upper.immediate.wrapping_add(jump.immediate) & !1) as u64)
}

impl Emitter<'_> {
    /// A pair of `auipc` and `jalr`, which ends the block; false if there is none here.
    pub(crate) fn pair(&mut self, block: &RiscvBlock, at: usize) -> bool {
        let [upper, jump] = &block.instructions[at..] else { return false };
        let Some(target) = pair_target(&block.instructions[at..]) else { return false };
        if jump.is_return() {
            return false;
        }
        if upper.rd != jump.rd {
            self.write_constant(upper.rd, upper.immediate as u64);
        }
        self.end_record(block);
        self.complete_sign_extensions();
        self.direct(jump, target, block.end());
        true
    }

    /// A jump or call to a known address.
    fn direct(&mut self, step: &RiscvDecodedInstruction, target: u64, back: u64) {
        if step.is_call() {
            return self.call(target, step.rd, back);
        }
        self.write_constant(step.rd, back);
        self.continue_at(target);
    }

    /// A transfer of control, which ends the block; false if the instruction is none.
    pub(crate) fn transfer(&mut self, step: &RiscvDecodedInstruction, at: usize, block: &RiscvBlock) -> bool {
        let (back, target) = (block.end(), step.immediate as u64);
        match step.op {
            op if op.operands() == RiscvOperands::Branch => {
                self.end_record(block);
                let condition = self.condition(step);
                self.branch(condition, target, back);
            }
            RiscvOp::Jal => {
                self.end_record(block);
                self.complete_sign_extensions();
                self.direct(step, target, back);
            }
            RiscvOp::Jalr => {
                self.end_record(block);
                self.complete_sign_extensions();
                self.indirect(step, block);
            }
            RiscvOp::Ecall => {
                self.complete_sign_extensions();
                self.system_call(block);
            }
            // The interpreter raises the exception, or finds what is behind the barrier.
            RiscvOp::Ebreak | RiscvOp::FenceI | RiscvOp::CboZero => {
                let fault = self.fault(at);
                self.assembler.jump(fault);
            }
            _ => return false,
        }
        true
    }

    fn indirect(&mut self, step: &RiscvDecodedInstruction, block: &RiscvBlock) {
        let pointer = CodePointer { register: step.rs1, displacement: step.immediate as i32 };
        if step.is_call() {
            self.call_register(pointer, step.rd, block);
        } else if step.is_return() {
            self.return_to(pointer, step.rd, block.end());
        } else {
            self.jump_register(pointer, step.rd, block.end());
        }
    }

    /// Sets the flags for a conditional branch; when it is taken.
    fn condition(&mut self, step: &RiscvDecodedInstruction) -> Condition {
        use RiscvOp::*;
        let (first, second) = (step.rs1, step.rs2);
        let condition = match step.op {
            Beq => Condition::Equal,
            Bne => Condition::NotEqual,
            Blt => Condition::Less,
            Bge => Condition::GreaterOrEqual,
            Bltu => Condition::Below,
            _ => Condition::AboveOrEqual,
        };
        match (first, second) {
            (register, RiscvCpu::ZERO) if !matches!(step.op, Bltu | Bgeu) => {
                self.test(register);
                condition
            }
            // The second operand is compared with zero: the order is reversed.
            (RiscvCpu::ZERO, register) => {
                self.test(register);
                match step.op {
                    Blt => Condition::Greater,
                    Bge => Condition::LessOrEqual,
                    // Zero is less, unsigned, than all others.
                    Bltu => Condition::NotEqual,
                    Bgeu => Condition::Equal,
                    _ => condition,
                }
            }
            _ => {
                let second = match second {
                    RiscvCpu::ZERO => OperateOperand::Literal(0),
                    register => OperateOperand::Register(register),
                };
                self.compare_operands(OperateOperands { a: first, second, c: RiscvCpu::SINK });
                condition
            }
        }
    }
}
