//! Passing over what is usual for a consumer: see [`Lookaside`].

use events::{BlockId, Lookaside, Side};
use isa::Flags;

use super::*;

/// Words, by their distance from the record.
fn words(lookaside: &Lookaside, words: *mut u64) -> i32 {
    beside_record(lookaside, words).displacement
}

/// What the compiler knows of that.
#[derive(Clone, Copy)]
pub(crate) struct Usual<'a> {
    pub(crate) lookaside: &'a Lookaside,
    /// The numbers by which it is told of blocks' instructions.
    pub(crate) first_instruction: &'a dyn Fn(BlockId) -> u32,
}

impl Emitter<'_> {
    /// Ends the record of a block, of which the consumer is told what is not usual. Records begin where compiled code
    /// expects it, as no other one is waiting.
    pub(crate) fn pass_over(&mut self, block: &Block, usual: Usual) {
        let lookaside = usual.lookaside;
        let line = 1 << lookaside.code.line_shift;
        let first = (usual.first_instruction)(self.region.blocks[self.index]);
        let (mut number, mut index) = (0, 0);
        for (step, (before, address)) in block.steps.iter().zip((0..).zip((block.address..).step_by(4))) {
            let instruction = first + before;
            if before == 0 || address & (line - 1) == 0 {
                number += 1;
                let what = Unusual { instruction, number, index: 0, more: 0, is_store: false };
                self.look_at_line(lookaside, address, what);
            }
            if let Some(size) = step.op.access_size() {
                (number, index) = (number + 1, index + 1);
                let is_store = step.op.is(Flags::STORE);
                let what = Unusual { instruction, number, index, more: size - 1, is_store };
                self.look_at_data(lookaside, step, what);
            }
        }
        self.assembler.address(Size::Quad, TIME, Place { base: TIME, displacement: number.into() });
        self.count_execution();
    }

    /// Where to jump to tell what is not usual, and the label to place where compiled code goes on.
    fn otherwise(&mut self, what: Unusual, fetched: Option<u64>) -> (Label, Label) {
        let (label, back) = (self.assembler.label(), self.assembler.label());
        self.behind.push(Behind::Unusual { label, what, fetched, back });
        (label, back)
    }

    /// The instructions of the line at an address are fetched.
    fn look_at_line(&mut self, lookaside: &Lookaside, address: u64, what: Unusual) {
        let side = lookaside.code;
        let line = address >> side.line_shift;
        let place = words(lookaside, side.known) + 8 * (line as usize % Lookaside::KNOWN) as i32;
        let known = |displacement| Place { base: RECORD, displacement: place + displacement };
        let others = (line >> Lookaside::KNOWN.ilog2()) as i32;
        let (unusual, back) = self.otherwise(what, Some(address));
        self.assembler.alu_constant(Alu::Cmp, Size::Long, known(0), others);
        self.assembler.jump_if(Condition::NotEqual, unusual);
        self.assembler.load_zero_extended(Size::Word, RCX, known(SLOT));
        self.note_use(lookaside, &side, what.number);
        self.assembler.place(back);
    }

    /// An access is made.
    fn look_at_data(&mut self, lookaside: &Lookaside, step: &Step, what: Unusual) {
        let (side, (unusual, back)) = (lookaside.data, self.otherwise(what, None));
        let address = Place { base: RECORD, displacement: 8 * i32::from(what.index) };
        self.assembler.load(Size::Quad, RAX, address);
        // What is aligned is in one line.
        if what.more > 0 && !step.op.is_rounded() {
            self.assembler.test_bits(RAX, what.more);
            self.assembler.jump_if(Condition::NotEqual, unusual);
        }
        self.assembler.load(Size::Long, RCX, RAX);
        self.assembler.shift(Shift::Right, Size::Long, RCX, side.line_shift as u8);
        self.assembler.alu_constant(Alu::And, Size::Long, RCX, Lookaside::KNOWN as i32 - 1);
        let others = side.line_shift + Lookaside::KNOWN.ilog2();
        self.assembler.shift(Shift::Right, Size::Quad, RAX, others as u8);
        let place = words(lookaside, side.known);
        let known = |displacement| Operand::Indexed(RECORD, RCX, 3, place + displacement);
        self.assembler.alu(Alu::Cmp, Size::Long, RAX, known(0));
        self.assembler.jump_if(Condition::NotEqual, unusual);
        self.assembler.load_zero_extended(Size::Word, RCX, known(SLOT));
        self.note_use(lookaside, &side, what.number);
        if let Some(marks) = lookaside.marks.filter(|_| what.is_store) {
            let mark = Operand::Indexed(RECORD, RCX, SLOT_SCALE, words(lookaside, marks));
            self.assembler.set_bits(mark, 1);
        }
        self.assembler.place(back);
    }

    /// Notes when the line in the slot that rcx tells was used.
    fn note_use(&mut self, lookaside: &Lookaside, side: &Side, number: u16) {
        self.assembler.address(Size::Quad, RAX, Place { base: TIME, displacement: number.into() });
        let time = Operand::Indexed(RECORD, RCX, SLOT_SCALE, words(lookaside, side.times));
        self.assembler.store(Size::Quad, time, RAX);
    }
}

/// The bytes of what is known of a line that hold its slot. The bits below it there are the highest of the line's
/// number; they are 0, since programs that run have addresses of less than 48 bits.
const SLOT: i32 = 6;
/// Times so much (as a power of two) they are the distance of the slot's word from the first.
const SLOT_SCALE: u8 = {
    let bits_below = Lookaside::SLOT_SHIFT - 8 * SLOT as u32;
    (size_of::<u64>().ilog2() - bits_below) as u8
};
