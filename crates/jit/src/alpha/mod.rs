//! What the compiler knows of Alpha: where its registers are, how control flows, and what each instruction becomes.

mod bounds_check_elimination;
pub(crate) mod emit;
pub(crate) mod enter;
pub(crate) mod region;
pub(crate) mod registers;
pub(crate) mod stubs;
