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

use std::collections::BTreeMap;
use std::rc::Rc;

mod arena;
mod emit;
mod enter;
mod liveness;
mod region;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use trace::BlockId;

use self::arena::{Arena, Entries};
pub(crate) use self::enter::{Left, UNWIND, caught, enter, is_stack_full};
use super::block::{Block, BlockCache};
use crate::memory::Memory;

/// Executions of a block in the interpreter after which it is compiled.
pub(crate) const THRESHOLD: u32 = 300;

/// This part of its entry's executions makes another block worth compiling with it.
const LEAST: u32 = 64;

/// Cranelift's trap, an illegal instruction (`ud2`), and what takes its place: it raises SIGSEGV as an
/// access to a bad address does (`hlt`, `nop`).
#[cfg(target_arch = "x86_64")]
const TRAP: ([u8; 2], [u8; 2]) = ([0x0f, 0x0b], [0xf4, 0x90]);
/// The same: `udf`, and `ldr` from address 0.
#[cfg(target_arch = "aarch64")]
const TRAP: ([u8; 4], [u8; 4]) = ([0x1f, 0xc1, 0x00, 0x00], [0x1f, 0x00, 0x40, 0xf8]);

/// Where the interpreter takes over after a fault.
#[derive(Clone, Debug)]
pub struct Site {
    /// The block, which was entered and counted.
    pub block: BlockId,
    /// The instruction in it: what lies before is executed, and the registers are as they are there.
    pub index: usize,
    /// Blocks behind it that were counted already.
    pub undone: Vec<BlockId>,
}

/// Compiles regions and keeps them.
pub struct Compiler {
    isa: OwnedTargetIsa,
    context: Context,
    builder: FunctionBuilderContext,
    arena: Arena,
    entries: Entries,
    /// Whether code counts what it executes.
    counting: bool,
    /// Where the interpreter takes over after a fault, by host address: each holds up to the next.
    sites: BTreeMap<usize, Rc<Site>>,
}

impl Compiler {
    /// A compiler for this host, if it is one that Cranelift knows and memory lies at guest
    /// address = host address.
    pub fn new(memory: &Memory, counting: bool) -> Option<Compiler> {
        if !memory.is_identity() {
            return None;
        }
        let mut flags = settings::builder();
        for (name, value) in [
            ("opt_level", "none"),
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
            entries: Entries::new(enter::missing()),
            counting,
            sites: BTreeMap::new(),
        })
    }

    /// Compiles the region that begins with block `id`, which was executed `hot` times, and notes its entry in
    /// the block.
    /// Blocks that an observer wants to be told of are left out.
    pub fn compile(&mut self, id: BlockId, hot: u32, wants: &dyn Fn(&Block) -> bool, cache: &mut BlockCache) {
        let region = region::find(id, (hot / LEAST).max(1), wants, cache);
        self.context.clear();
        self.context.func.signature = emit::signature();
        let sites = emit::emit(
            &region,
            cache,
            self.counting,
            &mut self.entries,
            self.isa.frontend_config(),
            &mut self.context.func,
            &mut self.builder,
        );
        let compiled = match self.context.compile(&*self.isa, &mut ControlPlane::default()) {
            Ok(compiled) => compiled,
            Err(error) => {
                debug_assert!(false, "{:?}", error.inner);
                return cache.cool(id);
            }
        };
        let mut bytes = compiled.code_buffer().to_vec();
        for trap in compiled.buffer.traps() {
            let at = trap.offset as usize;
            // Guest accesses may trap too, by themselves; only explicit traps are illegal instructions.
            if bytes[at..].starts_with(&TRAP.0) {
                bytes[at..at + TRAP.1.len()].copy_from_slice(&TRAP.1);
            }
        }
        let Some(code) = self.arena.add(&bytes) else { return cache.cool(id) };
        let sites: Vec<Rc<Site>> = sites.into_iter().map(Rc::new).collect();
        for place in compiled.buffer.get_srclocs_sorted() {
            if let Some(site) = sites.get(place.loc.bits() as usize) {
                self.sites.insert(code as usize + place.start as usize, site.clone());
            }
        }
        self.entries.set(cache.block(id).address, code);
        cache.set_code(id, code);
    }

    /// Where the interpreter takes over when the host's instruction at `host` faulted.
    pub fn site(&self, host: usize) -> Option<Rc<Site>> {
        self.sites.range(..=host).next_back().map(|(_, site)| site.clone())
    }

    /// Forgets all code. None of it may be running.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.arena.clear();
        self.sites.clear();
    }
}
