//! The compiler: compiles regions and keeps their code.

use std::sync::atomic::{AtomicU64, Ordering};

use events::{BlockId, HitFilter};
use guest::flow::FlowCounters;
use guest::{BlockCache, CodeAddresses, DecodedBlock, InstrumentationLevel};
use guest_memory::Memory;

use crate::code_map::CodeMap;
use crate::emit::{self, Emit};
use crate::enter;
use crate::host::arena::CodeTable;
use crate::host::assembler::Assembler;
use crate::region;
use crate::registers::RegisterMap;
use crate::site::FaultSite;
use crate::stubs::{self, StubOffsets};

/// Executions of a block in the interpreter after which it is compiled.
pub const COMPILE_THRESHOLD: u32 = 50;

/// A block is compiled with a region if it was executed at least 1/`MAX_RATIO` times as often as the region's head.
const MAX_RATIO: u32 = 64;

/// Regions that the process has compiled.
static REGIONS: AtomicU64 = AtomicU64::new(0);

/// How many regions the process has compiled: tests of compiled code look whether there was any.
pub fn compiled_regions() -> u64 {
    REGIONS.load(Ordering::Relaxed)
}

/// Compiles regions and keeps them.
pub struct Compiler<G> {
    registers: RegisterMap<G>,
    hit_filter: Option<HitFilter>,
    stubs: StubOffsets,
    code_table: CodeTable,
    /// By position in the arena.
    sites: Vec<FaultSite>,
    map: Box<CodeMap>,
    stack_end: usize,
}

impl<G: Emit> Compiler<G> {
    /// A compiler for this host, if it is one that this module writes code for and memory lies at guest
    /// address = host address. Its code has this level of instrumentation; [`InstrumentationLevel::Unfiltered`] requires a
    /// hit filter. If `is_limited`, code of [`InstrumentationLevel::Counts`] is left at the instruction limit, as that of
    /// [`InstrumentationLevel::Limited`] is.
    pub fn new(
        memory: &Memory,
        level: InstrumentationLevel,
        hit_filter: Option<&HitFilter>,
        is_limited: bool,
    ) -> Option<Compiler<G>> {
        let is_supported = is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("bmi1");
        if !is_supported || !memory.is_identity() {
            return None;
        }
        enter::catch_faults();
        let mut code_table = CodeTable::new()?;
        let hit_filter = hit_filter.filter(|_| level == InstrumentationLevel::Unfiltered).cloned();
        let registers = RegisterMap::new(level, hit_filter.as_ref(), is_limited);
        let origin = code_table.arena.next();
        let mut assembler = Assembler::new(origin);
        let interpret_one = emit::interpret_one::<G> as *const () as u64;
        let writer = stubs::StubWriter {
            assembler: &mut assembler,
            registers: &registers,
            hit_filter: hit_filter.as_ref(),
            interpret_one,
        };
        let written = writer.write();
        let code = assembler.finish();
        let stubs = written.at(origin, &code);
        code_table.arena.add(&code.bytes)?;
        code_table.keep_stubs(stubs.unresolved);
        let (sites, stack_end) = (Vec::new(), enter::stack_end());
        let map = CodeMap::new(code_table.arena.start());
        Some(Compiler { registers, hit_filter, stubs, code_table, sites, map, stack_end })
    }

    /// Compiles the region that begins with block `id`, which was executed `compile_threshold` times, and sets the
    /// blocks' code. Blocks whose executions must be reported are left out. Unfiltered accesses are
    /// reported by these numbers of blocks' first instructions.
    pub fn compile(
        &mut self,
        id: BlockId,
        compile_threshold: u32,
        must_report: &dyn Fn(&DecodedBlock<G>) -> bool,
        first_instruction: &dyn Fn(BlockId) -> u32,
        cache: &mut BlockCache<G>,
    ) {
        let region = region::find(id, (compile_threshold / MAX_RATIO).max(1), must_report, cache);
        let flow = self.registers.has_counters().then(|| region.flow(cache));
        let (first, space) = self.code_table.arena.counters();
        let counters = flow.as_ref().map_or(0, FlowCounters::counters);
        let emitted = cache.counters.next(counters, first, space).and_then(|number| {
            let base = first.as_ptr() as u64;
            let counted = flow.as_ref().map(|flow| emit::BlockCounting { flow, first: number, base });
            let lookup = |hit_filter| emit::FilterLookup { hit_filter, first_instruction };
            let lookup = self.hit_filter.as_ref().map(lookup);
            let (registers, code_table) = (&self.registers, &mut self.code_table);
            emit::emit(&region, cache, registers, lookup, &self.stubs, counted, code_table)
        });
        let Some(emitted) = emitted else { return cache.reset_execution_count(id) };
        let Some(code) = self.code_table.arena.add(&emitted.code) else {
            return cache.reset_execution_count(id);
        };
        REGIONS.fetch_add(1, Ordering::Relaxed);
        let start = (code - self.code_table.arena.start()) as u32;
        let moved = emitted.sites.iter().map(|site| FaultSite { position: start + site.position, ..*site });
        self.sites.extend(moved);
        if !emitted.instructions.is_empty() {
            self.map.add(start, emitted.instructions, start + emitted.code.len() as u32);
        }
        for (index, position) in emitted.entries {
            let id = region.blocks[index];
            if cache.block(id).code().is_null() {
                let code = code + position as u64;
                self.code_table.set(cache.block(id).address, code);
                cache.set_code(id, code as *const u8);
            }
        }
        if let Some(flow) = flow {
            cache.counters.add(flow.terms(&region.blocks));
        }
    }

    /// Prepares to enter a block's code: puts it back into the table of computed jumps, where another block's may have
    /// replaced it, and sets the addresses of the code ([`guest::HostSide`]).
    pub fn prepare(&mut self, block: &DecodedBlock<G>, guest: &mut G) {
        enter::set_code(self.code_table.arena.start());
        self.map.set_current();
        self.code_table.set_jump_target(block.address, block.code() as u64);
        let addresses = CodeAddresses {
            table: self.code_table.jump_table(),
            enter: self.stubs.enter,
            leave_by_fault: self.stubs.leave_by_fault,
            stack_end: self.stack_end,
        };
        // SAFETY: the addresses are of this compiler's code and tables, and it was made for the calling thread; the caller of
        // `enter::enter`, by which alone compiled code runs, keeps the compiler alive.
        unsafe { guest.host().set_code(addresses) };
    }

    /// The site of the host instruction at `host`, which faulted.
    pub fn site(&self, host: usize) -> FaultSite {
        let position = (host as u64 - self.code_table.arena.start()) as u32;
        let next = self.sites.partition_point(|site| site.position <= position);
        self.sites[next - 1]
    }

    /// Discards all code. None of it may be running.
    pub fn clear(&mut self) {
        self.code_table.clear();
        self.sites.clear();
        self.map.clear();
    }
}
