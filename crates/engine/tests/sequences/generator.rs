//! Generates random sequences: straight code, branches, loops, calls, jump tables, faults.
//!
//! Every sequence terminates: branches go forward, loops count in registers that are not written otherwise, and
//! functions call only functions generated before them.

use fastrand::Rng;
use isa::Op;

use super::assembler::register::*;
use super::assembler::{branch, branch_to, jump, literal, memory, registers};
use super::instructions as one;
use super::{Kind, Sequence};

/// A sequence of this kind, mostly a short one: bugs show in a few instructions, which are faster to test.
pub fn sequence(random: &mut Rng, kind: Kind) -> Sequence {
    let (functions, pieces) = match random.u32(..64) {
        0 => (random.u32(..4), 40),
        1..8 => (random.u32(1..3), random.usize(1..8)),
        _ => (0, random.usize(1..5)),
    };
    let mut generator = Generator { random, kind, words: Vec::new(), functions: Vec::new() };
    (0..functions).for_each(|_| generator.function());
    let entry = generator.words.len();
    generator.pieces(pieces, Resources { counters: &COUNTERS, calls: true });
    generator.words.push(jump(Op::Ret, ZERO, BACK));
    Sequence { entry, words: generator.words }
}

struct Function {
    entry: usize,
    link: u8,
}

/// The resources available where code is generated.
#[derive(Clone, Copy)]
struct Resources {
    /// Registers for loop counters.
    counters: &'static [u8],
    /// Whether functions may be called.
    calls: bool,
}

struct Generator<'a> {
    random: &'a mut Rng,
    kind: Kind,
    words: Vec<u32>,
    functions: Vec<Function>,
}

