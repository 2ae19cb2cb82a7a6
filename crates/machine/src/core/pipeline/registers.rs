//! The numbers of registers in a pipeline's tables.

use isa::Register;

/// Floating-point registers are numbered after the integer ones.
const FLOAT: u8 = 32;
/// The number of no register.
pub(crate) const NONE: u8 = 31;

/// The number of a register that is not a zero register; or of none. The integer register with the number of none gets
/// that of the zero register.
pub(crate) fn number(register: Option<Register>, zero: u8) -> u8 {
    match register {
        None => NONE,
        Some(Register::Integer(NONE)) => zero,
        Some(Register::Integer(number)) => number,
        Some(Register::Float(number)) => number + FLOAT,
    }
}
