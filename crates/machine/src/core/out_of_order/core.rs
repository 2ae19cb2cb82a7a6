//! The core: each instruction goes through fetch, dispatch, issue, execution and retirement.

use isa::CpuModel;

use super::base_registers::BaseRegisters;
use super::block::{BlockExit, CoreBlock};
use super::code::CodeMemory;
use super::core_window::WrongPathState;
use super::counts::{LastDispatch, OutOfOrderCounts};
use super::description::{ExecutionOrder, OutOfOrder, UnknownStores};
use super::fetch::{FetchStage, Wait};
use super::outstanding::OutstandingLines;
use super::ports::Ports;
use super::rules::{AccessKind, CoreInstruction, CoreRules, NOTHING, REGISTERS};
use super::store_queue::StoreQueue;
use super::window::NEVER;
use crate::core::pipeline::registers::NONE;
use crate::core::pipeline::{Cause, CycleTotals, LEVELS, MemorySystem, ServedBy, SiteCycles, Timing};
use crate::core::predictor::{BlockEnd, PredictorState, SpeculativeState};

/// The times of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stages {
    pub dispatched: u64,
    pub issued: u64,
}

/// The rules and latencies of a core.
pub(super) struct CoreSettings {
    pub stages: u64,
    pub dispatch: u32,
    pub to_issue: u64,
    pub retire: u32,
    pub unknown_stores: UnknownStores,
    pub forward: u64,
    pub replay: u64,
    pub writes: u32,
    pub partial_forward: u64,
    pub taken: u64,
    pub misfetch: u64,
    pub redirect: u64,
    pub system_call: u64,
    pub emulation: u64,
    pub load_cycles: [u32; LEVELS + 1],
    pub fetch_cycles: [u32; LEVELS + 1],
    pub line_shift: u32,
    pub wait_table_cycles: u64,
    pub branch_latency: u64,
}

/// An out-of-order core with its memory.
pub(crate) struct OutOfOrderCore<M> {
    pub(super) settings: CoreSettings,
    pub(super) rules: CoreRules,
    pub(super) memory: M,
    pub(super) predictor: PredictorState,
    pub(super) fetch: FetchStage,
    pub(super) window: WrongPathState,
    /// A copy of the window during a wrong path.
    pub(super) saved: Option<Box<WrongPathState>>,
    pub(super) speculative: SpeculativeState,
    pub(super) ports: Ports,
    pub(super) lines: OutstandingLines,
    pub(super) queue: StoreQueue,
    /// Loads that wait for older stores, by address; and the period of its contents.
    pub(super) wait_table: Vec<bool>,
    pub(super) wait_period: u64,
    pub(super) code: CodeMemory,
    pub(super) registers: BaseRegisters,
    pub(super) blocks: Vec<CoreBlock>,
    pub(super) exit: BlockExit,
    /// The cycle of the last retirement, and the instructions that retired in it.
    pub(super) retired: (u64, u32),
    pub(super) totals: CycleTotals,
    pub(super) sites: Vec<SiteCycles>,
    pub(super) emulated: u64,
    pub(super) counts: OutOfOrderCounts,
    pub(super) last_dispatch: LastDispatch,
    pub(super) process: u32,
}

