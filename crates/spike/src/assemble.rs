//! From blocks in a new order to words at addresses.

use isa::Op;

use crate::error::Problem;
use crate::program::{
    Anchor, Base, BranchTarget, CodeBlockId, CodeExit, ImageCounter, LENGTH, LiftedInstruction, NO_ORIGIN,
    PredictedTarget, ProcedureId, Program, Reference, ZERO, branch_word,
};
use crate::stubs::{Stub, Stubs};
use crate::unwind::NO_ROW;

/// Where the blocks go.
#[derive(Clone, Debug, Default)]
pub struct CodeLayout {
    /// The parts of procedures, in the order of their addresses.
    pub fragments: Vec<Fragment>,
}

/// Blocks of a procedure that follow each other.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The procedure.
    pub procedure: ProcedureId,
    /// The blocks, in order.
    pub blocks: Vec<CodeBlockId>,
    /// Bytes of which its address is a multiple.
    pub align: u64,
}

/// The words of the new code.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    /// The address of the first one.
    pub base: u64,
    /// The address of the counters, if the program has some.
    pub counters: u64,
    /// The words.
    pub words: Vec<u32>,
    /// The number of the original instruction of each, or [`NO_ORIGIN`].
    pub origins: Vec<u32>,
    /// The frame at each ([`Frames::rows`](crate::unwind::Frames)).
    pub frames: Vec<u32>,
    /// The address of each block; 0 if it has none.
    pub block_addresses: Vec<u64>,
    /// The first address of each fragment, and the first one after it.
    pub fragments: Vec<(u64, u64)>,
}

/// `bis $31,$31,$31`.
pub const NOP: u32 = 0x47ff_041f;
/// Conditional branches and their opposites.
const OPPOSITES: [(Op, Op); 7] = [
    (Op::Beq, Op::Bne),
    (Op::Blt, Op::Bge),
    (Op::Ble, Op::Bgt),
    (Op::Blbc, Op::Blbs),
    (Op::Fbeq, Op::Fbne),
    (Op::Fblt, Op::Fbge),
    (Op::Fble, Op::Fbgt),
];
/// The field of a jump through a register with the distance to its predicted target, in words.
const HINT: u32 = 0x3fff;
/// Words that a branch reaches, backwards and forwards.
const REACH: i64 = 1 << 20;

/// The branches at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockEnding {
    Nothing,
    /// To its target.
    Branch(LiftedInstruction, BranchTarget),
    /// A conditional branch; the other way follows.
    Conditional(LiftedInstruction, BranchTarget),
    /// A conditional branch, and an unconditional one.
    Both(LiftedInstruction, BranchTarget, CodeBlockId),
}

impl BlockEnding {
    fn words(&self) -> u64 {
        match self {
            BlockEnding::Nothing => 0,
            BlockEnding::Branch(..) | BlockEnding::Conditional(..) => 1,
            BlockEnding::Both(..) => 2,
        }
    }
}

/// The word of a conditional branch with the opposite condition.
pub fn invert(word: u32) -> Option<u32> {
    let op = isa::decode_op(word)?;
    let other = OPPOSITES.iter().find_map(|&(a, b)| match op {
        _ if op == a => Some(b),
        _ if op == b => Some(a),
        _ => None,
    })?;
    Some(word & 0x03ff_ffff | u32::from(other.row().opcode) << 26)
}

fn ending(program: &Program, id: CodeBlockId, next: Option<CodeBlockId>) -> BlockEnding {
    let block = &program.blocks[id as usize];
    let is_frozen = program.procedures[block.procedure as usize].frozen.is_some();
    let frame = block.instructions.last().map_or(NO_ROW, |last| last.frame);
    let onward = |target: CodeBlockId| match next == Some(target) {
        true => BlockEnding::Nothing,
        false => {
            BlockEnding::Branch(LiftedInstruction::new(branch_word(), frame), BranchTarget::Block(target))
        }
    };
    match &block.exit {
        CodeExit::Next(target) => onward(*target),
        CodeExit::Branch { branch, target } => {
            let is_kept = is_frozen || isa::decode(branch.word).is_none_or(|one| one.ra() != ZERO);
            match target.block() {
                Some(block) if next == Some(block) && !is_kept => BlockEnding::Nothing,
                _ => BlockEnding::Branch(*branch, *target),
            }
        }
        CodeExit::Conditional { branch, taken, next: other, .. } => {
            if next == Some(*other) {
                return BlockEnding::Conditional(*branch, *taken);
            }
            match (taken.block(), invert(branch.word)) {
                (Some(taken), Some(word)) if next == Some(taken) && !is_frozen => BlockEnding::Conditional(
                    LiftedInstruction { word, ..*branch },
                    BranchTarget::Block(*other),
                ),
                _ => BlockEnding::Both(*branch, *taken, *other),
            }
        }
        CodeExit::Jump { .. } | CodeExit::Leave => BlockEnding::Nothing,
    }
}

