//! How much of a block was executed.
//!
//! The emulator reports that a block is entered, and each access that succeeds. An exception leaves a block before the
//! instruction that causes it, and an access to a device leaves it after the access, as time then has to be exact. Which
//! of these happened follows from the accesses that are missing and from the block that is executed next.

use std::ops::Range;
use std::sync::Arc;

use events::record::{ExceptionKind, word_of_address};
use isa::{AlphaSystem, InstructionSet, TransferKind, TransferTarget};
use trace::ExecutionMode;

use crate::machine::END;
use crate::palcode::{PalEntry, Palcode};
use crate::stream::TranslatedBlock;

/// Offset at which the kernel maps physical memory, in words of records.
const DIRECT_MAPPING: u64 = 0x7fff_fc00_0000_0000;

/// An access that an instruction of a block makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpectedAccess {
    /// The instruction.
    pub index: u32,
    /// Whether it is a store-conditional.
    pub is_conditional: bool,
    /// Whether it is a load-locked.
    pub is_locked_load: bool,
    /// Whether it is of a physical address.
    pub is_physical: bool,
}

/// An access that the recorder reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReportedAccess {
    pub address: u64,
    pub is_conditional: bool,
}

/// The addresses that may follow a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Successors {
    /// Any: it ends with a jump.
    Any,
    /// The next instruction, or the target of a branch or of a call of PALcode.
    NextOr(u64),
    /// The target of a branch.
    Only(u64),
}

/// A transfer of control that calls are followed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallTransfer {
    /// A call, with its return address.
    Call(u64),
    /// A return.
    Return,
}

/// A block, with what its extent depends on.
#[derive(Clone, Debug)]
pub(super) struct ExtentBlock {
    pub address: u64,
    pub words: Arc<[u32]>,
    /// Whether it has the instruction that ends what is recorded.
    pub is_end: bool,
    /// The mode that executes it, and how PALcode is entered by it, if it is.
    pub mode: ExecutionMode,
    pub entry: Option<PalEntry>,
    pub accesses: Box<[ExpectedAccess]>,
    /// Whether these are all of addresses as the recorder reports them, and none is locked or conditional.
    pub has_plain_accesses: bool,
    successors: Successors,
    /// The call of PALcode that it ends with.
    pub pal_call: Option<u32>,
    /// The call or the return that it ends with.
    pub block_end: Option<CallTransfer>,
}

/// The executed part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExecutedExtent {
    /// The number of its first instructions that were executed.
    pub instructions: usize,
    /// Whether what followed is explained: by the last instruction, or by an exception.
    pub is_explained: bool,
}

impl ExtentBlock {
    pub fn new(block: TranslatedBlock, palcode: &Palcode) -> ExtentBlock {
        let TranslatedBlock { address, words } = block;
        let summaries: Vec<_> = words.iter().map(|&word| AlphaSystem.summary(word)).collect();
        let accesses: Box<[_]> = summaries
            .iter()
            .zip(0..)
            .filter_map(|(summary, index)| {
                let access = summary.as_ref()?.access?;
                Some(ExpectedAccess {
                    index,
                    is_conditional: access.is_locked && access.is_store,
                    is_locked_load: access.is_locked && !access.is_store,
                    is_physical: access.displacement > DIRECT_MAPPING as i64 / 2,
                })
            })
            .collect();
        let is_plain =
            |access: &ExpectedAccess| !access.is_conditional && !access.is_locked_load && !access.is_physical;
        let end = address.wrapping_add(4 * words.len() as u64);
        let last = words.last().copied().unwrap_or_default();
        let summary = summaries.last().and_then(Option::as_ref);
        let pal_call = summary.filter(|summary| summary.enters_system).map(|_| last & 0x3ff_ffff);
        let transfer = summary.and_then(|summary| summary.transfer);
        let successors = match (pal_call, transfer) {
            (Some(function), _) => Successors::NextOr(palcode.entry(function)),
            (None, None) => Successors::Only(end),
            (None, Some(transfer)) => match transfer.target {
                TransferTarget::Register { .. } => Successors::Any,
                TransferTarget::Relative(distance) => {
                    let target = end.wrapping_sub(4).wrapping_add_signed(distance);
                    if transfer.is_conditional {
                        Successors::NextOr(target)
                    } else {
                        Successors::Only(target)
                    }
                }
            },
        };
        let block_end = transfer.and_then(|transfer| match transfer.kind {
            TransferKind::Call if transfer.link.is_some() => Some(CallTransfer::Call(end)),
            TransferKind::Return => Some(CallTransfer::Return),
            _ => None,
        });
        let is_end = words.contains(&END);
        let (mode, entry) = (palcode.mode(address), palcode.entered_at(address));
        ExtentBlock {
            address,
            is_end,
            mode,
            entry,
            has_plain_accesses: accesses.iter().all(is_plain),
            accesses,
            words,
            successors,
            pal_call,
            block_end,
        }
    }

