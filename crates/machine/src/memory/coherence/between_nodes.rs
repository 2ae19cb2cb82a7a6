//! What processors' private caches lose because nodes exchange lines: lines between nodes may be longer than theirs.

use super::line_numbers::{bit, processors};
use super::nodes::{Exchange, Obtained};
use super::{CoherenceState, CoherentMemory};

impl CoherentMemory {
    /// A processor has got a line from the others as if they were on one bus: the nodes exchange what that needs, and other
    /// private lines that are parts of the same line between nodes.
    pub(super) fn obtain(&mut self, processor: u8, line: u64, number: u32, is_store: bool) -> Exchange {
        let Some(nodes) = &self.nodes else { return Exchange::default() };
        let node = nodes.node_of(processor);
        let own = nodes.processors_of(node);
        let shift = nodes.line_shift() - self.line_shift;
        let whole = line >> shift;
        let parts = || whole << shift..(whole + 1) << shift;
        let holders = parts().filter_map(|part| self.numbers.find(part));
        let others_have_copies =
            holders.fold(0, |mask, number| mask | self.records[number as usize].holders) & !own != 0;
        let Some(nodes) = &mut self.nodes else { return Exchange::default() };
        let Obtained { exchange, is_alone, evicted } =
            nodes.obtain(processor, whole, is_store, others_have_copies);
        for part in parts().filter(|&part| part != line) {
            self.take_from_other_nodes(part, own, is_store);
        }
        let record = &mut self.records[number as usize];
        if !is_store && !is_alone && record.owner == Some(processor) {
            // Another node has a copy, if only in its far cache.
            (record.owner, record.state) = (None, CoherenceState::Invalid);
        }
        for part in evicted.into_iter().flat_map(|evicted| evicted << shift..(evicted + 1) << shift) {
            self.evict_from_processors(part, own);
        }
        exchange
    }

    /// Other nodes than that of some processors lose a line, or may not store to it any more.
    fn take_from_other_nodes(&mut self, line: u64, own: u64, is_store: bool) {
        let Some(number) = self.numbers.find(line) else { return };
        let owner = self.records[number as usize].owner;
        if owner.is_some_and(|owner| own & bit(owner) == 0) {
            self.take_from_owner(line, number, is_store);
        }
        if is_store {
            self.invalidate_others(own, line, number);
        }
    }

    /// A far cache has evicted a line, which it includes: the processors of its node lose it.
    fn evict_from_processors(&mut self, line: u64, own: u64) {
        let Some(number) = self.numbers.find(line) else { return };
        for processor in processors(self.records[number as usize].holders & own) {
            self.caches[usize::from(processor)].invalidate(line);
            self.evict(processor, line);
        }
    }

    /// Checks a line's copies in the nodes.
    pub(super) fn check_nodes(&self, line: u64) -> Result<(), String> {
        let (Some(nodes), Some(number)) = (&self.nodes, self.numbers.find(line)) else { return Ok(()) };
        let record = &self.records[number as usize];
        nodes.check(line >> (nodes.line_shift() - self.line_shift), record.holders, record.owner)
    }
}
