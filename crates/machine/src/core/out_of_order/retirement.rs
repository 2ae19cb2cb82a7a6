//! Retirement, and the attribution of cycles to what the oldest instruction waits for.

use super::core::OutOfOrderCore;
use super::description::ExecutionOrder;
use super::fetch::Wait;
use super::rules::{Access, CoreInstruction};
use crate::PipelineSide;
use crate::core::pipeline::{Cause, MemorySystem};

impl<M: MemorySystem> OutOfOrderCore<M> {
    /// Retires an instruction that is completed in this cycle, and attributes the cycles until then. Returns its cycle.
    #[inline(always)]
    pub(super) fn retire(
        &mut self,
        site: usize,
        completed: u64,
        instruction: &CoreInstruction,
        waits: &[Wait; 4],
        late: &[Wait; 3],
    ) -> u64 {
        let (last, count) = self.retired;
        let retired = completed.max(last + u64::from(count == self.settings.retire));
        if retired == last {
            self.retired.1 += 1;
            // The first one after counts were reset.
            self.sites[site].issuing += u64::from(count == 0);
            return retired;
        }
        self.totals.spend(count as usize, u64::from(count > 0));
        self.retired = (retired, 1);
        self.sites[site].issuing += 1;
        if retired > last + 1 {
            self.attribute(site, [last + 1, retired], instruction, waits, late);
        }
        retired
    }

    /// Attributes the cycles in which nothing retired, because an instruction was not completed, to what it waited for.
    fn attribute(
        &mut self,
        site: usize,
        [mut next, retired]: [u64; 2],
        instruction: &CoreInstruction,
        waits: &[Wait; 4],
        late: &[Wait; 3],
    ) {
        let stages = self.settings.stages;
        let front = self.window.fetch.waits.map(|(until, cause)| (until + stages, cause));
        // Stages between fetch and issue delay an instruction that was fetched late.
        let late_front = front.iter().rev().find(|wait| wait.0 == self.window.fetch.cycle + stages);
        let front_cause = late_front.map_or(Cause::TakenBranch, |wait| wait.1);
        let [mut dispatch, mut begin, operands, mut ordered] = *waits;
        if dispatch.1 != Cause::WriteBuffer {
            dispatch.1 = front_cause;
        }
        begin.1 = front_cause;
        if instruction.order == ExecutionOrder::Free && instruction.access == Access::None {
            ordered.1 = Cause::Operand;
        }
        let rest = [(late[0].0.min(retired), late[0].1), late[1], late[2], (retired, Cause::Operand)];
        let issue = [dispatch, begin, operands, ordered, (late[0].0, Cause::Unit)];
        for (until, cause) in front.into_iter().chain(issue.into_iter().take(4)).chain(rest) {
            let cycles = until.min(retired).saturating_sub(next);
            if cycles > 0 {
                next += cycles;
                self.totals.spend(cause.index(), cycles);
                let own = &mut self.sites[site];
                match cause.side() {
                    PipelineSide::FrontEnd => own.front_end_stall += cycles,
                    _ => own.back_end_stall += cycles,
                }
            }
        }
    }
}
