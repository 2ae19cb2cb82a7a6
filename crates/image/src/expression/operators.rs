//! Operators between two numbers, as in C. Numbers are signed, and have 64 bits.

/// An operator between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    BitAnd,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    /// `&&`: the second one is computed only if the first one is not 0.
    Both,
}

impl Operator {
    /// The result.
    pub(super) fn apply(self, one: u64, other: u64) -> u64 {
        let (signed, other_signed) = (one.cast_signed(), other.cast_signed());
        match self {
            Operator::Add => one.wrapping_add(other),
            Operator::Subtract => one.wrapping_sub(other),
            Operator::Multiply => one.wrapping_mul(other),
            Operator::BitAnd => one & other,
            Operator::Equal => (one == other).into(),
            Operator::Unequal => (one != other).into(),
            Operator::Less => (signed < other_signed).into(),
            Operator::AtMost => (signed <= other_signed).into(),
            Operator::Greater => (signed > other_signed).into(),
            Operator::AtLeast => (signed >= other_signed).into(),
            Operator::Both => (one != 0 && other != 0).into(),
        }
    }
}
