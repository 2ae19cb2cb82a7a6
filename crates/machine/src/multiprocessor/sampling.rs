//! Samples of processors on a bus: windows in which transactions take their time, and functional warming between them, in which
//! each one takes the mean time that windows have shown. So processors that miss more are slower there as well, and have
//! their share of the instructions in windows.

use std::collections::BTreeMap;

use events::Thread;

use super::processor::{ProcessorCause, ProcessorState};
use crate::observe::sample_parts::SampleOwner;
use crate::observe::sampling::{Estimate, SamplingPlan, WindowSampler, WindowSums};

/// The time that is not idle, that of each cause, and the number of transactions.
const SUMS: usize = TRANSACTIONS + 1;
const TRANSACTIONS: usize = 1 + ProcessorCause::ALL.len();
/// Instructions of a processor's turn between windows.
pub(super) const WARMING_TURN: u64 = 100;

/// The measurements in the windows of a sample: picoseconds of all processors, by cause.
pub type SampledTime = WindowSums<SUMS>;

impl SampledTime {
    /// Picoseconds of a cause per instruction.
    pub fn of(&self, cause: ProcessorCause) -> Estimate {
        self.estimate(1 + cause as usize)
    }

    /// Picoseconds that a transaction holds its processor up, as far as windows have shown.
    fn stall(&self) -> u64 {
        let stalls = self.sum(0) - self.sum(1 + ProcessorCause::Busy as usize);
        stalls.checked_div(self.sum(TRANSACTIONS)).unwrap_or(0)
    }
}

/// Decides which blocks are executed in time.
#[derive(Debug)]
pub(super) struct ProcessorSampler {
    sampler: WindowSampler<SUMS>,
    stall: u64,
}

impl ProcessorSampler {
    /// The plan is that of each processor.
    pub fn new(plan: SamplingPlan, processors: usize) -> ProcessorSampler {
        let each = processors as u64;
        let SamplingPlan { period, window, warm_up } = plan;
        let plan = SamplingPlan {
            period: period.saturating_mul(each),
            window: window.saturating_mul(each),
            warm_up: warm_up.saturating_mul(each),
        };
        ProcessorSampler { sampler: WindowSampler::new(plan), stall: 0 }
    }

    pub fn is_detailed(&self) -> bool {
        self.sampler.is_detailed()
    }

    /// Picoseconds that a transaction takes between windows.
    pub fn stall(&self) -> u64 {
        self.stall
    }

    /// A processor has executed a block with all that it needed the bus for.
    pub fn executed(&mut self, instructions: u64, processors: &[ProcessorState]) {
        let windows = self.sampler.sampled.windows;
        self.sampler.executed(instructions, || sums(processors));
        if self.sampler.sampled.windows != windows {
            self.stall = self.sampler.sampled.stall();
        }
    }

    /// A processor executes a thread from now on.
    pub fn runs(&mut self, thread: Thread, processors: &[ProcessorState]) {
        self.sampler.runs(thread, || sums(processors));
    }

    /// The thread that runs is in this unit of work from now on, or in none.
    pub fn enter_unit(&mut self, unit: Option<u64>, processors: &[ProcessorState]) {
        self.sampler.enter_unit(unit, sums(processors));
    }

    /// The measurements in the parts of the execution whose units of work have the same key.
    pub fn sampled_by<K: Ord>(
        &self,
        processors: &[ProcessorState],
        key: impl Fn(SampleOwner) -> K,
    ) -> BTreeMap<K, WindowSums<1>> {
        self.sampler.sums_by(sums(processors), key)
    }

    pub fn reset_counts(&mut self, processors: &[ProcessorState]) {
        self.sampler.reset_counts(sums(processors));
    }

    pub fn sampled(&self) -> &SampledTime {
        &self.sampler.sampled
    }
}

/// The time of all processors.
fn sums(processors: &[ProcessorState]) -> [u64; SUMS] {
    let mut sums = [0; SUMS];
    for processor in processors {
        let times = &processor.counts.time;
        sums[TRANSACTIONS] += processor.counts.transactions;
        sums[1..TRANSACTIONS].iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
    }
    sums[0] = sums[1..TRANSACTIONS].iter().sum::<u64>() - sums[1 + ProcessorCause::Idle as usize];
    sums
}