impl<M: MemorySystem> OutOfOrderCore<M> {
    /// An idle core. An instruction that `cpu` lacks costs `emulation` cycles.
    pub fn new(
        core: &OutOfOrder,
        predictor: PredictorState,
        timing: &Timing,
        memory: M,
        (cpu, emulation): (Option<CpuModel>, u64),
        memory_level: u8,
    ) -> OutOfOrderCore<M> {
        let branch = core.rules(isa::InstructionClass::Branch).and_then(|class| class.latency).unwrap_or(1);
        let stages = core.fetch.stages + timing.fetch_hit;
        let settings = CoreSettings {
            stages: stages.into(),
            dispatch: core.dispatch,
            to_issue: core.dispatch_to_issue.into(),
            retire: core.retire,
            unknown_stores: core.loads.unknown_stores,
            forward: core.loads.forward.into(),
            replay: core.loads.replay.into(),
            writes: core.stores.writes,
            partial_forward: core.loads.partial_forward.into(),
            taken: core.fetch.taken.into(),
            misfetch: core.fetch.misfetch.into(),
            redirect: core.fetch.redirect.into(),
            system_call: core.system_call.into(),
            emulation,
            load_cycles: timing.load,
            fetch_cycles: timing.fetch,
            line_shift: timing.data_line.ilog2(),
            wait_table_cycles: core.loads.wait_table_cycles.into(),
            branch_latency: branch.into(),
        };
        OutOfOrderCore {
            rules: CoreRules::new(core, cpu, timing.load_hit),
            memory,
            predictor,
            fetch: FetchStage::new(&core.fetch, stages, timing),
            window: WrongPathState::new(core),
            saved: Some(Box::new(WrongPathState::new(core))),
            speculative: SpeculativeState::default(),
            ports: Ports::new(),
            lines: OutstandingLines::new(core.loads.outstanding, core.loads.outstanding_memory, memory_level),
            queue: StoreQueue::new(core.stores.queue),
            wait_table: vec![false; core.loads.wait_table as usize],
            wait_period: 0,
            code: CodeMemory::new(),
            registers: BaseRegisters::default(),
            blocks: Vec::new(),
            exit: BlockExit { end: BlockEnd::Falls, last: 0, next: 0 },
            retired: (0, 0),
            totals: CycleTotals::default(),
            sites: Vec::new(),
            emulated: 0,
            counts: OutOfOrderCounts::default(),
            last_dispatch: LastDispatch::default(),
            process: 0,
            settings,
        }
    }

    /// An image is mapped.
    pub fn map(&mut self, image: &events::MappedImage) {
        self.code.map(image);
    }

    /// Defines a block that can be executed from now on.
    pub fn define(&mut self, block: events::Block) {
        let first = self.sites.len();
        self.sites.resize(first + block.words.len(), SiteCycles::default());
        self.blocks.push(CoreBlock::unknown(block, first));
    }

    /// How many accesses a block makes that is executed next, and how many instructions it has.
    #[inline(always)]
    pub fn lengths(&mut self, block: u32) -> [u32; 2] {
        let block = &mut self.blocks[block as usize];
        if let Some(definition) = block.definition.take() {
            *block = CoreBlock::new(&definition, &self.rules, block.first_site);
            self.code.learn(&definition);
        }
        [block.accesses.len() as u32, block.instructions.len() as u32]
    }

    /// Switches to a process.
    pub fn enter(&mut self, process: u32) {
        if process != self.process {
            self.process = process;
            self.memory.enter(process);
            self.window.fetch.forget_line();
            self.fetch.forget();
            self.divert();
        }
    }

    /// A discontinuity: control continues elsewhere, and registers have changed.
    pub fn divert(&mut self) {
        self.exit.end = BlockEnd::Falls;
        self.registers = BaseRegisters::default();
    }

    /// Executes a block, whose accesses have these addresses.
    pub fn execute(&mut self, block: u32, addresses: &[u64]) {
        let number = block as usize;
        let block = &mut self.blocks[number];
        if block.instructions.is_empty() {
            return;
        }
        let mut at = block.address;
        self.leave(at);
        let block = &mut self.blocks[number];
        let (instructions, first_site, exit) =
            (std::mem::take(&mut block.instructions), block.first_site, block.exit);
        let mut accesses = addresses.iter();
        for (site, instruction) in (first_site..).zip(&instructions) {
            let address = match instruction.access {
                AccessKind::None => 0,
                _ => accesses.next().copied().unwrap_or(0),
            };
            self.instruction(instruction, at, address, site);
            at = at.wrapping_add(instruction.length.into());
        }
        self.blocks[number].instructions = instructions;
        self.registers.execute_block(&self.blocks[number].effect, addresses);
        self.exit = exit;
    }

