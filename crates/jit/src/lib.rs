//! Compiles guest code that is executed often to machine code of the host (x86-64). On other hosts nothing is ever
//! compiled, and the interpreter executes all.
//!
//! Instructions are translated one by one. The guest's registers are in the same places everywhere
//! (`alpha/registers.rs`), and each instruction is executed as a whole or not at all; so code can be left for the
//! interpreter at any instruction and entered at any block, and a fault needs no more than the number of
//! the instruction. What makes it fast is the rest: a guest call is a host call and a guest return a host
//! return, which the host predicts; addresses are checked once; and compiling takes so little time that
//! nearly everything is worth it.
//!
//! The unit of compilation is a **region**: blocks of one function that ran. `host/` has the assembler and the arena
//! of code, which know no guest; `alpha/` the guest's registers, regions and emitters.

#[cfg(target_arch = "x86_64")]
mod alpha;
#[cfg(target_arch = "x86_64")]
mod compiler;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_compiler.rs"]
mod compiler;
#[cfg(target_arch = "x86_64")]
mod host;
#[cfg(target_arch = "x86_64")]
mod site;

pub use compiler::{Compiler, Exit, THRESHOLD, UNWIND, enter, is_stack_full, watch};
