//! Sets of registers.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};

use isa::Register;

/// A set of integer and floating-point registers. Registers that are always zero are in none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RegisterSet(u64);

const FLOAT: u32 = 32;
const ZEROS: u64 = 1 << 31 | 1 << 63;

impl RegisterSet {
    /// No register.
    pub const NONE: RegisterSet = RegisterSet(0);
    /// Every register.
    pub const ALL: RegisterSet = RegisterSet(!ZEROS);
    /// Those that a procedure must leave as they were: s0 to s6, f2 to f9, and the stack pointer.
    pub const PRESERVED: RegisterSet =
        RegisterSet::integers(9, 15).or(RegisterSet::floats(2, 9)).or(RegisterSet::integers(30, 30));
    /// Those in which a procedure can get something: arguments, its own address, the global pointer, the static chain of
    /// nested functions, the return address and the stack pointer.
    pub const ENTRY: RegisterSet = RegisterSet::integers(16, 21)
        .or(RegisterSet::floats(16, 21))
        .or(RegisterSet::integers(1, 1))
        .or(RegisterSet::integers(26, 27))
        .or(RegisterSet::integers(29, 30));
    /// Those that are live when a procedure returns: results, what it must preserve, and the global pointer.
    pub const RETURN: RegisterSet = RegisterSet::PRESERVED
        .or(RegisterSet::integers(0, 0))
        .or(RegisterSet::floats(0, 1))
        .or(RegisterSet::integers(29, 29));
    /// Those that a call by the standard convention may change.
    pub const CLOBBERED: RegisterSet = RegisterSet(RegisterSet::ALL.0 & !RegisterSet::PRESERVED.0);

    const fn or(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 | other.0)
    }

    const fn bits(first: u32, last: u32) -> RegisterSet {
        RegisterSet((u64::MAX >> (63 - last)) & (u64::MAX << first) & !ZEROS)
    }

    /// Integer registers, from the first to the last one.
    pub const fn integers(first: u8, last: u8) -> RegisterSet {
        RegisterSet::bits(first as u32, last as u32)
    }

    /// Floating-point registers, from the first to the last one.
    pub const fn floats(first: u8, last: u8) -> RegisterSet {
        RegisterSet::bits(first as u32 + FLOAT, last as u32 + FLOAT)
    }

    /// An integer register.
    pub const fn integer(number: u8) -> RegisterSet {
        RegisterSet::integers(number, number)
    }

    /// Whether it contains an integer register.
    pub fn has(self, number: u8) -> bool {
        self.0 >> number & 1 != 0
    }

    /// Whether it contains any register of another set.
    pub fn meets(self, other: RegisterSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it contains all registers of another set.
    pub fn contains(self, other: RegisterSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The integer registers, ascending.
    pub fn integer_numbers(self) -> impl Iterator<Item = u8> {
        (0..31).filter(move |&number| self.has(number))
    }
}

impl From<Register> for RegisterSet {
    fn from(register: Register) -> RegisterSet {
        match register {
            Register::Integer(number) => RegisterSet(1 << number & !ZEROS),
            Register::Float(number) => RegisterSet(1 << (u32::from(number) + FLOAT) & !ZEROS),
        }
    }
}

impl BitOr for RegisterSet {
    type Output = RegisterSet;

    fn bitor(self, other: RegisterSet) -> RegisterSet {
        self.or(other)
    }
}

impl BitOrAssign for RegisterSet {
    fn bitor_assign(&mut self, other: RegisterSet) {
        self.0 |= other.0;
    }
}

impl BitAnd for RegisterSet {
    type Output = RegisterSet;

    fn bitand(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & other.0)
    }
}

impl Sub for RegisterSet {
    type Output = RegisterSet;

    fn sub(self, other: RegisterSet) -> RegisterSet {
        RegisterSet(self.0 & !other.0)
    }
}

impl fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let all = (0..64).filter(|bit| self.0 >> bit & 1 != 0);
        f.debug_set()
            .entries(all.map(|bit| format!("{}{}", if bit < FLOAT { "$" } else { "$f" }, bit % FLOAT)))
            .finish()
    }
}