/// The number of words that a block takes if this one follows.
pub fn size(program: &Program, block: CodeBlockId, next: Option<CodeBlockId>) -> u64 {
    program.blocks[block as usize].instructions.len() as u64 + ending(program, block, next).words()
}

/// Gives every block of the layout an address from `base` on, and computes the words. Branches that do not reach their
/// targets go to stubs behind their fragments.
pub fn assemble(program: &Program, layout: &CodeLayout, base: u64) -> Result<Assembly, Problem> {
    assemble_with(program, layout, base, base)
}

/// The same of an instrumented program, with counters at this address.
pub fn assemble_with(
    program: &Program,
    layout: &CodeLayout,
    base: u64,
    counters: u64,
) -> Result<Assembly, Problem> {
    let mut stubs = Stubs::new();
    loop {
        let mut encoder = BlockEncoder::new(program, layout, base, counters, &stubs);
        for (index, fragment) in layout.fragments.iter().enumerate() {
            encoder.fragment = index;
            encoder.pad(encoder.assembly.fragments[index].0);
            for (at, &block) in fragment.blocks.iter().enumerate() {
                encoder.block(block, fragment.blocks.get(at + 1).copied())?;
            }
            for stub in stubs.of(index) {
                let (from, to) = (encoder.address(), encoder.target(stub.target));
                let row = LiftedInstruction::new(0, stub.frame);
                stub.words(from, to)?.into_iter().for_each(|word| encoder.push(word, &row));
            }
        }
        // Stubs make distances longer, but not shorter: in the end there are enough.
        let BlockEncoder { assembly, missing, .. } = encoder;
        if missing.is_empty() {
            return Ok(assembly);
        }
        missing.into_iter().for_each(|(fragment, stub)| stubs.add(fragment, stub));
    }
}

struct BlockEncoder<'a> {
    program: &'a Program,
    assembly: Assembly,
    /// The address after the call or the branch with a link at the end of each block.
    ends: Vec<u64>,
    stubs: &'a Stubs,
    /// The fragment that is encoded.
    fragment: usize,
    /// Stubs that are needed besides, and the fragments with the branches to them.
    missing: Vec<(usize, Stub)>,
    /// The address of the counters.
    counters: u64,
}

