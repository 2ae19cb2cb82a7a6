//! The values that must be equal in both images: results, registers before calls, and registers when a procedure returns.

use super::convention::{CLOBBERED, GP, PRESERVED, RA, RESULTS, SP, ZEROS, bit, registers};
use super::machine::SymbolicMachine;
use super::proof::{ProcedureEntry, Proof, ProofResult};
use super::term::{ImageSide, Node, OffsetTerm, register_name};

impl Proof<'_> {
    /// Whether the same is in a register of both.
    pub(super) fn is_same(&mut self, old: OffsetTerm, new: OffsetTerm) -> bool {
        if old == new {
            return old.as_address().is_none_or(|address| !self.images.leaders.contains(&address));
        }
        if let (Some(old), Some(new)) = (old.as_address(), new.as_address()) {
            return self.is_same_code(old, new);
        }
        if old.offset != new.offset {
            return false;
        }
        match (self.context.terms.node(old.symbol), self.context.terms.node(new.symbol)) {
            (Node::Operation(a, f, left), Node::Operation(b, g, right)) => {
                a == b && f == g && left.into_iter().zip(right).all(|(a, b)| self.is_same(a, b))
            }
            (Node::Load(a, left, from), Node::Load(b, right, other)) => {
                a == b && left == right && self.is_same(from, other)
            }
            _ => false,
        }
    }

    /// Whether two addresses are of the same code.
    fn is_same_code(&mut self, old: u64, new: u64) -> bool {
        if self.images.original.entries.contains_key(&old) && self.images.optimized.contains(new) {
            self.entries.insert(ProcedureEntry { original: old, optimized: new });
            return true;
        }
        self.images.labels.get(&old).is_some_and(|all| all.contains(&new))
    }

    /// Registers in which both must hold the same.
    pub(super) fn check_registers(
        &mut self,
        set: u64,
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<()> {
        for register in registers(set & !ZEROS) {
            let (old, new) = (original.get(register), optimized.get(register));
            if !self.is_same(old, new) {
                return Err(self.differ(&format!("{} is", register_name(register)), old, new));
            }
        }
        Ok(())
    }

    pub(super) fn differ(&self, what: &str, old: OffsetTerm, new: OffsetTerm) -> String {
        let show = |value| self.context.terms.show(value);
        format!("{what} {}, not {}", show(new), show(old))
    }

    /// The requirements when control returns to the caller.
    pub(super) fn check_return(
        &mut self,
        link: u8,
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<()> {
        let (changes, keeps_gp) = match self.procedure() {
            Some(procedure) => (procedure.changes, procedure.keeps_gp),
            None => (CLOBBERED, true),
        };
        self.check_preserved(original, optimized)?;
        let free = if link == RA { changes & !RESULTS } else { bit(28) & changes };
        for register in registers(CLOBBERED & !(free | bit(GP))) {
            let is_unchanged = [(ImageSide::Original, original), (ImageSide::Optimized, optimized)]
                .into_iter()
                .all(|(side, machine)| machine.get(register) == self.entry_value(register, side));
            if !is_unchanged {
                self.check_registers(bit(register), original, optimized)?;
            }
        }
        if keeps_gp { self.check_registers(bit(GP), original, optimized) } else { Ok(()) }
    }

    /// Whether preserved registers and the stack pointer are as they were at the entry.
    pub(super) fn check_preserved(
        &mut self,
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<()> {
        for register in registers(PRESERVED | bit(SP)) {
            let (old, new) = (original.get(register), optimized.get(register));
            let [expected, own] =
                [ImageSide::Original, ImageSide::Optimized].map(|side| self.entry_value(register, side));
            let is_fine = if old == expected { new == own } else { self.is_same(old, new) };
            if !is_fine {
                return Err(self.differ(&format!("{} is", register_name(register)), old, new));
            }
        }
        Ok(())
    }
}
