//! Compiles guest code that is executed often to machine code of the host (x86-64). On other hosts nothing is ever
//! compiled, and the interpreter executes all.
//!
//! Instructions are translated one by one. The guest's registers are in the same places everywhere
//! (`registers.rs`), and each instruction is executed as a whole or not at all; so code can be left for the
//! interpreter at any instruction and entered at any block, and a fault needs no more than the number of
//! the instruction. What makes it fast is the rest: a guest call is a host call and a guest return a host
//! return, which the host predicts; addresses are checked once; and compiling takes so little time that
//! nearly everything is worth it.
//!
//! The unit of compilation is a **region**: blocks of one function that ran. `host/` has the assembler and the arena
//! of code, which know no guest. A guest has a folder: what the compiler must know of it (`target.rs`) and what its
//! instructions become (`emit.rs`), as `alpha/` for Alpha. All else is every guest's.

#[cfg(target_arch = "x86_64")]
mod alpha;
#[cfg(target_arch = "x86_64")]
mod bounds_check_elimination;
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
#[cfg(target_arch = "x86_64")]
mod region;
#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod site;
#[cfg(target_arch = "x86_64")]
mod stubs;
#[cfg(target_arch = "x86_64")]
mod target;
#[cfg(all(test, target_arch = "x86_64"))]
mod toy;

pub use compiler::{Compiler, THRESHOLD, compiled_regions};
#[cfg(not(target_arch = "x86_64"))]
pub use compiler::{Exit, UNWIND, enter, is_stack_full, watch};
#[cfg(target_arch = "x86_64")]
pub use enter::{Exit, UNWIND, enter, is_stack_full, watch};