impl<'a> BlockEncoder<'a> {
    fn new(
        program: &'a Program,
        layout: &CodeLayout,
        base: u64,
        counters: u64,
        stubs: &'a Stubs,
    ) -> BlockEncoder<'a> {
        let mut assembly = Assembly {
            base,
            counters,
            block_addresses: vec![0; program.blocks.len()],
            fragments: Vec::with_capacity(layout.fragments.len()),
            ..Assembly::default()
        };
        let mut ends = vec![0; program.blocks.len()];
        let mut address = base;
        for (index, fragment) in layout.fragments.iter().enumerate() {
            if program.is_trampoline(fragment.procedure) {
                address += LENGTH;
            }
            address = address.next_multiple_of(fragment.align);
            let start = address;
            for (at, &block) in fragment.blocks.iter().enumerate() {
                assembly.block_addresses[block as usize] = address;
                let own = program.blocks[block as usize].instructions.len() as u64;
                let is_linked = matches!(program.blocks[block as usize].exit, CodeExit::Branch { .. });
                ends[block as usize] = address + (own + u64::from(is_linked)) * LENGTH;
                address += size(program, block, fragment.blocks.get(at + 1).copied()) * LENGTH;
            }
            address += stubs.of(index).len() as u64 * Stub::BYTES;
            assembly.fragments.push((start, address));
        }
        BlockEncoder { program, assembly, ends, stubs, fragment: 0, missing: Vec::new(), counters }
    }

    fn address(&self) -> u64 {
        self.assembly.base + self.assembly.words.len() as u64 * LENGTH
    }

    fn push(&mut self, word: u32, instruction: &LiftedInstruction) {
        self.assembly.words.push(word);
        self.assembly.origins.push(instruction.origin);
        self.assembly.frames.push(instruction.frame);
    }

    fn pad(&mut self, until: u64) {
        while self.address() < until {
            self.push(NOP, &LiftedInstruction::new(NOP, NO_ROW));
        }
    }

    fn block(&mut self, id: CodeBlockId, next: Option<CodeBlockId>) -> Result<(), Problem> {
        let program = self.program;
        let block = &program.blocks[id as usize];
        let gp = program.procedures[block.procedure as usize].global_pointer;
        for instruction in &block.instructions {
            let word = match instruction.reference {
                Reference::Branch(target) => self.branch(instruction, target)?,
                Reference::GlobalPointerHigh(pair) => with_high(instruction.word, self.distance(pair)),
                Reference::GlobalPointerLow(pair) => with_low(instruction.word, self.distance(pair)),
                Reference::CodeHigh(target) => {
                    with_high(instruction.word, self.of(target).wrapping_sub(gp) as i64)
                }
                Reference::CodeLow(target) => {
                    with_low(instruction.word, self.of(target).wrapping_sub(gp) as i64)
                }
                Reference::CounterHigh(counter) => with_high(instruction.word, self.counter(counter, gp)),
                Reference::CounterLow(counter) => with_low(instruction.word, self.counter(counter, gp)),
                Reference::None | Reference::Slot(_) | Reference::CallThrough(_) => self.hinted(instruction),
            };
            self.push(word, instruction);
        }
        match ending(program, id, next) {
            BlockEnding::Nothing => {}
            BlockEnding::Branch(branch, target) | BlockEnding::Conditional(branch, target) => {
                let word = self.branch(&branch, target)?;
                self.push(word, &branch);
            }
            BlockEnding::Both(branch, taken, next) => {
                let word = self.branch(&branch, taken)?;
                self.push(word, &branch);
                let other = LiftedInstruction { word: branch_word(), origin: NO_ORIGIN, ..branch };
                let word = self.branch(&other, BranchTarget::Block(next))?;
                self.push(word, &other);
            }
        }
        Ok(())
    }

    /// The word of an instruction; of a jump through a register with the target in its hint, if that is known.
    fn hinted(&self, instruction: &LiftedInstruction) -> u32 {
        if !instruction.is_jump() {
            return instruction.word;
        }
        let of_slot = match instruction.reference {
            Reference::CallThrough(slot) => self.program.data_at(slot).map(PredictedTarget::Block),
            _ => None,
        };
        let target = match of_slot.or_else(|| self.program.predicted.get(&instruction.origin).copied()) {
            Some(PredictedTarget::Block(block)) if self.of(block) != 0 => self.of(block),
            Some(PredictedTarget::External(low)) => low.into(),
            _ => return instruction.word,
        };
        let words = target.wrapping_sub(self.address() + LENGTH) / LENGTH;
        instruction.word & !HINT | words as u32 & HINT
    }

    /// The distance from its anchor to a counter.
    fn counter(&self, counter: ImageCounter, gp: u64) -> i64 {
        let address = self.counters + u64::from(counter.offset);
        let before = |instructions: u8| self.address() - u64::from(instructions) * LENGTH;
        let distance = match counter.anchor {
            Anchor::GlobalPointer => address.wrapping_sub(gp),
            Anchor::Block(back, block) => self.of(block).wrapping_sub(before(back)),
            Anchor::Code => address.wrapping_sub(self.assembly.base),
            Anchor::Instruction(back) => address.wrapping_sub(before(back)),
            // From four times the distance of an address from the anchor to four times its distance from the entry.
            Anchor::Scaled(back, entry) => {
                let anchor = before(back);
                address.wrapping_sub(anchor).wrapping_add(4 * anchor.wrapping_sub(self.of(entry)))
            }
        };
        distance as i64
    }

    fn of(&self, block: CodeBlockId) -> u64 {
        self.assembly.block_addresses[block as usize]
    }

    fn target(&self, target: BranchTarget) -> u64 {
        match target {
            BranchTarget::Block(block) => self.of(block),
            BranchTarget::Address(address) => address,
        }
    }

    fn branch(&mut self, branch: &LiftedInstruction, target: BranchTarget) -> Result<u32, Problem> {
        let (from, to) = (self.address(), self.target(target));
        if to == 0 {
            return Err(Problem::Damaged(format!("a branch to code that was removed, from {from:#x}")));
        }
        let encode = |to: u64| {
            let words = (to.wrapping_sub(from + LENGTH) as i64) / LENGTH as i64;
            (-REACH..REACH).contains(&words).then_some(branch.word & 0xffe0_0000 | words as u32 & 0x1f_ffff)
        };
        if let Some(word) = encode(to) {
            return Ok(word);
        }
        let unreachable = Problem::OutOfReach { from, to };
        let Some(stub) = Stub::new(self.program, branch, target) else { return Err(unreachable) };
        match self.stubs.of(self.fragment).iter().position(|one| *one == stub) {
            Some(at) => {
                let behind = (self.stubs.of(self.fragment).len() - at) as u64 * Stub::BYTES;
                encode(self.assembly.fragments[self.fragment].1 - behind).ok_or(unreachable)
            }
            None => {
                self.missing.push((self.fragment, stub));
                Ok(branch.word)
            }
        }
    }

    fn distance(&self, pair: u32) -> i64 {
        let pair = &self.program.global_pointers[pair as usize];
        let base = match pair.base {
            Base::Block(block) => self.of(block),
            Base::AfterCall(block) => self.ends[block as usize],
        };
        pair.value.wrapping_sub(base) as i64
    }
}

/// The word with the upper half of a distance.
pub fn with_high(word: u32, distance: i64) -> u32 {
    word & 0xffff_0000 | ((distance + 0x8000) >> 16) as u32 & 0xffff
}

/// The word with the lower half.
pub fn with_low(word: u32, distance: i64) -> u32 {
    word & 0xffff_0000 | distance as u32 & 0xffff
}