    /// The address after its last instruction.
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(4 * self.words.len() as u64)
    }

    /// The accesses of some of its instructions, by their index among those of all.
    pub fn accesses_within(&self, executed: &Range<usize>) -> Range<usize> {
        let before = |end| self.accesses.partition_point(|access| (access.index as usize) < end);
        before(executed.start)..before(executed.end)
    }

    /// The call of PALcode that it ends with, if that is among these instructions.
    pub fn pal_call_within(&self, executed: &Range<usize>) -> Option<u32> {
        self.pal_call.filter(|_| executed.end == self.words.len())
    }

    /// Whether a block at this address may follow when all of this one was executed.
    pub fn may_precede(&self, next: u64) -> bool {
        match self.successors {
            Successors::Any => true,
            Successors::NextOr(target) => next == target || next == self.end(),
            Successors::Only(target) => next == target,
        }
    }

    /// Whether all of it was executed, with this number of accesses, without an exception: what [`ExtentBlock::extent`] mostly finds.
    pub fn is_whole(&self, seen: usize, next: u64) -> bool {
        seen == self.accesses.len() && self.may_precede(next) && !self.is_entered_again(next, seen)
    }

    /// How much was executed, if the block at `next` followed, and how that is entered if it is of PALcode. Without a
    /// block that follows, the recording ended while a processor executed this one. `words` gets the
    /// addresses of the accesses; `last_locked` is the address of the last load-locked, which is taken for a store-conditional
    /// that failed without an access.
    pub fn extent(
        &self,
        seen: &[ReportedAccess],
        next: Option<u64>,
        entry: Option<PalEntry>,
        last_locked: &mut u64,
        words: &mut Vec<u64>,
    ) -> ExecutedExtent {
        let start = words.len();
        let missing = self.match_accesses(seen, last_locked, words);
        let whole = ExecutedExtent { instructions: self.words.len(), is_explained: true };
        let extent = match (next, missing) {
            (None, None) => whole,
            (None, Some(missing)) => {
                ExecutedExtent { instructions: missing.index as usize, is_explained: true }
            }
            (Some(next), _) if self.is_entered_again(next, seen.len()) => {
                ExecutedExtent { instructions: 0, is_explained: true }
            }
            (Some(next), None) if self.may_precede(next) => whole,
            (Some(next), _) if self.is_left_at(next, seen.len()) => {
                ExecutedExtent { instructions: ((next - self.address) / 4) as usize, is_explained: true }
            }
            (Some(_), _) => match (entry, missing) {
                // Interrupts come between blocks. If accesses are missing, the last one was to a device.
                (Some(PalEntry::Exception(exception)), Some(_)) if is_interrupt(exception) => {
                    let last = seen.len().checked_sub(1).and_then(|last| self.accesses.get(last));
                    ExecutedExtent {
                        instructions: last.map_or(0, |last| last.index as usize + 1),
                        is_explained: true,
                    }
                }
                (Some(PalEntry::Exception(_)), Some(missing)) => {
                    ExecutedExtent { instructions: missing.index as usize, is_explained: true }
                }
                (Some(PalEntry::Exception(_)), None) => whole,
                (_, Some(missing)) => {
                    ExecutedExtent { instructions: missing.index as usize, is_explained: false }
                }
                (_, None) => ExecutedExtent { is_explained: false, ..whole },
            },
        };
        let within = self.accesses.iter().take_while(|access| (access.index as usize) < extent.instructions);
        words.truncate(start + within.count());
        extent
    }

    /// Appends the words of the accesses in order. Returns the first access that was not made.
    fn match_accesses(
        &self,
        seen: &[ReportedAccess],
        last_locked: &mut u64,
        words: &mut Vec<u64>,
    ) -> Option<ExpectedAccess> {
        let mut seen = seen.iter().peekable();
        for access in &self.accesses {
            match seen.next_if(|one| one.is_conditional == access.is_conditional) {
                Some(one) => {
                    let base = if access.is_physical { DIRECT_MAPPING } else { 0 };
                    let word = word_of_address(one.address.wrapping_add(base));
                    if access.is_locked_load {
                        *last_locked = word;
                    }
                    words.push(word);
                }
                None if access.is_conditional => words.push(*last_locked),
                None => return Some(*access),
            }
        }
        None
    }

    /// Whether the emulator has left the block before its first instruction, and enters it again. A block that branches to itself is taken to have been executed.
    fn is_entered_again(&self, next: u64, seen: usize) -> bool {
        let is_branch = matches!(self.successors, Successors::NextOr(target) | Successors::Only(target) if target == next);
        next == self.address && seen == 0 && (!is_branch || !self.accesses.is_empty())
    }

    /// Whether the block may have been left after an access to a device, so that the next block begins at this address.
    fn is_left_at(&self, next: u64, seen: usize) -> bool {
        let inside = next > self.address && next < self.end() && (next - self.address).is_multiple_of(4);
        let index = next.wrapping_sub(self.address) / 4;
        let before = self.accesses.iter().take_while(|access| u64::from(access.index) < index);
        let (count, last) = before.fold((0, None), |(count, _), access| (count + 1, Some(access)));
        inside && count == seen && last.is_some_and(|last| u64::from(last.index) + 1 == index)
    }
}