    /// Leaves the last block for an address: where fetching continues, and when.
    #[inline]
    fn leave(&mut self, to: u64) {
        let BlockExit { end, last, next } = self.exit;
        if !self.exit.can_lead_to(to) {
            return self.window.fetch.begin_cycle();
        }
        if end == BlockEnd::Falls {
            return;
        }
        if let Some(has_target) = self.predictor.has_target(last) {
            self.counts.targets[0] += 1;
            self.counts.targets[1] += u64::from(!has_target);
        }
        let predicted = self.predictor.execute(end, last, next, to);
        if predicted.next == Some(to) {
            self.redirect(next, to, predicted.is_early);
            return;
        }
        self.counts.mispredicted += 1;
        let resolved = self.window.executed;
        match predicted.next {
            Some(wrong) => self.wrong_path(end, next, (wrong, predicted.is_early), resolved),
            None => self.counts.lost_paths += 1,
        }
        self.window.fetch.restart(resolved + self.settings.redirect, Cause::Mispredict);
    }

    /// The front end follows a prediction.
    #[inline]
    pub(super) fn redirect(&mut self, next: u64, to: u64, is_early: bool) {
        if to != next {
            let CoreSettings { taken, misfetch, .. } = self.settings;
            let (lost, cause) =
                if is_early { (taken, Cause::TakenBranch) } else { (misfetch, Cause::Misfetch) };
            self.window.fetch.restart(self.window.fetch.cycle + 1 + lost, cause);
        }
    }

    /// Simulates an instruction at `at` of the right path, which accesses `address`.
    #[inline(always)]
    fn instruction(&mut self, instruction: &CoreInstruction, at: u64, address: u64, site: usize) {
        let (mut stages, mut waits) = self.fetch_and_issue(instruction, at, address);
        let mut served = ServedBy::default();
        if instruction.access != AccessKind::None {
            let is_store = instruction.access == AccessKind::Store;
            served = self.memory.access(address, instruction.bytes, is_store).unwrap_or_default();
            self.counts.translations[1] += u64::from(served.translation);
            if served.traps {
                self.refill(instruction, stages, &mut served);
                (stages, waits) = self.fetch_and_issue(instruction, at, address);
            }
            if served.level > 0 {
                self.counts.accessed_from[served.level.min(LEVELS as u8) as usize] += 1;
            }
        }
        let Stages { dispatched, issued } = stages;
        self.last_dispatch.dispatch(dispatched, &mut self.counts);
        // What it waits for after its issue.
        let mut late = [(issued, Cause::Unit); 3];
        let mut store = None;
        let completed = match instruction.access {
            AccessKind::None => issued + u64::from(instruction.latency),
            AccessKind::Load => self.load(instruction, address, served, stages, &mut late),
            AccessKind::Store => {
                let queued = self.address(instruction, address, served, issued, &mut late[0]);
                store = Some((queued, served.level));
                queued.known.max(queued.data)
            }
        };
        let retired = self.retire(site, completed, instruction, &waits, &late);
        let mut written = retired;
        if let Some((queued, level)) = store {
            written = self.write(queued, level, retired, dispatched);
        }
        self.window.executed = completed;
        self.take::<false>(instruction, [dispatched, issued, completed], [retired, written]);
        self.order(instruction, completed, retired);
    }

    /// Fetches an instruction of the right path at `at`, dispatches and issues it; a load that is replayed several times.
    #[inline(always)]
    fn fetch_and_issue(
        &mut self,
        instruction: &CoreInstruction,
        at: u64,
        address: u64,
    ) -> (Stages, [Wait; 4]) {
        loop {
            let times = [self.window.buffer.oldest(), u64::MAX, self.next_retirement()];
            self.fetch.fetch(
                &mut self.window.fetch,
                at,
                instruction.length,
                times,
                &mut self.memory,
                &mut self.counts,
            );
            let must_wait = instruction.access == AccessKind::Load && self.must_wait(at);
            let (stages, waits) = self.dispatch_and_issue::<false>(instruction, must_wait);
            match self.conflict(instruction, address, stages.issued) {
                Some(known) => self.replay(at, known),
                None => return (stages, waits),
            }
        }
    }