impl Generator<'_> {
    fn pieces(&mut self, count: usize, resources: Resources) {
        for _ in 0..count {
            self.piece(resources);
        }
    }

    fn piece(&mut self, resources: Resources) {
        match self.random.u32(..40) {
            0..3 => self.branch(resources),
            3 => self.jump(resources),
            4 | 5 => self.rounds(resources),
            6..9 => self.call(resources),
            9 => self.table(),
            10 => {
                let word = one::other(self.random);
                self.words.push(word);
            }
            11 if self.kind == Kind::Full => self.fault(),
            _ => self.straight(),
        }
    }

    fn straight(&mut self) {
        let (random, kind) = (&mut *self.random, self.kind);
        let words = match random.u32(..8) {
            0..4 => vec![one::integer_operation(random)],
            4 => vec![one::float_operation(random, kind)],
            5 => one::access(random, kind),
            6 => one::indirect_access(random, kind),
            _ if random.bool() => one::access(random, kind),
            _ => one::exchange(random),
        };
        self.words.extend(words);
    }

    /// One instruction that does not trap.
    fn single(&mut self) {
        let word = one::integer_operation(self.random);
        self.words.push(word);
    }

    /// An instruction that may end the sequence with a signal.
    fn fault(&mut self) {
        let random = &mut *self.random;
        let words = match random.u32(..8) {
            0..3 => one::wild_access(random),
            3 => vec![one::wild_load(random)],
            4 => vec![one::trapping_operation(random)],
            5 => vec![one::misaligned_exchange(random)],
            6 => vec![one::illegal(random)],
            _ => {
                let op = random.choice([Op::Jmp, Op::Jsr, Op::Ret, Op::JsrCoroutine]).expect("four");
                let to = jump(op, LINK, PLACE);
                // The address is not that of instructions, whose change would have undefined effects.
                let address = std::iter::repeat_with(|| one::wild_address(random));
                let mut words = address.into_iter().find(|words| words[0] != branch(Op::Br, PLACE, 0));
                words.as_mut().expect("there are others").push(to);
                words.unwrap_or_default()
            }
        };
        self.words.extend(words);
    }

    /// A conditional branch over code.
    fn branch(&mut self, resources: Resources) {
        let at = self.words.len();
        self.words.push(0);
        let count = self.random.usize(1..4);
        self.pieces(count, resources);
        self.words[at] = one::conditional(self.random, self.words.len() - at - 1);
    }

    /// A jump over code through a register; the low bits of the target are ignored.
    fn jump(&mut self, resources: Resources) {
        let op = self.random.choice([Op::Jmp, Op::Jsr, Op::Ret, Op::JsrCoroutine]).expect("four");
        let link = one::written(self.random);
        self.words.push(branch(Op::Br, TARGET, 0));
        let base = self.words.len();
        self.words.extend([0, jump(op, link, TARGET)]);
        self.piece(resources);
        let distance = 4 * (self.words.len() - base) as i16 + self.random.i16(..4).max(0);
        self.words[base] = memory(Op::Lda, TARGET, distance, TARGET);
    }

    /// A loop of a few rounds.
    fn rounds(&mut self, resources: Resources) {
        let Some((&counter, inner)) = resources.counters.split_first() else { return self.straight() };
        self.words.push(match self.random.bool() {
            true => memory(Op::Lda, counter, self.random.i16(1..5), ZERO),
            false => literal(Op::And, one::read(self.random), 3, counter),
        });
        let head = self.words.len();
        let count = self.random.usize(1..4);
        self.pieces(count, Resources { counters: inner, ..resources });
        self.words.push(literal(Op::Subq, counter, 1, counter));
        self.words.push(branch_to(Op::Bgt, counter, self.words.len(), head));
    }

    /// Selects one of several instructions by a jump table.
    fn table(&mut self) {
        let cases = self.random.choice([2, 4]).expect("two");
        let index = one::read(self.random);
        self.words.extend([
            branch(Op::Br, TARGET, 0),
            literal(Op::And, index, cases - 1, PLACE),
            registers(Op::S8addq, PLACE, TARGET, TARGET),
            memory(Op::Lda, TARGET, 4 * 4, TARGET),
            jump(Op::Jmp, ZERO, TARGET),
        ]);
        for case in (0..i64::from(cases)).rev() {
            self.single();
            self.words.push(branch(Op::Br, ZERO, 2 * case));
        }
    }

    /// A call of one function, or of one of two.
    fn call(&mut self, resources: Resources) {
        if !resources.calls || self.functions.is_empty() {
            return self.straight();
        }
        let [first, second] = std::array::from_fn(|_| self.random.usize(..self.functions.len()));
        let (link, entry) = (self.functions[first].link, self.functions[first].entry);
        let other = &self.functions[second];
        let other = (other.link == link).then_some(other.entry);
        self.words.push(literal(Op::And, one::read(self.random), 3, DEPTH));
        let here = self.words.len();
        if self.random.bool() {
            self.words.push(branch_to(Op::Bsr, link, here, entry));
        } else {
            let to = |entry: usize| 4 * (entry as i64 - here as i64 - 1) as i16;
            self.words.push(branch(Op::Br, TARGET, 0));
            if let Some(other) = other {
                self.words.push(memory(Op::Lda, PLACE, to(other), TARGET));
            }
            self.words.push(memory(Op::Lda, TARGET, to(entry), TARGET));
            if other.is_some() {
                self.words.push(registers(Op::Cmovlbs, one::read(self.random), PLACE, TARGET));
            }
            self.words.push(jump(Op::Jsr, link, TARGET));
        }
        // A function may be skipped.
        self.single();
    }

    /// A function: most of them are small enough to be inlined.
    fn function(&mut self) {
        let link = self.random.choice([LINK, INNER_LINK]).expect("two");
        let entry = self.words.len();
        let leaf = Resources { counters: &[DEPTH], calls: false };
        let count = self.random.usize(1..5);
        match self.random.u32(..8) {
            0 => self.recursive(entry, link),
            1 | 2 if !self.functions.is_empty() => {
                let calls = Resources { counters: &[], calls: true };
                self.push(link);
                self.call(calls);
                self.pieces(count, Resources { calls: false, ..calls });
                self.pop(link);
            }
            3 => {
                self.pieces(count, leaf);
                self.words.push(memory(Op::Lda, link, 4, link));
            }
            4 => self.pieces(20, leaf),
            _ => self.pieces(count, leaf),
        }
        self.words.push(jump(Op::Ret, ZERO, link));
        self.functions.push(Function { entry, link });
    }

    /// A function that recurses to the depth in `DEPTH`.
    fn recursive(&mut self, entry: usize, link: u8) {
        let at = self.words.len();
        self.words.push(0);
        self.push(link);
        self.words.push(literal(Op::Subq, DEPTH, 1, DEPTH));
        self.straight();
        self.words.push(branch_to(Op::Bsr, link, self.words.len(), entry));
        self.straight();
        self.pop(link);
        self.words[at] = branch_to(Op::Ble, DEPTH, at, self.words.len());
    }

    fn push(&mut self, link: u8) {
        self.words.extend([memory(Op::Lda, STACK, -8, STACK), memory(Op::Stq, link, 0, STACK)]);
    }

    fn pop(&mut self, link: u8) {
        self.words.extend([memory(Op::Ldq, link, 0, STACK), memory(Op::Lda, STACK, 8, STACK)]);
    }
}
