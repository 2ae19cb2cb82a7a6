//! The tracer's part of the observer.

use std::io;
use std::sync::Arc;

use events::record::{Event, Heap, MappingEvent, Mark};
use events::{BlockId, HitFilter, LoadedImage, ProcessEnd};

use super::super::encoder::BUFFER_WORDS;
use super::super::heap::Allocations;
use super::super::session::RecordingState;
use super::{Tracer, UNKNOWN};
use crate::objects::ObjectCalls;
use crate::platform::Platform;
use guest::{BlockCache, DecodedBlock, InstrumentationLevel};
use guest_memory::Memory;

impl Tracer {
    /// The level of instrumentation from a block on; and whether everything before must be reported first.
    pub(in crate::recording) fn level<G: Platform>(
        &mut self,
        block: &DecodedBlock<G>,
        cpu: &G,
        memory: &Memory,
    ) -> (InstrumentationLevel, bool) {
        let is_recorded = self.update_state(block, cpu, memory);
        let mut has_news = false;
        if let Some(heap) = self.heap.as_mut().filter(|_| self.session.state() != RecordingState::Over) {
            heap.enter(block, cpu, memory);
            has_news = !heap.marks.is_empty();
        }
        if let Some(objects) = &mut self.objects {
            objects.enter(block, cpu, memory);
            match (is_recorded, self.is_recording) {
                (true, true) => {}
                (true, false) => objects.resume(),
                (false, _) => objects.marks.clear(),
            }
            has_news |= !objects.marks.is_empty();
        }
        if is_recorded && !self.is_recording && self.marks.is_empty() {
            self.marks.push(Mark::Gap);
        }
        self.is_recording = is_recorded;
        // Unfiltered accesses are reported at once and cannot be dropped later.
        let is_whole = self.remaining.is_none() && self.to_skip == 0;
        let level = match is_recorded {
            false => self.idle_level(),
            true if self.session.plan.values => InstrumentationLevel::Values,
            true if is_whole && self.hit_filter().is_some() => InstrumentationLevel::Unfiltered,
            true => InstrumentationLevel::Accesses,
        };
        (level, has_news || !self.marks.is_empty())
    }

    /// The hit filter of a consumer that takes only unfiltered accesses.
    pub(in crate::recording) fn hit_filter(&self) -> Option<&HitFilter> {
        self.session.delivery()?.hit_filter()
    }

    /// Reports counts of executions whose accesses were filtered.
    pub(in crate::recording) fn collect_counts<G: Platform>(&mut self, cache: &BlockCache<G>) {
        self.define_all(cache);
        let Some(delivery) = self.session.delivery() else { return };
        let mut executed_filtered = Vec::new();
        cache.take_executions(|id, executions| executed_filtered.push((self.number(id), executions)));
        delivery.executed_filtered(&executed_filtered);
    }

    /// Defines all blocks of the cache for the consumer.
    pub(in crate::recording) fn define_all<G: Platform>(&mut self, cache: &BlockCache<G>) {
        self.follow_cache(cache);
        if let Err(error) = self.define_new(cache) {
            return self.fail(error);
        }
        if let Some(delivery) = self.session.delivery() {
            delivery.define();
        }
    }

    /// The consumer's number of a block's first instruction.
    pub(in crate::recording) fn first_instruction(&self, id: BlockId) -> u32 {
        self.session.delivery().map_or(0, |delivery| delivery.first_instruction(self.number(id)))
    }

    /// The trace's number of a block.
    fn number(&self, id: BlockId) -> BlockId {
        self.ids.get(id as usize).map_or(UNKNOWN, |known| known.0)
    }

    pub(in crate::recording) fn must_report<G: Platform>(&self, block: &DecodedBlock<G>) -> bool {
        self.calls.must_report(block)
            || self.addresses.all.contains(&block.address)
            || self.objects.as_ref().is_some_and(|objects| objects.must_report(block))
    }

    pub(in crate::recording) fn requires_recompilation(&mut self) -> bool {
        let objects = self.objects.as_mut().is_some_and(ObjectCalls::requires_recompilation);
        self.calls.requires_recompilation() || objects
    }

    pub(in crate::recording) fn block_boundaries(&self) -> &[u64] {
        &self.addresses.all
    }

    pub(in crate::recording) fn instruction_limit(&self) -> u64 {
        let plan = &self.session.plan;
        plan.from.as_ref().and_then(|location| location.instructions()).unwrap_or(u64::MAX)
    }

    pub(in crate::recording) fn thread(&self) -> Tracer {
        if let Some(delivery) = self.session.delivery() {
            delivery.add_thread();
        }
        let addresses = self.addresses.clone();
        let heap = self.heap.as_ref().map(Allocations::thread);
        let objects = self.objects.as_ref().map(ObjectCalls::thread);
        let tracer = Tracer::of(self.session.clone(), addresses, self.calls.thread(), self.images.clone());
        Tracer { heap, objects, ..tracer }
    }