    /// Software fills a TLB: an access that missed there traps in the cycle in which it would retire if it had hit. It is fetched
    /// again after the trap.
    #[cold]
    fn refill(&mut self, instruction: &CoreInstruction, stages: Stages, served: &mut ServedBy) {
        let trap = self.next_retirement().max(stages.issued + u64::from(instruction.latency));
        let cycles = std::mem::take(&mut served.translation);
        self.window.fetch.restart(trap + u64::from(cycles), Cause::DataTranslation);
    }

    /// The first cycle in which the next instruction can retire.
    #[inline(always)]
    fn next_retirement(&self) -> u64 {
        let (last, count) = self.retired;
        last + u64::from(count == self.settings.retire)
    }

    /// Dispatches and issues an instruction that was fetched. Returns its times, and what it waited for.
    #[inline(always)]
    pub(super) fn dispatch_and_issue<const WRONG: bool>(
        &mut self,
        instruction: &CoreInstruction,
        must_wait: bool,
    ) -> (Stages, [Wait; 4]) {
        let CoreSettings { stages, dispatch, to_issue, unknown_stores, .. } = self.settings;
        let window = &mut self.window;
        let (last, count) = window.dispatched;
        let base = (window.fetch.cycle + stages).max(last + u64::from(count == dispatch));
        let mut dispatched = base;
        let mut holds = |until: u64, resource: usize, counts: &mut OutOfOrderCounts| {
            if until >= dispatched {
                if !WRONG {
                    counts.held[resource] += until + 1 - dispatched;
                }
                dispatched = until + 1;
            }
        };
        holds(window.reorder.oldest(), 0, &mut self.counts);
        for (queue, writes) in window.renamed.iter().zip(instruction.writes()) {
            if writes {
                holds(queue.oldest(), 1, &mut self.counts);
            }
        }
        match instruction.access {
            AccessKind::None => {}
            AccessKind::Load => holds(window.loads.oldest(), 2, &mut self.counts),
            AccessKind::Store => holds(window.stores.oldest(), 3, &mut self.counts),
        }
        if instruction.station != NOTHING {
            holds(window.stations[instruction.station as usize].first(), 4, &mut self.counts);
        }
        let begin = dispatched + to_issue;
        let [one, other] = instruction.sources.map(|source| window.ready[source as usize % REGISTERS]);
        let operands = begin.max(one).max(other);
        let mut ordered = operands.max(window.barriers[1]);
        let is_memory = instruction.access != AccessKind::None;
        if is_memory {
            ordered = ordered.max(window.barriers[0]);
        }
        if instruction.access == AccessKind::Load && (unknown_stores == UnknownStores::Wait || must_wait) {
            ordered = ordered.max(window.known_stores);
        }
        if !WRONG && instruction.order != ExecutionOrder::Free {
            ordered = ordered.max(self.retired.0 + 1);
            if instruction.order == ExecutionOrder::Memory {
                ordered = ordered.max(window.written.0 + 1);
            }
        }
        let mut issued = ordered;
        if instruction.unit != NOTHING {
            issued = issued.max(window.units[instruction.unit as usize]);
        }
        let mut port = 0;
        if instruction.ports != 0 && issued < NEVER {
            (issued, port) = self.ports.find(instruction.ports, issued);
        }
        if port != 0 && !WRONG {
            self.ports.take(issued, port, dispatched);
        }
        let held = if dispatched > base { Cause::WriteBuffer } else { Cause::Operand };
        let waits = [
            (dispatched, held),
            (begin, Cause::Operand),
            (operands, Cause::Operand),
            (ordered, Cause::Barrier),
        ];
        (Stages { dispatched, issued }, waits)
    }

