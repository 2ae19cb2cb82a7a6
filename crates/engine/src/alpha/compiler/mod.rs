//! The fast engine: compiles what runs often to the host's instructions, through Cranelift.
//!
//! The unit of compilation is a **region**: blocks reached from one entry without a call, as a
//! function of the host. A guest call is a host call and a guest return a host return: a region
//! returns the address at which the program goes on; its caller goes on with its own code if that
//! is the address it expects, and otherwise returns it in turn, down to the dispatcher. So longjmp
//! and switched stacks need no care, and the host predicts returns.
//!
//! Registers live in [`Cpu`]. A region holds them in host registers between accesses to memory but
//! writes them back before anything that may fault, so that the interpreter can take over at any
//! instruction: whatever is rare or faults is left to it, by returning the instruction's address.

mod arena;
mod emit;
mod enter;
mod region;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use trace::BlockId;

use self::arena::{Arena, Entries};
pub(crate) use self::enter::{Left, caught, enter};
use super::block::BlockCache;
use crate::memory::Memory;

/// Executions of a block in the interpreter after which it is compiled.
pub(super) const THRESHOLD: u32 = 300;

/// Compiles regions and keeps them.
pub struct Compiler {
    isa: OwnedTargetIsa,
    context: Context,
    builder: FunctionBuilderContext,
    arena: Arena,
    entries: Entries,
    /// Regions of code as they lie in the arena: where it ends, and the guest addresses of the
    /// instructions that may fault, by host address.
    sites: std::collections::BTreeMap<usize, u64>,
}

impl Compiler {
    /// A compiler for this host, if it is one that Cranelift knows and memory lies at guest
    /// address = host address.
    pub fn new(memory: &Memory) -> Option<Compiler> {
        if !memory.is_identity() {
            return None;
        }
        let mut flags = settings::builder();
        for (name, value) in [
            ("opt_level", "speed"),
            ("enable_pinned_reg", "true"),
            ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
            ("enable_probestack", "false"),
            ("unwind_info", "false"),
            ("is_pic", "false"),
        ] {
            flags.set(name, value).expect("a setting of Cranelift");
        }
        let isa = cranelift_codegen::isa::lookup(target_lexicon::Triple::host()).ok()?;
        let isa = isa.finish(settings::Flags::new(flags)).ok()?;
        Some(Compiler {
            isa,
            context: Context::new(),
            builder: FunctionBuilderContext::new(),
            arena: Arena::new()?,
            entries: Entries::new()?,
            sites: Default::default(),
        })
    }

    /// Compiles the region that begins with block `id` and notes its entry in the block.
    pub fn compile(&mut self, id: BlockId, cache: &mut BlockCache) {
        let region = region::find(id, cache);
        self.context.clear();
        self.context.func.signature = emit::signature();
        emit::emit(
            &region,
            cache,
            &self.entries,
            self.isa.frontend_config(),
            &mut self.context.func,
            &mut self.builder,
        );
        let compiled = match self.context.compile(&*self.isa, &mut ControlPlane::default()) {
            Ok(compiled) => compiled,
            Err(error) => {
                debug_assert!(false, "{:?}", error.inner);
                return;
            }
        };
        let Some(code) = self.arena.add(compiled.code_buffer()) else { return };
        for place in compiled.buffer.get_srclocs_sorted() {
            if !place.loc.is_default() {
                let address = region.address_of_site(place.loc.bits(), cache);
                self.sites.insert(code as usize + place.start as usize, address);
            }
        }
        self.entries.set(cache.block(id).address, code);
        cache.set_code(id, code);
    }

    /// The guest instruction whose host instruction is at `host`.
    pub fn site(&self, host: usize) -> Option<u64> {
        self.sites.range(..=host).next_back().map(|(_, address)| *address)
    }

    /// Forgets all code. None of it may be running.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.arena.clear();
        self.sites.clear();
    }
}
