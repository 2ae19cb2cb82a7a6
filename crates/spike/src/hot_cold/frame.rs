//! Elimination of what the hot part of a procedure does for the cold part's sake on the stack: saves and restores of
//! preserved registers and of the return address, and adjustments of the stack pointer.
//!
//! A register that the hot part leaves as it was need not be saved there: stubs save it, where control goes on to the cold
//! part, which restores it. So the hot part's saves, restores and adjustments go, as far as it can do without.

use std::collections::HashMap;

use isa::{Op, encode};

use super::region::HotRegion;
use crate::dataflow::{RegisterSet, effects, unwound};
use crate::program::{CodeBlockId, CodeExit, LiftedInstruction, Program, RA, SP};
use crate::unwind::{FrameAddress, NO_ROW, UnwindRow};

/// The frame of a procedure, as its hot part makes it.
#[derive(Clone, Debug)]
pub struct HotFrame {
    /// The block that makes it.
    block: CodeBlockId,
    /// Its bytes.
    size: i16,
    /// The registers saved by that block: the number, and the offset from the stack pointer.
    saves: Vec<(u8, i16)>,
    /// Whether there is a frame at the end of each block.
    exists: HashMap<CodeBlockId, bool>,
}

/// Executions that were removed from the hot part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Saves and restores.
    pub saves: u64,
    /// Adjustments of the stack pointer.
    pub adjustments: u64,
}

/// Why the frame is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsuited {
    /// There is none.
    NoFrame,
    /// The stack pointer is changed otherwise than at the beginning and the end.
    StackPointerModified,
}

fn adjustment(instruction: &LiftedInstruction) -> Option<i16> {
    let one = isa::decode(instruction.word)?;
    let is_adjustment = one.op == Op::Lda && one.ra() == SP && one.rb() == SP;
    is_adjustment.then(|| one.displacement() as i16)
}

/// A save or a restore of a register relative to the stack pointer.
fn access(instruction: &LiftedInstruction, op: Op) -> Option<(u8, i16)> {
    let one = isa::decode(instruction.word)?;
    (one.op == op && one.rb() == SP).then(|| (one.ra(), one.displacement() as i16))
}

fn is_saved_register(register: u8) -> bool {
    register == RA || (9..=15).contains(&register)
}

impl HotFrame {
    /// Finds the frame.
    pub fn find(program: &Program, region: &HotRegion) -> Result<HotFrame, Unsuited> {
        let mut made = None;
        for &id in &region.hot {
            let block = &program.blocks[id as usize];
            for instruction in &block.instructions {
                match adjustment(instruction) {
                    Some(by) if by < 0 && made.is_none() => made = Some((id, -by)),
                    Some(by) if by > 0 && made.is_some_and(|(_, size)| size == by) => {}
                    Some(_) => return Err(Unsuited::StackPointerModified),
                    None if effects(program, instruction).kills.has(SP) => {
                        return Err(Unsuited::StackPointerModified);
                    }
                    None => {}
                }
            }
        }
        let (block, size) = made.ok_or(Unsuited::NoFrame)?;
        let mut frame = HotFrame { block, size, saves: Vec::new(), exists: HashMap::new() };
        frame.find_extent(program, region)?;
        frame.find_saves(program, region);
        Ok(frame)
    }

