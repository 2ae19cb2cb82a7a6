//! The stand-in of hosts without a compiler (`no_compiler.rs`) offers what the compiler does: the same function compiles with
//! either.

use std::sync::PoisonError;

use events::BlockId;
use guest::{BlockCache, InstrumentationLevel};

use super::tests::LAYOUT;
use super::*;
use crate::test_runner::MEMORY;

/// A function that uses a compiler as the engine does.
macro_rules! compiler_user {
    ($name:ident, $($module:ident)::+) => {
        mod $name {
            use super::*;
            use $($module)::+::{
                COMPILE_THRESHOLD, Compiler, Exit, Interrupted, UNWIND, compiled_regions, enter, interrupted,
                is_stack_full, keep_code_map, set_compiled, watch,
            };

            /// Compiles a block and runs its code, if there is a compiler; the address that follows, and what was interrupted.
            ///
            /// # Safety
            /// As for `enter` and `interrupted`.
            #[allow(dead_code)]
            pub unsafe fn run(
                memory: &Memory,
                toy: &mut Toy,
                cache: &mut BlockCache<Toy>,
                context: &libc::ucontext_t,
            ) -> Option<(u64, Option<[u64; 1]>, u64)> {
                keep_code_map();
                let (was_compiled, regions): (bool, u64) = (set_compiled(false), compiled_regions());
                watch(toy.host());
                let is_first = !is_stack_full(toy.host());
                let level = InstrumentationLevel::Counts;
                let mut compiler = Compiler::<Toy>::new(memory, level, None, was_compiled)?;
                compiler.compile(0, COMPILE_THRESHOLD, &|_| false, &|id| id, cache);
                compiler.prepare(cache.block(0), toy);
                // SAFETY: the caller's promise.
                match unsafe { enter(toy, cache.block(0).code(), is_first) } {
                    Exit::At(UNWIND) => compiler.clear(),
                    Exit::At(address) => toy.pc = address,
                    Exit::Fault(host) => {
                        let site = compiler.site(host);
                        site.complete(toy, cache);
                        let (block, index): (BlockId, u32) = (site.block, site.index);
                        toy.pc = cache.block(block).address + u64::from(index);
                    }
                }
                // SAFETY: the caller's promise.
                let Interrupted { address, registers } = unsafe { interrupted::<Toy, 1>(context, [2], 0) }?;
                Some((address, registers, regions))
            }
        }
    };
}

compiler_user!(with_compiler, crate);
compiler_user!(without_compiler, crate::no_compiler);

#[test]
fn without_a_compiler_nothing_is_compiled() {
    let _guard = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = Memory::new(LAYOUT).expect("address space");
    // SAFETY: a structure of integers and null pointers.
    let context: libc::ucontext_t = unsafe { std::mem::zeroed() };
    let (mut toy, mut cache) = (Toy::default(), BlockCache::new(()));
    // SAFETY: there is no code to enter.
    assert_eq!(unsafe { without_compiler::run(&memory, &mut toy, &mut cache, &context) }, None);
    assert_eq!(crate::no_compiler::compiled_regions(), 0);
}