    /// Takes a port of a wrong path, which is issued before the path ends.
    pub(super) fn take_port(&mut self, instruction: &CoreInstruction, stages: Stages) {
        if instruction.ports != 0 {
            let (issued, port) = self.ports.find(instruction.ports, stages.issued);
            self.ports.take(issued, port, stages.dispatched);
        }
    }

    /// Whether a load waits for older stores, because it was replayed.
    #[inline(always)]
    fn must_wait(&mut self, at: u64) -> bool {
        if self.wait_table.is_empty() {
            return false;
        }
        let period = self.window.fetch.cycle / self.settings.wait_table_cycles;
        if period != self.wait_period {
            self.wait_period = period;
            self.wait_table.fill(false);
        }
        self.wait_table[(at >> 2) as usize & (self.wait_table.len() - 1)]
    }

    /// When a load is replayed that is issued in this cycle: when the address of an older store becomes known that stores
    /// what it loads.
    #[inline(always)]
    fn conflict(&self, instruction: &CoreInstruction, address: u64, issued: u64) -> Option<u64> {
        if instruction.access != AccessKind::Load || self.settings.unknown_stores == UnknownStores::Wait {
            return None;
        }
        let store = self.queue.find(address, instruction.bytes, issued)?;
        (store.known > issued).then_some(store.known)
    }

    /// A load is fetched again: a store whose address became known in this cycle stores what it has loaded.
    #[cold]
    fn replay(&mut self, at: u64, known: u64) {
        self.counts.replays += 1;
        if !self.wait_table.is_empty() {
            let slot = (at >> 2) as usize & (self.wait_table.len() - 1);
            self.wait_table[slot] = true;
        }
        self.window.fetch.restart(known + self.settings.replay, Cause::Replay);
    }

    /// Gives an instruction its entries of the window. `times` are those of its dispatch, issue and completion; entries are
    /// taken until it retires, and those of stores until they are written.
    #[inline(always)]
    pub(super) fn take<const WRONG: bool>(
        &mut self,
        instruction: &CoreInstruction,
        [dispatched, issued, completed]: [u64; 3],
        [retired, written]: [u64; 2],
    ) {
        let window = &mut self.window;
        let (last, count) = window.dispatched;
        window.dispatched = (dispatched, if dispatched == last { count + 1 } else { 1 });
        window.buffer.replace(dispatched);
        window.reorder.replace(retired);
        for (queue, writes) in window.renamed.iter_mut().zip(instruction.writes()) {
            if writes {
                queue.replace(retired);
            }
        }
        match instruction.access {
            AccessKind::None => {}
            AccessKind::Load => window.loads.replace(retired),
            AccessKind::Store => window.stores.replace(written),
        }
        if instruction.station != NOTHING {
            window.stations[instruction.station as usize].replace(issued);
        }
        if instruction.unit != NOTHING {
            window.units[instruction.unit as usize] = issued + u64::from(instruction.occupied);
        }
        if instruction.destination != NONE {
            window.ready[instruction.destination as usize % REGISTERS] = completed;
        }
        if WRONG && instruction.access == AccessKind::Store {
            window.known_stores = window.known_stores.max(completed);
        }
    }

    /// Makes later instructions wait for one that is executed in an order.
    #[inline(always)]
    fn order(&mut self, instruction: &CoreInstruction, completed: u64, retired: u64) {
        match instruction.order {
            ExecutionOrder::Free | ExecutionOrder::Oldest => {}
            ExecutionOrder::Memory => self.window.barriers[0] = completed,
            ExecutionOrder::All => self.window.barriers[1] = completed,
            ExecutionOrder::System => {
                let CoreSettings { system_call, emulation, .. } = self.settings;
                let (cycles, cause) = match instruction.is_emulated {
                    true => (emulation, Cause::Emulation),
                    false => (system_call, Cause::CallPal),
                };
                self.emulated += u64::from(instruction.is_emulated);
                self.window.fetch.restart(retired + cycles, cause);
            }
        }
    }
}