    /// Follows control from the head: the frame must exist or not at each block whichever way control comes.
    fn find_extent(&mut self, program: &Program, region: &HotRegion) -> Result<(), Unsuited> {
        let mut open = vec![(region.head, false)];
        let mut before = HashMap::from([(region.head, false)]);
        while let Some((id, mut exists)) = open.pop() {
            let block = &program.blocks[id as usize];
            for by in block.instructions.iter().filter_map(adjustment) {
                if (by < 0) == exists {
                    return Err(Unsuited::StackPointerModified);
                }
                exists = by < 0;
            }
            self.exists.insert(id, exists);
            // Control leaves the procedure without a frame; but it need not come back from a last call.
            let leaves = !block
                .exit
                .successors()
                .iter()
                .any(|next| program.blocks[*next as usize].procedure == region.procedure);
            let is_last_call = block.call().is_some();
            if leaves && exists && !is_last_call {
                return Err(Unsuited::StackPointerModified);
            }
            for next in block.exit.successors() {
                if !region.hot.contains(&next) {
                    continue;
                }
                match before.insert(next, exists) {
                    None => open.push((next, exists)),
                    Some(earlier) if earlier != exists => return Err(Unsuited::StackPointerModified),
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The registers that the first block saves before it changes them, in slots that nothing else uses.
    fn find_saves(&mut self, program: &Program, region: &HotRegion) {
        let mut changed = RegisterSet::NONE;
        let mut has_frame = false;
        for instruction in &program.blocks[self.block as usize].instructions {
            has_frame |= adjustment(instruction).is_some();
            if let Some((register, offset)) = access(instruction, Op::Stq)
                && has_frame
                && is_saved_register(register)
                && !changed.has(register)
            {
                self.saves.push((register, offset));
            }
            changed |= effects(program, instruction).writes;
        }
        let own = std::mem::take(&mut self.saves);
        self.saves = own.iter().copied().filter(|save| is_private(program, region, *save, &own)).collect();
    }

    /// Removes saves and restores of registers that the hot part leaves as they are, and the frame if nothing needs it.
    /// `is_written` tells whether a register is written other than by restores.
    pub fn eliminate(self, program: &mut Program, region: &HotRegion) -> Removed {
        let mut removed = Removed::default();
        let written = region.instructions(program).fold(RegisterSet::NONE, |set, one| {
            let is_restore = access(one, Op::Ldq).is_some_and(|restored| self.saves.contains(&restored));
            if is_restore { set } else { set | effects(program, one).writes }
        });
        let has_calls = region.has_calls(program);
        let eliminated: Vec<(u8, i16)> = self
            .saves
            .iter()
            .copied()
            .filter(|(register, _)| !(written.has(*register) || has_calls && *register == RA))
            .collect();
        for &id in &region.hot {
            let block = &mut program.blocks[id as usize];
            let count = block.count;
            block.instructions.retain(|one| {
                let is_gone = access(one, Op::Stq)
                    .or(access(one, Op::Ldq))
                    .is_some_and(|save| eliminated.contains(&save));
                removed.saves += if is_gone { count } else { 0 };
                !is_gone
            });
        }
        let others = region.instructions(program).filter(|one| adjustment(one).is_none());
        let is_used = others.map(|one| effects(program, one).reads).any(|reads| reads.has(SP));
        let drops_frame = !has_calls && !is_used;
        if drops_frame {
            for &id in &region.hot {
                let block = &mut program.blocks[id as usize];
                let before = block.instructions.len();
                block.instructions.retain(|one| adjustment(one).is_none());
                removed.adjustments += (before - block.instructions.len()) as u64 * block.count;
            }
        }
        self.compensate(program, region, &eliminated, drops_frame);
        self.change_rows(program, region, &eliminated, drops_frame);
        removed
    }

    /// Makes stubs do what the hot part no longer does.
    fn compensate(
        &self,
        program: &mut Program,
        region: &HotRegion,
        eliminated: &[(u8, i16)],
        drops_frame: bool,
    ) {
        for stub in &region.stubs {
            if !self.exists.get(&stub.from).copied().unwrap_or(false) {
                continue;
            }
            let target = super::region::first_frame(program, stub.to);
            let mut saved: Vec<u16> = self
                .saves
                .iter()
                .filter(|save| !eliminated.contains(save))
                .map(|save| u16::from(save.0))
                .collect();
            let mut code = Vec::new();
            let mut has_frame = !drops_frame;
            if drops_frame {
                let word = encode::memory(Op::Lda, SP, SP, -self.size).unwrap_or_default();
                code.push(LiftedInstruction::new(word, row(program, target, &saved, has_frame)));
                has_frame = true;
            }
            for &(register, offset) in eliminated {
                let word = encode::memory(Op::Stq, register, SP, offset).unwrap_or_default();
                code.push(LiftedInstruction::new(word, row(program, target, &saved, has_frame)));
                saved.push(u16::from(register));
            }
            let block = &mut program.blocks[stub.block as usize];
            code.append(&mut block.instructions);
            block.instructions = code;
        }
    }

    /// Changes what unwinders find at the hot instructions.
    fn change_rows(
        &self,
        program: &mut Program,
        region: &HotRegion,
        eliminated: &[(u8, i16)],
        drops_frame: bool,
    ) {
        let mut changed: HashMap<u32, u32> = HashMap::new();
        for &id in &region.hot {
            let block = &mut program.blocks[id as usize];
            let branch = match &mut block.exit {
                CodeExit::Branch { branch, .. } | CodeExit::Conditional { branch, .. } => Some(branch),
                _ => None,
            };
            for instruction in block.instructions.iter_mut().chain(branch) {
                let frames = &mut program.frames;
                instruction.frame = *changed.entry(instruction.frame).or_insert_with_key(|&old| {
                    if old == NO_ROW {
                        return old;
                    }
                    let mut row: UnwindRow = frames.rows[old as usize].clone();
                    row.registers
                        .retain(|(register, _)| !eliminated.iter().any(|one| u16::from(one.0) == *register));
                    if drops_frame {
                        row.frame_address = FrameAddress::default();
                    }
                    frames.number(row)
                });
            }
        }
    }
}

/// Whether no hot instruction but saves and restores of the register itself accesses its slot, relative to the stack
/// pointer. Pointers to other objects on the stack do not lead there.
fn is_private(
    program: &Program,
    region: &HotRegion,
    (register, offset): (u8, i16),
    saves: &[(u8, i16)],
) -> bool {
    let is_unique = saves.iter().filter(|save| save.0 == register || save.1 == offset).count() == 1;
    is_unique
        && region.instructions(program).all(|instruction| {
            let Some(one) = isa::decode(instruction.word) else { return false };
            let Some(size) = one.access_size().filter(|_| one.rb() == SP) else { return true };
            let at = one.displacement();
            let is_own =
                matches!(one.op, Op::Stq | Op::Ldq) && one.ra() == register && at == i32::from(offset);
            let overlaps = at < i32::from(offset) + 8 && at + i32::from(size) > i32::from(offset);
            is_own || !overlaps
        })
}

/// The row at an instruction of a stub: that of the cold part, as far as the stub has made its frame.
fn row(program: &mut Program, target: u32, saved: &[u16], has_frame: bool) -> u32 {
    if target == NO_ROW {
        return NO_ROW;
    }
    let mut row = program.frames.rows[target as usize].clone();
    row.registers.retain(|(register, _)| saved.contains(register));
    if !has_frame {
        row.frame_address = FrameAddress::default();
    }
    program.frames.number(row)
}

/// Renames preserved registers of the hot part to registers that the procedure is free to change, so that they need not be
/// saved. A value that is live across a call cannot be renamed. Returns the number of registers.
pub fn rename(
    program: &mut Program,
    region: &HotRegion,
    free: RegisterSet,
    outside: &dyn Fn(CodeBlockId) -> RegisterSet,
) -> usize {
    let Ok(frame) = HotFrame::find(program, region) else { return 0 };
    let mut count = 0;
    for &(register, offset) in frame.saves.iter().filter(|save| save.0 != RA) {
        count +=
            usize::from(Renaming { region, register, offset, frame: &frame }.attempt(program, free, outside));
    }
    count
}

/// The renaming of one register.
struct Renaming<'a> {
    region: &'a HotRegion,
    register: u8,
    offset: i16,
    frame: &'a HotFrame,
}

impl Renaming<'_> {
    fn is_save(&self, instruction: &LiftedInstruction) -> bool {
        let access = access(instruction, Op::Stq).or(access(instruction, Op::Ldq));
        access == Some((self.register, self.offset))
    }

    fn attempt(
        &self,
        program: &mut Program,
        free: RegisterSet,
        outside: &dyn Fn(CodeBlockId) -> RegisterSet,
    ) -> bool {
        let own = RegisterSet::integer(self.register);
        let region = self.region;
        let mut used = RegisterSet::NONE;
        for one in region.instructions(program).filter(|one| !one.is_call()) {
            let effects = effects(program, one);
            used |= effects.reads | effects.writes;
        }
        for &id in &region.hot {
            if let CodeExit::Conditional { branch, .. } = &program.blocks[id as usize].exit {
                used |= effects(program, branch).reads;
            }
        }
        if !used.has(self.register) || !self.has_renamable_uses(program) {
            return false;
        }
        let Some(written) = self.written_at_ends(program) else { return false };
        if self.is_live_across_call(program, outside) {
            return false;
        }
        let entering = RegisterSet::ENTRY | RegisterSet::RETURN;
        let behind = region
            .stubs
            .iter()
            .fold(RegisterSet::NONE, |set, stub| set | outside_of(program, stub.block, outside));
        let candidates = free - used - entering - (behind - own);
        let Some(other) = candidates.integer_numbers().next() else { return false };
        self.replace(program, other);
        for stub in &region.stubs {
            if written[&stub.from] && outside_of(program, stub.block, outside).has(self.register) {
                let word =
                    encode::operate(Op::Bis, 31, encode::SecondOperand::Register(other), self.register);
                let frame = super::region::first_frame(program, stub.block);
                let copy = LiftedInstruction::new(word.unwrap_or_default(), frame);
                program.blocks[stub.block as usize].instructions.insert(0, copy);
            }
        }
        true
    }

    /// Whether all uses other than saves and restores name the register in a field; rows for unwinders do not.
    fn has_renamable_uses(&self, program: &Program) -> bool {
        if self.region.instructions(program).any(|one| unwound(program, one).has(self.register)) {
            return false;
        }
        let mut some = false;
        let all =
            self.region.instructions(program).filter(|one| !self.is_save(one) && !one.is_call()).all(|one| {
                let effects = effects(program, one);
                let touches = effects.reads.has(self.register) || effects.writes.has(self.register);
                some |= touches;
                !touches || super::copies::rename_fields(one.word, self.register, self.register).is_some()
            });
        all && some
    }

    /// Whether the register has been written at the end of each block, other than by restores; none if that depends on the
    /// way that control came.
    fn written_at_ends(&self, program: &Program) -> Option<HashMap<CodeBlockId, bool>> {
        let mut before = HashMap::from([(self.region.head, false)]);
        let mut open = vec![self.region.head];
        let mut ends = HashMap::new();
        while let Some(id) = open.pop() {
            let mut is_written = before[&id];
            for one in &program.blocks[id as usize].instructions {
                if self.is_save(one) {
                    // A restore: the register has its first value again.
                    is_written &= access(one, Op::Ldq).is_none();
                } else {
                    is_written |= effects(program, one).kills.has(self.register);
                }
            }
            ends.insert(id, is_written);
            for next in program.blocks[id as usize].exit.successors() {
                if !self.region.hot.contains(&next) {
                    continue;
                }
                match before.get(&next) {
                    None => {
                        before.insert(next, is_written);
                        open.push(next);
                    }
                    Some(&earlier) if earlier != is_written => return None,
                    Some(_) => {}
                }
            }
        }
        self.frame.exists.keys().all(|id| ends.contains_key(id)).then_some(ends)
    }

    fn is_live_across_call(&self, program: &Program, outside: &dyn Fn(CodeBlockId) -> RegisterSet) -> bool {
        let blocks = self.region.blocks();
        let liveness = crate::dataflow::Liveness::new(program, &blocks, self.region.returns, outside);
        self.region.hot.iter().any(|&id| {
            let block = &program.blocks[id as usize];
            block.call().is_some() && liveness.after(program, id, outside).has(self.register)
        })
    }

    fn replace(&self, program: &mut Program, other: u8) {
        for &id in &self.region.hot {
            let block = &mut program.blocks[id as usize];
            let branch = match &mut block.exit {
                CodeExit::Conditional { branch, .. } => Some(branch),
                _ => None,
            };
            for one in block.instructions.iter_mut().filter(|one| !self.is_save(one)).chain(branch) {
                if let Some(word) = super::copies::rename_fields(one.word, self.register, other) {
                    one.word = word;
                }
            }
        }
    }
}

/// The registers that are live at the beginning of a stub.
fn outside_of(
    program: &Program,
    stub: CodeBlockId,
    outside: &dyn Fn(CodeBlockId) -> RegisterSet,
) -> RegisterSet {
    let liveness = crate::dataflow::Liveness::new(program, &[stub], RegisterSet::RETURN, outside);
    liveness.before(stub).unwrap_or(RegisterSet::ALL)
}