fn is_interrupt(exception: ExceptionKind) -> bool {
    use ExceptionKind::{ClockInterrupt, DeviceInterrupt, MachineCheck, ProcessorInterrupt};
    matches!(exception, ClockInterrupt | DeviceInterrupt | MachineCheck | ProcessorInterrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x1_2000_0000;
    /// ldq t0,0(sp); addq t0,1,t0; stq t0,8(sp); bne t0,-4
    const WORDS: [u32; 4] = [0xa43e_0000, 0x4020_3401, 0xb43e_0008, 0xf43f_fffc];

    fn palcode() -> Palcode {
        Palcode { path: "".into(), code: 0xffff_fc00_0000_0000..0xffff_fc00_0000_6898 }
    }

    fn block(words: &[u32]) -> ExtentBlock {
        ExtentBlock::new(TranslatedBlock { address: BASE, words: words.into() }, &palcode())
    }

    fn seen(addresses: &[u64]) -> Vec<ReportedAccess> {
        addresses.iter().map(|&address| ReportedAccess { address, is_conditional: false }).collect()
    }

    fn extent(words: &[u32], accesses: &[ReportedAccess], next: u64) -> (usize, bool, Vec<u64>) {
        let mut found = Vec::new();
        let entry = palcode().entered_at(next);
        let extent = block(words).extent(accesses, Some(next), entry, &mut 0x77, &mut found);
        (extent.instructions, extent.is_explained, found)
    }

    #[test]
    fn a_block_is_executed_whole_if_what_follows_may_follow() {
        for next in [BASE, BASE + 16] {
            assert_eq!(extent(&WORDS, &seen(&[0x10, 0x18]), next), (4, true, vec![0x10, 0x18]));
        }
        assert!(!extent(&WORDS, &seen(&[0x10, 0x18]), BASE + 32).1);
    }

    #[test]
    fn a_block_that_is_entered_again_was_not_executed() {
        // lda sp,16(sp); ret
        let words = [0x23de_0010, 0x6bfa_8001];
        assert_eq!(extent(&words, &[], BASE), (0, true, vec![]));
        assert_eq!(extent(&WORDS, &[], BASE), (0, true, vec![]));
        // bne t0,-8: a loop without accesses.
        assert_eq!(extent(&[0x47ff_041f, 0xf43f_fffe], &[], BASE), (2, true, vec![]));
    }

    #[test]
    fn a_fault_leaves_a_block_before_the_access() {
        let fault = palcode().code.start + 0x280;
        assert_eq!(extent(&WORDS, &seen(&[0x10]), fault), (2, true, vec![0x10]));
        assert_eq!(extent(&WORDS, &[], fault), (0, true, vec![]));
    }

    #[test]
    fn the_end_of_the_recording_leaves_a_block_before_the_access_that_is_missing() {
        for (accesses, executed) in [(&[][..], 0), (&[0x10], 2), (&[0x10, 0x18], 4)] {
            let mut found = Vec::new();
            let extent = block(&WORDS).extent(&seen(accesses), None, None, &mut 0x77, &mut found);
            assert_eq!((extent.instructions, extent.is_explained, &found[..]), (executed, true, accesses));
        }
    }

    #[test]
    fn an_access_to_a_device_leaves_a_block_after_it() {
        assert_eq!(extent(&WORDS, &seen(&[0x10]), BASE + 4), (1, true, vec![0x10]));
        assert_eq!(extent(&WORDS, &seen(&[0x10, 0x18]), BASE + 12), (3, true, vec![0x10, 0x18]));
        // An interrupt may come then.
        let interrupt = palcode().code.start + 0x180;
        assert_eq!(extent(&WORDS, &seen(&[0x10]), interrupt), (1, true, vec![0x10]));
        assert_eq!(extent(&WORDS, &seen(&[0x10, 0x18]), interrupt), (4, true, vec![0x10, 0x18]));
        // The next block may not begin elsewhere.
        assert!(!extent(&WORDS, &seen(&[0x10]), BASE + 8).1);
    }

    #[test]
    fn a_store_conditional_that_fails_early_has_the_address_of_its_load() {
        // ldq_l t0,0(sp); stq_c t0,0(sp); ldq t1,16(sp)
        let words = [0xac3e_0000, 0xbc3e_0000, 0xa45e_0010];
        assert_eq!(extent(&words, &seen(&[0x10, 0x20]), BASE + 12), (3, true, vec![0x10, 0x10, 0x20]));
        let conditional = ReportedAccess { address: 0x10, is_conditional: true };
        let all = [seen(&[0x10]), vec![conditional], seen(&[0x20])].concat();
        assert_eq!(extent(&words, &all, BASE + 12), (3, true, vec![0x10, 0x10, 0x20]));
        assert_eq!(extent(&words[1..], &seen(&[0x20]), BASE + 8), (2, true, vec![0x77, 0x20]));
    }

    #[test]
    fn a_call_of_palcode_continues_there_or_is_done_by_the_emulator() {
        let words = [0x83];
        for next in [palcode().entry(0x83), BASE + 4] {
            assert_eq!(extent(&words, &[], next), (1, true, vec![]));
        }
        assert!(!extent(&words, &[], palcode().entry(0x84)).1);
    }

    #[test]
    fn physical_addresses_become_those_of_the_direct_mapping() {
        // hw_ldl/p t9,24(a0)
        assert_eq!(extent(&[0x6ef0_0018], &seen(&[0x1018]), BASE + 4).2, [0x7fff_fc00_0000_1018]);
    }
}
