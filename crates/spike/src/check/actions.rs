//! Actions of both images in a proof: they must be the same, of the same operands.

use isa::Op;

use super::convention::{CLOBBERED, GP, PV, RA, SYSTEM_ARGUMENTS, bit, range};
use super::machine::{Action, MachineEvent, SymbolicMachine};
use super::proof::{Proof, ProofPoint, ProofResult};
use super::tables;
use super::term::{Node, OffsetTerm};
use crate::assemble;

/// Bounds of numbers that are kept.
const MOST_BOUNDS: usize = 4;

impl Proof<'_> {
    /// Compares a pair of actions. Returns whether the path ends or divides.
    pub(super) fn act(
        &mut self,
        from: &ProofPoint,
        actions: (Action, Action),
        original: &mut SymbolicMachine,
        optimized: &mut SymbolicMachine,
    ) -> ProofResult<bool> {
        match actions {
            (Action::Invalid(reason), _) | (_, Action::Invalid(reason)) => Err(reason.into()),
            (Action::Event(old), Action::Event(new)) => self.event(old, new, original, optimized),
            (Action::Branch(old), Action::Branch(new)) => {
                self.arrive(from, (old, new), original, optimized)?;
                Ok(true)
            }
            (
                Action::Conditional { op, operand, taken, next },
                Action::Conditional { op: other, operand: tested, taken: to, next: onward },
            ) => {
                if !self.is_same(operand, tested) {
                    return Err(self.differ("the branches test", operand, tested));
                }
                let ways = match () {
                    () if op == other => [(taken, to), (next, onward)],
                    () if is_opposite(op, other) => [(taken, onward), (next, to)],
                    () => return Err(format!("{} became {}", op.mnemonic(), other.mnemonic())),
                };
                for (way, is_taken) in ways.into_iter().zip([true, false]) {
                    let bound = tables::bound(&self.context.terms, op, operand, is_taken);
                    if let Some((_, most)) = bound {
                        original.bounds.retain(|one| one.1 != most);
                    }
                    original.bounds.extend(bound);
                    if original.bounds.len() > MOST_BOUNDS {
                        original.bounds.remove(0);
                    }
                    self.arrive(from, way, original, optimized)?;
                    original.bounds.truncate(original.bounds.len() - usize::from(bound.is_some()));
                }
                Ok(true)
            }
            (Action::Call { .. }, Action::Call { .. }) => {
                self.call(actions.0, actions.1, original, optimized).map(|returns| !returns)
            }
            (Action::Call { .. }, Action::Branch(_) | Action::Jump(..)) => {
                self.tail_call(actions.0, actions.1, original, optimized)?;
                Ok(true)
            }
            (Action::Jump(target, pc), Action::Jump(other, _)) => {
                self.jump(from, (target, pc), other, original, optimized)?;
                Ok(true)
            }
            (old, new) => Err(format!("the original {}, the optimized code {}", name(old), name(new))),
        }
    }

    /// Compares events. Returns whether the path ends.
    fn event(
        &mut self,
        old: MachineEvent,
        new: MachineEvent,
        original: &mut SymbolicMachine,
        optimized: &mut SymbolicMachine,
    ) -> ProofResult<bool> {
        if old.op != new.op || old.function != new.function {
            return Err(format!("{} became {}", old.op.mnemonic(), new.op.mnemonic()));
        }
        for (old_operand, new_operand) in old.operands.into_iter().zip(new.operands) {
            if !self.is_same(old_operand, new_operand) {
                return Err(self.differ(
                    &format!("operands of {}", old.op.mnemonic()),
                    old_operand,
                    new_operand,
                ));
            }
        }
        let is_system_call = old.op == Op::CallPal;
        if is_system_call {
            self.check_registers(system_arguments(old.function), original, optimized)?;
        }
        let memory = self.context.terms.fresh();
        if old.changes_memory() {
            self.context.memory = memory;
        }
        let result = match (old.changes_memory(), old.result) {
            // What the same operation computes of the same operands is the same.
            (false, Some(_)) => {
                let [a, b] = old.operands;
                let node = Node::Operation(old.op, old.function as u16, [a, b, OffsetTerm::constant(0)]);
                self.context.terms.value(node)
            }
            _ => self.context.terms.value(Node::Result(memory, 0)),
        };
        if let (Some(old), Some(new)) = (old.result, new.result) {
            original.set(old, result, &self.context);
            optimized.set(new, result, &self.context);
        }
        if is_system_call && old.function == HALT {
            return Ok(true);
        }
        if is_system_call {
            self.forget(SYSTEM_CHANGED, memory, original, optimized);
        }
        Ok(false)
    }

    fn jump(
        &mut self,
        from: &ProofPoint,
        (target, pc): (OffsetTerm, u64),
        other: OffsetTerm,
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<()> {
        if !self.is_same(target, other) {
            return Err(self.differ("jumps go to", target, other));
        }
        if let Node::Entry(register, None) = self.context.terms.node(target.symbol)
            && target.offset == 0
            && register != PV
        {
            return self.check_return(register, original, optimized);
        }
        if let Some(targets) = tables::targets(self.images, &self.context.terms, (target, pc), original) {
            for way in targets {
                self.arrive(from, way, original, optimized)?;
            }
            return Ok(());
        }
        if self.images.tables.contains_key(&pc) {
            return Err("an indirect jump to unknown targets".into());
        }
        self.check_clean(original, optimized)?;
        let known = self.known_targets(target, other);
        self.check_registers(self.arguments(known.map(|one| one.0)), original, optimized)?;
        if let Some((old, new)) = known {
            self.require_entry(old, new)?;
            self.check_registers(bit(GP), original, optimized)?;
        }
        Ok(())
    }
}

/// The function of the privileged architecture library after which nothing follows.
const HALT: u32 = 0;
/// The registers that system calls may change.
const SYSTEM_CHANGED: u64 =
    CLOBBERED & !(range(16, 18) | bit(21) | bit(RA) | bit(PV) | bit(GP)) & range(0, 31);

/// The registers that a function of the privileged architecture library reads.
fn system_arguments(function: u32) -> u64 {
    match function {
        // A stop, a breakpoint, an instruction barrier, a read of the thread pointer.
        HALT | 0x80 | 0x81 | 0x86 | 0x9e => 0,
        // A trap by software, a write of the thread pointer.
        0xaa | 0x9f => bit(16),
        _ => SYSTEM_ARGUMENTS,
    }
}

fn is_opposite(op: Op, other: Op) -> bool {
    let word = |op: Op| u32::from(op.row().opcode) << 26;
    assemble::invert(word(op)) == Some(word(other))
}

fn name(action: Action) -> String {
    match action {
        Action::Event(event) => format!("has {}", event.op.mnemonic()),
        Action::Conditional { op, .. } => format!("has {}", op.mnemonic()),
        Action::Call { .. } => "makes a call".into(),
        Action::Branch(to) => format!("goes to {to:#x}"),
        Action::Jump(..) => "jumps or returns".into(),
        Action::End => "ends".into(),
        Action::Invalid(reason) => reason.into(),
    }
}
