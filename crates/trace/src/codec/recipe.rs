//! What executing a block does to the registers, as far as addresses follow from one another: each block is
//! looked at once, and then executed as a few accesses and assignments instead of instruction by instruction.

use isa::{Flags, Format, Instruction, Op};

use crate::bytes::Malformed;
use events::BlockId;
use events::record::Shape;

/// Where values are kept while a block is executed: the registers as they were when it began, then what is
/// loaded or computed in it.
pub(crate) const REGISTERS: usize = 32;
/// All of them. One word has a bit for each.
pub(crate) const SLOTS: usize = 64;
/// The slot that is always 0.
pub(crate) const ZERO: u8 = 31;
/// The slot that is never known.
pub(crate) const UNKNOWN: u8 = 63;
/// No register.
pub(crate) const NONE: u8 = 32;

/// A value that follows from a slot's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    pub slot: u8,
    pub constant: u64,
}

/// What an access does with the quadword, if it moves one that may be an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// No quadword, or not between memory and an integer register.
    Other,
    /// Loads it into a slot: `data`, whose constant is 0.
    Load,
    /// Stores `data`.
    Store,
}

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The base register, and the displacement.
    pub base: Sum,
    /// The slot whose value follows from the address, if it was not known; [`UNKNOWN`] if there is none.
    pub learns: u8,
    pub data: Sum,
    pub moves: Moves,
    /// The bits of the sum that are the address: all, or all but the low three.
    pub mask: u64,
}

/// What a register holds after a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assignment {
    pub register: u8,
    pub to: Sum,
    /// All bits, if the register holds just what the slot holds.
    pub is_copy: u64,
}

impl Assignment {
    fn new(register: u8, to: Sum) -> Assignment {
        Assignment { register, to, is_copy: if to.constant == 0 { u64::MAX } else { 0 } }
    }
}

/// How a block ends, as far as it tells where control goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exit {
    #[default]
    Other,
    Call,
    Return,
}

/// What executing a block does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub address: u64,
    /// The first of its accesses and assignments among all, and how many they are.
    accesses: (u32, u32),
    assignments: (u32, u8),
    pub instructions: u32,
    /// Words of its records.
    pub words: u32,
    /// The registers that hold something unknown afterwards, a bit each.
    pub unknown: u32,
    /// The register that holds the address of what is executed next, or [`NONE`].
    pub jump: u8,
    pub exit: Exit,
}

/// What blocks do, by their numbers in their process.
#[derive(Debug)]
pub(crate) struct Recipes {
    pub has_values: bool,
    list: Vec<Recipe>,
    accesses: Vec<Access>,
    assignments: Vec<Assignment>,
    /// Of the blocks, if records have values; and which is each block's first.
    instructions: Vec<Option<Instruction>>,
    starts: Vec<u32>,
}

/// Of a block that is not known: it has no instructions, which no block has.
const LOST: Recipe = Recipe {
    address: 0,
    accesses: (0, 0),
    assignments: (0, 0),
    instructions: 0,
    words: 0,
    unknown: 0,
    jump: NONE,
    exit: Exit::Other,
};

