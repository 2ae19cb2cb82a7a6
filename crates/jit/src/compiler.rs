//! The compiler: compiles regions and keeps their code.

use std::sync::atomic::{AtomicU64, Ordering};

use events::{BlockId, HitFilter};
use guest::flow::Flow;
use guest::{Block, BlockCache, InstrumentationLevel};
use memory::Memory;

use crate::emit::{self, Emit};
use crate::enter;
use crate::host::arena::Entries;
use crate::host::assembler::Assembler;
use crate::region;
use crate::registers::Registers;
use crate::site::Site;
use crate::stubs::{self, Stubs};

/// Executions of a block in the interpreter after which it is compiled.
pub const THRESHOLD: u32 = 50;

/// This part of its entry's executions makes another block worth compiling with it.
const LEAST: u32 = 64;

/// Regions that the process has compiled.
static REGIONS: AtomicU64 = AtomicU64::new(0);

/// How many regions the process has compiled: tests of compiled code look whether there was any.
pub fn compiled_regions() -> u64 {
    REGIONS.load(Ordering::Relaxed)
}

/// Compiles regions and keeps them.
pub struct Compiler<G> {
    registers: Registers<G>,
    hit_filter: Option<HitFilter>,
    stubs: Stubs,
    entries: Entries,
    /// By position in the arena.
    sites: Vec<Site>,
    stack_end: usize,
}

impl<G: Emit> Compiler<G> {
    /// A compiler for this host, if it is one that this module writes code for and memory lies at guest
    /// address = host address. Its code tells an observer what that is interested in; for [`InstrumentationLevel::Unfiltered`] that
    /// must come with a hit filter.
    pub fn new(
        memory: &Memory,
        level: InstrumentationLevel,
        hit_filter: Option<&HitFilter>,
    ) -> Option<Compiler<G>> {
        let is_known = is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("bmi1");
        if !is_known || !memory.is_identity() {
            return None;
        }
        enter::catch_faults();
        let mut entries = Entries::new()?;
        let hit_filter = hit_filter.filter(|_| level == InstrumentationLevel::Unfiltered).cloned();
        let registers = Registers::new(level, hit_filter.as_ref());
        let origin = entries.arena.next();
        let mut assembler = Assembler::new(origin);
        let one = emit::one::<G> as *const () as u64;
        let writer = stubs::Writer {
            assembler: &mut assembler,
            registers: &registers,
            hit_filter: hit_filter.as_ref(),
            one,
        };
        let written = writer.write();
        let code = assembler.finish();
        let stubs = written.at(origin, &code);
        entries.arena.add(&code.bytes)?;
        entries.keep(stubs.missing);
        let (sites, stack_end) = (Vec::new(), enter::stack_end());
        Some(Compiler { registers, hit_filter, stubs, entries, sites, stack_end })
    }

    /// Compiles the region that begins with block `id`, which was executed `hot` times, and notes in the
    /// blocks where their code is. Blocks that an observer wants to be told of are left out. Unfiltered accesses are
    /// reported by these numbers of blocks' first instructions.
    pub fn compile(
        &mut self,
        id: BlockId,
        hot: u32,
        must_report: &dyn Fn(&Block<G>) -> bool,
        first_instruction: &dyn Fn(BlockId) -> u32,
        cache: &mut BlockCache<G>,
    ) {
        let region = region::find(id, (hot / LEAST).max(1), must_report, cache);
        let flow = self.registers.has_counters().then(|| region.flow(cache));
        let (first, space) = self.entries.arena.counters();
        let cells = flow.as_ref().map_or(0, Flow::cells);
        let emitted = cache.counters.next(cells, first, space).and_then(|number| {
            let base = first.as_ptr() as u64;
            let counted = flow.as_ref().map(|flow| emit::Counted { flow, first: number, base });
            let lookup = |hit_filter| emit::FilterLookup { hit_filter, first_instruction };
            let lookup = self.hit_filter.as_ref().map(lookup);
            let (registers, entries) = (&self.registers, &mut self.entries);
            emit::emit(&region, cache, registers, lookup, &self.stubs, counted, entries)
        });
        let Some(emitted) = emitted else { return cache.cool(id) };
        let Some(code) = self.entries.arena.add(&emitted.code) else { return cache.cool(id) };
        REGIONS.fetch_add(1, Ordering::Relaxed);
        let start = (code - self.entries.arena.start()) as u32;
        let moved = emitted.sites.iter().map(|site| Site { position: start + site.position, ..*site });
        self.sites.extend(moved);
        for (index, position) in emitted.entries {
            let id = region.blocks[index];
            if cache.block(id).code().is_null() {
                let code = code + position as u64;
                self.entries.set(cache.block(id).address, code);
                cache.set_code(id, code as *const u8);
            }
        }
        if let Some(flow) = flow {
            cache.counters.add(flow.terms(&region.blocks));
        }
    }

    /// Prepares to enter a block's code: transfers to where a register points find it, though another
    /// block's may have taken its place; and the processor gets what the code needs of this compiler.
    pub fn prepare(&mut self, block: &Block<G>, guest: &mut G) {
        enter::set_code(self.entries.arena.start());
        self.entries.find_by_register(block.address, block.code() as u64);
        let host = guest.host();
        (host.stack_end, host.table) = (self.stack_end, self.entries.table());
        (host.enter, host.leave_by_fault) = (self.stubs.enter, self.stubs.leave_by_fault);
    }

    /// Where the interpreter takes over when the host's instruction at `host` faulted.
    pub fn site(&self, host: usize) -> Site {
        let position = (host as u64 - self.entries.arena.start()) as u32;
        let behind = self.sites.partition_point(|site| site.position <= position);
        self.sites[behind - 1]
    }

    /// Forgets all code. None of it may be running.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.sites.clear();
    }
}
