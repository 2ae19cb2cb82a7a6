//! Looking up accesses in a consumer's hit filter: see [`HitFilter`].

use super::*;
use crate::target::GuestAccess;
use events::{BlockId, FilterSide, HitFilter};

/// Words, by their distance from the record.
fn words(hit_filter: &HitFilter, words: *mut u64) -> i32 {
    beside_record(hit_filter, words).displacement
}

/// The filter that code looks accesses up in.
#[derive(Clone, Copy)]
pub(crate) struct FilterLookup<'a> {
    pub(crate) hit_filter: &'a HitFilter,
    /// The number that the consumer gives the first instruction of a block.
    pub(crate) first_instruction: &'a dyn Fn(BlockId) -> u32,
}

impl<G: Emit> Emitter<'_, G> {
    /// Ends the record of a block by looking up its accesses. The record is the first in the buffer, since no other
    /// one waits there.
    pub(crate) fn look_up_accesses(&mut self, block: &DecodedBlock<G>, lookup: FilterLookup) {
        let hit_filter = lookup.hit_filter;
        let line = 1 << hit_filter.code.line_shift;
        let first = (lookup.first_instruction)(self.region.blocks[self.index]);
        let (mut number, mut index) = (0, 0);
        let mut address = block.address;
        for ((step, &word), before) in block.instructions.iter().zip(&block.words).zip(0..) {
            let instruction = first + before;
            if before == 0 || address & (line - 1) == 0 {
                number += 1;
                let what = UnfilteredAccess { instruction, number, index: 0, more: 0, is_store: false };
                self.look_up_fetch(hit_filter, address, what);
            }
            if let Some(GuestAccess { size, is_store, is_rounded, .. }) = G::access(step) {
                (number, index) = (number + 1, index + 1);
                let what = UnfilteredAccess { instruction, number, index, more: size - 1, is_store };
                self.look_up_data(hit_filter, is_rounded, what);
            }
            address += G::length(word);
        }
        self.assembler.address(
            OperandSize::Quad,
            TIME,
            MemoryOperand { base: TIME, displacement: number.into() },
        );
        self.count_execution();
    }

    /// The label of the out-of-line code that reports an unfiltered access, and the label to place behind the lookup,
    /// where that code returns.
    fn unfiltered(&mut self, what: UnfilteredAccess, fetched: Option<u64>) -> (Label, Label) {
        let (label, back) = (self.assembler.label(), self.assembler.label());
        self.out_of_line.push(OutOfLine::UnfilteredAccess { label, what, fetched, back });
        (label, back)
    }

    /// Looks up the fetch of the line at an address.
    fn look_up_fetch(&mut self, hit_filter: &HitFilter, address: u64, what: UnfilteredAccess) {
        let side = hit_filter.code;
        let line = address >> side.line_shift;
        let offset = words(hit_filter, side.entries) + 8 * (line as usize % HitFilter::LINES) as i32;
        let entry = |displacement| MemoryOperand { base: RECORD, displacement: offset + displacement };
        let others = (line >> HitFilter::LINES.ilog2()) as i32;
        let (unfiltered, back) = self.unfiltered(what, Some(address));
        self.assembler.alu_constant(Alu::Cmp, OperandSize::Long, entry(0), others);
        self.assembler.jump_if(Condition::NotEqual, unfiltered);
        self.assembler.load_zero_extended(OperandSize::Word, RCX, entry(SLOT));
        self.store_time(hit_filter, &side, what.number);
        self.assembler.bind(back);
    }

    /// Looks up a load or a store.
    fn look_up_data(&mut self, hit_filter: &HitFilter, is_rounded: bool, what: UnfilteredAccess) {
        let (side, (unfiltered, back)) = (hit_filter.data, self.unfiltered(what, None));
        let address = MemoryOperand { base: RECORD, displacement: 8 * i32::from(what.index) };
        self.assembler.load(OperandSize::Quad, RAX, address);
        // An aligned access lies in one line.
        if what.more > 0 && !is_rounded {
            self.assembler.test_bits(RAX, what.more);
            self.assembler.jump_if(Condition::NotEqual, unfiltered);
        }
        self.assembler.load(OperandSize::Long, RCX, RAX);
        self.assembler.shift(Shift::Right, OperandSize::Long, RCX, side.line_shift as u8);
        self.assembler.alu_constant(Alu::And, OperandSize::Long, RCX, HitFilter::LINES as i32 - 1);
        let others = side.line_shift + HitFilter::LINES.ilog2();
        self.assembler.shift(Shift::Right, OperandSize::Quad, RAX, others as u8);
        let offset = words(hit_filter, side.entries);
        let entry = |displacement| Operand::Indexed(RECORD, RCX, 3, offset + displacement);
        self.assembler.alu(Alu::Cmp, OperandSize::Long, RAX, entry(0));
        self.assembler.jump_if(Condition::NotEqual, unfiltered);
        self.assembler.load_zero_extended(OperandSize::Word, RCX, entry(SLOT));
        self.store_time(hit_filter, &side, what.number);
        if let Some(dirty) = hit_filter.dirty.filter(|_| what.is_store) {
            let mark = Operand::Indexed(RECORD, RCX, SLOT_SCALE, words(hit_filter, dirty));
            self.assembler.set_bits(mark, 1);
        }
        self.assembler.bind(back);
    }

    /// Stores when the line in the slot that rcx holds was used.
    fn store_time(&mut self, hit_filter: &HitFilter, side: &FilterSide, number: u16) {
        self.assembler.address(
            OperandSize::Quad,
            RAX,
            MemoryOperand { base: TIME, displacement: number.into() },
        );
        let time = Operand::Indexed(RECORD, RCX, SLOT_SCALE, words(hit_filter, side.times));
        self.assembler.store(OperandSize::Quad, time, RAX);
    }
}

/// The bytes of an entry that hold its slot. The bits below it there are the highest of the line's
/// number; they are 0, since programs that run have addresses of less than 48 bits.
const SLOT: i32 = 6;
/// The binary logarithm of the factor from the value of these bytes to the distance of the slot's word from the first.
const SLOT_SCALE: u8 = {
    let bits_below = HitFilter::SLOT_SHIFT - 8 * SLOT as u32;
    (size_of::<u64>().ilog2() - bits_below) as u8
};
