//! What a tracer does as an observer of its thread.

use std::sync::Arc;

use events::record::{Event, Heap, Mark};
use events::{BlockId, HitFilter, LoadedImage};

use super::super::encoder::PIECE;
use super::super::heap::Allocations;
use super::super::session::State;
use super::{Tracer, UNKNOWN};
use alpha::block::{Block, BlockCache};
use alpha::cpu::Cpu;
use alpha::observer::InstrumentationLevel;
use memory::Memory;

impl Tracer {
    /// What must be heard of from before a block on; and whether what was executed before must be told first.
    pub(in crate::recording) fn level(
        &mut self,
        block: &Block,
        cpu: &Cpu,
        memory: &Memory,
    ) -> (InstrumentationLevel, bool) {
        let is_recorded = self.follow(block, cpu);
        let mut has_news = false;
        if let Some(heap) = self.heap.as_mut().filter(|_| self.session.state() != State::Over) {
            heap.enter(block, cpu, memory);
            has_news = !heap.marks.is_empty();
        }
        if is_recorded && !self.is_recording && self.marks.is_empty() {
            self.marks.push(Mark::Gap);
        }
        self.is_recording = is_recorded;
        // Unfiltered accesses are reported at once, and cannot be left out afterwards.
        let is_whole = self.left.is_none() && self.before_from == 0;
        let level = match is_recorded {
            false => self.idle_level(),
            true if self.session.plan.values => InstrumentationLevel::Values,
            true if is_whole && self.hit_filter().is_some() => InstrumentationLevel::Unfiltered,
            true => InstrumentationLevel::Accesses,
        };
        (level, has_news || !self.marks.is_empty())
    }

    /// The hit filter of a consumer that gets only unfiltered accesses.
    pub(in crate::recording) fn hit_filter(&self) -> Option<&HitFilter> {
        self.session.delivery()?.hit_filter()
    }

    /// Reports how often blocks were executed whose accesses were filtered.
    pub(in crate::recording) fn collect_counts(&mut self, cache: &BlockCache) {
        self.define_all(cache);
        let Some(delivery) = self.session.delivery() else { return };
        let mut executed_filtered = Vec::new();
        cache.take_executions(|id, executions| executed_filtered.push((self.number(id), executions)));
        delivery.executed_filtered(&executed_filtered);
    }

    /// Makes all blocks of the cache known to the consumer.
    pub(in crate::recording) fn define_all(&mut self, cache: &BlockCache) {
        self.follow_cache(cache);
        if let Err(error) = self.define_new(cache) {
            return self.fail(error);
        }
        if let Some(delivery) = self.session.delivery() {
            delivery.define();
        }
    }

    /// The number that a block's first instruction has for the consumer.
    pub(in crate::recording) fn first_instruction(&self, id: BlockId) -> u32 {
        self.session.delivery().map_or(0, |delivery| delivery.first_instruction(self.number(id)))
    }

    /// The number of a block in the trace.
    fn number(&self, id: BlockId) -> BlockId {
        self.ids.get(id as usize).map_or(UNKNOWN, |known| known.0)
    }

    pub(in crate::recording) fn must_report(&self, block: &Block) -> bool {
        self.calls.must_report(block) || self.addresses.all.contains(&block.address)
    }

    pub(in crate::recording) fn requires_recompilation(&mut self) -> bool {
        self.calls.requires_recompilation()
    }

    pub(in crate::recording) fn block_boundaries(&self) -> &[u64] {
        &self.addresses.all
    }

    pub(in crate::recording) fn instruction_limit(&self) -> u64 {
        let plan = &self.session.plan;
        plan.from.as_ref().and_then(|place| place.instructions()).unwrap_or(u64::MAX)
    }

    pub(in crate::recording) fn thread(&self) -> Tracer {
        if let Some(delivery) = self.session.delivery() {
            delivery.add_thread();
        }
        let addresses = self.addresses.clone();
        let heap = self.heap.as_ref().map(Allocations::thread);
        let tracer = Tracer::of(self.session.clone(), addresses, self.calls.thread(), self.images.clone());
        Tracer { heap, ..tracer }
    }

    pub(in crate::recording) fn executed(&mut self, records: &[u64], cache: &BlockCache) {
        if self.has_failed {
            return;
        }
        self.follow_cache(cache);
        let is_live = self.session.delivery().is_some();
        let added = if is_live {
            self.deliver(records, cache)
        } else {
            self.mark(Mark::Order(self.order));
            self.add(records, cache)
        };
        if let Err(error) = added {
            self.fail(error);
        }
        if self.left == Some(0) {
            host::kick_self();
        }
        self.order = self.session.next_order();
        if !is_live && self.piece.len() >= PIECE {
            self.flush_records();
        }
    }

    pub(in crate::recording) fn system_call(&mut self, number: u32) {
        /// execve and execveat: what comes after may not be ours.
        const REPLACING: [u32; 2] = [59, 513];
        if self.is_recording && !self.is_cut {
            self.mark(Mark::SystemCall(number));
        }
        if REPLACING.contains(&number) && self.instructions > 0 {
            self.flush();
        }
    }

    pub(in crate::recording) fn discontinuity(&mut self) {
        if self.is_recording && !self.is_cut {
            self.mark(Mark::Discontinuity);
        }
    }

    pub(in crate::recording) fn resumed(&mut self) {
        self.order = self.session.next_order();
        self.add_heap();
        if self.left == Some(0) {
            self.cut_units();
        }
        self.piece.extend(self.marks.drain(..).map(|mark| Event::Mark(mark).word()));
        if self.hit_filter().is_some() {
            // Compiled code may tell what is behind them before there is another record.
            self.flush_records();
        }
    }

    pub(in crate::recording) fn mapped(&mut self, image: &LoadedImage) {
        // An image that cannot be read any more has no symbols.
        let file = linux::read_image(&image.path).ok().map(Arc::new);
        if let Some(file) = &file {
            self.calls.mapped(image, file);
            self.addresses.mapped(&self.session.plan, image, file);
            if let Some(heap) = &mut self.heap {
                // Whoever hears of callers knows where they are.
                self.session.image(image, Some(file));
                self.addresses.all.extend(heap.mapped(image, file));
            }
        }
        self.images.push((image.clone(), file));
    }

    /// Another program takes the place of this one.
    pub(in crate::recording) fn replaced(&mut self) {
        if let Some(heap) = &mut self.heap {
            heap.replaced();
        }
    }

    pub(in crate::recording) fn forked(&mut self) {
        // Nobody feeds from here: the other thread is the parent's.
        std::mem::forget(self.feed.take());
        let session = self.session.forked();
        let (addresses, calls) = (self.addresses.clone(), self.calls.clone());
        let images = std::mem::take(&mut self.images);
        let (is_recording, order) = (self.is_recording, self.order);
        let (parent, mut heap) = (self.session.process.number(), self.heap.take());
        if let Some(heap) = &mut heap {
            heap.marks = vec![Mark::Heap(Heap::Copied(parent))];
        }
        *self = Tracer { is_recording, order, heap, ..Tracer::of(session, addresses, calls, images) };
        // The number is from before the parent goes on.
        self.add_heap();
        if is_recording {
            self.marks.push(Mark::Gap);
        }
    }
}
