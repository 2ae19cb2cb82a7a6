//! PALcode functions that a user's program may call (Alpha Linux).

/// Breakpoint.
pub const BPT: i64 = 0x80;
/// Bug check.
pub const BUGCHK: i64 = 0x81;
/// System call.
pub const CALLSYS: i64 = 0x83;
/// Instruction memory barrier.
pub const IMB: i64 = 0x86;
/// Read the thread's unique value.
pub const RDUNIQ: i64 = 0x9e;
/// Write the thread's unique value.
pub const WRUNIQ: i64 = 0x9f;
/// Clear the floating-point enable bit; nothing to do here.
pub const CLRFEN: i64 = 0xae;
/// Software trap, as for a division by zero.
pub const GENTRAP: i64 = 0xaa;
