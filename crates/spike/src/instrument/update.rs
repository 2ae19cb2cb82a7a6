//! How counters are incremented.

use isa::Op;
use isa::encode::{self, EncodeError, SecondOperand::Literal};

/// How counters are incremented, as GCC's `-fprofile-update` says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// By atomic additions: exact with any number of threads and processes.
    #[default]
    Atomic,
    /// By plain ones, which take less time: exact if no two threads or processes count at the same time.
    Single,
}

impl Update {
    /// The instructions that add one to the counter whose address is in `base`: the load is the first, and the store the third.
    pub(super) fn instructions(self, value: u8, base: u8) -> Result<Vec<u32>, EncodeError> {
        let (load, store) = match self {
            Update::Atomic => (Op::LdqL, Op::StqC),
            Update::Single => (Op::Ldq, Op::Stq),
        };
        let mut words = vec![
            encode::memory(load, value, base, 0)?,
            encode::operate(Op::Addq, value, Literal(1), value)?,
            encode::memory(store, value, base, 0)?,
        ];
        if self == Update::Atomic {
            // Once more, if another thread or process came between.
            words.push(encode::branch(Op::Beq, value, -16)?);
        }
        Ok(words)
    }
}
