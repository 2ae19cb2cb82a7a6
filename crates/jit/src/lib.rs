//! Compiles guest code that is executed often to machine code of the host (x86-64). On other hosts nothing is ever
//! compiled, and the interpreter executes all.
//!
//! Instructions are translated one by one. The guest's registers are in the same registers everywhere
//! (`registers.rs`), and each instruction is executed completely or not at all. So code can be left for the interpreter at
//! any instruction and entered at any block, and a fault is described by the number of its instruction. A guest call is a
//! host call and a guest return a host return, which the host predicts; address checks that are redundant are eliminated;
//! compilation is so cheap that nearly all repeatedly executed code is compiled.
//!
//! The unit of compilation is a **region**: executed blocks of one function. `host/` has the assembler and the arena of
//! code, which are independent of the guest. Each guest has a folder that implements `Target` (`target.rs`: registers, control
//! flow, accesses) and `Emit` (`emit.rs`: the translation of an instruction), as `alpha/` and `riscv/`. All else is generic.

#[cfg(target_arch = "x86_64")]
mod alpha;
#[cfg(target_arch = "x86_64")]
mod bounds_check_elimination;
#[cfg(target_arch = "x86_64")]
mod code_map;
#[cfg(target_arch = "x86_64")]
mod compiler;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_compiler.rs"]
mod compiler;
#[cfg(target_arch = "x86_64")]
mod emit;
#[cfg(target_arch = "x86_64")]
mod enter;
#[cfg(target_arch = "x86_64")]
mod host;
/// The stand-in of hosts without a compiler; tests compile it here, too.
// It has no code to leave.
#[cfg(all(test, target_arch = "x86_64"))]
#[allow(dead_code)]
mod no_compiler;
#[cfg(target_arch = "x86_64")]
mod region;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod riscv;
#[cfg(target_arch = "x86_64")]
mod site;
#[cfg(target_arch = "x86_64")]
mod stubs;
#[cfg(target_arch = "x86_64")]
mod target;
#[cfg(all(test, target_arch = "x86_64"))]
mod test_runner;
#[cfg(all(test, target_arch = "x86_64"))]
mod toy;

#[cfg(target_arch = "x86_64")]
pub use code_map::{Interrupted, interrupted, keep as keep_code_map, set_compiled};
pub use compiler::{COMPILE_THRESHOLD, Compiler, compiled_regions};
#[cfg(not(target_arch = "x86_64"))]
pub use compiler::{
    Emit, Exit, Interrupted, UNWIND, enter, interrupted, is_stack_full, keep_code_map, set_compiled, watch,
};
#[cfg(target_arch = "x86_64")]
pub use emit::Emit;
#[cfg(target_arch = "x86_64")]
pub use enter::{Exit, UNWIND, enter, is_stack_full, watch};
#[cfg(all(target_arch = "x86_64", feature = "fuzzing"))]
pub use host::random_program::check as check_assembler;