impl Recipes {
    /// Of no blocks.
    pub fn new(has_values: bool) -> Recipes {
        Recipes {
            has_values,
            list: Vec::new(),
            accesses: Vec::new(),
            assignments: Vec::new(),
            instructions: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// The next block's; of a block that is lost, without words.
    pub fn push(&mut self, address: u64, words: &[u32]) {
        let mut derivation = Derivation::new();
        let shape = Shape::new(words, self.has_values);
        let mut recipe = Recipe { address, instructions: shape.instructions, words: shape.words(), ..LOST };
        let mut pc = address;
        for &word in words {
            pc = pc.wrapping_add(4);
            if let Some(instruction) = isa::decode(word) {
                derivation.execute(instruction, pc);
                recipe.exit = exit(instruction);
                recipe.jump = jump(instruction);
            }
        }
        let (assignments, unknown) = derivation.outcome();
        recipe.unknown = unknown;
        recipe.accesses = (self.accesses.len() as u32, derivation.accesses.len() as u32);
        recipe.assignments = (self.assignments.len() as u32, assignments.len() as u8);
        self.accesses.extend(derivation.accesses);
        self.assignments.extend(assignments);
        if self.has_values {
            self.starts.push(self.instructions.len() as u32);
            self.instructions.extend(words.iter().map(|&word| isa::decode(word)));
        }
        self.list.push(recipe);
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    #[inline(always)]
    pub fn get(&self, id: BlockId) -> Result<&Recipe, Malformed> {
        let recipe = self.list.get(id as usize).filter(|recipe| recipe.instructions > 0);
        recipe.ok_or(Malformed("it names a block that is not in the dictionary"))
    }

    #[inline(always)]
    pub fn accesses(&self, recipe: &Recipe) -> &[Access] {
        let (start, count) = recipe.accesses;
        &self.accesses[start as usize..][..count as usize]
    }

    /// The instructions of a block, if records have values.
    pub fn instructions(&self, id: BlockId) -> &[Option<Instruction>] {
        let start = self.starts.get(id as usize).map_or(0, |&start| start as usize);
        let count = self.list[id as usize].instructions;
        self.instructions.get(start..start + count as usize).unwrap_or_default()
    }

    /// To be done in this order.
    #[inline(always)]
    pub fn assignments(&self, recipe: &Recipe) -> &[Assignment] {
        let (start, count) = recipe.assignments;
        &self.assignments[start as usize..][..count as usize]
    }
}

fn exit(instruction: Instruction) -> Exit {
    match instruction.op {
        op if op.is(Flags::CALL) && instruction.ra() != ZERO => Exit::Call,
        op if op.is(Flags::RETURN) => Exit::Return,
        _ => Exit::Other,
    }
}

/// The register that still holds where the instruction jumped to.
fn jump(instruction: Instruction) -> u8 {
    let jumps = instruction.op.format() == Format::MemoryJump && instruction.rb() != ZERO;
    if jumps && instruction.rb() != instruction.ra() { instruction.rb() } else { NONE }
}

/// What the registers hold in the middle of a block.
struct Derivation {
    registers: [Sum; REGISTERS],
    /// Slots that hold something, a bit each: of the others nothing is known.
    filled: u64,
    accesses: Vec<Access>,
}

impl Derivation {
    fn new() -> Derivation {
        let registers = std::array::from_fn(|register| Sum { slot: register as u8, constant: 0 });
        Derivation { registers, filled: u32::MAX.into(), accesses: Vec::new() }
    }

    fn plus(&self, register: u8, constant: i64) -> Sum {
        let sum = self.registers[register as usize];
        Sum { constant: sum.constant.wrapping_add(constant as u64), ..sum }
    }

    fn write(&mut self, register: u8, sum: Sum) {
        if register != ZERO {
            self.registers[register as usize] = sum;
        }
    }

    /// A slot for a value that does not follow from others: there are more than registers that may hold one.
    fn fresh(&mut self) -> Sum {
        let used = self.registers.iter().fold(0u64, |used, sum| used | 1 << sum.slot);
        let slot = (REGISTERS as u8..UNKNOWN).find(|slot| used >> slot & 1 == 0).unwrap_or(UNKNOWN);
        self.filled &= !(1 << slot);
        Sum { slot, constant: 0 }
    }

    fn execute(&mut self, instruction: Instruction, next_pc: u64) {
        let (ra, rb, rc) = (instruction.ra(), instruction.rb(), instruction.rc());
        let op = instruction.op;
        if instruction.access_size().is_some() {
            return self.access(instruction);
        }
        match op.format() {
            Format::Memory if op == Op::Lda => {
                self.write(ra, self.plus(rb, instruction.displacement().into()))
            }
            Format::Memory if op == Op::Ldah => {
                self.write(ra, self.plus(rb, i64::from(instruction.displacement()) << 16));
            }
            Format::Branch | Format::MemoryJump if !op.is_float() && !op.is(Flags::CONDITIONAL) => {
                self.write(ra, Sum { slot: ZERO, constant: next_pc });
            }
            Format::Operate => {
                let sum = self.operate(instruction).unwrap_or_else(|| self.fresh());
                self.write(rc, sum);
            }
            Format::FloatOperate if matches!(op, Op::Ftoit | Op::Ftois) => {
                let sum = self.fresh();
                self.write(rc, sum);
            }
            Format::MemoryFunction if matches!(op, Op::Rpcc | Op::Rc | Op::Rs) => {
                let sum = self.fresh();
                self.write(ra, sum);
            }
            // A call to the system returns in v0, a3 and a4; the others, in v0 if at all.
            Format::Pal => {
                for register in [0, 19, 20] {
                    let sum = self.fresh();
                    self.write(register, sum);
                }
            }
            _ => {}
        }
    }

    /// What an operation gives, if that is a value it is given plus a constant.
    fn operate(&self, instruction: Instruction) -> Option<Sum> {
        let constant = |sum: Sum| (sum.slot == ZERO).then_some(sum.constant);
        let a = self.registers[instruction.ra() as usize];
        let b = match instruction.literal() {
            Some(literal) => Sum { slot: ZERO, constant: literal.into() },
            None => self.registers[instruction.rb() as usize],
        };
        let plus = |sum: Sum, constant| Sum { constant: sum.constant.wrapping_add(constant), ..sum };
        match instruction.op {
            Op::Addq => constant(b).map(|b| plus(a, b)).or_else(|| constant(a).map(|a| plus(b, a))),
            Op::Subq => constant(b).map(|b| plus(a, b.wrapping_neg())),
            Op::Bis if a == b => Some(a),
            Op::Bis if constant(a) == Some(0) => Some(b),
            Op::Bis if constant(b) == Some(0) => Some(a),
            _ => None,
        }
    }

    fn access(&mut self, instruction: Instruction) {
        let (op, ra) = (instruction.op, instruction.ra());
        let mut base = self.plus(instruction.rb(), instruction.displacement().into());
        let learns = if op.is_rounded() || base.slot == ZERO { UNKNOWN } else { base.slot };
        if self.filled >> base.slot & 1 == 0 {
            base.slot = UNKNOWN;
        }
        self.filled |= 1 << learns;
        let is_quadword = matches!(op, Op::Ldq | Op::Stq | Op::LdqL | Op::StqC);
        let (mut data, mut moves) = (Sum { slot: ZERO, constant: 0 }, Moves::Other);
        if op.is(Flags::STORE) && is_quadword {
            (data, moves) = (self.known(self.plus(ra, 0)), Moves::Store);
        } else if op.is(Flags::LOAD) && is_quadword && ra != ZERO {
            (data, moves) = (self.fresh(), Moves::Load);
            self.filled |= 1 << data.slot;
        }
        let mask = if op.is_rounded() { !7 } else { !0 };
        self.accesses.push(Access { base, mask, learns, data, moves });
        // A locked store returns whether it stored.
        if moves == Moves::Load {
            self.write(ra, data);
        } else if !op.is_float() && (op.is(Flags::LOAD) || op.is(Flags::LOCKED)) {
            let sum = self.fresh();
            self.write(ra, sum);
        }
    }

    fn known(&self, sum: Sum) -> Sum {
        if self.filled >> sum.slot & 1 == 0 { Sum { slot: UNKNOWN, constant: 0 } } else { sum }
    }

    /// What the registers hold in the end: assignments in an order in which none overwrites what a later one
    /// needs, and the registers of which nothing is known.
    fn outcome(&self) -> (Vec<Assignment>, u32) {
        let (mut pending, mut ordered, mut unknown) = (Vec::new(), Vec::new(), 0);
        for (register, &to) in (0..ZERO).zip(&self.registers) {
            if self.known(to).slot == UNKNOWN {
                unknown |= 1 << register;
            } else if to != (Sum { slot: register, constant: 0 }) {
                pending.push(Assignment::new(register, to));
            }
        }
        while !pending.is_empty() {
            let is_free = |one: &Assignment| {
                pending.iter().all(|other| other.register == one.register || other.to.slot != one.register)
            };
            match pending.iter().position(is_free) {
                Some(index) => ordered.push(pending.remove(index)),
                // They wait for one another: one is given up.
                None => unknown |= 1 << pending.remove(0).register,
            }
        }
        (ordered, unknown)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use isa::evaluate;

    /// Executes an instruction: the address it accesses, from registers whose unknown values come from `values`.
    fn execute(
        instruction: Instruction,
        pc: u64,
        r: &mut [u64; 32],
        mut values: impl Iterator<Item = u64>,
    ) -> Option<u64> {
        let (op, ra, rb, rc) = (instruction.op, instruction.ra(), instruction.rb(), instruction.rc());
        let base = r[rb as usize];
        let is_access = instruction.access_size().is_some();
        let mut any = || values.next().unwrap();
        let written: &[(u8, u64)] = match op.format() {
            Format::Memory if op == Op::Lda || op == Op::Ldah => {
                let shift = if op == Op::Ldah { 16 } else { 0 };
                &[(ra, base.wrapping_add_signed(i64::from(instruction.displacement()) << shift))]
            }
            Format::Memory if op.is_float() || op.is(Flags::STORE) && !op.is(Flags::LOCKED) => &[],
            Format::Memory => &[(ra, any())],
            Format::Branch if op.is(Flags::CONDITIONAL) => &[],
            Format::Branch | Format::MemoryJump => &[(ra, pc.wrapping_add(4))],
            Format::Operate => {
                let b = instruction.literal().map_or(base, u64::from);
                &[(rc, evaluate(op, r[ra as usize], b, r[rc as usize]).unwrap_or_else(any))]
            }
            Format::FloatOperate if matches!(op, Op::Ftoit | Op::Ftois) => &[(rc, any())],
            Format::MemoryFunction if matches!(op, Op::Rpcc | Op::Rc | Op::Rs) => &[(ra, any())],
            Format::Pal => &[(0, any()), (19, any()), (20, any())],
            _ => &[],
        };
        for &(register, value) in written {
            r[register as usize] = value;
        }
        r[31] = 0;
        is_access.then(|| instruction.effective_address(base))
    }

    /// Words with few registers, so that they have much to do with one another.
    fn word() -> impl Strategy<Value = u32> {
        let register = || prop_oneof![0u32..4, Just(30), Just(31)];
        let opcode = prop::sample::select(vec![0x08, 0x09, 0x0b, 0x0f, 0x28, 0x29, 0x29, 0x2d, 0x2f, 0x2a]);
        let memory = (opcode, register(), register(), -64i16..64)
            .prop_map(|(opcode, a, b, low)| opcode << 26 | a << 21 | b << 16 | u32::from(low as u16));
        let function =
            prop::sample::select(vec![(0x10, 0x20), (0x10, 0x29), (0x11, 0x20), (0x10, 0x2d), (0x12, 0x39)]);
        let operate = (function, register(), register(), register())
            .prop_map(|((opcode, function), a, b, c)| opcode << 26 | a << 21 | b << 16 | function << 5 | c);
        let literal =
            (operate, any::<bool>()).prop_map(|(word, is_literal)| word | u32::from(is_literal) << 12);
        prop_oneof![8 => memory, 6 => literal, 1 => Just(0xd340_0000), 1 => any::<u32>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// What a recipe says of addresses and registers is what comes of executing the instructions.
        #[test]
        fn recipes_do_what_instructions_do(
            words in vec(word(), 1..80),
            registers: [u64; 32],
            values in vec(any::<u64>(), 240),
        ) {
            let mut recipes = Recipes::new(false);
            recipes.push(0x1000, &words);
            let recipe = recipes.get(0).unwrap();
            let mut slots = [None; SLOTS];
            let mut r = registers;
            r[31] = 0;
            for (slot, value) in slots.iter_mut().zip(r) {
                *slot = Some(value);
            }
            let mut accesses = recipes.accesses(recipe).iter();
            for (index, &word) in words.iter().enumerate() {
                let Some(instruction) = isa::decode(word) else { continue };
                let pc = 0x1000 + 4 * index as u64;
                let Some(address) = execute(instruction, pc, &mut r, values[3 * index..].iter().copied()) else {
                    continue;
                };
                let access = accesses.next().unwrap();
                if let Some(base) = slots_value(&slots, access.base) {
                    prop_assert_eq!(base & access.mask, address, "access of instruction {}", index);
                }
                if access.learns != UNKNOWN {
                    slots[access.learns as usize] = Some(address.wrapping_sub(access.base.constant));
                }
                if access.moves == Moves::Load {
                    slots[access.data.slot as usize] = Some(r[instruction.ra() as usize]);
                }
            }
            prop_assert!(accesses.next().is_none());
            for assignment in recipes.assignments(recipe) {
                slots[assignment.register as usize] = slots_value(&slots, assignment.to);
            }
            for register in (0..31).filter(|register| recipe.unknown >> register & 1 == 0) {
                prop_assert_eq!(slots[register], Some(r[register]), "register {}", register);
            }
        }
    }

    fn slots_value(slots: &[Option<u64>; SLOTS], sum: Sum) -> Option<u64> {
        slots[sum.slot as usize].map(|value| value.wrapping_add(sum.constant))
    }
}
