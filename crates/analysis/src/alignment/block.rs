//! Facts of a block that the check of alignment needs, computed once when the block is defined.

use events::Block;
use events::record::address_of_word;
use isa::{MemoryAccess, Register};

/// A block whose accesses are checked.
#[derive(Debug)]
pub(super) struct CheckedBlock {
    /// Its image.
    pub image: Option<u32>,
    /// Its instructions.
    pub instructions: u64,
    /// By access, the bits of its address that must be 0.
    pub masks: Box<[u64]>,
    /// Its accesses.
    pub accesses: Box<[CheckedAccess]>,
    /// Unaligned accesses that the compiler made safe.
    pub pairs: Box<[SafePair]>,
    /// The number of an access by the stack pointer, which shows where the stack is.
    pub stack: Option<usize>,
}

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckedAccess {
    /// The index of its instruction in the block.
    pub index: u32,
    /// Bytes.
    pub size: u8,
    /// Whether it stores.
    pub is_store: bool,
    /// The register that the address is computed from.
    pub base: u8,
}

/// Two accesses to the quadwords with the first and with the last byte of a value, such as Alpha's `ldq_u` and `stq_u`:
/// together they access a value at any address without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SafePair {
    /// The numbers of both accesses in the block.
    pub accesses: [usize; 2],
    /// The index of the second one's instruction.
    pub index: u32,
}

impl CheckedBlock {
    /// Prepares a block.
    pub fn new(block: &Block) -> CheckedBlock {
        let set = block.instruction_set;
        let (mut masks, mut accesses) = (Vec::new(), Vec::new());
        let mut pairs = PairFinder::default();
        let mut stack = None;
        for (index, summary) in
            block.words.iter().map(|&word| set.summary(word).unwrap_or_default()).enumerate()
        {
            for access in summary.accesses() {
                let number = accesses.len();
                masks.push(if may_fault(&access) { u64::from(access.size) - 1 } else { 0 });
                let MemoryAccess { size, is_store, base, .. } = access;
                accesses.push(CheckedAccess { index: index as u32, size, is_store, base });
                pairs.access(number, index as u32, &access);
                stack = stack.or((base == set.stack_pointer()).then_some(number));
            }
            for written in summary.written.into_iter().flatten() {
                if let Register::Integer(register) = written {
                    pairs.written(register);
                }
            }
        }
        CheckedBlock {
            image: block.image,
            instructions: block.words.len() as u64,
            masks: masks.into(),
            accesses: accesses.into(),
            pairs: pairs.pairs.into(),
            stack,
        }
    }

    /// The accesses that are unaligned at these addresses, as records have them: their numbers and addresses.
    #[inline]
    pub fn unaligned<'a>(&'a self, addresses: &'a [u64]) -> impl Iterator<Item = (usize, u64)> + 'a {
        let accesses = addresses.iter().zip(&self.masks).enumerate();
        let unaligned = accesses.filter(|(_, (word, mask))| address_of_word(**word) & **mask != 0);
        unaligned.map(|(number, (word, _))| (number, address_of_word(*word)))
    }
}

/// Whether the access faults at an unaligned address, and the system then carries it out. Accesses that clear the low
/// bits of their addresses never fault; of locked ones the fault ends the program.
fn may_fault(access: &MemoryAccess) -> bool {
    access.mask == !0 && !access.is_locked
}

/// The value's size less one, by which the displacements of a pair differ.
const DISTANCES: [u64; 3] = [1, 3, 7];

/// An access that clears the low bits of its address, and that may be the first of a pair.
#[derive(Clone, Copy, Debug)]
struct PairedAccess {
    number: usize,
    base: u8,
    displacement: i64,
    is_store: bool,
}

/// Finds pairs in the accesses of a block: of the same base, which is not written between them.
#[derive(Debug, Default)]
struct PairFinder {
    halves: Vec<PairedAccess>,
    /// Pairs of loads whose base has not been written: the base, the lower displacement, and the index in `pairs`.
    loads: Vec<(u8, i64, usize)>,
    pairs: Vec<SafePair>,
}

impl PairFinder {
    fn access(&mut self, number: usize, index: u32, access: &MemoryAccess) {
        let &MemoryAccess { base, displacement, is_store, .. } = access;
        if access.mask == !0 {
            return;
        }
        let is_partner = |half: &PairedAccess| {
            let distance = half.displacement.abs_diff(displacement);
            half.base == base && half.is_store == is_store && DISTANCES.contains(&distance)
        };
        let Some(at) = self.halves.iter().position(is_partner) else {
            return self.halves.push(PairedAccess { number, base, displacement, is_store });
        };
        let first = self.halves.swap_remove(at);
        let lower = first.displacement.min(displacement);
        let pair = SafePair { accesses: [first.number, number], index };
        let load = self.loads.iter().position(|&(of, at, _)| is_store && (of, at) == (base, lower));
        match load {
            // A store to a part of two quadwords loads both first.
            Some(load) => self.pairs[self.loads.swap_remove(load).2] = pair,
            None => {
                if !is_store {
                    self.loads.push((base, lower, self.pairs.len()));
                }
                self.pairs.push(pair);
            }
        }
    }

    fn written(&mut self, register: u8) {
        self.halves.retain(|half| half.base != register);
        self.loads.retain(|&(base, ..)| base != register);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::Op;
    use isa::encode::memory;

    /// The pairs of the instructions of a block: the indices of both.
    fn pairs(words: Vec<u32>) -> Vec<[usize; 2]> {
        let block = CheckedBlock::new(&Block::new(&isa::Alpha, 0x1000, words));
        block.pairs.iter().map(|pair| pair.accesses).collect()
    }

    fn load(register: u8, base: u8, displacement: i16) -> u32 {
        memory(Op::LdqU, register, base, displacement).unwrap()
    }

    fn store(register: u8, base: u8, displacement: i16) -> u32 {
        memory(Op::StqU, register, base, displacement).unwrap()
    }

    #[test]
    fn pairs_have_the_same_base() {
        assert_eq!(pairs(vec![load(1, 16, 4), load(2, 16, 11)]), [[0, 1]]);
        assert_eq!(
            pairs(vec![load(1, 16, 11), load(2, 17, 5), load(3, 16, 4), load(4, 17, 8)]),
            [[0, 2], [1, 3]]
        );
        assert!(pairs(vec![load(1, 16, 4), load(2, 17, 11)]).is_empty(), "other bases");
        assert!(pairs(vec![load(1, 16, 0), load(2, 16, 8)]).is_empty(), "two values");
        assert!(pairs(vec![load(16, 16, 4), load(2, 16, 11)]).is_empty(), "the base was written");
        assert_eq!(pairs(vec![load(1, 16, 4), load(16, 16, 11)]), [[0, 1]], "the base is written after both");
    }

    #[test]
    fn the_loads_of_a_store_are_part_of_it() {
        let words = vec![load(1, 16, 3), load(2, 16, 0), store(1, 16, 3), store(2, 16, 0)];
        assert_eq!(pairs(words), [[2, 3]]);
        let words = vec![load(1, 16, 3), load(2, 16, 0), load(3, 17, 0), store(1, 17, 3), store(2, 17, 0)];
        assert_eq!(pairs(words), [[0, 1], [3, 4]], "those of another base are not");
    }
}