    pub(in crate::recording) fn executed<G: Platform>(&mut self, records: &[u64], cache: &BlockCache<G>) {
        if self.has_failed {
            return;
        }
        self.follow_cache(cache);
        let is_live = self.session.delivery().is_some();
        let added = if is_live {
            self.deliver(records, cache)
        } else {
            self.mark(Mark::Order(self.order));
            self.add_records(records, cache)
        };
        if let Err(error) = added {
            self.fail(error);
        }
        if self.remaining == Some(0) {
            host::kick_self();
        }
        self.order = self.session.next_order();
        if !is_live && self.buffer.len() >= BUFFER_WORDS {
            self.flush_records();
        }
    }

    pub(in crate::recording) fn system_call<G: Platform>(&mut self, number: u32) {
        if self.is_recording && !self.is_truncated {
            self.mark(Mark::SystemCall(number));
        }
        // Another program may follow, which is not recorded.
        if linux_user::replaces_program::<G>(number) && self.instructions > 0 {
            self.flush();
        }
        // Threads wait for each other in system calls: who holds and awaits locks must be known in their order.
        if self.objects.is_some() && self.session.delivery().is_some() {
            self.flush_records();
        }
    }

    pub(in crate::recording) fn discontinuity(&mut self) {
        if self.is_recording && !self.is_truncated {
            self.mark(Mark::Discontinuity);
        }
    }

    pub(in crate::recording) fn resumed(&mut self, memory: &Memory) {
        self.order = self.session.next_order();
        self.add_structures(memory);
        self.add_heap();
        self.add_objects();
        if self.remaining == Some(0) {
            self.correct_unit_marks();
        }
        self.buffer.extend(self.marks.drain(..).map(|mark| Event::Mark(mark).word()));
        self.add_mappings(memory);
        if self.hit_filter().is_some() {
            // Compiled code may report accesses that come after these marks before there is another record.
            self.flush_records();
        }
    }

    pub(in crate::recording) fn mapped(&mut self, image: &LoadedImage) {
        // An image that cannot be read any more has no symbols.
        let file = linux_user::read_image(&image.path).ok().map(Arc::new);
        if let Some(file) = &file {
            self.calls.mapped(image, file);
            self.addresses.mapped(&self.session.plan, image, file);
            if let Some(objects) = &mut self.objects {
                objects.mapped(image, file);
            }
            if let Some(structures) = &mut self.structures {
                structures.mapped(&self.session.plan.structures, image, file);
            }
            if let Some(heap) = &mut self.heap {
                // A consumer of heap marks needs the images of callers.
                self.session.image(image, Some(file));
                self.addresses.all.extend(heap.mapped(image, file));
            }
        }
        self.images.push((image.clone(), file));
    }

    /// Another program takes the place of this one.
    pub(in crate::recording) fn replaced(&mut self, is_same_guest: bool) {
        if !is_same_guest {
            self.fail(io::Error::other(
                "the program executes one of another instruction set, and a recording has one set: record that program by itself",
            ));
        }
        self.leave_unit();
        self.calls = self.calls.renewed();
        if self.session.delivery().is_some() {
            self.flush_records();
        }
        if let Some(delivery) = self.session.delivery() {
            delivery.replaced();
        }
        self.session.mappings().forget();
        if self.is_recording && self.session.delivery().is_none() {
            self.marks.push(Mark::Mapping(MappingEvent::Gone));
        }
        if let Some(heap) = &mut self.heap {
            heap.replaced();
        }
        if let Some(objects) = &mut self.objects {
            objects.replaced();
        }
    }

    /// The process has ended in this way.
    pub(in crate::recording) fn exits(&mut self, how: ProcessEnd) {
        self.end();
        if let Some(delivery) = self.session.delivery() {
            delivery.ended(how);
        }
    }

    /// Whether the forked process is recorded, its parent's child of this number.
    pub(in crate::recording) fn forked(&mut self, ordinal: u32) -> bool {
        let Some(session) = self.session.forked(ordinal) else { return false };
        // The encoder's thread exists only in the parent.
        std::mem::forget(self.encoder.take());
        if self.session.delivery().is_some() {
            // So does the consumer's, which may hold locks of the session for ever.
            std::mem::forget(self.session.clone());
        }
        // A unit belongs to the process in which it began.
        let (addresses, calls) = (self.addresses.clone(), self.calls.thread());
        let images = std::mem::take(&mut self.images);
        let (is_recording, order) = (self.is_recording, self.order);
        let (parent, mut heap) = (self.session.process.number(), self.heap.take());
        if let Some(heap) = &mut heap {
            heap.marks = vec![Mark::Heap(Heap::Copied(parent))];
        }
        let mut objects = self.objects.take();
        if let Some(objects) = &mut objects {
            objects.forked();
        }
        *self =
            Tracer { is_recording, order, heap, objects, ..Tracer::of(session, addresses, calls, images) };
        // The order number precedes everything that the parent does from now on.
        self.add_heap();
        self.add_objects();
        if is_recording {
            self.marks.push(Mark::Gap);
        }
        if self.session.delivery().is_none() {
            self.marks.push(Mark::Mapping(MappingEvent::Copied(parent)));
        }
        true
    }
}
