//! Which misses are due to sharing, true or false: decided when a processor uses what others wrote, or loses its copy without that.

use super::line_numbers::{bit, processors};
use super::line_record::{NO_TOKEN, NOT_COUNTED, STORE};
use super::{CoherentMemory, Decision, SharingClass};

impl CoherentMemory {
    /// The class of a miss, if it is decided at once.
    pub(super) fn classify(
        &mut self,
        processor: u8,
        number: u32,
        used: u64,
        is_store: bool,
    ) -> Option<SharingClass> {
        let record = &mut self.records[number as usize];
        let own = bit(processor);
        let is_first = record.touched & own == 0;
        let was_evicted = record.evicted & own != 0;
        record.touched |= own;
        record.evicted &= !own;
        if record.shared.is_none() && record.touched != own {
            record.shared = Some(self.shared.add());
        }
        let shared = record.shared;
        let class = match (is_first, was_evicted) {
            (true, _) => SharingClass::Cold,
            (_, true) => SharingClass::Replacement,
            _ => SharingClass::True,
        };
        if let Some(shared) = shared {
            let foreign = self.shared.foreign(shared, processor);
            if class == SharingClass::True && *foreign & used == 0 {
                record.undecided |= own;
                *self.shared.token(shared, processor) = NO_TOKEN | if is_store { STORE } else { 0 };
                return None;
            }
            *foreign = 0;
        }
        self.counts.misses[usize::from(is_store)][class as usize] += 1;
        Some(class)
    }

    /// Names a miss that is not decided, for [`CoherentMemory::take_decisions`]. Tokens are less than 2^31 - 2.
    pub fn set_token(&mut self, processor: u8, line: u32, token: u32) {
        if let Some(shared) = self.records[line as usize].shared {
            let own = self.shared.token(shared, processor);
            *own = *own & STORE | token & !STORE;
        }
    }

    /// A processor uses bytes of its copy: if others wrote one of them, the miss that fetched the copy was needed.
    pub(super) fn use_bytes(&mut self, processor: u8, number: u32, used: u64) {
        let record = &self.records[number as usize];
        if record.undecided & bit(processor) != 0
            && let Some(shared) = record.shared
            && *self.shared.foreign(shared, processor) & used != 0
        {
            *self.shared.foreign(shared, processor) = 0;
            self.decide(processor, number, true);
        }
    }

    /// Decides the class of a processor's miss, if that is open.
    pub(super) fn decide(&mut self, processor: u8, number: u32, is_true: bool) {
        let record = &mut self.records[number as usize];
        if record.undecided & bit(processor) == 0 {
            return;
        }
        record.undecided &= !bit(processor);
        let token = record.shared.map_or(NO_TOKEN, |shared| *self.shared.token(shared, processor));
        if token == NOT_COUNTED {
            return;
        }
        let class = if is_true { SharingClass::True } else { SharingClass::False };
        self.counts.misses[usize::from(token & STORE != 0)][class as usize] += 1;
        if token & !STORE != NO_TOKEN {
            self.decisions.push(Decision { token: token & !STORE, is_true });
        }
    }

    /// The decisions since the last call.
    pub fn take_decisions(&mut self) -> std::vec::Drain<'_, Decision> {
        self.decisions.drain(..)
    }

    /// The execution ends: misses that are not decided are false.
    pub fn end(&mut self) {
        for number in 0..self.records.len() as u32 {
            for processor in processors(self.records[number as usize].undecided) {
                self.decide(processor, number, false);
            }
        }
    }
}
