//! What a core has counted.

use super::core::{OutOfOrderCore, Settings};
use super::counts::{LastDispatch, NonOverlapped, OutOfOrderCounts};
use crate::PipelineSide;
use crate::core::pipeline::{CycleTotals, Cycles, LEVELS, MemorySystem, SiteCycles};
use crate::core::predictor::PredictorState;

impl<M: MemorySystem> OutOfOrderCore<M> {
    /// The branch predictor.
    pub fn predictor(&self) -> &PredictorState {
        &self.predictor
    }

    /// All cycles but the last one, which may not be over.
    pub fn cycles(&self) -> Cycles {
        self.totals.cycles()
    }

    /// All cycles so far.
    pub fn totals(&self) -> CycleTotals {
        let mut totals = self.totals.clone();
        let count = self.retired.1;
        totals.spend(count as usize, u64::from(count > 0));
        totals
    }

    /// Instructions that the system emulated.
    pub fn emulated(&self) -> u64 {
        self.emulated
    }

    /// What is counted beside cycles.
    pub fn counts(&self) -> OutOfOrderCounts {
        let mut counts = self.counts.clone();
        { self.last_dispatch }.finish(&mut counts);
        counts
    }

    /// The cycles if nothing overlapped.
    pub fn non_overlapped(&self) -> NonOverlapped {
        let Settings { stages, to_issue, branch_latency, redirect, fetch_cycles, load_cycles, .. } =
            self.settings;
        let counts = &self.counts;
        let cycles = self.totals().cycles();
        let levels = |served: &[u64; LEVELS + 1], cycles: &[u32; LEVELS + 1]| {
            served[1..].iter().zip(&cycles[1..]).map(|(&number, &cycles)| (number, cycles.into())).collect()
        };
        NonOverlapped {
            computation: cycles.of_side(PipelineSide::Issuing),
            resources: counts.held.iter().sum(),
            branches: (counts.mispredicted, stages + to_issue + branch_latency + redirect),
            instructions: levels(&counts.fetched_from, &fetch_cycles),
            data: levels(&counts.accessed_from, &load_cycles),
            translations: counts.translations,
        }
    }

    /// The cycles of a block's instructions.
    pub fn sites(&self, block: usize) -> Vec<SiteCycles> {
        let first = |block: usize| self.blocks.get(block).map(|block| block.first_site);
        let Some(from) = first(block) else { return Vec::new() };
        self.sites[from..first(block + 1).unwrap_or(self.sites.len())].to_vec()
    }

    /// Adds the counts of another core of the same machine, which executes nothing any more.
    pub fn merge(&mut self, ended: &OutOfOrderCore<M>) {
        self.totals.merge(&ended.totals());
        self.sites.iter_mut().zip(&ended.sites).for_each(|(own, ended)| own.add(ended));
        self.emulated += ended.emulated;
        self.counts.add(&ended.counts());
        self.predictor.add_counts(&ended.predictor);
    }

    /// Resets the counts.
    pub fn reset_counts(&mut self) {
        self.totals = CycleTotals::default();
        self.sites.fill(SiteCycles::default());
        self.counts = OutOfOrderCounts::default();
        self.last_dispatch = LastDispatch::default();
        self.emulated = 0;
        self.retired.1 = 0;
        self.predictor.reset_counts();
        self.memory.reset_counts();
    }
}
