//! Calls, inlined calls and tail calls in a proof: the registers that must be equal before a call, and the state after it.

use super::convention::{
    ARGUMENTS, CLOBBERED, DIVIDE_ARGUMENTS, DIVIDE_CHANGED, DIVIDE_LINK, GP, PRESERVED, PV, RA, SP, ZEROS,
    bit, registers,
};
use super::machine::{Action, SymbolicMachine};
use super::proof::{ProcedureEntry, Proof, ProofResult};
use super::term::{ImageSide, Node, OffsetTerm, TermNumber};
use isa::Op;

impl Proof<'_> {
    /// Whether a call of the original is probably the same as what the optimized image does.
    pub(super) fn is_match(&mut self, old: Action, new: Action) -> bool {
        let Action::Call { target: old, .. } = old else { return false };
        let new = match new {
            Action::Call { target, .. } | Action::Jump(target, _) => target,
            Action::Branch(to) => OffsetTerm::address(to),
            _ => return false,
        };
        match (self.resolve(old, ImageSide::Original), self.resolve(new, ImageSide::Optimized)) {
            (Some(old), Some(new)) => {
                let known = ProcedureEntry { original: old, optimized: new };
                self.images.hints.get(&new) == Some(&old) || self.entries.contains(&known)
            }
            (None, None) => self.is_same(old, new),
            _ => false,
        }
    }

    /// The code that a value is the address of, if it is known.
    fn resolve(&self, value: OffsetTerm, side: ImageSide) -> Option<u64> {
        let code = match side {
            ImageSide::Original => &self.images.original,
            ImageSide::Optimized => &self.images.optimized,
        };
        if let Some(address) = value.as_address() {
            return code.contains(address).then(|| match side {
                ImageSide::Original => address,
                ImageSide::Optimized => self.behind_stub(address),
            });
        }
        let slot = match self.context.terms.node(value.symbol) {
            Node::Procedure(address) if side == ImageSide::Original && value.offset == 0 => {
                return Some(address);
            }
            Node::Load(Op::Ldq, _, slot) => slot,
            _ => return None,
        };
        let words = self.images.words.get(&slot.as_address()?).filter(|_| value.offset == 0)?;
        Some(if side == ImageSide::Original { words.0 } else { words.1 })
    }

    /// Where a jump over a long distance goes, if there is one at an address.
    fn behind_stub(&self, address: u64) -> u64 {
        let at = |index: u64| self.images.optimized.at(address + 4 * index);
        let [Some(branch), Some(high), Some(low), Some(jump)] = [at(0), at(1), at(2), at(3)] else {
            return address;
        };
        let register = branch.ra();
        let is_stub = branch.op == Op::Br
            && branch.displacement() == 0
            && high.op == Op::Ldah
            && low.op == Op::Lda
            && jump.op == Op::Jmp
            && [high.ra(), high.rb(), low.ra(), low.rb(), jump.rb()].iter().all(|one| *one == register)
            && register == 28;
        let distance = (i64::from(high.displacement()) << 16) + i64::from(low.displacement());
        if is_stub { (address + 4).wrapping_add_signed(distance) } else { address }
    }

    /// The procedures that both call, if they are known.
    pub(super) fn known_targets(&self, old: OffsetTerm, new: OffsetTerm) -> Option<(u64, u64)> {
        Some((self.resolve(old, ImageSide::Original)?, self.resolve(new, ImageSide::Optimized)?))
    }

    /// Relies on the proof of an entry.
    pub(super) fn require_entry(&mut self, original: u64, optimized: u64) -> ProofResult<()> {
        if let Some(&hint) = self.images.hints.get(&optimized)
            && hint != original
            && !self.images.labels.get(&original).is_some_and(|all| all.contains(&optimized))
        {
            return Err(format!(
                "calls {optimized:#x}, which is {hint:#x} of the original, not {original:#x}"
            ));
        }
        self.entries.insert(ProcedureEntry { original, optimized });
        Ok(())
    }

    /// Compares calls. Returns whether they return.
    pub(super) fn call(
        &mut self,
        old: Action,
        new: Action,
        original: &mut SymbolicMachine,
        optimized: &mut SymbolicMachine,
    ) -> ProofResult<bool> {
        let Action::Call { link, target, back } = old else { return Ok(true) };
        let Action::Call { link: other_link, target: other, back: other_back } = new else { return Ok(true) };
        if link != other_link {
            return Err("the return addresses are in different registers".into());
        }
        let changed = self.enter((link, target), other, original, optimized)?;
        self.check_registers(bit(SP), original, optimized)?;
        self.after_call(changed, original, optimized);
        original.set(link, OffsetTerm::address(back), &self.context);
        optimized.set(link, OffsetTerm::address(other_back), &self.context);
        Ok(self.returns(back))
    }

    /// Whether control can come to the return address: it does not fall into another procedure.
    fn returns(&self, back: u64) -> bool {
        let original = &self.images.original;
        self.images.owner_id(back).is_some() && !original.starts.contains(&original.behind_nops(back))
    }

    /// Checks what a called procedure gets. Returns the registers that it may change.
    fn enter(
        &mut self,
        (link, target): (u8, OffsetTerm),
        other: OffsetTerm,
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<u64> {
        let known = self.known_targets(target, other);
        match known {
            Some((old, new)) => self.require_entry(old, new)?,
            None if !self.is_same(target, other) => return Err(self.differ("calls", target, other)),
            None => {}
        }
        self.note_frame(original);
        match link {
            DIVIDE_LINK => {
                self.check_registers(DIVIDE_ARGUMENTS, original, optimized)?;
                return Ok(DIVIDE_CHANGED);
            }
            RA => {
                let arguments = self.arguments(known.map(|one| one.0));
                self.check_registers(arguments, original, optimized)?;
            }
            _ => self.check_registers(!(bit(link) | PRESERVED), original, optimized)?,
        }
        let Some((old, _)) = known else { return Ok(CLOBBERED) };
        self.check_registers(bit(GP), original, optimized)?;
        let Some(callee) = self.images.owner(old) else { return Ok(CLOBBERED) };
        let is_kept = original.get(GP) == OffsetTerm::address(callee.gp);
        Ok(callee.changes & !if is_kept { bit(GP) } else { 0 } | bit(RA))
    }

    /// The registers that a called procedure may read. Its own address it needs at an entry that is not known, or to compute
    /// the global pointer.
    pub(super) fn arguments(&self, entry: Option<u64>) -> u64 {
        let callee = entry.and_then(|entry| self.images.owner(entry));
        let is_needed = callee.is_none_or(|callee| callee.computes_gp && Some(callee.entry) == entry);
        let read = entry.and_then(|entry| self.images.needs.get(&entry)).copied().unwrap_or(ARGUMENTS);
        read & !bit(PV) | if is_needed { bit(PV) } else { 0 }
    }

    /// Notes whether the address of the frame is passed on.
    fn note_frame(&mut self, original: &SymbolicMachine) {
        let stack = self.context.stack;
        self.context.is_frame_used |= original.inlined.is_empty()
            && registers(ARGUMENTS).any(|register| original.get(register).symbol == stack);
    }

    fn after_call(&mut self, changed: u64, original: &mut SymbolicMachine, optimized: &mut SymbolicMachine) {
        let memory = self.context.terms.fresh();
        self.context.memory = memory;
        self.forget(changed, memory, original, optimized);
    }

    /// Registers hold the same in both, whatever it is.
    pub(super) fn forget(
        &mut self,
        changed: u64,
        memory: TermNumber,
        original: &mut SymbolicMachine,
        optimized: &mut SymbolicMachine,
    ) {
        for register in registers(changed & !ZEROS) {
            let value = self.context.terms.value(Node::Result(memory, register));
            original.set(register, value, &self.context);
            optimized.set(register, value, &self.context);
        }
    }

    /// The code in the middle of a procedure that a call of the optimized image leads to, if it does: inlined code calls the
    /// rest of the procedure there.
    pub(super) fn middle(&self, call: Action) -> Option<(u64, u64)> {
        let Action::Call { link: RA, target, back } = call else { return None };
        let target = self.behind_stub(target.as_address()?);
        let is_entry = self.images.hints.contains_key(&target);
        (self.images.optimized.contains(target) && !is_entry).then_some((target, back))
    }

    /// A call that became a jump: the original must do nothing after it but return.
    pub(super) fn tail_call(
        &mut self,
        old: Action,
        new: Action,
        original: &mut SymbolicMachine,
        optimized: &mut SymbolicMachine,
    ) -> ProofResult<()> {
        let (Action::Call { link, target, back }, other) = (old, new) else { return Ok(()) };
        let other = match other {
            Action::Branch(to) => OffsetTerm::address(to),
            Action::Jump(to, _) => to,
            _ => return Ok(()),
        };
        if link != RA {
            return Err("a call became a jump".into());
        }
        let changed = self.enter((link, target), other, original, optimized)?;
        for register in registers(PRESERVED | bit(RA) | bit(SP)) {
            let own = self.entry_value(register, ImageSide::Optimized);
            if optimized.get(register) != own {
                return Err(self.differ(
                    "a call became a jump, but a register is",
                    own,
                    optimized.get(register),
                ));
            }
        }
        self.changes.tail_calls = true;
        self.after_call(changed, original, optimized);
        original.set(RA, OffsetTerm::address(back), &self.context);
        let returned = self.entry_value(RA, ImageSide::Optimized);
        optimized.set(RA, returned, &self.context);
        match original.advance(&self.images.original, &mut self.context) {
            Action::Jump(target, _) if target == returned => self.check_return(RA, original, optimized),
            _ => Err("a call became a jump, but the original does more after it than return".into()),
        }
    }

    /// Whether a branch to an entry is a tail call, before which nothing of the procedure's frame is left.
    pub(super) fn is_tail_call(
        &mut self,
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
        to: (u64, u64),
    ) -> bool {
        let is_known = self.images.original.entries.contains_key(&to.0);
        is_known
            && self.check_clean(original, optimized).is_ok()
            && self.check_registers(self.arguments(Some(to.0)) | bit(GP), original, optimized).is_ok()
    }

    /// Whether everything that belongs to the caller is as it was at the entry.
    pub(super) fn check_clean(
        &mut self,
        original: &SymbolicMachine,
        optimized: &SymbolicMachine,
    ) -> ProofResult<()> {
        for (side, machine) in [(ImageSide::Original, original), (ImageSide::Optimized, optimized)] {
            for register in registers(PRESERVED | bit(RA) | bit(SP)) {
                let expected = self.entry_value(register, side);
                if machine.get(register) != expected {
                    let name = super::term::register_name(register);
                    return Err(self.differ(&format!("{name} is"), expected, machine.get(register)));
                }
            }
        }
        Ok(())
    }

    /// Compares the registers that both images save in the frame: the sets are complete when all paths have been executed.
    pub(super) fn check_frame(&mut self) -> ProofResult<()> {
        let [old, new] = &self.context.saves;
        self.changes.frame |= old != new;
        if let Some((offset, register)) = new.difference(old).next() {
            let name = super::term::register_name(*register);
            return Err(format!(
                "{name} is saved at {offset} of the frame, where the original saves nothing"
            ));
        }
        let is_accessed = |offset: i64| {
            self.context.accesses.iter().any(|&(at, size)| at < offset + 8 && at + i64::from(size) > offset)
        };
        let accessed = self.context.own_saves.iter().copied().find(|&offset| is_accessed(offset));
        if let Some(offset) = accessed.or(self.context.overlap) {
            return Err(format!("what is saved at {offset} of the frame is accessed otherwise, too"));
        }
        if self.changes.tail_calls && self.context.is_frame_used {
            return Err("a call became a jump, but the called procedure may use the frame".into());
        }
        Ok(())
    }
}
