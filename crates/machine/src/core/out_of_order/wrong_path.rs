//! Wrong paths: instructions that the front end fetches between a misprediction and the execution of the mispredicted branch.
//!
//! They are those of the image, along the path that the predictor predicts. They take fetch cycles, entries of the window and
//! ports, and are taken back when the branch is executed; what stays are the lines that they requested: of instructions, and
//! of loads whose base register is known and that are issued in time. Their branches are not executed. Where software fills a TLB
//! they request nothing of a page that it does not have.

use super::core::{OutOfOrderCore, Stages};
use super::counts::OutOfOrderCounts;
use super::outstanding::LineState;
use super::rules::{Access, CoreInstruction};
use super::window::NEVER;
use crate::core::pipeline::{LEVELS, MemorySystem, ServedBy};
use crate::core::predictor::BlockEnd;

impl<M: MemorySystem> OutOfOrderCore<M> {
    /// Follows the path that was predicted after a block, until its last instruction is executed in cycle `resolved`.
    pub(super) fn wrong_path(
        &mut self,
        end: BlockEnd,
        next: u64,
        (wrong, is_early): (u64, bool),
        resolved: u64,
    ) {
        let mut saved = self.saved.take().expect("a wrong path has no wrong paths");
        saved.copy_from(&self.window);
        let registers = self.registers;
        let mut state = std::mem::take(&mut self.speculative);
        self.predictor.keep(&mut state);
        self.predictor.mispredict(end, wrong);
        self.redirect(next, wrong, is_early);
        let mut at = Some(wrong);
        while let Some(address) = at {
            at = self.wrong_instruction(address, resolved);
        }
        self.predictor.restore(&state);
        self.speculative = state;
        self.registers = registers;
        self.window.copy_from(&saved);
        self.saved = Some(saved);
    }

    /// Simulates an instruction of a wrong path. Returns the address of the next one, unless the path ends.
    fn wrong_instruction(&mut self, at: u64, resolved: u64) -> Option<u64> {
        let Some(&code) = self.code.at(at, &self.rules) else {
            self.counts.lost_paths += 1;
            return None;
        };
        let instruction = &code.instruction;
        let times = [self.window.buffer.oldest(), resolved, NEVER];
        let length = instruction.length;
        let last = at.wrapping_add(u64::from(length) - 1);
        if self.fetch.begins_line(&self.window.fetch, last)
            && [at, last].iter().any(|&address| self.memory.probe(address, true).traps)
        {
            return None;
        }
        // Misses are counted on the right path only.
        let counts = &mut OutOfOrderCounts::default();
        if !self.fetch.fetch(&mut self.window.fetch, at, length, times, &mut self.memory, counts) {
            return None;
        }
        self.counts.wrong_fetched += 1;
        self.registers.know_zero(code.zero);
        let (mut stages, _) = self.dispatch_and_issue::<true>(instruction, false);
        if stages.dispatched < resolved {
            self.last_dispatch.dispatch(stages.dispatched, &mut self.counts);
        }
        let is_issued = stages.issued < resolved;
        let mut completed = stages.issued + u64::from(instruction.latency);
        if is_issued {
            self.counts.wrong_issued += 1;
            self.take_port(instruction, stages);
            let address = code.access.as_ref().and_then(|access| self.registers.address(access));
            if let (Access::Load, Some(address)) = (instruction.access, address) {
                completed = self.wrong_load(address, instruction, stages, resolved);
            }
        } else {
            stages.issued = stages.issued.min(NEVER);
            completed = completed.min(NEVER);
        }
        self.take::<true>(instruction, [stages.dispatched.min(NEVER), stages.issued, completed], [NEVER; 2]);
        self.registers.execute(&code.effect, at);
        let next = at.wrapping_add(length.into());
        if code.end == BlockEnd::Falls {
            return Some(next);
        }
        let predicted = self.predictor.predict(code.end, at, next);
        let Some(to) = predicted.next else {
            self.counts.lost_paths += 1;
            return None;
        };
        self.predictor.follow(code.end, next, to);
        self.redirect(next, to, predicted.is_early);
        Some(to)
    }

    /// Executes a load of a wrong path, if its line is there or can be requested before the path ends. Returns when its data are
    /// there.
    fn wrong_load(
        &mut self,
        address: u64,
        instruction: &CoreInstruction,
        Stages { dispatched, issued }: Stages,
        resolved: u64,
    ) -> u64 {
        let probed = self.memory.probe(address, false);
        let translated = issued + u64::from(probed.translation);
        if probed.traps
            || translated >= resolved
            || self.requests(address, probed, translated, dispatched) >= resolved
        {
            return NEVER;
        }
        self.counts.wrong_loads += 1;
        let served = self.memory.access(address, instruction.bytes, false).unwrap_or_default();
        let latency = instruction.latency.into();
        self.line(address, served.level, translated, dispatched, latency).1
    }

    /// When an access in a cycle requests its line, or finds it.
    fn requests(&mut self, address: u64, probed: ServedBy, cycle: u64, dispatched: u64) -> u64 {
        let line = address >> self.settings.line_shift;
        match self.lines.find(line, probed.level, cycle, dispatched) {
            LineState::Absent(level) => self.lines.next_request(cycle, level.clamp(1, LEVELS as u8)),
            LineState::Present | LineState::Arrives(..) => cycle,
        }
    }
}
